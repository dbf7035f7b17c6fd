"""Tables of an experiment: means, paired differences and corrected p-values, as grids and rows.

The metric that is tested is weighted F1; which test, `paired_tests` says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from superconext.baselines import BASELINES
from superconext.experiments.paired_tests import (
    CONFIDENCE,
    TESTED,
    Lines,
    Paired,
    about_rows,
    about_test,
    compare_lines,
    design_of,
    holm,
)
from superconext.experiments.plan import name_of
from superconext.experiments.systems import OWN_RULE, System
from superconext.report.table import (
    METRIC_TITLES,
    MISSING,
    Grid,
    interval,
    probability,
    spread,
    wilson,
)
from superconext.text.characters import FEWEST_OF_SCRIPT

LEVEL = 0.05
INTERVAL = f"{CONFIDENCE:.0%} interval"


@dataclass
class Row:
    """A system's metrics, fractions in [0, 1].

    fits: how many. means, deviations: of each metric and "seconds"; a deviation (n - 1) is None
        for one fit. values: the tested metric of each fit.
    difference, low, high, p, p_holm: to the reference, with its interval and p-values; None for
        it and where no test can be made.
    test: which gave them.
    p_mcnemar: exact McNemar on accuracy where both have one fit on the same rows, as it is.
    better: whether the difference is above zero and significant after correction.
    """

    name: str
    fits: int
    means: dict[str, float]
    deviations: dict[str, float | None]
    values: list[float]
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_holm: float | None = None
    test: str = ""
    p_mcnemar: float | None = None
    better: bool = False
    #: Of the accuracy on all rows of a cross-validation (Wilson).
    accuracy_interval: tuple[float, float] | None = None


@dataclass
class Table:
    """The rows in the order of the plan; notes: what a reader must know, a line each.

    by_script: of each system and script the mean rows `n`, and `mean` and `sd` of the tested
        metric over the fits; empty where the test rows are of one script.
    """

    rows: list[Row]
    reference: str
    notes: list[str] = field(default_factory=list)
    by_script: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)


def each_fold(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line for each fold of a line's cross-validation; other lines as they are.

    The scores by script, which are of the rows of all folds together, stay with the first; the
    others have None."""
    folds, first = line.get("folds", ()), {"by_script": line.get("by_script", {})}
    same = {**line, "seconds": line["seconds"] / max(1, len(folds)), "whole": line["test"]}
    recipes = same.pop("recipes", None)  # one for each fold
    return [
        {**same, **fold, "split": f"{line['split']}-{at}", "by_script": None}
        | ({} if at else first)
        | ({} if recipes is None else {"recipes": [recipes[at]]})
        for at, fold in enumerate(folds)
    ] or [dict(line)]


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
        systems: those whose parameters the notes list.
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
    groups = {
        name: [one for of in lines for one in each_fold(of)] for name, lines in groups.items()
    }
    for name, lines in groups.items():
        design, systems_of = design_of(lines), by_system(lines)
        rows = [summarise(system, of) for system, of in systems_of.items()]
        rival = systems_of.get(reference, [])
        for row in rows:
            if row.name != reference and rival:
                _compare(row, compare_lines(design, systems_of[row.name], rival))
        tested += [row for row in rows if row.p is not None]
        tables[name] = Table(rows, reference, by_script=_by_script(systems_of))
    corrected = holm([row.p for row in tested if row.p is not None])
    for row, p in zip(tested, corrected, strict=True):
        row.p_holm = p
        row.better = p < LEVEL and (row.difference or 0.0) > 0
    for name, table in tables.items():
        table.notes += _notes(groups[name], table, tested)
        table.notes += system_notes(shown_systems(systems, [table]))
        table.notes += [f"Data: {line}." for line in findings]
    return tables


