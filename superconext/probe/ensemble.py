"""Ensembles of the encoder's probe and n-gram models, by the value of `probe_features`.

`encoder+tfidf` predicts by the mean of the probe's probabilities and those of TF-IDF and a
logistic regression. The mean of two calibrated models is less sure than it is right, so `calibrate`
divides the scores of both by one more temperature, which fits the mean.

`encoder+ngrams` pools three models: the probe, TF-IDF, and character n-grams weighted by log-count
ratios. Their weights are fitted on dev, the only rows that the encoder has not learned from; the
dev rows themselves are scored by weights fitted on other dev rows (`cross_weighted`), so that a
model of noise does not raise dev.

The features of all of them under one logistic regression do not work: the encoder has
memorised its training rows, there its features alone separate the classes, and the regression
never learns to use anything else. So each model is fitted by itself.

The pool is a log-linear one: p(c) is proportional to the product of p_m(c) ** w_m over the
models m (Genest and Zidek, 1986, "Combining probability distributions"; Heskes, 1998,
"Selecting weighting factors in logarithmic opinion pools"). A weight is a temperature as well,
so that a model that is too sure of itself, as one that has memorised its training rows, is
scaled down, and one that adds nothing gets 0. What `logit_adjustment` then subtracts makes the
pool less sure again, so `calibrate` divides the scores of the pool, after that, by a temperature.

In a cross-validation a model is kept with the probabilities it gives to held-out rows for every C
that was tried. C is the one with the lowest log loss over folds, temperatures and the weights of a
pool are fitted on held-out rows. What is reported of a fold was chosen, scaled and weighed on the
rows of the other folds of the same repeat, so no row is scored by a C, a temperature or weights
that were fitted on it. (The models of
those other folds were; to keep that out too, all would have to be fitted again for each pair of
folds.)
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from superconext.core.arrays import read_arrays, write_arrays
from superconext.probe.base import (
    FEWEST_DEV_ROWS,
    fit_temperature,
    log_odds,
    log_shares,
    log_softmax,
    shifted,
    softmax,
)
from superconext.probe.logistic_regression import MANY_ROWS, Predictor, log_loss, loss_path
from superconext.probe.ngrams import FILES as TFIDF_FILES
from superconext.probe.ngrams import (
    LogCountRatios,
    RatioFeatures,
    TfidfFeatures,
    TfidfModel,
    decisions,
    fit_both,
    fit_tfidf_model,
    ngram_tokenizer,
    refit_ngrams,
)

if TYPE_CHECKING:
    from superconext.config.parameters import Config

#: The models of a pool in the order of their weights; the encoder's is the probe.
MODELS = ("encoder", "tfidf", "ngrams")


def predicting(settings: Mapping[str, Any]) -> list[str]:
    """Which of `MODELS` have weight in the pool of these settings (or metrics, which have them):
    the encoder where there is no pool."""
    weights = settings.get("pool_weights")
    if not isinstance(weights, Mapping) or not weights:
        return ["encoder"]
    return [name for name in MODELS if weights.get(name)]


#: Strength of the prior that all weights are equal, as a number of dev rows, about.
PRIOR = 1.0

#: Parts of the dev rows, each scored by the weights that the others fit.
WEIGHT_FOLDS = 5


class Ensemble(Protocol):
    """N-gram models of the text itself, and how they predict together with the probe.

    tfidf: the TF-IDF model among them.
    title: what tables call them.
    files: names of what `save` writes.
    run_format: of run folders that hold it; earlier versions refuse those.
    """

    title: ClassVar[str]
    files: ClassVar[tuple[str, ...]]
    run_format: ClassVar[int]

    @property
    def tfidf(self) -> TfidfModel: ...

    @property
    def settings(self) -> dict[str, Any]:
        """What was chosen on dev, by the names `metrics.json` has."""

    def combined(self, texts: Sequence[str], probe: np.ndarray) -> np.ndarray:
        """Probabilities `[N, C]` to predict by, given the probe's `[N, C]` of N texts."""

    def save(self, folder: Path) -> None:
        """Write its `files` into an existing folder; nothing is pickled."""


@dataclass(frozen=True)
class DevRows:
    """Dev rows of a class that train has: texts `[N]`, class indices `[N]`, the probe's
    probabilities `[N, C]`."""

    texts: Sequence[str]
    labels: np.ndarray
    probe: np.ndarray


