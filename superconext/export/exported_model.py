"""What the exports of a run have in common: texts, also those of a file, to labels without torch.

What is no text is refused, and a table without the column of texts: neither may be labelled as if
it were sentences.
"""

from __future__ import annotations

import csv
import re
import reprlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from superconext.core.blank import uniform_for_blank, zeros_for_blank
from superconext.core.errors import (
    DataError,
    MissingExtraError,
    RunError,
    SuperConTextError,
    check_texts,
    plural,
)
from superconext.core.label_types import best_labels
from superconext.data.file_format import RowFile, Wanted
from superconext.data.formats import FastText, tabs_are_quoted
from superconext.data.lines import STDIN, open_file, refuse_other

#: Suffixes of tables, with the separators that are tried, the likely one first.
_TABLES = {".csv": ",;\t|", ".tsv": "\t,;|", ".tab": "\t,;|"}

#: Suffixes of files that are neither lines of text nor a table.
_OTHERS = {".json", ".jsonl", ".ndjson", ".xlsx", ".xls", ".parquet", ".arrow", ".feather"}

#: What --keep has in place of names for every column beside the text.
ALL = "all"

#: Share of the lines within a cell that are like rows of the table.
_MOSTLY = 0.9

#: Texts that are answered at once, at most.
_AT_ONCE = 1024

#: A text with the cells to keep.
Row = tuple[str, list[str]]

#: Columns that a message lists, and characters of each.
_LISTED, _LONGEST = 10, 24


class ExportedModel:
    """A folder that `superconext export --format onnx` or `static` wrote.

    Attributes:
        folder: where it is.
        classes: labels as text, as the columns of `predict_proba`.
        classes_: the same `[C]` in the dtype that they were fitted in.
        columns: those of the training file, as in `Model`.
        indexer: texts to token ids; None for a static student, which reads all of a text.
        seen: None; an export goes without the hashes of the training texts.
        titles: as of a `Model`.
    """

    folder: Path
    classes: list[str]
    classes_: np.ndarray
    indexer: Any
    seen = None
    titles: ClassVar[dict[str, str]] = {"probe_title": "export"}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r}, classes={reprlib.repr(self.classes)})"

    def estimator(self) -> Any:
        """Raises RunError: an export predicts alone."""
        raise RunError(
            f"{self.folder}: found an export, which has no estimator; expected the run that it was "
            "made from: load that"
        )

    def predict(self, texts: Sequence[str]) -> np.ndarray:
        """The most probable label of each text, `[N]`, in the dtype of `classes_`.

        A blank text gets the label "", as by `superconext predict`; where labels are numbers or
        bool, `classes_[0]`, with a warning.
        """
        texts = check_texts(texts, some=False)
        return best_labels(texts, self.predict_proba(texts), self.classes_)

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        """Class probabilities float64 `[N, C]`, columns as `classes`; of a blank text all alike."""
        texts = check_texts(texts, some=False)
        return uniform_for_blank(texts, self.probabilities(texts))

    def transform(self, texts: Sequence[str]) -> np.ndarray:
        """Sentence vectors float32 `[N, d]`, as the estimator's `transform`; zeros for a blank
        text."""
        texts = check_texts(texts, some=False)
        return zeros_for_blank(texts, self.features(texts))

    def longer(self, texts: Sequence[str]) -> int:
        """How many texts have more tokens than the model reads, `indexer.max_length`."""
        indexer = self.indexer
        return 0 if indexer is None else int(indexer.cut(indexer.tokenizer.many(texts)))

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """What `predict_proba` gives for texts that are not blank. `Model` has a method of this
        name too, so that commands use a run and its export alike."""
        raise NotImplementedError

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """What `transform` gives for texts that are not blank; `Model` has such a method too."""
        raise NotImplementedError


def load_export(folder: Path, threads: int = 1) -> ExportedModel | None:
    """What `export --format onnx` or `static` made of a run; None for any other folder.

    Raises RunError for an export that is not whole.
    """
    if (folder / "static.json").is_file():
        from superconext.export.static_model import StaticModel

        return StaticModel(folder)
    if (folder / "model.onnx").is_file():
        from superconext.export.onnx_model import OnnxModel

        return OnnxModel(folder, threads)
    if (folder / "classify.py").is_file() and not (folder / "manifest.json").is_file():
        if (folder / "static.safetensors").is_file():
            raise not_whole(folder / "static.json")
        if (folder / "model.json").is_file():
            raise not_whole(folder / "model.onnx")
        raise not_whole(folder, "neither model.onnx nor static.json found")
    return None


