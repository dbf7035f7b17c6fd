"""The page of a run folder: `report.html`, or a page for another labelled file."""

from __future__ import annotations

import csv
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from superconext.config.files import read_toml
from superconext.config.parameters import OF_ENCODER, OF_TRAINING
from superconext.core.errors import DataError, RunError
from superconext.data.dataset import Dataset
from superconext.fitting.familiarity import seen_by
from superconext.fitting.model import Model, evaluate
from superconext.probe.ensemble import predicting
from superconext.probe.metrics import Evaluation
from superconext.report.audit import audit
from superconext.report.explain import Explanation, explain, word_spans
from superconext.report.figures import available
from superconext.report.page import MOST_ROWS, PageContext, PageRows, of_the_others
from superconext.report.run_figures import Layout, lay_out
from superconext.report.table import BASELINE_NAMES, chosen_on_dev, isolated, told_overlap
from superconext.runs.manifest import (
    CHECKPOINT,
    cut_short,
    listed_file,
    plain_file,
    read_json,
    read_manifest,
)

#: The page that `train` writes. It holds sentences: what leaves the machine leaves it out.
PAGE = "report.html"

#: Texts that are predicted to explain rows, each without one of its words: as many as there are
#: rows, within these bounds. So explanations cost about what the evaluation did.
_EXPLAINED = 2500, 8192
#: Characters of the rows that are audited, about: some seconds.
_AUDITED = 400_000


def train_page(
    metrics: Mapping[str, Any],
    manifest: Mapping[str, Any],
    model: Model,
    splits: Mapping[str, Dataset],
    evaluations: Mapping[str, Evaluation],
    tokens: Mapping[str, Sequence[Sequence[str]]],
    history: Sequence[Mapping[str, Any]],
    layout: Layout | None,
) -> PageContext:
    """The page of a run that was just trained, on the reported split.

    tokens: of each split that is in memory. layout: where the figure of it was drawn.
    """
    split = metrics["reported_split"]
    rows = _rows(splits[split], evaluations[split])
    # Held-out rows are training rows: each would be its own nearest one.
    train = None if split == "cv" else _rows(splits["train"], evaluations["train"])
    # Without the figures a map by t-SNE would take longer than the rest of the page.
    layout = layout or lay_out(evaluations[split].features, tsne=available())
    # Of a file larger than memory no tokens are held.
    known = None if split == "cv" else tokens.get("train") or _vocabulary(model)
    judged = tokens.get(split) or model.tokens(splits[split].texts)
    return PageContext(
        split=split,
        rows=rows,
        classes=model.classes,
        metrics=metrics[split],
        others=_others(metrics, split),
        train=train,
        unknown=None if split == "cv" else _unknown(model, judged, known),
        seen=seen_by(model, rows.texts) if split == "test" else None,
        layout=layout.points,
        map_title=layout.title + _beside(metrics),
        history=history,
        notes=[*_cut_short(manifest), *_notes(metrics[split])],
        chosen=chosen_on_dev(metrics),
        **_looked_into(model, rows, train),
        **_made(manifest, asdict(model.config), metrics),
    )


def other_page(run: Path, model: Model, corpus: Dataset, train: Dataset | None) -> PageContext:
    """The page of labelled rows that the run was not reported on.

    train: the training rows, for baselines, nearest sentences, telling words and unknown words.
    """
    from superconext.baselines.baseline import baseline_report

    manifest = read_manifest(run)
    evaluation = evaluate(model, corpus.texts, corpus.labels)
    layout = lay_out(evaluation.features)
    rows = _rows(corpus, evaluation)
    beside = None
    if train is not None:
        beside = _rows(train, evaluate(model, train.texts, train.labels))
    known = _vocabulary(model) if train is None else model.tokens(train.texts)
    tokens = model.tokens(corpus.texts)
    others: dict[str, Any] = {}
    if train is not None:
        split = {"rows": (corpus.texts, corpus.labels)}
        fitted = baseline_report((train.texts, train.labels), None, split, config=model.config)
        others = {name: of["rows"] for name, of in _rivals(fitted, model.titles).items()}
    settings = model.titles | ({} if model.ensemble is None else model.ensemble.settings)
    if evaluation.encoder_alone is not None and "encoder" in predicting(settings):
        others["this model, encoder alone"] = evaluation.encoder_alone
    return PageContext(
        split=Path(corpus.source).name,
        rows=rows,
        classes=model.classes,
        metrics=evaluation.metrics,
        others=others,
        train=beside,
        unknown=_unknown(model, tokens, known),
        seen=seen_by(model, corpus.texts),
        layout=layout.points,
        map_title=layout.title + _beside(settings),
        history=_history(run),
        notes=[*_cut_short(manifest, run), *_own_test(run, train is None)],
        **_looked_into(model, rows, beside),
        **_made(manifest, asdict(model.config), settings),
    )


