"""The file formats of lines and of separated cells.

| format | suffix | columns |
|---|---|---|
| CSV, TSV | `.csv`, `.tsv` `.tab` | a header, or numbers, or two columns (see `columns`) |
| fastText | first line opens with `__label__` | one `__label__x` before each text |
| plain text | `.txt`, standard input | the whole line; text only, never labelled |

Blank lines hold no row and are left out, with a note that counts them. Where every row is wanted
(`Wanted.every_row`), those of plain text and of tables of one column are rows with an empty text.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain, islice
from typing import Any

from superconext.core.errors import DataError, plural
from superconext.core.files import csv_lines, tsv_cell
from superconext.core.progress import WARNING
from superconext.data.columns import (
    LABEL_NAMES,
    TEXT_NAMES,
    Columns,
    Known,
    class_columns,
    distinct,
    find_columns,
    header_place,
    lacks_row_names,
    titles_above,
)
from superconext.data.file_format import (
    PREVIEWED,
    Block,
    FileFormat,
    LineFormat,
    RowFile,
    Votes,
    is_plain_source,
    parsed_rows,
)
from superconext.data.labels import Places
from superconext.data.lines import STDIN_NAME, shown
from superconext.data.plain_text import rows_in

#: Characters that may separate the cells of a `.csv`, the likely ones first.
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}

_ROWS = 200  # lines that decide, of so many characters
_CHARACTERS = 1 << 16
_OPEN = 50  # lines that a quoted cell may go over at the end of those looked at
_AGREED = 0.9  # share of the records that have as many cells as the first

#: An escaped quote, backslash or line end of a cell, or a doubled quote.
_ESCAPED = re.compile(r'\\(["\\\n])|"(")')

#: A cell in quotes that closes.
_WHOLE = re.compile(r'"(?:[^"\\]|\\.|\\(?="\Z)|"")*+"')

_Table = list[list[str]]


def table_lines(rows: Iterable[Iterable[Any]], separator: str = "") -> Iterator[str]:
    """The lines of a table to write: CSV with this separator, or TSV without one.

    TSV has no quoting: tabs and line ends inside a cell become spaces.
    """
    if separator:
        return csv_lines(rows, separator)
    return ("\t".join(tsv_cell(str(cell)) for cell in cells) + "\n" for cells in rows)


class QuotedRecord:
    """A record that may go over several lines, put together line by line.

    escaped: whether a backslash may stand before a quote of the text, and before a backslash.
    lines: number and text of those so far; none between two records. size: their characters.
    """

    def __init__(self, source: str, separator: str = ",", escaped: bool = False) -> None:
        self.source, self.separator, self.escaped = source, separator, escaped
        self.take()

    def take(self) -> list[str]:
        """The cells; begins a new record."""
        cells = getattr(self, "cells", [])
        self.lines: list[tuple[int, str]] = []
        self.size = self.opened = 0
        self.cells: list[str] = []
        self.open: list[str] | None = None  # the lines of a cell whose quote is not closed
        return cells

    def add(self, number: int, line: str) -> bool:
        """Whether the record is whole with this line. Linear in the length of the line.

        Raises DataError for characters between a closing quote and the next separator.
        """
        self.lines.append((number, line))
        self.size += len(line)
        position = 0
        while True:
            if self.open is None:
                if not line.startswith('"', position):
                    end = line.find(self.separator, position)
                    self.cells.append(line[position:] if end < 0 else line[position:end])
                    if end < 0:
                        return True
                    position = end + 1
                    continue
                self.open, self.opened = [], number
                position += 1
            if self.escaped:
                close = self._close(line, position)
            else:
                close = line.find('"', position)
                while close >= 0 and line.startswith('""', close):
                    close = line.find('"', close + 2)
            self.open.append(line[position:] if close < 0 else line[position:close])
            if close < 0:
                return False
            cell = "\n".join(self.open)
            self.cells.append(
                _ESCAPED.sub(r"\1\2", cell) if self.escaped else cell.replace('""', '"')
            )
            self.open = None
            position = close + 2
            if position > len(line):
                return True
            if line[close + 1] != self.separator:
                found = "found characters after a closing quote"
                if number > self.opened:
                    found = f"found a quote that closes on line {number} only, before more text"
                raise DataError(
                    f"{self.source}, line {self.opened}: {found}, "
                    f"expected a {SEPARATORS.get(self.separator, 'space')} or the end of the line "
                    'after a closing quote: close it, or double each quote inside a cell ("")'
                )

    def _close(self, line: str, position: int) -> int:
        """Where the quote stands that closes a cell which is open from here on, where quotes may be
        escaped or doubled; -1 for nowhere."""
        close = line.find('"', position)
        while close >= 0:
            if (close - len(line[position:close].rstrip("\\")) - position) % 2:
                position = close + 1
            elif line.startswith('""', close):
                position = close + 2
            else:
                return close
            close = line.find('"', position)
        return -1

    def in_other_style(self) -> bool:
        """Whether this record, which is wrong or open so far, is whole if its quotes are escaped
        in place of doubled, or the other way round."""
        if not any('\\"' in line for _, line in self.lines):
            return False
        again = QuotedRecord(self.source, self.separator, not self.escaped)
        try:
            return any(again.add(*line) for line in self.lines)
        except DataError:
            return False

    def holds_rows(self) -> bool:
        """Whether most lines of a whole record look like records of as many cells."""
        lines = [line for _, line in self.lines[1:]]
        alike = sum(line.count(self.separator) == len(self.cells) - 1 for line in lines)
        least = 3
        if self.escaped and self.lines[0][1].count(self.separator) == len(self.cells) - 1:
            least = 1  # of quotes that a text opens with, backslashes tell less
        return len(self.cells) > 1 and alike >= max(least, _AGREED * len(lines))

    def unclosed(self) -> DataError:
        """What is wrong with a record whose last quote is open at the end of the file."""
        return DataError(
            f"{self.source}, line {self.opened}: found a quote that is never closed, expected a "
            'closing quote: close it, or double a quote that belongs to the text ("")'
        )


def is_spaced(line: str) -> bool:
    """Whether a line is a header of quoted names with spaces between, as R writes it."""
    names = [name.casefold() for name in re.findall('"([^"]+)"', line)]
    spaced = re.fullmatch('("[^"]+" )+"[^"]+"', line.rstrip()) is not None
    return spaced and not (TEXT_NAMES | LABEL_NAMES).isdisjoint(names)


def separator_of(head: Sequence[str], known: Known | None = None) -> str:
    """What separates the cells of a file that begins with the lines `head`; a comma in doubt.

    It is the one under which the first row, or a header below titles, has a usual column name and
    other cells, else the one under which most records have as many cells as the first, quotes
    respected; of several, the one with the column of fewest distinct cells.
    """
    head = _within(head[:_ROWS], _CHARACTERS)
    if is_spaced(next(filter(None, head), "")):
        return " "
    tables = {mark: _table(head, mark) for mark in SEPARATORS}
    usual = TEXT_NAMES | LABEL_NAMES
    named = [
        mark
        for mark, table in tables.items()
        if len(first := table[0] if table else _first(head, mark)) > 1
        and usual & {cell.strip().casefold() for cell in first}
    ]
    named = named or [
        mark
        for mark, table in tables.items()
        if table and (at := header_place(table, known=known)) and len(table[at]) > 1
    ]
    if len(named) == 1:
        return named[0]
    shares = {mark: _share(table) for mark, table in tables.items()}
    # Of one row, commas and tabs alone are no part of the sentence.
    if sum(map(bool, head)) < 2:
        shares[";"] = shares["|"] = 0.0
    best = max(shares.values())
    if best < _AGREED:
        return ","
    tied = [mark for mark, share in shares.items() if share == best]
    return min(tied, key=lambda mark: _fewest(tables[mark])) if len(tied) > 1 else tied[0]


def tabs_are_quoted(head: Sequence[str]) -> bool:
    """Whether cells between tabs are quoted, as pandas and Label Studio write them.

    Every cell that opens with a quote has to close with one and double those inside it, and one
    has to hold a doubled quote or a line end, or be a column's usual name in quotes, or all but
    numbers are quoted in several columns. Where quotes only stand around sentences, they may be
    part of them.
    """
    if not any('"' in line for line in head):
        return False
    table = _table(head, "\t")
    if not table:
        return False
    named = {f'"{name}"' for name in TEXT_NAMES | LABEL_NAMES}
    first = next(filter(str.strip, head)).split("\t")
    if named & {cell.strip().casefold() for cell in first}:
        return True
    if _share(table) < 1:
        return False
    cells = [[cell.strip() for cell in line.split("\t")] for line in filter(str.strip, head)]
    if all(sum(map(_is_quoted, row)) > 1 for row in cells) and all(
        _is_quoted(cell) or not cell.strip("-.0123456789") for row in cells for cell in row
    ):
        return True
    # A line end tells, unless the lines that a cell goes over are rows: then its quotes are stray.
    spans = [(cell, record) for record in table for cell in record if "\n" in cell]
    if spans and all(
        cell.count("\t") != cell.count("\n") * (len(record) - 1) for cell, record in spans
    ):
        return True
    raw = [cell for line in head for cell in line.split("\t") if cell.startswith('"')]
    if not spans and any('""' in cell[1:-1] for cell in raw):
        return True
    # Else cells tell that close on their line.
    return any(('""' in cell[1:-1] or '\\"' in cell) and _WHOLE.fullmatch(cell) for cell in raw)


def _is_quoted(cell: str) -> bool:
    return len(cell) > 1 and cell[0] == cell[-1] == '"'


def _within(lines: Sequence[str], characters: int) -> Sequence[str]:
    """The first lines, as many as have so many characters."""
    sizes = accumulate(map(len, lines))
    return lines[: sum(size <= characters for size in sizes)]


def _table(head: Sequence[str], separator: str) -> _Table | None:
    """The records; None where quotes are wrong, doubled or escaped."""
    return _records(head, separator, quotes_are_escaped(head, separator))


def quotes_are_escaped(head: Sequence[str], separator: str) -> bool:
    """Whether a backslash stands before quotes inside cells, as R and Spark write them: such
    records are whole, and those of doubled quotes are not."""
    return (
        any('\\"' in line for line in head)
        and _records(head, separator, False) is None
        and _records(head, separator, True) is not None
    )


def _records(head: Sequence[str], separator: str, escaped: bool) -> _Table | None:
    """The records; None where quotes are wrong. What is open at the end is left out."""
    record, table = QuotedRecord("", separator, escaped), []
    for number, line in enumerate(filter(str.strip, head)):
        try:
            if record.add(number, line):
                table.append(record.take())
        except DataError:
            return None
    return None if len(record.lines) > _OPEN else table


def _first(head: Sequence[str], separator: str) -> list[str]:
    """The cells of the first record, whatever is wrong with later ones."""
    record = QuotedRecord("", separator)
    try:
        return record.take() if record.add(1, next(filter(str.strip, head), "")) else []
    except DataError:
        return []


def _share(table: _Table | None) -> float:
    if not table or len(table[0]) < 2:
        return 0.0
    return sum(len(record) == len(table[0]) for record in table) / len(table)


def _fewest(table: _Table | None) -> int:
    whole = [record for record in table or [] if len(record) == len((table or [[]])[0])]
    return min(len(set(column)) for column in zip(*whole, strict=True))


FASTTEXT_PREFIX = "__label__"

#: Blank lines at the head of a table that are held back until a row tells its columns, about.
_MOST_BLANK = 1 << 16

#: Texts of several lines that are looked at for rows in them.
_MOST_SPANS = 10_000

#: First lines of plain text that tell a table.
_FIRST = 200

Records = Iterator[tuple[Sequence[int], list[list[str]]]]


class PlainText(FileFormat):
    """One sentence a line, for prediction."""

    @classmethod
    def recognises(cls, first_line: str, file: RowFile) -> bool:
        if file.wanted.labelled or file.wanted.text_column is not None:
            return False
        if file.wanted.heads(first_line, file.name == STDIN_NAME):
            return False
        if is_spaced(first_line):
            return False
        return is_plain_source(file) or not (first_line.startswith("{") or "\t" in first_line)

    def blocks(self) -> Iterator[Block]:
        file = self.file
        file.notes.append("read as plain text, one sentence a line")
        count = tabs = 0
        begin: list[str] = []
        header = file.wanted.header
        for numbers, lines in file.filled(keep_blank=file.wanted.every_row):
            first = next((i for i, line in enumerate(lines) if line.strip()), None)
            if header and first is not None:
                header = False
                numbers, lines = numbers[first + 1 :], lines[first + 1 :]
                file.notes.append("first line read as a header, left out")
            count += len(lines)
            tabs += sum("\t" in line for line in lines)
            begin += lines[: _FIRST - len(begin)]
            yield Block(lines, [], numbers)
        if found := rows_in([line for line in begin if line.strip()]):
            what, suffix = found
            file.notes.append(
                f"{WARNING}the lines look like {what}, and each is read as one sentence: name "
                + (f"the file {suffix}" if suffix else "a file of sentences")
                + ", or give --text-column" * (suffix not in ("", ".jsonl"))
            )
            return
        if tabs:
            where = "name the file .tsv or " if file.name != STDIN_NAME else ""
            file.notes.append(
                f"{tabs} of {count} lines hold a tab, kept as part of the sentence: "
                f"{where}give --text-column if the tab separates columns"
            )


class FastText(LineFormat):
    """fastText's supervised format with one label a line, before the text."""

    within = (".tsv", ".tab")

    def __init__(self, file: RowFile) -> None:
        super().__init__(file)
        file.notes.append("read as fastText lines: __label__ and the label, then the text")

    @classmethod
    def recognises(cls, first_line: str, file: RowFile) -> bool:
        return first_line.startswith(FASTTEXT_PREFIX)

    def row(self, line: str, number: int) -> tuple[str, str]:
        head, rest = [*line.split(None, 1), ""][:2]
        where = f"{self.file.name}, line {number}"
        if not head.startswith(FASTTEXT_PREFIX) or head == FASTTEXT_PREFIX:
            raise DataError(
                f"{where}: begins with {shown(head)}, expected __label__ and the label's name, as "
                "in the first line: label the line or remove it"
            )
        if FASTTEXT_PREFIX in rest and any(
            token.startswith(FASTTEXT_PREFIX) for token in rest.split()
        ):
            raise DataError(
                f"{where}: found several __label__ on the line, expected one: classification here "
                "is single-label only, keep one label for each text"
            )
        return rest.rstrip(), head[len(FASTTEXT_PREFIX) :]