def checked_facts(facts: Any) -> tuple[list[str], Any]:
    """Classes and columns that an export's file of facts names. Raises ValueError where either is
    none that an export has, LookupError where it lacks them."""
    classes, columns = facts["classes"], facts.get("columns")
    if not isinstance(classes, list) or not all(isinstance(name, str) for name in classes):
        raise ValueError(f"classes {classes!r:.60}, no list of labels")
    if len(classes) < 2 or len({*classes}) < len(classes):
        raise ValueError(f"classes {classes!r:.60}, not two labels or more that differ")
    names = [columns.get("text"), columns.get("label")] if isinstance(columns, dict) else [columns]
    kinds = (str, int, type(None)) if isinstance(columns, dict) else type(None)
    if not all(isinstance(name, kinds) for name in names):
        raise ValueError(f"columns {columns!r:.60}, no names of columns")
    return classes, columns


def not_whole(path: Path | str, found: str = "missing") -> RunError:
    """The error of an export that lacks a file."""
    return RunError(f"{path}: {found}; expected a whole export: copy or export it again")


@contextmanager
def opening(folder: Path, title: str, form: str) -> Iterator[None]:
    """Turn what reading a damaged export raises into RunError; MissingExtraError stays.

    title: what its form is called. form: what `export --format` calls it.
    """
    try:
        yield
    except MissingExtraError:
        raise
    except FileNotFoundError as error:
        raise not_whole(error.filename or folder) from None
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        RecursionError,
        SuperConTextError,
    ) as error:
        raise RunError(
            f"{folder}: not a readable {title} export ({error}); expected what superconext export "
            f"RUN --format {form} wrote: export it again"
        ) from None


def file_rows(
    path: str,
    asked: str | None,
    trained: object,
    encoding: str | None = None,
    keep: Sequence[str] = (),
    classes: Sequence[str] = (),
) -> tuple[list[str], Iterator[list[Row]], str]:
    """Names of the columns to keep; the texts, which are lines, those of fastText, or one column of
    a .csv or .tsv, each with its cells to keep, as many at once as have arrived; and the separator
    that a written .csv is to have.

    Args:
        path: of the file, which may be packed by gzip or bzip2; "-" for standard input.
        asked: the column that the user names, or its number from 1 in a table without a header.
        trained: that of the training file by name, or by number where it had no header; without
            it, or in a file that has no such column, the one named text is read.
        encoding: that of a file that is not UTF-8.
        keep: names of the columns to keep, or "all"; only a table with a header has them.
        classes: labels of the model. A table without a header is read where its first row has one
            of them beside the text, in two columns or as in training; standard error tells which.

    Raises DataError for what cannot be read; for a table without the columns at once.
    """
    file = open_file(path, encoding=encoding)
    refuse_other(file)
    if file.suffix in _OTHERS:
        raise DataError(
            f"{file.name}: found a {file.suffix} file; lines of text, or a .csv or .tsv, are read: "
            "save it as one of these"
        )
    if file.first.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{file.name}: found an Excel workbook or a zip archive; expected text: save the sheet "
            "as CSV UTF-8"
        )
    wanted = [asked] if asked else keep
    column = "columns" if [*wanted[:1]] == [ALL] else f"a column {''.join(wanted[:1])!r}"
    piped = str(path) == STDIN
    if wanted and file.suffix not in _TABLES and not piped:
        raise DataError(f"{file.name}: expected a .csv or .tsv with {column}")
    rows = RowFile(file, Wanted(labelled=False, every_row=True))
    begin = rows.first_line()
    if begin is None:
        raise DataError(f"{file.name} is empty; expected a text a line: check the file")
    if file.suffix != ".csv" and FastText.recognises(begin, rows):
        if wanted:
            raise DataError(f"{file.name}: found fastText lines; expected a table with {column}")
        of_lines = FastText(rows)
        sys.stderr.write(f"note: {file.name}: {rows.notes[-1]}\n")
        blocks = of_lines.blocks()
        return [], ([(text, []) for text in block.texts] for block in blocks), ","
    arrived = _Lines(rows)
    lines = iter(arrived)
    # As `superconext predict` decides; between other marks cells may always be quoted.
    quoted = file.suffix == ".csv" or tabs_are_quoted(rows.head)
    first = next(lines)
    hint = re.fullmatch(r"(?i)sep=([,;\t|])\s*", first) if file.suffix == ".csv" else None
    if hint is None:
        lines = chain([first], lines)
    if file.suffix in _TABLES:
        marks = hint[1] if hint else _TABLES[file.suffix]
        begins = 2 if hint else 1
        names, texts, mark = _columns(
            lines, file.name, marks, quoted, asked, trained, keep, classes, begins
        )
        return names, arrived.parts(texts), mark if file.suffix == ".csv" else ","
    # What begins with a header of single words that names the column of texts is a table.
    name = asked or (trained if isinstance(trained, str) else "text")
    heads = [next(csv.reader([first], delimiter=mark), []) for mark in ",;\t|"]
    alone = [[trained]] if piped and isinstance(trained, str) and not asked else []
    words = [h for h in heads if len(h) > 1 and not any(re.search(r"\s", c.strip()) for c in h)]
    if wanted or heads[:1] == alone or any(name in cells for cells in words):
        names, texts, mark = _columns(
            lines, file.name, ",;\t|", quoted, asked, trained, keep, classes
        )
        return names, arrived.parts(texts), mark if mark != "\t" else ","
    return [], arrived.parts((line.rstrip("\r\n"), []) for line in lines), ","


