"""The artifacts of a run beside the model: metrics, predictions, figures, the model card."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from superconext._version import __version__
from superconext.core.arithmetic import float32_library
from superconext.core.environment import made_with
from superconext.core.files import tsv_cell, write_csv, write_json, write_text
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.data.duplicates import keys_of
from superconext.fitting.cross_validation import CrossValidated, OutOfFold, deal
from superconext.fitting.familiarity import Familiarity, overlap_report
from superconext.fitting.fit import Fitted
from superconext.fitting.model import Model
from superconext.probe.metrics import Evaluation, collapse_warning
from superconext.report.figures import RunContext, draw_figures
from superconext.report.page import write_page
from superconext.report.table import untested_line, wilson
from superconext.runs.folder import save_model, write_manifest
from superconext.runs.page import PAGE, train_page
from superconext.runs.splits import Splits, TrainRequest

_PACKAGES = ("superconext", "torch", "numpy", "scikit-learn", "gensim", "safetensors")


@dataclass
class RunResults:
    """The metrics document of a run, and the evaluation of each split.

    judged: the rows that `reported` evaluates. recipes: what the manifest says of the choice of a
    recipe, where there was one.
    """

    metrics: dict[str, Any]
    evaluations: dict[str, Evaluation]
    judged: Dataset
    recipes: dict[str, Any] | None = None

    @property
    def reported(self) -> Evaluation:
        return self.evaluations[self.metrics["reported_split"]]

    @classmethod
    def of(
        cls,
        fitted: Fitted,
        splits: Splits,
        baselines: dict[str, Any],
        folds: CrossValidated | None = None,
    ) -> RunResults:
        """Evaluate every split, and put beside them what a cross-validation of train has given.

        In the document each split has the metrics of what the run predicts. Where an ensemble
        predicts, `combined` has them again and `encoder_alone` those of the probe by itself.
        """
        model = fitted.model
        metrics: dict[str, Any] = {
            "reported_split": splits.reported,
            "chosen_on_dev": fitted.chosen_on_dev,
        }
        blocks: dict[str, dict[str, Any]] = {"native": {}, "combined": {}, "encoder_alone": {}}
        evaluations = {}
        for name, dataset in splits.named().items():
            # Not fitted.features: there, words below min_count are unknown, while a saved
            # model composes them, and these figures are what evaluating it will give.
            done = fitted.evaluate(name, dataset.texts, dataset.labels)
            evaluations[name] = done
            metrics[name] = done.metrics
            if done.native is not None:
                blocks["native"][name] = done.native
            if done.encoder_alone is not None:
                blocks["combined"][name] = done.metrics
                blocks["encoder_alone"][name] = done.encoder_alone
        if "test" in evaluations and (overlap := _overlap(model, splits, evaluations["test"])):
            metrics["overlap"] = overlap
        if folds is not None:
            evaluations["cv"], judged = _out_of_fold(
                fitted, splits.train, folds.recipe, splits.folds
            )
            metrics["cv"] = evaluations["cv"].metrics
            if folds.encoder_alone is not None:
                alone = folds.encoder_alone.metrics(splits.train, model.classes)
                if model.config.calibrate:
                    alone.pop("expected_calibration_error", None)
                blocks["combined"]["cv"], blocks["encoder_alone"]["cv"] = metrics["cv"], alone
            for name, scores in folds.baselines.items():
                baselines.setdefault(name, {})["cv"] = scores
        if splits.reported != "cv":
            judged = splits.named()[splits.reported]
        metrics |= {name: block for name, block in blocks.items() if block}
        metrics["baselines"] = baselines
        metrics |= model.probe.settings | model.titles
        if model.ensemble is not None:
            metrics |= model.ensemble.settings
        if "probe_temperature" in fitted.facts:
            metrics["probe_temperature"] = fitted.facts["probe_temperature"]
        metrics["collapse"] = fitted.collapse
        agreement = splits.agreement()
        if agreement is not None:
            metrics["agreement"] = agreement
        return cls(metrics, evaluations, judged)


def _overlap(model: Model, splits: Splits, tested: Evaluation) -> dict[str, Any]:
    """How many test texts the run has seen, and the scores without them; empty for none."""
    assert splits.test is not None
    seen = Familiarity()
    facts = seen.add(model, splits.test.texts)
    if not seen.seen:
        return {}
    found = overlap_report(facts, seen.seen, tested, splits.test.labels, model.classes)
    return {"texts": seen.texts, **(found or {})}


def _out_of_fold(
    fitted: Fitted, train: Dataset, recipe: OutOfFold, count: int
) -> tuple[Evaluation, Dataset]:
    """The evaluation of the training rows that some fold held out, and these rows; `count`: of the
    folds that they were dealt into.

    The probabilities are means over the repeats, the metrics means of those of each repeat.
    """
    model = fitted.model
    rows, shares = recipe.mean(len(model.classes))
    judged = train.select(rows)
    metrics = recipe.metrics(train, model.classes)
    distinct = len(set(keys_of(judged.texts)))
    metrics["folds"]["interval"] = list(wilson(metrics["accuracy"], distinct))
    metrics["folds"]["texts"] = distinct
    lost = only = len(train) - len(rows)
    if lost:  # some of them other folds might have held out
        only = len(train) - sum(len(fold.held) for fold in deal(train, count, model.config.seed))
    metrics["folds"] |= {"not_held_out": lost, "only_texts": only}
    features = model.features(judged.texts)
    predicted = model.labels(shares)
    return Evaluation(features, shares, predicted, metrics), judged


def write_run(
    folder: Path,
    request: TrainRequest,
    splits: Splits,
    fitted: Fitted,
    results: RunResults,
    times: dict[str, float],
    progress: Progress,
) -> None:
    """Write every file of a run; the manifest comes last."""
    from superconext.report.card import write_card

    hashes = save_model(fitted.model, folder)
    if fitted.history:  # else nothing was trained
        write_csv(folder / "history.csv", fitted.history)
    write_json(folder / "metrics.json", results.metrics)
    _write_predictions(folder / "predictions.tsv", request, results)
    context = _figure_context(splits, fitted, results)
    drawn = draw_figures({folder / "figures": context}, progress, ("png", *request.figures))
    manifest = _manifest(request, splits, fitted, times)
    if results.recipes is not None:
        manifest["recipes"] = results.recipes
        chosen = results.recipes["recipes"][results.recipes["chosen"]]["title"]
        manifest["preset"] = f"auto, chose {chosen}"
    if not request.no_report:
        tokens = {name: pieces.lists() for name, pieces in fitted.pieces.items()}
        page = train_page(
            results.metrics,
            manifest,
            fitted.model,
            {**splits.named(), splits.reported: results.judged},
            results.evaluations,
            tokens,
            fitted.history,
            context.layout if drawn else None,
        )
        write_page(folder / PAGE, page)
        progress.say(f"{PAGE}: the page of the run, with its sentences; open it in a browser")
    write_card(folder / "README.md", {**manifest, **results.metrics})
    if splits.reported != "cv":
        facts = results.judged.labels, results.reported.predicted, fitted.model.classes
        if line := untested_line(*facts, splits.reported):
            progress.warn(line)
    warning = collapse_warning(fitted.collapse)
    if warning:
        progress.warn(warning)
    write_manifest(folder, manifest, hashes)


def _manifest(
    request: TrainRequest, splits: Splits, fitted: Fitted, times: dict[str, float]
) -> dict[str, Any]:
    config = fitted.model.config
    data: dict[str, dict[str, Any]] = {
        name: {
            "file": Path(corpus.source).name,
            "sha256": corpus.sha256,
            "rows": len(corpus),
            "classes": corpus.class_counts(),
        }
        for name, corpus in splits.named().items()
    }
    data["train"]["columns"] = splits.train.columns
    reading = {name: request.reading.get(name) for name in ("encoding", "fix_text")}
    data["train"]["reading"] = {name: value for name, value in reading.items() if value}
    return {
        "version": __version__,
        **fitted.status,
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": list(request.command),
        "objective": config.objective,
        "encoder": config.encoder,
        "freeze": config.freeze,
        "members": config.members,
        "finetune_epochs": config.finetune_epochs,
        "preset": config.preset,
        "seed": config.seed,
        "threads": config.threads,
        "float32_products": float32_library() if config.device == "cpu" else None,
        "data": data,
        "text": {key: fitted.facts.get(key) for key in ("profile", "words", "unknown")},
        "vectors": fitted.facts.get("vectors"),
        "model": fitted.facts.get("model"),
        "related": fitted.facts.get("related"),
        **{name: facts for name, facts in fitted.facts.items() if name == "soft_labels"},
        **made_with(_PACKAGES),
        **times,
    }


def _write_predictions(path: Path, request: TrainRequest, results: RunResults) -> None:
    """Line number, label, prediction and its probability; texts only when asked for."""
    corpus, evaluation = results.judged, results.reported
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


def _figure_context(splits: Splits, fitted: Fitted, results: RunResults) -> RunContext:
    """What the figures of the run are drawn from."""
    evaluation = results.reported
    return RunContext(
        features=evaluation.features,
        labels=results.judged.labels,
        predicted=evaluation.predicted,
        classes=fitted.model.classes,
        history=fitted.history,
        seed=fitted.model.config.seed,
        chance=fitted.model.objectives[0].chance_level if fitted.model.objectives else None,
        split=splits.reported,
    )
