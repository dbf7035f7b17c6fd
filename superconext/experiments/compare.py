"""Systems on the same rows: comparisons (`superconext compare`) and curves (`fewshot`).

A comparison fits them on the same splits of one or more data sets, a curve on a few labels a class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superconext.core.errors import ConfigError
from superconext.core.files import tsv_cell, write_csv, write_text
from superconext.core.progress import Progress
from superconext.encoders import encoder_class
from superconext.experiments.paired_tests import Lines
from superconext.experiments.plan import Request, name_of
from superconext.experiments.row_sources import RowSource
from superconext.experiments.runner import Finished, run_experiment
from superconext.experiments.subsampling import parse_draw
from superconext.experiments.systems import fit_config, plain
from superconext.experiments.tables import (
    Table,
    labelled_notes,
    make_table,
    make_tables,
    pool_notes,
    recipe_notes,
    script_grid,
    system_notes,
    to_csv_rows,
    to_grid,
    to_long_grid,
    to_long_rows,
    to_overview,
)
from superconext.objectives.catalogue import objective_class
from superconext.report.figures import BandsContext, ComparisonContext, Level, draw_figures
from superconext.report.table import Grid
from superconext.training.trainer import decided, decided_epochs

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
        *labelled_notes(finished.lines),
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


CURVE = "shots"

#: Fewer optimiser steps than this are noted: an epoch of a few rows is a step or two.
FEW_STEPS = 100


@dataclass(frozen=True)
class Curve:
    """tables: by shots, smallest first, all their tests corrected together.

    overview: a column for each size. table: all rows below each other, with their tests.
    """

    tables: dict[str, Table]
    overview: Grid
    table: Grid


def shot_draws(shots: Sequence[int]) -> tuple[str, ...]:
    """The draws of so many rows of each class. Raises ConfigError for none or fewer than 2."""
    # SuperLoss needs a positive, so two rows of each class.
    if not shots or any(k < 2 for k in shots) or len(set(shots)) < len(shots):
        raise ConfigError(
            f"shots = {','.join(map(str, shots)) or 'none'}: expected whole numbers of at least 2, "
            "each once: change them"
        )
    return tuple(f"shots{k}" for k in shots)


def _shots(request: Request) -> list[int]:
    return [parse_draw(name).amount for name in request.draws]


def fewshot(request: Request, progress: Progress) -> Curve:
    """Run every draw that has no line yet, then write the tables and the curve.

    Raises ConfigError for shots that cannot be drawn or a data set without a test file,
    DataError for a class with too few rows, and what `runner.run_experiment` does.
    """
    for data in request.datasets:
        if data.test is None or data.splits is not None:
            raise ConfigError(
                "found no test file of its own; expected one, because draws of a few rows leave "
                "none to report on: add --test"
            )
    _check_rest(request)
    _warn_of_few_steps(request, min(_shots(request)), progress)
    return run_experiment(request, progress, lambda finished: _publish_curve(finished, progress))


def _publish_curve(finished: Finished, progress: Progress) -> Curve:
    request = finished.request
    groups = {
        k: [line for line in finished.lines if line["shots"] == k] for k in sorted(_shots(request))
    }
    (source,) = finished.sources.values()
    made = make_tables(
        {str(k): lines for k, lines in groups.items()},
        request.reference,
        source.findings,
        request.systems,
    )
    overview = _curve_overview(finished, made)
    heads = [overview.notes[0].replace("weighted F1 ", ""), *_of_rest(request)]
    notes = _notes_of_sizes(groups, made)
    table = to_long_grid("shots", made, [*heads, *notes])
    overview.write(finished.folder, "overview")
    table.write(finished.folder, "table", to_long_rows("shots", made))

    curves = _curves(made)
    levels = curves.pop("majority", {})
    bands = BandsContext(
        curves,
        xlabel="rows of each class trained on",
        ylabel="weighted F1 on test, percent",
        file_name=CURVE,
        levels=[Level("majority", [v for values in levels.values() for v in values])],
    )
    drawn = draw_figures({finished.folder / "figures": bands}, progress, request.formats)
    finished.write_page({"Overview": overview, "By size": table}, drawn)
    return Curve(made, overview, table)


def _notes_of_sizes(groups: Mapping[int, Lines], made: Mapping[str, Table]) -> list[str]:
    """The notes of the tables, each once; one that does not hold for all sizes says for which."""
    fitted = [size for size, lines in groups.items() if lines]
    sizes_of: dict[str, list[int]] = {}
    for size, lines in groups.items():
        counted = {*recipe_notes(lines).values(), *pool_notes(lines)}
        for note in made[str(size)].notes:
            if note not in counted and not note.startswith("Percent on"):
                sizes_of.setdefault(note, []).append(size)
    notes = [
        note if set(sizes) >= set(fitted) else f"{', '.join(map(str, sizes))} shots: {note}"
        for note, sizes in sizes_of.items()
    ]
    everywhere = [line for lines in groups.values() for line in lines]
    return [*notes, *recipe_notes(everywhere).values(), *pool_notes(everywhere)]


def _curve_overview(finished: Finished, tables: Mapping[str, Table]) -> Grid:
    request = finished.request
    (data,) = request.datasets
    (source,) = finished.sources.values()
    sizes = finished.lines[0]["rows"] if finished.lines else {"dev": 0, "test": 0}
    dev = f"the given {sizes['dev']}" if data.dev else "as many as training rows, also drawn"
    notes = [
        f"Percent: weighted F1 on the given {sizes['test']} test rows, mean ± standard deviation "
        f"over draws ({request.seeds}) of so many rows of each class; a seed's smaller draws are "
        f"part of its larger ones; dev rows: {dev}.",
        f"Bold: better than {request.reference} at that size, p below 0.05 after Holm's "
        "correction over all sizes and systems.",
        *_of_rest(request),
        *labelled_notes(finished.lines),
        *system_notes(request.systems),
        *(f"Data: {line}." for line in source.findings),
    ]
    return to_overview(tables, notes, ranked=False)


def _check_rest(request: Request) -> None:
    """Raise ConfigError where the texts of rows that are not drawn are wanted, and no system learns
    from them."""
    (data,) = request.datasets
    if not data.rest_unlabelled:
        return
    from superconext.fitting.preprocess import learns_from_text

    for system in (*request.systems, *map(plain, request.controls_on(data))):
        if system.reads_parameters:
            config = fit_config(request.given_on(data), system, 0)
            needs_pool = not system.is_baseline and objective_class(config.objective).needs_pool
            if learns_from_text(config) or (needs_pool and not config.freeze):
                return
    raise ConfigError(
        "found rest_unlabelled, and no system that learns from text without labels; expected one "
        "that trains word vectors or pretrains: add --pretrain, or leave out what brings other "
        "vectors (--vectors, --init, --vector-method random, a transformer), or --rest-unlabelled"
    )


def _of_rest(request: Request) -> list[str]:
    """A note where the texts of rows that are not drawn are learned from."""
    (data,) = request.datasets
    told = (
        "Word vectors that a fit trains, and with --pretrain the encoder, learned from the texts "
        "of the rows that were not drawn, too (--rest-unlabelled)."
    )
    return [told] * data.rest_unlabelled


def _curves(tables: Mapping[str, Table]) -> dict[str, dict[Any, list[float]]]:
    curves: dict[str, dict[Any, list[float]]] = {}
    for shots, table in tables.items():
        for row in table.rows:
            curves.setdefault(row.name, {})[int(shots)] = row.values
    return curves


def _warn_of_few_steps(request: Request, shots: int, progress: Progress) -> None:
    """Say how many steps a training takes where its length was left to the defaults."""
    systems_by_steps: dict[int, list[str]] = {}
    for system in request.systems:
        if system.is_baseline or system.is_auto:
            continue
        config = decided(fit_config(request.given_on(request.datasets[0]), system, 0), shots * 2)
        default = config.steps_per_epoch is None and not config.freeze
        if default and shots * 2 <= config.batch_size:
            balanced = objective_class(system.objective).batches == "balanced"
            fewest = encoder_class(config.encoder).fewest_batches if balanced else 1
            steps = decided_epochs(config) * fewest
            systems_by_steps.setdefault(steps, []).append(system.name)
    for steps, names in systems_by_steps.items():
        if steps < FEW_STEPS:
            progress.note(
                f"{shots} rows a class fill one batch, about {steps} steps of "
                f"training for {', '.join(names)}; --steps-per-epoch or --epochs gives more"
            )
