"""How is a comparison's table written? As Markdown, CSV, LaTeX, and text for a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from superconext.experiments.tables import METRICS, TESTED, Row, Table
from superconext.files import write_csv, write_text
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


def headings() -> list[str]:
    """The column titles of the written tables."""
    return ["system", "fits", *METRICS.values(), "seconds", "difference", "p", "p (Holm)"]


def write_tables(folder: Path, table: Table) -> None:
    """Write table.md, table.csv and table.tex."""
    write_text(folder / "table.md", to_markdown(table) + "\n")
    write_csv(folder / "table.csv", to_csv_rows(table))
    write_text(folder / "table.tex", to_latex(table) + "\n")


def to_text(table: Table) -> str:
    """Aligned for a terminal, notes below."""
    rows = [dict(zip(headings(), cells, strict=True)) for cells, _ in _cells(table)]
    return "\n".join([render(rows, headings()), "", *table.notes])


def to_markdown(table: Table) -> str:
    """GitHub's Markdown; significantly better systems in bold."""
    lines = [headings(), ["---", *["---:"] * (len(headings()) - 1)]]
    lines += _marked(
        table, lambda cell: escape_markdown(cell) if cell != MISSING else cell, "**{}**"
    )
    return "\n".join(
        [
            *("| " + " | ".join(line) + " |" for line in lines),
            "",
            *(f"- {escape_markdown(note)}" for note in table.notes),
        ]
    )


def to_latex(table: Table) -> str:
    """A tabular for the package booktabs, with the notes as its last row."""
    count = len(headings())
    notes = " ".join(_latex(note) for note in table.notes)
    return "\n".join(
        [
            r"% needs \usepackage{booktabs}",
            rf"\begin{{tabular}}{{l{'r' * (count - 1)}}}",
            r"\toprule",
            " & ".join(_latex(name) for name in headings()) + r" \\",
            r"\midrule",
            *(" & ".join(line) + r" \\" for line in _marked(table, _latex, r"\textbf{{{}}}")),
            r"\bottomrule",
            rf"\multicolumn{{{count}}}{{p{{\linewidth}}}}{{\footnotesize {notes}}} \\",
            r"\end{tabular}",
        ]
    )


def to_csv_rows(table: Table) -> list[dict[str, Any]]:
    """One mapping for each system, fractions unrounded; also what `--json` prints."""
    rows = []
    for row in table.rows:
        cells: dict[str, Any] = {"system": row.name, "fits": row.fits}
        for key in (*METRICS, "seconds"):
            cells[f"{key}_mean"] = row.means[key]
            cells[f"{key}_sd"] = row.deviations[key]
        cells |= {
            "reference": table.reference,
            "difference": row.difference,
            "p": row.p,
            "p_holm": row.p_holm,
            "p_mcnemar": row.p_mcnemar,
            "significantly_better": row.better,
            "test": table.test if row.p is not None else None,
        }
        rows.append(cells)
    return rows


def _cells(table: Table) -> list[tuple[list[str], Row]]:
    lines = []
    for row in table.rows:
        figures = [_spread(row, key, 100, 1) for key in METRICS]
        difference = MISSING if row.difference is None else f"{100 * row.difference:+.1f}"
        if row.name == table.reference:
            difference = "reference"
        ends = [difference, _p(row.p), _p(row.p_holm)]
        lines.append(
            ([row.name, str(row.fits), *figures, _spread(row, "seconds", 1, 1), *ends], row)
        )
    return lines


def _marked(table: Table, escape: Callable[[str], str], bold: str) -> list[list[str]]:
    """Escaped cells; of a better system the tested figure and the difference in bold."""
    strong = {headings().index(METRICS[TESTED]), headings().index("difference")}
    return [
        [
            bold.format(escape(cell)) if row.better and at in strong else escape(cell)
            for at, cell in enumerate(cells)
        ]
        for cells, row in _cells(table)
    ]


def _spread(row: Row, key: str, factor: float, digits: int) -> str:
    deviation = row.deviations[key]
    mean = f"{factor * row.means[key]:.{digits}f}"
    return mean if deviation is None else f"{mean} ± {factor * deviation:.{digits}f}"


def _p(value: float | None) -> str:
    if value is None:
        return MISSING
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _latex(text: str) -> str:
    return _LATEX_SIGN.sub(lambda found: _LATEX[found[0]], text)
