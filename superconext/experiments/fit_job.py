"""One fit of an experiment, from rows to its line in results.jsonl.

A system with a `source` is trained on another data set: its encoder is trained on the source's
rows and frozen; the probe is fitted on the target's training rows, its settings chosen on the
target's dev rows. Labels of the two need not be the same. Gunel et al. (2021, Table 7) go on
training all weights on the target; this does not, so that what is measured is what the source
taught.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, DataError, TrainingError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.data.duplicates import keys_of, leaks, text_keys
from superconext.experiments.plan import (
    HELD_OUT,
    Fit,
    Request,
    cut,
    scheme_of,
    whole_split,
)
from superconext.experiments.row_sources import RowSource
from superconext.experiments.subsampling import Labelled, draw_of, expected_overlap, pick
from superconext.experiments.systems import AUTO, OWN_RULE, System, fit_config
from superconext.probe import METRICS
from superconext.probe.metrics import metric_values, probabilities_needed, script_metrics

if TYPE_CHECKING:
    from superconext.config.parameters import Config
    from superconext.fitting.model import Model

#: Torch's random state and thread count are the whole process's.
_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class TransferSource:
    """The data set an encoder is trained on: its rows as `plan.cut` splits them, and the
    parameters `given` that hold on it."""

    rows: Mapping[str, Labelled]
    given: Mapping[str, Any]


#: The encoder of the last fit: the next draw of the same seed mostly needs it again.
_last_encoder: dict[Any, tuple[Model, dict[str, Any]]] = {}


@dataclass(frozen=True)
class Scored:
    """Predicted labels of the dev or test rows `[N]`, and every registered metric of them; the
    same of each script where there are several."""

    labels: list[str]
    metrics: Mapping[str, float]
    by_script: Mapping[str, Mapping[str, float]]

    @classmethod
    def of(
        cls,
        rows: Labelled,
        labels: list[str],
        classes: Sequence[str],
        probabilities: np.ndarray | None,
    ) -> Scored:
        """Of labels predicted for these rows; see `metric_values` for the arguments."""
        values = metric_values(rows[1], labels, classes, probabilities)
        return cls(labels, values, script_metrics(*rows, labels, classes, probabilities))


#: By the rule ("probe", or "native" for the objective's own) and the part ("dev", "test").
Predicted = dict[str, dict[str, Scored]]


def run_fit(
    fit: Fit,
    source_rows: Mapping[str, Labelled],
    given: Mapping[str, Any],
    labels: Sequence[str],
    source: TransferSource | None = None,
    unlabelled: Sequence[str] = (),
    rest: bool = False,
) -> dict[str, Any]:
    """Fit a system, predict dev and test, and return the line of its results.

    Args:
        source_rows: what `plan.cut` splits.
        given: the parameters that hold for all systems.
        labels: all labels, in the order `truth` and `predictions` index them `[N]`.
        source: what the encoder is trained on, for a system that is transferred to other rows.
        unlabelled: texts of the training file without a label, to learn from.
        rest: whether the texts of rows that are not drawn are learned from too, without labels.

    Returns:
        system, objective, seed, split (and dataset where it has a name), rows (of each part),
        dev, test (every registered metric, of what the system predicts), seconds (wall time of
        fit and prediction), the settings of the probe and ensemble or of the baseline, truth and
        predictions of the test rows, `by_script` (n and metrics of the test rows of each script,
        where two have rows enough); for an objective that predicts by itself `native` (the same
        metrics and predictions by its own rule); for a draw of some rows `draw`, `base` (how dev
        and test are split), `class_rows` (training rows of each of `labels`), `shots` and
        `overlap` (expected share of the rows in another draw).

    Raises the project's errors, and KeyboardInterrupt even when epochs are done: a line is
    a whole fit or none.
    """
    from threadpoolctl import threadpool_limits

    if fit.split.startswith("cv"):
        with threadpool_limits(1):
            rows = Dataset(*source_rows["all"], unlabelled=unlabelled)
            return {**_head(fit), **run_on_folds(fit, rows, given, labels)}
    parts = cut(source_rows, fit)
    line = {**_head(fit), **_draw_facts(fit, source_rows, parts, labels)}
    line["rows"] = {name: len(texts) for name, (texts, _) in parts.items()}
    started = time.perf_counter()
    threads = fit_config(given, fit.system, fit.seed).threads if fit.reads_parameters else 1
    used = {text for texts, _ in parts.values() for text in texts}
    not_drawn = [text for texts, _ in source_rows.values() for text in texts if text not in used]
    train = Dataset(*parts["train"], unlabelled=[*unlabelled, *(not_drawn if rest else ())])
    apart = () if rest else not_drawn
    with threadpool_limits(threads):
        if source is not None:
            facts, predicted = _transferred(fit, parts, source, not_drawn)
        elif fit.is_baseline:
            facts, predicted = _baseline(fit, train, parts, given, apart)
        else:
            facts, predicted = _objective(fit, train, parts, given, apart)
    line["seconds"] = round(time.perf_counter() - started, 3)
    index = {label: k for k, label in enumerate(labels)}
    for rule, scored in predicted.items():
        results: dict[str, Any] = {
            name: {"n": len(of.labels), **of.metrics} for name, of in scored.items()
        }
        if scored["test"].by_script:
            results["by_script"] = scored["test"].by_script
        results["predictions"] = [index[label] for label in scored["test"].labels]
        line |= {"native": results} if rule == "native" else results
    line["truth"] = [index[label] for label in parts["test"][1]]
    return line | facts


def run_fit_aside(*arguments: Any) -> dict[str, Any]:
    """`run_fit` in a process of its own, where Ctrl-C is the parent's to act on.

    A training that went wrong comes back as `{"failed": message}`; other fits may go well.
    """
    from joblib import parallel_config

    with contextlib.suppress(ValueError):  # only a main thread may
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    if multiprocessing.current_process().name.startswith("LokyProcess"):  # one of --jobs
        _end_with_parent()
    # A library's own parallel work inside a fit would wait in line behind other fits.
    with parallel_config("sequential"), _ONE_AT_A_TIME:
        return run_or_report(*arguments)


@functools.cache
def _end_with_parent() -> None:
    """End this process, in which other fits may follow, once its parent was killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def run_or_report(
    fit: Fit, source_rows: Mapping[str, Labelled], given: Mapping[str, Any], *others: Any
) -> dict[str, Any]:
    """`run_fit`, or why training failed."""
    try:
        return run_fit(fit, source_rows, given, *others)
    except TrainingError as error:
        return {**_head(fit), "failed": str(error)}


