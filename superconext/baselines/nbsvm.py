"""NB-SVM: a linear SVM on n-grams weighted by how much oftener a class has them.

Source: Wang and Manning (2012), "Baselines and bigrams: simple, good sentiment and topic
classification". They have two classes; with more, each class is learned against all others
together. They interpolate the weights and say nothing of the bias. Left as it is, it
outweighs the shrunk weights where classes are of unequal size (54 instead of 61 percent on
a set of three), so here it shrinks with them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from superconext.baselines.baseline import Baseline, Split
from superconext.probe.log_count_ratios import log_count_ratio
from superconext.probe.logistic_regression import FEWEST_DEV_ROWS

#: Weight of the SVM; the rest goes to naive Bayes, that is to weights all of one size.
BETA = 0.25

#: C of the SVM.
NBSVM_GRID: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)


def fit_nbsvm(train: Split, dev: Split | None) -> Baseline:
    """Presence of words and pairs of words, times their log-count ratio; a linear SVM.

    C is the one with the highest dev accuracy, the smallest of equals; with fewer than
    `FEWEST_DEV_ROWS` dev rows it is 1. Words are those of the other baselines.
    """
    from sklearn.feature_extraction.text import CountVectorizer

    started = time.perf_counter()
    features = CountVectorizer(
        ngram_range=(1, 2), binary=True, token_pattern=r"(?u)\S+", dtype=np.float64
    )
    rows = features.fit_transform(train[0])
    names, truth = sorted(set(train[1])), np.array(train[1])
    # Of two classes one machine tells both.
    ours = [truth == name for name in (names[1:] if len(names) == 2 else names)]
    ratios = [log_count_ratio(rows, inside) for inside in ours]
    scaled = [rows.multiply(ratio).tocsr() for ratio in ratios]
    chosen = dev is not None and len(dev[1]) >= FEWEST_DEV_ROWS
    held = features.transform(dev[0]) if dev is not None and chosen else None
    best: tuple[float, float, np.ndarray, np.ndarray] | None = None
    for c in NBSVM_GRID if chosen else (1.0,):
        machines = [_machine(x, y, c) for x, y in zip(scaled, ours, strict=True)]
        weights = np.array([w * r for (w, _), r in zip(machines, ratios, strict=True)])
        bias = np.array([b for _, b in machines])
        accuracy = 0.0
        if held is not None and dev is not None:
            found = _labels(held @ weights.T + bias, names)
            accuracy = float(np.mean([a == b for a, b in zip(found, dev[1], strict=True)]))
        if best is None or accuracy > best[0]:
            best = accuracy, c, weights, bias
    assert best is not None
    _, c, weights, bias = best

    def predict(texts: Sequence[str]) -> list[str]:
        return _labels(features.transform(texts) @ weights.T + bias, names)

    seconds = time.perf_counter() - started
    return Baseline("nbsvm", predict, {"C": c}, seconds)


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
