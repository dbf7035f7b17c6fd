"""How does the text of a CSV or TSV file become rows of cells?

TSV has no quoting: a line is a record, a tab ends a cell, a `"` is a character.
CSV follows RFC 4180. The CSV parser is the project's own because the standard one
refuses fields over a process-wide limit, breaks on a stray carriage return, and does
not say where a quote that never closes was opened.
"""

from __future__ import annotations

from dataclasses import dataclass

from superconext.core.errors import DataError


class UnclosedQuote(DataError):
    """A quote without its end, which more text might hold."""


@dataclass(frozen=True)
class Rows:
    """The records of a delimited file, blank lines left out."""

    cells: list[list[str]]
    lines: list[int]  # 1-based line on which each record starts
    blank: int  # blank lines left out, those at the very end not counted
    separator: str  # what ends a cell, in words: "tab" or "comma"


def parse_tsv(text: str) -> Rows:
    """Split on tabs and nothing else. Linear in the length of the text."""
    cells: list[list[str]] = []
    lines: list[int] = []
    last = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if _is_blank(line):
            continue
        cells.append(line.split("\t"))
        lines.append(number)
        last = number
    return Rows(cells, lines, last - len(cells), "tab")


def parse_csv(text: str, source: str) -> Rows:
    """Split as RFC 4180 does; a `"` inside a cell that does not open with one is a character.

    Linear in the length of the text. Raises DataError, with the line, for a quote that
    never closes and for characters between a closing quote and the next comma.
    """
    cells: list[list[str]] = []
    lines: list[int] = []
    blank = skipped = 0
    number, position, end = 1, 0, len(text)
    while position < end:
        start = number
        newline = text.find("\n", position)
        stop = end if newline < 0 else newline
        line = text[position:stop]
        if '"' not in line:
            if _is_blank(line):
                skipped += 1
            else:
                cells.append(line.split(","))
            position, number = stop + 1, number + 1
        else:
            record, position, number = quoted_record(text, position, number, source)
            cells.append(record)
        if len(lines) < len(cells):
            lines.append(start)
            blank, skipped = blank + skipped, 0
    return Rows(cells, lines, blank, "comma")


def _is_blank(line: str) -> bool:
    # A line of tabs is a record of empty cells, which the caller reports; it is not blank.
    return not line or (line.isspace() and "\t" not in line)


def quoted_record(text: str, position: int, number: int, source: str) -> tuple[list[str], int, int]:
    """One record that holds a `"`: its cells, and where and on which line the next starts."""
    record: list[str] = []
    end = len(text)
    newline = _find(text, "\n", position)
    while True:
        if position < end and text[position] == '"':
            cell, position, number = _quoted_cell(text, position, number, source)
            # Searched again only past a newline inside the quotes, to stay linear.
            if newline < position:
                newline = _find(text, "\n", position)
            if position < end and text[position] not in ",\n":
                raise DataError(
                    f"{source}, line {number}: found characters after a closing quote, expected "
                    'a comma or the end of the line: double each quote inside a quoted cell ("")'
                )
            stop = position
        else:
            stop = min(_find(text, ",", position, newline), newline)
            cell = text[position:stop]
        record.append(cell)
        position = stop + 1
        if stop >= end or text[stop] == "\n":
            return record, position, number + 1


def _quoted_cell(text: str, position: int, number: int, source: str) -> tuple[str, int, int]:
    """The cell whose opening quote is at `position`, and where and on which line it closes."""
    start = position + 1
    close = text.find('"', start)
    while close >= 0 and text.startswith('""', close):
        close = text.find('"', close + 2)
    if close < 0:
        raise UnclosedQuote(
            f"{source}, line {number}: found a quote that is never closed, expected a closing "
            'quote: close it, or double a quote that belongs to the text ("")'
        )
    raw = text[start:close]
    return raw.replace('""', '"'), close + 1, number + raw.count("\n")


def _find(text: str, what: str, start: int, stop: int | None = None) -> int:
    """Like `str.find`, but what is not found lies at the end."""
    end = len(text) if stop is None else stop
    found = text.find(what, start, end)
    return end if found < 0 else found
