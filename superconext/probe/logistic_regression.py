"""The linear probe: logistic regression on frozen features.

Fitting uses scikit-learn; a fitted probe is plain arrays and predicts with numpy alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from superconext.probe.base import (
    FEWEST_DEV_ROWS,
    Probe,
    dev_score,
    fit_temperature,
    log_odds,
    scores_of_both,
)
from superconext.probe.cross_validation import Choice, Loss, best_c, warm_loss

#: Inverse regularisation strengths tried on dev.
GRID: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class LogisticRegressionProbe(Probe):
    """Standardise, multiply, add.

    mean, scale: float64 `[d]` of the training features.
    coef: float64 `[C, d]` (`[1, d]` for two classes), intercept `[C]` (`[1]`).
    c: the inverse regularisation strength chosen.
    """

    mean: np.ndarray
    scale: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    c: float

    def decision(self, features: np.ndarray) -> np.ndarray:
        """Scores `[N, C]` (for two classes: minus and plus half the one score) of `[N, d]`."""
        return scores_of_both((features - self.mean) / self.scale @ self.coef.T + self.intercept)

    @property
    def settings(self) -> dict[str, Any]:
        return {"probe_C": self.c}

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "mean": self.mean,
            "scale": self.scale,
            "coef": np.ascontiguousarray(self.coef),
            "intercept": self.intercept,
            "c": np.array([self.c]),
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, np.ndarray], classes: int, width: int
    ) -> LogisticRegressionProbe:
        mean, scale, coef, intercept = (
            arrays[name] for name in ("mean", "scale", "coef", "intercept")
        )
        check_weights(coef, intercept, classes, width, "the probe")
        if mean.shape != (width,) or scale.shape != (width,):
            raise ValueError(f"the probe is of {mean.shape} features, the encoders of {width}")
        real = mean.dtype.kind == scale.dtype.kind == "f"
        if not (real and np.isfinite(mean).all() and (scale > 0).all()):
            raise ValueError("the probe has means or scales that are no numbers to divide by")
        return cls(mean, scale, coef, intercept, float(arrays["c"][0]))

    @classmethod
    def fit(
        cls,
        features: np.ndarray,
        labels: np.ndarray,
        dev_features: np.ndarray | None = None,
        dev_labels: np.ndarray | None = None,
    ) -> LogisticRegressionProbe:
        return fit_probe(features, labels, dev_features, dev_labels)


def fit_probe(
    features: np.ndarray,
    labels: np.ndarray,
    dev_features: np.ndarray | None = None,
    dev_labels: np.ndarray | None = None,
    grid: Sequence[float] = GRID,
    choice: Choice = "dev_accuracy",
) -> LogisticRegressionProbe:
    """Fit on `[N, d]` and class indices `[N]`.

    The C with the highest dev accuracy wins; ties go to the lower dev log loss. With
    fewer than `FEWEST_DEV_ROWS` dev rows the middle of the grid is used.

    Args:
        choice: "log_loss" chooses C as in `cross_validation.best_c` instead, and by the rule
            above only where the rows have no folds.
    """
    mean, scale, scaled = _standardised(features)
    if choice == "log_loss":

        def of_fold(fitted: np.ndarray, held: np.ndarray) -> Loss:
            own = features[fitted]
            mean, scale, scaled = _standardised(own)
            others = ((features[held] - mean) / scale).astype(np.float32)
            return warm_loss(scaled, labels[fitted], others, labels[held])

        def of_dev() -> Loss:
            assert dev_features is not None and dev_labels is not None
            others = ((dev_features - mean) / scale).astype(np.float32)
            return warm_loss(scaled, labels, others, dev_labels)

        chosen = best_c(grid, labels, dev_labels, of_fold, of_dev)
        grid = grid if chosen is None else (chosen,)
    if dev_features is None or dev_labels is None or len(dev_labels) < FEWEST_DEV_ROWS:
        grid = (grid[len(grid) // 2],)
    best: tuple[tuple[float, float], LogisticRegressionProbe] | None = None
    for c in grid:
        coef, intercept = _logistic(scaled, labels, c)
        probe = LogisticRegressionProbe(mean, scale, coef, intercept, c)
        if len(grid) == 1:
            return probe
        assert dev_features is not None and dev_labels is not None
        score = dev_score(probe.probabilities(dev_features), dev_labels)
        if best is None or score > best[0]:
            best = (score, probe)
    assert best is not None
    return best[1]


def adjusted(
    probe: LogisticRegressionProbe, labels: np.ndarray, strength: float
) -> LogisticRegressionProbe:
    """The probe with `strength` times the log shares of the training labels subtracted from its
    scores.

    0 leaves it; at 1 it aims at equal shares of all classes being right, whatever their size.
    Rarer classes are then predicted oftener. Source: Menon et al. (2021), "Long-tail learning
    via logit adjustment", equation 9, with tau = strength.
    """
    if strength == 0:
        return probe
    shift = strength * log_odds(labels, max(len(probe.intercept), 2))
    return replace(probe, intercept=probe.intercept - shift)


def calibrate(
    probe: LogisticRegressionProbe, dev_features: np.ndarray, dev_labels: np.ndarray
) -> tuple[LogisticRegressionProbe, float]:
    """The probe with its scores divided by the temperature fitted on dev, and that temperature.

    Labels stay as they were; T goes into the weights, so that whoever reads them (a run
    folder, ONNX) needs to know nothing of it.
    """
    temperature = fit_temperature(probe.decision(dev_features), dev_labels)
    scaled = replace(probe, coef=probe.coef / temperature, intercept=probe.intercept / temperature)
    return scaled, temperature


def check_weights(
    coef: np.ndarray, intercept: np.ndarray, classes: int, width: int, what: str
) -> None:
    """Raise ValueError unless a logistic regression has its C (or, of two, 1) rows of `width`."""
    rows = {classes} if classes != 2 else {1, 2}
    if coef.shape != (len(intercept), width) or len(intercept) not in rows or intercept.ndim != 1:
        raise ValueError(
            f"{what} has weights of shape {list(coef.shape)} and {list(intercept.shape)}, for "
            f"{classes} classes and {width} features"
        )
    if coef.dtype.kind != "f" or intercept.dtype.kind != "f":
        raise ValueError(f"{what} has weights of type {coef.dtype} and {intercept.dtype}")
    if not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError(f"{what} has weights that are not finite")


def _standardised(features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and standard deviation float64 `[d]` of features `[N, d]`, and the standardised
    features float32 `[N, d]`."""
    mean = features.mean(axis=0, dtype=np.float64)
    scale = features.std(axis=0, dtype=np.float64)
    # A dimension that is constant up to rounding carries nothing; dividing by its
    # rounding noise would make it carry that.
    scale = np.where(scale > 1e-7 * np.maximum(np.abs(mean), 1.0), scale, 1.0)
    return mean, scale, ((features - mean) / scale).astype(np.float32)


def _logistic(features: np.ndarray, labels: np.ndarray, c: float) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=c, max_iter=1000).fit(features, labels)
    return model.coef_.astype(np.float64), model.intercept_.astype(np.float64)
