"""Protocols: what a paper compared, how, and the numbers it printed, beside what is measured.

A protocol is a TOML file of the package, in `protocols/`; this module reads it, turns it into the
requests that `compare` runs, and reports on them. A file has studies, each with systems, ways to
draw the training rows (see `subsampling`) and the paper's tables. CONTRIBUTING.md describes the
format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from superconext.config.parameters import FILE_PARAMETERS, names_of
from superconext.core.errors import ConfigError, plural, suggestion
from superconext.core.files import write_csv, write_text
from superconext.core.progress import Progress
from superconext.experiments import compare as comparing
from superconext.experiments.plan import Request, name_of
from superconext.experiments.runner import Finished, run_experiment
from superconext.experiments.subsampling import parse_draw
from superconext.experiments.systems import OWN_RULE, DataSet, System, checked_parameters, shown
from superconext.experiments.tables import (
    Table,
    by_system,
    make_tables,
    pool_notes,
    shown_systems,
    system_notes,
    to_long_grid,
    to_long_rows,
    to_overview,
)
from superconext.report.figures import BandsContext, draw_figures
from superconext.report.table import MISSING, Grid, spread

_FOLDER = "protocols"
#: File names that do not describe the content.
_PLAIN = ("train", "all", "data")


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table of the paper, or one of ours where it printed a figure.

    draw: the rows trained on, None for all draws of the study, a column each. top: beside the
        mean over all seeds, that over so many with the best dev accuracy. paper: by encoder, by
        data set, a figure for each of `rows` (nan where there is none), percent.
    misprints: by (data set, row), what is wrong with the figure.
    """

    title: str
    rows: tuple[str, ...]
    metric: str = "accuracy"
    draw: str | None = None
    top: int | None = None
    paper: Mapping[str, Mapping[str, tuple[float, ...]]]
    misprints: Mapping[tuple[str, str], str]


@dataclass(frozen=True, kw_only=True)
class Study:
    """Systems and draws that are fitted together, into a folder of their own.

    own_dev: whether given dev files are used; else `shots` draws dev rows too.
    """

    name: str
    answers: str
    systems: tuple[System, ...]
    transferred: tuple[System, ...]
    draws: tuple[str, ...]
    seeds: int
    reference: str
    given: Mapping[str, Any]
    own_dev: bool = True
    tables: tuple[PaperTable, ...]


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """same: other names of a data set of the paper; near: those of sets that are like it, and
    what is different."""

    name: str
    title: str
    paper: str
    answers: str
    encoder: str
    departs: tuple[str, ...]
    misprints: tuple[str, ...] = ()
    needs: str = ""
    same: Mapping[str, str]
    near: Mapping[str, tuple[str, str]]
    studies: tuple[Study, ...]


#: Metrics of a paper's table; the last two are F1 of the smallest and the largest class.
_METRICS = ("accuracy", "f1_macro", "f1_weighted", "f1_minor", "f1_major")


def protocol_names() -> list[str]:
    """The names of all protocols, sorted."""
    folder = resources.files("superconext.experiments") / _FOLDER
    return sorted(
        item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")
    )


def load_protocol(name: str) -> Protocol:
    """A protocol by its name, or from a file of one's own, whose name ends in .toml. Raises
    ConfigError with the nearest name there is, or for a file that is no protocol."""
    import tomllib

    if name.endswith(".toml"):
        try:
            document = tomllib.loads(Path(name).read_text(encoding="utf-8"))
            return _protocol(Path(name).stem, document)
        except ConfigError:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            what = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ConfigError(
                f"{name}: found {what}; expected a protocol, as CONTRIBUTING.md describes it: "
                "correct it"
            ) from None
    names = protocol_names()
    if name not in names:
        hint = suggestion(name, names, f"expected one of {', '.join(names)}, or a .toml file")
        raise ConfigError(f"protocol {name!r}: {hint}; --protocol list explains each")
    file = resources.files("superconext.experiments") / _FOLDER / f"{name}.toml"
    return _protocol(name, tomllib.loads(file.read_text(encoding="utf-8")))


def _protocol(name: str, document: Mapping[str, Any]) -> Protocol:
    near_sets = document.get("near", {})
    made = {
        "name": name,
        "same": {plain_name(other): key for key, of in document["same"].items() for other in of},
        "near": {
            plain_name(other): (key, what)
            for key, of in near_sets.items()
            for other, what in of.items()
        },
        "studies": tuple(_study(table, f"protocol {name}") for table in document["study"]),
    }
    return Protocol(**{**_as_given(Protocol, document), **made})


