"""One fit of a comparison, from rows to its line in results.jsonl."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.core.errors import TrainingError
from superconext.experiments.draws import draw_of, expected_overlap
from superconext.experiments.plan import HELD_OUT, Fit, Labelled, cut, scheme_of
from superconext.experiments.systems import fit_config
from superconext.probe.metrics import classification_metrics

if TYPE_CHECKING:
    from superconext.experiments.transfer import Source

_KEPT = ("n", "accuracy", "f1_macro", "f1_weighted")

#: Torch's random state and thread count are the whole process's.
_ONE_AT_A_TIME = threading.Lock()


def run_fit(
    fit: Fit,
    pools: Mapping[str, Labelled],
    given: Mapping[str, Any],
    labels: Sequence[str],
    source: Source | None = None,
) -> dict[str, Any]:
    """Fit, predict dev and test, and tell of it.

    Args:
        pools: what `plan.cut` splits.
        given: the parameters that hold for all systems.
        labels: all labels, in the order `truth` and `predictions` index them `[N]`.
        source: what the encoder is trained on, for a system that is judged on other rows.

    Returns:
        system, objective, seed, split (and dataset where it has a name), rows (of each
        part), dev, test (figures of merit, by what the system predicts by), seconds (wall
        time of fit and prediction), the probe's settings (and an ensemble's)
        or a baseline's settings, truth and predictions of the test rows; for an
        objective that predicts by itself `native` (the same figures and predictions by its
        own rule); for a draw of some rows `draw`, `base` (how dev and test are split),
        `class_rows` (training rows of each of `labels`), `shots` and `overlap` (expected share
        of the rows in another draw).

    Raises the project's errors, and KeyboardInterrupt even when epochs are done: a line is
    a whole fit or none.
    """
    from threadpoolctl import threadpool_limits

    parts = cut(pools, fit)
    line = _head(fit)
    line |= _draw_facts(fit, pools, parts, labels)
    line["rows"] = {name: len(texts) for name, (texts, _) in parts.items()}
    started = time.perf_counter()
    threads = fit_config(given, fit.system, fit.seed).threads if not fit.is_baseline else 1
    with threadpool_limits(threads):
        if source is not None:
            facts, predicted = _transferred(fit, parts, source)
        else:
            predict = _baseline if fit.is_baseline else _objective
            facts, predicted = predict(fit, parts, given)
    line["seconds"] = round(time.perf_counter() - started, 3)
    classes = sorted(set(parts["train"][1]))
    index = {label: k for k, label in enumerate(labels)}
    for rule, answers in predicted.items():
        told: dict[str, Any] = {}
        for name in ("dev", "test"):
            scores = classification_metrics(parts[name][1], answers[name], classes)
            told[name] = {key: scores[key] for key in _KEPT}
        told["predictions"] = [index[label] for label in answers["test"]]
        if rule == "native":
            line["native"] = told
        else:
            line |= told
    line["truth"] = [index[label] for label in parts["test"][1]]
    return line | facts


def run_fit_aside(*arguments: Any) -> dict[str, Any]:
    """`run_fit` in a process of its own, where Ctrl-C is the parent's to act on.

    A training that went wrong comes back as `{"failed": message}`; other fits may go well.
    """
    from joblib import parallel_config

    with contextlib.suppress(ValueError):  # only a main thread may
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A library's own parallel work inside a fit would wait in line behind other fits.
    with parallel_config("sequential"), _ONE_AT_A_TIME:
        return run_or_tell(*arguments)


def run_or_tell(
    fit: Fit, pools: Mapping[str, Labelled], given: Mapping[str, Any], *others: Any
) -> dict[str, Any]:
    """`run_fit`, or why training failed."""
    try:
        return run_fit(fit, pools, given, *others)
    except TrainingError as error:
        return {**_head(fit), "failed": str(error)}


def _draw_facts(
    fit: Fit,
    pools: Mapping[str, Labelled],
    parts: Mapping[str, Labelled],
    labels: Sequence[str],
) -> dict[str, Any]:
    """What a line tells of its draw; nothing where all rows are taken as they are."""
    draw = draw_of(fit.split)
    if draw is None:
        return {}
    counts = Counter(parts["train"][1])
    facts: dict[str, Any] = {
        "draw": str(draw),
        "base": scheme_of(pools),
        "class_rows": [counts[label] for label in labels],
    }
    if draw.kind == "shots":
        facts["shots"] = draw.amount
    if draw.takes_fewer:
        rows = pools["all"] if "all" in pools else pools["train"]
        facts["overlap"] = expected_overlap(rows, draw, own_dev="dev" in pools or "all" in pools)
        if "all" in pools:  # the test rows are drawn too
            facts["overlap"] = max(facts["overlap"], HELD_OUT)
    return facts


def _head(fit: Fit) -> dict[str, Any]:
    """What `plan.key_of` reads."""
    named = {"dataset": fit.dataset} if fit.dataset else {}
    system = {"system": fit.system.name, "objective": fit.system.objective}
    if fit.system.source:
        system["source"] = fit.system.source
    return {**named, **system, "seed": fit.seed, "split": fit.split}


Predicted = dict[str, dict[str, list[str]]]


def _baseline(
    fit: Fit, parts: Mapping[str, Labelled], given: Mapping[str, Any]
) -> tuple[dict[str, Any], Predicted]:
    from superconext.baselines.baseline import fit_baseline

    baseline = fit_baseline(fit.system.objective, parts["train"], parts["dev"], fit.seed)
    answers = {name: baseline.predict(parts[name][0]) for name in ("dev", "test")}
    return dict(baseline.settings), {"probe": answers}


def _transferred(
    fit: Fit, parts: Mapping[str, Labelled], source: Source
) -> tuple[dict[str, Any], Predicted]:
    from superconext.experiments.transfer import fit_transferred

    facts, answers = fit_transferred(fit, parts, source)
    return facts, {"probe": answers}


def _objective(
    fit: Fit, parts: Mapping[str, Labelled], given: Mapping[str, Any]
) -> tuple[dict[str, Any], Predicted]:
    import torch

    from superconext.fitting.fit import fit_model

    config = fit_config(given, fit.system, fit.seed)
    # For the predictions too: sums depend on the number of threads in their last bits.
    torch.set_num_threads(config.threads)
    # Nobody looks on, so no epoch needs a score.
    fitted = fit_model(
        *parts["train"], config, parts["dev"], set_aside=parts["test"][0], monitor=False
    )
    if fitted.interrupted:
        raise KeyboardInterrupt
    model = fitted.model
    predicted: Predicted = {"probe": {}, "native": {}}

    def named(scores: np.ndarray) -> list[str]:
        return [model.classes[k] for k in scores.argmax(axis=1)]

    for name in ("dev", "test"):
        answer = model.answer(parts[name][0])
        predicted["probe"][name] = named(answer.probabilities)
        if answer.native is not None:
            predicted["native"][name] = named(answer.native)
    if not predicted["native"]:
        del predicted["native"]
    facts = {**model.probe.settings, "collapsed": fitted.collapse["collapsed"]}
    if model.ensemble is not None:
        facts |= model.ensemble.settings
    return facts, predicted
