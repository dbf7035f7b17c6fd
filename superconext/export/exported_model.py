"""What the exports of a run have in common: texts to labels without torch."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from superconext.core.texts import check_texts


class ExportedModel:
    """A folder that `superconext export --format onnx` or `static` wrote.

    Attributes:
        folder: where it is.
        classes: labels, as the columns of `predict_proba`.
        columns: those of the training file, as in `Model`.
        seen: None; an export goes without the hashes of the training texts.
    """

    folder: Path
    classes: list[str]
    seen = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, classes={reprlib.repr(self.classes)})"

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The most probable label of each text; "" for a blank one, as `superconext predict`."""
        texts = check_texts(texts, some=False)
        best = self.predict_proba(texts).argmax(axis=1)
        return [
            self.classes[k] if text.strip() else "" for text, k in zip(texts, best, strict=True)
        ]

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """Class probabilities float64 `[N, C]`, columns as `classes`."""
        return self.probabilities(texts)

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """The same by the name that the rest of the package calls it."""
        raise NotImplementedError
