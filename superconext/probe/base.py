"""Base class of the probes, and what all of them share: scores, choice on dev, temperature.

A probe is a classifier fitted on frozen sentence vectors. It is registered in
`superconext.probe.PROBES` and named by the parameter `probe_features`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: With fewer dev rows than this nothing can be chosen on them but noise.
FEWEST_DEV_ROWS = 20

#: Limits of a temperature: beyond these the dev rows are odd, not the probe.
LOWEST, HIGHEST = 0.05, 20.0


class Probe(ABC):
    """A fitted classifier on sentence vectors, made of plain arrays.

    `calibrate`, `logit_adjustment` and the export to ONNX need the
    weights of a logistic regression; they refuse a probe that does not extend
    `LogisticRegressionProbe`.
    """

    @classmethod
    @abstractmethod
    def fit(
        cls,
        features: np.ndarray,
        labels: np.ndarray,
        dev_features: np.ndarray | None = None,
        dev_labels: np.ndarray | None = None,
    ) -> Probe:
        """A probe fitted on the training rows, its settings chosen on the dev rows.

        Args:
            features: sentence vectors float32 `[N, d]`.
            labels: class indices `[N]`, 0 to C - 1, each there.
            dev_features, dev_labels: alike, M rows; -1 for a class that training lacks. None
                where there are no dev rows.
        """

    @abstractmethod
    def decision(self, features: np.ndarray) -> np.ndarray:
        """Scores float64 `[N, C]` of sentence vectors `[N, d]`; the largest is predicted."""

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities float64 `[N, C]`: by default the softmax of the scores."""
        return softmax(self.decision(features))

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """What the run folder keeps of the probe, in `probe.safetensors`."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], classes: int, width: int) -> Probe:
        """The probe that `arrays` described.

        Args:
            classes: C. width: d.

        Raises ValueError (or LookupError) where the arrays are not of such a probe: they are
        read from a file that may be damaged.
        """

    @property
    def settings(self) -> dict[str, Any]:
        """What was chosen on dev, by the names `metrics.json` has."""
        return {}


def softmax(scores: np.ndarray) -> np.ndarray:
    """Row-wise softmax of `[..., N, C]`."""
    shifted = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """Row-wise logarithm of the softmax of `[..., N, C]`."""
    shifted = scores - scores.max(axis=-1, keepdims=True)
    logs: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return logs


def scores_of_both(scores: np.ndarray) -> np.ndarray:
    """Scores `[N, C]`: as they are, or, of the one `[N, 1]` that tells two classes apart, minus
    and plus half of it."""
    return np.hstack([-scores / 2, scores / 2]) if scores.shape[1] == 1 else scores


def dev_score(probabilities: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """What candidates are ranked by: (accuracy, minus log loss) of `[N, C]` on `[N]`.

    Rows whose label is -1, a class that training never saw, are left out.
    """
    known = labels >= 0
    probabilities, labels = probabilities[known], labels[known]
    if not len(labels):
        return 0.0, 0.0
    accuracy = float((probabilities.argmax(axis=1) == labels).mean())
    chosen = probabilities[np.arange(len(labels)), labels]
    return accuracy, float(np.log(np.clip(chosen, 1e-12, None)).mean())


def log_shares(labels: np.ndarray, classes: int) -> np.ndarray:
    """Log shares `[C]` of the classes among class indices `[N]`, in which every class has a row, or
    among rows that each have a share of every class, `[N, C]`."""
    if labels.ndim > 1:
        shares: np.ndarray = np.log(labels.mean(axis=0))
    else:
        shares = np.log(np.bincount(labels, minlength=classes) / len(labels))
    return shares


def shifted(probabilities: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Probabilities `[N, C]` after `shift` `[C]` is subtracted from their logarithms."""
    tiny = np.finfo(np.float64).tiny
    return softmax(np.log(np.maximum(probabilities, tiny)) - shift)


def log_odds(labels: np.ndarray, classes: int) -> np.ndarray:
    """Log shares of the classes `[C]`; for two classes their one difference `[1]`, as the
    intercept of a regression has it.

    labels: as in `log_shares`.
    """
    shares = log_shares(labels, classes)
    return shares if classes > 2 else shares[1:] - shares[:1]


def fit_temperature(scores: np.ndarray | Sequence[np.ndarray], labels: np.ndarray) -> float:
    """The T > 0 for which softmax(scores / T) has the lowest log loss.

    Args:
        scores: `[N, C]`, as the probe gives them; of several models, `[M, N, C]`, the mean of
            whose softmax(scores / T) is judged.
        labels: class indices `[N]`; rows with -1, a class training never saw, are left out.

    Where every row is right, the loss only falls as T does, to 0: such rows do not show how
    much confidence is too much, so T is 1. It is 1 too for fewer than `FEWEST_DEV_ROWS` rows.

    Source: Guo et al. (2017), "On calibration of modern neural networks".
    """
    from scipy.optimize import minimize_scalar

    known = labels >= 0
    of_models = np.asarray(scores, np.float64)
    of_models = (of_models[None] if of_models.ndim == 2 else of_models)[:, known]
    labels, rows = labels[known], np.arange(known.sum())
    if len(labels) < FEWEST_DEV_ROWS:
        return 1.0
    if (softmax(of_models).mean(axis=0).argmax(axis=1) == labels).all():
        return 1.0

    def log_loss(log_temperature: float) -> float:
        right = log_softmax(of_models / np.exp(log_temperature))[:, rows, labels]
        return float(-np.logaddexp.reduce(right).mean())

    # Of one model convex in 1 / T, hence with one minimum in log T; a mean may have several.
    limits = (np.log(LOWEST), np.log(HIGHEST))
    if len(of_models) > 1:
        grid = np.linspace(*limits, 33)
        best = int(np.argmin([log_loss(one) for one in grid]))
        limits = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    optimum = minimize_scalar(log_loss, bounds=limits, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(optimum.x))