class _Lines:
    """The lines of a file, with their ends, and what is made of them."""

    def __init__(self, rows: RowFile) -> None:
        self._rows, self._all = rows, False  # whether all that has arrived was given

    def __iter__(self) -> Iterator[str]:
        for _, run in self._rows.runs():
            for count, line in enumerate(run, 1):
                self._all = count == len(run)
                yield line + "\n"

    def parts(self, rows: Iterable[Row]) -> Iterator[list[Row]]:
        """Rows that are read from the lines, some at once: none waits for a line to come."""
        part: list[Row] = []
        for row in rows:
            part.append(row)
            if self._all or len(part) == _AT_ONCE:
                yield part
                part = []
        if part:
            yield part


def _columns(
    lines: Iterator[str],
    name: str,
    marks: str,
    tabs_quoted: bool,
    asked: str | None,
    trained: object,
    keep: Sequence[str],
    classes: Sequence[str],
    begins: int = 1,
) -> tuple[list[str], Iterator[Row], str]:
    """What `file_rows` gives, of a table whose first row is on line `begins`."""
    csv.field_size_limit(1 << 30)
    above, first = [], next(lines, None)
    while first is not None and not first.strip():
        above.append(first)
        first = next(lines, None)
    if first is None:
        raise DataError(f"{name} is empty; expected a text a line: check the file")
    begins += len(above)
    heads = []
    for mark in marks:
        quoted = mark != "\t" or tabs_quoted
        heads.append((next(csv.reader([first], **_layout(mark, quoted)), []), mark, quoted))
    names = [asked] if asked else [trained] if isinstance(trained, str) else []
    if not asked and "text" not in map(str.casefold, names):
        names.append("text")
    for wanted in names:
        for cells, mark, quoted in heads:
            if (at := _place(cells, wanted)) is not None:
                if [cell.strip().casefold() for cell in cells].count(wanted.casefold()) > 1:
                    raise DataError(
                        f"{name}: column {wanted!r} occurs twice, expected it once: rename one"
                    )
                size = len(cells)
                table = _some(_rows(lines, mark, quoted, name, begins + 1, at + 1, size), name)
                kept = _kept(cells, at, keep, name)
                titles = [cells[place] for place in kept]
                if len(cells) == 1:  # a separator in a row is part of its text
                    texts = ((t := mark.join(row), [t] * len(kept)) for row in table)
                    return titles, texts, mark
                texts = ((row[at], [_cell(row, k) for k in kept]) for row in table)
                return titles, texts, mark
    for cells, mark, quoted in heads:
        number = 0 if keep else _number(cells, asked, trained, set(classes))
        if number:
            sys.stderr.write(f"note: {name}: no header read: column {number} has the texts\n")
            rows = chain([first], lines)
            table = _rows(rows, mark, quoted, name, begins, number, len(cells))
            return [], ((row[number - 1], []) for row in table), mark
    # In a .tsv a comma is a part of the text.
    cells = max((cells for cells, *_ in heads[: 1 if marks[0] == "\t" else None]), key=len)
    if asked or keep or len(cells) > 1:
        raise DataError(
            f"{name}: no column {' or '.join(map(repr, names))}, found {_listed(cells)} in the "
            "first row; expected the column of texts there: name it with --text-column, or give "
            "its number where there is no header"
        )
    second = list(islice(lines, 1))
    word = first.strip().strip('"')
    if len(word.split()) == 1 < len("".join(second).split()):
        sys.stderr.write(
            f"note: {name}: no header read: the first row, {word!r}, is a text (--text-column "
            f"{word} if it names the column)\n"
        )
    return [], ((line.rstrip("\r\n"), []) for line in chain(above, [first], second, lines)), ","


