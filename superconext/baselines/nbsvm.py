"""NB-SVM: a linear SVM on log-count ratios of n-grams (naive Bayes features).

Source: Wang and Manning (2012), "Baselines and bigrams: simple, good sentiment and topic
classification". They have two classes; with more, each class is learned against all others
together. They interpolate the weights and do not mention the bias. Unchanged, it
outweighs the shrunk weights where classes are of unequal size (54 instead of 61 percent on
a set of three), so here it shrinks with them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from superconext.baselines.baseline import Baseline, Split
from superconext.probe.base import FEWEST_DEV_ROWS
from superconext.probe.log_count_ratios import log_count_ratio

#: Weight of the SVM; the rest goes to naive Bayes, that is to weights all of one size.
BETA = 0.25

#: C of the SVM.
NBSVM_GRID: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class NbSvm(Baseline):
    """Presence of words and pairs of words, times their log-count ratio; a linear SVM.

    C is the one with the highest dev accuracy, the smallest of equals; with fewer than
    `FEWEST_DEV_ROWS` dev rows it is 1. Words are those of the other baselines.
    """

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> NbSvm:
        from sklearn.feature_extraction.text import CountVectorizer

        self.features = CountVectorizer(
            ngram_range=(1, 2), binary=True, token_pattern=r"(?u)\S+", dtype=np.float64
        )
        rows = self.features.fit_transform(train[0])
        self.names, truth = sorted(set(train[1])), np.array(train[1])
        # Two classes need one classifier only.
        names = self.names[1:] if len(self.names) == 2 else self.names
        masks = [truth == name for name in names]
        ratios = [log_count_ratio(rows, mask) for mask in masks]
        scaled = [rows.multiply(ratio).tocsr() for ratio in ratios]
        chosen = dev is not None and len(dev[1]) >= FEWEST_DEV_ROWS
        dev_rows = self.features.transform(dev[0]) if dev is not None and chosen else None
        best = -1.0
        for c in NBSVM_GRID if chosen else (1.0,):
            machines = [_machine(x, y, c) for x, y in zip(scaled, masks, strict=True)]
            weights = np.array([w * r for (w, _), r in zip(machines, ratios, strict=True)])
            bias = np.array([b for _, b in machines])
            accuracy = 0.0
            if dev_rows is not None and dev is not None:
                labels = _labels(dev_rows @ weights.T + bias, self.names)
                accuracy = float(np.mean([a == b for a, b in zip(labels, dev[1], strict=True)]))
            if accuracy > best:
                best, self.weights, self.bias = accuracy, weights, bias
                self.settings = {"C": c}
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return _labels(self.features.transform(texts) @ self.weights.T + self.bias, self.names)


def _machine(rows: Any, inside: np.ndarray, c: float) -> tuple[np.ndarray, float]:
    """Interpolated weights `[V]` and the bias of one class against the rest."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm = LinearSVC(C=c, dual="auto", random_state=0).fit(rows, inside)
    weights = svm.coef_[0]
    return (1 - BETA) * np.abs(weights).mean() + BETA * weights, BETA * float(svm.intercept_[0])


def _labels(scores: np.ndarray, names: Sequence[str]) -> list[str]:
    if scores.shape[1] == 1:
        return [names[int(score > 0)] for score in scores[:, 0]]
    return [names[k] for k in scores.argmax(axis=1)]
