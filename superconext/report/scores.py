"""Scores of a run as text: the model and its baselines, each class, and intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from superconext.report.table import render

#: What tables call the baselines; one of somebody else's has its own name.
BASELINE_NAMES = {
    "majority": "majority class",
    "tfidf_logreg": "TF-IDF + logistic regression",
    "vectors_logreg": "mean word vectors + logistic regression",
    "pretrained_logreg": "frozen pretrained encoder + logistic regression",
}

_COLUMNS = ("model", "accuracy", "macro F1", "weighted F1", "seconds")


def score_table(metrics: Mapping[str, Any]) -> str:
    """Scores on the reported split of baselines, native prediction and probe, as text.

    Last the probe together with the n-gram models, where the run predicts by that.
    """
    split = metrics["reported_split"]
    rows = [
        _row(BASELINE_NAMES.get(name, name), scores.get(split, {}), scores.get("seconds"))
        for name, scores in metrics.get("baselines", {}).items()
    ]
    if "native" in metrics:
        rows.append(_row("superconext, objective's own rule", metrics["native"][split], None))
    # Runs of versions before 0.2 have the probe's own figures under the split's name.
    probe = metrics.get("encoder_alone", metrics)[split]
    rows.append(_row("superconext, linear probe", probe, metrics.get("seconds")))
    if "combined" in metrics:
        rows.append(_row(f"superconext + {metrics['companion']}", metrics["combined"][split], None))
    note = "" if split == "test" else " (no test file: settings were chosen on these rows)"
    title = f"{split}, {metrics[split]['n']} rows{note}"
    return f"{title}\n{render(rows, _COLUMNS, fmt={'seconds': '.1f'})}"


def class_table(scores: Mapping[str, Any]) -> str:
    """Precision, recall and F1 of each class, as text."""
    rows = [{"class": name, **values} for name, values in scores["per_class"].items()]
    return render(rows, ("class", "precision", "recall", "f1", "support"))


def wilson(share: float, n: float, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's score interval of a share of `n` trials, by default at 95%.

    Source: E. B. Wilson (1927); unlike share +- z * sd it stays within [0, 1] and holds
    for small `n` and shares near 0 or 1.
    """
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def _row(name: str, scores: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
    return {
        "model": name,
        "accuracy": scores.get("accuracy"),
        "macro F1": scores.get("f1_macro"),
        "weighted F1": scores.get("f1_weighted"),
        "seconds": seconds,
    }