def folder_page(run: Path) -> PageContext:
    """The page of what a run folder records: its scores, and sentences where it kept them.

    Raises RunError where a file is missing or damaged.
    """
    manifest, metrics = read_manifest(run), read_json(plain_file(run, "metrics.json"))
    path = plain_file(run, "predictions.tsv")
    try:
        split = metrics.get("reported_split", "test")
        with path.open(encoding="utf-8", newline="") as file:
            heading, *lines = [line.split("\t") for line in file.read().split("\n")[:-1]]
            table = [dict(zip(heading, line, strict=True)) for line in lines]
        rows = PageRows(
            texts=[row["text"] for row in table] if table and "text" in table[0] else [],
            labels=[row["label"] for row in table],
            lines=[int(row["line"]) for row in table],
            predicted=[row["predicted"] for row in table],
            confidence=np.array([float(row["probability"]) for row in table]),
        )
        scores = metrics[split]
        if len(rows) != scores["n"]:
            raise ValueError(f"{len(rows)} rows, metrics.json has {scores['n']}")
        right = np.mean([a == b for a, b in zip(rows.labels, rows.predicted, strict=True)])
        if not _notes(scores) and abs(right - scores["accuracy"]) > 1e-6:
            raise ValueError(f"accuracy {right:.3f}, metrics.json has {scores['accuracy']:.3f}")
        classes = list(scores["per_class"])
        others = _others(metrics, split)
        notes = [*_cut_short(manifest, run), *_notes(scores), *_seen_rows(metrics)]
        expects = _expected_without(metrics)
        chosen = chosen_on_dev(metrics)
        hashes = dict(manifest.get("files", {}))
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise RunError(
            f"{path}: cannot be read as this run's predictions ({error}); expected the files as "
            "train wrote them: give a labelled FILE to judge the run on"
        ) from None
    config = listed_file(run, "config.toml", hashes)
    return PageContext(
        split=split,
        rows=rows,
        classes=classes,
        metrics=scores,
        others=others,
        history=_history(run),
        notes=notes,
        chosen=chosen,
        expects=expects,
        **_made(manifest, read_toml(config, "name = value"), metrics),
    )


def _rows(corpus: Dataset, evaluation: Evaluation) -> PageRows:
    return PageRows(
        corpus.texts,
        corpus.labels,
        corpus.lines,
        evaluation.predicted,
        evaluation.probabilities.max(axis=1, initial=0.0),
        evaluation.probabilities,
        evaluation.features,
    )


def _cut_short(manifest: Mapping[str, Any], run: Path | None = None) -> list[str]:
    """run: where the run is, unless it is just being written."""
    told = cut_short(manifest).capitalize()
    if run is None or (run / CHECKPOINT).is_dir():
        told += ": superconext train --resume RUN goes on"
    return [f"{told}."] if cut_short(manifest) else []


def _notes(scores: Mapping[str, Any]) -> list[str]:
    """What a reader of cross-validated scores has to know."""
    folds = scores.get("folds")
    repeats = folds.get("repeats", 1) if isinstance(folds, dict) else 1
    if repeats == 1:
        return []
    return [
        f"Scores are means over {repeats} cross-validations. Matrix, map, hard sentences, "
        "certainty and words show the average of their answers, which is usually right more often "
        "than one of them: what a new sentence can expect is the scores."
    ]


def _seen_rows(metrics: Mapping[str, Any]) -> list[str]:
    """How many test rows a run has seen, as its folder records it."""
    overlap = metrics.get("overlap")
    if metrics.get("reported_split") != "test" or not isinstance(overlap, dict):
        return []
    return [f"{told_overlap(overlap)}."]


def _expected_without(metrics: Mapping[str, Any]) -> list[str]:
    """What to expect of new sentences by the test rows that the run has not seen."""
    if not _seen_rows(metrics):
        return []
    rest = metrics["overlap"]["without"] or {"n": 0, "accuracy": 0.0}
    return [of_the_others(rest["accuracy"] * rest["n"], rest["n"])]


def _own_test(run: Path, bare: bool) -> list[str]:
    """What the run scored on its own rows beside its baselines, for a page of other rows.

    bare: whether that page has no baselines for want of training rows.
    """
    with suppress(RunError, LookupError, TypeError):
        metrics = read_json(plain_file(run, "metrics.json"))
        split = metrics["reported_split"]
        scores = {"this model": metrics[split], **_others(metrics, split)}
        named = "; ".join(
            f"{BASELINE_NAMES.get(name, name)} {score['accuracy']:.1%}"
            for name, score in scores.items()
        )
        kind = "cross-validation" if split == "cv" else f"{split} rows"
        own = f"On the run's own {kind} ({metrics[split]['n']} rows), accuracy was: {named}."
        more = " Baselines on the rows of this page need the training rows (--train)."
        return [own + more * bare]
    return []


def _looked_into(model: Model, rows: PageRows, train: PageRows | None) -> dict[str, Any]:
    """What the page tells of single rows: their words, and which labels are doubtful."""
    audited = train or rows
    draw = np.random.default_rng(0).permutation(len(audited))
    sizes = np.cumsum([len(audited.texts[row]) for row in draw])
    some = audited.select(np.sort(draw[: min(MOST_ROWS, int((sizes <= _AUDITED).sum()))]))
    try:
        found = audit(Dataset(list(some.texts), list(some.labels), some.lines))
    except DataError:  # too few rows, or none with a word
        found = None
    whose = "training sentences" if train else "sentences"
    return {
        "explained": _explained(model, rows, len(rows) + len(train or ())),
        "audit": found,
        "audited": whose,
    }


