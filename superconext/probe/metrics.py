"""Metrics of predictions, calibration error, and whether the encoder collapsed.

Metrics of a contributor's own are functions registered in `superconext.probe.METRICS`; they
are computed wherever the built-in ones are.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from superconext.core.registry import expect, own_fault
from superconext.probe import METRICS
from superconext.text.characters import rows_by_script

#: Bins of equal width that confidences are sorted into.
BINS = 15


def accuracy(truth: Sequence[str], predicted: Sequence[str], classes: Sequence[str]) -> float:
    """Share of the rows whose label is right."""
    return float(np.mean([label == said for label, said in zip(truth, predicted, strict=True)]))


def f1_macro(truth: Sequence[str], predicted: Sequence[str], classes: Sequence[str]) -> float:
    """Mean F1 of the classes that occur in either, as scikit-learn's is."""
    return float(_of_classes(truth, predicted, sorted({*truth, *predicted}))[2].mean())


def f1_weighted(truth: Sequence[str], predicted: Sequence[str], classes: Sequence[str]) -> float:
    """The same mean, weighted by the classes' true rows."""
    _, _, scores, rows = _of_classes(truth, predicted, sorted({*truth, *predicted}))
    return float(np.average(scores, weights=rows))


def _of_classes(
    truth: Sequence[str], predicted: Sequence[str], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall, F1 and true rows of each class, `[C]`; 0 where there is nothing to share.

    Not scikit-learn's, so that exports are evaluated where it is not installed.
    """
    place = {name: k for k, name in enumerate(names)}
    given, said = (np.array([place[name] for name in labels]) for labels in (truth, predicted))
    rows, guesses, right = (
        np.bincount(places, minlength=len(names)) for places in (given, said, given[given == said])
    )
    precision, recall, f1 = (
        part / np.maximum(whole, 1)
        for part, whole in ((right, guesses), (right, rows), (2 * right, rows + guesses))
    )
    return precision, recall, f1, rows


#: What results have beside metrics, under names that no metric may have.
_RECORDED = frozenset(
    ("n", "per_class", "by_script", "expected_calibration_error", "overlap", "seconds")
)
_NONE = inspect.Parameter.empty


def metric_values(
    truth: Sequence[str],
    predicted: Sequence[str],
    classes: Sequence[str],
    probabilities: np.ndarray | None = None,
) -> dict[str, float]:
    """Every metric of `METRICS` by its name, over `[N]` true and predicted labels, N > 0.

    A metric is a function (truth, predicted, classes) or (truth, predicted, classes,
    probabilities) that returns a number; one of the second kind is left out where there are
    no probabilities.

    Args:
        classes: the labels the model knows.
        probabilities: `[N, C]`, columns as `classes`.

    Raises ConfigError, which names the metric, for anything but a finite number.
    """
    values = {}
    for name in METRICS:
        metric = METRICS.get(name)
        given: list[Any] = [truth, predicted, classes]
        named: dict[str, Any] = {}
        if name not in METRICS.built_in:
            if name in _RECORDED:
                raise own_fault(metric, f"the name {name!r}", "another, as results have that one")
            given = [list(labels) for labels in given]  # what it does to them is nobody else's
            if _takes_probabilities(metric):
                if probabilities is None:
                    continue
                if _by_name(metric):
                    named["probabilities"] = probabilities.copy()
                else:
                    given.append(probabilities.copy())
        value: Any = metric(*given, **named)
        right = isinstance(value, Real) or getattr(value, "size", 0) == 1
        function = getattr(metric, "__name__", name)
        expect(right, metric, function, value, "a number")
        values[name] = float(value.item() if hasattr(value, "item") else value)
        if not math.isfinite(values[name]):
            found = "NaN" if math.isnan(values[name]) else "infinity"
            raise own_fault(metric, f"{found}, returned by {function}", "a finite number")
    return values


def probabilities_needed() -> bool:
    """Whether a registered metric is a function of the probabilities."""
    own = (name for name in METRICS if name not in METRICS.built_in)
    return any(_takes_probabilities(METRICS.get(name)) for name in own)


def _takes_probabilities(metric: Callable[..., float]) -> bool:
    try:
        parameters = inspect.signature(metric).parameters
    except ValueError:  # some of C
        return False
    by_place = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    needed = [one for one in parameters.values() if one.kind in by_place and one.default is _NONE]
    return len(needed) > 3 or "probabilities" in parameters


def _by_name(metric: Callable[..., float]) -> bool:
    one = inspect.signature(metric).parameters.get("probabilities")
    return one is not None and one.kind is not inspect.Parameter.POSITIONAL_ONLY


def classification_metrics(
    truth: Sequence[str],
    predicted: Sequence[str],
    classes: Sequence[str],
    probabilities: np.ndarray | None = None,
) -> dict[str, Any]:
    """Every metric of `METRICS` over `[N]` true and predicted labels; just `n` for no rows.

    `classes` are the ones the model knows; a true label outside them counts as wrong and
    has its own line in `per_class`.

    Args:
        probabilities: `[N, C]`, for metrics that need them.
    """
    if not len(truth):
        return {"n": 0}
    names = list(classes) + sorted(set(truth) - set(classes))
    columns = _of_classes(truth, predicted, names)
    return {
        "n": len(truth),
        **metric_values(truth, predicted, classes, probabilities),
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


def script_metrics(
    texts: Sequence[str],
    truth: Sequence[str],
    predicted: Sequence[str],
    classes: Sequence[str],
    probabilities: np.ndarray | None = None,
) -> dict[str, dict[str, float]]:
    """`n` and every metric of `METRICS` of the rows `[N]` of each script, by the script's name.

    Empty where fewer than two scripts have rows enough, see `text.characters.rows_by_script`.
    """
    scores = {}
    for script, rows in rows_by_script(texts).items():
        of_truth, of_predicted = ([labels[row] for row in rows] for labels in (truth, predicted))
        some = None if probabilities is None else probabilities[rows]
        values = metric_values(of_truth, of_predicted, classes, some)
        scores[script] = {"n": len(rows), **values}
    return scores


def by_script(
    metrics: dict[str, Any],
    texts: Sequence[str],
    truth: Sequence[str],
    predicted: Sequence[str],
    classes: Sequence[str],
    probabilities: np.ndarray | None = None,
) -> dict[str, Any]:
    """The metrics with those of each script as `by_script`, where there are several."""
    scores = script_metrics(texts, truth, predicted, classes, probabilities)
    return {**metrics, "by_script": scores} if scores else metrics


def probability_metrics(
    truth: Sequence[str], probabilities: np.ndarray, classes: Sequence[str]
) -> dict[str, Any]:
    """`classification_metrics` of the most probable labels, and the calibration error."""
    predicted = [classes[k] for k in probabilities.argmax(axis=1)]
    scores = classification_metrics(truth, predicted, classes, probabilities)
    if len(truth):
        scores["expected_calibration_error"] = expected_calibration_error(
            probabilities, truth, classes
        )
    return scores


@dataclass(frozen=True)
class Evaluation:
    """What a model predicts for N labelled rows.

    features: sentence vectors float32 `[N, d]`.
    probabilities: float64 `[N, C]` that the model predicts by.
    predicted: labels `[N]`.
    metrics: accuracy, F1 scores, calibration and per-class figures of `predicted`; where two
        scripts have rows enough, those of each as `by_script`.
    encoder_alone: the same of the probe without the n-gram models of its ensemble, but for the
        calibration error where the ensemble was calibrated as a whole; None where the run has no
        ensemble.
    native, native_predicted: the same of the objective's own rule; None if it has none.
    """

    features: np.ndarray
    probabilities: np.ndarray
    predicted: list[str]
    metrics: dict[str, Any]
    encoder_alone: dict[str, Any] | None = None
    native: dict[str, Any] | None = None
    native_predicted: list[str] | None = None

    def document(self) -> dict[str, Any]:
        """What `evaluate --json` prints: the metrics, and those of the encoder alone."""
        if self.encoder_alone is None:
            return self.metrics
        return {**self.metrics, "encoder_alone": self.encoder_alone}


def scored(
    texts: Sequence[str], labels: Sequence[str], probabilities: np.ndarray, classes: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """The `metrics` of an `Evaluation` by probabilities `[N, C]`, and the most probable labels."""
    metrics = probability_metrics(labels, probabilities, classes)
    predicted = [classes[k] for k in probabilities.argmax(axis=1)]
    return by_script(metrics, texts, labels, predicted, classes, probabilities), predicted


def expected_calibration_error(
    probabilities: np.ndarray, truth: Sequence[str], classes: Sequence[str], bins: int = BINS
) -> float:
    """Mean distance between confidence and accuracy, in [0, 1]; 0 for no rows.

    Rows are sorted by confidence (their largest probability) into bins of equal width,
    closed on the right; the distances of the bins are weighted by their rows.

    Args:
        probabilities: `[N, C]`, columns as `classes`.
        truth: labels `[N]`; one that is not among the classes counts as wrong.

    Source: Guo et al. (2017), "On calibration of modern neural networks".
    """
    if not len(truth):
        return 0.0
    confidence = probabilities.max(axis=1)
    chosen = probabilities.argmax(axis=1)
    right = np.array([classes[k] == label for k, label in zip(chosen, truth, strict=True)])
    inside = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gaps = np.bincount(inside, weights=right - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(truth))


def collapse_report(features: np.ndarray) -> dict[str, Any]:
    """Whether sentence vectors `[N, d]` still differ between sentences.

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
    """The warning about a collapsed encoder, or None where it did not collapse."""
    if not report["collapsed"]:
        return None
    return (
        "the encoder maps nearly every sentence to the same point "
        f"(mean cosine {report['mean_cosine']:.2f}, {report['effective_rank']:.1f} of "
        f"{report['dimensions']} directions in use), so classes may be hard to tell apart; "
        "try a lower learning_rate, a higher temperature or more epochs"
    )
