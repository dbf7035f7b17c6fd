"""The text column and the label column of a table.

They are found by name (`text` and `label` by default), by 1-based number, or, in a table of
two columns without a header, by looking: labels repeat, sentences do not.

A first row is a header when a column is asked for by name, when one of its cells is
`text` or `label`, when the cell in a column asked for by number is a usual column name,
or when all of its cells are. Anything else is an example.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from superconext.core.errors import DataError
from superconext.data.lines import shown

ColumnSpec = str | int | None  # a name, a 1-based number ("2" or 2), or the default

TEXT_NAMES = frozenset(
    {"text", "texts", "texte", "sentence", "sentences", "phrase", "tweet", "review", "comment"}
    | {"commentaire", "avis", "content", "message", "document", "post", "body"}
)
LABEL_NAMES = frozenset(
    {"label", "labels", "class", "classe", "category", "sentiment", "polarity", "target", "tag"}
    | {"étiquette", "topic", "intent", "score", "rating", "gold"}
)
_OTHER_NAMES = frozenset(["", "id", "idx", "index", "no", "source", "split", "date", "lang"])
_MOST_LABELS = 1000  # beyond this, a column of a headerless file is not taken for labels
_FEW_ROWS = 20  # below this, repetition says little and the shape of the cells decides


@dataclass(frozen=True)
class Columns:
    """Where text and label stand (0-based), and whether the first row is a header."""

    text: int
    label: int | None
    header: bool
    notes: list[str]


def find_columns(
    rows: Sequence[Sequence[str]],
    text_column: ColumnSpec,
    label_column: ColumnSpec,
    source: str,
    labelled: bool = True,
) -> Columns:
    """Decide for a table of cells; without `labelled` only the text is looked for.

    Raises DataError where a column is not there, or cannot be told from the others.
    """
    first = rows[0]
    _refuse_other_separator(first, source)
    by_name = any(s is not None and number_of(s) is None for s in (text_column, label_column))
    if by_name or _is_header(first, text_column, label_column):
        text = resolve(first, text_column, "text", "--text-column", source)
        label = (
            resolve(first, label_column, "label", "--label-column", source) if labelled else None
        )
        _refuse_same(text, label, source)
        return Columns(text, label, True, [])
    if text_column is not None or label_column is not None:
        return _numbered(first, text_column, label_column, source, labelled)
    if len(first) == 1 and not labelled:
        return Columns(0, None, False, ["no header found: the only column read as text"])
    if len(first) != 2:
        wanted, flags = "column named 'text'", "--text-column"
        if labelled:
            wanted, flags = "columns named 'text' and 'label'", "--text-column and --label-column"
        raise DataError(
            f"{source}: no {wanted} in the first row, found {_listed(first)}: name the columns "
            f"in a header, or give {flags}"
        )
    label = _label_of_two(rows, source)
    note = f"no header found: column {label + 1} read as label, column {2 - label} as text"
    return Columns(1 - label, label if labelled else None, False, [note])


def resolve(found: Sequence[str], spec: ColumnSpec, default: str, flag: str, source: str) -> int:
    """0-based place of a column asked for by name or 1-based number among those `found`.

    Names are compared exactly first, then without regard to case and stray spaces.
    """
    number = None if spec is None else number_of(spec)
    if number is not None:
        if 1 <= number <= len(found):
            return number - 1
        raise DataError(
            f"{source}: no column number {number}, found {len(found)} "
            f"({_listed(found)}), counted from 1: change {flag}"
        )
    name = default if spec is None else str(spec)
    if name in found:
        return list(found).index(name)
    folded = [cell.strip().casefold() for cell in found]
    wanted = name.strip().casefold()
    if wanted in folded:
        return folded.index(wanted)
    raise DataError(
        f"{source}: no column {shown(name)}, found {_listed(found)}"
        f"{_hint(wanted, default, found, folded)}: name it with {flag}, or rename it"
    )


def number_of(spec: str | int) -> int | None:
    """The number in `2` or `"2"`; None for a name."""
    if isinstance(spec, int):
        return spec
    return int(spec) if spec.isascii() and spec.isdigit() and len(spec) < 10 else None


def _is_header(first: Sequence[str], text_column: ColumnSpec, label_column: ColumnSpec) -> bool:
    folded = [cell.strip().casefold() for cell in first]
    for spec, names in ((text_column, TEXT_NAMES), (label_column, LABEL_NAMES)):
        number = None if spec is None else number_of(spec)
        if number is not None and 1 <= number <= len(first) and folded[number - 1] in names:
            return True
    if "text" in folded or "label" in folded:
        return True
    usual = TEXT_NAMES | LABEL_NAMES | _OTHER_NAMES if len(folded) > 1 else TEXT_NAMES
    return any(folded) and all(cell in usual for cell in folded)


def _numbered(
    first: Sequence[str],
    text_column: ColumnSpec,
    label_column: ColumnSpec,
    source: str,
    labelled: bool,
) -> Columns:
    """Columns by number in a table without a header; of two columns, one number is enough."""
    text = label = None
    if text_column is not None:
        text = resolve(first, text_column, "text", "--text-column", source)
    if label_column is not None and (labelled or text is None):
        label = resolve(first, label_column, "label", "--label-column", source)
    if len(first) == 2:
        text = 1 - label if text is None and label is not None else text
        label = 1 - text if label is None and text is not None else label
    if text is None or (labelled and label is None):
        missing = "text" if text is None else "label"
        raise DataError(
            f"{source}: {missing} column not given and no header found, first row holds "
            f"{_listed(first)}: give --{missing}-column too"
        )
    label = label if labelled else None
    _refuse_same(text, label, source)
    read = f"column {text + 1} read as text"
    read += "" if label is None else f", column {label + 1} as label"
    return Columns(text, label, False, [f"no header found: {read}"])


def _label_of_two(rows: Sequence[Sequence[str]], source: str) -> int:
    """Which of two columns holds few distinct values."""
    pairs = [row for row in rows if len(row) >= 2]
    distinct = [len({row[i].strip() for row in pairs}) for i in (0, 1)]
    repeats = [d <= min(_MOST_LABELS, len(pairs) / 2) for d in distinct]
    spaced = [sum(" " in row[i].strip() for row in pairs) for i in (0, 1)]
    if any(repeats) and distinct[0] != distinct[1]:
        return int(distinct[1] < distinct[0])
    if (any(repeats) or len(pairs) < _FEW_ROWS) and spaced[0] != spaced[1]:
        return int(spaced[1] < spaced[0])
    raise DataError(
        f"{source}: no header, and neither column is clearly the label "
        f"({distinct[0]} and {distinct[1]} distinct values in {len(pairs)} rows), expected one "
        "with few distinct values: give --text-column and --label-column by number"
    )


def _refuse_other_separator(first: Sequence[str], source: str) -> None:
    """A header in one piece means that the columns are separated by something else."""
    if len(first) == 1:
        cell = first[0].strip().casefold()
        for separator in "\t;,|":
            if {"text", "label"} & set(cell.split(separator)) and separator in cell:
                raise DataError(
                    f"{source}: found {shown(first[0])} as the only column, expected columns "
                    f"separated by commas (.csv) or tabs (.tsv), not {shown(separator)}: save it "
                    "as one of these, and name it for what it is"
                )


def _refuse_same(text: int, label: int | None, source: str) -> None:
    if text == label:
        raise DataError(
            f"{source}: column {text + 1} asked for as both text and label, expected two "
            "columns: change --text-column or --label-column"
        )


def _hint(wanted: str, default: str, found: Sequence[str], folded: list[str]) -> str:
    near = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.6)
    usual = TEXT_NAMES if default == "text" else LABEL_NAMES
    if wanted == default:
        near = near or [cell for cell in folded if cell in usual]
    return f" (did you mean {shown(found[folded.index(near[0])])}?)" if near else ""


def _listed(found: Sequence[str], most: int = 8) -> str:
    names = ", ".join(shown(cell, 24) for cell in found[:most]) or "none"
    return names + (f" and {len(found) - most} more" if len(found) > most else "")
