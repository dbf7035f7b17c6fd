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
from superconext.probe.metrics import by_script, probability_metrics
from superconext.text.tokenize import Pieces


@dataclass(frozen=True)
class Evaluation:
    """What a model predicts for N labelled rows.

    features: sentence vectors float32 `[N, d]`.
    probabilities: float64 `[N, C]` that the model predicts by.
    predicted: labels `[N]`.
    metrics: accuracy, F1 scores, calibration and per-class figures of `predicted`; where two
        scripts have rows enough, those of each as `by_script`.
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

    def scored(probabilities: np.ndarray) -> tuple[dict[str, Any], list[str]]:
        metrics = probability_metrics(labels, probabilities, model.classes)
        predicted = [model.classes[k] for k in probabilities.argmax(axis=1)]
        rows = texts, labels, predicted, model.classes, probabilities
        return by_script(metrics, *rows), predicted

    metrics, predicted = scored(answer.probabilities)
    alone = None if model.ensemble is None else scored(answer.probe)[0]
    native, native_predicted = None, None
    if answer.native is not None:
        native, native_predicted = scored(answer.native)
    return Evaluation(
        answer.features,
        answer.probabilities,
        predicted,
        metrics,
        alone,
        native,
        native_predicted,
    )