def _draw_facts(
    fit: Fit,
    source_rows: Mapping[str, Labelled],
    parts: Mapping[str, Labelled],
    labels: Sequence[str],
) -> dict[str, Any]:
    """The part of a line about its draw; nothing where all rows are taken as they are."""
    draw = draw_of(fit.split)
    if draw is None:
        return {}
    counts = Counter(parts["train"][1])
    facts: dict[str, Any] = {
        "draw": str(draw),
        "base": scheme_of(source_rows),
        "class_rows": [counts[label] for label in labels],
    }
    if draw.kind == "shots":
        facts["shots"] = draw.amount
    if draw.of.takes_fewer:
        rows = source_rows["all" if "all" in source_rows else "train"]
        # A share is one of the rows that were not held out.
        facts["overlap"] = expected_overlap(rows, draw, counts if draw.kind == "share" else None)
        if "all" in source_rows:  # the test rows are drawn too
            facts["overlap"] = max(facts["overlap"], HELD_OUT)
    return facts


def _head(fit: Fit) -> dict[str, Any]:
    """What `plan.key_of` reads."""
    named = {"dataset": fit.dataset} if fit.dataset else {}
    system = {"system": fit.system.name, "objective": fit.system.objective}
    if fit.system.source:
        system["source"] = fit.system.source
    return {**named, **system, "seed": fit.seed, "split": fit.split}


def _baseline(
    fit: Fit,
    train: Dataset,
    parts: Mapping[str, Labelled],
    given: Mapping[str, Any],
    not_drawn: Sequence[str],
) -> tuple[dict[str, Any], Predicted]:
    from superconext.baselines.baseline import (
        RunText,
        fit_baseline,
        predicted_labels,
        predicted_shares,
    )

    run: RunText | None = None
    config = fit_config(given, fit.system, fit.seed)
    if fit.reads_parameters:
        import torch

        from superconext.fitting.controls import prepare_run_text

        torch.set_num_threads(config.threads)
        run = prepare_run_text(train, Dataset(*parts["dev"]), parts["test"][0], config, not_drawn)
    rows = parts["train"], parts["dev"]
    baseline = fit_baseline(fit.system.objective, *rows, fit.seed, run, config)
    classes, needed = sorted(set(parts["train"][1])), probabilities_needed()
    scored = {}
    for name in ("dev", "test"):
        texts, _ = parts[name]
        probabilities = predicted_shares(baseline, texts, classes) if needed else None
        scored[name] = Scored.of(
            parts[name], predicted_labels(baseline, texts, classes), classes, probabilities
        )
    return dict(baseline.settings), {"probe": scored}