class _Joined:
    """Finds rows that a stray quote has made one: inside a text, a label ends or begins a line."""

    def __init__(self, separator: str) -> None:
        self.separator = separator
        self.labels: set[str] = set()
        self.texts: list[tuple[int, list[str]]] = []

    def add(self, block: Block) -> None:
        self.labels.update(label.strip() for label in block.labels if label.strip())
        if block.labels:
            pairs = zip(block.lines, block.texts, strict=True)
            some = ((line, text.split("\n")) for line, text in pairs if "\n" in text)
            self.texts += islice(some, _MOST_SPANS - len(self.texts))

    def places(self) -> Places:
        """The lines that such rows begin on."""
        found, mark = Places(), self.separator
        for line, (*others, last) in self.texts:
            ends = (one.rpartition(mark)[2] for one in others if mark in one)
            begins = (one.partition(mark)[0] for one in [*others[1:], last] if mark in one)
            if any(cell.strip(' "') in self.labels for cell in chain(ends, begins)):
                found.add(line)
        return found


class TableFormat(FileFormat):
    """Rows of cells that a character separates, without quoting, with or without a header.

    Attributes:
        separator: the character. separator_name: the same in words, for messages.
        quoted: whether quotes can keep a separator inside a cell. told_of_rows: whether rows that
            they may have made one were told of.
        read_as: the note on a separator that was found by looking.
    """

    separator = "\t"
    separator_name = "tab"
    read_as = ""
    quoted = told_of_rows = False

    def records(self) -> Records:
        """The cells of every row, the header among them, with the lines they start on."""
        for numbers, lines in self.file.filled(True, self.file.wanted.every_row):
            yield numbers, [line.split(self.separator) for line in lines]

    def blocks(self) -> Iterator[Block]:
        file = self.file
        given = 0
        columns: Columns | None = None
        width = named = 0
        nameless, joined = Places(), _Joined(self.separator)
        for columns, numbers, cells in self._with_columns():
            if not width:
                first = self._first_filled(cells) or 0
                width = len(cells[first])
                if columns.joined and self.read_as in file.notes:
                    file.notes.remove(self.read_as)  # for they separate nothing
                file.notes += columns.notes
                file.notes += self._doubts() if columns.joined else []
                self._describe(columns, cells[first:])
                named = width
                if columns.header:
                    while named and not cells[first][named - 1].strip():
                        named -= 1
                    numbers, cells = numbers[first + 1 :], cells[first + 1 :]
            for number, record in zip(numbers, cells, strict=True) if named < width else ():
                if any(map(str.strip, record[named:])):
                    nameless.add(number)
            block = self._rows(columns, width, numbers, cells)
            given += len(block)
            if self.quoted:
                joined.add(block)
            yield block
        if (places := joined.places()).count and not self.told_of_rows:
            file.notes.append(
                f"{WARNING}{plural(places.count, 'row')} with a line that ends or begins with a "
                f"label, as rows do ({places}): if a quote has made one row of several, double or "
                "remove it"
            )
        if nameless.count:
            file.notes.append(
                f"{WARNING}{plural(nameless.count, 'row')} with cells under no name ({nameless}), "
                f"as where a {self.separator_name} inside a text cuts it: quote such texts"
            )
        if columns is not None and not given + file.skipped:
            raise DataError(f"{file.name}: found a header and no rows, expected examples under it")

    def _with_columns(self) -> Iterator[tuple[Columns, Sequence[int], list[list[str]]]]:
        """The records with the columns that the first rows tell; the header is among them.

        The first row tells, but for two columns without a header: there the rows of the first
        `look_ahead` characters do.
        """
        columns: Columns | None = None
        waiting: bool | None = None
        head: list[list[str]] = []
        lines: list[int] = []
        size, limit, most = 0, 0, self.file.look_ahead
        for numbers, cells in self.records():
            if columns is not None:
                yield columns, numbers, cells
                continue
            if waiting is None:
                first = self._first_filled(cells)
                if first is not None or len(head) > _MOST_BLANK:
                    waiting = self._undecided(cells[first or 0])
            lines += numbers
            for record in cells:
                head.append(record)
                size += sum(map(len, record))
                limit += size - sum(map(len, record)) <= most
            if waiting is None or (waiting and size <= most):
                continue
            lines, head = self._below_titles(lines, head)
            columns = self._find(head[:limit] if waiting else head)
            yield columns, lines, head
        if columns is None and head:
            lines, head = self._below_titles(lines, head)
            yield self._find(head), lines, head

    def _below_titles(
        self, lines: list[int], head: list[list[str]]
    ) -> tuple[list[int], list[list[str]]]:
        """The first rows without titles above the header, and with all cells of the header."""
        wanted, notes = self.file.wanted, self.file.notes
        if wanted.header is False:
            return lines, head
        asked = wanted.text_column, wanted.label_column
        at = titles_above(head, *asked, self.file.name, wanted.labelled, wanted.known)
        if at:
            title = next(cell for row in head for cell in row if cell.strip())
            notes.append(f"{plural(at, 'row')} above the header left out: {shown(title, 40)}")
            lines, head = lines[at:], head[at:]
        if lacks_row_names([row for row in head if not _is_blank(row)]):
            notes.append("header one cell short, as R writes it: first column read as row names")
            head = [["", *head[0]], *head[1:]]
        return lines, head

    def _doubts(self) -> list[str]:
        """A warning where lines that are taken whole look like rows of a table."""
        lines = [line for line in self.file.head[:_FIRST] if line.strip()]
        marks = "\t;|,"  # who names a file .csv may mean any of them
        what, suffix = rows_in(lines, marks) or rows_in(lines[1:], marks) or ("", "")
        if not what:
            return []
        mend = f"name the file {suffix}"
        if suffix in ("", self.file.suffix):
            mend = "give a header, or the number of the column of texts with --text-column"
        return [f"{WARNING}the lines look like {what}, and each is read as one text: {mend}"]

    def _describe(self, columns: Columns, cells: list[list[str]]) -> None:
        """Say of the file which columns these are, and show its first rows."""
        first = [str(p + 1) for p in range(len(cells[0]))]
        if columns.header:
            first = distinct(cells[0])
            pairs = zip(cells[0], first, strict=True)
            again = [f"{shown(a, 24)} as {shown(b, 24)}" for a, b in pairs if a != b and a.strip()]
            if again and self.file.wanted.beside:
                told = f"columns of the same name are told apart: {', '.join(again)}"
                self.file.notes.append(told)
        names = [
            None if place is None else first[place] if columns.header else place + 1
            for place in (columns.text, columns.label)
        ]
        self.file.columns = {"text": names[0], "label": names[1], "header": columns.header}
        self.file.names = first
        self.file.find_voters(first, columns.voters)
        self._names = first if columns.header and self.file.wanted.beside else []
        self._voters = columns.voters or tuple(map(first.index, self.file.voters))
        if columns.label is None and columns.aside is not None:
            text, label = columns.text, columns.aside
            rows = cells[columns.header : PREVIEWED + columns.header]
            self.file.preview = [
                (row[label], row[text]) for row in rows if len(row) > max(text, label)
            ]

    def _first_filled(self, cells: list[list[str]]) -> int | None:
        """Place of the first record; blank lines stand before it where every row is wanted."""
        if not self.file.wanted.every_row:
            return 0
        return next((i for i, record in enumerate(cells) if not _is_blank(record)), None)

    def _undecided(self, first: list[str]) -> bool:
        """Whether the first row leaves open which of two columns is which."""
        wanted = self.file.wanted
        informed = self.file.name != STDIN_NAME
        if len(first) != 2 and not informed:
            return False
        if wanted.text_column is not None and not wanted.labelled and not informed:
            return False
        try:
            return not self._find([first]).header
        except DataError:
            return True

    def _find(self, rows: list[list[str]]) -> Columns:
        wanted = self.file.wanted
        label = wanted.label_column if wanted.labelled else None
        if wanted.every_row:
            rows = [record for record in rows if not _is_blank(record)] or rows[:1]
        voters: tuple[int, ...] = ()
        named = label is None or not re.fullmatch(r"[\d, ]+", str(label))
        if wanted.classes:
            voters = class_columns(rows[0], wanted.classes, self.file.name)
        elif wanted.labelled and (wanted.header is not False or label is not None):
            voters = self.file.annotators(rows[0])
        columns = find_columns(
            rows,
            wanted.text_column,
            None if voters else label,
            self.file.name,
            wanted.labelled and not voters,
            True if voters and wanted.header is None and named else wanted.header,
            wanted.known,
            inside=self.separator_name if self.separator in (",", ";") else "",
        )
        return replace(columns, voters=voters)

    def _rows(
        self, columns: Columns, width: int, numbers: Sequence[int], cells: list[list[str]]
    ) -> Block:
        text, label = columns.text, columns.label
        if columns.joined:
            return Block([self.separator.join(record) for record in cells], [], numbers)
        if width > 1 and self.file.wanted.every_row and any(map(_is_blank, cells)):
            kept = [i for i, row in enumerate(cells) if not self.file.count_blank(_is_blank(row))]
            numbers, cells = [numbers[i] for i in kept], [cells[i] for i in kept]
        if self._voters:
            last = replace(columns, label=max(self._voters))

            def votes(record: list[str], number: int) -> tuple[str, Votes]:
                self._check(record, number, last, width)
                given = [record[place] for place in self._voters]
                return record[text], self.file.votes(
                    dict(zip(self.file.voters, given, strict=True))
                )

            return parsed_rows(self.file, numbers, cells, votes, True)
        if {width}.issuperset(map(len, cells)):
            labels = [] if label is None else [record[label] for record in cells]
            beside = [self._by_name(record) for record in cells if self._names]
            return Block([record[text] for record in cells], labels, numbers, beside=beside)

        def parse(record: list[str], number: int) -> tuple[str, str]:
            self._check(record, number, columns, width)
            self.file.cells = self._by_name(record)
            return record[text], "" if label is None else record[label]

        return parsed_rows(self.file, numbers, cells, parse, label is not None)

    def _by_name(self, record: list[str]) -> Mapping[str, str]:
        cells = record + [""] * (len(self._names) - len(record))
        return dict(zip(self._names, cells, strict=False))

    def _check(self, record: list[str], number: int, columns: Columns, width: int) -> None:
        """Raise DataError unless a row under a first row of `width` cells is whole.

        A short record is whole as long as the wanted cells are there; a long one is not, for
        the separator too many may stand before them. Empty cells at the end are harmless.
        """
        needed = max(columns.text, -1 if columns.label is None else columns.label) + 1
        count, name = len(record), self.separator_name
        if count >= needed and (count <= width or not any(record[width:])):
            return
        advice = "complete the row or remove it"
        if count >= needed:
            quote = " or quote the cell" if self.quoted else ""
            advice = f"remove the extra {name}{quote}"
        if not self.quoted and any(cell.startswith('"') for cell in record):
            advice += ", or name the file .csv if quotes keep line ends inside cells"
        raise DataError(
            f"{self.file.name}, line {number}: found {count} "
            f"{'column' if count == 1 else 'columns'} separated by {name}s, expected "
            f"{needed if count < needed else width}: {advice}"
        )