def _explained(model: Model, rows: PageRows, most: int) -> dict[int, Explanation]:
    """The mistakes, the most certain first, and then the most certain of the other rows."""
    left = int(np.clip(most, *_EXPLAINED))
    wrong = [label != guess for label, guess in zip(rows.labels, rows.predicted, strict=True)]
    chosen: list[int] = []
    for asked, reserved in ((True, left // 4), (False, 0)):  # a quarter is for what is right
        for row in np.argsort(-rows.confidence, kind="stable").tolist():
            cost = 1 + len(word_spans(rows.texts[row])) if wrong[row] is asked else 0
            if cost and left - cost >= reserved:
                chosen.append(row)
                left -= cost
    texts, guesses = [rows.texts[row] for row in chosen], [rows.predicted[row] for row in chosen]
    return dict(zip(chosen, explain(model, texts, guesses), strict=True))


def _vocabulary(model: Model) -> Sequence[Sequence[str]] | None:
    """The words of a model as one text; None for an encoder that keeps none."""
    vocabulary = getattr(model.indexer, "vocabulary", None)
    return None if vocabulary is None else [vocabulary.to_json()["tokens"]]


def _unknown(
    model: Model, tokens: Sequence[Sequence[str]], known: Iterable[Sequence[str]] | None
) -> np.ndarray | None:
    """Share of each text's words `[N]` that the model does not know, as `predict --details` has
    it; of an encoder that does not tell, of its tokens that are not among the known ones."""
    shares = model.indexer.unfamiliar(tokens)
    if shares is not None:
        return shares[:, 0]
    if known is None:
        return None
    words = {word for some in known for word in some}
    return np.array(
        [sum(word not in words for word in some) / max(len(some), 1) for some in tokens]
    )


def _rivals(baselines: Mapping[str, Any], titles: Mapping[str, Any]) -> dict[str, Any]:
    """The baselines without that which the run itself is, as a recipe without training may be."""
    alone = "companion" not in titles and "combined" not in titles
    own = titles.get("probe_title") if alone else None
    return {
        name: of
        for name, of in baselines.items()
        if not (own and BASELINE_NAMES.get(name, "").startswith(own))
    }


def _others(metrics: Mapping[str, Any], split: str) -> dict[str, Any]:
    alone = metrics.get("encoder_alone", {}) if "encoder" in predicting(metrics) else {}
    parts = {
        "this model, encoder alone": alone,
        "this model, its objective's own rule": metrics.get("native", {}),
        **_rivals(metrics.get("baselines", {}), metrics),
    }
    scores = {name: part.get(split) for name, part in parts.items() if isinstance(part, dict)}
    return {name: score for name, score in scores.items() if isinstance(score, dict)}


def _history(run: Path) -> list[dict[str, Any]]:
    try:
        with plain_file(run, "history.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error):
        return []


def _beside(settings: Mapping[str, Any]) -> str:
    """What to add to the name of a map of vectors by which the run does not predict."""
    return "" if "encoder" in predicting(settings) else ", of word vectors that do not predict"


def _made(
    manifest: Mapping[str, Any], config: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The command and the tables of how a run was made: what its predictions come from.

    settings: what predicts, as `metrics.json` has it.
    """
    void: Collection[str] = OF_TRAINING if config.get("freeze") else ()
    void = void if "encoder" in predicting(settings) else OF_ENCODER
    data = manifest.get("data")
    rows = []
    for split, about in (data if isinstance(data, dict) else {}).items():
        if isinstance(about, dict):
            counts = about.get("classes")
            some = counts.items() if isinstance(counts, dict) else ()
            of_classes = ", ".join(f"{isolated(name)} {count}" for name, count in some)
            file = f"{about.get('file')}, SHA-256 {str(about.get('sha256'))[:16]}"
            rows.append((split, f"{about.get('rows')} rows ({of_classes}) of {file}"))
    # No times: the page of a repeated run is the same to the byte.
    names = ("objective", "encoder", "preset", "seed")
    known = {name: manifest.get(name) for name in names if name not in void}
    titles = [settings.get(key) for key in ("probe_title", "companion")]
    known["predicts by"] = " + ".join(str(title) for title in titles if title) or None
    about_run = [(name, value) for name, value in known.items() if value is not None]
    given = [(k, v) for k, v in config.items() if v is not None and k not in {"preset", *void}]
    versions = manifest.get("versions")
    command = manifest.get("command")
    return {
        "command": shlex.join(map(str, command)) if isinstance(command, list) else "",
        "made": {
            "Data": rows,
            "Run": about_run,
            "Parameters": given,
            "Versions": list(versions.items()) if isinstance(versions, dict) else [],
        },
    }
