"""`superconext sweep`."""

from __future__ import annotations

from typing import Any

import click

from superconext.cli.experiments import (
    DECIDED,
    RUNS,
    given_on_all,
    make_request,
    one_dataset,
    require,
)
from superconext.cli.options import SPLITS, GroupedCommand, as_usage, echo_json, parameters


@click.command(cls=GroupedCommand)
@click.argument("train_file", metavar="TRAIN", required=True)
@click.option("--dev", metavar="FILE", help="Rows to choose on; unset: a tenth of TRAIN.")
@click.option("--test", metavar="FILE", help="Rows the chosen one is reported on.")
@click.option("--parameter", multiple=True, metavar="NAME", help="What to vary; may be repeated.")
@click.option(
    "--values",
    multiple=True,
    metavar="A,B,C",
    help="Its values, one list for each --parameter; with --optuna also LOW:HIGH[:log].",
)
@click.option(
    "--optuna",
    "trials",
    type=click.IntRange(1),
    metavar="N",
    help="Search by N trials of one fit each, in place of a grid (extra optuna).",
)
@SPLITS
@RUNS
@parameters(without=DECIDED)
@click.pass_context
def sweep(
    ctx: click.Context,
    train_file: str,
    parameter: tuple[str, ...],
    values: tuple[str, ...],
    trials: int | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Vary a parameter, or several as a grid; choose on dev, report the chosen on test.

    The other parameters apply to every grid point. The baselines are fitted too. With
    --optuna each trial is a fit with seed 0, and the chosen values get the other seeds.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.experiments import sweep as sweeping
    from superconext.experiments.tables import to_csv_rows, to_grid

    if not parameter:
        raise click.UsageError("Missing option '--parameter': the name of what to vary.")
    require(options, seeds="number", out="folder")
    progress = TerminalProgress(quiet)
    given = given_on_all(options, "sweep", progress)
    twice = sorted(set(parameter) & set(given))
    if twice:
        raise click.UsageError(f"found a value for {twice[0]}, which is varied: leave it out")
    objective = given.pop("objective", "superloss")
    names = tuple(name.replace("-", "_") for name in parameter)
    if trials:
        axes = as_usage(sweeping.parse_axes, names, values)
        systems = ()
    else:
        systems = as_usage(sweeping.make_grid, objective, names, values)
    datasets = one_dataset(train_file, options, "splits")
    request = make_request(ctx, options, "sweep", datasets=datasets, systems=systems, given=given)
    if trials:
        swept = sweeping.search(request, objective, axes, trials, progress)
    else:
        as_usage(request.plan)
        swept = sweeping.sweep(request, progress)
    if as_json:
        document = {
            "chosen": swept.chosen.values,
            "dev": sweeping.to_dev_rows(swept.points, swept.chosen),
            "test": to_csv_rows(swept.table),
            "notes": [*swept.grid.notes, *swept.table.notes],
        }
        echo_json(document)
    else:
        click.echo(f"on dev\n\n{swept.grid.text()}\n\non test\n\n{to_grid(swept.table).text()}")
    click.echo(f"sweep folder: {request.out}", err=True)
