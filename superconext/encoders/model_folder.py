"""Files of a pretrained transformer, and the model built from them.

Nothing in them is run or unpickled: weights are read from safetensors alone, and what a
`config.json` says of code to load is left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from superconext.core.errors import ConfigError, MissingExtraError, SuperConTextError
from superconext.core.files import file_sha256
from superconext.encoders.base import check_affordable
from superconext.encoders.subword_indexer import tokenizer_of

#: What is downloaded of a model on the Hub.
_FILES = ("config.json", "model*.safetensors*", "tokenizer*", "vocab*", "merges.txt", "*.model")
_POOLING = "1_Pooling/config.json"

#: What sentence-transformers calls our poolings.
POOLINGS = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}

#: Files that a tokenizer without a `tokenizer.json` is made of.
_VOCABULARIES = ("vocab*", "*.model", "*.vocab", "*.spm", "merges.txt")

#: Kinds of encoders that cannot be used, and why.
_REFUSED = {"funnel": "it shortens a text by the longest one beside it"}

#: Entries of a `config.json` that name code, kernels or another form of the weights.
_LEFT_OUT = ("auto_map", "attn_implementation", "quantization", "experts_implementation")
_LEFT_OUT_NAMES = ("_name_or_path", "_commit_hash", "transformers_version")

#: Parts of the base model that no sentence vector needs.
_UNUSED = "pooler"

_MOST_JSON = 1 << 26


@dataclass(frozen=True)
class ModelFolder:
    """The files of a model: name as it was given, folder, and revision (a commit of the Hub)."""

    name: str
    folder: Path
    revision: str | None = None

    @classmethod
    def find(cls, name: str, revision: str = "", download: bool = True) -> ModelFolder:
        """The model of a folder, or of a name on the Hub, whose files are then downloaded into the
        cache of huggingface_hub; without `download` they have to be there.

        Raises ConfigError where there is none.
        """
        if Path(name).is_dir():
            if revision:
                raise ConfigError(
                    f"options: revision = {revision!r} with model = {name!r}, which is a folder; "
                    "expected a name on the Hub: leave revision out"
                )
            return cls(name, Path(name))
        if not all(name.split("/")) or name.count("/") > 1 or name.startswith((".", "~")):
            raise ConfigError(
                f"model = {name!r}: no such folder; expected one, or a name on the Hub such as "
                "sentence-transformers/all-MiniLM-L6-v2: check the path"
            )
        folder = _downloaded(name, revision, download)
        return cls(name, folder, folder.name)

    def architecture(self) -> dict[str, Any]:
        """The model's `config.json`, without what names code. Raises ConfigError."""
        with self._refused("its config.json"):
            entries = _json_object(self.folder / "config.json")
            return {
                key: value
                for key, value in entries.items()
                if key not in _LEFT_OUT_NAMES and not any(part in key for part in _LEFT_OUT)
            }

    def tensors(self) -> dict[str, Tensor]:
        """The weights by name. Raises ConfigError where they are no safetensors."""
        from safetensors.torch import load_file

        with self._refused("its weights"):
            tensors: dict[str, Tensor] = {}
            for path in self._weights():
                tensors |= load_file(path)
            return tensors

    def weights(self) -> int:
        """How many tensors there are. Raises ConfigError where they are no safetensors."""
        from safetensors import safe_open

        with self._refused("its weights"):
            count = 0
            for path in self._weights():
                with safe_open(path, "pt") as file:
                    count += len(file.keys())
            return count

    def subwords(self) -> Any:
        """The model's tokenizer, a `tokenizers.Tokenizer`. Raises ConfigError."""
        with self._refused("its tokenizer"):
            path = self.folder / "tokenizer.json"
            if path.is_file():
                return tokenizer_of(_text(path))
            transformers = import_transformers()
            # Without one its library makes a tokenizer that knows no word.
            if not any(next(self.folder.glob(pattern), None) for pattern in _VOCABULARIES):
                raise ValueError(
                    "found no tokenizer.json and no vocabulary in it, expected one: copy the "
                    "tokenizer's files too, or save it there with save_pretrained"
                )
            made = transformers.AutoTokenizer.from_pretrained(
                str(self.folder), local_files_only=True, trust_remote_code=False
            )
            return tokenizer_of(made.backend_tokenizer.to_str())

    def pooling(self) -> str | None:
        """How sentence-transformers pools its states, in our words or its own; None where the
        folder does not say."""
        with self._refused(f"its {_POOLING}"):
            path = self.folder / _POOLING
            entries = _json_object(path) if path.is_file() else {}
        modes = [
            key for key, on in entries.items() if key.startswith("pooling_mode_") and on is True
        ]
        own = ", ".join(key.removeprefix("pooling_mode_") for key in modes)
        return next((name for name, its in POOLINGS.items() if its == own), own) or None

    def sha256(self) -> str:
        """Hash of the weights and of `config.json`."""
        with self._refused("its weights"):
            paths = [self.folder / "config.json", *self._weights()]
            hashes = [_sha256(path, path.stat().st_mtime_ns) for path in paths]
        return hashlib.sha256(" ".join(hashes).encode()).hexdigest()

    def _weights(self) -> list[Path]:
        index = self.folder / "model.safetensors.index.json"
        names = ["model.safetensors"]
        if index.is_file():
            names = sorted(set(_json_object(index)["weight_map"].values()))
        paths = [self.folder / name for name in names]
        for path in paths:
            if path.name != path.relative_to(self.folder).as_posix() or not path.is_file():
                raise ValueError(
                    f"found no {path.name} in it, expected weights as safetensors: convert others "
                    "with save_pretrained of the library transformers"
                )
        return paths

    @contextmanager
    def _refused(self, what: str) -> Iterator[None]:
        """Turn whatever reading a stranger's files raises into one line."""
        try:
            yield
        except SuperConTextError:
            raise
        except Exception as error:
            reason = " ".join(str(error).split())[:300]
            raise ConfigError(
                f"model = {self.name!r}: {what} cannot be used ({type(error).__name__}: {reason}); "
                "expected the files of a pretrained encoder: choose another"
            ) from None