def _is_blank(record: list[str]) -> bool:
    """Whether the record is that of a blank line."""
    return len(record) == 1 and not record[0].strip()


class QuotedTable(TableFormat):
    """Cells in which quotes can keep separators and line ends: RFC 4180.

    A `"` inside a cell that does not open with one is a character. The parser is the project's
    own because the standard one refuses fields over a process-wide limit, breaks on a stray
    carriage return, and does not say where a quote that never closes was opened.
    """

    quoted = True

    def records(self) -> Records:
        if not self.quoted:
            yield from super().records()
            return
        escaped = quotes_are_escaped(self.file.head, self.separator)
        if escaped:
            self._note_escapes()
        record = QuotedRecord(self.file.name, self.separator, escaped)
        every_row = self.file.wanted.every_row
        for first, lines in self.file.runs():
            if not record.lines and not any('"' in line for line in lines):
                numbers, lines = self.file.without_blank(first, lines, True, every_row)
                if lines:
                    yield numbers, [line.split(self.separator) for line in lines]
                continue
            yield from self._quoted(record, deque(enumerate(lines, first)))
        if record.lines:
            yield from self._quoted(record, deque(), last=True)

    def _quoted(
        self, record: QuotedRecord, lines: deque[tuple[int, str]], last: bool = False
    ) -> Records:
        """Records of lines of which some hold a quote; the last one may stay open."""
        file = self.file
        numbers: list[int] = []
        cells: list[list[str]] = []
        while lines or (last and record.lines):
            problem: DataError | None = None
            if lines:
                number, line = lines.popleft()
                if not record.lines and '"' not in line:
                    every_row = file.wanted.every_row
                    filled = file.without_blank(number, [line], True, every_row)
                    for at, kept in zip(*filled, strict=True):
                        numbers.append(at)
                        cells.append(kept.split(self.separator))
                    continue
                try:
                    whole = record.add(number, line)
                except DataError as error:
                    problem = error
                else:
                    if whole:
                        file.without_blank(number, ["filled"])
                        if not self.told_of_rows and record.holds_rows():
                            self.told_of_rows = True
                            file.notes.append(
                                f"{WARNING}lines {record.lines[0][0]} to {number} are one row, as "
                                "a quote opens on the first and closes on the last; if they are "
                                "rows of their own, double or remove these quotes"
                            )
                        numbers.append(record.lines[0][0])
                        cells.append(record.take())
                        continue
                    long = len(record.lines) >= file.cell_lines or record.size >= file.look_ahead
                    if not long:
                        continue
            if problem is None:
                problem = record.unclosed()
            if record.in_other_style():
                record.escaped = not record.escaped
                self._note_escapes()
                lines.extendleft(reversed(record.lines))
                record.take()
                continue
            file.bad(problem)
            # The line that opened the quote is bad; those after it may be well.
            lines.extendleft(reversed(record.lines[1:]))
            record.take()
        if cells:
            yield numbers, cells

    def _note_escapes(self) -> None:
        note = 'quotes inside cells read as escaped: `\\"` is a quote'
        if note not in self.file.notes:
            self.file.notes.append(note)


