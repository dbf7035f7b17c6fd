"""Quoted cells after RFC 4180, and which character separates the cells of a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate

from superconext.core.errors import DataError
from superconext.data.columns import LABEL_NAMES, TEXT_NAMES

#: Characters that may separate the cells of a `.csv`, the likely ones first.
SEPARATORS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}

_ROWS = 200  # lines that decide, of so many characters
_CHARACTERS = 1 << 16
_OPEN = 50  # lines that a quoted cell may go over at the end of those looked at
_AGREED = 0.9  # share of the records that have as many cells as the first

_Table = list[list[str]]


class QuotedRecord:
    """A record that may go over several lines, put together line by line.

    lines: number and text of those so far; none between two records. size: their characters.
    """

    def __init__(self, source: str, separator: str = ",") -> None:
        self.source, self.separator = source, separator
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
            close = line.find('"', position)
            while close >= 0 and line.startswith('""', close):
                close = line.find('"', close + 2)
            self.open.append(line[position:] if close < 0 else line[position:close])
            if close < 0:
                return False
            self.cells.append("\n".join(self.open).replace('""', '"'))
            self.open = None
            position = close + 2
            if position > len(line):
                return True
            if line[close + 1] != self.separator:
                raise DataError(
                    f"{self.source}, line {number}: found characters after a closing quote, "
                    f"expected a {SEPARATORS.get(self.separator, 'space')} or the end of "
                    'the line: double each quote inside a quoted cell ("")'
                )

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


def separator_of(head: Sequence[str]) -> str:
    """What separates the cells of a file that begins with the lines `head`; a comma in doubt.

    It is the one under which the first row has a usual column name and other cells, else the
    one under which most records have as many cells as the first, quotes respected; of several,
    the one with the column of fewest distinct cells.
    """
    head = _within(head[:_ROWS], _CHARACTERS)
    if is_spaced(next(filter(None, head), "")):
        return " "
    tables = {mark: _table(head, mark) for mark in SEPARATORS}
    usual = TEXT_NAMES | LABEL_NAMES
    named = [
        mark
        for mark, table in tables.items()
        if table and len(table[0]) > 1 and usual & {cell.strip().casefold() for cell in table[0]}
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
    has to hold a doubled quote or a line end, or be a column's usual name in quotes. Where quotes
    only stand around sentences, they may be part of them.
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
    if any("\n" in cell for record in table for cell in record):
        return True
    raw = [cell for line in head for cell in line.split("\t") if cell.startswith('"')]
    return any('""' in cell[1:-1] for cell in raw)


def _within(lines: Sequence[str], characters: int) -> Sequence[str]:
    """The first lines, as many as have so many characters."""
    sizes = accumulate(map(len, lines))
    return lines[: sum(size <= characters for size in sizes)]


def _table(head: Sequence[str], separator: str) -> _Table | None:
    """The records; None where quotes are wrong. What is open at the end is left out."""
    record, table = QuotedRecord("", separator), []
    for number, line in enumerate(filter(str.strip, head)):
        try:
            if record.add(number, line):
                table.append(record.take())
        except DataError:
            return None
    return None if len(record.lines) > _OPEN else table


def _share(table: _Table | None) -> float:
    if not table or len(table[0]) < 2:
        return 0.0
    return sum(len(record) == len(table[0]) for record in table) / len(table)


def _fewest(table: _Table | None) -> int:
    whole = [record for record in table or [] if len(record) == len((table or [[]])[0])]
    return min(len(set(column)) for column in zip(*whole, strict=True))
