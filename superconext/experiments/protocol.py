"""Protocols: what a paper compared, how, and the numbers it printed, by name.

A protocol is a TOML file of the package, in `protocols/`; this module reads it and turns it into
the requests that `compare` runs. A file has studies, each with systems, ways to draw the
training rows (see `subsampling`) and the paper's tables. CONTRIBUTING.md describes the format.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from importlib import resources
from pathlib import Path
from typing import Any

from superconext.core.errors import ConfigError, suggestion
from superconext.experiments.datasets import DataSet
from superconext.experiments.plan import Request
from superconext.experiments.subsampling import parse_draw
from superconext.experiments.systems import System, checked_parameters

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


def protocol_names() -> list[str]:
    """The names of all protocols, sorted."""
    folder = resources.files("superconext.experiments") / _FOLDER
    return sorted(
        item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")
    )


def load_protocol(name: str) -> Protocol:
    """A protocol by its name. Raises ConfigError with the nearest name there is."""
    import tomllib

    names = protocol_names()
    if name not in names:
        hint = suggestion(name, names, f"expected one of {', '.join(names)}")
        raise ConfigError(f"protocol {name!r}: {hint}; --protocol list explains each")
    file = resources.files("superconext.experiments") / _FOLDER / f"{name}.toml"
    document = tomllib.loads(file.read_text(encoding="utf-8"))
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
    """The fields of a dataclass that stand in a table of the file under their own names."""
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
