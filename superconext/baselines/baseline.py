"""Base class of the baselines, the majority class, and the baselines of a run.

A baseline is registered in `superconext.baselines.BASELINES` and named among the systems of a
comparison: `superconext compare TRAIN --objectives superloss,my_baseline`.
"""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from superconext.baselines import BASELINES, CONTROLS
from superconext.core.errors import ConfigError
from superconext.core.registry import expect, own_fault
from superconext.probe import ADJUSTED
from superconext.probe.base import log_shares, shifted, softmax
from superconext.probe.metrics import by_script, classification_metrics, probabilities_needed

if TYPE_CHECKING:
    from superconext.config.parameters import Config
    from superconext.data.token_store import TokenStore
    from superconext.encoders.indexer import TextIndexer
    from superconext.text.tokenize import Pieces

Split = tuple[Sequence[str], Sequence[str]]
#: Begins the modules of this package, whose answers need no check.
_OURS = "superconext."


@dataclass(frozen=True)
class RunText:
    """The text side of a run before training, which baselines with `needs_run` read.

    config: of the run; its `init` is the folder of the pretrained encoder that the run starts
        from, None where there is none.
    indexer: texts to token ids, with the word vectors that the run starts from.
    tokenised: lists of texts that are cut into pieces already, each with its pieces.
    """

    config: Config
    indexer: TextIndexer
    tokenised: Sequence[tuple[Sequence[str], Pieces]] = field(default=())

    def store(self, texts: Sequence[str]) -> TokenStore:
        """Token ids of texts `[N]`; a list that is among `tokenised` is not tokenised again."""
        for known, pieces in self.tokenised:
            if known is texts:
                return self.indexer.store(pieces)
        return self.indexer.store(texts)


class Baseline(ABC):
    """A text classifier; made without arguments, then fitted.

    seeded: whether another seed gives another model on the same rows; then a comparison fits it
        with every seed.
    needs_run: whether it reads the text as a run does, through `run`; then `lacks` says which
        runs it cannot be fitted beside, and in a comparison it takes parameters of `train`.
    run: what it shares with the run, set before `fit` where `needs_run` holds.
    config: of the run it is compared with, set before `fit`: texts are normalised alike.
    settings: what `fit` chose, by name; part of the results.
    name, seconds: set by `fit_baseline`: of the registry, and the wall time of the fit.
    """

    seeded: ClassVar[bool] = False
    needs_run: ClassVar[bool] = False
    run: RunText | None = None
    config: Config | None = None
    name: str = ""
    seconds: float = 0.0

    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}

    @classmethod  # noqa: B027
    def check(cls) -> None:
        """Raise MissingExtraError where a package that is needed is not installed."""

    @classmethod
    def lacks(cls, config: Config) -> str:
        """What a run of this configuration lacks for the baseline, as the end of an error
        message; empty where it has everything."""
        return ""

    @abstractmethod
    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> Baseline:
        """Fit on the rows of `train`, choose settings on those of `dev`; returns self.

        Args:
            train, dev: (texts, labels) of N and of M rows; no dev rows, no choice.
        """

    @abstractmethod
    def predict(self, texts: Sequence[str]) -> list[str]:
        """The label of each of N texts."""

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray | None:
        """Class probabilities `[N, C]`, columns in the sorted order of the training labels; None
        where the baseline has none."""
        return None


class AdjustedBaseline(Baseline):
    """A fitted baseline whose probabilities are adjusted as those of a run are.

    names: the classes, sorted. labels: of the training rows, class indices `[N]`.
    strength: what of the log of each class's share is subtracted from its log probability.
    """

    def __init__(
        self, baseline: Baseline, names: Sequence[str], labels: np.ndarray, strength: float
    ) -> None:
        self.baseline, self.names = baseline, names
        self.shift = strength * log_shares(labels, len(names))
        self.settings = {**baseline.settings, "logit_adjustment": strength}

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> AdjustedBaseline:
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [self.names[k] for k in self.predict_proba(texts).argmax(axis=1)]

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        shares = predicted_shares(self.baseline, texts, self.names)
        expected = "probabilities, or no such method"
        expect(shares is not None, self.baseline, "predict_proba", shares, expected)
        assert shares is not None
        return shifted(shares, self.shift)


