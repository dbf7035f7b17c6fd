"""Do the probabilities mean what they say? Temperature scaling, and the error that is left.

Source of both: Guo et al. (2017), "On calibration of modern neural networks".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from superconext.probe.logistic_regression import FEWEST_DEV_ROWS, Probe
from superconext.probe.metrics import classification_metrics

#: What a temperature may be: beyond these the dev rows are odd, not the probe.
LOWEST, HIGHEST = 0.05, 20.0

#: Bins of equal width that confidences are sorted into.
BINS = 15


def fit_temperature(scores: np.ndarray, labels: np.ndarray) -> float:
    """The T > 0 for which softmax(scores / T) has the lowest log loss.

    Args:
        scores: `[N, C]`, as the probe gives them.
        labels: class indices `[N]`; rows with -1, a class training never saw, are left out.

    Where every row is right, the loss only falls as T does, to 0: such rows say nothing of
    how sure is too sure, so T is 1. It is 1 too for fewer than `FEWEST_DEV_ROWS` rows.
    """
    from scipy.optimize import minimize_scalar

    known = labels >= 0
    scores, labels = scores[known].astype(np.float64), labels[known]
    if len(labels) < FEWEST_DEV_ROWS or (scores.argmax(axis=1) == labels).all():
        return 1.0
    rows = np.arange(len(labels))

    def log_loss(log_temperature: float) -> float:
        scaled = scores / np.exp(log_temperature)
        scaled = scaled - scaled.max(axis=1, keepdims=True)
        return float((np.log(np.exp(scaled).sum(axis=1)) - scaled[rows, labels]).mean())

    # Convex in 1 / T, hence with one minimum in log T.
    limits = (np.log(LOWEST), np.log(HIGHEST))
    found = minimize_scalar(log_loss, bounds=limits, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))


def calibrate(
    probe: Probe, dev_features: np.ndarray, dev_labels: np.ndarray
) -> tuple[Probe, float]:
    """The probe with its scores divided by the temperature that dev asks for, and that T.

    Labels stay as they were; T goes into the weights, so that whoever reads them (a run
    folder, ONNX) needs to know nothing of it.
    """
    temperature = fit_temperature(probe.decision(dev_features), dev_labels)
    scaled = replace(probe, coef=probe.coef / temperature, intercept=probe.intercept / temperature)
    return scaled, temperature


def expected_calibration_error(
    probabilities: np.ndarray, truth: Sequence[str], classes: Sequence[str], bins: int = BINS
) -> float:
    """Mean distance between confidence and accuracy, in [0, 1]; 0 for no rows.

    Rows are sorted by confidence (their largest probability) into bins of equal width,
    closed on the right; the distances of the bins are weighted by their rows.

    Args:
        probabilities: `[N, C]`, columns as `classes`.
        truth: labels `[N]`; one that is not among the classes counts as wrong.
    """
    if not len(truth):
        return 0.0
    confidence = probabilities.max(axis=1)
    chosen = probabilities.argmax(axis=1)
    right = np.array([classes[k] == label for k, label in zip(chosen, truth, strict=True)])
    inside = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    gaps = np.bincount(inside, weights=right - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(truth))


def probability_metrics(
    truth: Sequence[str], probabilities: np.ndarray, classes: Sequence[str]
) -> dict[str, Any]:
    """`classification_metrics` of the most probable labels, and the calibration error."""
    predicted = [classes[k] for k in probabilities.argmax(axis=1)]
    scores = classification_metrics(truth, predicted, classes)
    if len(truth):
        scores["expected_calibration_error"] = expected_calibration_error(
            probabilities, truth, classes
        )
    return scores