def summarise(name: str, lines: Lines, part: str = "test") -> Row:
    """The means of a system's lines, not compared with anything."""
    # A metric may have been registered after the first of the lines was written.
    names = [*METRIC_TITLES, *(key for key in lines[0][part] if key not in ("n", *METRIC_TITLES))]
    shared = [key for key in names if all(key in line[part] for line in lines)]
    columns = {key: [float(line[part][key]) for line in lines] for key in shared}
    columns["seconds"] = [float(line["seconds"]) for line in lines]
    row = Row(
        name,
        len(lines),
        {key: float(np.mean(values)) for key, values in columns.items()},
        {
            key: float(np.std(values, ddof=1)) if len(values) > 1 else None
            for key, values in columns.items()
        },
        columns[TESTED],
    )
    if "whole" in lines[0]:
        accuracy = float(np.mean([line["whole"]["accuracy"] for line in lines]))
        row.accuracy_interval = wilson(accuracy, lines[0]["texts"])
    return row


def _by_script(systems: Mapping[str, Lines]) -> dict[str, dict[str, dict[str, Any]]]:
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for system, lines in systems.items():
        fits = [line.get("by_script", {}) for line in lines]
        fits = [fit for fit in fits if fit is not None]
        for name in dict.fromkeys(name for fit in fits for name in fit):
            of = [fit[name] for fit in fits if name in fit]
            values = [scores[TESTED] for scores in of]
            found.setdefault(system, {})[name] = {
                "n": round(float(np.mean([scores["n"] for scores in of]))),
                "share": len(of) / len(fits),
                "mean": float(np.mean(values)),
                "sd": float(np.std(values, ddof=1)) if len(values) > 1 else None,
            }
    return found


def script_grid(table: Table) -> Grid | None:
    """Weighted F1 of every system on the test rows of each script; None where there is one."""
    if not table.by_script:
        return None
    sizes = {name: of["n"] for each in table.by_script.values() for name, of in each.items()}
    cells = [
        [system, *(spread(each[k]["mean"], each[k]["sd"]) if k in each else MISSING for k in sizes)]
        for system, each in table.by_script.items()
    ]
    note = (
        "Percent: weighted F1 on the test rows of each script, their number in brackets; scripts "
        f"with fewer than {FEWEST_OF_SCRIPT} are left out."
    )
    shares = {name: of["share"] for each in table.by_script.values() for name, of in each.items()}
    few = [f"{name} in {share:.0%}" for name, share in shares.items() if share < 1]
    note += f" Of the fits so many have {FEWEST_OF_SCRIPT}: {', '.join(few)}." * bool(few)
    return Grid(["system", *(f"{name} ({n:,})" for name, n in sizes.items())], cells, notes=[note])


def shown_systems(systems: Sequence[System], tables: Iterable[Table]) -> list[System]:
    """Those of the systems that have a row."""
    named = {row.name.removesuffix(OWN_RULE) for table in tables for row in table.rows}
    return [system for system in systems if system.name in named]


def system_notes(systems: Sequence[System]) -> list[str]:
    """A note for each system whose name does not list its parameters."""
    return [
        f"{system.name}: {system}."
        for system in systems
        if system.name != system.objective and not system.name.startswith(f"{system.objective}:")
    ]


def _compare(row: Row, paired: Paired | None) -> None:
    if paired is None:
        return
    row.difference, row.p_mcnemar = paired.difference, paired.p_mcnemar
    if paired.result is not None:
        row.low, row.high, row.p = paired.result.low, paired.result.high, paired.result.p
        row.test = paired.test


