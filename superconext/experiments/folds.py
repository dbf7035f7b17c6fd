"""A system on folds: every row predicted by models that were fitted without it, as in `train --cv`.

The split `cv5-0` is a deal of all rows into five folds by seed 0, the same for all systems. What
the folds share is said in `fitting.cross_validation`; a system that is no part of a run, such as a
linear SVM, is fitted on the other folds alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from superconext.core.errors import ConfigError, DataError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.data.duplicates import text_keys
from superconext.experiments.fit_job import Scored
from superconext.experiments.plan import Fit, Request
from superconext.experiments.row_sources import RowSource
from superconext.experiments.subsampling import Labelled, pick
from superconext.experiments.systems import fit_config
from superconext.probe.metrics import probabilities_needed


def with_folds(request: Request, sources: Mapping[str, RowSource], progress: Progress) -> Request:
    """The request with a number of folds for each data set, and of seeds where none was given.

    Where the folds are left open, few rows without a test file get as many as in `train`, unless
    a system is a large pretrained model or cannot be cross-validated. Raises ConfigError where
    seeds are needed.
    """
    from superconext.encoders import encoder_class
    from superconext.fitting.cross_validation import FEW_ROWS, FOLDS, deal, lacks_folds, repeats

    datasets, seeds = [], request.seeds
    for data in request.datasets:
        systems = [system for system in request.systems if system.reads_parameters]
        configs = [fit_config(request.given_on(data), system, 0) for system in systems]
        rows, folds = Dataset(*sources[data.name].rows.get("all", ([], []))), data.cv or 0
        rows = replace(rows, source=data.train)
        if data.cv is None and data.scheme() == "resampled" and data.splits is None:
            heavy = any(lacks_folds(c) or encoder_class(c.encoder).reads_model for c in configs)
            try:
                folds = FOLDS * bool(not heavy and len(rows) < FEW_ROWS and deal(rows, FOLDS, 0))
            except DataError:  # no row can be held out; with seeds, splits may yet be drawn
                if not request.seeds:
                    raise
        datasets.append(replace(data, cv=folds))
        if not folds:
            continue
        if not request.seeds:
            asked = [*(replace(config, cv=data.cv) for config in configs), None]
            seeds = max(seeds, min(repeats(len(rows), folds, config) for config in asked))
        progress.say(
            f"note: {data.train}: {len(rows)} rows are cross-validated, {folds} folds, --seeds "
            f"{seeds}: {folds * seeds} fits of each system (--cv 0: a tenth of the rows is test)"
        )
    if not seeds:
        raise ConfigError("found no number of seeds; expected how often to fit each: give --seeds")
    return replace(request, datasets=tuple(datasets), seeds=seeds)


def run_on_folds(
    fit: Fit, rows: Labelled, given: Mapping[str, Any], labels: Sequence[str]
) -> dict[str, Any]:
    """What `fit_job.run_fit` puts into a line behind its head.

    folds: rows and test metrics of each fold. test: the metrics of all held-out rows together, of
    which `texts` are different ones. predictions: None for a row that no fold holds out.
    """
    from superconext.baselines.baseline import fit_baseline
    from superconext.fitting import cross_validation as cross
    from superconext.fitting.controls import run_text
    from superconext.probe.folds import ALONE

    started, name, facts = time.perf_counter(), fit.system.objective, {}
    config = fit_config(given, fit.system, fit.seed)
    count = int(re.split(r"\D+", fit.split)[1])
    cv = cross.CrossValidation(Dataset(*rows), config, count, Progress(), classes=labels, times=1)
    own = {baseline: model for model, baseline in cross.BASELINE_OF.items()}.get(name)
    found: list[tuple[list[str], np.ndarray | None]] = []
    if fit.is_baseline and own is None:
        run = run_text(cv.prepared, config, {}) if fit.reads_parameters else None
        for fold in cv.folds:
            texts, _ = pick(rows, fold.held)
            baseline = fit_baseline(name, pick(rows, fold.fitted), None, fit.seed, run)
            shares = baseline.predict_proba(texts) if probabilities_needed() else None
            found.append((baseline.predict(texts), shares))
    else:
        if own is not None:
            cv.add([own])
        of = cv.out_of_fold({own: own}, ALONE) if own else cross.cross_validate(cv).recipe
        found = [([labels[k] for k in shares.argmax(axis=1)], shares) for shares in of.shares]
        names = {own: "C", cross.ENCODER: "probe_C"}
        facts = {names.get(model, f"{model}_C"): c for model, c in of.settings.c.items()}
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
        "texts": len(set(text_keys({"all": held[0]})[0]["all"])),
        "by_script": dict(scored.by_script),
        "folds": folds,
        "truth": [index[label] for label in rows[1]],
        "predictions": predictions,
        **facts,
    }
