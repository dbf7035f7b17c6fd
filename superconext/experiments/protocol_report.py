"""Reports of protocols: what was measured, with the paper's numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.core.files import write_csv, write_text
from superconext.core.progress import Progress
from superconext.experiments import compare as comparing
from superconext.experiments.plan import Request
from superconext.experiments.protocol import (
    PaperTable,
    Protocol,
    Study,
    figure_of,
    key_in,
    name_of_data,
)
from superconext.experiments.runner import Finished, run_experiment
from superconext.experiments.subsampling import parse_draw
from superconext.experiments.tables import (
    Table,
    by_system,
    make_tables,
    system_notes,
    to_long_grid,
    to_long_rows,
    to_overview,
)
from superconext.report.figures import BandsContext, draw_figures
from superconext.report.table import MISSING, Grid, spread

FILE = "protocol"
FIGURE = "draws"

#: Marks beside a number of the paper.
_MISPRINT, _NEAR = "†", "‡"

Lines = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Reported:
    """grids: each table of the paper by its title, or of each data set where the paper has none.
    rows: the figures of the first, unrounded. notes: what a reader must know."""

    grids: dict[str, Grid]
    rows: list[dict[str, Any]]
    notes: list[str]

    def text(self) -> str:
        """Aligned for a terminal."""
        parts = [f"{title}\n\n{grid.text()}" for title, grid in self.grids.items()]
        return "\n\n".join([*parts, "\n".join(self.notes)])


def run_study(protocol: Protocol, study: Study, request: Request, progress: Progress) -> Reported:
    """Run a study's fits that have no line yet, write its tables, figures and `protocol.md`.

    Raises as `runner.run_experiment` does.
    """
    count = len(request.plan())
    progress.say(f"protocol {protocol.name}, study {study.name}: {count} fits in {request.out}")
    return run_experiment(
        request, progress, lambda finished: _publish(protocol, study, finished, progress)
    )


def _publish(protocol: Protocol, study: Study, finished: Finished, progress: Progress) -> Reported:
    tables = (
        _draw_tables(finished, progress)
        if any(finished.request.draws)
        else {name: {"": t} for name, t in comparing.publish(finished, progress).tables.items()}
    )
    grids: dict[str, Grid] = {}
    rows: list[dict[str, Any]] = []
    if not study.tables:
        grids = {name or "test": _overview(finished, of) for name, of in tables.items() if of}
    for table in study.tables:
        grid, cells = _grid(protocol, table, finished, tables)
        grids[table.title] = grid
        rows += cells
    notes = _notes(protocol)
    text = [f"# {protocol.title}: {study.name}", study.answers, *notes]
    for title, grid in grids.items():
        text += [f"## {title}", grid.markdown()]
    write_text(finished.folder / f"{FILE}.md", "\n\n".join(text) + "\n")
    if rows:
        write_csv(finished.folder / f"{FILE}.csv", rows)
    return Reported(grids, rows, notes)


def _notes(protocol: Protocol) -> list[str]:
    notes = [f"The paper: {protocol.paper}; its encoder: {protocol.encoder}."]
    notes += [f"Departs from it: {line}" for line in protocol.departs]
    return notes + [f"Misprint: {line}" for line in protocol.misprints]


def _draw_tables(finished: Finished, progress: Progress) -> dict[str, dict[str, Table]]:
    """The tables of each data set by draw, written as `fewshot` writes its own."""
    request = finished.request
    made: dict[str, dict[str, Table]] = {}
    contexts = {}
    grids: dict[str, Grid] = {}
    for data in request.datasets:
        lines = [line for line in finished.lines if line.get("dataset", "") == data.name]
        groups: dict[str, list[Any]] = {}
        for name in request.draws:
            drawn_lines = [line for line in lines if line.get("draw", "") == name]
            if drawn_lines:
                groups[name] = drawn_lines
        findings = finished.sources[data.name].findings
        tables = make_tables(groups, request.reference, findings, request.systems)
        made[data.name] = tables
        if not tables:
            continue
        folder = finished.folder / data.name
        folder.mkdir(exist_ok=True)
        grids[data.name or "Overview"] = overview = _overview(finished, tables)
        overview.write(folder, "overview")
        shown = _shown(tables)
        notes = _draw_notes(tables)
        last = next(reversed(tables.values()))
        long = to_long_grid("rows", shown, [*notes, *last.notes[1:]])
        long.write(folder, "table", to_long_rows("rows", shown))
        curves = _curves(tables)
        if curves is not None:
            contexts[folder / "figures"] = curves
    finished.write_page(grids, draw_figures(contexts, progress, request.formats))
    return made


def _shown(tables: Mapping[str, Table]) -> dict[str, Table]:
    return {name or "all": table for name, table in tables.items()}


def _draw_notes(tables: Mapping[str, Table]) -> list[str]:
    return [
        f"{name}: {parse_draw(name).describe()}." if name else "all: all training rows."
        for name in tables
    ]


def _overview(finished: Finished, tables: Mapping[str, Table]) -> Grid:
    """A data set's systems, a column for each draw."""
    request = finished.request
    notes = [
        "Percent: weighted F1 on test, mean ± standard deviation over draws.",
        f"Bold: better than {request.reference} there, p below 0.05 after Holm's correction over "
        "all draws and systems of the data set.",
        *_draw_notes(tables),
        *system_notes(request.systems),
    ]
    return to_overview(_shown(tables), notes, ranked=False)