def _objective(
    fit: Fit,
    train: Dataset,
    parts: Mapping[str, Labelled],
    given: Mapping[str, Any],
    not_drawn: Sequence[str],
) -> tuple[dict[str, Any], Predicted]:
    import torch

    from superconext.fitting.fit import fit_model
    from superconext.fitting.recipes import fit_chosen
    from superconext.training.callbacks import StepCount

    config = _chosen_config(fit, given)
    # For the predictions too: sums depend on the number of threads in their last bits.
    torch.set_num_threads(config.threads)
    dev = Dataset(*parts["dev"])
    # Nobody watches the training, so no epoch needs a score.
    more: dict[str, Any] = {"test_texts": parts["test"][0], "not_drawn": not_drawn}
    more["monitor"] = False
    chosen: dict[str, Any] = {}
    if fit.system.is_auto:
        fitted, choice = fit_chosen(train, config, dev, Progress(), **more)
        chosen = {"recipes": [choice.recipe.title]}
    else:
        counted = StepCount()
        fitted = fit_model(train, config, dev, **more, callbacks=[counted])
        chosen = {"steps": counted.steps} if counted.steps else {}
    if fitted.interrupted:
        raise KeyboardInterrupt
    model = fitted.model
    predicted: Predicted = {"probe": {}}
    for name in ("dev", "test"):
        evaluation = fitted.evaluate(name, *parts[name])
        predicted["probe"][name] = _scored(evaluation.predicted, evaluation.metrics)
        if evaluation.native is not None and evaluation.native_predicted is not None:
            native = _scored(evaluation.native_predicted, evaluation.native)
            predicted.setdefault("native", {})[name] = native
    facts = {**model.probe.settings, **chosen, "collapsed": fitted.collapse["collapsed"]}
    facts |= {k: fitted.facts[k] for k in ("pool", "related", "soft_labels") if k in fitted.facts}
    if model.ensemble is not None:
        facts |= model.ensemble.settings
    return facts, predicted


def _chosen_config(fit: Fit, given: Mapping[str, Any]) -> Config:
    """The configuration of a fit of no baseline; of `AUTO` with an encoder pretrained on the
    unlabelled text where `train` would do so."""
    config = fit_config(given, fit.system, fit.seed)
    if fit.system.is_auto:
        from superconext.fitting.recipes import pretraining_of

        own = {**given, **dict(fit.system.parameters)}
        usual = replace(config, budget=resolve({}).budget)
        if found := pretraining_of(own, usual, Progress()):
            pretraining = System(AUTO, AUTO, (*fit.system.parameters, *found.items()))
            return fit_config(given, pretraining, fit.seed)
    return config


def _scored(labels: list[str], metrics: Mapping[str, Any]) -> Scored:
    """The registered metrics, and those by script, without what else an evaluation has."""
    registered = {name: value for name, value in metrics.items() if name in METRICS}
    return Scored(labels, registered, metrics.get("by_script", {}))


def _transferred(
    fit: Fit, parts: Mapping[str, Labelled], source: TransferSource, not_drawn: Sequence[str]
) -> tuple[dict[str, Any], Predicted]:
    """Facts for the line, and the predictions on "dev" and "test" of the target, whose `parts` are
    given. Rows of the source whose text is a copy of one of its dev or test texts, or of those
    that are not drawn, are left out; `source_left_out` counts those of train.
    """
    from superconext.probe import probe_class
    from superconext.probe.base import log_shares, shifted

    model, facts = _source_encoder(fit, parts, source, not_drawn)
    classes = sorted(set(parts["train"][1]))
    index = {label: k for k, label in enumerate(classes)}
    features = {name: model.features(texts) for name, (texts, _) in parts.items()}
    truth = {
        name: np.array([index.get(label, -1) for label in labels])
        for name, (_, labels) in parts.items()
    }
    config = fit_config(source.given, fit.system, fit.seed)
    kind = probe_class(config.probe_features)
    probe = kind.fit(features["train"], truth["train"], features["dev"], truth["dev"])
    shift = config.logit_adjustment * log_shares(truth["train"], len(classes))
    scored = {}
    for name in ("dev", "test"):
        shares = probe.probabilities(features[name])
        shares = shifted(shares, shift) if config.logit_adjustment else shares
        predicted = [classes[k] for k in shares.argmax(axis=1)]
        scored[name] = Scored.of(parts[name], predicted, classes, shares)
    return {**facts, **probe.settings}, {"probe": scored}