def _notes(lines: Lines, table: Table, tested: Sequence[Row]) -> list[str]:
    """tested: the rows whose p-values are corrected together."""
    if not lines:
        return ["No fit has ended."]
    rows, reference, design = table.rows, table.reference, design_of(lines)
    notes = [
        about_rows(design, lines),
        "C (how little a linear model is regularised) and all other choices are made on the other "
        "folds."
        if design == "folds"
        else "C (how little a linear model is regularised) and all other choices are made on dev "
        "or by cross-validation of the training rows, none on test.",
    ]
    if "whole" in lines[0]:
        notes.append(f"95% of accuracy: Wilson's interval, of {lines[0]['texts']} texts.")
    if any(row.name.endswith(OWN_RULE) for row in rows):
        notes.append(
            f"A row{OWN_RULE} has the same fits, predicted by the objective's own classifier; the "
            "row without is the linear probe on frozen features."
        )
    if any("tfidf_C" in line for line in lines):
        notes.append(
            "A system with probe_features = encoder+tfidf predicts by the mean of its probe and "
            "TF-IDF + logistic regression, one with encoder+ngrams by a pool of both and of "
            "character n-grams, not by its encoder alone."
        )
    notes += [*recipe_notes(lines).values(), *pool_notes(lines), *labelled_notes(lines)]
    notes += step_notes(lines)
    if design == "folds" and any(_trains_vectors(line) for line in lines):
        notes.append(
            "Word vectors that are trained on the rows have read the texts of the fold that is "
            f"held out, without their labels{_BUT_AUTO * any('recipes' in line for line in lines)}."
        )
    systems = by_system(lines)
    weighted = {name for name, of in systems.items() if of[0].get("logit_adjustment")}
    if weighted:
        own = {name for name in systems if name.endswith(OWN_RULE)}
        plain = [name for name in systems if name in {*BASELINES, *own} - weighted]
        but = f", but not in {', '.join(plain)}" * bool(plain)
        notes.append(f"logit_adjustment gives rare classes more weight in the baselines too{but}.")
    if any(row.difference is not None for row in rows):
        notes.append(f"Difference: weighted F1 minus that of {reference}, in points.")
    same = [row.name for row in rows if row.difference and row.p is None and row.fits > 1]
    if same and design != "given":
        notes.append(f"No test: {', '.join(same)} minus {reference} is the same in every split.")
    if any(row.p is not None for row in rows):
        notes.append(f"{INTERVAL} of the difference, and p: {about_test(design)}.")
        alone = _one_seed(lines) if design == "given" else []
        if alone:
            named = "every system" if len(alone) == len(rows) else ", ".join(alone)
            notes.append(
                f"One seed of {named}: interval and p leave out what another seed would change."
            )
        if even := dict.fromkeys(row.name for row in tested if _ends_at_zero(row)):
            notes.append(
                f"Interval of {', '.join(even)} that ends at 0: in many resamples it scores "
                f"exactly as {reference}, as a fit does that predicts nearly all rows alike. p "
                "counts these as no difference, and may be as high as 1."
            )
        notes.append(
            f"p (Holm): corrected for the {len(tested)} tests of this table. Bold: better than "
            f"{reference} with p (Holm) below {LEVEL:g}."
        )
    elif all(row.name != reference for row in rows):
        notes.append(f"No tests: {reference} has no fit here.")
    elif any(line.get("overlap", 0) >= 1 for line in lines):
        notes.append("No tests: every draw takes all rows of every class.")
    elif not same:
        notes.append("No tests: one split is too few; give two seeds or more.")
    notes.append(
        "Seconds: wall time of a fit with its predictions, one process; word vectors trained on "
        "the spot are counted in the first fit that needs them and read from the cache after it."
    )
    return notes


#: Behind a note on word vectors: `CrossValidation` is given the rows, `AUTO` each fold's alone.
_BUT_AUTO = " (not in systems that choose their recipe)"


def _trains_vectors(line: Mapping[str, Any]) -> bool:
    name = line["objective"]
    return name not in BASELINES or BASELINES.get(name).needs_run


def step_notes(lines: Lines) -> list[str]:
    """A note where some systems were trained for twice as many steps as others, or more."""
    steps: dict[str, list[int]] = {}
    for line in lines:
        if "steps" in line:
            steps.setdefault(name_of(line), []).append(line["steps"])
    means = {name: round(sum(of) / len(of)) for name, of in steps.items()}
    if not means or max(means.values()) < 2 * min(means.values()):
        return []
    told = ", ".join(f"{name} {count:,}" for name, count in means.items())
    return [
        f"Steps of training: {told}. Batches are balanced for some objectives and not for others; "
        "steps_per_epoch or epochs makes their number alike."
    ]