def _as_given(kind: type, table: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass that are in a table of the file under their own names."""
    given = {field.name: table[field.name] for field in fields(kind) if field.name in table}
    return {name: tuple(of) if isinstance(of, list) else of for name, of in given.items()}


def _study(table: Mapping[str, Any], where: str) -> Study:
    systems = [_system(system, f"{where}, study {table['name']}") for system in table["system"]]
    draws = tuple(table.get("draws", [""]))
    for draw in filter(None, draws):
        parse_draw(draw)
    made = {
        "systems": tuple(system for system, moves in systems if not moves),
        "transferred": tuple(system for system, moves in systems if moves),
        "draws": draws,
        "given": dict(checked_parameters(table.get("given", {}), where)),
        "tables": tuple(_table(of) for of in table.get("table", ())),
    }
    return Study(**{**_as_given(Study, table), **made})


def _system(table: Mapping[str, Any], where: str) -> tuple[System, bool]:
    given = {k: v for k, v in table.items() if k not in ("name", "objective", "transferred")}
    parameters = checked_parameters(given, where)
    system = System(table.get("name", table["objective"]), table["objective"], parameters)
    return system, table.get("transferred", False)


def _table(table: Mapping[str, Any]) -> PaperTable:
    if (metric := table.get("metric", "accuracy")) not in _METRICS:
        raise ValueError(f"metric = {metric!r}, none of {', '.join(_METRICS)}")
    paper = {
        encoder: {key: tuple(map(float, values)) for key, values in of.items()}
        for encoder, of in table.get("paper", {}).items()
    }
    misprints = {(of["dataset"], of["row"]): of["says"] for of in table.get("misprint", ())}
    return PaperTable(**{**_as_given(PaperTable, table), "paper": paper, "misprints": misprints})


def plain_name(name: str) -> str:
    """A data set's name as names are compared: letters and digits, small."""
    return re.sub(r"[\W_]+", "", name.lower())


def name_of_data(data: DataSet) -> str:
    """What a data set is called: its name, else that of its file or the file's folder."""
    if data.name:
        return data.name
    path = Path(data.train).absolute()
    stem = path.name.partition(".")[0]
    return path.parent.name if stem.lower() in _PLAIN else stem


def key_in(protocol: Protocol, data: DataSet) -> tuple[str, str] | None:
    """The paper's data set that this is, and what is different ("" if nothing); or None."""
    name = plain_name(name_of_data(data))
    if name in protocol.same:
        return protocol.same[name], ""
    return protocol.near.get(name)


def chosen_studies(protocol: Protocol, names: Sequence[str]) -> tuple[Study, ...]:
    """The studies of these names, all where there are none. Raises ConfigError."""
    known = {study.name: study for study in protocol.studies}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"study {name!r}: expected one of protocol {protocol.name}: {', '.join(known)}"
            )
    return tuple(known[name] for name in dict.fromkeys(names)) or protocol.studies


def expand(protocol: Protocol, study: Study, wanted: Request, *, seeds: int | None) -> Request:
    """The request of a study.

    wanted: data sets, folder, workers, command, and parameters given by the user, which win over
    the study's for all systems, not over a system's own; its reference where it is not "".
    seeds: in place of the protocol's. Raises ConfigError for a transfer between fewer than two
    data sets.
    """
    datasets = wanted.datasets
    if not study.own_dev:
        datasets = tuple(_without_dev(data) for data in datasets)
    systems = list(study.systems)
    if study.transferred:
        names = [data.name for data in datasets]
        if len(names) < 2:
            raise ConfigError(
                f"protocol {protocol.name} moves between data sets and found one; expected two or "
                "more TRAIN files, or --datasets"
            )
        systems += [
            replace(system, name=f"{system.name} from {name}", source=name)
            for system in study.transferred
            for name in names
        ]
    several = len(protocol.studies) > 1
    return replace(
        wanted,
        datasets=datasets,
        systems=tuple(systems),
        seeds=seeds or study.seeds,
        out=str(Path(wanted.out) / study.name) if several else wanted.out,
        given={**study.given, **wanted.given},
        reference=wanted.reference or study.reference,
        draws=study.draws,
        protocol=protocol.name,
    )


def _without_dev(data: DataSet) -> DataSet:
    if data.dev is None or data.test is None or data.splits == "resample":
        return data
    return replace(data, dev=None)


def figure_of(table: PaperTable, encoder: str, key: str, row: str) -> float | None:
    """What the paper printed, percent; None where it printed nothing."""
    values = table.paper.get(encoder, {}).get(key)
    if values is None or row not in table.rows:
        return None
    value = values[table.rows.index(row)]
    return None if math.isnan(value) else value


