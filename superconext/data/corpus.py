"""Which examples does a labelled file hold, and can they be trained on?

`read_labelled` is the door for training and evaluation, `read_texts` the one for
prediction and embedding. Formats and columns are told in `formats` and `columns`.

What a reader decides on its own it says in `notes`. Rows are never dropped in silence:
an empty text or label is an error naming the line; only lines with nothing on them are
left out, counted in a note, and `lines` tells which line each text came from.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from superconext.core.errors import DataError
from superconext.data.columns import ColumnSpec
from superconext.data.formats import Wanted, read_examples
from superconext.data.source import open_source, shown


@dataclass(frozen=True)
class Corpus:
    """Labelled examples in the order of the file; `texts`, `labels`, `lines` have N items."""

    texts: list[str]
    labels: list[str]
    lines: list[int]  # 1-based line (Parquet: row) each example starts on
    source: str  # file name as given
    sha256: str  # of the file's bytes as they lie on disk
    notes: list[str]  # what the reader decided

    def __len__(self) -> int:
        return len(self.texts)

    def class_counts(self) -> dict[str, int]:
        """Examples in each class, sorted by label."""
        return dict(sorted(Counter(self.labels).items()))

    def select(self, rows: Iterable[int]) -> Corpus:
        """The examples at the 0-based `rows`, in that order, from the same file."""
        picked = [int(row) for row in rows]
        return dataclasses.replace(
            self,
            texts=[self.texts[row] for row in picked],
            labels=[self.labels[row] for row in picked],
            lines=[self.lines[row] for row in picked],
        )


@dataclass(frozen=True)
class Texts:
    """Sentences without labels, in the order of the file; both lists have N items."""

    texts: list[str]
    lines: list[int]  # 1-based line (Parquet: row) each text starts on
    source: str
    notes: list[str]

    def __len__(self) -> int:
        return len(self.texts)


def read_labelled(
    path: str | Path, text_column: ColumnSpec = None, label_column: ColumnSpec = None
) -> Corpus:
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
    return Corpus(found.texts, labels, found.lines, source.name, source.sha256, notes)


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


def check_training(corpus: Corpus) -> None:
    """Refuse a corpus no classifier can be trained on.

    Raises DataError where there are no examples, one class only, or a class with a
    single example (which has no partner of its own class to be pulled towards).
    """
    check_counts(
        corpus.class_counts(),
        corpus.source,
        lambda label: corpus.lines[corpus.labels.index(label)],
    )


def check_counts(counts: Mapping[str, int], source: str, line_of: Callable[[str], int]) -> None:
    """The same from the rows in each class; `line_of` tells a line on which a label stands."""
    if not counts:
        raise DataError(f"{source}: found no examples, expected two classes or more")
    if len(counts) == 1:
        (label, count) = next(iter(counts.items()))
        raise DataError(
            f"{source}: found one class only ({shown(label)}, {count} rows), expected two "
            "or more: add examples of another class, or check --label-column"
        )
    single = [label for label, count in counts.items() if count == 1]
    if single:
        named = ", ".join(f"{shown(label)} (line {line_of(label)})" for label in single[:5])
        more = f" and {len(single) - 5} more" if len(single) > 5 else ""
        raise DataError(
            f"{source}: found {len(single)} class{'es' if len(single) > 1 else ''} with a "
            f"single row: {named}{more}, expected two rows or more in each: add examples, "
            "remove the row, or check --label-column"
        )


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