def _curves(tables: Mapping[str, Table]) -> BandsContext | None:
    """Curves over the draws of one kind by their number; None for fewer than two of them."""
    kinds = [parse_draw(name) for name in tables if name]
    kind = kinds[0].kind if kinds else ""
    if len(kinds) < 2 or any(of.kind != kind for of in kinds):
        return None
    curves: dict[str, dict[Any, list[float]]] = {}
    for name, table in tables.items():
        # All rows as they are: no damage at all, or no number.
        if not name and kinds[0].takes_fewer:
            continue
        for row in table.rows:
            at = parse_draw(name).amount if name else 0
            curves.setdefault(row.name, {})[at] = row.values

    label = parse_draw(f"{kind}{kinds[0].amount}").describe()
    return BandsContext(
        curves,
        xlabel=label.replace(str(kinds[0].amount), "N"),
        ylabel="weighted F1 on test, percent",
        file_name=FIGURE,
    )


def _grid(
    protocol: Protocol,
    table: PaperTable,
    finished: Finished,
    tables: Mapping[str, Mapping[str, Table]],
) -> tuple[Grid, list[dict[str, Any]]]:
    """A row for each system; for each data set what was measured and what was printed."""
    headings, notes = ["system"], []
    cells: list[list[str]] = [[name] for name in table.rows]
    bold: set[tuple[int, int]] = set()
    rows: list[dict[str, Any]] = []
    for data in finished.request.datasets:
        key, different = key_in(protocol, data) or ("", "")
        shown = name_of_data(data)
        for draw in finished.request.draws if table.draw is None else (table.draw,):
            drawn_table = tables.get(data.name, {}).get(draw)
            if drawn_table is None:
                continue
            lines = by_system(
                [
                    line
                    for line in finished.lines
                    if line.get("dataset", "") == data.name and line.get("draw", "") == draw
                ]
            )
            where = f"{shown} {draw}".strip() if table.draw is None else shown
            better = {row.name for row in drawn_table.rows if row.better}
            measured = [_scores(lines.get(name, []), table.metric) for name in table.rows]
            for at, name in enumerate(table.rows):
                if name in better:
                    bold.add((at, len(headings)))
            _add(headings, cells, where, [_mean_cell(values) for values in measured])
            if table.top:
                best = [
                    _scores(_top(lines.get(name, []), table.top), table.metric)
                    for name in table.rows
                ]
                _add(headings, cells, f"{where}, top {table.top}", [_mean_cell(v) for v in best])
            for encoder in table.paper if key else ():
                printed = [figure_of(table, encoder, key, name) for name in table.rows]
                if all(value is None for value in printed):
                    continue
                column = []
                for name, value in zip(table.rows, printed, strict=True):
                    wrong = table.misprints.get((key, name))
                    mark = (_MISPRINT if wrong else "") + (_NEAR if different else "")
                    column.append(MISSING if value is None else f"{value:g}{mark}")
                    if wrong:
                        notes.append(f"{_MISPRINT} {key}, {name}: {wrong}")
                _add(headings, cells, f"{where}, {encoder}", column)
                if different:
                    notes.append(f"{_NEAR} {shown} is not {key} as printed: {different}.")
            for name, values in zip(table.rows, measured, strict=True):
                rows.append(
                    {
                        "table": table.title,
                        "dataset": shown,
                        "draw": draw,
                        "system": name,
                        "metric": table.metric,
                        "fits": len(values),
                        "mean": float(np.mean(values)) if values else None,
                        "sd": float(np.std(values, ddof=1)) if len(values) > 1 else None,
                        **{
                            f"paper ({encoder})": None if printed is None else printed / 100
                            for encoder in table.paper
                            for printed in [figure_of(table, encoder, key, name)]
                        },
                    }
                )
    about = [f"Percent {table.metric.replace('_', ' ')} on test, mean ± standard deviation."]
    if table.top:
        about.append(
            f"top {table.top}: mean over the {table.top} draws with the best dev accuracy, as the "
            "paper reports it; it flatters, and a draw's luck is part of what one gets."
        )
    about.append(
        f"Bold: weighted F1 better than {finished.request.reference}'s, p below 0.05 after Holm's "
        "correction (table.md). The paper's figures are printed unchanged."
    )
    return Grid(headings, cells, bold, [*about, *dict.fromkeys(notes)]), rows


def _add(headings: list[str], cells: list[list[str]], heading: str, column: list[str]) -> None:
    headings.append(heading)
    for row, cell in zip(cells, column, strict=True):
        row.append(cell)


def _mean_cell(values: Sequence[float]) -> str:
    if not values:
        return MISSING
    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return spread(float(np.mean(values)), deviation)


def _top(lines: Lines, count: int) -> Lines:
    """The lines with the best dev accuracy, the earlier of equals."""
    return sorted(lines, key=lambda line: -line["dev"]["accuracy"])[:count]


def _scores(lines: Lines, metric: str) -> list[float]:
    if metric in ("f1_minor", "f1_major"):
        return [_class_f1(line, metric) for line in lines]
    return [float(line["test"][metric]) for line in lines]


def _class_f1(line: Mapping[str, Any], metric: str) -> float:
    """F1 of the class with the fewest, or most, training rows."""
    counts = np.array(line["class_rows"])
    present = np.flatnonzero(counts)
    chosen_class = present[(np.argmin if metric == "f1_minor" else np.argmax)(counts[present])]
    actual, predicted = (
        np.array(line["truth"]) == chosen_class,
        np.array(line["predictions"]) == chosen_class,
    )
    total = actual.sum() + predicted.sum()
    return float(2 * (actual & predicted).sum() / total) if total else 0.0
