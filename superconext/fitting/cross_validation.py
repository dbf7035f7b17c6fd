"""Cross-validation of a run: every row predicted by models that were fitted without it.

Folds are stratified and copies of a text are in one (`data.splits.stratified_folds`); few rows
are dealt several times. Shared between the folds is what no label has a part in: the tokenizer,
the vocabulary and the word vectors or pretrained encoder, which were made from the texts of all
training rows and of the unlabelled file. Trained encoders, probes, n-grams and their weights are
each fold's own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from superconext.baselines.baseline import controls_of
from superconext.config.parameters import Config
from superconext.core.errors import ConfigError, DataError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.data.duplicates import keys_of
from superconext.data.splits import stratified_folds
from superconext.encoders.base import sentence_vectors
from superconext.encoders.indexer import WordIndexer
from superconext.fitting.controls import frozen_encoder, frozen_scores, run_text
from superconext.fitting.fit import fixed_threads, own_torch_state, train_members
from superconext.fitting.model import member_features
from superconext.fitting.preprocess import Prepared, preprocess
from superconext.fitting.time_budget import EpochBudget, OutOfTime, clock
from superconext.objectives.catalogue import objective_class
from superconext.probe import ADJUSTED, probe_class
from superconext.probe.base import log_shares
from superconext.probe.ensemble import (
    ALONE,
    ENSEMBLES,
    MEAN,
    POOL,
    Fold,
    OnFolds,
    Settings,
    out_of_folds,
)
from superconext.probe.logistic_regression import GRID, LogisticRegressionProbe, along_c
from superconext.probe.metrics import (
    by_script,
    collapse_report,
    metric_values,
    probability_metrics,
)
from superconext.probe.ngrams import NgramCounts, RatioFeatures, TfidfFeatures, ngram_tokenizer
from superconext.training.callbacks import Callback
from superconext.training.trainer import Trainer, decided
from superconext.vectors.table import mean_vectors

#: Folds where their number is not given.
DEFAULT_FOLDS = 5

#: Rows below which `train` cross-validates without being asked to.
FOLDED_BELOW = 300

#: Fits of a repeated cross-validation at most, and rows that it holds out in all, about.
MOST_FITS, HELD_IN_ALL = 20, 400

#: Models without an encoder that is trained, by name.
TFIDF, NGRAMS, VECTORS, PRETRAINED = "tfidf", "ngrams", "vectors", "pretrained"
ENCODER = "encoder"

#: Of which model of a cross-validation a baseline's figures are.
BASELINE_OF = {TFIDF: "tfidf_logreg", VECTORS: "vectors_logreg", PRETRAINED: "pretrained_logreg"}


def lacks_folds(config: Config) -> str:
    """What a configuration asks for that a cross-validation cannot give, as the end of an error
    message; empty where there is nothing."""
    asked = {
        "keep = 'best'": config.keep == "best",
        f"related = {config.related!r}": bool(config.related),
        "soft_labels": bool(config.soft_labels),
        f"objective = {config.objective!r}": not config.freeze
        and objective_class(config.objective).reads_dev_score,
    }
    return next((name for name, found in asked.items() if found), "")


def repeats(rows: int, folds: int, config: Config | None = None) -> int:
    """How often rows are dealt into folds: fewer rows more often, up to `MOST_FITS` fits; once if
    the configuration trains an encoder in each fold and nobody asked for folds."""
    if config is not None and config.cv is None and config.preset != "auto" and not config.freeze:
        return 1
    return max(1, min(MOST_FITS // folds, HELD_IN_ALL // rows))


@dataclass(frozen=True)
class OutOfFold:
    """What one recipe predicts for held-out rows.

    shares: of each fold the probabilities `[m, C]`. settings: for a fit on all rows.
    """

    folds: Sequence[Fold]
    shares: list[np.ndarray]
    settings: Settings

    def mean(self, classes: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows that were held out `[n]`, sorted, and the mean of their probabilities
        `[n, C]` over the repeats."""
        rows = np.unique(np.concatenate([fold.held for fold in self.folds]))
        total = np.zeros((len(rows), classes))
        for fold, some in zip(self.folds, self.shares, strict=True):
            total[np.searchsorted(rows, fold.held)] += some
        return rows, total / total.sum(axis=1, keepdims=True)

    def metrics(self, train: Dataset, classes: Sequence[str]) -> dict[str, Any]:
        """Metrics over all held-out rows, the mean over the repeats; and as `folds` the mean and
        standard deviation over the folds, each by itself."""
        of_repeats, of_folds = [], []
        for rows, shares in self._repeats():
            texts, labels, predicted = _picked(train, rows, shares, classes)
            metrics = probability_metrics(labels, shares, classes)
            of_repeats.append(by_script(metrics, texts, labels, predicted, classes, shares))
        for fold, some in zip(self.folds, self.shares, strict=True):
            _, labels, predicted = _picked(train, fold.held, some, classes)
            of_folds.append(metric_values(labels, predicted, classes, some))
        spread = {
            name: {
                "mean": statistics.fmean(fold[name] for fold in of_folds),
                "sd": statistics.stdev(fold[name] for fold in of_folds) if of_folds[1:] else None,
            }
            for name in of_folds[0]
        }
        count = {"count": len(self.folds), "repeats": len(of_repeats)}
        return {**_mean_of(of_repeats), "folds": {**count, **spread}}

    def scores(self, train: Dataset, classes: Sequence[str]) -> dict[str, Any]:
        """The scores of `metrics` over all held-out rows alone, without scripts and folds."""
        of_repeats = []
        for rows, shares in self._repeats():
            _, labels, predicted = _picked(train, rows, shares, classes)
            of_repeats.append(metric_values(labels, predicted, classes, shares))
        return _mean_of(of_repeats)

    def _repeats(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Of each repeat the held-out rows `[n]` and their probabilities `[n, C]`."""
        for repeat in sorted({fold.repeat for fold in self.folds}):
            pairs = [
                (fold.held, some)
                for fold, some in zip(self.folds, self.shares, strict=True)
                if fold.repeat == repeat
            ]
            rows, shares = zip(*pairs, strict=True)
            yield np.concatenate(rows), np.concatenate(shares)


def _picked(
    train: Dataset, rows: np.ndarray, shares: np.ndarray, classes: Sequence[str]
) -> tuple[list[str], list[str], list[str]]:
    """Texts, labels and predicted labels of some rows."""
    texts, labels = ([column[row] for row in rows] for column in (train.texts, train.labels))
    return texts, labels, [classes[k] for k in shares.argmax(axis=1)]


def _mean_of(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One document with the means of numbers that are in all of them."""
    mean: dict[str, Any] = {}
    for key, value in documents[0].items():
        values = [document[key] for document in documents if key in document]
        if isinstance(value, Mapping):
            mean[key] = _mean_of(values)
        else:
            mean[key] = value if len(set(values)) == 1 else statistics.fmean(values)
    return mean


class CrossValidation:
    """Models on folds of the training rows, all of them the same folds.

    Attributes:
        models: by name, those that were fitted.
        folds: the folds, in the order they are fitted in; `keep` leaves out the last ones.
    """

    def __init__(
        self,
        train: Dataset,
        config: Config,
        folds: int,
        progress: Progress,
        test_texts: Sequence[str] = (),
        classes: Sequence[str] | None = None,
        times: int | None = None,
        not_drawn: Sequence[str] = (),
    ) -> None:
        """Deal the rows, `times` times where that is given. Raises DataError where no row can be
        held out."""
        self.train, self.config, self.progress = train, config, progress
        self._test_texts, self._not_drawn = test_texts, not_drawn
        self.classes = list(classes or sorted(train.class_counts()))
        index = {name: k for k, name in enumerate(self.classes)}
        self.labels = np.array([index[label] for label in train.labels])
        self.folds = deal(train, folds, config.seed, times or repeats(len(train), folds, config))
        dealt = sum(fold.repeat == 0 for fold in self.folds)
        if config.cv and dealt < folds:
            progress.warn(f"cv: found texts for {dealt} folds, expected {folds}: {dealt} are used")
        self.models: dict[str, OnFolds] = {}
        self.collapsed = False  # of an encoder that was trained, on any fold
        self._features: dict[str, np.ndarray] = {}
        self._beside: dict[str, np.ndarray | None] = {}

    @cached_property
    def prepared(self) -> Prepared:
        """What the folds share, made when it is first asked for. Raises what `preprocess` does."""
        rows = self.train, None, self.classes, self.config, self.progress
        with own_torch_state(self.config.threads):
            return preprocess(*rows, self._test_texts, self._not_drawn)

    def make_ready(self, names: Iterable[str]) -> None:
        """Make what needs no fold for models without an encoder to train: word vectors, the
        pretrained encoder, sentence vectors. Else the first that asks for it does."""
        for name in names:
            self._frozen(name)

    def add(self, names: Iterable[str], deadline: float = math.inf) -> None:
        """Fit models that have no encoder to train, all on one fold after another. No fold after
        the first is begun once the deadline of `clock` has passed; it is left out."""
        kinds = {TFIDF: TfidfFeatures, NGRAMS: RatioFeatures}
        names = [name for name in names if name not in self.models]
        grids = {name: kinds[name].grid if name in kinds else GRID for name in names}
        self.models |= {name: OnFolds(grid) for name, grid in grids.items()}
        for name in names:
            if name not in kinds:
                self._frozen(name)
        with fixed_threads(1), self.progress.bar("fitting on folds") as advance:
            counts = None
            if kinds.keys() & set(names):
                read = self.config.normalize, self.config.bridge
                counts = NgramCounts(self.train.texts, ngram_tokenizer(self.train.texts, *read))
            for number, fold in enumerate(self.folds):
                if number and clock() > deadline:
                    self.keep(number)
                    return
                labels = self.labels[fold.fitted]
                for name in names:
                    if name in kinds:
                        assert counts is not None
                        own, others = counts.fold(fold.fitted, fold.held)
                        predict = kinds[name](own, labels).along_c(own, others)
                    else:
                        features = self._frozen(name)
                        own, others = features[fold.fitted], features[fold.held]
                        predict = along_c(own, labels, others, True, self._beside.get(name))
                    self.models[name].add(predict, self.labels[fold.held], len(self.labels))
                advance((number + 1) / len(self.folds))

    def add_encoder(
        self,
        deadline: float = math.inf,
        most: int | None = None,
        budget: EpochBudget | None = None,
    ) -> None:
        """Train the encoder of the configuration, again for each fold, or for the `most` first, and
        probe it. With a deadline of `clock` it is trained for as many epochs, and on as many folds,
        as leave the time of another fit, which may be none; `budget` has the epochs."""
        kind = probe_class(self.config.probe_features)
        grid = GRID if kind is LogisticRegressionProbe else (0.0,)
        model = self.models[ENCODER] = OnFolds(grid)
        budget = budget or EpochBudget()
        longest, _ = 0.0, self.prepared
        for number, fold in enumerate(self.folds[:most], 1):
            began = clock()
            if began + 2 * longest > deadline:
                return
            add = partial(self._add_trained, model, fold, number)
            # As long again may the fit on all rows take.
            latest = deadline if math.isinf(deadline) else (began + deadline) / 2
            try:
                budget.train(add, self.config, latest)
            except OutOfTime:
                return
            longest = max(longest, clock() - began)

    def _add_trained(
        self,
        model: OnFolds,
        fold: Fold,
        number: int,
        config: Config,
        callbacks: Sequence[Callback],
    ) -> None:
        rows = self.prepared.without(fold.held)
        config = decided(config, len(rows.labels))
        label = f"fold {number} of {len(self.folds)}"
        with own_torch_state(config.threads), self.progress.bar(label) as advance:
            done = _Share(advance, config.epochs)
            trained = train_members(rows, config, Progress(), [*callbacks, done], monitor=False)
            if trained.interrupted:
                raise KeyboardInterrupt
            features = member_features(trained.encoders, rows.train)
            texts = [self.train.texts[row] for row in fold.held]
            held = member_features(trained.encoders, self.prepared.indexer.store(texts))
        if not config.freeze:
            self.collapsed |= collapse_report(features)["collapsed"]
        kind = probe_class(config.probe_features)
        if kind is LogisticRegressionProbe:
            scores = self.prepared.emoji_scores(config)
            predict = along_c(features, rows.labels, held, config.freeze, scores)
        else:
            shares = kind.fit(features, rows.labels).probabilities(held)

            def predict(c: float) -> np.ndarray:
                return shares

        with fixed_threads(1):  # more of BLAS wait for each other longer than they work
            model.add(predict, self.labels[fold.held], len(self.labels))

    def keep(self, count: int) -> None:
        """Leave out all folds but the first so many, and a repeat that this would cut in two."""
        whole = sum(fold.repeat == 0 for fold in self.folds)
        self.folds = self.folds[: count if count < whole else count - count % whole]

    def held_out(
        self,
        models: Mapping[str, str],
        how: str,
        strength: float | None = None,
        calibrate: bool | None = None,
    ) -> OutOfFold:
        """What some of the models predict together; `models`: their names here, by what `Settings`
        calls them. strength: of the logit adjustment; calibrate: whether the encoder's probe, or
        what all of them predict, gets a temperature; None of both: as in the configuration.
        """
        strength = self.config.logit_adjustment if strength is None else strength
        some = {name: self.models[of] for name, of in models.items()}
        shift = strength * log_shares(self.labels, len(self.classes))
        calibrated: Iterable[str] = {MEAN: models, POOL: (POOL,), ALONE: (ENCODER,)}[how]
        if not (self.config.calibrate if calibrate is None else calibrate):
            calibrated = ()
        dealt = self.folds, self.labels
        return OutOfFold(self.folds, *out_of_folds(some, how, *dealt, [*calibrated], shift))

    def majority(self) -> OutOfFold:
        """The commonest class of all rows, with certainty: one answer, whatever the fold."""
        counts = np.bincount(self.labels, minlength=len(self.classes))
        certain = np.eye(len(self.classes))[counts.argmax()]
        shares = [np.tile(certain, (len(fold.held), 1)) for fold in self.folds]
        return OutOfFold(self.folds, shares, Settings({}, {}))

    def baselines(self) -> dict[str, dict[str, Any]]:
        """Metrics of the baselines that were fitted, by their names; again adjusted as the run
        is, where it is."""
        found = {"majority": self.majority()}
        for name, baseline in BASELINE_OF.items():
            if len(self.models.get(name, ())) >= len(self.folds):
                found[baseline] = self.held_out({name: name}, ALONE, 0.0)
                if self.config.logit_adjustment:
                    found[baseline + ADJUSTED] = self.held_out({name: name}, ALONE)
        return {name: one.metrics(self.train, self.classes) for name, one in found.items()}

    def _frozen(self, name: str) -> np.ndarray:
        """Features `[N, d]` of all training rows that no label has a part in."""
        if name not in self._features:
            run = run_text(self.prepared, self.config, {"train": self.train.texts})
            with fixed_threads(self.config.threads):
                store = run.store(self.train.texts)
                if name == PRETRAINED:
                    features = sentence_vectors(frozen_encoder(run, "mean"), store)
                    self._beside[name] = frozen_scores(run, "mean")
                else:
                    assert isinstance(run.indexer, WordIndexer) and run.indexer.table is not None
                    features = mean_vectors(store, run.indexer.table)
                    self._beside[name] = run.indexer.emoji_scores
            self._features[name] = features
        return self._features[name]


class _Share(Callback):
    """Tells a bar how far the training of a fold has come."""

    def __init__(self, advance: Callable[[float], None], epochs: int | None) -> None:
        self.advance, self.epochs = advance, epochs or 1

    def on_epoch_end(self, trainer: Trainer, record: dict[str, Any]) -> None:
        self.advance(min(trainer.epoch / self.epochs, 1.0))


def deal(train: Dataset, folds: int, seed: int, times: int = 1) -> list[Fold]:
    """The folds of the training rows, repeats one after another. Raises DataError where not even
    two folds can hold out a row."""
    every, found = np.arange(len(train)), []
    for repeat in range(times):
        parts = stratified_folds(train.texts, train.labels, folds, seed, repeat)
        if len(parts) < 2:
            raise DataError(
                f"{train.source or 'texts'}: found {len(train)} rows, "
                f"{len(set(keys_of(train.texts)))} different texts, of {len(set(train.labels))} "
                "classes, too few to hold any out; expected more texts of some class: add rows, or "
                "choose on a dev file"
            )
        for held in parts:
            found.append(Fold(repeat, np.setdiff1d(every, held, assume_unique=True), held))
    return found


@dataclass(frozen=True)
class CrossValidated:
    """A recipe on the folds.

    encoder_alone: its probe alone, where n-grams predict with it.
    """

    recipe: OutOfFold
    encoder_alone: OutOfFold | None
    baselines: dict[str, dict[str, Any]]


def cross_validate(cv: CrossValidation) -> CrossValidated:
    """The recipe of the configuration on all folds, and the baselines where it asks for them."""
    cv.add_encoder()
    models, how = {ENCODER: ENCODER}, ALONE
    if cv.config.probe_features in ENSEMBLES:
        how = MEAN if cv.config.probe_features == "encoder+tfidf" else POOL
        models |= {name: name for name in ((TFIDF,) if how == MEAN else (TFIDF, NGRAMS))}
    wanted = {name for name in models if name != ENCODER}
    if cv.config.baselines:
        controls = controls_of(cv.config)
        wanted |= {name for name, of in BASELINE_OF.items() if name == TFIDF or of in controls}
    cv.add(sorted(wanted))
    alone = None
    if how != ALONE:  # the probe of a pool has no temperature of its own
        alone = cv.held_out(
            {ENCODER: ENCODER}, ALONE, calibrate=cv.config.calibrate and how != POOL
        )
    baselines = cv.baselines() if cv.config.baselines else {}
    return CrossValidated(cv.held_out(models, how), alone, baselines)


def check_folds(config: Config) -> None:
    """Raise ConfigError for a number of folds that cannot be, and for a configuration that cannot
    be cross-validated."""
    if config.cv == 1:
        raise ConfigError("cv = 1: expected at least 2 folds, or 0 for none; change it")
    lack = lacks_folds(config) if config.cv else ""
    if lack:
        raise ConfigError(
            f"cv = {config.cv} with {lack}, which cannot be cross-validated; expected one of them: "
            "leave one out"
        )


def frozen(config: Config, name: str) -> Config:
    """The configuration of the model `name` that no label has trained: `PRETRAINED`, its states
    averaged, or `VECTORS`, the mean of the word vectors, a pretrained encoder's where there is
    one."""
    config = replace(config, freeze=True, members=1, finetune_epochs=0, pooling="mean")
    if name == PRETRAINED:
        return replace(config, layers=1)
    return replace(config, encoder="mean", subwords=False, options=None, objective="superloss")
