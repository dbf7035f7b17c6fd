"""Is a system better than the reference? Means, paired differences, corrected p-values.

The figure that is tested is weighted F1. Which test depends on the design. Where every
seed draws its own split, systems are paired split by split, but the training sets overlap,
so the paired t-test is corrected for that. Where all systems answer the same given test
rows, the rows are what could have been others, so they are resampled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from superconext.experiments.plan import OWN_RULE
from superconext.experiments.significance import (
    Comparison,
    holm,
    mcnemar_exact,
    paired_bootstrap,
    resampled_t_test,
)

METRICS = {"accuracy": "accuracy", "f1_macro": "macro F1", "f1_weighted": "weighted F1"}
TESTED = "f1_weighted"
LEVEL = 0.05
RESAMPLES = 2000

Lines = Sequence[Mapping[str, Any]]


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
        own = line["objective"] + OWN_RULE
        systems.setdefault(line["objective"], []).append(dict(line))
        if "native" in line:
            systems.setdefault(own, []).append({**line, **line["native"]})
    return systems


def make_table(lines: Lines, reference: str, findings: Sequence[str] = ()) -> Table:
    """The table of a comparison.

    Args:
        lines: of results.jsonl, all of one comparison; baselines and objectives in the
            order of the rows.
        reference: the row to compare with; without lines of it there are no tests.
        findings: what was wrong with the data, for the notes.
    """
    systems = by_system(lines)
    resampled = any(str(line["split"]).startswith("resampled") for line in lines)
    rows = [_row(name, of) for name, of in systems.items()]
    rival = systems.get(reference, [])
    for row in rows:
        if row.name != reference and rival:
            _compare(row, systems[row.name], rival, resampled)
    tested = [row for row in rows if row.p is not None]
    corrected = holm([row.p for row in tested if row.p is not None])
    for row, p in zip(tested, corrected, strict=True):
        row.p_holm = p
        row.better = p < LEVEL and (row.difference or 0.0) > 0
    test = "corrected resampled t-test" if resampled else "paired bootstrap"
    notes = _notes(lines, rows, reference, resampled, len(tested))
    return Table(rows, reference, test, [*notes, *(f"Data: {line}." for line in findings)])


def _row(name: str, lines: Lines) -> Row:
    columns = {key: [float(line["test"][key]) for line in lines] for key in METRICS}
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


def _compare(row: Row, ours: Lines, theirs: Lines, resampled: bool) -> None:
    if resampled:
        result = _on_splits(ours, theirs)
        if isinstance(result, float):
            row.difference = result
            return
    else:
        truth = np.array(ours[0]["truth"])
        first, second = _predictions(ours), _predictions(theirs)
        result = paired_bootstrap(truth, first, second, resamples=RESAMPLES)
        if len(first) == len(second) == 1:
            row.p_mcnemar = mcnemar_exact(truth, first[0], second[0]).p
    if result is not None:
        row.difference, row.p = result.difference, result.p


def _on_splits(ours: Lines, theirs: Lines) -> Comparison | float | None:
    """The test over the splits both have; the difference alone where that is one split."""
    rivals = {line["split"]: line for line in theirs}
    pairs = [(line, rivals[line["split"]]) for line in ours if line["split"] in rivals]
    if not pairs:
        return None
    first = [float(line["test"][TESTED]) for line, _ in pairs]
    second = [float(line["test"][TESTED]) for _, line in pairs]
    if len(pairs) == 1:
        return first[0] - second[0]
    sizes = [line["rows"] for line, _ in pairs]
    share = sum(size["test"] for size in sizes) / sum(size["train"] for size in sizes)
    return resampled_t_test(first, second, share)


def _predictions(lines: Lines) -> np.ndarray:
    return np.array([line["predictions"] for line in lines])


def _notes(
    lines: Lines, rows: Sequence[Row], reference: str, resampled: bool, tested: int
) -> list[str]:
    if not lines:
        return ["No fit has ended."]
    sizes = [line["rows"] for line in lines]
    mean = {name: round(float(np.mean([size[name] for size in sizes]))) for name in sizes[0]}
    splits = len({line["split"] for line in lines})
    about = f"{mean['train']} training, {mean['dev']} dev and {mean['test']} test rows"
    if resampled:
        notes = [
            f"Percent on test, mean ± standard deviation over {splits} random stratified split"
            f"{'s' if splits > 1 else ''} "
            f"(about {about}); copies of a text stay on one side."
        ]
        test = (
            "corrected resampled t-test (Nadeau and Bengio 2003), paired by split, two-sided: the "
            "splits' training sets overlap, which a plain paired t-test takes for independent "
            "evidence, so the variance is multiplied by 1/splits + test rows/training rows"
        )
    else:
        dev = "as given" if splits == 1 else "a tenth of the training rows, drawn by each seed"
        notes = [
            f"Percent on the given test rows, mean ± standard deviation over seeds ({about}; dev "
            f"{dev})."
        ]
        test = (
            f"paired bootstrap over the test rows ({RESAMPLES} resamples), two-sided, of the "
            "difference in weighted F1 averaged over seeds: all systems answer the same rows, so "
            "seeds are no independent test sets; it speaks for other test rows, not for other "
            "training sets"
        )
    notes.append("C and all other choices are made on dev, none on test.")
    if any(row.name.endswith(OWN_RULE) for row in rows):
        notes.append(
            f"A row{OWN_RULE} is the same fits judged by the objective's own classifier; the row "
            "without is the linear probe on frozen features."
        )
    if any(row.difference is not None for row in rows):
        notes.append(f"Difference: weighted F1 minus that of {reference}, in points.")
    if tested:
        notes.append(f"p: {test}.")
        notes.append(
            f"p (Holm): corrected for the {tested} tests of this table. Bold: better than "
            f"{reference} with p (Holm) below {LEVEL:g}."
        )
    elif all(row.name != reference for row in rows):
        notes.append(f"No tests: {reference} has no fit here.")
    else:
        notes.append("No tests: one split is too few; give two seeds or more.")
    notes.append(
        "Seconds: wall time of a fit with its predictions, one process; word vectors trained on "
        "the spot are counted in the first fit that needs them and read from the cache after it."
    )
    return notes
