"""Choice of C by held-out loss: cross-validation within train, or dev where it is large.

The linear baselines choose C with it. The models that predict in a run (the probe, and the
n-gram models of an ensemble) choose theirs by dev accuracy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from superconext.probe.base import dev_score

#: How C is chosen: by accuracy on dev, ties to the lower log loss; or by log loss as in
#: `best_c`.
Choice = Literal["dev_accuracy", "log_loss"]

#: Dev rows, of known classes, from which on dev alone chooses.
LARGE_DEV = 1000

#: Folds of the cross-validation; fewer where a class has fewer rows.
FOLDS = 5

#: Training rows from which log loss is taken to have one minimum along C in every fold: where it
#: has risen for two C in a row, larger ones, which take the longest to fit, are left out.
MANY_ROWS = 1000

#: Maps a C to the loss on rows that are held out; called with ascending C, so that a fit can
#: start where the one before it ended.
Loss = Callable[[float], float]


def folds(labels: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Row numbers (fitted on, held out) of stratified folds of class indices `[N]`.

    They are `FOLDS`, or as many as the rarest class has rows; none where it has a single row or
    there is one class only. The same labels give the same folds.
    """
    from sklearn.model_selection import StratifiedKFold

    counts = np.unique(labels, return_counts=True)[1]
    count = min(FOLDS, int(counts.min()))
    if count < 2 or len(counts) < 2:
        return []
    split = StratifiedKFold(count, shuffle=True, random_state=0)
    return list(split.split(np.zeros(len(labels)), labels))


def best_c(
    grid: Sequence[float],
    labels: np.ndarray,
    dev_labels: np.ndarray | None,
    of_fold: Callable[[np.ndarray, np.ndarray], Loss],
    of_dev: Callable[[], Loss],
    whole_grid: bool = False,
) -> float | None:
    """The C with the lowest loss, the smallest of equals.

    The loss is that on dev where dev has `LARGE_DEV` rows of known classes, else the mean over
    the `folds` of train. None where train has no folds; then the caller's own rule applies.

    Args:
        grid: of C, ascending.
        labels, dev_labels: class indices `[N]`, `[M]`; -1 for a class that train lacks.
        of_fold: from row numbers (fitted on, held out) of train to the loss of the fold. All
            that is fitted, the vocabulary too, is fitted on the former alone.
        of_dev: the loss on dev of what is fitted on train.
        whole_grid: whether every C is tried however many rows there are, for a loss that goes
            up and down along C.
    """
    whole_grid = whole_grid or len(labels) < MANY_ROWS
    with warnings.catch_warnings():
        _ignore_convergence()
        if dev_labels is not None and (dev_labels >= 0).sum() >= LARGE_DEV:
            losses = [_along(of_dev(), grid, whole_grid)]
        else:
            # One fold after another, so that only one is in memory.
            losses = [_along(of_fold(*rows), grid, whole_grid) for rows in folds(labels)]
    if not losses:
        return None
    reached = min(map(len, losses))
    mean = np.mean([loss[:reached] for loss in losses], axis=0)
    # Error rates that are equal but for rounding are equal.
    return grid[int(mean.round(12).argmin())]


def log_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean negative log probability of class indices `[N]` under `[N, C]`, without rows of -1."""
    return -dev_score(probabilities, labels)[1]


def warm_loss(rows: Any, labels: np.ndarray, held: Any, held_labels: np.ndarray) -> Loss:
    """The log loss on held-out rows of a logistic regression of `rows`, each C starting where the
    one before it ended.

    Args:
        rows, held: features `[N, d]`, `[M, d]`, sparse or dense.
        labels, held_labels: class indices, all classes among `labels`; -1 in `held_labels` for
            none of them.
    """
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=1000, warm_start=True)

    def loss(c: float) -> float:
        model.set_params(C=c).fit(rows, labels)
        return log_loss(model.predict_proba(held), held_labels)

    return loss


def error_rate(predicted: np.ndarray, labels: np.ndarray) -> float:
    """Share of rows predicted wrongly."""
    return float(np.mean(predicted != labels))


def columns_of(counts: Any) -> np.ndarray:
    """The columns that a sparse matrix `[N, V]` has an entry in; the first where it has none."""
    found = np.flatnonzero(counts.getnnz(axis=0))
    return found if len(found) else np.zeros(1, dtype=np.int64)


def _along(loss: Loss, grid: Sequence[float], whole_grid: bool) -> list[float]:
    """The losses of ascending C, up to the second rise in a row or of the whole grid."""
    found: list[float] = []
    for c in grid:
        found.append(loss(c))
        if not whole_grid and len(found) > 2 and found[-3] < found[-2] < found[-1]:
            break
    return found


def _ignore_convergence() -> None:
    from sklearn.exceptions import ConvergenceWarning

    warnings.simplefilter("ignore", ConvergenceWarning)