def _number(cells: list[str], asked: str | None, trained: object, classes: set[str]) -> int:
    """The column of texts, from 1, of a table that begins with these cells and without a header; 0
    where it cannot be told: it is asked for, or the cells have a label of the model beside it."""
    count = len(cells)
    if asked:
        return int(asked) if asked.isdecimal() and 1 <= int(asked) <= count > 1 else 0
    labels = [place for place, cell in enumerate(cells) if cell.strip() in classes]
    if count == 2 and len(labels) == 1:
        return 2 - labels[0]
    if isinstance(trained, int) and trained <= count and set(labels) - {trained - 1}:
        return trained
    return 0


def _some(rows: Iterator[list[str]], name: str) -> Iterator[list[str]]:
    """The rows. Raises DataError, at once, where there are none."""
    first = next(rows, None)
    if first is None:
        raise DataError(f"{name}: found a header and no rows, expected texts under it: check it")
    return chain([first], rows)


def _kept(cells: list[str], text: int, keep: Sequence[str], name: str) -> list[int]:
    """Where the columns to keep are."""
    if ALL in keep and ALL not in cells:
        return [place for place in range(len(cells)) if place != text]
    places = []
    for wanted in keep:
        at = _place(cells, wanted)
        if at is None:
            raise DataError(
                f"{name}: no column {wanted!r}, found {_listed(cells)} in the first row; expected "
                "the one to keep there: check --keep"
            )
        places.append(at)
    return places


def _listed(cells: list[str]) -> str:
    more = f" and {len(cells) - _LISTED} more" * (len(cells) > _LISTED)
    return ", ".join(repr(cell[:_LONGEST]) for cell in cells[:_LISTED]) + more


def _cell(row: list[str], at: int) -> str:
    return row[at] if at < len(row) else ""


def _layout(mark: str, quoted: bool) -> dict[str, Any]:
    return {"delimiter": mark, "quoting": csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE}


def _rows(
    lines: Iterable[str], mark: str, quoted: bool, name: str, first: int, fewest: int, most: int
) -> Iterator[list[str]]:
    """The cells of each row, of several columns without the blank ones; `first` is the line that
    the first is on, `fewest` how many cells a row has to have, `most` how many it may have, if more
    than one.

    Raises DataError for a shorter row, for a longer one, whose text has separators, and for a quote
    that is never closed or closes within a cell, which would make one cell of many rows; of one
    that closes on a later row's end it is said on standard error.
    """
    table, begins = csv.reader(lines, **_layout(mark, quoted), strict=quoted), first
    while True:
        try:
            row = next(table, None)
        except csv.Error as error:
            raise DataError(
                f"{name}: the row that begins on line {begins} cannot be read ({error}), expected "
                'a quote to open and close a cell: close it, or double one of the text ("")'
            ) from None
        if row is None:
            return
        inner = [line for cell in row for line in cell.split("\n")[1:-1]]
        alike = sum(line.count(mark) == len(row) - 1 for line in inner)
        if len(row) > 1 and alike >= max(3, _MOSTLY * len(inner)):
            sys.stderr.write(
                f"warning: {name}: the quoted cell of line {begins} goes over {len(inner) + 2} "
                "lines, which look like rows\n"
            )
        row = row or [""]
        blank = most > 1 and len(row) == 1 and not row[0].strip()  # of one column it is a text
        short = len(row) < fewest
        if not blank and (short or (most > 1 and any(row[most:]))):
            raise DataError(
                f"{name}, line {begins}: found {plural(len(row), 'column')} separated by {mark!r}, "
                f"expected {fewest if short else most}: "
                + ("complete the row or remove it" if short else "quote the cell")
            )
        begins = first + table.line_num
        if not blank:
            yield row


def _place(cells: list[str], wanted: str) -> int | None:
    """Where a column is: by its exact name, else without regard to case and stray spaces."""
    if wanted in cells:
        return cells.index(wanted)
    folded = [cell.strip().casefold() for cell in cells]
    wanted = wanted.strip().casefold()
    return folded.index(wanted) if wanted in folded else None