def _source_encoder(
    fit: Fit, parts: Mapping[str, Labelled], source: TransferSource, not_drawn: Sequence[str]
) -> tuple[Model, dict[str, Any]]:
    import torch

    from superconext.fitting.fit import fit_model

    whole = Fit(fit.system, fit.seed, whole_split(scheme_of(source.rows), fit.seed))
    split = cut(source.rows, whole)
    target = [*parts["dev"][0], *parts["test"][0], *not_drawn]
    keys, _ = text_keys({"target": target, **{name: split[name][0] for name in ("train", "dev")}})
    kept, left_out = {}, 0
    for name in ("train", "dev"):
        leaked = leaks(keys["target"], keys[name])
        kept[name] = pick(split[name], np.setdiff1d(np.arange(len(keys[name])), leaked))
        left_out += len(leaked) * (name == "train")
    texts, labels = kept["train"]
    config = fit_config(source.given, fit.system, fit.seed)
    key = config, *map(tuple, (texts, labels, *kept["dev"], target))
    if key not in _last_encoder:
        torch.set_num_threads(config.threads)
        fitted = fit_model(
            Dataset(texts, labels),
            config,
            Dataset(*kept["dev"]),
            test_texts=target,
            monitor=False,
        )
        if fitted.interrupted:
            raise KeyboardInterrupt
        _last_encoder.clear()
        facts = {"source_left_out": left_out, "collapsed": fitted.collapse["collapsed"]}
        _last_encoder[key] = fitted.model, facts
    return _last_encoder[key]


def with_folds(request: Request, sources: Mapping[str, RowSource], progress: Progress) -> Request:
    """The request with a number of folds for each data set, and of seeds where none was given.

    Where the folds are left open, few rows without a test file get as many as in `train`, unless
    a system is a large pretrained model or cannot be cross-validated. Raises ConfigError where
    seeds are needed.
    """
    from superconext.encoders import encoder_class
    from superconext.fitting.cross_validation import (
        DEFAULT_FOLDS,
        FOLDED_BELOW,
        deal,
        lacks_folds,
        repeats,
    )

    datasets, seeds = [], request.seeds
    for data in request.datasets:
        systems = [system for system in request.systems if system.reads_parameters]
        configs = [fit_config(request.given_on(data), system, 0) for system in systems]
        rows, folds = Dataset(*sources[data.name].rows.get("all", ([], []))), data.cv or 0
        rows = replace(rows, source=data.train)
        if data.cv is None and data.scheme() == "resampled" and data.splits is None:
            heavy = any(lacks_folds(c) or encoder_class(c.encoder).reads_model for c in configs)
            try:
                folds = DEFAULT_FOLDS * bool(
                    not heavy and len(rows) < FOLDED_BELOW and deal(rows, DEFAULT_FOLDS, 0)
                )
            except DataError:  # no row can be held out; with seeds, splits may yet be drawn
                if not request.seeds:
                    raise
        datasets.append(replace(data, cv=folds))
        if not folds:
            continue
        if request.reference.endswith(OWN_RULE):
            raise ConfigError(
                f"reference = {request.reference!r}, which has no row in a cross-validation; "
                f"expected another, such as {request.reference.removesuffix(OWN_RULE)!r}: change "
                "it, or draw splits with --cv 0"
            )
        if not request.seeds:
            asked = [*(replace(config, cv=data.cv) for config in configs), None]
            seeds = max(seeds, min(repeats(len(rows), folds, config) for config in asked))
        progress.note(
            f"{data.train}: {len(rows)} rows are cross-validated, {folds} folds, --seeds "
            f"{seeds}: {folds * seeds} fits of each system (--cv 0: a tenth of the rows is test)"
        )
    drawn = [data for data in datasets if not data.cv]
    if not seeds or (drawn and not request.seeds):
        of = f", as {drawn[0].train} is not cross-validated" if drawn and seeds else ""
        raise ConfigError(
            f"found no --seeds; expected the number of fits of each system{of}: add it"
        )
    return replace(request, datasets=tuple(datasets), seeds=seeds)


