"""What goes into a run folder besides the model: figures of merit, pictures, the card."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from superconext._version import __version__
from superconext.core.files import tsv_cell, write_csv, write_json, write_text
from superconext.core.progress import Progress
from superconext.fitting.fit import Fitted
from superconext.probe.metrics import collapse_warning, probability_metrics
from superconext.report.figures import RunContext, draw_figures
from superconext.runs.folder import save_model, write_manifest
from superconext.runs.request import Splits, TrainRequest

_PACKAGES = ("torch", "numpy", "scikit-learn", "gensim", "safetensors")


@dataclass
class Evaluation:
    """Metrics of every split, and the reported split's vectors and probabilities.

    The figures of a split are those of the linear probe, the encoder alone. With an ensemble
    `combined` has those of all models together, by which the run predicts.
    features `[N, d]`, probabilities `[N, C]` and predicted labels of the reported split.
    """

    metrics: dict[str, Any]
    features: np.ndarray
    probabilities: np.ndarray
    predicted: list[str]

    @classmethod
    def of(
        cls,
        fitted: Fitted,
        rows: Mapping[str, tuple[Sequence[str], Sequence[str]]],
        reported: str,
        baselines: dict[str, Any],
    ) -> Evaluation:
        model = fitted.model
        metrics: dict[str, Any] = {"reported_split": reported}
        native: dict[str, Any] = {}
        combined: dict[str, Any] = {}
        shown: tuple[np.ndarray, np.ndarray, list[str]] | None = None
        for name, (texts, labels) in sorted(rows.items(), key=lambda item: item[0] != reported):
            # Not fitted.features: there, words below min_count are unknown, while a saved
            # model composes them, and these figures are what evaluating it will give.
            answer = model.answer(texts)
            predicted = [model.classes[k] for k in answer.probabilities.argmax(axis=1)]
            metrics[name] = probability_metrics(labels, answer.probe, model.classes)
            if model.ensemble is not None:
                combined[name] = probability_metrics(labels, answer.probabilities, model.classes)
            if answer.native is not None:
                native[name] = probability_metrics(labels, answer.native, model.classes)
            if name == reported:
                shown = (answer.features, answer.probabilities, predicted)
        if native:
            metrics["native"] = native
        if combined:
            metrics["combined"] = combined
        metrics["baselines"] = baselines
        metrics |= model.probe.settings
        if model.ensemble is not None:
            metrics["companion"] = model.ensemble.title
            metrics |= model.ensemble.settings
        if "probe_temperature" in fitted.facts:
            metrics["probe_temperature"] = fitted.facts["probe_temperature"]
        metrics["collapse"] = fitted.collapse
        assert shown is not None
        return cls(metrics, *shown)


def write_run(
    folder: Path,
    request: TrainRequest,
    splits: Splits,
    fitted: Fitted,
    evaluation: Evaluation,
    times: dict[str, float],
    progress: Progress,
) -> None:
    """Write every file of a run; the manifest comes last."""
    from superconext.report.card import write_card

    hashes = save_model(fitted.model, folder)
    write_csv(folder / "history.csv", fitted.history)
    write_json(folder / "metrics.json", evaluation.metrics)
    _write_predictions(folder / "predictions.tsv", request, splits, fitted, evaluation)
    draw_figures({folder / "figures": _figure_context(splits, fitted, evaluation)}, progress)
    manifest = _manifest(request, splits, fitted, times)
    write_card(folder / "README.md", {**manifest, **evaluation.metrics})
    warning = collapse_warning(fitted.collapse)
    if warning:
        progress.warn(warning)
    write_manifest(folder, manifest, hashes)


def _manifest(
    request: TrainRequest, splits: Splits, fitted: Fitted, times: dict[str, float]
) -> dict[str, Any]:
    config = fitted.model.config
    data = {
        name: {
            "file": Path(corpus.source).name,
            "sha256": corpus.sha256,
            "rows": len(corpus),
            "classes": corpus.class_counts(),
        }
        for name, corpus in splits.named().items()
    }
    return {
        "version": __version__,
        "status": "interrupted" if fitted.interrupted else "complete",
        "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": list(request.command),
        "objective": config.objective,
        "preset": config.preset,
        "seed": config.seed,
        "threads": config.threads,
        "cpus": os.cpu_count(),
        "data": data,
        "text": {key: fitted.facts[key] for key in ("profile", "words", "unknown")},
        "vectors": fitted.facts["vectors"],
        "related": fitted.facts.get("related"),
        "versions": {
            "python": platform.python_version(),
            "superconext": __version__,
            **{name: _version(name) for name in _PACKAGES},
        },
        **times,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _write_predictions(
    path: Path, request: TrainRequest, splits: Splits, fitted: Fitted, evaluation: Evaluation
) -> None:
    """Line number, label, prediction and its probability; texts only when asked for."""
    corpus = splits.named()[splits.reported]
    lines = ["line\tlabel\tpredicted\tprobability" + ("\ttext" if request.keep_text else "")]
    for row in range(len(corpus)):
        cells = [
            str(corpus.lines[row]),
            tsv_cell(corpus.labels[row]),
            tsv_cell(evaluation.predicted[row]),
            f"{evaluation.probabilities[row].max():.4f}",
        ]
        if request.keep_text:
            cells.append(tsv_cell(corpus.texts[row]))
        lines.append("\t".join(cells))
    write_text(path, "\n".join(lines) + "\n")


def _figure_context(splits: Splits, fitted: Fitted, evaluation: Evaluation) -> RunContext:
    """What the figures of the run are drawn from."""
    return RunContext(
        features=evaluation.features,
        labels=splits.named()[splits.reported].labels,
        predicted=evaluation.predicted,
        classes=fitted.model.classes,
        history=fitted.history,
        seed=fitted.model.config.seed,
        chance=fitted.model.objectives[0].chance_level,
    )
