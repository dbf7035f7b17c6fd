"""Systems and baselines on the same splits of one or more data sets: `superconext compare`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superconext.core.files import tsv_cell, write_csv, write_text
from superconext.core.progress import Progress
from superconext.experiments.plan import Request, name_of
from superconext.experiments.row_sources import RowSource
from superconext.experiments.runner import Finished, run_experiment
from superconext.experiments.tables import (
    Table,
    make_table,
    script_grid,
    system_notes,
    to_csv_rows,
    to_grid,
    to_long_rows,
    to_overview,
)
from superconext.report.figures import ComparisonContext, draw_figures
from superconext.report.table import Grid

FIGURE = "weighted_f1"


@dataclass(frozen=True)
class Compared:
    """tables: by data set. overview: of all of them, None for one.

    lines: what the tables were made from, in the order of the plan.
    """

    tables: dict[str, Table]
    overview: Grid | None
    lines: list[dict[str, Any]]

    @property
    def table(self) -> Table:
        """The only table, or the first."""
        return next(iter(self.tables.values()))


def compare(request: Request, progress: Progress) -> Compared:
    """Run every fit that has no line yet, then write the tables and the figures.

    With one data set they lie in the folder; with several each has a folder of its own
    there, and the folder has an overview of all. Raises as `runner.run_experiment` does.
    """
    return run_experiment(request, progress, lambda finished: publish(finished, progress))


def publish(finished: Finished, progress: Progress) -> Compared:
    """Write the tables and figures of what has ended."""
    request = finished.request
    tables = {
        data.name: make_table(
            [line for line in finished.lines if line.get("dataset", "") == data.name],
            request.reference,
            finished.sources[data.name].findings,
            request.systems,
        )
        for data in request.datasets
    }
    several = list(tables) != [""]
    contexts = {}
    for name, table in tables.items():
        folder = finished.folder / name
        folder.mkdir(exist_ok=True)
        to_grid(table).write(folder, "table", to_csv_rows(table))
        lines = [line for line in finished.lines if line.get("dataset", "") == name]
        if any("folds" in line for line in lines):
            _write_predictions(folder / "predictions.tsv", finished.sources[name], lines)
        by_script = script_grid(table)
        if by_script is not None:
            by_script.write(folder, "by_script")
        contexts[folder / "figures"] = _figure_context({"": table})
    overview = _overview(finished, tables) if several else None
    if several:
        contexts[finished.folder / "figures"] = _figure_context(tables)
    grids = {"Overview": overview} if overview is not None else {}
    grids |= {name or "Test rows": to_grid(table) for name, table in tables.items()}
    finished.write_page(grids, draw_figures(contexts, progress, request.formats))
    return Compared(tables, overview, finished.lines)


def _write_predictions(path: Path, source: RowSource, lines: Sequence[Mapping[str, Any]]) -> None:
    """Line and label of every row, and what each system predicts out of fold: over several deals
    the commonest, the first in sorted order on ties; empty for a row that no fold holds out."""
    said: dict[str, list[Counter[int]]] = {}
    for line in lines:
        counts = said.setdefault(name_of(line), [Counter() for _ in line["truth"]])
        for count, k in zip(counts, line["predictions"], strict=True):
            count.update([] if k is None else [k])
    rows = zip(source.lines["all"], source.rows["all"][1], *said.values(), strict=True)
    table = [["line", "label", *said]]
    for number, label, *counts in rows:
        best = [min(of, key=lambda k: (-of[k], k)) if of else None for of in counts]
        predicted = ["" if k is None else source.labels[k] for k in best]
        table.append([str(number), label, *predicted])
    write_text(path, "".join("\t".join(map(tsv_cell, cells)) + "\n" for cells in table))


def _overview(finished: Finished, tables: dict[str, Table]) -> Grid:
    reference = finished.request.reference
    notes = [
        "Percent: weighted F1 on test, mean ± standard deviation over seeds or splits; details in "
        "each data set's own table.",
        f"Bold: better than {reference} on that data set, p below 0.05 after Holm's correction "
        "within the data set.",
        "Mean rank: over data sets, by mean weighted F1, 1 for the best.",
        *system_notes(finished.request.systems),
    ]
    grid = to_overview(tables, notes, ranked=True)
    grid.write(finished.folder, "overview")
    write_csv(finished.folder / "table.csv", to_long_rows("dataset", tables))
    return grid


def _figure_context(tables: dict[str, Table]) -> ComparisonContext:
    return ComparisonContext(
        {name: {row.name: row.values for row in table.rows} for name, table in tables.items()},
        file_name=FIGURE,
        reference=next(iter(tables.values())).reference,
        significant={
            name: [row.name for row in table.rows if row.better] for name, table in tables.items()
        },
    )
