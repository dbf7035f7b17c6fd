"""A pretrained encoder on disk: a folder with word vectors and the LSTM that reads them.

| file | what |
|---|---|
| `info.json`, `words.json`, `matrix.npy`, `subwords.npy`, `tokenizer.json` | the word vectors |
| `emoji_scores.npy` | where their text has emoji: what tells them apart in mean word vectors |
| `encoder.safetensors` | the LSTM of each direction, as `nn.LSTM` names its weights |
| `encoder.json` | format, sizes, settings, how well it predicts, hashes of the weights |
| `emoji.safetensors` | where the text has emoji: what tells them apart in its sentence vectors |
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import Tensor

from superconext.config.parameters import BY_NAME, Config, resolve
from superconext.core.arrays import read_arrays, write_arrays
from superconext.core.errors import ConfigError, RunError
from superconext.core.files import atomic_write, file_sha256, write_json

if TYPE_CHECKING:
    from superconext.encoders.base import Encoder
    from superconext.encoders.bilstm import BiLSTMEncoder
    from superconext.encoders.packed_lstm import Packing
    from superconext.text.ngrams import WordNgrams

FORMAT, VERSION = "superconext-encoder", 1

#: Facts that decide a parameter of what starts from the encoder, by the name of the parameter.
SIZES = {"hidden_size": "hidden_size", "vector_dimension": "dimension"}

_OTHER_SIZES = "its tensors are not those of its sizes"

_MOST_JSON = 1 << 20  # bytes
_FACTS, _WEIGHTS, _EMOJI = "encoder.json", "encoder.safetensors", "emoji.safetensors"

#: What `write_layers` writes.
LAYER_FILES = (_FACTS, _WEIGHTS, _EMOJI)

#: All that is read of such a folder, whoever made it.
_FILES = (
    *("info.json", "words.json", "matrix.npy", "subwords.npy", "subword_rows.json"),
    "emoji_scores.npy",
    "tokenizer.json",
    *LAYER_FILES,
)


class TwoWayReader(Protocol):
    """An encoder of which each direction can be read by itself, as pre-training needs it.

    sentence_size: d, of both directions together.
    """

    sentence_size: int

    def read_both_ways(self, ids: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """States of packed ids `[P]` by each direction, `[P, d / 2]`, in its reading order."""


def encoder_to_pretrain(
    words: Tensor, config: Config, ngrams: WordNgrams | None = None
) -> BiLSTMEncoder:
    """A new encoder of one layer over fixed word vectors `[V, e]`, to which what `ngrams` learn is
    added, where there are some."""
    from superconext.encoders.bilstm import BiLSTMEncoder
    from superconext.encoders.words import WordEmbedding

    embedding = WordEmbedding(words, False, ngrams.size if ngrams else 0, ngrams)
    return BiLSTMEncoder.over_words(embedding, replace(config, layers=1), 0)


def write_layers(
    folder: Path, encoder: Encoder, facts: dict[str, Any], emoji: np.ndarray | None = None
) -> None:
    """Add the LSTM of an `encoder_to_pretrain`, and facts about it, to a folder of word vectors.

    emoji: float32 `[K, d]`, see `emoji_scores_of`.
    """
    from safetensors.torch import save_file

    from superconext.encoders.bilstm import BiLSTMEncoder

    assert isinstance(encoder, BiLSTMEncoder)
    tensors = {name: value.detach().contiguous() for name, value in _layers(encoder).items()}
    with atomic_write(folder / _WEIGHTS) as temporary:
        save_file(tensors, temporary)
    sizes = {
        "hidden_size": encoder.sentence_size // 2,
        "dimension": encoder.embedding.dimension,
        "sha256": file_sha256(folder / _WEIGHTS),
    }
    if emoji is not None:
        write_arrays(folder / _EMOJI, {"scores": emoji})
        sizes["emoji_sha256"] = file_sha256(folder / _EMOJI)
    write_json(folder / _FACTS, {"format": FORMAT, "version": VERSION, **sizes, **facts})


def read_facts(folder: str | Path) -> dict[str, Any]:
    """What `write_layers` noted.

    Raises RunError where the folder holds no pretrained encoder, one of a newer version, or a
    link that leads out of it.
    """
    place = Path(folder)
    _check_files(place)
    if not (place / _FACTS).is_file():
        found = f"no {_FACTS}" if place.is_dir() else "no such folder"
        found = "a run" if (place / "config.toml").is_file() else found
        raise RunError(
            f"{folder}: found {found}, expected the folder of a pretrained encoder: make one with "
            "superconext pretrain, or give word vectors alone with --vectors"
        )
    facts = _document(place / _FACTS)
    if facts.get("format") != FORMAT or facts.get("version") != VERSION:
        raise RunError(
            f"{place / _FACTS}: found format {_shown(facts.get('format'))}, version "
            f"{_shown(facts.get('version'))}; expected {FORMAT!r}, version {VERSION}: pretrain "
            "again, or use the superconext that wrote it"
        )
    return facts


def sizes_of(folder: str | Path) -> dict[str, int]:
    """The value of each of `SIZES` that an encoder says it has. Raises RunError for no encoder."""
    facts = read_facts(folder)
    sizes: dict[str, int] = {}
    for name, fact in SIZES.items():
        value, most = facts.get(fact), int(BY_NAME[name].high or 0)
        if type(value) is not int or not 1 <= value <= most:
            raise RunError(
                f"{Path(folder) / _FACTS}: found {fact} {_shown(value)}, expected 1 to {most}; "
                "copy the folder again"
            )
        sizes[name] = value
    return sizes


def with_sizes(given: Mapping[str, Any], init: str | Path) -> dict[str, Any]:
    """What is given with the sizes of the encoder that `init` names, where None is given.

    Raises ConfigError where another size is given, RunError for no encoder or a damaged one.
    """
    sizes, file = sizes_of(init), Path(init) / _WEIGHTS
    hidden, dimension = sizes.values()
    # Else a stranger's small file could ask for much memory.
    small = file.is_file() and file.stat().st_size < 2 * 8 * hidden * (hidden + dimension)
    if given.get("hidden_size") is None and small:
        raise _damaged(Path(init), _OTHER_SIZES)
    for name, there in sizes.items():
        if given.get(name) not in (None, there):
            what = "word vectors" if name == "vector_dimension" else "an LSTM"
            raise ConfigError(
                f"init = {str(init)!r}: found {what} of {there} numbers where {name} is "
                f"{given[name]}; expected the same: leave {name} out, or pretrain with yours"
            )
    return {**given, **sizes}


def resolve_sized(given: Mapping[str, Any], where: str = "parameters") -> Config:
    """`resolve`, with the sizes of the encoder to start from where none are given.

    Raises what `resolve` and `with_sizes` do.
    """
    from superconext.encoders import encoder_class

    config = resolve(given, where)
    if config.init and encoder_class(config.encoder).reads_pretrained:
        return resolve(with_sizes(given, config.init), where)
    return config


def start_from(encoder: BiLSTMEncoder, folder: str | Path) -> None:
    """Put a pretrained LSTM into the first layer of an encoder.

    Raises ConfigError where the sizes differ, RunError where the folder is damaged.
    """
    facts = read_facts(folder)
    sizes = {
        "hidden_size": encoder.sentence_size // 2,
        "dimension": encoder.embedding.dimension,
    }
    for name, here in sizes.items():
        if facts.get(name) != here:
            what = "word vectors" if name == "dimension" else "an LSTM"
            raise ConfigError(
                f"init = {str(folder)!r}: found {what} of {_shown(facts.get(name))} numbers where "
                f"the run has {here}; expected the same: set {name} to it, or pretrain with yours"
            )
    weights = read_weights(Path(folder), facts)
    own = _layers(encoder)
    shapes = [{name: value.shape for name, value in some.items()} for some in (own, weights)]
    if shapes[0] != shapes[1] or not all(map(torch.is_floating_point, weights.values())):
        raise _damaged(Path(folder), _OTHER_SIZES)
    if not all(bool(torch.isfinite(value).all()) for value in weights.values()):
        raise _damaged(Path(folder), "some of its numbers are not finite")
    with torch.no_grad():
        for name, value in own.items():
            value.copy_(weights[name])


def _layers(encoder: BiLSTMEncoder) -> dict[str, Tensor]:
    """The weights of the first layer by name."""
    return {
        f"{direction}.{name}": value
        for direction in ("forwards", "backwards")
        for name, value in getattr(encoder, direction)[0].named_parameters()
    }


def emoji_scores_of(config: Config) -> np.ndarray | None:
    """The scores by which the pretrained encoder that a run starts from tells emoji apart, float64
    `[K, d]`, of a mean of its states at unit length, or None: where there is none, it has none, or
    the run's vectors are no such mean.

    Raises RunError where the folder is damaged.
    """
    plain = config.pooling == "mean" and config.layers == config.members == 1
    return emoji_scores_in(config.init) if config.init and plain else None


def emoji_scores_in(folder: str | Path) -> np.ndarray | None:
    """Those of a pretrained encoder, see `emoji_scores_of`; None where it has none."""
    facts, path = read_facts(folder), Path(folder) / _EMOJI
    if facts.get("emoji_sha256") is None:
        return None
    try:
        if not path.is_file() or file_sha256(path) != facts["emoji_sha256"]:
            raise ValueError(f"it is not the one that {_FACTS} tells of")
        scores = read_arrays(path)["scores"].astype(np.float64)
        if scores.ndim != 2 or scores.shape[1] != 2 * facts.get("hidden_size", 0):
            raise ValueError(_OTHER_SIZES)
        if not np.isfinite(scores).all():
            raise ValueError("some of its numbers are not finite")
    except (LookupError, OSError, TypeError, ValueError) as error:
        raise RunError(f"{path}: cannot be used ({error}); copy the folder again") from None
    return scores


def read_weights(folder: Path, facts: dict[str, Any]) -> dict[str, Tensor]:
    """The tensors by name. Raises RunError if they are not the ones that `facts` tell of."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = folder / _WEIGHTS
    try:
        if not path.is_file():  # a pipe would be waited for
            raise ValueError("it is missing")
        if file_sha256(path) != facts.get("sha256"):
            raise ValueError(f"it is not the one that {_FACTS} tells of")
        return load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise _damaged(folder, str(error)) from None


def _check_files(folder: Path) -> None:
    home = os.path.realpath(folder)
    for path in (folder / name for name in _FILES):
        if not Path(os.path.realpath(path)).is_relative_to(home):
            raise RunError(
                f"{path}: a link that leads out of the folder; expected a file: copy the folder "
                "with its files (cp -rL) if you trust where it leads"
            )
        if path.exists() and not path.is_file():
            raise RunError(f"{path}: found no plain file, expected one; copy the folder again")


def _shown(value: Any) -> str:
    """For a message: it may be as long as the file."""
    return f"{value!r:.80}"


def _document(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_JSON + 1)
        if len(text) > _MOST_JSON:
            raise ValueError(f"longer than {_MOST_JSON >> 20} MiB")
        value = json.loads(text.decode("utf-8"))
    except RecursionError:
        raise RunError(f"{path}: nested too deep; copy the folder again") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: no JSON document ({error}); copy the folder again") from None
    if not isinstance(value, dict):
        raise RunError(f"{path}: found a JSON {type(value).__name__}, expected an object")
    return value


def _damaged(folder: Path, found: str) -> RunError:
    return RunError(f"{folder / _WEIGHTS}: cannot be used ({found}); copy the folder again")
