"""Prediction mixin: labels, probabilities and scores of a fitted classifier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from superconext.estimator.validation import check_texts

if TYPE_CHECKING:
    from superconext.fitting.model import Model


class PredictMixin:
    """Predicts with a fitted `_model()` and `classes_`; nothing here needs scikit-learn."""

    classes_: np.ndarray

    def predict(self, X: Iterable[str]) -> np.ndarray:
        """The most probable label of each text, `[N]`."""
        shares = self.predict_proba(X)
        best: np.ndarray = self.classes_[shares.argmax(axis=1)]
        return best

    def predict_proba(self, X: Iterable[str]) -> np.ndarray:
        """Class probabilities `[N, C]`, columns as `classes_`."""
        return self._model().probabilities(check_texts(X))

    def decision_function(self, X: Iterable[str]) -> np.ndarray:
        """Scores `[N, C]`, or `[N]` for two classes (positive for `classes_[1]`).

        Those of the probe; with an ensemble, logarithms of the probabilities.
        """
        scores = self._model().decision(check_texts(X))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _model(self) -> Model:
        raise NotImplementedError
