"""Sweeps of parameters: values chosen on dev, reported on test once (`superconext sweep`).

Every point of the grid is a system of its own. The tables and the figure show them by their dev
metrics; of test they show the chosen point alone, beside the baselines.

With `--optuna N` a trial is one fit, with seed 0, of values that Optuna's tree-structured Parzen
estimator (Bergstra et al., 2011) proposes from the dev metrics so far; the best is then fitted
with the other seeds. The sampler is seeded and is called in order, so that the same command
proposes the same values again: a search that was stopped reads its fits from `results.jsonl` and
goes on. Values that are proposed twice are fitted once.
"""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from superconext.baselines import ALWAYS_FITTED
from superconext.config.parameters import BY_NAME, OPTION
from superconext.core.errors import ConfigError, MissingExtraError, RunError, plural
from superconext.core.progress import Progress
from superconext.experiments.paired_tests import TESTED
from superconext.experiments.plan import Request, name_of
from superconext.experiments.runner import (
    Finished,
    Session,
    open_session,
    raise_for,
    run_experiment,
)
from superconext.experiments.systems import System, parse_value, plain, shown, with_parameters
from superconext.experiments.tables import (
    Row,
    Table,
    make_table,
    metric_cells,
    metric_columns,
    metric_values,
    summarise,
    to_csv_rows,
    to_grid,
)
from superconext.objectives.catalogue import OBJECTIVES
from superconext.report.figures import BandsContext, Chosen, Level, draw_figures
from superconext.report.table import Grid, spread

FIGURE = "sweep"


@dataclass(frozen=True)
class Point:
    """A grid point: its system, and its metrics on dev."""

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


def make_grid(
    objective: str, parameters: Sequence[str], values: Sequence[str]
) -> tuple[System, ...]:
    """A system for each combination of values, which are comma separated for each parameter.

    Raises ConfigError for names and values that are not those of `train`, a name or a value given
    twice, and lists of different lengths.
    """
    OBJECTIVES.check(objective)
    axes = [
        [(name, value) for value in _choices(name, text)]
        for name, text in _named(parameters, values)
    ]
    return tuple(with_parameters(objective, point) for point in itertools.product(*axes))


def sweep(request: Request, progress: Progress) -> Swept:
    """Run every fit that has no line yet, choose on dev, write the tables and the figure."""
    return run_experiment(
        request, progress, lambda finished: _publish(finished, progress), shown_part="dev"
    )


def _by_name(finished: Finished) -> dict[str, list[dict[str, Any]]]:
    lines: dict[str, list[dict[str, Any]]] = {}
    for line in finished.lines:
        lines.setdefault(name_of(line), []).append(line)
    return lines


def choose(points: Sequence[Point]) -> Point:
    """The point with the highest mean dev weighted F1, the first of equals."""
    return max(points, key=lambda point: point.dev.means[TESTED])


