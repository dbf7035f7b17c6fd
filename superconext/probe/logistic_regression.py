"""The linear probe: logistic regression on frozen features, and the choice of C of linear models.

Fitting uses scikit-learn; a fitted probe is plain arrays and predicts with numpy alone.

One rule holds for every linear model, those of a run and those it is compared with. C has the
lowest log loss (for an SVM, error rate) on rows that nothing before it has learned from: in
cross-validation within train, or on dev where that has `LARGE_DEV` rows. Features of an encoder
that has read the labels of train look easier there than on any new row, so a probe on them
(`fit_probe`) always asks dev. One on features that were learned from no label (`fit_frozen_probe`)
keeps to the rule but for few rows, which choose badly.

Features are standardised, each dimension by itself. Those that were learned from no label have
unit length first and one scale for all dimensions: how much a dimension varies says how much the
text it was learned from says with it, and how long a sentence vector is says little of its class.

Scores that something else has learned from the vectors may stand beside them (`beside`), as by
which emoji the writers of unlabelled text use. They are linear in the vectors, so a probe without
them can say the same, but weights along what they tell cost it less: they are a prior.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from superconext.data.duplicates import keys_of
from superconext.probe.base import (
    FEWEST_DEV_ROWS,
    Probe,
    dev_score,
    fit_temperature,
    log_odds,
    scores_of_both,
    softmax,
)

#: Dev rows, of known classes, from which on dev alone chooses.
LARGE_DEV = 1000

#: Folds of the cross-validation that chooses C; fewer where a class has fewer rows.
C_FOLDS = 5

#: Training rows from which log loss is taken to have one minimum along C in every fold: where it
#: has risen for two C in a row, larger ones, which take the longest to fit, are left out.
MANY_ROWS = 1000

#: Maps a C to what is predicted for M held-out rows, such as probabilities `[M, C]`; called with
#: ascending C, so that a fit can start where the one before ended.
Predictor = Callable[[float], np.ndarray]


class Choice(NamedTuple):
    """A chosen C, and what is predicted with it for every training row `[N, ...]` by the fold
    that left the row out; None where there were no folds. on_dev: whether dev has chosen it."""

    c: float
    held_out: np.ndarray | None
    on_dev: bool = False


def folds(
    labels: np.ndarray, texts: Sequence[str] | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Row numbers (fitted on, held out) of stratified folds of class indices `[N]`.

    They are `C_FOLDS`, or as many as the rarest class has rows; none where it has a single row or
    there is one class only. The same rows give the same folds.

    texts: of the rows, `[N]`. The copies of one (`duplicates.keys_of`) join the fold of the first,
        unless a fold would then have no row of some class to fit on.
    """
    from sklearn.model_selection import StratifiedKFold

    counts = np.unique(labels, return_counts=True)[1]
    count = min(C_FOLDS, int(counts.min()))
    if count < 2 or len(counts) < 2:
        return []
    split = StratifiedKFold(count, shuffle=True, random_state=0)
    parts = list(split.split(np.zeros(len(labels)), labels))
    return parts if texts is None else _together(parts, labels, keys_of(texts))