def explained(protocol: Protocol) -> str:
    """A protocol for people: what it answers, its studies, fits, departures and misprints."""
    lines = [f"{protocol.name}: {protocol.title}", f"  answers: {protocol.answers}"]
    lines += [f"  paper: {protocol.paper}; its encoder: {protocol.encoder}"]
    if protocol.needs:
        lines += [f"  needs: {protocol.needs}"]
    for study in protocol.studies:
        lines += [f"  study {study.name}: {study.answers}"]
        moved = f", {len(study.transferred)} from each other data set" if study.transferred else ""
        count = len(study.draws) * study.seeds * len(study.systems)
        lines += [
            f"    {len(study.systems)} systems{moved}, {len(study.draws)} ways to take rows, "
            f"{study.seeds} seeds: {count} fits a data set and the baselines"
        ]
    lines += [f"  departs: {line}" for line in protocol.departs]
    lines += [f"  misprint: {line}" for line in protocol.misprints]
    return "\n".join(lines)


FILE = "protocol"
FIGURE = "draws"

#: How a departure begins that is none where another encoder is given.
_OUR_ENCODER = "A BiLSTM"

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
    notes = [*_notes(protocol, finished.request.given), *_changes(study, finished.request, tables)]
    text = [f"# {protocol.title}: {study.name}", study.answers, *notes]
    for title, grid in grids.items():
        text += [f"## {title}", grid.markdown()]
    write_text(finished.folder / f"{FILE}.md", "\n\n".join(text) + "\n")
    if rows:
        write_csv(finished.folder / f"{FILE}.csv", rows)
    return Reported(grids, rows, notes)


def _notes(protocol: Protocol, given: Mapping[str, Any]) -> list[str]:
    notes = [f"The paper: {protocol.paper}; its encoder: {protocol.encoder}."]
    departs = [*protocol.departs]
    if given.get("model"):
        departs = [line for line in departs if not line.startswith(_OUR_ENCODER)]
        departs.insert(0, f"Its encoder here: {Path(given['model']).name}.")
    notes += [f"Departs from it: {line}" for line in departs]
    return notes + [f"Misprint: {line}" for line in protocol.misprints]


def _changes(study: Study, request: Request, tables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What was run otherwise than the study says."""
    notes = []
    if request.seeds != study.seeds:
        notes.append(f"Run here with {plural(request.seeds, 'seed')} in place of {study.seeds}.")
    own = {name: value for name, value in request.given.items() if value != study.given.get(name)}
    if own:
        texts = (
            f"{name} = {names_of(value) if name in FILE_PARAMETERS else shown(value)}"
            for name, value in own.items()
        )
        notes.append(f"Set here: {', '.join(texts)}.")
    for name, of in tables.items():
        lost = [draw for draw in filter(None, request.draws) if draw not in of]
        if lost:
            notes.append(f"{name + ': ' if name else ''}not run here: {', '.join(lost)}.")
    return notes


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
        long = to_long_grid("rows", shown, [*notes, *_shared_notes(shown)])
        long.write(folder, "table", to_long_rows("rows", shown))
        curves = _curves(tables)
        if curves is not None:
            contexts[folder / "figures"] = curves
    finished.write_page(grids, draw_figures(contexts, progress, request.formats))
    return made


def _shown(tables: Mapping[str, Table]) -> dict[str, Table]:
    return {name or "all": table for name, table in tables.items()}


def _shared_notes(tables: Mapping[str, Table]) -> list[str]:
    """The notes of all tables but for the first of each, which is of its rows; one that some lack
    names the tables that have it."""
    having: dict[str, list[str]] = {}
    for name, table in tables.items():
        for note in table.notes[1:]:
            having.setdefault(note, []).append(name)
    return [
        note if len(names) == len(tables) else f"{', '.join(names)}: {note}"
        for note, names in having.items()
    ]


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
        *system_notes(shown_systems(request.systems, tables.values())),
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
        if not name and kinds[0].of.takes_fewer:
            continue
        for row in table.rows:
            at = parse_draw(name).amount if name else 0
            curves.setdefault(row.name, {})[at] = row.values

    return BandsContext(
        curves,
        xlabel=kinds[0].describe("N"),
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
        draws = min(table.top, finished.request.seeds)
        about.append(
            f"top {table.top}: mean over the {draws} draws with the best dev accuracy, as the "
            "paper reports it; that is optimistic, because it also selects lucky draws."
        )
    about.append(
        f"Bold: weighted F1 better than {finished.request.reference}'s, p below 0.05 after Holm's "
        "correction (table.md). The paper's figures are printed unchanged."
    )
    named = {name.removesuffix(OWN_RULE) for name in table.rows}
    about += system_notes([one for one in finished.request.systems if one.name in named])
    about += pool_notes([line for line in finished.lines if name_of(line) in named])
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