def _publish(finished: Finished, progress: Progress) -> Swept:
    request, lines = finished.request, _by_name(finished)
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

    finished: its lines are those of the baselines and of the chosen point at least. among: what
    the choice was made among, in words. searched: whether the points are trials in their order.
    """
    request, lines = finished.request, _by_name(finished)
    shown_lines = [
        line for line in finished.lines if name_of(line) in (*ALWAYS_FITTED, chosen.system.name)
    ]
    (source,) = finished.sources.values()
    table = make_table(shown_lines, request.reference, source.findings)
    table.notes.insert(
        0,
        f"{chosen.system.name} was chosen among {among} by mean dev weighted F1; no test "
        "figure of the others is shown.",
    )
    to_grid(table).write(finished.folder, "table", to_csv_rows(table))
    baselines = {
        name: summarise(name, lines[name], "dev") for name in ALWAYS_FITTED if name in lines
    }
    grid = _grid(points, chosen, baselines, table)
    grid.write(finished.folder, "dev", to_dev_rows(points, chosen))
    if searched:
        drawn = _draw_trials(finished, points, progress)
    else:
        drawn = _draw(finished, points, chosen, baselines, table, progress)
    finished.write_page({"Dev": grid, "The chosen one on test": to_grid(table)}, drawn)
    return Swept(list(points), chosen, table, grid)


def _grid(
    points: Sequence[Point], chosen: Point, baselines: Mapping[str, Row], table: Table
) -> Grid:
    names = list(points[0].values)
    columns = metric_columns([point.dev for point in points])
    rows = [
        [
            *(shown(value) for value in point.values.values()),
            str(point.dev.fits),
            *metric_cells(point.dev, columns),
            "chosen" if point is chosen else "",
        ]
        for point in points
    ]
    rows += [
        [name, *[""] * (len(names) - 1), str(row.fits), *metric_cells(row, columns), ""]
        for name, row in baselines.items()
    ]
    test = next(row for row in table.rows if row.name == chosen.system.name)
    notes = [
        "Percent on dev, mean ± standard deviation; the choice is by weighted F1, the first of "
        "equals.",
        f"{chosen.system.name} on test: weighted F1 "
        f"{spread(test.means[TESTED], test.deviations[TESTED])}; see table.md.",
        "The dev score of the chosen point is the best of many and so too high; its test score is "
        "not.",
    ]
    at = points.index(chosen)
    bold = {(at, column) for column in range(len(names) + len(columns) + 3)}
    return Grid([*names, "fits", *columns.values(), "seconds", ""], rows, bold, notes)


def to_dev_rows(points: Sequence[Point], chosen: Point) -> list[dict[str, Any]]:
    """One mapping for each point, fractions unrounded."""
    rows, columns = [], metric_columns([point.dev for point in points])
    for point in points:
        cells: dict[str, Any] = {"system": point.system.name, **point.values}
        cells["fits"] = point.dev.fits
        cells |= metric_values(point.dev, columns, "dev_")
        rows.append({**cells, "chosen": point is chosen})
    return rows


def _draw(
    finished: Finished,
    points: Sequence[Point],
    chosen: Point,
    baselines: Mapping[str, Row],
    table: Table,
    progress: Progress,
) -> list[Path]:
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
    return draw_figures({finished.folder / "figures": bands}, progress, finished.request.formats)


def _draw_trials(finished: Finished, points: Sequence[Point], progress: Progress) -> list[Path]:
    """The dev metric of each point in the order of trials, and the best so far; values tried again
    and trials that failed are no points."""
    values = [point.dev.means[TESTED] for point in points]
    best = list(itertools.accumulate(values, max))

    curves = {"tried": values, "best so far": best}
    bands = BandsContext(
        {name: {k: [v] for k, v in enumerate(of, 1)} for name, of in curves.items()},
        xlabel="distinct values tried, in order",
        ylabel="weighted F1 on dev, percent",
        file_name=FIGURE,
    )
    return draw_figures({finished.folder / "figures": bands}, progress, finished.request.formats)


#: Significant digits of a proposed number, so that its name says all of it.
DIGITS = 4


@dataclass(frozen=True)
class Axis:
    """A parameter's values: those of `choices`, or a range, whole numbers or not."""

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    whole: bool = False
    log: bool = False

    def proposed(self, trial: Any) -> Any:
        """The value that a trial of Optuna proposes."""
        if self.choices:
            return trial.suggest_categorical(self.name, list(self.choices))
        if self.whole:
            return trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        value = trial.suggest_float(self.name, self.low, self.high, log=self.log)
        return min(self.high, max(self.low, float(f"{value:.{DIGITS}g}")))


def parse_axes(
    parameters: Sequence[str], values: Sequence[str], options: Sequence[type] = ()
) -> tuple[Axis, ...]:
    """The axes of a search, of each parameter `A,B,C` to choose from, `LOW:HIGH` or `LOW:HIGH:log`.

    options: the `options_type` of the objective and of the encoder, which say of what type an
        option is; of others that is how the ends of its range are written.

    Raises ConfigError for what is no parameter, value or range.
    """
    types = {name: row.type for name, row in BY_NAME.items()}
    for one in options:
        types |= {OPTION + name: kind for name, kind in get_type_hints(one).items()}
    return tuple(_axis(name, text, types) for name, text in _named(parameters, values))


def _named(parameters: Sequence[str], values: Sequence[str]) -> list[tuple[str, str]]:
    if not parameters or len(parameters) != len(values):
        raise ConfigError(
            f"found {plural(len(parameters), 'parameter')} and {plural(len(values), 'list')} of "
            "values; expected one --values after each --parameter"
        )
    if len(set(parameters)) < len(parameters):
        raise ConfigError("a parameter is given twice; expected each once: join its values")
    return list(zip(parameters, values, strict=True))


def _choices(name: str, text: str) -> tuple[Any, ...]:
    """The values of a comma separated list."""
    pieces = filter(None, map(str.strip, text.split(",")))
    choices = tuple(parse_value(name, piece, "sweep") for piece in pieces)
    if not choices or len(set(choices)) < len(choices):
        raise ConfigError(f"values of {name} = {text!r}: expected one or more, each once")
    return choices


