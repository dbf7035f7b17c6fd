"""Figures of merit: how right the predictions are, and whether the encoder collapsed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def classification_metrics(
    truth: Sequence[str], predicted: Sequence[str], classes: Sequence[str]
) -> dict[str, Any]:
    """Accuracy and F1, fractions in [0, 1], over `[N]` true and predicted labels.

    `classes` are the ones the model knows; a true label outside them counts as wrong and
    has its own line in `per_class`. Means of F1 are over the classes that occur in either
    `truth` or `predicted`, as scikit-learn's are.
    """
    from sklearn.metrics import accuracy_score, f1_score, precision_recall_fscore_support

    if not len(truth):
        return {"n": 0}
    names = list(classes) + sorted(set(truth) - set(classes))
    columns = precision_recall_fscore_support(truth, predicted, labels=names, zero_division=0.0)
    return {
        "n": len(truth),
        "accuracy": float(accuracy_score(truth, predicted)),
        "f1_macro": float(f1_score(truth, predicted, average="macro", zero_division=0.0)),
        "f1_weighted": float(f1_score(truth, predicted, average="weighted", zero_division=0.0)),
        "per_class": {
            name: {
                "precision": float(precision),
                "recall": float(recall),
                "f1": float(f1),
                "support": int(support),
            }
            for name, precision, recall, f1, support in zip(names, *columns, strict=True)
        },
    }


def collapse_report(features: np.ndarray) -> dict[str, Any]:
    """Whether sentence vectors `[N, d]` still tell sentences apart.

    effective_rank: exp of the entropy of the normalised singular values (Roy and
        Vetterli, 2007): about how many directions the vectors use, at most d.
    mean_cosine: mean cosine over pairs of different rows; 1 means one point.
    collapsed: mean_cosine above 0.95, or vectors without any spread.
    """
    rows = features.astype(np.float64)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / np.where(norms > 0, norms, 1.0)
    count = len(unit)
    total = float(np.square(unit.sum(axis=0)).sum()) - float(np.square(unit).sum())
    mean_cosine = total / (count * (count - 1)) if count > 1 else 1.0
    values = np.linalg.svd(rows - rows.mean(axis=0), compute_uv=False)
    spread = float(values.sum())
    if spread <= 1e-6 * max(float(np.abs(rows).max()), 1e-12) * np.sqrt(count):
        rank = 1.0
        collapsed = True
    else:
        shares = values[values > 0] / spread
        rank = float(np.exp(-(shares * np.log(shares)).sum()))
        collapsed = mean_cosine > 0.95
    return {
        "effective_rank": rank,
        "mean_cosine": mean_cosine,
        "dimensions": int(features.shape[1]),
        "collapsed": bool(collapsed),
    }


def collapse_warning(report: dict[str, Any]) -> str | None:
    """What to tell a newcomer about a collapsed encoder, or None if it is well."""
    if not report["collapsed"]:
        return None
    return (
        "the encoder maps nearly every sentence to the same point "
        f"(mean cosine {report['mean_cosine']:.2f}, {report['effective_rank']:.1f} of "
        f"{report['dimensions']} directions in use), so classes cannot be told apart; "
        "try a lower learning_rate, a higher temperature or more epochs"
    )
