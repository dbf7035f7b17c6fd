"""Base class of the baselines, the majority class, and the baselines of a run.

A baseline is registered in `superconext.baselines.BASELINES` and named among the systems of a
comparison: `superconext compare TRAIN --objectives superloss,my_baseline`.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from superconext.baselines import BASELINES
from superconext.probe.metrics import classification_metrics, probabilities_needed

Split = tuple[Sequence[str], Sequence[str]]


class Baseline(ABC):
    """A text classifier; made without arguments, then fitted.

    seeded: whether another seed gives another model on the same rows; then a comparison fits it
        with every seed.
    settings: what `fit` chose, by name; part of the results.
    name, seconds: set by `fit_baseline`: of the registry, and the wall time of the fit.
    """

    seeded: ClassVar[bool] = False
    name: str = ""
    seconds: float = 0.0

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}

    @classmethod  # noqa: B027
    def check(cls) -> None:
        """Raise MissingExtraError where a package that is needed is not installed."""

    @abstractmethod
    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> Baseline:
        """Fit on the rows of `train`, choose settings on those of `dev`; returns self.

        Args:
            train, dev: (texts, labels) of N and of M rows; no dev rows, no choice.
        """

    @abstractmethod
    def predict(self, texts: Sequence[str]) -> list[str]:
        """The label of each of N texts."""

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray | None:
        """Class probabilities `[N, C]`, columns in the sorted order of the training labels; None
        where the baseline has none."""
        return None


def fit_baseline(name: str, train: Split, dev: Split | None, seed: int = 0) -> Baseline:
    """A fitted baseline by its name.

    Raises ConfigError for a name that is not registered, and what fitting raises.
    """
    baseline = BASELINES.get(name)()
    started = time.perf_counter()
    baseline.fit(train, dev, seed)
    baseline.name, baseline.seconds = name, time.perf_counter() - started
    return baseline


class Majority(Baseline):
    """Always the commonest training label (the first in sorted order on ties)."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> Majority:
        counts = Counter(train[1])
        self.label = min(counts, key=lambda name: (-counts[name], name))
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [self.label] * len(texts)


def baseline_report(train: Split, dev: Split | None, splits: dict[str, Split]) -> dict[str, Any]:
    """Metrics of the baselines of a run: `{baseline: {split: metrics, ..., "seconds": ..}}`.

    Args:
        train, dev: (texts, labels).
        splits: what to report on, by name.
    """
    classes = sorted(set(train[1]))
    needed = probabilities_needed()
    report: dict[str, Any] = {}
    for name in ("majority", "tfidf_logreg"):
        baseline = fit_baseline(name, train, dev)
        scores: dict[str, Any] = {}
        for split, (texts, labels) in splits.items():
            probabilities = baseline.predict_proba(texts) if needed else None
            predicted = baseline.predict(texts)
            scores[split] = classification_metrics(labels, predicted, classes, probabilities)
        report[name] = {**scores, **baseline.settings, "seconds": round(baseline.seconds, 2)}
    return report
