"""MTEB's evaluation of frozen vectors: a logistic regression with a fixed C on a few rows.

MTEB's classification tasks fit scikit-learn's logistic regression (C = 1, at most 100 iterations)
on the vectors as they are, without dev rows, on some rows of each class. The rows are drawn by
`experiments.subsampling` (`mteb8`); the vectors are those of the controls.

Source: Muennighoff et al. (2023), "MTEB: Massive text embedding benchmark", and its code.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from superconext.baselines.baseline import Baseline, Split
from superconext.fitting.controls import (
    PretrainedLogisticRegression,
    VectorsLogisticRegression,
    frozen_encoder,
)

#: Of the regression.
ITERATIONS, SEED = 100, 42


def fit_benchmark(features: np.ndarray, labels: Sequence[str]) -> Any:
    """MTEB's classifier on features `[N, d]`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=ITERATIONS, random_state=SEED)
        return model.fit(features, labels)


class VectorsBenchmark(VectorsLogisticRegression):
    """MTEB's classifier on the mean of the word vectors that the run starts from."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> VectorsBenchmark:
        self.model = fit_benchmark(self._features(train[0]), train[1])
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [str(label) for label in self.model.predict(self._features(texts))]

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        shares: np.ndarray = self.model.predict_proba(self._features(texts))
        return shares

    out_of_fold = Baseline.out_of_fold


class PretrainedBenchmark(PretrainedLogisticRegression):
    """MTEB's classifier on the mean token states of the pretrained encoder, frozen."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> PretrainedBenchmark:
        assert self.run is not None
        self.encoder = frozen_encoder(self.run, "mean")
        self.model = fit_benchmark(self._features(train[0]), train[1])
        return self

    predict = VectorsBenchmark.predict
    predict_proba = VectorsBenchmark.predict_proba
    out_of_fold = Baseline.out_of_fold
