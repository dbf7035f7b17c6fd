"""How is a table of cells written? As Markdown, LaTeX, and text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from superconext.core.files import write_csv, write_text
from superconext.report.table import MISSING, escape_markdown, render

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "<": r"$<$",
    ">": r"$>$",
    **{sign: "\\" + sign for sign in "&%$#_{}"},
}
_LATEX_SIGN = re.compile("|".join(map(re.escape, _LATEX)))


@dataclass(frozen=True)
class Grid:
    """Cells as text. bold: (row, column) of those that stand out; notes: below, a line each."""

    headings: list[str]
    rows: list[list[str]]
    bold: set[tuple[int, int]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)


def write_grid(
    folder: Path, stem: str, grid: Grid, csv_rows: Sequence[Mapping[str, Any]] | None = None
) -> None:
    """Write STEM.md, STEM.tex and, with rows of its own (unrounded), STEM.csv."""
    write_text(folder / f"{stem}.md", as_markdown(grid) + "\n")
    if csv_rows is not None:
        write_csv(folder / f"{stem}.csv", csv_rows)
    write_text(folder / f"{stem}.tex", as_latex(grid) + "\n")


def as_text(grid: Grid) -> str:
    """Aligned for a terminal, notes below."""
    rows = [dict(zip(grid.headings, cells, strict=True)) for cells in grid.rows]
    return "\n".join([render(rows, grid.headings), "", *grid.notes])


def as_markdown(grid: Grid) -> str:
    """GitHub's Markdown."""
    lines = [
        [_markdown(name) for name in grid.headings],
        ["---", *["---:"] * (len(grid.headings) - 1)],
        *_marked(grid, _markdown, "**{}**"),
    ]
    return "\n".join(
        [
            *("| " + " | ".join(line) + " |" for line in lines),
            "",
            *(f"- {escape_markdown(note)}" for note in grid.notes),
        ]
    )


def as_latex(grid: Grid) -> str:
    """A tabular for the package booktabs, with the notes as its last row."""
    count = len(grid.headings)
    notes = " ".join(_latex(note) for note in grid.notes)
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            rf"\begin{{tabular}}{{l{'r' * (count - 1)}}}",
            r"\toprule",
            " & ".join(_latex(name) for name in grid.headings) + r" \\",
            r"\midrule",
            *(" & ".join(line) + r" \\" for line in _marked(grid, _latex, r"\textbf{{{}}}")),
            r"\bottomrule",
            rf"\multicolumn{{{count}}}{{p{{\linewidth}}}}{{\footnotesize {notes}}} \\",
            r"\end{tabular}",
        ]
    )


def spread(mean: float, deviation: float | None, factor: float = 100, digits: int = 1) -> str:
    """A mean and its standard deviation as a cell, percent unless told otherwise."""
    text = f"{factor * mean:.{digits}f}"
    return text if deviation is None else f"{text} ± {factor * deviation:.{digits}f}"


def probability(value: float | None) -> str:
    """A p-value as a cell."""
    if value is None:
        return MISSING
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _marked(grid: Grid, escape: Callable[[str], str], bold: str) -> list[list[str]]:
    return [
        [
            bold.format(escape(cell)) if (row, column) in grid.bold else escape(cell)
            for column, cell in enumerate(cells)
        ]
        for row, cells in enumerate(grid.rows)
    ]


def _markdown(cell: str) -> str:
    return cell if cell == MISSING else escape_markdown(cell)


def _latex(text: str) -> str:
    return _LATEX_SIGN.sub(lambda found: _LATEX[found[0]], text)
