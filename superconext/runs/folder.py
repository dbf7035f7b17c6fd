"""The run folder: a trained model as plain files anyone can open.

| file | what it holds |
|---|---|
| `manifest.json` | command, data hashes and class counts, vectors, seed, versions, times |
| `config.toml` | every parameter |
| `vocabulary.json` | classes, training words, words of the reserve |
| `encoder.safetensors` | encoders and objectives of all members |
| `vectors.safetensors` | reserve vectors and subword buckets, half precision |
| `probe.safetensors` | the logistic regression |
| `history.csv`, `metrics.json`, `predictions.tsv`, `figures/`, `README.md` | what came out |

Nothing is pickled and nothing is ever unpickled.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from superconext._version import __version__
from superconext.config import Config, resolve
from superconext.config_file import read_config, write_config
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.embedding import WordEmbedding
from superconext.encoders.projection import projected_size
from superconext.errors import RunError
from superconext.files import beside, file_sha256, write_json
from superconext.model import Model
from superconext.objectives.base import Shape
from superconext.objectives.catalogue import objective_class
from superconext.probe import Probe
from superconext.text.ngrams import NgramVocabulary
from superconext.text.tokenize import Tokenizer
from superconext.text.vocabulary import Vocabulary
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors

FORMAT = 1

_MODEL_FILES = (
    "config.toml",
    "vocabulary.json",
    "encoder.safetensors",
    "vectors.safetensors",
    "probe.safetensors",
)


def save_model(model: Model, folder: Path) -> dict[str, str]:
    """Write the model's files into an existing folder; returns their SHA-256 by name."""
    from safetensors.numpy import save_file as save_arrays
    from safetensors.torch import save_file as save_tensors

    write_config(folder / "config.toml", model.config)
    reserve = model.reserve
    words: dict[str, Any] = {
        "classes": model.classes,
        "tokenizer": model.tokenizer.to_dict(),
        "vocabulary": model.vocabulary.to_json(),
        "ngrams": None if model.ngrams is None else model.ngrams.to_json(),
        "reserve": {"name": reserve.name, "sha256": reserve.sha256, "words": list(reserve.words)},
    }
    if reserve.subwords is not None:
        words["reserve"] |= {"min_n": reserve.subwords.min_n, "max_n": reserve.subwords.max_n}
    write_json(folder / "vocabulary.json", words)

    tensors = {}
    for kind, modules in (("encoder", model.encoders), ("objective", model.objectives)):
        for member, module in enumerate(modules):
            for name, value in module.state_dict().items():
                tensors[f"{kind}.{member}.{name}"] = value.detach().cpu().contiguous()
    with beside(folder / "encoder.safetensors") as temporary:
        save_tensors(tensors, temporary)

    arrays = {"matrix": np.ascontiguousarray(reserve.matrix, dtype=np.float16)}
    if reserve.subwords is not None:
        arrays["buckets"] = np.ascontiguousarray(reserve.subwords.buckets, dtype=np.float16)
    with beside(folder / "vectors.safetensors") as temporary:
        save_arrays(arrays, temporary)
    probe = model.probe
    with beside(folder / "probe.safetensors") as temporary:
        save_arrays(
            {
                "mean": probe.mean,
                "scale": probe.scale,
                "coef": np.ascontiguousarray(probe.coef),
                "intercept": probe.intercept,
                "c": np.array([probe.c]),
            },
            temporary,
        )
    return {name: file_sha256(folder / name) for name in _MODEL_FILES}


def save_run(model: Model, folder: Path) -> None:
    """Write a model alone, without figures of merit, as a new run folder.

    Raises RunError if the folder exists.
    """
    if folder.exists():
        raise RunError(f"{folder} exists already; expected a new folder: choose another")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as beside:
        fresh = Path(beside) / "run"
        fresh.mkdir()
        hashes = save_model(model, fresh)
        facts = {"status": "complete", "objective": model.config.objective}
        write_manifest(fresh, {"version": __version__, **facts}, hashes)
        fresh.rename(folder)


