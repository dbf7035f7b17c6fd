"""Held-out rows within train: the choice of C by their loss, and parts for cross-fitting.

One rule holds for every linear model, those of a run and those it is compared with. C has the
lowest log loss (for an SVM, error rate) on rows that nothing before it has learned from: in
cross-validation within train, or on dev where that has `LARGE_DEV` rows. Features of an encoder
that has read the labels of train look easier there than on any new row, so a probe on them
(`logistic_regression.fit_probe`) always asks dev.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from superconext.core.random_streams import FOLDS as FOLD_STREAM
from superconext.core.random_streams import random_stream
from superconext.data.token_store import TokenStore
from superconext.probe.base import FEWEST_DEV_ROWS, dev_score

#: Dev rows, of known classes, from which on dev alone chooses.
LARGE_DEV = 1000

#: Folds of the cross-validation; fewer where a class has fewer rows.
FOLDS = 5

#: Training rows from which log loss is taken to have one minimum along C in every fold: where it
#: has risen for two C in a row, larger ones, which take the longest to fit, are left out.
MANY_ROWS = 1000

#: Rows of each class that every part must have; with fewer its probe cannot learn the class.
FEWEST_ROWS = 4

#: Maps a C to what is predicted for M held-out rows, such as probabilities `[M, C]`; called with
#: ascending C, so that a fit can start where the one before ended.
Predictor = Callable[[float], np.ndarray]


class Choice(NamedTuple):
    """A chosen C, and what is predicted with it for every training row `[N, ...]` by the fold
    that left the row out; None where there were no folds."""

    c: float
    held_out: np.ndarray | None


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


def log_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean negative log probability of class indices `[N]` under `[N, C]`, without rows of -1."""
    return -dev_score(probabilities, labels)[1]


def choose_c(
    grid: Sequence[float],
    default: float,
    labels: np.ndarray,
    dev_labels: np.ndarray | None,
    of_fold: Callable[[np.ndarray, np.ndarray], Predictor] | None,
    of_dev: Callable[[], Predictor],
    loss: Callable[[np.ndarray, np.ndarray], float] = log_loss,
    whole_grid: bool = False,
) -> Choice:
    """The C with the lowest loss, the smallest of equals.

    The loss is the mean over the `folds` of train; that on dev where dev has `LARGE_DEV` rows,
    and where train has no folds or `of_fold` is None. With fewer than `FEWEST_DEV_ROWS` dev rows
    to fall back on, C is the default. Rows of dev count where their class is known.

    Args:
        grid: of C, ascending.
        labels, dev_labels: class indices `[N]`, `[M]`; -1 for a class that train lacks.
        of_fold: from row numbers (fitted on, held out) of train to the predictor of the latter.
            All that is fitted, the vocabulary too, is fitted on the former alone.
        of_dev: the predictor of the dev rows, of what is fitted on train.
        loss: of predictions and class indices.
        whole_grid: whether every C is tried however many rows there are, for a loss that goes
            up and down along C.
    """
    from sklearn.exceptions import ConvergenceWarning

    whole_grid = whole_grid or len(labels) < MANY_ROWS
    dev_rows = 0 if dev_labels is None else int((dev_labels >= 0).sum())
    parts = [] if of_fold is None or dev_rows >= LARGE_DEV else folds(labels)
    paths: list[list[tuple[float, np.ndarray]]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for fitted, held in parts:  # one after another, so that only one is in memory
            assert of_fold is not None
            paths.append(loss_path(of_fold(fitted, held), grid, labels[held], loss, whole_grid))
        if not parts and dev_labels is not None and dev_rows >= FEWEST_DEV_ROWS:
            paths.append(loss_path(of_dev(), grid, dev_labels, loss, whole_grid))
    if not paths:
        return Choice(default, None)
    losses = np.array([[value for value, _ in path] for path in _cut(paths)])
    # Error rates that are equal but for rounding are equal.
    best = int(losses.mean(axis=0).round(12).argmin())
    if not parts:
        return Choice(grid[best], None)
    held_out = np.concatenate([path[best][1] for path in paths])
    order = np.argsort(np.concatenate([held for _, held in parts]))
    return Choice(grid[best], held_out[order])


def cross_fitting_parts(
    store: TokenStore, labels: np.ndarray, members: int, seed: int
) -> list[np.ndarray] | None:
    """Which rows each of the members leaves out: disjoint parts of all N rows, sorted.

    Every part has its share of each class, rounded; sentences of the very same words stand in
    one part. None where a part would have fewer than `FEWEST_ROWS` rows of some class.

    Args:
        store: token ids of the rows.
        labels: class indices `[N]`.
        members: number of parts, at least 2.
    """
    copies: dict[bytes, list[int]] = {}
    for row in range(len(labels)):
        words = store.tokens[store.offsets[row] : store.offsets[row + 1]].tobytes()
        copies.setdefault(words, []).append(row)
    groups = list(copies.values())
    classes = labels[[group[0] for group in groups]]
    shuffled = random_stream(seed, FOLD_STREAM).permutation(len(groups))
    # Dealt out class by class, each going on where the last one stopped.
    dealt = shuffled[np.argsort(classes[shuffled], kind="stable")]
    parts = [
        np.sort(
            np.array(
                [row for group in dealt[part::members] for row in groups[group]], dtype=np.int64
            )
        )
        for part in range(members)
    ]
    count = int(labels.max()) + 1
    least = min(np.bincount(labels[part], minlength=count).min() for part in parts)
    return parts if least >= FEWEST_ROWS else None


def loss_path(
    predict: Predictor,
    grid: Sequence[float],
    labels: np.ndarray,
    loss: Callable[[np.ndarray, np.ndarray], float],
    whole_grid: bool,
) -> list[tuple[float, np.ndarray]]:
    """Losses and predictions of ascending C, up to the second rise in a row or of all."""
    path: list[tuple[float, np.ndarray]] = []
    for c in grid:
        predicted = predict(c)
        path.append((loss(predicted, labels), predicted))
        if not whole_grid and len(path) > 2 and path[-3][0] < path[-2][0] < path[-1][0]:
            break
    return path


def _cut(
    paths: Sequence[list[tuple[float, np.ndarray]]],
) -> list[list[tuple[float, np.ndarray]]]:
    """The paths as far as the shortest goes."""
    return [path[: min(map(len, paths))] for path in paths]
