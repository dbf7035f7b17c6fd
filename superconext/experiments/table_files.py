"""The table of a comparison as a grid of cells, and as rows of a CSV."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from superconext.experiments.pairing import TESTED
from superconext.experiments.tables import METRICS, Row, Table
from superconext.report.table import MISSING, Grid, probability, spread

_HEADINGS = ["system", "fits", *METRICS.values(), "seconds", "difference", "p", "p (Holm)"]


def write_tables(folder: Path, table: Table, stem: str = "table") -> None:
    """Write table.md, table.csv and table.tex, or the like under another name."""
    to_grid(table).write(folder, stem, to_csv_rows(table))


def to_text(table: Table) -> str:
    """Aligned for a terminal, notes below."""
    return to_grid(table).text()


def to_markdown(table: Table) -> str:
    """GitHub's Markdown; significantly better systems in bold."""
    return to_grid(table).markdown()


def to_latex(table: Table) -> str:
    """A tabular for the package booktabs, with the notes as its last row."""
    return to_grid(table).latex()


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


def to_grid(table: Table) -> Grid:
    """The cells; of a better system the tested figure and the difference in bold."""
    strong = [_HEADINGS.index(name) for name in (METRICS[TESTED], "difference")]
    bold = {(at, column) for at, row in enumerate(table.rows) if row.better for column in strong}
    return Grid(_HEADINGS, [_cells(row, table.reference) for row in table.rows], bold, table.notes)


def _cells(row: Row, reference: str) -> list[str]:
    difference = MISSING if row.difference is None else f"{100 * row.difference:+.1f}"
    return [
        row.name,
        str(row.fits),
        *(spread(row.means[key], row.deviations[key]) for key in METRICS),
        spread(row.means["seconds"], row.deviations["seconds"], 1),
        "reference" if row.name == reference else difference,
        probability(row.p),
        probability(row.p_holm),
    ]
