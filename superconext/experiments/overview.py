"""The same systems in several tables, at a glance: a column for each data set or size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from superconext.experiments.pairing import TESTED
from superconext.experiments.table_files import to_csv_rows, to_grid
from superconext.experiments.tables import Row, Table
from superconext.report.table import MISSING, Grid, spread


def to_overview(tables: Mapping[str, Table], notes: Sequence[str], *, ranked: bool) -> Grid:
    """Weighted F1 of every system (rows) in every table (columns), bold where it is there.

    Args:
        tables: by the heading of their column.
        ranked: whether to add each system's mean and mean rank over the tables (1 is best,
            equals share a rank), for systems that stand in all of them.
    """
    of = {name: {row.name: row for row in table.rows} for name, table in tables.items()}
    systems = list(dict.fromkeys(name for rows in of.values() for name in rows))
    extra = ["mean", "mean rank"] if ranked else []
    ranks = mean_ranks(tables) if ranked else {}
    rows, bold = [], set()
    for at, system in enumerate(systems):
        cells = [system]
        for column, found in enumerate(of.values(), 1):
            row = found.get(system)
            cells.append(
                MISSING if row is None else spread(row.means[TESTED], row.deviations[TESTED])
            )
            if row is not None and row.better:
                bold.add((at, column))
        if ranked:
            known = system in ranks
            mean = (
                float(np.mean([rows_of[system].means[TESTED] for rows_of in of.values()]))
                if known
                else 0
            )
            cells += [f"{100 * mean:.1f}", f"{ranks[system]:.2f}"] if known else [MISSING] * 2
        rows.append(cells)
    return Grid(["system", *tables, *extra], rows, bold, list(notes))


def mean_ranks(tables: Mapping[str, Table]) -> dict[str, float]:
    """The mean over the tables of each system's rank by mean weighted F1, 1 for the best.

    Systems that a table lacks are left out of all.
    """
    from scipy.stats import rankdata

    of: list[dict[str, Row]] = [{row.name: row for row in table.rows} for table in tables.values()]
    shared = [name for name in of[0] if all(name in rows for rows in of)] if of else []
    if not shared:
        return {}
    ranks = [rankdata([-rows[name].means[TESTED] for name in shared]) for rows in of]
    return dict(zip(shared, np.mean(ranks, axis=0).tolist(), strict=True))


def to_long_grid(column: str, tables: Mapping[str, Table], notes: Sequence[str]) -> Grid:
    """The rows of all tables as of one, `column` saying which table."""
    rows: list[list[str]] = []
    bold: set[tuple[int, int]] = set()
    headings: list[str] = []
    for name, table in tables.items():
        grid = to_grid(table)
        headings = [column, *grid.headings]
        bold |= {(len(rows) + row, 1 + at) for row, at in grid.bold}
        rows += [[name, *cells] for cells in grid.rows]
    return Grid(headings, rows, bold, list(notes), right=range(2, len(headings)))


def to_long_rows(column: str, tables: Mapping[str, Table]) -> list[dict[str, Any]]:
    """The same for a CSV, unrounded."""
    return [{column: name, **row} for name, table in tables.items() for row in to_csv_rows(table)]