def adjusted_baseline(baseline: Baseline, train: Split, config: Config) -> Baseline:
    """A fitted baseline, adjusted by `logit_adjustment` as a run of this configuration is; itself
    where it gives no probabilities."""
    silent = type(baseline).predict_proba is Baseline.predict_proba
    if silent or not config.logit_adjustment:
        return baseline
    names, labels, _ = class_indices(train, None)
    return AdjustedBaseline(baseline, names, labels, config.logit_adjustment)


def fit_baseline(
    name: str,
    train: Split,
    dev: Split | None,
    seed: int = 0,
    run: RunText | None = None,
    config: Config | None = None,
    adjust: bool = True,
) -> Baseline:
    """A fitted baseline by its name.

    Args:
        run: for a baseline with `needs_run`.
        config: of the run it is compared with, whose texts are normalised alike; None: as `auto`.
        adjust: whether its probabilities are adjusted as those of that run, by
            `adjusted_baseline`.

    Raises ConfigError for a name that is not registered and for a baseline that needs a run where
    none is given or the run lacks something, and what fitting raises.
    """
    kind = BASELINES.get(name)
    if kind.needs_run:
        if run is None:
            raise ConfigError(
                f"baseline {name}: found no run; expected one, whose word vectors or encoder it "
                "reads: fit it in train, compare or fewshot"
            )
        check_run(name, run.config)
    baseline = kind()
    baseline.run, baseline.config = run, config
    started = time.perf_counter()
    # Lists of its own: what it does to them is nobody else's.
    own = list(train[0]), list(train[1])
    baseline.fit(own, dev and (list(dev[0]), list(dev[1])), seed)
    _check_settings(baseline)
    if config is not None and adjust:
        baseline = adjusted_baseline(baseline, train, config)
    baseline.name, baseline.seconds = name, time.perf_counter() - started
    return baseline


#: What the line of a fit has beside the settings of its baseline.
_RECORDED = frozenset(
    (
        *("system", "objective", "parameters", "dataset", "source", "seed", "split", "rows"),
        *("dev", "test", "predictions", "truth", "native", "by_script", "folds", "failed"),
        *("seconds", "config", "metric_files", "shots", "overlap", "collapsed", "steps"),
    )
)


def _check_settings(baseline: Baseline) -> None:
    """Raise ConfigError unless the settings can stand in a line of results."""
    settings, expected = baseline.settings, "names and what JSON can hold"
    expect(isinstance(settings, dict), baseline, "settings", settings, f"a dict of {expected}")
    for name, value in settings.items():
        if name in _RECORDED:
            raise own_fault(baseline, f"a setting named {name!r}", "another name: results have it")
        try:
            json.dumps({name: value}, allow_nan=False)
        except (TypeError, ValueError):
            raise own_fault(
                baseline, f"the setting {name!r} of type {type(value).__name__}", expected
            ) from None


def predicted_shares(
    baseline: Baseline, texts: Sequence[str], classes: Sequence[str]
) -> np.ndarray | None:
    """The probabilities `[N, C]` that a fitted baseline predicts, columns as the classes; None
    where it has none. Raises ConfigError for anything else."""
    shares = baseline.predict_proba(list(texts))
    if shares is None or type(baseline).__module__.startswith(_OURS):
        return shares
    shape = len(texts), len(classes)
    right = isinstance(shares, np.ndarray) and shares.shape == shape
    expect(right, baseline, "predict_proba", shares, f"an array of shape {shape}")
    # What is NaN is not right either.
    if not (shares >= 0).all() or not (np.abs(shares.sum(axis=1) - 1) < 1e-3).all():
        raise own_fault(
            baseline,
            "numbers that are no shares, returned by predict_proba",
            "shares of the classes in each row, with a sum of 1",
        )
    return shares


def predicted_labels(baseline: Baseline, texts: Sequence[str], classes: Sequence[str]) -> list[str]:
    """What a fitted baseline predicts. Raises ConfigError unless that is a class for each text."""
    labels = baseline.predict(list(texts))
    right = isinstance(labels, (list, tuple, np.ndarray)) and len(labels) == len(texts)
    expect(right, baseline, "predict", labels, f"a list of {len(texts)} labels, one for each text")
    known = set(classes)
    for label in labels:
        if not isinstance(label, str) or label not in known:
            raise own_fault(
                baseline,
                f"the label {label!r:.80}, returned by predict",
                f"labels of the training rows, such as {classes[0]!r}",
            )
    return list(labels)


