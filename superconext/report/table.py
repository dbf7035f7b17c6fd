"""Tables as text: aligned for a terminal, or Markdown with every label escaped.

Labels come from users' files, in any script. They are aligned by the cells a terminal
gives them, not by their number of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

MISSING = "-"

#: Left-to-right mark. Without it a terminal that orders right-to-left text by itself
#: counts the numbers after an Arabic label as part of that label and swaps the columns.
_MARK = "\u200e"
_BIDI_CONTROLS = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
_RIGHT_TO_LEFT = ("R", "AL")
_INLINE = re.compile(r"([\\`*_\[\]<>~$&])")
_LINE_START = re.compile(r"^(#|=|\d*[-+.)](?=[-\s]|$))")

Format = str | Mapping[str, str]


def render(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    fmt: Format = ".3f",
) -> str:
    """A plain text table: heading, rule, one line for each row, no final newline.

    Args:
        rows: one mapping for each line; a missing key or None shows as "-".
        columns: keys of the rows in the order of the table; also the headings.
        fmt: format specification of fractions, one for all or `{column: specification}`
            (".3f" where absent). Whole numbers are printed as they are.

    Columns that hold numbers alone are right-aligned, the others left-aligned, by
    `display_width`. A cell with right-to-left letters stands between left-to-right marks
    (no width, not seen), which keep the columns in their order.
    """
    texts = [[_cell(row.get(name), _spec(fmt, name)) for name in columns] for row in rows]
    headings = [clean(name) for name in columns]
    widths = [
        max(display_width(line[at]) for line in [headings, *texts]) for at in range(len(columns))
    ]
    right = [_numeric(rows, name) for name in columns]
    rule = ["-" * width for width in widths]
    lines = [headings, rule, *texts]
    return "\n".join(
        "  ".join(
            _padded(text, width, side)
            for text, width, side in zip(line, widths, right, strict=True)
        ).rstrip(" ")
        for line in lines
    )


def markdown(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    fmt: Format = ".3f",
) -> str:
    """The same table in GitHub's Markdown, text escaped, no final newline."""
    sides = ["---:" if _numeric(rows, name) else "---" for name in columns]
    lines = [[escape_markdown(name) for name in columns], sides]
    for row in rows:
        cells = [_cell(row.get(name), _spec(fmt, name)) for name in columns]
        lines.append(
            [
                cell
                if cell == MISSING or isinstance(row.get(name), Real)
                else escape_markdown(cell)
                for cell, name in zip(cells, columns, strict=True)
            ]
        )
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def display_width(text: str) -> int:
    """Terminal cells of `text`: wide characters 2, combining and format characters 0."""
    return sum(_cells(character) for character in text)


def clip(text: str, width: int) -> str:
    """`text` shortened to `width` cells with an ellipsis inside it.

    The last third is kept, because that is where numbered names differ. Marks stay with
    their letter.
    """
    if display_width(text) <= width:
        return text
    tail = max(width - 1, 0) // 3
    head = max(width - 1, 0) - tail
    at, used = 0, 0
    while used + _cells(text[at]) <= head:
        used += _cells(text[at])
        at += 1
    back, used = len(text), 0
    while used + _cells(text[back - 1]) <= tail:
        used += _cells(text[back - 1])
        back -= 1
    while back < len(text) and _cells(text[back]) == 0:
        back += 1
    return text[:at].rstrip() + "…" + text[back:].lstrip()


def clean(text: str) -> str:
    """`text` on one line: white space and control characters become one space.

    Explicit direction controls go too (they can make a label read as another one), and
    lone surrogates, which no file can hold, become U+FFFD.
    """
    text = _BIDI_CONTROLS.sub("", text)
    kinds = ((unicodedata.category(character), character) for character in text)
    shown = (
        {"Cc": " ", "Zl": " ", "Zp": " ", "Cs": "\ufffd"}.get(kind, character)
        for kind, character in kinds
    )
    return " ".join("".join(shown).split())


def escape_markdown(text: str) -> str:
    """`text` as literal Markdown on one line, safe inside a table cell.

    A `|` becomes an entity, which every Markdown reader keeps inside its cell; other
    characters with a meaning get a backslash. A leading list or heading sign is covered,
    so the result may also begin a paragraph.
    """
    escaped = _INLINE.sub(r"\\\1", clean(text)).replace("|", "&#124;")
    return _LINE_START.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], escaped)


def _cell(value: Any, spec: str) -> str:
    if value is None:
        return MISSING
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Real) and not isinstance(value, bool):
        return format(float(value), spec)
    return clean(str(value))


def _spec(fmt: Format, column: str) -> str:
    return fmt if isinstance(fmt, str) else fmt.get(column, ".3f")


def _numeric(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    values = [row[column] for row in rows if row.get(column) is not None]
    return bool(values) and all(isinstance(v, Real) and not isinstance(v, bool) for v in values)


def _padded(text: str, width: int, right: bool) -> str:
    fill = " " * (width - display_width(text))
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        text = _MARK + text + _MARK
    return fill + text if right else text + fill


def _cells(character: str) -> int:
    # Conjoining Hangul vowels and finals are letters that stack on the one before.
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
