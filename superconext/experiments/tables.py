"""Is a system better than the reference? Means, paired differences, corrected p-values.

The figure that is tested is weighted F1; which test, `pairing` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from superconext.experiments.pairing import (
    TESTED,
    TESTS,
    Lines,
    about_rows,
    about_test,
    compare_lines,
    design_of,
)
from superconext.experiments.plan import name_of
from superconext.experiments.significance import holm
from superconext.experiments.systems import OWN_RULE, System

METRICS = {"accuracy": "accuracy", "f1_macro": "macro F1", "f1_weighted": "weighted F1"}
LEVEL = 0.05


@dataclass
class Row:
    """A system's figures, fractions in [0, 1].

    fits: how many. means, deviations: of each of METRICS and "seconds"; a deviation (n - 1)
        is None for one fit. values: the tested figure of each fit.
    difference, p, p_holm: to the reference, None for it and where no test can be made.
    p_mcnemar: exact McNemar on accuracy where both have one fit on the same rows, as it is.
    better: whether the difference is above zero and significant after correction.
    """

    name: str
    fits: int
    means: dict[str, float]
    deviations: dict[str, float | None]
    values: list[float]
    difference: float | None = None
    p: float | None = None
    p_holm: float | None = None
    p_mcnemar: float | None = None
    better: bool = False


@dataclass
class Table:
    """The rows in the order of the plan; notes: what a reader must know, a line each."""

    rows: list[Row]
    reference: str
    test: str
    notes: list[str] = field(default_factory=list)


def by_system(lines: Lines) -> dict[str, list[dict[str, Any]]]:
    """The lines of each row of the table: those of a fit, then those of its own rule."""
    systems: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        name = name_of(line)
        systems.setdefault(name, []).append(dict(line))
        if "native" in line:
            systems.setdefault(name + OWN_RULE, []).append({**line, **line["native"]})
    return systems


def make_table(
    lines: Lines, reference: str, findings: Sequence[str] = (), systems: Sequence[System] = ()
) -> Table:
    """The table of a comparison on one data set.

    Args:
        lines: of results.jsonl, all of one data set; baselines and systems in the order of
            the rows.
        reference: the row to compare with; without lines of it there are no tests.
        findings: what was wrong with the data, for the notes.
        systems: those whose parameters the notes tell.
    """
    return make_tables({"": lines}, reference, findings, systems)[""]


def make_tables(
    groups: Mapping[str, Lines],
    reference: str,
    findings: Sequence[str] = (),
    systems: Sequence[System] = (),
) -> dict[str, Table]:
    """A table for each group of lines, all their tests corrected together."""
    tables, tested = {}, []
    for name, lines in groups.items():
        design, systems_of = design_of(lines), by_system(lines)
        rows = [summarise(system, of) for system, of in systems_of.items()]
        rival = systems_of.get(reference, [])
        for row in rows:
            if row.name != reference and rival:
                _compare(row, compare_lines(design, systems_of[row.name], rival))
        tested += [row for row in rows if row.p is not None]
        tables[name] = Table(rows, reference, TESTS[design])
    corrected = holm([row.p for row in tested if row.p is not None])
    for row, p in zip(tested, corrected, strict=True):
        row.p_holm = p
        row.better = p < LEVEL and (row.difference or 0.0) > 0
    for name, table in tables.items():
        table.notes += _notes(groups[name], table, len(tested))
        table.notes += told_systems(systems)
        table.notes += [f"Data: {line}." for line in findings]
    return tables


def summarise(name: str, lines: Lines, part: str = "test") -> Row:
    """The means of a system's lines, not compared with anything."""
    columns = {key: [float(line[part][key]) for line in lines] for key in METRICS}
    columns["seconds"] = [float(line["seconds"]) for line in lines]
    return Row(
        name,
        len(lines),
        {key: float(np.mean(values)) for key, values in columns.items()},
        {
            key: float(np.std(values, ddof=1)) if len(values) > 1 else None
            for key, values in columns.items()
        },
        columns[TESTED],
    )


def told_systems(systems: Sequence[System]) -> list[str]:
    """A note for each system whose name does not tell its parameters."""
    return [
        f"{system.name}: {system}."
        for system in systems
        if system.name != system.objective and not system.name.startswith(f"{system.objective}:")
    ]


def _compare(row: Row, result: Any) -> None:
    if result is not None:
        row.difference, row.p, row.p_mcnemar = result.difference, result.p, result.p_mcnemar


def _notes(lines: Lines, table: Table, tested: int) -> list[str]:
    if not lines:
        return ["No fit has ended."]
    rows, reference, design = table.rows, table.reference, design_of(lines)
    notes = [
        about_rows(design, lines),
        "C and all other choices are made on dev, none on test.",
    ]
    if any(row.name.endswith(OWN_RULE) for row in rows):
        notes.append(
            f"A row{OWN_RULE} is the same fits judged by the objective's own classifier; the row "
            "without is the linear probe on frozen features."
        )
    if any("tfidf_C" in line for line in lines):
        notes.append(
            "A system with probe_features = encoder+tfidf answers by the mean of its probe and "
            "TF-IDF + logistic regression, one with encoder+ngrams by a pool of both and of "
            "character n-grams, not by its encoder alone."
        )
    if any(row.difference is not None for row in rows):
        notes.append(f"Difference: weighted F1 minus that of {reference}, in points.")
    if any(row.p is not None for row in rows):
        notes.append(f"p: {about_test(design)}.")
        notes.append(
            f"p (Holm): corrected for the {tested} tests of this table. Bold: better than "
            f"{reference} with p (Holm) below {LEVEL:g}."
        )
    elif all(row.name != reference for row in rows):
        notes.append(f"No tests: {reference} has no fit here.")
    elif any(line.get("overlap", 0) >= 1 for line in lines):
        notes.append("No tests: every draw takes all rows of every class.")
    else:
        notes.append("No tests: one split is too few; give two seeds or more.")
    notes.append(
        "Seconds: wall time of a fit with its predictions, one process; word vectors trained on "
        "the spot are counted in the first fit that needs them and read from the cache after it."
    )
    return notes
