"""The two baselines everybody would otherwise use, fitted on the same rows."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.metrics import classification_metrics
from superconext.probe import GRID, dev_key

#: Rows of TF-IDF have unit length and want less regularisation than standardised features.
TFIDF_GRID: tuple[float, ...] = (*(c for c in GRID if c >= 0.1), 300.0, 1000.0)

Split = tuple[Sequence[str], Sequence[str]]


@dataclass(frozen=True)
class Baseline:
    """A fitted baseline: `predict` maps texts `[N]` to labels `[N]`."""

    name: str
    predict: Callable[[Sequence[str]], list[str]]
    settings: dict[str, float]
    seconds: float


def fit_majority(train: Split) -> Baseline:
    """Always the commonest training label (the first in sorted order on ties)."""
    counts = Counter(train[1])
    commonest = min(counts, key=lambda name: (-counts[name], name))
    return Baseline("majority", lambda texts: [commonest] * len(texts), {}, 0.0)


def fit_tfidf(train: Split, dev: Split | None) -> Baseline:
    """Sublinear TF-IDF of word 1-2-grams and character 2-5-grams, logistic regression.

    C is chosen on dev by the rule the probe's is; without dev it is 1.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_union

    started = time.perf_counter()
    features = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\S+"),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
    )
    rows = features.fit_transform(train[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if dev is None or not len(dev[1]):
            best = LogisticRegression(C=1.0, max_iter=1000).fit(rows, train[1])
        else:
            index = {name: k for k, name in enumerate(sorted(set(train[1])))}
            truth = np.array([index.get(label, -1) for label in dev[1]])
            dev_rows = features.transform(dev[0])
            candidates = [
                LogisticRegression(C=c, max_iter=1000).fit(rows, train[1]) for c in TFIDF_GRID
            ]
            # The first of equals, that is the strongest regularisation, wins.
            best = max(candidates, key=lambda m: dev_key(m.predict_proba(dev_rows), truth))

    def predict(texts: Sequence[str]) -> list[str]:
        return [str(label) for label in best.predict(features.transform(texts))]

    seconds = time.perf_counter() - started
    return Baseline("tfidf_logreg", predict, {"C": float(best.C)}, seconds)


def baseline_report(train: Split, dev: Split | None, splits: dict[str, Split]) -> dict[str, Any]:
    """Metrics of both baselines: `{baseline: {split: metrics, ..., "seconds": ..}}`.

    Args:
        train, dev: (texts, labels).
        splits: what to report on, by name.
    """
    classes = sorted(set(train[1]))
    report: dict[str, Any] = {}
    for baseline in (fit_majority(train), fit_tfidf(train, dev)):
        scores: dict[str, Any] = {
            name: classification_metrics(labels, baseline.predict(texts), classes)
            for name, (texts, labels) in splits.items()
        }
        report[baseline.name] = {
            **scores,
            **baseline.settings,
            "seconds": round(baseline.seconds, 2),
        }
    return report
