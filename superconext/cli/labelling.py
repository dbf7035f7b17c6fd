"""`superconext audit`: the commands for those who label."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from superconext.cli.options import (
    COLUMNS,
    HEADER,
    JSON,
    QUIET,
    THREADS,
    echo_json,
    echo_notes,
    number,
)

if TYPE_CHECKING:
    from superconext.data.dataset import Dataset

#: Rows shown on a terminal, and cells of a text there.
_SHOWN, _WIDTH = 20, 60

OUT = click.option(
    "--out", metavar="FILE", help="Write the rows here, as CSV where it ends in .csv, else as TSV."
)


@click.command()
@click.argument("file")
@click.option("--run", metavar="RUN", help="Use the sentence vectors of this run too.")
@number("-n", None, "Rows to give, the most suspicious first.  [default: all]", name="count")
@OUT
@COLUMNS
@HEADER
@JSON
@QUIET
@THREADS
def audit(
    file: str,
    run: str | None,
    count: int | None,
    out: str | None,
    text_column: str | None,
    label_column: str | None,
    header: bool | None,
    as_json: bool,
    quiet: bool,
    threads: int,
) -> None:
    """Rows of the labelled FILE, those whose label is most likely wrong first.

    Gives label, text, line, the label it may be, a suspicion and reasons, as TSV (on a terminal a
    table of the first rows). Correct the labels in a spreadsheet: train reads the file as it is.
    RUN is best one that was not trained on FILE.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.data.reading import read_labelled
    from superconext.labelling.audit import audit as audit_rows

    _check_out(out)
    rows = read_labelled(file, text_column, label_column, header)
    echo_notes(rows.notes, rows.source)
    progress = TerminalProgress(quiet)
    vectors = None
    if run is not None:
        from superconext.cli.use import _load

        _warn_of_own_rows(run, rows, progress.warn)
        vectors = _load(run, threads).features(rows.texts)
    with progress.bar("fitting models of the other rows") as advance:
        found = audit_rows(rows, vectors, advance)
    listed = [suspect.to_dict() for suspect in found.ranked[:count]]
    if not quiet:
        _show_summary(found.summary)
    if as_json:
        echo_json({**found.summary, "ranked": listed})
        return
    give_rows([{**row, "why": "; ".join(row["why"])} for row in listed], out)


def _warn_of_own_rows(run: str, rows: Dataset, warn: Any) -> None:
    from pathlib import Path

    from superconext.runs.folder import read_manifest

    manifest = read_manifest(Path(run))
    if manifest.get("data", {}).get("train", {}).get("sha256") == rows.sha256:
        warn(
            f"{run} was trained on {rows.source}: its vectors agree with the labels, wrong ones "
            "too; expected a run of other rows, or none"
        )


def _show_summary(summary: Mapping[str, Any]) -> None:
    from superconext.report.table import render

    source = summary["file"]
    counts = f"{summary['suspects']} of {summary['rows']} rows are suspects"
    told = [
        (summary["contradictions"], "have a text that has another label in another row"),
        (summary["mojibake"], "have a text that looks like mojibake"),
    ]
    more = "".join(f"; {many} {what}" for many, what in told if many)
    click.echo(f"{source}: {counts}{more}", err=True)
    for label, meant in summary["misspelt_labels"].items():
        click.echo(f"{source}: label {label!r} may be {meant!r} misspelt", err=True)
    scripts = [{"script": script, **of} for script, of in summary["scripts"].items()]
    click.echo(f"{render(scripts, list(scripts[0]))}\n", err=True)


def _check_out(out: str | None) -> None:
    """Refuse, before any work, a file that cannot be written."""
    from pathlib import Path

    from superconext.core.errors import DataError

    if out is not None and not Path(out).parent.is_dir():
        raise DataError(f"{out}: found no folder {Path(out).parent}; expected one to write into")
    if out is not None and Path(out).is_dir():
        raise DataError(f"{out} is a folder; expected the name of a file to write: choose another")


def give_rows(rows: Sequence[Mapping[str, Any]], out: str | None) -> None:
    """Rows of the same keys to a file or stdout, under a heading; a table on a terminal.

    TSV has no quoting: tabs and line ends inside a cell become spaces. CSV begins with a byte
    order mark, without which spreadsheets do not take it for UTF-8.
    """
    import csv
    import io
    from pathlib import Path

    from superconext.core.files import tsv_cell, write_text
    from superconext.report.table import clip, render

    if out is None and sys.stdout.isatty():
        shown = [
            {
                name: clip(cell, _WIDTH) if isinstance(cell, str) else cell
                for name, cell in row.items()
            }
            for row in rows[:_SHOWN]
        ]
        click.echo(render(shown, list(rows[0])))
        if len(rows) > _SHOWN:
            click.echo(f"{_SHOWN} of {len(rows)} rows shown; --out FILE writes all", err=True)
        return
    if out is not None and out.lower().endswith(".csv"):
        stream = io.StringIO()
        table = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
        write_text(Path(out), "\ufeff" + stream.getvalue())
    else:
        lines = [rows[0], *(row.values() for row in rows)]
        text = "\n".join("\t".join(tsv_cell(str(cell)) for cell in line) for line in lines)
        if out is None:
            click.echo(text)
            return
        write_text(Path(out), text + "\n")
    click.echo(f"{out}: {len(rows)} rows", err=True)
