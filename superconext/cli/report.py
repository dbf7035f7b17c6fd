"""`superconext report`: the page of a run."""

from __future__ import annotations

from pathlib import Path

import click

from superconext.cli.options import COLUMNS, HEADER, THREADS, echo_notes


@click.command()
@click.argument("run")
@click.argument("file", required=False)
@click.option("--train", metavar="FILE", help="Training rows, to show the ones nearest to FILE's.")
@click.option(
    "--out",
    metavar="PAGE.html",
    help="Page to write.  [default: RUN/report.html; with FILE, report-NAME.html beside it]",
)
@COLUMNS
@HEADER
@THREADS
def report(
    run: str,
    file: str | None,
    train: str | None,
    out: str | None,
    text_column: str | None,
    label_column: str | None,
    header: bool | None,
    threads: int,
) -> None:
    """Write a page of RUN on the labelled FILE: scores, a map, mistakes, every sentence.

    Without FILE the page shows what RUN recorded, without sentences unless --keep-text kept them.
    It is one file that loads nothing else; it holds the sentences of FILE and --train.
    """
    from superconext.cli.use import _known, _load, _unknown_labels
    from superconext.core.errors import DataError
    from superconext.core.progress import TerminalProgress
    from superconext.data.dataset import Dataset
    from superconext.data.reading import read_labelled
    from superconext.report.page import write_page
    from superconext.runs.page import PAGE, folder_page, other_page

    name = PAGE if file is None else f"report-{Path(file).name.split('.')[0] or 'rows'}.html"
    path = Path(out) if out else Path(run) / name
    if not path.parent.is_dir():
        raise DataError(f"{path.parent}: no such folder; expected one to write {path.name} into")
    if file is None:
        if train:
            raise click.UsageError("--train goes with FILE; name the rows to judge RUN on too.")
        if out is None and path.exists():
            raise DataError(
                f"{path} is there already; expected to write a new page: open it, or name another "
                "with --out"
            )
        write_page(path, folder_page(Path(run)))
    else:
        model = _load(run, threads)

        def read(path: str) -> Dataset:
            corpus = read_labelled(path, text_column, label_column, header, _known(model))
            echo_notes(corpus.notes, corpus.source)
            return corpus

        corpus = read(file)
        _unknown_labels(corpus, model.classes, run)
        rows = None if train is None else read(train)
        with TerminalProgress().bar("drawing the page"):
            write_page(path, other_page(Path(run), model, corpus, rows))
    click.echo(path)
