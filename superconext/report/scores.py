"""The table a run ends with: the model beside what one would otherwise have used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from superconext.report.table import render

_NAMES = {"majority": "majority class", "tfidf_logreg": "TF-IDF + logistic regression"}
_COLUMNS = ("model", "accuracy", "macro F1", "weighted F1", "seconds")


def score_table(metrics: Mapping[str, Any]) -> str:
    """The reported split's figures of baselines, native prediction and probe, as text.

    Last the probe together with its companion, where the run predicts by that.
    """
    split = metrics["reported_split"]
    rows = [
        _row(_NAMES.get(name, name), scores.get(split, {}), scores.get("seconds"))
        for name, scores in metrics.get("baselines", {}).items()
    ]
    if "native" in metrics:
        rows.append(_row("superconext, objective's own rule", metrics["native"][split], None))
    rows.append(_row("superconext, linear probe", metrics[split], metrics.get("seconds")))
    if "combined" in metrics:
        rows.append(_row(f"superconext + {metrics['companion']}", metrics["combined"][split], None))
    note = "" if split == "test" else " (no test file: settings were chosen on these rows)"
    title = f"{split}, {metrics[split]['n']} rows{note}"
    return f"{title}\n{render(rows, _COLUMNS, fmt={'seconds': '.1f'})}"


def class_table(scores: Mapping[str, Any]) -> str:
    """Precision, recall and F1 of each class, as text."""
    rows = [{"class": name, **values} for name, values in scores["per_class"].items()]
    return render(rows, ("class", "precision", "recall", "f1", "support"))


def _row(name: str, scores: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
    return {
        "model": name,
        "accuracy": scores.get("accuracy"),
        "macro F1": scores.get("f1_macro"),
        "weighted F1": scores.get("f1_weighted"),
        "seconds": seconds,
    }
