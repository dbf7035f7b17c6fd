"""`superconext evaluate`, `predict` and `embed`: what one does with a run."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

_COLUMN = click.option("--text-column", metavar="NAME", help="Text column, by name or number.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_THREADS = click.option(
    "--threads", type=click.IntRange(1), default=1, show_default=True, help="Threads for torch."
)


def _not_nan(ctx: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is no probability; expected a number from 0 to 1")
    return value


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
    from superconext.data.reading import read_labelled
    from superconext.fitting.evaluation import evaluate as evaluate_model
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
    evaluation = evaluate_model(model, corpus.texts, corpus.labels)
    if as_json:
        click.echo(json.dumps(evaluation.document(), ensure_ascii=False))
        return
    table: dict[str, Any] = {"reported_split": "test", "test": evaluation.metrics}
    if model.ensemble is not None:
        table["combined"] = {"test": evaluation.metrics}
        table["encoder_alone"] = {"test": evaluation.encoder_alone}
        table["companion"] = model.ensemble.title
    click.echo(score_table(table))
    click.echo("\n" + class_table(evaluation.metrics))


@click.command()
@click.argument("run")
@click.argument("file", default="-")
@_COLUMN
@click.option("--proba", is_flag=True, help="Add the probability of every class.")
@click.option(
    "--abstain-below",
    type=click.FloatRange(0, 1),
    callback=_not_nan,
    metavar="P",
    help="Leave the label empty (JSON: null) where no class is as probable as P.",
)
@click.option(
    "--on-error",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="At a line that cannot be read: stop, or leave it out and count it.",
)
@_JSON
@_THREADS
def predict(
    run: str,
    file: str,
    text_column: str | None,
    proba: bool,
    abstain_below: float | None,
    on_error: str,
    as_json: bool,
    threads: int,
) -> None:
    """Labels for the texts of FILE (- is standard input): label TAB text.

    RUN may also be a folder of export --format onnx: then onnxruntime answers. With --proba a
    heading line names the classes. FILE may be of any size: it is read,
    predicted and written a piece at a time, in its order.
    """
    from superconext.cli.predictions import write_predictions
    from superconext.data.reading import RowStream

    model = _load_any(run, threads)
    texts = RowStream(file, text_column, labelled=False, on_error=on_error)
    write_predictions(model, texts, as_json, proba, abstain_below)


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

    from superconext.core.errors import DataError
    from superconext.core.files import beside

    path = Path(out)
    if not path.parent.is_dir():
        raise DataError(f"{path.parent}: no such folder; expected one to write {path.name} into")
    if path.exists() and not path.is_file():
        raise DataError(f"{path} is no plain file; expected a file name to write: choose another")
    vectors = _load_any(run, threads).features(_texts(file, text_column))
    # Not straight into the file: there NumPy does not say why a write fails.
    buffer = io.BytesIO()
    np.save(buffer, vectors, allow_pickle=False)
    with beside(path) as temporary:
        temporary.write_bytes(buffer.getbuffer())
    click.echo(f"{out}: {vectors.shape[0]} vectors of {vectors.shape[1]} numbers", err=True)


def _load(run: str, threads: int) -> Any:
    from superconext.core.gc_pause import not_collecting

    with not_collecting():
        import torch

        from superconext.runs.folder import load_model

        torch.set_num_threads(threads)
        return load_model(run)


def _load_any(run: str, threads: int) -> Any:
    """A run, or what export --format onnx made of one, which is answered by onnxruntime."""
    from pathlib import Path

    if not (Path(run) / "model.onnx").is_file():
        return _load(run, threads)
    from superconext.export.onnx_model import OnnxModel

    return OnnxModel(run, threads)


def _texts(file: str, text_column: str | None) -> Sequence[str]:
    from superconext.data.reading import read_texts

    found = read_texts(file, text_column)
    for note in found.notes:
        click.echo(f"note: {found.source}: {note}", err=True)
    return found.texts
