"""The baselines everybody would otherwise use, fitted on the same rows.

Three more have files of their own: `nbsvm`, `fasttext_baseline` and `ngrams_baseline`.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from superconext.baselines.baseline import Baseline, Split
from superconext.baselines.fasttext import fit_fasttext
from superconext.baselines.nbsvm import fit_nbsvm
from superconext.baselines.ngrams import fit_ngrams
from superconext.probe.logistic_regression import FEWEST_DEV_ROWS
from superconext.probe.metrics import classification_metrics
from superconext.probe.tfidf import fit_lexical, tfidf

#: C of the linear SVM; beyond 10 the training rows are fitted to the last one.
SVM_GRID: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def fit_baseline(name: str, train: Split, dev: Split | None, seed: int = 0) -> Baseline:
    """Fit a baseline by its name; `seed` matters to those that are random.

    Raises KeyError for a name that is none, and what fitting raises.
    """
    if name == "fasttext":
        return fit_fasttext(train, dev, seed)
    fitters: dict[str, Callable[[Split, Split | None], Baseline]] = {
        "majority": lambda train, dev: fit_majority(train),
        "tfidf_logreg": fit_tfidf,
        "tfidf_svm": fit_tfidf_svm,
        "nbsvm": fit_nbsvm,
        "ngrams": fit_ngrams,
    }
    return fitters[name](train, dev)


def fit_majority(train: Split) -> Baseline:
    """Always the commonest training label (the first in sorted order on ties)."""
    counts = Counter(train[1])
    commonest = min(counts, key=lambda name: (-counts[name], name))
    return Baseline("majority", lambda texts: [commonest] * len(texts), {}, 0.0)


def fit_tfidf(train: Split, dev: Split | None) -> Baseline:
    """Sublinear TF-IDF of word 1-2-grams and character 2-5-grams, logistic regression.

    C is chosen on dev by the rule the probe's is; with fewer than
    `FEWEST_DEV_ROWS` dev rows it is 1.
    """
    started = time.perf_counter()
    names = sorted(set(train[1]))
    index = {name: k for k, name in enumerate(names)}
    held, truth = dev or ((), ())
    model = fit_lexical(
        train[0],
        np.array([index[label] for label in train[1]]),
        held,
        np.array([index.get(label, -1) for label in truth]),
    )

    def predict(texts: Sequence[str]) -> list[str]:
        return [names[k] for k in model.decision(texts).argmax(axis=1)]

    seconds = time.perf_counter() - started
    return Baseline("tfidf_logreg", predict, {"C": model.c}, seconds)


def fit_tfidf_svm(train: Split, dev: Split | None) -> Baseline:
    """A linear support vector machine on the features of `fit_tfidf`.

    C is the one with the highest dev accuracy, the smallest of equals; with fewer than
    `FEWEST_DEV_ROWS` dev rows it is 1.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    started = time.perf_counter()
    features = tfidf()
    rows = features.fit_transform(train[0])
    chosen = dev is not None and len(dev[1]) >= FEWEST_DEV_ROWS
    candidates = [LinearSVC(C=c, dual="auto", random_state=0) for c in SVM_GRID if chosen or c == 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for candidate in candidates:
            candidate.fit(rows, train[1])
    best = candidates[0]
    if dev is not None and len(candidates) > 1:
        dev_rows, truth = features.transform(dev[0]), np.array(dev[1])
        best = max(candidates, key=lambda m: float((m.predict(dev_rows) == truth).mean()))

    def predict(texts: Sequence[str]) -> list[str]:
        return [str(label) for label in best.predict(features.transform(texts))]

    seconds = time.perf_counter() - started
    return Baseline("tfidf_svm", predict, {"C": float(best.C)}, seconds)


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
