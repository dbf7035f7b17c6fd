"""The linear probe: logistic regression on frozen features.

Fitting uses scikit-learn; a fitted probe is plain arrays and predicts with numpy alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

#: Inverse regularisation strengths tried on dev.
GRID: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

#: With fewer dev rows than this nothing can be chosen on them but noise.
FEWEST_DEV_ROWS = 20


@dataclass(frozen=True)
class Probe:
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
        """Scores `[N, C]` (for two classes: minus and plus the one score) of `[N, d]`."""
        scores = (features - self.mean) / self.scale @ self.coef.T + self.intercept
        return of_every_class(scores)

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Class probabilities `[N, C]` of features `[N, d]`."""
        return softmax(self.decision(features))


def of_every_class(scores: np.ndarray) -> np.ndarray:
    """Scores `[N, C]`: as they are, or, of the one `[N, 1]` that tells two classes, minus and
    plus half of it."""
    return np.hstack([-scores / 2, scores / 2]) if scores.shape[1] == 1 else scores


def softmax(scores: np.ndarray) -> np.ndarray:
    """Row-wise softmax of `[N, C]`."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def fit_probe(
    features: np.ndarray,
    labels: np.ndarray,
    dev_features: np.ndarray | None = None,
    dev_labels: np.ndarray | None = None,
    grid: Sequence[float] = GRID,
) -> Probe:
    """Fit on `[N, d]` and class indices `[N]`, C chosen on dev.

    The C with the highest dev accuracy wins; ties go to the lower dev log loss. With
    fewer than `FEWEST_DEV_ROWS` dev rows the middle of the grid is used.
    """
    mean = features.mean(axis=0, dtype=np.float64)
    scale = features.std(axis=0, dtype=np.float64)
    # A dimension that is constant up to rounding carries nothing; dividing by its
    # rounding noise would make it carry that.
    scale = np.where(scale > 1e-7 * np.maximum(np.abs(mean), 1.0), scale, 1.0)
    scaled = ((features - mean) / scale).astype(np.float32)
    if dev_features is None or dev_labels is None or len(dev_labels) < FEWEST_DEV_ROWS:
        grid = (grid[len(grid) // 2],)
    best: tuple[tuple[float, float], Probe] | None = None
    for c in grid:
        coef, intercept = _logistic(scaled, labels, c)
        probe = Probe(mean, scale, coef, intercept, c)
        if len(grid) == 1:
            return probe
        assert dev_features is not None and dev_labels is not None
        key = dev_key(probe.probabilities(dev_features), dev_labels)
        if best is None or key > best[0]:
            best = (key, probe)
    assert best is not None
    return best[1]


def log_odds(labels: np.ndarray, classes: int) -> np.ndarray:
    """What rarity does to each score: log shares of the classes `[C]`; for two their one
    difference `[1]`, as the intercept of a regression has it.

    Every class has a row among the class indices `labels` `[N]`.
    """
    shares = np.log(np.bincount(labels, minlength=classes) / len(labels))
    return shares if classes > 2 else shares[1:] - shares[:1]


def adjusted(probe: Probe, labels: np.ndarray, strength: float) -> Probe:
    """The probe with `strength` times the log shares of the training labels taken off its scores.

    0 leaves it; at 1 it aims at equal shares of all classes being right, whatever their size.
    Rarer classes are then predicted oftener. Source: Menon et al. (2021), "Long-tail learning
    via logit adjustment", equation 9, with tau = strength.
    """
    if strength == 0:
        return probe
    shift = strength * log_odds(labels, max(len(probe.intercept), 2))
    return replace(probe, intercept=probe.intercept - shift)


def dev_key(probabilities: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """What another C must beat: (accuracy, minus log loss) of `[N, C]` on `[N]`.

    Rows whose label is -1, a class that training never saw, are left out.
    """
    known = labels >= 0
    probabilities, labels = probabilities[known], labels[known]
    if not len(labels):
        return 0.0, 0.0
    accuracy = float((probabilities.argmax(axis=1) == labels).mean())
    chosen = probabilities[np.arange(len(labels)), labels]
    return accuracy, float(np.log(np.clip(chosen, 1e-12, None)).mean())


def _logistic(features: np.ndarray, labels: np.ndarray, c: float) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=c, max_iter=1000).fit(features, labels)
    return model.coef_.astype(np.float64), model.intercept_.astype(np.float64)
