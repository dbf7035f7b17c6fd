"""Options that `compare`, `fewshot` and `sweep` share, and what they become."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from superconext.baselines import ALWAYS_FITTED, BASELINES
from superconext.cli.options import (
    COLUMNS,
    CONFIG,
    FIGURES,
    JSON,
    QUIET,
    READING,
    as_usage,
    given_parameters,
    number,
    shared,
    switch,
)
from superconext.core.errors import ConfigError
from superconext.objectives.catalogue import OBJECTIVES

if TYPE_CHECKING:
    from superconext.core.progress import Progress
    from superconext.experiments.datasets import DataSet
    from superconext.experiments.parallel import Workers
    from superconext.experiments.plan import Request
    from superconext.experiments.systems import System

#: Fields of a data set that are options of all three commands.
OF_DATA = ("deduplicate", "deduplicate_near", "at_most", "text_column", "label_column")

#: Parameters of `train` that an experiment decides itself.
DECIDED = ("seed", "baselines", "cv", "budget")
#: The same, where the systems are named.
SYSTEMS_DECIDED = ("objective", *DECIDED)

_MORE_BASELINES = [name for name in BASELINES if name not in ALWAYS_FITTED]


def _parsed(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> tuple[System, ...] | None:
    from superconext.experiments.systems import parse_systems

    try:
        return None if value is None else parse_systems(value)
    except ConfigError as error:
        raise click.BadParameter(str(error), ctx, option) from None


#: `--objectives` and `--systems`.
SYSTEMS = shared(
    click.option(
        "--objectives",
        metavar="A,B,C",
        callback=_parsed,
        help="What to compare, each OBJECTIVE or OBJECTIVE:PARAMETER=VALUE+PARAMETER=VALUE, of: "
        f"{', '.join(OBJECTIVES)}. Also the baselines {', '.join(_MORE_BASELINES)}.",
    ),
    click.option(
        "--systems", metavar="TOML", help="The same from a file, with names of their own."
    ),
)

#: Where to write, how often, by whom, and how to report.
RUNS = shared(
    number("--seeds", None, "Fits of each system, seeds 0, 1, ...", click.IntRange(1, 10_000)),
    click.option("--out", metavar="DIR", help="Folder to write, new or to resume."),
    click.option(
        "--reference",
        metavar="NAME",
        default="tfidf_logreg",
        show_default=True,
        help="System the others are tested against.",
    ),
    number("--jobs", 1, "Fits at a time."),
    click.option(
        "--backend",
        type=click.Choice(["processes", "dask"]),
        default="processes",
        show_default=True,
        help="What runs the fits: processes here, or the workers of --scheduler.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Of the Dask cluster to run fits on."),
    switch("--deduplicate", "Remove copies within and across splits."),
    switch("--deduplicate-near", "Remove training rows that are almost a dev or test text."),
    click.option(
        "--at-most",
        type=click.IntRange(8),
        metavar="N",
        help="Keep N rows of each file, drawn by class; for sets that take too long.",
    ),
    CONFIG,
    COLUMNS,
    READING,
    FIGURES,
    JSON,
    QUIET,
)


def require(options: dict[str, Any], **what: str) -> None:
    """Wrong usage unless each of these options was given."""
    for name, kind in what.items():
        if not options[name]:
            raise click.UsageError(f"Missing option '--{name}': the {kind} to work with.")


def chosen_systems(options: dict[str, Any]) -> tuple[System, ...]:
    """The systems of `--objectives` or of the file given with `--systems`."""
    from superconext.experiments.systems import read_systems

    if options["objectives"] and options["systems"]:
        raise click.UsageError("found --objectives and --systems; expected one of them")
    if options["systems"]:
        return read_systems(Path(options["systems"]))
    require(options, objectives="names")
    systems: tuple[System, ...] = options["objectives"]
    return systems


def given_on_all(options: dict[str, Any], verb: str, progress: Progress) -> dict[str, Any]:
    """The parameters for all systems: options, then the file given with `--config`."""
    from superconext.config.files import read_config

    given = given_parameters(options)
    if not options["config"]:
        return given
    from_file = read_config(Path(options["config"]))
    for name in DECIDED if verb == "sweep" else SYSTEMS_DECIDED:
        if from_file.pop(name, None) is not None:
            progress.say(f"note: {options['config']}: {name} is left out; {verb} decides it")
    return {**from_file, **given}


def one_dataset(train_file: str, options: dict[str, Any], *also: str) -> tuple[DataSet]:
    """The data set of a command that takes one; `also`: its fields beside those of all commands."""
    from superconext.experiments.datasets import DataSet

    names = ("dev", "test", *OF_DATA, *also)
    fields = {name: options[name] for name in names} | options["reading"]
    return (DataSet("", train_file, **fields),)


def make_request(ctx: click.Context, options: dict[str, Any], verb: str, **own: Any) -> Request:
    """The request of a command, from the options that all three have and fields of its `own`."""
    from superconext.experiments.plan import Request

    workers = chosen_workers(options)
    shared = {name: options[name] for name in ("seeds", "out", "reference", "figures")}
    command = ("superconext", *(ctx.obj or ()))
    return Request(**{**shared, "verb": verb, "workers": workers, "command": command, **own})


def chosen_workers(options: dict[str, Any]) -> Workers:
    """What runs the fits. Wrong usage for options that do not go together."""
    from superconext.experiments.parallel import Workers

    workers = Workers(options["jobs"], options["backend"], options["scheduler"])
    as_usage(workers.check)
    return workers
