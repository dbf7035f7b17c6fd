"""`superconext train` and `superconext pretrain`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from superconext.cli.options import (
    BRIDGE,
    COLUMNS,
    CONFIG,
    FIGURES,
    JSON,
    LEAVE_OUT,
    QUIET,
    READING,
    TEXT_COLUMN,
    TEXT_READING,
    THREADS,
    GroupedCommand,
    echo_json,
    free_folder,
    given_parameters,
    missing,
    normalize,
    number,
    out,
    parameters,
    say_next,
    say_waiting,
    switch,
    tell,
)
from superconext.config.parameters import BY_NAME
from superconext.core.files import shell_word


@click.command(
    cls=GroupedCommand,
    needs=("train_file", "out"),
    short_help="Train a classifier on a labelled file.",
)
@click.argument("train_file", metavar="[TRAIN]", required=False)
@click.option(
    "--dev",
    metavar="FILE",
    help="Labelled file to choose settings on; unset: TRAIN is cross-validated, or a tenth of it "
    "is held out.",
)
@click.option(
    "--test",
    metavar="FILE",
    help="Labelled file to report scores on; unset: dev rows, or out-of-fold predictions.",
)
@click.option(
    "--out",
    metavar="RUN",
    help="Folder to write; must not exist.  [required, unless --resume is given]",
)
@switch("--force", "Replace RUN if it exists.")
@click.option(
    "--resume",
    metavar="RUN",
    help="Resume a run that was interrupted after its encoder's first epoch; cross-validations, "
    "even of recipes, start again.",
)
@CONFIG
@COLUMNS
@click.option(
    "--store", metavar="DIR", help="Stream a TRAIN of any size, and keep its tokens in this folder."
)
@READING
@switch("--keep-text", "Include the texts in predictions.tsv.")
@switch("--no-report", "Do not write report.html, the page of the run, which quotes its sentences.")
@FIGURES
@JSON
@QUIET
@parameters()
@click.pass_context
def train(
    ctx: click.Context,
    train_file: str | None,
    out: str | None,
    resume: str | None,
    config: str | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Train on the labelled file TRAIN and write the run folder RUN.

    TRAIN is CSV, TSV, JSON, fastText's __label__ lines (also .gz), .xlsx, Parquet, or a folder of
    Hugging Face datasets. Unless an option says how to learn (an objective, an encoder or its
    sizes, --epochs or the like, --probe-features, a preset), a few recipes are compared and the
    best is used.
    """
    from superconext.config.files import read_config
    from superconext.core.process import choose_threads
    from superconext.core.progress import TerminalProgress

    progress = TerminalProgress(quiet)
    named = given_parameters(options)
    about_rows = {name: value for name, value in options.items() if name not in BY_NAME}
    if resume:
        asked = (train_file, out, config, *about_rows.values(), *reading.values(), named)
        if any(asked) or False in (reading["header"], reading["fold_label_case"]):
            raise click.UsageError(
                "--resume takes its files and parameters from RUN; leave out everything but "
                "--json and --quiet"
            )
        from superconext.runs.folder import run_of
        from superconext.runs.train import distributed, resume_run

        out = str(run_of(Path(resume)))
        _show(distributed(lambda: resume_run(Path(resume), progress)), out, as_json)
        return
    if not (train_file and out):
        gone = {"train_file": train_file, "out": out}
        raise missing(ctx, *(name for name, value in gone.items() if not value))
    given = {**(read_config(Path(config)) if config else {}), **named}
    if given.get("threads") is None:
        given["threads"] = choose_threads()
    # Not before threads are chosen: torch reads how they wait when it is imported.
    from superconext.fitting.recipes import flags_naming
    from superconext.runs.splits import TrainRequest
    from superconext.runs.train import distributed, train_run

    named_by = flags_naming(given)
    if not named_by:
        given["preset"] = "auto"

    request = TrainRequest(
        train=train_file,
        out=out,
        given=given,
        command=("superconext", *ctx.obj),
        reading=reading,
        **about_rows,
    )
    say_waiting(train_file, request.dev, request.test)
    _show(distributed(lambda: train_run(request, progress)), out, as_json, named_by)


