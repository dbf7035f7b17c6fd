"""`superconext pretrain`."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from superconext.cli.options import (
    BRIDGE,
    JSON,
    LEAVE_OUT,
    QUIET,
    TEXT_COLUMN,
    THREADS,
    Command,
    echo_json,
    free_folder,
    normalize,
    number,
    out,
    say_next,
)
from superconext.config.parameters import BY_NAME

_SHARE = click.FloatRange(0.0, 0.95)


@click.command(cls=Command)
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@out("word vectors")
@click.option(
    "--vectors",
    metavar="VECTORS",
    help="Word vectors to read with; unset: trained on the same text.",
)
@number(
    "--vector-dimension",
    BY_NAME["vector_dimension"].default,
    "Numbers in a word vector trained here.",
    name="dimension",
)
@number(
    "--hidden-size",
    BY_NAME["hidden_size"].default,
    "LSTM units in each direction; a run that starts from it needs the same.",
)
@number("--epochs", 2, "Passes over the text.")
@number("--batch-size", 128, "Sentences in a batch.")
@number(
    "--learning-rate", 0.002, "Largest step size of Adam.", click.FloatRange(0.0, min_open=True)
)
@number("--dropout", 0.2, "Dropout on word vectors and states.", _SHARE)
@number("--word-dropout", 0.2, "Share of words hidden behind <unk>.", _SHARE)
@number("--sample", 2048, "Other words that the true one is compared with.")
@number(
    "--emoji-epochs",
    8,
    "Passes over the sentences with emoji, whose emoji are then their classes; 0 for none.",
    click.IntRange(0),
)
@number("--seed", 0, "Seed of everything random.", click.IntRange(0))
@THREADS
@normalize(None, "Profile and rules, as auto-lower; unset: as VECTORS record them, else auto.")
@BRIDGE
@LEAVE_OUT
@TEXT_COLUMN
@JSON
@QUIET
def pretrain(
    files: tuple[str, ...],
    out: str,
    force: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Train an encoder to predict the words of the text FILEs, one sentence a line (also .gz).

    Where 1,000 sentences or more hold emoji, it then learns to tell sentences apart by their
    emoji. Of labelled files only the text is read. `superconext train --init FOLDER` starts from
    it. The same call resumes where it stopped, and finished work is kept in the cache.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.report.datasets import facts_table
    from superconext.training.pretraining.language_model import Settings
    from superconext.training.pretraining.make import PretrainRequest
    from superconext.training.pretraining.make import pretrain as make

    settings = Settings(**{field.name: options.pop(field.name) for field in fields(Settings)})
    request = PretrainRequest(
        files=files, out=free_folder(out, force), settings=settings, **options
    )
    facts = make(request, TerminalProgress(quiet))
    if as_json:
        echo_json(facts)
        return
    last = facts["history"][-1]
    shown = {
        "sentences": facts["sentences"],
        "tokens": facts["tokens"],
        "predicted words": facts["predicted_words"],
        "loss on sentences held back": round(last["held_loss"], 4),
        "sentences with emoji": facts["emoji"]["sentences"] if facts["emoji"] else 0,
        "cached": facts["cached"],
        "seconds": facts["seconds"],
    }
    click.echo(facts_table(shown))
    click.echo(f"folder: {Path(out)}", err=True)
    say_next(f"superconext train FILE --init {shlex.quote(out)} --out RUN")
