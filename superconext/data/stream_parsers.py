"""How do lines that arrive in blocks become texts? One parser for each format.

A parser keeps what it needs from block to block: the columns of a table, a quoted cell
that is not closed yet. It hands bad lines to `Reading.bad`, which may raise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Protocol

from superconext.core.errors import DataError
from superconext.data.columns import Columns, find_columns, resolve
from superconext.data.delimited import UnclosedQuote, quoted_record
from superconext.data.formats import Wanted, check_record, fasttext_line
from superconext.data.json_lines import json_record, json_value
from superconext.data.source import STDIN_NAME

#: Characters of a table without a header that are looked at before its columns are decided.
_HEAD = 1 << 20

#: Lines that a quoted cell may go over; after these, its quote counts as never closed.
_CELL_LINES = 1000

Numbered = tuple[int, str]


class Reading(Protocol):
    """What a parser is told and tells: see `stream.TextStream`."""

    name: str
    notes: list[str]
    wanted: Wanted
    read: int
    skipped: int

    def bad(self, error: DataError) -> None: ...

    def is_blank(self, line: str, tabs_count: bool = False) -> bool: ...

    def example(self, text: str, label: str | None, number: int) -> str: ...


class Parser:
    """One line, one text."""

    def __init__(self, stream: Reading) -> None:
        self.stream = stream

    def feed(self, lines: list[Numbered]) -> Iterable[str]:
        for number, line in lines:
            if not self.stream.is_blank(line):
                try:
                    yield self.parse(number, line)
                except DataError as error:
                    self.stream.bad(error)

    def parse(self, number: int, line: str) -> str:
        raise NotImplementedError

    def finish(self) -> Iterable[str]:
        return ()

    def last_notes(self) -> list[str]:
        return []


class _Plain(Parser):
    def __init__(self, stream: Reading) -> None:
        super().__init__(stream)
        stream.notes.append("read as plain text, one sentence a line")
        self.tabs = 0

    def parse(self, number: int, line: str) -> str:
        self.tabs += "\t" in line
        return line

    def last_notes(self) -> list[str]:
        if not self.tabs:
            return []
        where = "name the file .tsv or " if self.stream.name != STDIN_NAME else ""
        return [
            f"{self.tabs} of {self.stream.read} lines hold a tab, kept as part of the sentence: "
            f"{where}give --text-column if the tab separates columns"
        ]


class _FastText(Parser):
    def __init__(self, stream: Reading) -> None:
        super().__init__(stream)
        stream.notes.append("read as fastText lines: __label__ and the label, then the text")

    def parse(self, number: int, line: str) -> str:
        label, text = fasttext_line(line, self.stream.name, number)
        return self.stream.example(text, label, number)


class _JsonLines(Parser):
    key: str | None = None
    label_key: str | None = None

    def parse(self, number: int, line: str) -> str:
        name, wanted = self.stream.name, self.stream.wanted
        record = json_record(line.strip(), name, number)
        if self.key is None:
            found = list(record)
            key = found[resolve(found, wanted.text_column, "text", "--text-column", name)]
            if wanted.labelled:
                spec = wanted.label_column
                self.label_key = found[resolve(found, spec, "label", "--label-column", name)]
            self.key = key
        text, label = json_value(record, self.key, name, number), None
        if self.label_key is not None:
            label = json_value(record, self.label_key, name, number)
        return self.stream.example(text, label, number)


class _Tsv(Parser):
    """Rows of cells; the first ones decide which column is the text."""

    separator = "tab"

    def __init__(self, stream: Reading) -> None:
        super().__init__(stream)
        self.columns: Columns | None = None
        self.width = 0
        self.head: list[tuple[int, list[str]]] = []
        self.seen = self.given = 0

    def feed(self, lines: list[Numbered]) -> Iterable[str]:
        for number, record in self.records(lines):
            if self.columns is not None:
                yield from self.cell(number, record)
                continue
            self.head.append((number, record))
            self.seen += sum(map(len, record))
            if self.seen > _HEAD or not self.needs_more():
                yield from self.decide()

    def records(self, lines: list[Numbered]) -> Iterator[tuple[int, list[str]]]:
        for number, line in lines:
            if not self.stream.is_blank(line, tabs_count=True):
                yield number, line.split("\t")

    def needs_more(self) -> bool:
        """Whether columns cannot be told by the first row: two of them, without a header."""
        first, wanted = self.head[0][1], self.stream.wanted
        if len(first) != 2 or (wanted.text_column is not None and not wanted.labelled):
            return False
        try:
            return not self.find([first]).header
        except DataError:
            return True

    def find(self, rows: list[list[str]]) -> Columns:
        wanted, name = self.stream.wanted, self.stream.name
        label = wanted.label_column if wanted.labelled else None
        return find_columns(rows, wanted.text_column, label, name, wanted.labelled)

    def decide(self) -> Iterator[str]:
        rows = [record for _, record in self.head]
        self.columns = self.find(rows)
        self.width = len(rows[0])
        self.stream.notes += self.columns.notes
        for number, record in self.head[1 if self.columns.header else 0 :]:
            yield from self.cell(number, record)
        self.head = []

    def cell(self, number: int, record: list[str]) -> Iterator[str]:
        assert self.columns is not None
        where = f"{self.stream.name}, line {number}"
        try:
            check_record(record, self.columns, self.width, self.separator, where)
            label = None if self.columns.label is None else record[self.columns.label]
            text = self.stream.example(record[self.columns.text], label, number)
        except DataError as error:
            self.stream.bad(error)
            return
        self.given += 1
        yield text

    def finish(self) -> Iterable[str]:
        if self.columns is None and self.head:
            yield from self.decide()
        if self.columns is not None and not self.given + self.stream.skipped:
            raise DataError(
                f"{self.stream.name}: found a header and no rows, expected examples under it"
            )


class _Csv(_Tsv):
    separator = "comma"

    def __init__(self, stream: Reading) -> None:
        super().__init__(stream)
        self.begun: list[Numbered] = []  # lines of a record whose quote is still open

    def records(self, lines: list[Numbered]) -> Iterator[tuple[int, list[str]]]:
        return self.joined(deque(lines), last=False)

    def joined(self, lines: deque[Numbered], last: bool) -> Iterator[tuple[int, list[str]]]:
        name = self.stream.name
        while lines or (last and self.begun):
            if lines:
                number, line = lines.popleft()
                if not self.begun and '"' not in line:
                    if not self.stream.is_blank(line, tabs_count=True):
                        yield number, line.split(",")
                    continue
                self.begun.append((number, line))
                if len(self.begun) > 1 and '"' not in line and len(self.begun) < _CELL_LINES:
                    continue
            first = self.begun[0][0]
            text = "\n".join(line for _, line in self.begun)
            try:
                record, _, _ = quoted_record(text, 0, first, name)
            except UnclosedQuote as error:
                if len(self.begun) < _CELL_LINES and len(text) < _HEAD and not (last and not lines):
                    continue
                problem: DataError = error
            except DataError as error:
                problem = error
            else:
                self.stream.is_blank(text)
                self.begun = []
                yield first, record
                continue
            # The line that opened the quote is bad; those after it may be well.
            self.stream.bad(problem)
            lines.extendleft(reversed(self.begun[1:]))
            self.begun = []

    def finish(self) -> Iterable[str]:
        for number, record in self.joined(deque(), last=True):
            if self.columns is None:
                self.head.append((number, record))
            else:
                yield from self.cell(number, record)
        yield from super().finish()


PARSERS: dict[str, type[Parser]] = {
    "csv": _Csv,
    "tsv": _Tsv,
    "jsonl": _JsonLines,
    "fasttext": _FastText,
    "plain": _Plain,
}