def _together(
    parts: list[tuple[np.ndarray, np.ndarray]], labels: np.ndarray, keys: Sequence[str]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The folds with rows of equal keys held out by one of them, or as they are."""
    first: dict[str, int] = {}
    for row, key in enumerate(keys):
        first.setdefault(key, row)
    if len(first) == len(keys):
        return parts
    dealt = np.empty(len(labels), dtype=np.int64)
    for number, (_, held) in enumerate(parts):
        dealt[held] = number
    dealt = dealt[[first[key] for key in keys]]
    classes = len(np.unique(labels))
    numbers = np.unique(dealt)
    if len(numbers) < 2 or any(len(np.unique(labels[dealt != n])) < classes for n in numbers):
        return parts
    return [(np.flatnonzero(dealt != n), np.flatnonzero(dealt == n)) for n in numbers]


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
    texts: Sequence[str] | None = None,
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
        texts: of the rows of train, whose copies one fold holds out.
    """
    from sklearn.exceptions import ConvergenceWarning

    whole_grid = whole_grid or len(labels) < MANY_ROWS
    dev_rows = 0 if dev_labels is None else int((dev_labels >= 0).sum())
    parts = [] if of_fold is None or dev_rows >= LARGE_DEV else folds(labels, texts)
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
        return Choice(grid[best], None, on_dev=True)
    held_out = np.concatenate([path[best][1] for path in paths])
    order = np.argsort(np.concatenate([held for _, held in parts]))
    return Choice(grid[best], held_out[order])


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


#: Inverse regularisation strengths tried.
GRID: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

#: C where there are too few rows to choose it on. On draws with as many rows of each class 0.01 was
#: better from a pretrained encoder, but on draws as the sets come it was much worse from scratch.
DEFAULT_C = 0.3

#: The same of vectors that were learned from no label. On five draws of 8 and 16 rows of each class
#: of CR, SST-2 and TREC it had a lower log loss than what folds chose for MiniLM and for mean word
#: vectors, and was as accurate; with 128 folds were better, and better than a tenth held back.
FROZEN_C = 0.03

#: Rows from which folds choose it.
FEWEST_FOLDED = 150


@dataclass(frozen=True)
class LogisticRegressionProbe(Probe):
    """Standardise, multiply, add.

    mean, scale: float64 `[d]` of the training features, at unit length where `unit_length`.
    coef: float64 `[C, d]` (`[1, d]` for two classes), intercept `[C]` (`[1]`).
    c: the inverse regularisation strength chosen.
    unit_length: whether features are divided by their length first.
    beside: what `fit_probe` was given, for a fit on other rows; not saved.
    chosen_on_dev: whether dev has chosen C; not saved.
    """

    mean: np.ndarray
    scale: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    c: float
    unit_length: bool = False
    beside: np.ndarray | None = None
    chosen_on_dev: bool = False

    def decision(self, features: np.ndarray) -> np.ndarray:
        """Scores `[N, C]` (for two classes: minus and plus half the one score) of `[N, d]`."""
        rows = of_unit_length(features) if self.unit_length else features
        return scores_of_both((rows - self.mean) / self.scale @ self.coef.T + self.intercept)

    @property
    def settings(self) -> dict[str, Any]:
        return {"probe_C": self.c}

    def arrays(self) -> dict[str, np.ndarray]:
        marks = {"unit_length": np.array([True])} if self.unit_length else {}
        return marks | {
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
        unit_length = bool(arrays.get("unit_length", np.array([False]))[0])
        return cls(mean, scale, coef, intercept, float(arrays["c"][0]), unit_length)

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
    learned: bool = True,
    default: float = DEFAULT_C,
    unit_length: bool = False,
    beside: np.ndarray | None = None,
    texts: Sequence[str] | None = None,
) -> LogisticRegressionProbe:
    """Fit on `[N, d]` and class indices `[N]`; C has the lowest log loss of `grid`.

    Args:
        labels: of features that were learned from them, also shares of the classes `[N, C]`: each
            row then stands once for each class with its share as weight.
        dev_labels: class indices `[M]`; -1 for a class that training never saw.
        learned: whether the features were learned from these very labels. Then the log loss is
            that on dev however small it is, else as `choose_c` has it.
        default: C where there are too few rows for either, unless the grid has only one.
        unit_length: whether features have unit length and all dimensions one scale.
        beside: weights `[K, d]` of scores that stand beside features of unit length.
        texts: of the N rows, whose copies one fold holds out.
    """
    if len(grid) == 1:
        return _with_c(features, labels, grid[0], unit_length, beside)

    def of_fold(fitted: np.ndarray, held: np.ndarray) -> Predictor:
        return along_c(features[fitted], labels[fitted], features[held], unit_length, beside)

    def of_dev() -> Predictor:
        assert dev_features is not None
        return along_c(features, labels, dev_features, unit_length, beside)

    within = None if learned else of_fold
    choice = choose_c(grid, default, labels, dev_labels, within, of_dev, texts=texts)
    probe = _with_c(features, labels, choice.c, unit_length, beside)
    return replace(probe, chosen_on_dev=choice.on_dev)


def fit_frozen_probe(
    features: np.ndarray,
    labels: np.ndarray,
    dev_features: np.ndarray | None = None,
    dev_labels: np.ndarray | None = None,
    beside: np.ndarray | None = None,
    texts: Sequence[str] | None = None,
) -> LogisticRegressionProbe:
    """`fit_probe` on features that were learned from no label, at unit length. Fewer rows than
    `FEWEST_FOLDED`, and shares of the classes, leave the choice of C to dev, and that without dev
    to `FROZEN_C`."""
    learned = len(labels) < FEWEST_FOLDED or labels.ndim > 1
    rows = features, labels, dev_features, dev_labels
    return fit_probe(
        *rows, learned=learned, default=FROZEN_C, unit_length=True, beside=beside, texts=texts
    )


def adjusted(
    probe: LogisticRegressionProbe, labels: np.ndarray, strength: float
) -> LogisticRegressionProbe:
    """The probe with `strength` times the log shares of the training labels subtracted from its
    scores; labels: as in `log_shares`.

    0 leaves it; at 1 it aims at equal shares of all classes being right, whatever their size.
    Rarer classes are then predicted more often. Source: Menon et al. (2021), "Long-tail learning
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
    return cooled(probe, temperature), temperature


def cooled(probe: LogisticRegressionProbe, temperature: float) -> LogisticRegressionProbe:
    """The probe with its scores divided by a temperature."""
    return replace(probe, coef=probe.coef / temperature, intercept=probe.intercept / temperature)


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


def along_c(
    features: np.ndarray,
    labels: np.ndarray,
    held: np.ndarray,
    unit_length: bool = False,
    beside: np.ndarray | None = None,
) -> Predictor:
    """Class probabilities of held-out features, each C starting where the one before ended.

    unit_length, beside: as in `fit_probe`.
    """
    from sklearn.linear_model import LogisticRegression

    mean, scale, scaled = _standardised(features, unit_length, beside)
    others = ((_read(held, unit_length, beside) - mean) / scale).astype(np.float32)
    model = LogisticRegression(max_iter=1000, warm_start=True)
    rows = _weighted(scaled, labels)

    def predict(c: float) -> np.ndarray:
        scores = model.set_params(C=c).fit(*rows).decision_function(others)
        return softmax(scores_of_both(scores.reshape(len(others), -1).astype(np.float64)))

    return predict


def of_unit_length(features: np.ndarray) -> np.ndarray:
    """Features float64 `[N, d]`, each row divided by its length; rows of zeros stay."""
    rows = features.astype(np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


def _read(features: np.ndarray, unit_length: bool, beside: np.ndarray | None) -> np.ndarray:
    """Features `[N, d]` as they are fitted, `[N, d + K]` with K scores beside them."""
    rows = of_unit_length(features) if unit_length else features
    return rows if beside is None else np.hstack([rows, rows @ beside.T])


def _standardised(
    features: np.ndarray, unit_length: bool, beside: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and scale float64 `[d]` of features `[N, d]`, and the standardised features float32
    `[N, d]`; with K scores beside them `[d + K]` and `[N, d + K]`.

    The scale is the standard deviation of each dimension; at unit length the root of the mean
    variance, for all.
    """
    rows = _read(features, unit_length, beside)
    mean = rows.mean(axis=0, dtype=np.float64)
    scale = rows.std(axis=0, dtype=np.float64)
    if unit_length:
        scale = np.full_like(scale, np.sqrt(np.square(scale).mean()))
    # A dimension that is constant up to rounding carries nothing; dividing by its
    # rounding noise would make it carry that.
    scale = np.where(scale > 1e-7 * np.maximum(np.abs(mean), 1.0), scale, 1.0)
    return mean, scale, ((rows - mean) / scale).astype(np.float32)


def _weighted(
    features: np.ndarray, labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Rows, class indices and weights to fit on: of shares `[N, C]` each row once for each class
    that has one, weighted by it."""
    if labels.ndim == 1:
        return features, labels, None
    rows, classes = np.nonzero(labels)
    return features[rows], classes, labels[rows, classes]


def _with_c(
    features: np.ndarray,
    labels: np.ndarray,
    c: float,
    unit_length: bool,
    beside: np.ndarray | None,
) -> LogisticRegressionProbe:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    mean, scale, scaled = _standardised(features, unit_length, beside)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=c, max_iter=1000).fit(*_weighted(scaled, labels))
    coef, intercept = model.coef_.astype(np.float64), model.intercept_.astype(np.float64)
    if beside is not None:  # all dimensions have one scale, so the scores go into the weights
        width = features.shape[1]
        coef = coef[:, :width] + coef[:, width:] @ beside
        mean, scale = mean[:width], scale[:width]
    return LogisticRegressionProbe(mean, scale, coef, intercept, c, unit_length, beside)
