"""Signs that unlabelled plain text, read line by line, is not what somebody wrote.

Text that was saved in a wrong encoding teaches words that nobody writes, and a table or JSON that
is named plain text teaches its dates, numbers and keys. Neither is mended here, both are told.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Sequence

from superconext.core.progress import WARNING
from superconext.data.columns import LABEL_NAMES, TELLING_ROWS, TEXT_NAMES
from superconext.text.mojibake import damage_of, is_garbled

_GARBLED = 0.01  # share of lines from which the encoding that somebody saved them in is to blame
_FIRST, _FEWEST = 300, 5  # lines that tell a table, and fewest of them
_LONGEST = 1 << 14  # characters; a longer line is no row
_MOSTLY, _HALF = 0.9, 0.5  # share of rows that are alike; of those that are whole under a header
_FEWEST_NUMBERS = 10  # of a word vector
#: Marks between cells, and how a table with them is named.
_MARKS = {"\t": ".tsv", ";": ".csv", "|": ".csv", ",": ".csv"}
_NUMBER = re.compile(r"[\s+/:.,%_TZ-]*\d[\d\s+/:.,%_TZ-]*")
_FLOAT = re.compile(r"[-+]?(?:\d+\.?|\d*\.\d+)(?:[eE][-+]?\d+)?")
_NAME = re.compile(r"[^\W\d]\S*(?: \S+)?")


class TextDoubts:
    """Follows the lines of a text as they are read.

    count: lines so far.
    """

    def __init__(self) -> None:
        self.count = self._garbled = 0
        self._first: list[str] = []

    def add(self, line: str) -> None:
        self.count += 1
        self._garbled += bool(is_garbled(line) or damage_of(line))
        if len(self._first) < _FIRST and len(line) <= _LONGEST and line.strip():
            self._first.append(line)

    def garbled(self, mend: str = "") -> list[str]:
        """A warning where some lines look garbled by a wrong encoding. mend: what else helps."""
        if self._garbled <= max(1, self.count * _GARBLED):
            return []
        return [
            f"{WARNING}{self._garbled} of {self.count} lines look garbled by a wrong encoding, and "
            f"teach words that nobody writes: save the text again as UTF-8{mend}"
        ]

    def tabular(self) -> list[str]:
        """A warning where the first lines look like rows of a table or JSON objects."""
        found = rows_in(self._first)
        if found is None:
            return []
        what, suffix = found
        mend = f"name the file {suffix}, and its column of texts alone is read"
        if not suffix:
            mend = "give it with --vectors, or name a text"
        return [
            f"{WARNING}the lines look like {what}, expected sentences; all that stands in them "
            f"becomes words: {mend}"
        ]


def rows_in(lines: Sequence[str], alike: str = "\t;|") -> tuple[str, str] | None:
    """What lines that are no sentences look like, and the suffix of files of such ("" for word
    vectors); else None.

    Lines are rows where nearly all have two cells or more, between commas three, and a column has
    numbers or dates or, but between commas, few words that repeat. Under names of which one is
    usual for texts or labels it is enough that half have as many cells. alike: marks of which the
    same number on every line, or if it is over one on nearly every line, is a sign as well.
    """
    if len(lines) < _FEWEST:
        return None
    if sum(map(_is_object, lines)) >= _MOSTLY * len(lines):
        return "JSON objects", ".jsonl"
    if sum(map(_is_vector, lines)) >= _MOSTLY * len(lines):
        return "word vectors", ""
    for mark, suffix in _MARKS.items():
        if mark not in lines[0] and mark not in lines[1]:
            continue
        header, *rows = (_cells(line, mark) for line in lines)
        names = {cell.strip().casefold() for cell in header}
        named = len(header) > 1 and all(_NAME.fullmatch(name) or not name for name in names)
        named = named and bool(names & (TEXT_NAMES | LABEL_NAMES))
        widths = sorted(map(len, rows), reverse=True)
        width = len(header) if named else widths[round(_MOSTLY * len(rows)) - 1]
        whole = [row[:width] for row in rows if len(row) >= width]  # texts may have the mark too
        commas = mark == ","
        if len(whole) < _HALF * len(rows) or width < 2 + commas - named:
            continue
        told = named or any(
            _are_numbers(column) or (not commas and _repeat(column))
            for column in zip(*whole, strict=True)
        )
        if not told and mark in alike:
            width = _same_width(widths)
            told = width > 1 + commas
        if told:
            shown = "a tab" if mark == "\t" else repr(mark)
            return f"rows of a table of {width} columns with {shown} between them", suffix
    return None


def _same_width(widths: Sequence[int]) -> int:
    """The number of cells that all rows have, or nearly all if it is over two; else 0."""
    (width, alike), *_ = Counter(widths).most_common(1)
    return width if alike >= (1 if width < 3 else _MOSTLY) * len(widths) else 0


def _is_object(line: str) -> bool:
    line = line.strip()
    if not (line.startswith("{") and line.endswith("}")):
        return False
    try:
        return isinstance(json.loads(line, strict=False), dict)
    except (ValueError, RecursionError):
        return False


def _is_vector(line: str) -> bool:
    """Whether a line is a word and ten numbers or more."""
    cells = line.split()[1:]
    return len(cells) >= _FEWEST_NUMBERS and all(map(_FLOAT.fullmatch, cells))


def _cells(line: str, mark: str) -> list[str]:
    line = line.rstrip("\r\n")
    if '"' not in line:
        return line.split(mark)
    try:
        return next(csv.reader([line], delimiter=mark), [])
    except csv.Error:  # a stray carriage return
        return line.split(mark)


def _are_numbers(column: Sequence[str]) -> bool:
    """Whether nearly all cells are numbers, dates or times."""
    return sum(bool(_NUMBER.fullmatch(cell)) for cell in column) >= _MOSTLY * len(column)


def _repeat(column: Sequence[str]) -> bool:
    """Whether the cells are single words, few of them different, as labels are."""
    cells = [cell.strip() for cell in column]
    few = len(cells) >= TELLING_ROWS and len(set(cells)) * 4 <= len(cells)
    return few and all(cell and not re.search(r"\s", cell) for cell in cells)