@dataclass(frozen=True, eq=False)
class MeanWithTfidf:
    """The mean of the probe's probabilities and TF-IDF's.

    temperature: what TF-IDF's scores were divided by in all, where they were calibrated.
    """

    tfidf: TfidfModel
    temperature: float | None = None

    title: ClassVar[str] = "TF-IDF"
    files: ClassVar[tuple[str, ...]] = TFIDF_FILES
    run_format: ClassVar[int] = 7

    def combined(self, texts: Sequence[str], probe: np.ndarray) -> np.ndarray:
        mean: np.ndarray = (probe + self.tfidf.probabilities(texts)) / 2
        return mean

    def calibrated(
        self, texts: Sequence[str], probe: np.ndarray, labels: np.ndarray
    ) -> tuple[MeanWithTfidf, float]:
        """The ensemble with the temperature of the mean in TF-IDF's scores, and that temperature,
        for the probe's. texts, probe, labels: as in `DevRows`, the probe with a temperature of its
        own."""
        by = fit_temperature([_logs(probe), _logs(self.tfidf.probabilities(texts))], labels)
        whole = by * (self.temperature or 1.0)
        return MeanWithTfidf(_cooled(self.tfidf, by), whole), by

    @property
    def settings(self) -> dict[str, Any]:
        of_tfidf = {} if self.temperature is None else {"tfidf_temperature": self.temperature}
        return {"tfidf_C": self.tfidf.c, **of_tfidf}

    def save(self, folder: Path) -> None:
        self.tfidf.save(folder)

    @classmethod
    def load(cls, folder: Path) -> MeanWithTfidf:
        return cls(TfidfModel.load(folder))

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        labels: np.ndarray,
        dev: DevRows | None,
        config: Config,
        learned: np.ndarray | None = None,
    ) -> tuple[MeanWithTfidf, None]:
        """The ensemble; nothing in it is fitted on dev but the temperature that `calibrate` gives
        TF-IDF by itself; `calibrated` then fits that of the mean.

        texts, labels: that have a label, `[N]`. learned: not read here.
        """
        shift = config.logit_adjustment * log_odds(labels, int(labels.max()) + 1)
        held = (None, None) if dev is None else (dev.texts, dev.labels)
        cut = ngram_tokenizer(texts, config.normalize, config.bridge)
        model = fit_tfidf_model(texts, labels, held[0], held[1], cut)
        model = replace(model, intercept=model.intercept - shift)
        if dev is None or not config.calibrate:
            return cls(model), None
        by = fit_temperature(model.decision(dev.texts), dev.labels)
        return cls(_cooled(model, by), by), None

    @classmethod
    def refit(
        cls,
        texts: Sequence[str],
        labels: np.ndarray,
        settings: Settings,
        config: Config,
    ) -> MeanWithTfidf:
        """The ensemble with the C and temperature of `tfidf` that a cross-validation has chosen."""
        cut = ngram_tokenizer(texts, config.normalize, config.bridge)
        (model,) = refit_ngrams([TfidfFeatures], texts, labels, [settings.c["tfidf"]], cut)
        assert isinstance(model, TfidfModel)
        shift = config.logit_adjustment * log_odds(labels, int(labels.max()) + 1)
        model = replace(model, intercept=model.intercept - shift)
        by = settings.temperatures.get("tfidf")
        return cls(model if by is None else _cooled(model, by), by)


def _cooled(model: TfidfModel, by: float) -> TfidfModel:
    """The model with its scores divided by a temperature."""
    return replace(model, coef=model.coef / by, intercept=model.intercept / by)


