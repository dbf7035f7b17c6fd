"""Which value of a parameter is best? Chosen on dev, reported on test once: `superconext sweep`.

Every grid point is a system of its own. The tables and the figure show them by their dev
figures; of test they show the chosen point alone, beside the baselines.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from superconext.baselines import ALWAYS_FITTED
from superconext.core.errors import ConfigError, RunError
from superconext.core.progress import Progress
from superconext.experiments.pairing import TESTED
from superconext.experiments.plan import name_of
from superconext.experiments.request import Request
from superconext.experiments.runner import Finished, carry_out
from superconext.experiments.systems import System, parse_value, shown, with_parameters
from superconext.experiments.table_files import write_tables
from superconext.experiments.tables import METRICS, Row, Table, make_table, summarise
from superconext.objectives.catalogue import check_objective
from superconext.report.figures import BandsContext, Chosen, Level, draw_figures
from superconext.report.table import Grid, spread

FIGURE = "sweep"


@dataclass(frozen=True)
class Point:
    """A grid point: its system, and its figures on dev."""

    system: System
    dev: Row

    @property
    def values(self) -> dict[str, Any]:
        """The swept parameters."""
        return dict(self.system.parameters)


@dataclass(frozen=True)
class Swept:
    """points: in the order of the grid. chosen: the best on dev. table: it on test."""

    points: list[Point]
    chosen: Point
    table: Table
    grid: Grid
    lines: list[dict[str, Any]]


def make_grid(
    objective: str, parameters: Sequence[str], values: Sequence[str]
) -> tuple[System, ...]:
    """A system for each combination of values.

    Args:
        parameters: names.
        values: for each name its values, comma separated.

    Raises ConfigError for names and values that are not those of `train`, a name or a
    value given twice, and lists of different lengths.
    """
    check_objective(objective)
    if not parameters or len(parameters) != len(values):
        raise ConfigError(
            f"found {len(parameters)} parameters and {len(values)} lists of values; expected one "
            "--values after each --parameter"
        )
    if len(set(parameters)) < len(parameters):
        raise ConfigError("a parameter is given twice; expected each once: join its values")
    axes = []
    for name, text in zip(parameters, values, strict=True):
        found = [
            parse_value(name, piece.strip(), "sweep") for piece in text.split(",") if piece.strip()
        ]
        if not found or len(set(found)) < len(found):
            raise ConfigError(f"values of {name} = {text!r}: expected one or more, each once")
        axes.append([(name, value) for value in found])
    return tuple(with_parameters(objective, point) for point in itertools.product(*axes))


def sweep(request: Request, progress: Progress) -> Swept:
    """Run every fit that has no line yet, choose on dev, write the tables and the figure.

    Raises what `runner.carry_out` does.
    """
    return carry_out(
        request, progress, lambda finished: _publish(finished, progress), judged_on="dev"
    )


def choose(points: Sequence[Point]) -> Point:
    """The point with the highest mean dev weighted F1, the first of equals."""
    return max(points, key=lambda point: point.dev.means[TESTED])


def _publish(finished: Finished, progress: Progress) -> Swept:
    request = finished.request
    lines: dict[str, list[dict[str, Any]]] = {}
    for line in finished.lines:
        lines.setdefault(name_of(line), []).append(line)
    # A point whose fits failed in part has had other splits or seeds than the others.
    whole = [
        system for system in request.systems if len(lines.get(system.name, [])) == request.seeds
    ]
    points = [Point(s, summarise(s.name, lines[s.name], "dev")) for s in whole]
    if not points:
        raise RunError(
            f"{finished.folder}: found no grid point whose fits all ended; expected one or more: "
            "see the warnings above"
        )
    return publish_points(finished, points, choose(points), progress, str(len(points)))


def publish_points(
    finished: Finished,
    points: Sequence[Point],
    chosen: Point,
    progress: Progress,
    among: str,
    *,
    searched: bool = False,
) -> Swept:
    """Write the tables and the figure of points whose choice is made.

    Args:
        finished: its lines are those of the baselines and of the chosen point at least.
        among: what the choice was made among, in words.
        searched: whether the points are trials in their order, not a grid.
    """
    request = finished.request
    lines: dict[str, list[dict[str, Any]]] = {}
    for line in finished.lines:
        lines.setdefault(name_of(line), []).append(line)
    shown_lines = [
        line for line in finished.lines if name_of(line) in (*ALWAYS_FITTED, chosen.system.name)
    ]
    (findings,) = finished.findings.values()
    table = make_table(shown_lines, request.reference, findings)
    table.notes.insert(
        0,
        f"{chosen.system.name} was chosen among {among} by mean dev weighted F1; no test "
        "figure of the others is shown.",
    )
    write_tables(finished.folder, table)
    baselines = {
        name: summarise(name, lines[name], "dev") for name in ALWAYS_FITTED if name in lines
    }
    grid = _grid(points, chosen, baselines, table)
    grid.write(finished.folder, "dev", to_dev_rows(points, chosen))
    if searched:
        _draw_trials(finished, points, progress)
    else:
        _draw(finished, points, chosen, baselines, table, progress)
    return Swept(list(points), chosen, table, grid, finished.lines)


def _grid(
    points: Sequence[Point], chosen: Point, baselines: Mapping[str, Row], table: Table
) -> Grid:
    names = list(points[0].values)
    rows = [
        [
            *(shown(value) for value in point.values.values()),
            *_cells(point.dev),
            "chosen" if point is chosen else "",
        ]
        for point in points
    ]
    rows += [[name, *[""] * (len(names) - 1), *_cells(row), ""] for name, row in baselines.items()]
    test = next(row for row in table.rows if row.name == chosen.system.name)
    notes = [
        "Percent on dev, mean ± standard deviation; the choice is by weighted F1, the first of "
        "equals.",
        f"{chosen.system.name} on test: weighted F1 "
        f"{spread(test.means[TESTED], test.deviations[TESTED])}; see table.md.",
        "The chosen point's dev figure is the best of many and so flatters it; its test figure "
        "does not.",
    ]
    at = points.index(chosen)
    bold = {(at, column) for column in range(len(names) + len(METRICS) + 3)}
    return Grid([*names, "fits", *METRICS.values(), "seconds", ""], rows, bold, notes)


def _cells(row: Row) -> list[str]:
    return [
        str(row.fits),
        *(spread(row.means[key], row.deviations[key]) for key in METRICS),
        spread(row.means["seconds"], row.deviations["seconds"], 1),
    ]


def to_dev_rows(points: Sequence[Point], chosen: Point) -> list[dict[str, Any]]:
    """One mapping for each point, fractions unrounded."""
    rows = []
    for point in points:
        cells: dict[str, Any] = {"system": point.system.name, **point.values}
        cells["fits"] = point.dev.fits
        for key in (*METRICS, "seconds"):
            cells[f"dev_{key}_mean"] = point.dev.means[key]
            cells[f"dev_{key}_sd"] = point.dev.deviations[key]
        rows.append({**cells, "chosen": point is chosen})
    return rows


def _draw(
    finished: Finished,
    points: Sequence[Point],
    chosen: Point,
    baselines: Mapping[str, Row],
    table: Table,
    progress: Progress,
) -> None:
    """The first parameter along the axis, a curve for each combination of the others."""
    axis = next(iter(points[0].values))
    curves: dict[str, dict[Any, list[float]]] = {}
    names: dict[str, str] = {}
    for point in points:
        rest = {name: value for name, value in point.values.items() if name != axis}
        names[point.system.name] = name = (
            ", ".join(f"{key} {shown(value)}" for key, value in rest.items())
            or point.system.objective
        )
        curves.setdefault(name, {})[point.values[axis]] = point.dev.values
    test = next(row for row in table.rows if row.name == chosen.system.name)

    bands = BandsContext(
        curves,
        xlabel=axis,
        ylabel="weighted F1 on dev, percent",
        file_name=FIGURE,
        levels=[
            Level(f"{name} (dev)", row.values)
            for name, row in baselines.items()
            if name != "majority"
        ],
        chosen=Chosen(names[chosen.system.name], chosen.values[axis], test.values),
    )
    draw_figures({finished.folder / "figures": bands}, progress)


def _draw_trials(finished: Finished, points: Sequence[Point], progress: Progress) -> None:
    """Each trial's dev figure, and the best so far."""
    values = [point.dev.means[TESTED] for point in points]
    best = list(itertools.accumulate(values, max))

    curves = {"trial": values, "best so far": best}
    bands = BandsContext(
        {name: {k: [v] for k, v in enumerate(of, 1)} for name, of in curves.items()},
        xlabel="trial",
        ylabel="weighted F1 on dev, percent",
        file_name=FIGURE,
    )
    draw_figures({finished.folder / "figures": bands}, progress)
