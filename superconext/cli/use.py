"""`superconext evaluate`, `predict` and `embed`: what one does with a run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMN = click.option("--text-column", metavar="NAME", help="Text column, by name or number.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_THREADS = click.option(
    "--threads", type=click.IntRange(1), default=1, show_default=True, help="Threads for torch."
)


@click.command()
@click.argument("run")
@click.argument("file")
@_COLUMN
@click.option("--label-column", metavar="NAME", help="Label column, by name or number.")
@_JSON
@_THREADS
def evaluate(
    run: str,
    file: str,
    text_column: str | None,
    label_column: str | None,
    as_json: bool,
    threads: int,
) -> None:
    """Figures of merit of RUN on the labelled FILE."""
    from superconext.data.corpus import read_labelled
    from superconext.metrics import classification_metrics
    from superconext.report.scores import class_table, score_table

    model = _load(run, threads)
    corpus = read_labelled(file, text_column, label_column)
    for note in corpus.notes:
        click.echo(f"note: {corpus.source}: {note}", err=True)
    unknown = sorted(set(corpus.labels) - set(model.classes))
    if unknown:
        click.echo(
            f"warning: {corpus.source} has labels that {run} does not know: "
            f"{', '.join(unknown[:5])}; they count as wrong",
            err=True,
        )
    predicted = model.predict(corpus.texts)
    scores = classification_metrics(corpus.labels, predicted, model.classes)
    if as_json:
        click.echo(json.dumps(scores, ensure_ascii=False))
        return
    click.echo(score_table({"reported_split": "test", "test": scores}))
    click.echo("\n" + class_table(scores))


@click.command()
@click.argument("run")
@click.argument("file", default="-")
@_COLUMN
@click.option("--proba", is_flag=True, help="Add the probability of every class.")
@_JSON
@_THREADS
def predict(
    run: str, file: str, text_column: str | None, proba: bool, as_json: bool, threads: int
) -> None:
    """Labels for the texts of FILE (- is standard input): label TAB text.

    With --proba a heading line names the classes.
    """
    from superconext.files import tsv_cell

    model = _load(run, threads)
    texts = _texts(file, text_column)
    probabilities = model.probabilities(texts)
    labels = [model.classes[k] for k in probabilities.argmax(axis=1)]
    if as_json:
        rows: list[dict[str, Any]] = []
        for label, text, row in zip(labels, texts, probabilities, strict=True):
            shares = {"probabilities": dict(zip(model.classes, row.tolist(), strict=True))}
            rows.append({"label": label, **(shares if proba else {}), "text": text})
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    if proba:
        click.echo("\t".join(["label", *map(tsv_cell, model.classes), "text"]))
    for label, text, row in zip(labels, texts, probabilities, strict=True):
        shares_text = [f"{share:.4f}" for share in row] if proba else []
        click.echo("\t".join([tsv_cell(label), *shares_text, tsv_cell(text)]))


@click.command()
@click.argument("run")
@click.argument("file")
@click.option("--out", required=True, metavar="VECTORS.npy", help="NumPy file to write.")
@_COLUMN
@_THREADS
def embed(run: str, file: str, out: str, text_column: str | None, threads: int) -> None:
    """Sentence vectors of the texts of FILE, float32 [N, d], as a NumPy file."""
    import io
    from pathlib import Path

    import numpy as np

    from superconext.errors import DataError
    from superconext.files import beside

    path = Path(out)
    if not path.parent.is_dir():
        raise DataError(f"{path.parent}: no such folder; expected one to write {path.name} into")
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is no plain file; expected a file name to write: choose another")
    vectors = _load(run, threads).features(_texts(file, text_column))
    # Not straight into the file: there NumPy does not say why a write fails.
    buffer = io.BytesIO()
    np.save(buffer, vectors, allow_pickle=False)
    with beside(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())
    click.echo(f"{out}: {vectors.shape[0]} vectors of {vectors.shape[1]} numbers", err=True)


def _load(run: str, threads: int) -> Any:
    import torch

    from superconext.runs.folder import load_model

    torch.set_num_threads(threads)
    return load_model(run)


def _texts(file: str, text_column: str | None) -> Sequence[str]:
    from superconext.data.corpus import read_texts

    found = read_texts(file, text_column)
    for note in found.notes:
        click.echo(f"note: {found.source}: {note}", err=True)
    return found.texts
