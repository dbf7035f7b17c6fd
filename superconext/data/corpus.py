"""Readers of files into memory: `read_labelled` and `read_texts`.

Formats and columns are described in `formats` and `columns`.

What a reader decides on its own it says in `notes`. Rows are never dropped in silence:
an empty text or label is an error naming the line; only lines with nothing on them are
left out, counted in a note, and `lines` tells which line each text came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from superconext.core.errors import DataError
from superconext.data.columns import ColumnSpec
from superconext.data.dataset import Dataset, Texts
from superconext.data.formats import Wanted, read_examples
from superconext.data.source import open_source


def read_labelled(
    path: str | Path, text_column: ColumnSpec = None, label_column: ColumnSpec = None
) -> Dataset:
    """Read a labelled file: CSV, TSV, JSON lines, fastText lines (also `.gz`) or Parquet.

    Columns are `text` and `label`, or those given by name or 1-based number (`2` or
    `"2"`; digits are always a number). Stray spaces around labels are stripped.
    `"-"` reads standard input.

    Raises DataError, one line with file and line number, for anything that cannot be
    read as examples; MissingExtraError for Parquet without pyarrow.
    """
    source = open_source(path)
    found = read_examples(source, Wanted(text_column, label_column))
    labels = [label.strip() for label in found.labels]
    _refuse_empty(found.texts, found.lines, source.name, "text", "remove them")
    _refuse_empty(labels, found.lines, source.name, "label", "label them or remove them")
    stray = sum(a != b for a, b in zip(found.labels, labels, strict=True))
    notes = list(found.notes)
    if stray:
        notes.append(f"stray spaces stripped from {stray} label{'s' if stray > 1 else ''}")
    return Dataset(found.texts, labels, found.lines, source.name, source.sha256, notes)


def read_texts(path: str | Path, text_column: ColumnSpec = None) -> Texts:
    """Read the same files as `read_labelled`, labels ignored, or plain text.

    A `.txt` file and standard input (`"-"`) are plain text, one sentence a line, unless
    `text_column` is given or the first line opens with `__label__`. Blank lines of
    plain text are left out with a note; an empty text in a column is a DataError.
    """
    source = open_source(path)
    found = read_examples(source, Wanted(text_column, labelled=False))
    _refuse_empty(found.texts, found.lines, source.name, "text", "remove them")
    return Texts(found.texts, found.lines, source.name, found.notes)


def _refuse_empty(
    values: Sequence[str], lines: Sequence[int], source: str, what: str, advice: str
) -> None:
    empty = [line for value, line in zip(values, lines, strict=True) if not value.strip()]
    if empty:
        count = f"{len(empty)} rows" if len(empty) > 1 else "1 row"
        raise DataError(
            f"{source}, line {empty[0]}: found an empty {what} ({count} in all), expected "
            f"a {what} in every row: {advice}"
        )
