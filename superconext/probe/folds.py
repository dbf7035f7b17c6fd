"""Models on the folds of a cross-validation: C, weights and probabilities out of fold.

A model is kept with the probabilities it gives to held-out rows for every C that was tried. C is
the one with the lowest log loss over folds, the weights of a pool are fitted on held-out rows.
What is reported of a fold was chosen and weighed on the rows of the other folds of the same repeat,
so no row is scored by a C or by weights that were fitted on it. (The models of those other folds
were; to keep that out too, all would have to be fitted again for each pair of folds.)
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from superconext.probe.base import softmax
from superconext.probe.cross_validation import MANY_ROWS, Predictor, log_loss, loss_path
from superconext.probe.ensemble import fit_weights, out_of_fold, pooled

#: How the probabilities of several models become one: those of the only model, their mean, or a
#: log-linear pool with fitted weights.
ALONE, MEAN, POOL = "alone", "mean", "pool"

#: The probability that `row_losses` counts at least.
LEAST_SHARE = 0.01


@dataclass(frozen=True)
class Fold:
    """Row numbers that one fit is made on and judged on. Folds of one `repeat` have disjoint
    held-out rows."""

    repeat: int
    fitted: np.ndarray
    held: np.ndarray


class OnFolds:
    """A model on the folds it was fitted for so far, in their order.

    grid: of C, ascending; a single number where there is none to choose.
    """

    def __init__(self, grid: Sequence[float]) -> None:
        self.grid = tuple(grid)
        self._paths: list[list[tuple[float, np.ndarray]]] = []

    def add(self, predict: Predictor, labels: np.ndarray, rows: int) -> None:
        """One more fold: what predicts its held-out rows, their class indices `[m]`, and how many
        rows there are in all."""
        from sklearn.exceptions import ConvergenceWarning

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            path = loss_path(predict, self.grid, labels, log_loss, rows < MANY_ROWS)
        self._paths.append(path)

    def __len__(self) -> int:
        return len(self._paths)

    def best(self, folds: Sequence[int]) -> int:
        """The place in the grid of the lowest log loss over the rows of these folds, the smallest
        C of equals."""
        count = min(len(path) for path in self._paths)
        sizes = [len(self._paths[fold][0][1]) for fold in folds]
        losses = [[loss for loss, _ in self._paths[fold][:count]] for fold in folds]
        return int(np.average(losses, axis=0, weights=sizes).round(12).argmin())

    def shares(self, fold: int, place: int) -> np.ndarray:
        """Probabilities `[m, C]` of a fold's held-out rows, by the C at that place."""
        return self._paths[fold][place][1]


@dataclass(frozen=True)
class Settings:
    """What was chosen on held-out rows: of each model C and, in a pool, its weight."""

    c: Mapping[str, float]
    weights: Mapping[str, float]


def out_of_folds(
    models: Mapping[str, OnFolds], how: str, folds: Sequence[Fold], labels: np.ndarray
) -> tuple[list[np.ndarray], Settings]:
    """Of each fold the probabilities `[m, C]` of its held-out rows, and the settings for a fit on
    all rows, which all folds have chosen together.

    With a single fold in a repeat C is chosen on it, and weights are fitted on its other rows.

    Args:
        models: by name, each on (at least) these folds. labels: class indices `[N]` of all rows.
    """
    every = list(models.values())
    truth = [labels[fold.held] for fold in folds]

    def shares(places: Sequence[int], fold: int) -> list[np.ndarray]:
        return [model.shares(fold, at) for model, at in zip(every, places, strict=True)]

    def logs(places: Sequence[int], fold: int) -> list[np.ndarray]:
        tiny = np.finfo(np.float64).tiny
        return [np.log(np.maximum(one, tiny)) for one in shares(places, fold)]

    def weigh(places: Sequence[int], some: Sequence[int]) -> np.ndarray | None:
        if how != POOL:
            return None
        by_model = zip(*(logs(places, fold) for fold in some), strict=True)
        joined = [np.concatenate(parts) for parts in by_model]
        return fit_weights(joined, np.concatenate([truth[fold] for fold in some]))

    def predict(places: Sequence[int], weights: np.ndarray | None, fold: int) -> np.ndarray:
        if weights is not None:
            return softmax(pooled(logs(places, fold), weights))
        mean: np.ndarray = np.mean(shares(places, fold), axis=0)
        return mean

    found = []
    for at, fold in enumerate(folds):
        others = [k for k, one in enumerate(folds) if one.repeat == fold.repeat and k != at]
        places = [model.best(others or [at]) for model in every]
        if others or how != POOL:
            found.append(predict(places, weigh(places, others), at))
        else:
            found.append(softmax(out_of_fold(logs(places, at), truth[at])))
    everywhere = range(len(folds))
    places = [model.best(everywhere) for model in every]
    grid = [model.grid[at] for model, at in zip(every, places, strict=True)]
    weights = weigh(places, everywhere)
    by_name = {} if weights is None else dict(zip(models, weights.tolist(), strict=True))
    return found, Settings(dict(zip(models, grid, strict=True)), by_name)


def row_losses(
    shares: Sequence[np.ndarray], folds: Sequence[Fold], labels: np.ndarray
) -> np.ndarray:
    """The log loss of each row float64 `[N]`, mean over the repeats; NaN where none held it out.

    Probabilities below `LEAST_SHARE` count as that: else a single row that is wrong for certain,
    such as one with a wrong label, outweighs a hundred others.
    """
    total, times = np.zeros(len(labels)), np.zeros(len(labels))
    for fold, some in zip(folds, shares, strict=True):
        right = some[np.arange(len(fold.held)), labels[fold.held]]
        total[fold.held] -= np.log(np.maximum(right, LEAST_SHARE))
        times[fold.held] += 1
    losses: np.ndarray = np.where(times > 0, total / np.maximum(times, 1), np.nan)
    return losses