def write_manifest(folder: Path, manifest: dict[str, Any], hashes: dict[str, str]) -> None:
    """Write `manifest.json` last: a folder that has one is whole."""
    write_json(folder / "manifest.json", {"format": FORMAT, **manifest, "files": hashes})


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run folder.

    Raises RunError when the folder is missing, is no run, or is of a newer format.
    """
    path = folder / "manifest.json"
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; expected a run made by superconext train")
    if not path.is_file():
        raise RunError(
            f"{folder}: no manifest.json found; expected a finished run: "
            f"train again, or go on with superconext train --resume {folder}"
        )
    manifest = _read_json(path)
    if not isinstance(manifest.get("format"), int):
        raise RunError(f"{path}: no format number found; expected a run folder's manifest")
    if manifest["format"] > FORMAT:
        raise RunError(
            f"{path}: run format {manifest['format']} found, this version reads up to {FORMAT}; "
            "install a newer superconext"
        )
    return manifest


def load_model(folder: Path | str) -> Model:
    """The model of a run folder, on the CPU.

    Raises RunError when a file is missing, changed since it was written, or damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file as load_arrays
    from safetensors.torch import load_file as load_tensors

    folder = Path(folder)
    hashes = read_manifest(folder).get("files")
    if not isinstance(hashes, dict):
        raise RunError(
            f"{folder / 'manifest.json'}: no list of files with their hashes found; expected the "
            "manifest as it was written: copy the run again"
        )
    for name in _MODEL_FILES:
        path = folder / name
        if not path.is_file():
            raise RunError(f"{path}: missing; expected a whole run folder: copy it again")
        if hashes.get(name) != file_sha256(path):
            raise RunError(
                f"{path}: its content is not what the manifest lists; expected the file as it was "
                "written: copy the run again"
            )
    try:
        config = resolve({**read_config(folder / "config.toml"), "device": "cpu"})
        words = _read_json(folder / "vocabulary.json")
        arrays = load_arrays(folder / "vectors.safetensors")
        tensors = load_tensors(folder / "encoder.safetensors")
        probe = load_arrays(folder / "probe.safetensors")
        model = _assemble(config, words, arrays, tensors, probe)
    except (
        AttributeError,
        LookupError,
        RuntimeError,
        SafetensorError,
        TypeError,
        ValueError,
    ) as error:
        raise RunError(
            f"{folder}: the files do not fit together ({error}); copy the run again"
        ) from None
    return model


def _assemble(
    config: Config,
    words: dict[str, Any],
    arrays: dict[str, np.ndarray],
    tensors: dict[str, torch.Tensor],
    probe: dict[str, np.ndarray],
) -> Model:
    classes = [str(name) for name in words["classes"]]
    ngrams = None if words["ngrams"] is None else NgramVocabulary.from_json(words["ngrams"])
    encoders, objectives = [], []
    members = 1 + max(int(name.split(".")[1]) for name in tensors)
    kind = objective_class(config.objective)
    projection = config.projection if kind.uses_projection else "identity"
    for member in range(members):
        table = tensors[f"encoder.{member}.embedding.words"]
        encoder = BiLSTMEncoder(
            WordEmbedding(table, config.tune_vectors, 0 if ngrams is None else len(ngrams)),
            hidden_size=config.hidden_size,
            layers=config.layers,
            dropout=config.dropout,
            pooling=config.pooling,
        )
        width = projected_size(projection, encoder.sentence_size, config.projection_size)
        objective = kind.build(config, Shape(len(classes), encoder.sentence_size, width))
        for prefix, module in (
            (f"encoder.{member}.", encoder),
            (f"objective.{member}.", objective),
        ):
            module.load_state_dict(
                {n[len(prefix) :]: t for n, t in tensors.items() if n.startswith(prefix)}
            )
        encoders.append(encoder.eval())
        objectives.append(objective.eval())
    return Model(
        config,
        classes,
        Tokenizer.from_dict(words["tokenizer"]),
        Vocabulary.from_json(words["vocabulary"]),
        _reserve(words["reserve"], arrays),
        ngrams,
        list(encoders),
        list(objectives),
        Probe(
            probe["mean"], probe["scale"], probe["coef"], probe["intercept"], float(probe["c"][0])
        ),
    )


def _reserve(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> WordVectors:
    subwords = None
    if "buckets" in arrays:
        subwords = SubwordTable(arrays["buckets"], facts["min_n"], facts["max_n"])
    return WordVectors(
        facts["words"], arrays["matrix"], subwords, name=facts["name"], sha256=facts["sha256"]
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: not a JSON document ({error}); copy the run again") from None
    if not isinstance(value, dict):
        raise RunError(f"{path}: found a JSON {type(value).__name__}, expected an object")
    return value