def recipe_notes(lines: Lines) -> dict[str, str]:
    """A note for each system that chooses its recipe, by its name: how often it chose which."""
    notes = {}
    for name, of in by_system(lines).items():
        if recipes := Counter(title for line in of for title in line.get("recipes", ())):
            told = ", ".join(f"{title} ({count})" for title, count in recipes.most_common())
            notes[name] = (
                f"{name}: the recipe that train chooses with the same dev rows: {told}. train also "
                "gives rare classes more weight; logit_adjustment = 0.5 does so in other systems."
            )
    return notes


def labelled_notes(lines: Lines) -> list[str]:
    """A note on which systems learned from which labelled rows beside the training rows."""
    found: dict[str, dict[str, None]] = {}
    for line in lines:
        for name, called in (("related", "related rows"), ("soft_labels", "soft labels")):
            if file := line.get(name, {}).get("file"):
                found.setdefault(f"the {called} of {file}", {})[name_of(line)] = None
    return [
        f"{', '.join(systems)} learned from {rows} too, and no other system did."
        for rows, systems in found.items()
    ]


def pool_notes(lines: Lines) -> list[str]:
    """How many sentences the unlabelled pool of each system has: fewer than asked for, if the text
    has no more."""
    pools: dict[str, list[int]] = {}
    for line in lines:
        if "pool" in line:
            pools.setdefault(name_of(line), []).append(line["pool"])
    told = ", ".join(
        f"{name} {min(counts):,}" + f" to {max(counts):,}" * (min(counts) < max(counts))
        for name, counts in pools.items()
    )
    return [f"Sentences in the unlabelled pool: {told}."] if pools else []


def _ends_at_zero(row: Row) -> bool:
    """Whether there is a difference, and its interval's end is one of many that are exactly 0."""
    return bool(row.difference) and 0 in (row.low, row.high)


def _one_seed(lines: Lines) -> list[str]:
    """The systems that have one fit, and that another seed would change: by their randomness, or
    by the rows that it holds out."""
    return [
        name
        for name, (first, *others) in by_system(lines).items()
        if not others and (first["split"] != "given" or System(name, first["objective"]).is_seeded)
    ]


def metric_columns(rows: Sequence[Row]) -> dict[str, str]:
    """The metrics of a table's rows with their headings: built-in ones, then registered ones."""
    names = dict.fromkeys(key for row in rows for key in row.means if key != "seconds")
    return {**METRIC_TITLES, **{name: name for name in names if name not in METRIC_TITLES}}


def metric_cells(row: Row, columns: Iterable[str]) -> list[str]:
    """The means and deviations of a row's metrics as cells, and its seconds."""
    cells = [
        spread(row.means[k], row.deviations[k]) if k in row.means else MISSING for k in columns
    ]
    return [*cells, spread(row.means["seconds"], row.deviations["seconds"], 1)]


def metric_values(row: Row, columns: Iterable[str], prefix: str = "") -> dict[str, float | None]:
    """The same unrounded, by `{prefix}{metric}_mean` and `_sd`."""
    values: dict[str, float | None] = {}
    for key in (*columns, "seconds"):
        values[f"{prefix}{key}_mean"] = row.means.get(key)
        values[f"{prefix}{key}_sd"] = row.deviations.get(key)
    return values


def to_csv_rows(table: Table) -> list[dict[str, Any]]:
    """One mapping for each system, fractions unrounded; also what `--json` prints."""
    rows, columns = [], metric_columns(table.rows)
    for row in table.rows:
        cells: dict[str, Any] = {"system": row.name, "fits": row.fits}
        cells |= metric_values(row, columns)
        cells |= {
            "reference": table.reference,
            "difference": row.difference,
            "difference_low": row.low,
            "difference_high": row.high,
            **dict(
                zip(("accuracy_low", "accuracy_high"), row.accuracy_interval or (), strict=False)
            ),
            "p": row.p,
            "p_holm": row.p_holm,
            "p_mcnemar": row.p_mcnemar,
            "significantly_better": row.better,
            "test": row.test or None,
        }
        rows.append(cells)
    return rows