def _show(
    metrics: dict[str, Any] | None, out: str, as_json: bool, named: Sequence[str] = ()
) -> None:
    if metrics is None:  # of several processes the first alone has something to show
        return
    from superconext.report.table import (
        agreement_line,
        score_table,
        script_table,
        told_overlap,
        verdict,
    )

    if as_json:
        echo_json(metrics)
        return
    click.echo(score_table(metrics))
    if "overlap" in metrics:
        tell(f"warning: test: {told_overlap(metrics['overlap'])}")
    if "agreement" in metrics:
        click.echo(agreement_line(metrics["agreement"]))
    if scripts := script_table(metrics):
        click.echo("\n" + scripts)
    if told := verdict(metrics, named):
        tell(f"note: {told}")
    tell(f"run folder: {out}")
    page = Path(out, "report.html")
    say_next(
        f"superconext predict {shell_word(out)} FILE"
        + f"; open {shell_word(page)} in a browser" * page.exists()
    )


_SHARE = click.FloatRange(0.0, 0.95)


@click.command(short_help="Pretrain an encoder on unlabelled text.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@out("an encoder or word vectors")
@click.option(
    "--vectors",
    metavar="VECTORS",
    help="Word vectors to use; unset: trained on the same text.",
)
@click.option(
    "--init",
    metavar="FOLDER",
    help="Pretrained encoder to train further, with its word vectors.",
)
@number(
    "--vector-dimension", None, "Dimension of word vectors trained here; unset: 100, or --init's."
)
@number("--hidden-size", None, "LSTM units in each direction; unset: 128, or --init's.")
@number("--epochs", None, "Passes over the text; unset: 2, with --init 10.")
@number("--words", None, "Words of the text that each pass reads, drawn anew; unset: all.")
@number(
    "--batch-size", None, "Sentences in a batch; unset: 128, or 256 from 50,000 sentences of text."
)
@number(
    "--learning-rate",
    None,
    "Adam's peak learning rate; unset: 0.002, or 0.003 from 50,000 sentences of text.",
    click.FloatRange(0.0, min_open=True),
)
@number("--dropout", 0.2, "Dropout on word vectors and states.", _SHARE)
@number("--word-dropout", 0.2, "Share of words replaced by <unk>.", _SHARE)
@number(
    "--emoji-epochs",
    None,
    "Passes over the sentences with emoji, with the emoji as classes; unset: 8, with --init 0.",
    click.IntRange(0),
)
@number("--seed", 0, "Random seed.", click.IntRange(0))
@click.option(
    "--compile", is_flag=True, help="Compile part of a step with g++ or clang++, for speed."
)
@THREADS
@normalize(
    None,
    "Normalisation profile and rules, such as auto-lower; unset: those recorded with the word "
    "vectors, else auto.",
)
@BRIDGE
@LEAVE_OUT
@TEXT_COLUMN
@TEXT_READING
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
    """Pretrain an encoder on the text FILEs, one sentence a line (also .gz).

    It learns to predict the words and, if 1,000 sentences or more have emoji, then to tell
    sentences apart by their emoji. Of labelled files only the text is read. `superconext train
    --init FOLDER` starts from the encoder. With --init, an encoder trains further on your texts.
    Repeat the command to resume it; finished work is kept in the cache.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.report.datasets import facts_table
    from superconext.training.pretraining.make import by_all, request_of
    from superconext.training.pretraining.make import pretrain as make

    def first() -> dict[str, Any]:
        folder = free_folder(out, force, [*files, *options["leave_out"], options["vectors"]])
        return make(request_of(options, files=files, out=folder), TerminalProgress(quiet))

    facts = by_all(first)
    if facts is None:  # of several processes the first alone has something to show
        return
    if as_json:
        echo_json(facts)
        return
    last = facts["history"][-1]
    shown = {
        "sentences": facts["sentences"],
        "tokens": facts["tokens"],
        "predicted words": facts["predicted_words"],
        "loss on held-out sentences": "none, no word to predict"
        if last["held_loss"] is None
        else round(last["held_loss"], 4),
        "sentences with emoji": facts["emoji"]["sentences"] if facts["emoji"] else 0,
        "cached": facts["cached"],
        "seconds": facts["seconds"],
    }
    click.echo(facts_table(shown))
    tell(f"folder: {Path(out)}")
    say_next(f"superconext train FILE --init {shlex.quote(out)} --out RUN")
