"""Evaluation of a model on labelled rows: one prediction rule and one set of metrics.

`train`, `evaluate`, `compare` and the other experiments all score a model here, so the figures
of the same rows are the same wherever they are printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.fitting.model import Model
from superconext.probe.metrics import probability_metrics
from superconext.text.tokenize import Pieces


@dataclass(frozen=True)
class Evaluation:
    """What a model predicts for N labelled rows.

    features: sentence vectors float32 `[N, d]`.
    probabilities: float64 `[N, C]` that the model predicts by.
    predicted: labels `[N]`.
    metrics: accuracy, F1 scores, calibration and per-class figures of `predicted`.
    encoder_alone: the same of the probe without the n-gram models of its ensemble; None where
        the run has no ensemble.
    native, native_predicted: the same of the objective's own rule; None if it has none.
    """

    features: np.ndarray
    probabilities: np.ndarray
    predicted: list[str]
    metrics: dict[str, Any]
    encoder_alone: dict[str, Any] | None
    native: dict[str, Any] | None
    native_predicted: list[str] | None

    def document(self) -> dict[str, Any]:
        """What `evaluate --json` prints: the metrics, and those of the encoder alone."""
        if self.encoder_alone is None:
            return self.metrics
        return {**self.metrics, "encoder_alone": self.encoder_alone}


def evaluate(
    model: Model, texts: Sequence[str], labels: Sequence[str], pieces: Pieces | None = None
) -> Evaluation:
    """Predict the texts `[N]` and compare with their labels.

    pieces: the texts as the model's tokenizer has cut them, where that is done already.
    """
    answer = model.answer(texts, pieces)
    alone = native = native_predicted = None
    if model.ensemble is not None:
        alone = probability_metrics(labels, answer.probe, model.classes)
    if answer.native is not None:
        native = probability_metrics(labels, answer.native, model.classes)
        native_predicted = _labels(model, answer.native)
    return Evaluation(
        answer.features,
        answer.probabilities,
        _labels(model, answer.probabilities),
        probability_metrics(labels, answer.probabilities, model.classes),
        alone,
        native,
        native_predicted,
    )


def _labels(model: Model, scores: np.ndarray) -> list[str]:
    return [model.classes[k] for k in scores.argmax(axis=1)]