@dataclass(frozen=True, eq=False)
class PoolWithNgrams:
    """The probe, TF-IDF and character n-grams in one log-linear pool.

    weights: float64 `[3]`, of the three in this order.
    shift: float64 `[C]`, what `logit_adjustment` subtracts from the scores of n-grams, by the
        labels that they have learned from.
    temperature: what the scores were then divided by, where they were calibrated.
    probe_shift: the same of the probe, which has learned from soft labels too; None: as `shift`.
        The probe's scores come without it already; it is added back before the probe is weighted.
    """

    tfidf: TfidfModel
    ratios: LogCountRatios
    weights: np.ndarray
    shift: np.ndarray
    temperature: float | None = None
    probe_shift: np.ndarray | None = None

    title: ClassVar[str] = "n-grams"
    files: ClassVar[tuple[str, ...]] = (*TFIDF_FILES, "ngrams.safetensors")
    run_format: ClassVar[int] = 7

    @property
    def of_probe(self) -> np.ndarray:
        return self.shift if self.probe_shift is None else self.probe_shift

    @property
    def whole_shift(self) -> np.ndarray:
        """What is subtracted from the scores of the pool `[C]`: the mean of the models' shifts by
        their weights."""
        total, encoder = self.weights.sum(), self.weights[0]
        share = encoder / total if total > 0 else 0.0
        mean: np.ndarray = self.shift + share * (self.of_probe - self.shift)
        return mean

    def combined(self, texts: Sequence[str], probe: np.ndarray) -> np.ndarray:
        logs = _log_probabilities(self.tfidf, self.ratios, texts, probe, self.of_probe)
        return softmax((pooled(logs, self.weights) - self.whole_shift) / (self.temperature or 1.0))

    def calibrated(
        self, held_out: np.ndarray, labels: np.ndarray
    ) -> tuple[PoolWithNgrams, np.ndarray]:
        """The pool with the temperature that fits the probabilities `[M, C]` of rows it was not
        fitted on and their class indices `[M]`, and those probabilities with it."""
        by = fit_temperature(_logs(held_out), labels)
        return replace(self, temperature=by), softmax(_logs(held_out) / by)

    @property
    def settings(self) -> dict[str, Any]:
        weights = dict(zip(MODELS, self.weights.tolist(), strict=True))
        of_pool = {} if self.temperature is None else {"pool_temperature": self.temperature}
        of_models = {"tfidf_C": self.tfidf.c, "ngrams_C": self.ratios.c}
        return {**of_models, "pool_weights": weights, **of_pool}

    def save(self, folder: Path) -> None:
        self.tfidf.save(folder)  # with the n-grams that both have
        ratios = self.ratios
        arrays = {
            "ratio": ratios.ratio,
            "coef": ratios.coef,
            "intercept": ratios.intercept,
            "c": np.array([ratios.c]),
            "weights": self.weights,
            "shift": self.shift,
        }
        if self.temperature is not None:
            arrays["temperature"] = np.array([self.temperature])
        if self.probe_shift is not None:
            arrays["probe_shift"] = self.probe_shift
        write_arrays(folder / self.files[-1], arrays)

    @classmethod
    def load(cls, folder: Path) -> PoolWithNgrams:
        """What `save` wrote. Raises ValueError where the files are not of one model."""
        tfidf = TfidfModel.load(folder)
        arrays = read_arrays(folder / cls.files[-1])
        if any(x.dtype.kind != "f" or not np.isfinite(x).all() for x in arrays.values()):
            raise ValueError(f"{cls.files[-1]} holds what are no finite numbers")
        ratio, coef, intercept = (arrays[name] for name in ("ratio", "coef", "intercept"))
        machines, classes = len(tfidf.intercept), len(arrays["shift"])
        if (
            ratio.shape != (machines, len(tfidf.characters))
            or coef.shape != ratio.shape
            or intercept.shape != (machines,)
            or arrays["weights"].shape != (3,)
            or classes != max(machines, 2)
            or not (arrays.get("temperature", np.ones(1)) > 0).all()
            or arrays.get("probe_shift", arrays["shift"]).shape != (classes,)
        ):
            raise ValueError(f"{cls.files[-1]} is not of the model in {', '.join(TFIDF_FILES)}")
        weights = ratio, coef, intercept, float(arrays["c"][0])
        ratios = LogCountRatios(tfidf.tokenizer, tfidf.characters, *weights)
        by = float(arrays["temperature"][0]) if "temperature" in arrays else None
        shifts = arrays["shift"], by, arrays.get("probe_shift")
        return cls(tfidf, ratios, arrays["weights"], *shifts)

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        labels: np.ndarray,
        dev: DevRows | None,
        config: Config,
        learned: np.ndarray | None = None,
    ) -> tuple[PoolWithNgrams, np.ndarray | None]:
        """The pool, and the probabilities `[M, C]` of the dev rows, each by weights fitted on
        other dev rows."""
        classes = int(labels.max()) + 1
        shift = config.logit_adjustment * log_shares(labels, classes)
        own = None if learned is None else config.logit_adjustment * log_shares(learned, classes)
        held = (None, None) if dev is None else (dev.texts, dev.labels)
        cut = ngram_tokenizer(texts, config.normalize, config.bridge)
        tfidf, ratios, _ = fit_both(texts, labels, held[0], held[1], tokenizer=cut)
        if dev is None:
            return cls(tfidf, ratios, np.full(3, 1 / 3), shift, None, own), None
        back = shift if own is None else own
        logs = _log_probabilities(tfidf, ratios, dev.texts, dev.probe, back)
        pool = cls(tfidf, ratios, fit_weights(logs, dev.labels), shift, None, own)
        held_out = softmax(cross_weighted(logs, dev.labels) - pool.whole_shift)
        return pool.calibrated(held_out, dev.labels) if config.calibrate else (pool, held_out)

    @classmethod
    def refit(
        cls,
        texts: Sequence[str],
        labels: np.ndarray,
        settings: Settings,
        config: Config,
    ) -> PoolWithNgrams:
        """The pool with the C and weights, by `MODELS`, and the temperature that a cross-validation
        has chosen; the weight of a model that was not part of it is 0."""
        kinds, cs = [TfidfFeatures, RatioFeatures], [settings.c["tfidf"], settings.c["ngrams"]]
        cut = ngram_tokenizer(texts, config.normalize, config.bridge)
        tfidf, ratios = refit_ngrams(kinds, texts, labels, cs, cut)
        assert isinstance(tfidf, TfidfModel) and isinstance(ratios, LogCountRatios)
        shift = config.logit_adjustment * log_shares(labels, int(labels.max()) + 1)
        weights = np.array([settings.weights.get(name, 0.0) for name in MODELS])
        return cls(tfidf, ratios, weights, shift, settings.temperatures.get(POOL))