def to_grid(table: Table, columns: Mapping[str, str] | None = None) -> Grid:
    """The cells; of a better system the tested metric and the difference in bold."""
    columns = columns or metric_columns(table.rows)
    tests = ["difference", INTERVAL, "p", "p (Holm)"]
    whole = ["95% of accuracy"] if any(row.accuracy_interval for row in table.rows) else []
    headings = ["system", "fits", *columns.values(), "seconds", *whole, *tests]
    strong = [headings.index(name) for name in (METRIC_TITLES[TESTED], "difference")]
    bold = {(at, column) for at, row in enumerate(table.rows) if row.better for column in strong}
    rows = []
    for row in table.rows:
        difference = MISSING if row.difference is None else f"{100 * row.difference:+.1f}"
        rows.append(
            [
                row.name,
                str(row.fits),
                *metric_cells(row, columns),
                *(interval(*row.accuracy_interval or (None, None)).replace("+", "") for _ in whole),
                "reference" if row.name == table.reference else difference,
                interval(row.low, row.high),
                probability(row.p),
                probability(row.p_holm),
            ]
        )
    return Grid(headings, rows, bold, table.notes)


def to_overview(tables: Mapping[str, Table], notes: Sequence[str], *, ranked: bool) -> Grid:
    """Weighted F1 of every system (rows) in every table (columns), bold where it is there.

    Args:
        tables: by the heading of their column.
        ranked: whether to add each system's mean and mean rank over the tables (1 is best,
            equals share a rank), for systems that are in all of them.
    """
    by_name = {name: {row.name: row for row in table.rows} for name, table in tables.items()}
    systems = list(dict.fromkeys(name for rows in by_name.values() for name in rows))
    ranks = mean_ranks(tables) if ranked else {}
    cells, bold = [], set()
    for at, system in enumerate(systems):
        rows = [rows.get(system) for rows in by_name.values()]
        bold |= {(at, column) for column, row in enumerate(rows, 1) if row and row.better}
        line = [
            spread(row.means[TESTED], row.deviations[TESTED]) if row else MISSING for row in rows
        ]
        if system in ranks:
            mean = float(np.mean([row.means[TESTED] for row in rows if row]))
            line += [f"{100 * mean:.1f}", f"{ranks[system]:.2f}"]
        elif ranked:
            line += [MISSING] * 2
        cells.append([system, *line])
    extra = ["mean", "mean rank"] if ranked else []
    return Grid(["system", *tables, *extra], cells, bold, list(notes))


def mean_ranks(tables: Mapping[str, Table]) -> dict[str, float]:
    """The mean over the tables of each system's rank by mean weighted F1, 1 for the best.

    Systems that a table lacks are left out of all.
    """
    from scipy.stats import rankdata

    means = [{row.name: row.means[TESTED] for row in table.rows} for table in tables.values()]
    shared = [name for name in means[0] if all(name in of for of in means)] if means else []
    if not shared:
        return {}
    ranks = [rankdata([-of[name] for name in shared]) for of in means]
    return dict(zip(shared, np.mean(ranks, axis=0).tolist(), strict=True))


def to_long_grid(column: str, tables: Mapping[str, Table], notes: Sequence[str]) -> Grid:
    """The rows of all tables as of one, `column` saying which table."""
    # All of the same metrics, so that they have the same columns.
    columns = metric_columns([row for table in tables.values() for row in table.rows])
    rows: list[list[str]] = []
    bold: set[tuple[int, int]] = set()
    headings: list[str] = []
    for name, table in tables.items():
        grid = to_grid(table, columns)
        headings = [column, *grid.headings]
        bold |= {(len(rows) + row, 1 + at) for row, at in grid.bold}
        rows += [[name, *cells] for cells in grid.rows]
    return Grid(headings, rows, bold, list(notes), right=range(2, len(headings)))


def to_long_rows(column: str, tables: Mapping[str, Table]) -> list[dict[str, Any]]:
    """The same for a CSV, unrounded."""
    return [{column: name, **row} for name, table in tables.items() for row in to_csv_rows(table)]
