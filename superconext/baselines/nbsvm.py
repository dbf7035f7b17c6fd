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

from superconext.baselines.baseline import Baseline, Split, class_indices
from superconext.probe.base import FEWEST_DEV_ROWS
from superconext.probe.cross_validation import Loss, best_c, columns_of, error_rate
from superconext.probe.log_count_ratios import log_count_ratio

#: Weight of the SVM; the rest goes to naive Bayes, that is to weights all of one size.
BETA = 0.25

#: C of the SVM.
NBSVM_GRID: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


class NbSvm(Baseline):
    """Presence of words and pairs of words, times their log-count ratio; a linear SVM.

    C is the one with the highest accuracy in cross-validation within train, or on a large dev
    set, the smallest of equals. Where train has a class of one row it is chosen by dev accuracy,
    and with fewer than `FEWEST_DEV_ROWS` dev rows it is 1. Words are those of the other baselines.
    """

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> NbSvm:
        from sklearn.feature_extraction.text import CountVectorizer

        self.features = CountVectorizer(
            ngram_range=(1, 2), binary=True, token_pattern=r"(?u)\S+", dtype=np.float64
        )
        rows = self.features.fit_transform(train[0])
        self.names, labels, dev_labels = class_indices(train, dev)
        dev_rows = None if dev is None else self.features.transform(dev[0])

        def of_fold(fitted: np.ndarray, held: np.ndarray) -> Loss:
            columns = columns_of(rows[fitted])
            machines = _Machines(rows[fitted][:, columns], labels[fitted])
            return machines.errors(rows[held][:, columns], labels[held])

        machines = _Machines(rows, labels)

        def of_dev() -> Loss:
            assert dev_rows is not None and dev_labels is not None
            return machines.errors(dev_rows, dev_labels)

        c = best_c(NBSVM_GRID, labels, dev_labels, of_fold, of_dev, whole_grid=True)
        if c is None:
            few = dev_labels is None or len(dev_labels) < FEWEST_DEV_ROWS
            c = 1.0 if few else min(NBSVM_GRID, key=of_dev())
        self.weights, self.bias = machines.fit(c)
        self.settings = {"C": c}
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        rows = self.features.transform(texts)
        return [self.names[k] for k in _predicted(rows, self.weights, self.bias)]


class _Machines:
    """One NB-SVM for each class against the rest; two classes need one only.

    Args:
        rows: presence of words and pairs, sparse `[N, V]`.
        labels: class indices `[N]`.
    """

    def __init__(self, rows: Any, labels: np.ndarray) -> None:
        count = int(labels.max()) + 1
        self.masks = [labels == k for k in range(1 if count == 2 else 0, count)]
        self.ratios = [log_count_ratio(rows, mask) for mask in self.masks]
        self.scaled = [rows.multiply(ratio).tocsr() for ratio in self.ratios]

    def fit(self, c: float) -> tuple[np.ndarray, np.ndarray]:
        """Weights `[K, V]` of the presences, and biases `[K]`."""
        machines = [_machine(x, y, c) for x, y in zip(self.scaled, self.masks, strict=True)]
        weights = [w * r for (w, _), r in zip(machines, self.ratios, strict=True)]
        return np.array(weights), np.array([bias for _, bias in machines])

    def errors(self, held: Any, labels: np.ndarray) -> Loss:
        """The share of held-out rows that are predicted wrongly, by C."""
        return lambda c: error_rate(_predicted(held, *self.fit(c)), labels)


def _machine(rows: Any, inside: np.ndarray, c: float) -> tuple[np.ndarray, float]:
    """Interpolated weights `[V]` and the bias of one class against the rest."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm = LinearSVC(C=c, dual="auto", random_state=0).fit(rows, inside)
    weights = svm.coef_[0]
    return (1 - BETA) * np.abs(weights).mean() + BETA * weights, BETA * float(svm.intercept_[0])


def _predicted(rows: Any, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Class indices `[N]` predicted for rows `[N, V]`."""
    scores = rows @ weights.T + bias
    found: np.ndarray = scores[:, 0] > 0 if len(bias) == 1 else scores.argmax(axis=1)
    return found.astype(np.int64)
