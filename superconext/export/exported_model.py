"""What the exports of a run have in common: texts to labels, without torch."""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from superconext.core.blank import uniform_for_blank, zeros_for_blank
from superconext.core.errors import MissingExtraError, RunError, SuperConTextError, check_texts
from superconext.core.label_types import best_labels
from superconext.data.columns import Known


class ExportedModel:
    """A folder that `superconext export --format onnx` or `static` wrote.

    Attributes:
        folder: where it is.
        classes: labels as text, as the columns of `predict_proba`.
        classes_: the same `[C]` in the dtype that they were fitted in.
        columns: those of the training file, as in `Model`.
        indexer: texts to token ids; None for a static student, which reads all of a text.
        seen: None; an export goes without the hashes of the training texts.
        titles: as of a `Model`.
    """

    folder: Path
    classes: list[str]
    classes_: np.ndarray
    indexer: Any
    seen = None
    titles: ClassVar[dict[str, str]] = {"probe_title": "export"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, classes={reprlib.repr(self.classes)})"

    def estimator(self) -> Any:
        """Raises RunError: an export predicts alone."""
        raise RunError(
            f"{self.folder}: found an export, which has no estimator; expected the run that it was "
            "made from: load that"
        )

    @property
    def misread(self) -> str:
        """As of a `TextIndexer`."""
        return "" if self.indexer is None else str(self.indexer.misread)

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        """The most probable label of each text, `[N]`, in the dtype of `classes_`.

        A blank text gets the label "", as by `superconext predict`; where labels are numbers or
        bool, `classes_[0]`, with a warning.
        """
        texts = check_texts(texts, some=False)
        return best_labels(texts, self.predict_proba(texts), self.classes_)

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """Class probabilities float64 `[N, C]`, columns as `classes`; of a blank text all alike."""
        texts = check_texts(texts, some=False)
        return uniform_for_blank(texts, self.probabilities(texts))

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Sentence vectors float32 `[N, d]`, as the estimator's `transform`; zeros for a blank
        text."""
        texts = check_texts(texts, some=False)
        return zeros_for_blank(texts, self.features(texts))

    @property
    def known(self) -> Known:
        """What it knows of files to predict on."""
        return Known.of_model(self)

    def longer(self, texts: Sequence[str]) -> int:
        """How many texts have more tokens than the model reads, `indexer.max_length`."""
        indexer = self.indexer
        return 0 if indexer is None else int(indexer.cut(indexer.tokenizer.many(texts)))

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """What `predict_proba` gives for texts that are not blank. `Model` has a method of this
        name too, so that commands use a run and its export alike."""
        raise NotImplementedError

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """What `transform` gives for texts that are not blank; `Model` has such a method too."""
        raise NotImplementedError


def load_export(folder: Path, threads: int = 1) -> ExportedModel | None:
    """What `export --format onnx` or `static` made of a run; None for any other folder.

    Raises RunError for an export that is not whole.
    """
    if (folder / "static.json").is_file():
        from superconext.export.static_model import StaticModel

        return StaticModel(folder)
    if (folder / "model.onnx").is_file():
        from superconext.export.onnx_model import OnnxModel

        return OnnxModel(folder, threads)
    if (folder / "classify.py").is_file() and not (folder / "manifest.json").is_file():
        if (folder / "static.safetensors").is_file():
            raise not_whole(folder / "static.json")
        if (folder / "model.json").is_file():
            raise not_whole(folder / "model.onnx")
        raise not_whole(folder, "neither model.onnx nor static.json found")
    return None


def sealed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """An export's facts with the hash of them, by which a changed byte is noticed."""
    return {**facts, "sha256": _hash_of(facts)}


def check_seal(facts: Any, name: str) -> None:
    """Raise ValueError where the file of facts `name` is not what was written; earlier versions
    wrote no hash."""
    if facts.get("sha256", "") not in ("", _hash_of(facts)):
        raise ValueError(f"{name} is not what was written")


def _hash_of(facts: Mapping[str, Any]) -> str:
    read = json.loads(json.dumps({k: v for k, v in facts.items() if k != "sha256"}))
    text = json.dumps(read, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def checked_facts(facts: Any) -> tuple[list[str], Any]:
    """Classes and columns that an export's file of facts names. Raises ValueError where either is
    none that an export has, LookupError where it lacks them."""
    classes, columns = facts["classes"], facts.get("columns")
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise ValueError(f"classes {classes!r:.60}, no list of labels")
    if len(classes) < 2 or len({*classes}) < len(classes):
        raise ValueError(f"classes {classes!r:.60}, not two labels or more that differ")
    names = [columns.get("text"), columns.get("label")] if isinstance(columns, dict) else [columns]
    kinds = (str, int, type(None)) if isinstance(columns, dict) else type(None)
    if not all(isinstance(name, kinds) for name in names):
        raise ValueError(f"columns {columns!r:.60}, no names of columns")
    return classes, columns


def not_whole(path: Path | str, found: str = "missing") -> RunError:
    """The error of an export that lacks a file."""
    return RunError(f"{path}: {found}; expected a whole export: copy or export it again")


@contextmanager
def opening(folder: Path, title: str, form: str) -> Iterator[None]:
    """Turn what reading a damaged export raises into RunError; MissingExtraError stays.

    title: what its form is called. form: what `export --format` calls it.
    """
    try:
        yield
    except (MissingExtraError, PermissionError):
        raise
    except FileNotFoundError as error:
        raise not_whole(error.filename or folder) from None
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        SuperConTextError,
    ) as error:
        raise RunError(
            f"{folder}: not a readable {title} export ({error}); expected what superconext export "
            f"RUN --format {form} wrote: export it again"
        ) from None
