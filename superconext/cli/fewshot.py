"""`superconext fewshot`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from superconext.cli.experiments import (
    RUNS,
    SYSTEMS,
    SYSTEMS_DECIDED,
    chosen_systems,
    given_on_all,
    make_request,
    one_dataset,
    require,
)
from superconext.cli.options import GroupedCommand, as_usage, echo_json, parameters


def _numbers(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        return tuple(int(piece) for piece in value.split(",") if piece.strip())
    except ValueError:
        raise click.BadParameter(
            f"{value!r}: expected whole numbers, as 4,8,16", ctx, option
        ) from None


@click.command(cls=GroupedCommand)
@click.argument("train_file", metavar="TRAIN", required=True)
@click.option("--dev", metavar="FILE", help="Rows to choose settings on; unset: as many are drawn.")
@click.option("--test", metavar="FILE", help="Rows to report on.")
@click.option(
    "--shots", metavar="4,8,16", callback=_numbers, help="Rows of each class to draw, several."
)
@SYSTEMS
@RUNS
@parameters(without=SYSTEMS_DECIDED)
@click.pass_context
def fewshot(
    ctx: click.Context, train_file: str, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Draw a few rows of each class from TRAIN, several times; write curves to DIR.

    Each seed draws its own rows. Without --objectives or --systems: superloss and
    cross_entropy. The baselines of compare are fitted on the same rows.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.experiments import fewshot as drawing
    from superconext.experiments.systems import parse_systems
    from superconext.experiments.tables import to_long_rows

    require(options, test="file", shots="numbers", seeds="number", out="folder")
    if not options["objectives"] and not options["systems"]:
        options["objectives"] = parse_systems("superloss,cross_entropy")
    progress = TerminalProgress(quiet)
    request = make_request(
        ctx,
        options,
        "fewshot",
        datasets=one_dataset(train_file, options),
        systems=chosen_systems(options),
        given=given_on_all(options, "fewshot", progress),
        draws=as_usage(drawing.shot_draws, options["shots"]),
    )
    as_usage(request.plan)
    curve = drawing.fewshot(request, progress)
    if as_json:
        rows = to_long_rows("shots", curve.tables)
        document = {"reference": request.reference, "rows": rows, "notes": curve.table.notes}
        echo_json(document)
    else:
        click.echo(f"{replace(curve.overview, notes=[]).text()}\n\n{curve.table.text()}")
    click.echo(f"few-shot folder: {request.out}", err=True)