def check_run(name: str, config: Config) -> None:
    """Raise ConfigError where a run of this configuration lacks what the baseline reads."""
    lacks = BASELINES.get(name).lacks(config)
    if lacks:
        raise ConfigError(f"baseline {name}: {lacks}")


def controls_of(config: Config) -> tuple[str, ...]:
    """The controls that can be fitted beside a run of this configuration, by name."""
    return tuple(name for name in CONTROLS if not BASELINES.get(name).lacks(config))


def class_indices(
    train: Split, dev: Split | None
) -> tuple[list[str], np.ndarray, np.ndarray | None]:
    """The classes, sorted, and the labels of both splits as class indices `[N]` and `[M]`; -1 for
    a class that train lacks."""
    names = sorted(set(train[1]))
    index = {name: k for k, name in enumerate(names)}
    labels = np.array([index[label] for label in train[1]])
    return names, labels, dev and np.array([index.get(label, -1) for label in dev[1]])


class ProbabilisticBaseline(Baseline):
    """A baseline that predicts the class with the highest of its scores.

    names: the classes, sorted, in the order of the scores; set by `fit`.
    """

    names: list[str]

    @abstractmethod
    def decision(self, texts: Sequence[str]) -> np.ndarray:
        """Scores `[N, C]` whose softmax are the probabilities."""

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [self.names[k] for k in self._scores(texts).argmax(axis=1)]

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        return softmax(self._scores(texts))

    def _scores(self, texts: Sequence[str]) -> np.ndarray:
        """`decision`. Raises ConfigError where a user's own gives no scores."""
        scores = self.decision(texts)
        if not type(self).__module__.startswith(_OURS):
            shape = len(texts), len(self.names)
            right = isinstance(scores, np.ndarray) and scores.shape == shape
            expect(right, self, "decision", scores, f"an array of shape {shape}")
            if np.isnan(scores).any():
                raise own_fault(self, "NaN, returned by decision", "scores of the classes")
        return scores


class Majority(Baseline):
    """Always the commonest training label (the first in sorted order on ties)."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> Majority:
        counts = Counter(train[1])
        self.label = min(counts, key=lambda name: (-counts[name], name))
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [self.label] * len(texts)


def baseline_report(
    train: Split,
    dev: Split | None,
    splits: Mapping[str, Split],
    names: Sequence[str] = ("majority", "tfidf_logreg"),
    run: RunText | None = None,
    config: Config | None = None,
) -> dict[str, Any]:
    """Metrics of the baselines of a run: `{baseline: {split: metrics, ..., "seconds": ..}}`.

    A baseline whose probabilities can be adjusted as those of the run are is there as it is, and
    again so adjusted, under its name and `ADJUSTED`.

    Args:
        train, dev: (texts, labels).
        splits: what to report on, by name.
        names: of the baselines.
        run: for baselines with `needs_run`.
        config: of the run, as for `fit_baseline`; None: none is adjusted.

    Raises what `fit_baseline` does.
    """
    classes = sorted(set(train[1]))
    needed = probabilities_needed()
    report: dict[str, Any] = {}
    fitted: dict[str, Baseline] = {}
    for name in names:
        plain = fitted[name] = fit_baseline(name, train, dev, 0, run, config, adjust=False)
        like = plain if config is None else adjusted_baseline(plain, train, config)
        if like is not plain:
            like.seconds = plain.seconds
            fitted[name + ADJUSTED] = like
    for name, baseline in fitted.items():
        scores: dict[str, Any] = {}
        for split, (texts, labels) in splits.items():
            probabilities = predicted_shares(baseline, texts, classes) if needed else None
            predicted = predicted_labels(baseline, texts, classes)
            metrics = classification_metrics(labels, predicted, classes, probabilities)
            rows = texts, labels, predicted, classes, probabilities
            scores[split] = by_script(metrics, *rows)
        report[name] = {**scores, **baseline.settings, "seconds": round(baseline.seconds, 2)}
    return report