class Tsv(QuotedTable):
    """Columns separated by tabs; a `"` is a character, unless the first rows are quoted."""

    suffixes = (".tsv", ".tab")

    def __init__(self, file: RowFile) -> None:
        super().__init__(file)
        self.quoted = tabs_are_quoted(file.head)
        if self.quoted:
            file.notes.append('cells read as quoted: `"` keeps tabs and line ends inside one')

    @classmethod
    def recognises(cls, first_line: str, file: RowFile) -> bool:
        return "\t" in first_line


class Csv(QuotedTable):
    """Columns separated by commas, or by the semicolons or tabs that the first rows agree on."""

    suffixes = (".csv",)
    separator, separator_name = ",", "comma"

    def __init__(self, file: RowFile) -> None:
        super().__init__(file)
        hint = re.fullmatch(r"(?i)sep=([,;\t|])\s*", file.head[0]) if file.head else None
        if hint and file.drop_first():
            self.separator, self.separator_name = hint[1], SEPARATORS[hint[1]]
            file.notes.append(f"{self.separator_name}s separate columns, as the first line says")
        elif file.head and self.separator == ",":
            self.separator = separator_of(file.head, file.wanted.known)
            self.separator_name = SEPARATORS.get(self.separator, "space")
            if self.separator != ",":
                self.read_as = f"columns read as separated by {self.separator_name}s"
                file.notes.append(self.read_as)
        file.separator = self.separator if self.separator in SEPARATORS else ","

    @classmethod
    def recognises(cls, first_line: str, file: RowFile) -> bool:
        table = "," in first_line and not is_plain_source(file)
        if file.name == STDIN_NAME and file.wanted.text_column is not None:
            table = any(mark in first_line for mark in ",;|")
        return (
            table or is_spaced(first_line) or file.wanted.heads(first_line, file.name == STDIN_NAME)
        )