def _axis(name: str, text: str, types: Mapping[str, type]) -> Axis:
    if ":" not in text:
        return Axis(name, _choices(name, text))
    low, high, *rest = (piece.strip() for piece in text.split(":"))
    ends = [parse_value(name, piece, "sweep") for piece in (low, high)]
    kind = types.get(name) or max({type(end) for end in ends}, key=[int, float, str].index)
    log = rest == ["log"]
    if kind not in (int, float) or ends[0] >= ends[1] or (rest and not log):
        raise ConfigError(
            f"values of {name} = {text!r}: expected LOW:HIGH or LOW:HIGH:log of a parameter that "
            "is a number, LOW below HIGH: change it"
        )
    if log and ends[0] <= 0:
        raise ConfigError(f"values of {name} = {text!r}: expected LOW above 0 on a log scale")
    return Axis(name, (), float(ends[0]), float(ends[1]), kind is int, log)


def check_optuna() -> None:
    """Raise MissingExtraError without the extra `optuna`."""
    if importlib.util.find_spec("optuna") is None:
        raise MissingExtraError("sweep --optuna", "optuna")


def search(
    request: Request, objective: str, axes: Sequence[Axis], trials: int, progress: Progress
) -> Swept:
    """Run the trials and the chosen values' other seeds, then write the tables and the figure.

    request: without systems. With `jobs` above 1 so many trials are proposed at a time, from what
    those before have shown. Raises MissingExtraError without Optuna, RunError where every trial
    failed, and what `runner.open_session` raises.
    """
    check_optuna()
    OBJECTIVES.check(objective)
    propose, report = _sampler(axes)
    start = replace(request, systems=(plain(objective),), seeds=1)
    baselines = [fit for fit in start.plan() if fit.is_baseline]
    points: dict[str, Point] = {}
    failed: list[str] = []
    with open_session(_probing(request, objective, axes), progress, "dev") as session:
        failed += session.run(baselines)
        done = 0
        while done < trials:
            wave = [propose(objective) for _ in range(min(request.workers.jobs, trials - done))]
            done += len(wave)
            systems = {system.name: system for _, system in wave}
            failed += _run_systems(session, request, [*systems.values()], 1)
            for trial, system in wave:
                lines = [of for key, of in session.lines.items() if key[:2] == (system.name, 0)]
                if not lines:
                    report(trial, None)
                    continue
                point = Point(system, summarise(system.name, lines[:1], "dev"))
                points.setdefault(system.name, point)
                report(trial, point.dev.means[TESTED])
                best = max(of.dev.means[TESTED] for of in points.values())
                progress.say(f"trial {done} of {trials}: best dev weighted F1 {best:.3f}")
        if not points:
            raise RunError(
                f"{session.folder}: found no trial that ended; expected one or more: see the "
                "warnings above"
            )
        chosen = choose([*points.values()])
        failed += _run_systems(session, request, [chosen.system], request.seeds)
        plan = replace(request, systems=(chosen.system,)).plan()
        lines = [session.lines[fit.key] for fit in plan if fit.key in session.lines]
        swept = publish_points(
            Finished(session.request, session.folder, lines, session.sources),
            list(points.values()),
            chosen,
            progress,
            f"{len(points)} fits, one seed each, proposed by Optuna's TPE sampler with seed 0 in "
            f"{trials} trials",
            searched=True,
        )
    raise_for(failed, trials, session.folder)
    return swept


def _sampler(axes: Sequence[Axis]) -> tuple[Callable[[str], Any], Callable[[Any, Any], None]]:
    """Functions that propose a trial with its system, and that report its dev metric."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(
            direction="maximize", sampler=optuna.samplers.TPESampler(seed=0)
        )

    def propose(objective: str) -> tuple[Any, System]:
        trial = study.ask()
        parameters = tuple((axis.name, axis.proposed(trial)) for axis in axes)
        return trial, with_parameters(objective, parameters)

    def report(trial: Any, value: float | None) -> None:
        if value is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)

    return propose, report


def _probing(request: Request, objective: str, axes: Sequence[Axis]) -> Request:
    """The request with the systems at the ends of the axes, to be checked before any fit."""
    ends = [(axis.choices[0] if axis.choices else axis.low) for axis in axes]
    parameters = tuple(
        (axis.name, int(end) if axis.whole else end) for axis, end in zip(axes, ends, strict=True)
    )
    return replace(request, systems=(with_parameters(objective, parameters),))


def _run_systems(
    session: Session, request: Request, systems: Sequence[System], seeds: int
) -> list[str]:
    wanted = replace(request, systems=tuple(systems), seeds=seeds)
    session.adopt(wanted)
    missing = [fit for fit in wanted.plan() if fit.key not in session.lines]
    return session.run(missing) if missing else []