def run_on_folds(
    fit: Fit, data: Dataset, given: Mapping[str, Any], labels: Sequence[str]
) -> dict[str, Any]:
    """The results of a fit on a cross-validation's folds, which `run_fit` adds to the line's head.

    folds: rows and test metrics of each fold. test: the metrics of all held-out rows together, of
    which `texts` are different ones. predictions: None for a row that no fold holds out.
    """
    from superconext.baselines.baseline import fit_baseline, predicted_labels, predicted_shares
    from superconext.fitting import cross_validation as cross
    from superconext.fitting.controls import run_text
    from superconext.probe.ensemble import ALONE

    started, name = time.perf_counter(), fit.system.objective
    facts: dict[str, Any] = {}
    config = fit_config(given, fit.system, fit.seed)
    count = int(re.split(r"\D+", fit.split)[1])
    rows = data.texts, data.labels
    cv = cross.CrossValidation(data, config, count, Progress(), classes=labels, times=1)
    own = {baseline: model for model, baseline in cross.BASELINE_OF.items()}.get(name)
    found: list[tuple[list[str], np.ndarray | None]] = []
    if fit.is_baseline and own is None:
        run = run_text(cv.prepared, config, {}) if fit.reads_parameters else None
        for fold in cv.folds:
            texts, _ = pick(rows, fold.held)
            baseline = fit_baseline(name, pick(rows, fold.fitted), None, fit.seed, run, config)
            there = sorted({data.labels[row] for row in fold.fitted})
            shares = predicted_shares(baseline, texts, there) if probabilities_needed() else None
            found.append((predicted_labels(baseline, texts, labels), shares))
            if "logit_adjustment" in baseline.settings:
                facts["logit_adjustment"] = baseline.settings["logit_adjustment"]
    elif fit.system.is_auto:
        from superconext.fitting.recipes import fit_chosen

        config = _chosen_config(fit, given)
        for fold in cv.folds:  # which are parted again
            train = Dataset(*pick(rows, fold.fitted), unlabelled=data.unlabelled)
            texts, _ = pick(rows, fold.held)
            fitted, choice = fit_chosen(train, config, None, Progress(), test_texts=texts)
            facts.setdefault("recipes", []).append(choice.recipe.title)
            facts["collapsed"] = facts.get("collapsed", False) or fitted.collapse["collapsed"]
            shares = fitted.model.probabilities(texts)
            found.append(([fitted.model.classes[k] for k in shares.argmax(axis=1)], shares))
    else:
        if own is not None:
            cv.add([own])
        of = cv.held_out({own: own}, ALONE) if own else cross.cross_validate(cv).recipe
        found = [([labels[k] for k in shares.argmax(axis=1)], shares) for shares in of.shares]
        names = {own: "C", cross.ENCODER: "probe_C"}
        facts = {names.get(model, f"{model}_C"): c for model, c in of.settings.c.items()}
        if own is None:
            facts["collapsed"] = cv.collapsed
        if own is not None and config.logit_adjustment:
            facts["logit_adjustment"] = config.logit_adjustment
    index = {label: k for k, label in enumerate(labels)}
    predictions: list[int | None] = [None] * len(rows[0])
    folds = []
    for fold, (predicted, shares) in zip(cv.folds, found, strict=True):
        for row, label in zip(fold.held, predicted, strict=True):
            predictions[row] = index[label]
        metrics = Scored.of(pick(rows, fold.held), predicted, labels, shares).metrics
        sizes = {"train": len(fold.fitted), "test": len(fold.held)}
        folds.append({"rows": sizes, "test": {"n": len(fold.held), **metrics}})
    held = pick(rows, np.concatenate([fold.held for fold in cv.folds]))
    every = [shares for _, shares in found if shares is not None]
    together = [label for predicted, _ in found for label in predicted]
    scored = Scored.of(held, together, labels, np.concatenate(every) if every else None)
    return {
        "seconds": round(time.perf_counter() - started, 3),
        "test": {"n": len(together), **scored.metrics},
        "texts": len(set(keys_of(held[0]))),
        "by_script": dict(scored.by_script),
        "folds": folds,
        "truth": [index[label] for label in rows[1]],
        "predictions": predictions,
        **facts,
    }