def _log_probabilities(
    tfidf: TfidfModel,
    ratios: LogCountRatios,
    texts: Sequence[str],
    probe: np.ndarray,
    shift: np.ndarray,
) -> list[np.ndarray]:
    """Log probabilities `[N, C]` of the probe without its shift, of TF-IDF and of n-grams."""
    of_probe = np.log(np.maximum(probe, np.finfo(np.float64).tiny)) + shift
    scores = (of_probe, *decisions([tfidf, ratios], texts))
    return [log_softmax(one) for one in scores]


def pooled(logs: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Scores `[N, C]`, up to a constant a row, of the pool of M models' log probabilities."""
    scores: np.ndarray = np.tensordot(weights, np.stack(logs), axes=1)
    return scores


def fit_weights(logs: Sequence[np.ndarray], labels: np.ndarray) -> np.ndarray:
    """The weights `[M]`, none below 0, that make the labels likeliest.

    What is minimised is the summed log loss plus `PRIOR` times the squared distance to
    weights of 1 / M, which are also the answer where there are fewer than `FEWEST_DEV_ROWS`
    rows. It is convex, so there is one minimum.

    Args:
        logs: of each model, log probabilities `[N, C]`.
        labels: class indices `[N]`; rows with -1, a class training never saw, are left out.
    """
    from scipy.optimize import minimize

    known = labels >= 0
    each, truth = np.stack([one[known] for one in logs]), labels[known]
    equal = np.full(len(logs), 1 / len(logs))
    if len(truth) < FEWEST_DEV_ROWS:
        return equal
    rows = np.arange(len(truth))

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = np.tensordot(weights, each, axes=1)
        offset = weights - equal
        value = PRIOR * (offset @ offset) - log_softmax(scores)[rows, truth].sum()
        error = softmax(scores)
        error[rows, truth] -= 1
        return float(value), 2 * PRIOR * offset + (each * error).sum(axis=(1, 2))

    bounds = [(0.0, None)] * len(logs)
    fitted: np.ndarray = minimize(loss, equal, jac=True, method="L-BFGS-B", bounds=bounds).x
    return fitted


def cross_weighted(logs: Sequence[np.ndarray], labels: np.ndarray) -> np.ndarray:
    """Scores `[N, C]` of the pool, each row's by weights fitted on the other folds' rows.

    Args:
        logs, labels: as in `fit_weights`.
    """
    from sklearn.model_selection import KFold

    scores = np.empty_like(logs[0])
    if len(labels) < WEIGHT_FOLDS:
        return pooled(logs, np.full(len(logs), 1 / len(logs)))
    for fitted, held in KFold(WEIGHT_FOLDS, shuffle=True, random_state=0).split(labels):
        weights = fit_weights([one[fitted] for one in logs], labels[fitted])
        scores[held] = pooled([one[held] for one in logs], weights)
    return scores


#: By the value of `probe_features`.
ENSEMBLES: Mapping[str, type[MeanWithTfidf] | type[PoolWithNgrams]] = {
    "encoder+tfidf": MeanWithTfidf,
    "encoder+ngrams": PoolWithNgrams,
}


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
    """What was chosen on held-out rows: of each model C, in a pool its weight, and of those that
    were calibrated, or of the `POOL` as a whole, the temperature."""

    c: Mapping[str, float]
    weights: Mapping[str, float]
    temperatures: Mapping[str, float] = field(default_factory=dict)


#: Of no logit adjustment.
NO_SHIFT = np.zeros(1)

#: Of each model by name the place of its C in the grid and its temperature, None of one that keeps
#: its own scores.
_Chosen = dict[str, tuple[int, float | None]]


def out_of_folds(
    models: Mapping[str, OnFolds],
    how: str,
    folds: Sequence[Fold],
    labels: np.ndarray,
    calibrated: Collection[str] = (),
    shift: np.ndarray = NO_SHIFT,
) -> tuple[list[np.ndarray], Settings]:
    """Of each fold the probabilities `[m, C]` of its held-out rows, and the settings for a fit on
    all rows, which all folds have chosen together.

    With a single fold in a repeat C is chosen on it, weights are fitted on its other rows, and no
    temperature is.

    Args:
        models: by name, each on (at least) these folds. labels: class indices `[N]` of all rows.
        calibrated: models whose scores are divided by the temperature that fits held-out rows,
            all models of a mean by another that fits the mean as well; `POOL` for those of the
            pool.
        shift: `[C]`, what is subtracted from the scores of each model, of a pool from those of all
            together, before they are divided by a temperature.
    """
    truth = [labels[fold.held] for fold in folds]

    def right(some: Sequence[int]) -> np.ndarray:
        return np.concatenate([truth[fold] for fold in some])

    def adjusted(model: OnFolds, place: int, some: Sequence[int]) -> np.ndarray:
        return np.concatenate([_logs(model.shares(fold, place)) - shift for fold in some])

    def of_mean(chosen: _Chosen, some: Sequence[int]) -> _Chosen:
        """With the temperature of the mean in that of each model."""
        every = [adjusted(models[name], at, some) / by for name, (at, by) in chosen.items() if by]
        if how != MEAN or len(every) < len(models):
            return chosen
        joint = fit_temperature(every, right(some))
        return {name: (at, by and by * joint) for name, (at, by) in chosen.items()}

    def choose(some: Sequence[int], own: bool = True) -> _Chosen:
        """own: whether the temperature of these folds is wanted."""
        chosen: _Chosen = {}
        for name, model in models.items():
            at, scaled = model.best(some), own and name in calibrated
            by = fit_temperature(adjusted(model, at, some), right(some)) if scaled else None
            chosen[name] = at, by
        return of_mean(chosen, some)

    def shares(chosen: _Chosen, fold: int) -> list[np.ndarray]:
        found = []
        for name, (place, by) in chosen.items():
            one = models[name].shares(fold, place)
            found.append(one if by is None else softmax((_logs(one) - shift) / by + shift))
        return found

    def less(one: np.ndarray) -> np.ndarray:
        return shifted(one, shift) if np.any(shift) else one

    def logs(chosen: _Chosen, fold: int) -> list[np.ndarray]:
        return [*map(_logs, shares(chosen, fold))]

    def weigh(chosen: _Chosen, some: Sequence[int]) -> np.ndarray:
        by_model = zip(*(logs(chosen, fold) for fold in some), strict=True)
        joined = [np.concatenate(parts) for parts in by_model]
        return fit_weights(joined, right(some))

    def scores(chosen: _Chosen, fold: int, weights: np.ndarray) -> np.ndarray:
        return pooled(logs(chosen, fold), weights) - shift

    def of_pool(chosen: _Chosen, some: Sequence[int], weights: np.ndarray) -> float | None:
        if POOL not in calibrated:
            return None
        every = np.concatenate([scores(chosen, fold, weights) for fold in some])
        return fit_temperature(every, right(some))

    found = []
    for at, fold in enumerate(folds):
        others = [k for k, one in enumerate(folds) if one.repeat == fold.repeat and k != at]
        chosen = choose(others or [at], bool(others))
        if how != POOL:
            found.append(np.mean([*map(less, shares(chosen, at))], axis=0))
        elif others:
            weights = weigh(chosen, others)
            by = of_pool(chosen, others, weights) or 1.0
            found.append(softmax(scores(chosen, at, weights) / by))
        else:
            found.append(less(softmax(cross_weighted(logs(chosen, at), truth[at]))))
    everywhere = range(len(folds))
    chosen = choose(everywhere)
    temperatures = {name: by for name, (_, by) in chosen.items()}
    by_model: dict[str, float] = {}
    if how == POOL:
        weights = weigh(chosen, everywhere)
        by_model = dict(zip(models, weights.tolist(), strict=True))
        temperatures[POOL] = of_pool(chosen, everywhere, weights)
    return found, Settings(
        {name: models[name].grid[at] for name, (at, _) in chosen.items()},
        by_model,
        {name: by for name, by in temperatures.items() if by is not None},
    )


def _logs(shares: np.ndarray) -> np.ndarray:
    """Logarithms of probabilities, finite where one is 0."""
    logs: np.ndarray = np.log(np.maximum(shares, np.finfo(np.float64).tiny))
    return logs


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