def transformer_of(architecture: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> nn.Module:
    """The base model of an architecture with these weights, in evaluation mode.

    Weights may be of a model with a head, whose own are left out. Raises ValueError, LookupError,
    RuntimeError or TypeError where the weights are not the architecture's, before it takes more
    memory than they do.
    """
    shell = shell_of(architecture, len(tensors))
    config: Any = shell.config
    check_affordable(shell, tensors)
    model, wrong = _with_weights(type(shell), config, tensors)
    if wrong:
        raise ValueError(f"weights that are missing or of other sizes, such as {wrong[:1]}")
    model = _without_unused(model)
    if model.get_input_embeddings() is None or not hasattr(config, "hidden_size"):
        raise ValueError(f"{config.model_type} reads no text")
    return model.eval()  # type: ignore[no-any-return]


def shell_of(architecture: Mapping[str, Any], tensors: int) -> nn.Module:
    """The base model of an architecture without numbers. tensors: how many its weights are.

    Raises ValueError, LookupError, RuntimeError or TypeError where there is none.
    """
    transformers = import_transformers()
    _check_counts(architecture, tensors)
    config = transformers.AutoConfig.for_model(**architecture)
    if config.is_encoder_decoder:
        raise ValueError(f"{config.model_type} is no encoder alone")
    if config.model_type in _REFUSED:
        raise ValueError(f"{config.model_type}: {_REFUSED[config.model_type]}")
    with torch.device("meta"):
        shell: nn.Module = _without_unused(transformers.AutoModel.from_config(config))
    return shell


def language_head(
    architecture: Mapping[str, Any], tensors: Mapping[str, Tensor], words: nn.Embedding
) -> nn.Module | None:
    """The head that guesses hidden words: of `inputs_embeds`, states `[1, n, d]`, it gives the
    `logits` `[1, n, V]`. None where the weights have none. It is not trained, but for `words`, the
    input vectors that most models use for the output too.
    """
    transformers = import_transformers()
    config = transformers.AutoConfig.for_model(**architecture)
    kind = transformers.MODEL_FOR_MASKED_LM_MAPPING.get(type(config), None)
    model, wrong = _with_weights(kind, config, tensors) if kind else (None, [])
    if model is None or wrong:
        return None
    setattr(model, model.base_model_prefix, _Given(words))
    model.requires_grad_(False)
    output = model.get_output_embeddings()
    if config.tie_word_embeddings and output.weight.shape == words.weight.shape:
        output.weight = words.weight
    return model.eval()  # type: ignore[no-any-return]


class _Given(nn.Module):
    """Stands for a base model; what it is given are its states. Some heads read its `words`."""

    def __init__(self, words: nn.Embedding) -> None:
        super().__init__()
        self.embeddings = SimpleNamespace(word_embeddings=words)  # no module, whose weights freeze

    def forward(self, *_: Any, inputs_embeds: Tensor, **__: Any) -> Any:
        return import_transformers().modeling_outputs.BaseModelOutput(inputs_embeds)


def _with_weights(kind: Any, config: Any, tensors: Mapping[str, Tensor]) -> tuple[Any, list[str]]:
    """A model of a class, and names of its weights that are missing or of other sizes."""
    given = {"config": config, "state_dict": dict(tensors), "dtype": torch.float32}
    model, report = kind.from_pretrained(None, **given, output_loading_info=True)
    missing = [name for name in report["missing_keys"] if not name.startswith(_UNUSED)]
    return model, sorted([*missing, *map(str, report["mismatched_keys"])])


def _without_unused(model: Any) -> Any:
    if getattr(model, _UNUSED, None) is not None:
        setattr(model, _UNUSED, None)
    return model


def width_of(architecture: Mapping[str, Any]) -> int:
    """Size of the token states. Raises ConfigError where there is none."""
    try:
        return int(import_transformers().AutoConfig.for_model(**architecture).hidden_size)
    except SuperConTextError:
        raise
    except Exception as error:  # its library has errors of its own
        raise ConfigError(
            f"model: its config.json cannot be used ({' '.join(str(error).split())[:300]}); "
            "expected that of a pretrained encoder: choose another"
        ) from None


def import_transformers() -> Any:
    """The library, silent. Raises MissingExtraError without it."""
    try:
        import transformers
    except ImportError:
        raise MissingExtraError("The encoder transformer", "transformers") from None
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def import_peft() -> Any:
    """The library of adapters. Raises MissingExtraError without it."""
    try:
        import peft
    except ImportError:
        raise MissingExtraError("lora", "peft") from None
    return peft


def _check_counts(architecture: Mapping[str, Any], tensors: int) -> None:
    """Raise ValueError for more parts than there can be: making them would not end."""
    for name, value in architecture.items():
        if not isinstance(value, int) or value <= max(tensors, 1024):
            continue
        if any(part in name for part in ("num_", "layer", "groups", "blocks")):
            raise ValueError(f"config.json asks for {name} = {value}, the weights have {tensors}")


#: Why a model cannot be had, by the errors of the Hub's library and those that they extend; `{}`
#: stands for what the error says itself.
_REASONS = {
    "GatedRepoError": "its owner gives it on request: ask on its page, then hf auth login",
    "RepositoryNotFoundError": "the Hub has no such model, or it is private",
    "RevisionNotFoundError": "the Hub has no such revision of it",
    "HFValidationError": "no model on the Hub can have such a name",
    "LocalEntryNotFoundError": "it is not in the cache, and the Hub cannot be reached",
    "OfflineModeIsEnabled": "it is not in the cache, and HF_HUB_OFFLINE forbids to download it",
    "HfHubHTTPError": "the Hub answered with an error ({})",
    **dict.fromkeys(
        ("ConnectionError", "TimeoutError", "HTTPError", "RequestException"),
        "the Hub cannot be reached ({})",
    ),
    "OSError": "it cannot be written ({})",
    "Exception": "the Hub's library gave up ({})",
}


def _downloaded(name: str, revision: str, download: bool) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise MissingExtraError("A model of the Hub", "transformers") from None
    try:
        return Path(
            snapshot_download(
                name,
                revision=revision or None,
                allow_patterns=[*_FILES, _POOLING],
                local_files_only=not download,
            )
        )
    except Exception as error:  # of the network, of the Hub, of the disk
        cause: BaseException = error
        if type(error).__name__ == "LocalEntryNotFoundError":  # after what the Hub answered
            cause = error.__cause__ or error
        kinds = (kind.__name__ for kind in type(cause).mro())
        why = next(_REASONS[kind] for kind in kinds if kind in _REASONS)
        said = f"{type(cause).__name__}: {' '.join(str(cause).split())[:200]}"
        mend = "try again, or give a folder that has it" if "{}" in why else "check the name"
        raise ConfigError(
            f"model = {name!r}: no such folder, and {why.format(said)}; expected a folder, or a "
            f"name on the Hub such as sentence-transformers/all-MiniLM-L6-v2: {mend}"
        ) from None


def _json_object(path: Path) -> dict[str, Any]:
    value = json.loads(_text(path))
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} is no JSON object")
    return value


def _text(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"found no {path.name} in it")
    if path.stat().st_size > _MOST_JSON:
        raise ValueError(f"{path.name} is longer than {_MOST_JSON >> 20} MiB")
    return path.read_text(encoding="utf-8")


@lru_cache(maxsize=64)
def _sha256(path: Path, changed: int) -> str:
    return file_sha256(path)
