"""The two baselines everybody would otherwise use, fitted on the same rows."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from superconext.metrics import classification_metrics
from superconext.probe import GRID, dev_key

#: The probe's grid reaches far enough for standardised features; rows of TF-IDF have unit
#: length and want less regularisation.
TFIDF_GRID: tuple[float, ...] = tuple(c for c in GRID if c >= 0.1) + (300.0, 1000.0)

Split = tuple[Sequence[str], Sequence[str]]


def fit_baselines(train: Split, dev: Split | None, splits: dict[str, Split]) -> dict[str, Any]:
    """Metrics of each baseline on each split.

    majority: the commonest training label (the first in sorted order on ties).
    tfidf_logreg: word 1-2-grams and character 2-5-grams, sublinear TF-IDF, logistic
        regression, C chosen on dev as the probe's is.

    Args:
        train, dev: (texts, labels); dev may be None, then C is 1.
        splits: what to report on, by name.

    Returns:
        `{baseline: {split: metrics, ..., "seconds": ..}}`.
    """
    classes = sorted(set(train[1]))
    report: dict[str, Any] = {}
    counts = Counter(train[1])
    commonest = min(classes, key=lambda name: (-counts[name], name))
    report["majority"] = {
        name: classification_metrics(labels, [commonest] * len(labels), classes)
        for name, (_, labels) in splits.items()
    }
    report["majority"]["seconds"] = 0.0
    report["tfidf_logreg"] = _tfidf(train, dev, splits, classes)
    return report


def _tfidf(
    train: Split, dev: Split | None, splits: dict[str, Split], classes: list[str]
) -> dict[str, Any]:
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
    index = {name: k for k, name in enumerate(classes)}
    candidates = TFIDF_GRID if dev is not None and len(dev[1]) else (1.0,)
    best: tuple[tuple[float, float], Any] | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        dev_rows = features.transform(dev[0]) if dev is not None and len(dev[1]) else None
        for c in candidates:
            model = LogisticRegression(C=c, max_iter=1000).fit(rows, train[1])
            if dev_rows is None or dev is None:
                best = ((0.0, 0.0), model)
                break
            truth = np.array([index.get(label, -1) for label in dev[1]])
            key = dev_key(model.predict_proba(dev_rows), truth)
            if best is None or key > best[0]:
                best = (key, model)
    assert best is not None
    report: dict[str, Any] = {
        name: classification_metrics(
            labels, [str(x) for x in best[1].predict(features.transform(texts))], classes
        )
        for name, (texts, labels) in splits.items()
    }
    report["C"] = float(best[1].C)
    report["seconds"] = time.perf_counter() - started
    return report
