"""One fit of a comparison, from rows to its line in results.jsonl."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from superconext.errors import TrainingError
from superconext.experiments.plan import Fit, Labelled, cut
from superconext.experiments.record import fit_config
from superconext.metrics import classification_metrics

_KEPT = ("n", "accuracy", "f1_macro", "f1_weighted")


def run_fit(
    fit: Fit, pools: Mapping[str, Labelled], given: Mapping[str, Any], labels: Sequence[str]
) -> dict[str, Any]:
    """Fit, predict dev and test, and tell of it.

    Args:
        pools: what `plan.cut` splits.
        given: the comparison's parameters.
        labels: all labels, in the order `truth` and `predictions` index them `[N]`.

    Returns:
        objective, seed, split, rows (of each part), dev, test (figures of merit), seconds
        (wall time of fit and prediction), `C` or `probe_C`, truth and predictions of the
        test rows, and for an objective that predicts by itself `native` (the same figures
        and predictions by its own rule).

    Raises the project's errors, and KeyboardInterrupt even when epochs are done: a line is
    a whole fit or none.
    """
    from threadpoolctl import threadpool_limits

    parts = cut(pools, fit)
    line: dict[str, Any] = {"objective": fit.objective, "seed": fit.seed, "split": fit.split}
    line["rows"] = {name: len(texts) for name, (texts, _) in parts.items()}
    started = time.perf_counter()
    threads = fit_config(given, fit).threads if not fit.is_baseline else 1
    with threadpool_limits(threads):
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
    with contextlib.suppress(ValueError):  # only a main thread may
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return run_or_tell(*arguments)


def run_or_tell(
    fit: Fit, pools: Mapping[str, Labelled], given: Mapping[str, Any], labels: Sequence[str]
) -> dict[str, Any]:
    """`run_fit`, or why training failed."""
    try:
        return run_fit(fit, pools, given, labels)
    except TrainingError as error:
        key = {"objective": fit.objective, "seed": fit.seed, "split": fit.split}
        return {**key, "failed": str(error)}


Predicted = dict[str, dict[str, list[str]]]


def _baseline(
    fit: Fit, parts: Mapping[str, Labelled], given: Mapping[str, Any]
) -> tuple[dict[str, Any], Predicted]:
    from superconext.experiments.baselines import fit_majority, fit_tfidf, fit_tfidf_svm

    if fit.objective == "majority":
        baseline = fit_majority(parts["train"])
    else:
        fitter = {"tfidf_logreg": fit_tfidf, "tfidf_svm": fit_tfidf_svm}[fit.objective]
        baseline = fitter(parts["train"], parts["dev"])
    answers = {name: baseline.predict(parts[name][0]) for name in ("dev", "test")}
    return dict(baseline.settings), {"probe": answers}


def _objective(
    fit: Fit, parts: Mapping[str, Labelled], given: Mapping[str, Any]
) -> tuple[dict[str, Any], Predicted]:
    import torch

    from superconext.fitting import fit_model

    config = fit_config(given, fit)
    # For the predictions too: sums depend on the number of threads in their last bits.
    torch.set_num_threads(config.threads)
    fitted = fit_model(*parts["train"], config, parts["dev"])
    if fitted.interrupted:
        raise KeyboardInterrupt
    model = fitted.model
    predicted: Predicted = {"probe": {}, "native": {}}

    def named(scores: np.ndarray) -> list[str]:
        return [model.classes[k] for k in scores.argmax(axis=1)]

    for name in ("dev", "test"):
        features = model.features(parts[name][0])
        predicted["probe"][name] = named(model.probe.probabilities(features))
        own = model.native_probabilities(features)
        if own is not None:
            predicted["native"][name] = named(own)
    if not predicted["native"]:
        del predicted["native"]
    facts = {"probe_C": model.probe.c, "collapsed": fitted.collapse["collapsed"]}
    return facts, predicted
