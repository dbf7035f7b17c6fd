"""`superconext pretrain`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from superconext.cli.parameters import Command
from superconext.cli.text_options import (
    BRIDGE,
    COLUMN,
    FORCE,
    JSON,
    LEAVE_OUT,
    OUT,
    POSITIVE,
    QUIET,
    free_folder,
    normalize,
)
from superconext.config.parameters import BY_NAME

_SHARE = click.FloatRange(0.0, 0.95)


@click.command(cls=Command)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@OUT
@FORCE
@click.option(
    "--vectors",
    metavar="VECTORS",
    help="Word vectors to read with; unset: trained on the same text.",
)
@click.option(
    "--vector-dimension",
    "dimension",
    type=POSITIVE,
    default=BY_NAME["vector_dimension"].default,
    show_default=True,
    help="Numbers in a word vector trained here.",
)
@click.option(
    "--hidden-size",
    type=POSITIVE,
    default=BY_NAME["hidden_size"].default,
    show_default=True,
    help="LSTM units in each direction; a run that starts from it needs the same.",
)
@click.option("--epochs", type=POSITIVE, default=2, show_default=True, help="Passes over it.")
@click.option("--batch-size", type=POSITIVE, default=128, show_default=True, help="Sentences.")
@click.option(
    "--learning-rate",
    type=click.FloatRange(0.0, min_open=True),
    default=0.002,
    show_default=True,
    help="Adam's step size at its height.",
)
@click.option("--dropout", type=_SHARE, default=0.2, show_default=True, help="On vectors, states.")
@click.option(
    "--word-dropout", type=_SHARE, default=0.2, show_default=True, help="Share of words hidden."
)
@click.option(
    "--sample",
    type=POSITIVE,
    default=2048,
    show_default=True,
    help="Other words that the true one is compared with.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--threads", type=POSITIVE, default=1, show_default=True)
@normalize(None, "Profile and rules, as auto-lower; unset: as VECTORS record them, else auto.")
@BRIDGE
@LEAVE_OUT
@COLUMN
@JSON
@QUIET
def pretrain(
    files: tuple[str, ...],
    out: str,
    force: bool,
    vectors: str | None,
    dimension: int,
    threads: int,
    normalize: str | None,
    bridge: str | None,
    leave_out: tuple[str, ...],
    text_column: str | None,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Train an encoder to predict the words of the text FILEs, one sentence a line (also .gz).

    Of labelled files only the text is read. `superconext train --init FOLDER` starts from it. The
    same call goes on where it was stopped, and what is done once is kept in the cache.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.report.vectors import facts_table
    from superconext.training.pretraining.language_model import Settings
    from superconext.training.pretraining.make import PretrainRequest
    from superconext.training.pretraining.make import pretrain as make

    request = PretrainRequest(
        files=files,
        out=free_folder(out, force),
        settings=Settings(**settings),
        vectors=vectors,
        dimension=dimension,
        normalize=normalize,
        bridge=bridge,
        leave_out=leave_out,
        text_column=text_column,
        threads=threads,
    )
    facts = make(request, TerminalProgress(quiet))
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    last = facts["history"][-1]
    shown = {
        "sentences": facts["sentences"],
        "tokens": facts["tokens"],
        "predicted words": facts["predicted_words"],
        "loss on sentences held back": round(last["held_loss"], 4),
        "cached": facts["cached"],
        "seconds": facts["seconds"],
    }
    click.echo(facts_table(shown))
    click.echo(f"folder: {Path(out)}", err=True)
