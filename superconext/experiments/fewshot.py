"""Few-shot curves: systems trained on a few labels a class (`superconext fewshot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.data.sampler import FEWEST_BATCHES
from superconext.experiments.plan import Request
from superconext.experiments.runner import Finished, run_experiment
from superconext.experiments.subsampling import parse_draw
from superconext.experiments.systems import fit_config
from superconext.experiments.tables import (
    Table,
    make_tables,
    system_notes,
    to_long_grid,
    to_long_rows,
    to_overview,
)
from superconext.objectives.catalogue import objective_class
from superconext.report.figures import BandsContext, Level, draw_figures
from superconext.report.table import Grid
from superconext.training.trainer import decided_epochs, with_epochs

FIGURE = "shots"

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
    lines: list[dict[str, Any]]


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
    _warn_of_few_steps(request, min(_shots(request)), progress)
    return run_experiment(request, progress, lambda finished: _publish(finished, progress))


def _publish(finished: Finished, progress: Progress) -> Curve:
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
    overview = _overview(finished, made)
    # The tables differ in their sizes alone, and the notes of one hold for all.
    notes = [n for n in next(iter(made.values())).notes if not n.startswith("Percent on")]
    table = to_long_grid("shots", made, [overview.notes[0].replace("weighted F1 ", ""), *notes])
    overview.write(finished.folder, "overview")
    table.write(finished.folder, "table", to_long_rows("shots", made))

    curves = _curves(made)
    levels = curves.pop("majority", {})
    bands = BandsContext(
        curves,
        xlabel="rows of each class trained on",
        ylabel="weighted F1 on test, percent",
        file_name=FIGURE,
        levels=[Level("majority", [v for values in levels.values() for v in values])],
    )
    drawn = draw_figures({finished.folder / "figures": bands}, progress, request.formats)
    finished.write_page({"Overview": overview, "By size": table}, drawn)
    return Curve(made, overview, table, finished.lines)


def _overview(finished: Finished, tables: Mapping[str, Table]) -> Grid:
    request = finished.request
    (data,) = request.datasets
    (source,) = finished.sources.values()
    sizes = finished.lines[0]["rows"] if finished.lines else {"dev": 0, "test": 0}
    dev = f"the given {sizes['dev']}" if data.dev else "as many as trained on, drawn too"
    notes = [
        f"Percent: weighted F1 on the given {sizes['test']} test rows, mean ± standard deviation "
        f"over draws ({request.seeds}) of so many rows of each class; a seed's smaller draws are "
        f"part of its larger ones; dev rows: {dev}.",
        f"Bold: better than {request.reference} at that size, p below 0.05 after Holm's "
        "correction over all sizes and systems.",
        *system_notes(request.systems),
        *(f"Data: {line}." for line in source.findings),
    ]
    return to_overview(tables, notes, ranked=False)


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
        if system.is_baseline:
            continue
        given = fit_config(request.given_on(request.datasets[0]), system, 0)
        config = with_epochs(given, shots * 2)
        if config.steps_per_epoch is None and shots * 2 <= config.batch_size:
            balanced = objective_class(system.objective).batches == "balanced"
            steps = decided_epochs(config) * (FEWEST_BATCHES if balanced else 1)
            systems_by_steps.setdefault(steps, []).append(system.name)
    for steps, names in systems_by_steps.items():
        if steps < FEW_STEPS:
            progress.say(
                f"note: {shots} rows a class fill one batch, about {steps} steps of "
                f"training for {', '.join(names)}; --steps-per-epoch or --epochs gives more"
            )
