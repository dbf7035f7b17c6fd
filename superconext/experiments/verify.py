"""Verification of an experiment: fits are repeated and compared (`compare --verify`)."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superconext._version import __version__
from superconext.baselines import ALWAYS_FITTED, CONTROLS
from superconext.core.errors import RunError
from superconext.core.progress import Progress
from superconext.experiments.parallel import Workers
from superconext.experiments.plan import Fit, Request, key_of, name_of, saved_dataset, saved_system
from superconext.experiments.record import (
    RESULTS,
    Fingerprints,
    check_systems,
    first_of_identities,
    make_record,
    read_record,
    read_results,
)
from superconext.experiments.row_sources import read_rows
from superconext.experiments.runner import Material, run_fits
from superconext.experiments.systems import System, plain
from superconext.probe import METRICS

_SAME = ("predictions", "truth", "native", "dev", "test")
_CHOSEN = ("probe_C", "tfidf_C", "ngrams_C", "C", "pooling", "epochs", "minn", "maxn")


@dataclass(frozen=True)
class Check:
    """differing: test rows predicted otherwise; changed: keys of the line that differ."""

    fit: Fit
    rows: int
    differing: int
    changed: tuple[str, ...]

    @property
    def same(self) -> bool:
        return not self.changed

    def __str__(self) -> str:
        if self.same:
            return f"{self.fit}: match ({self.rows} predictions)"
        return (
            f"{self.fit}: DIFFERS ({self.differing} of {self.rows} predictions; "
            f"differing: {', '.join(self.changed)})"
        )


def verify(
    folder: Path, number: int, progress: Progress, *, workers: Workers | None = None
) -> list[Check]:
    """Re-run `number` lines of an experiment, drawn at random, from the files it names.

    A line matches if every prediction, figure and chosen C is exactly the one written.

    Raises RunError if the folder is no experiment, was made by another version, or if its
    data have changed since.
    """
    record = read_record(folder)
    lines = read_results(folder / RESULTS)
    if not lines:
        raise RunError(f"{folder / RESULTS}: found no fit to verify; expected one or more lines")
    made = {part["identity"].get("version") for part in record["datasets"].values()}
    if made != {__version__}:
        raise RunError(
            f"{folder}: made by version {', '.join(sorted(map(str, made)))}, this is "
            f"{__version__}; expected the same: install that version to verify it"
        )
    chosen = random.sample(sorted(lines), min(number, len(lines)))
    fits = {key: _fit(record, lines[key]) for key in chosen}
    request = _request(record, folder, list(fits.values()))
    material = {
        data.name: Material(
            read_rows(
                data,
                record["datasets"][data.name]["identity"]["splits"],
                progress,
                near_findings=False,
            ),
            request.given_on(data),
        )
        for data in request.datasets
    }
    prints = Fingerprints()
    now = make_record(request, {name: of.source for name, of in material.items()}, prints)
    for name, part in now["datasets"].items():
        before = record["datasets"][name]
        changed = first_of_identities(before["identity"], part["identity"])
        if changed or before["labels"] != part["labels"]:
            raise RunError(
                f"{folder}: the data or vectors it was made from have changed since "
                f"({changed or 'other labels'}); expected the files as they were: put them back"
            )
    check_systems(folder, [lines[key] for key in chosen], request.systems, prints)
    written = {name for key in chosen for name in lines[key]["test"]} - {"n"}
    if missing := sorted(name for name in written if name not in METRICS):
        raise RunError(
            f"{folder}: its lines have the metric {missing[0]!r}, which is not registered; "
            "expected it: register it as when they were made"
        )
    if now["versions"] != record["versions"]:
        differ = [k for k, v in now["versions"].items() if record["versions"].get(k) != v]
        progress.say(
            f"note: made with other versions of {', '.join(differ)}; figures may differ for that"
        )
    checks = []
    with progress.bar("verifying") as advance:
        for again in run_fits(list(fits.values()), material, workers or Workers()):
            key = key_of(again)
            checks.append(_checked(fits[key], lines[key], again))
            advance(len(checks) / len(fits))
    return checks


def _fit(record: Mapping[str, Any], line: Mapping[str, Any]) -> Fit:
    name = name_of(line)
    saved = record["systems"].get(name)
    system = saved_system(name, saved) if saved else plain(name)
    return Fit(system, line["seed"], line["split"], line.get("dataset", ""))


def _request(record: Mapping[str, Any], folder: Path, fits: list[Fit]) -> Request:
    """The part of the recorded request that is needed to run these fits."""
    names = dict.fromkeys(name for fit in fits for name in (fit.dataset, fit.system.source))
    datasets = {name: record["datasets"][name] for name in names if name in record["datasets"]}
    systems: dict[str, System] = {fit.system.name: fit.system for fit in fits}
    default = (*ALWAYS_FITTED, *CONTROLS)
    return Request(
        datasets=tuple(saved_dataset(name, saved) for name, saved in datasets.items()),
        systems=tuple(system for name, system in systems.items() if name not in default),
        seeds=record["seeds"],
        out=str(folder),
        verb=record["verb"],
        given=record["given"],
        reference=record["reference"],
    )


def _checked(fit: Fit, before: Mapping[str, Any], again: Mapping[str, Any]) -> Check:
    old = before.get("predictions", [])
    new = again.get("predictions", [])
    differing = sum(a != b for a, b in zip(old, new, strict=False)) + abs(len(old) - len(new))
    again = _restricted(again, before)
    same = (*_SAME, *_CHOSEN)
    changed = tuple(name for name in same if before.get(name) != again.get(name))
    return Check(fit, len(old), differing, changed)


def _restricted(line: Mapping[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """The line without metrics that were registered after the earlier one was written."""
    return {
        key: _restricted(value, earlier[key]) if isinstance(value, dict) else value
        for key, value in line.items()
        if key in earlier
    }
