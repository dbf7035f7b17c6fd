"""Options that `compare`, `fewshot` and `sweep` share, and what they become."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from superconext.cli.parameters import given_parameters
from superconext.core.errors import ConfigError
from superconext.objectives.catalogue import CATALOGUE

if TYPE_CHECKING:
    from superconext.core.progress import Progress
    from superconext.experiments.parallel import Workers
    from superconext.experiments.systems import System

#: Fields of a data set that are options of all three commands.
OF_DATA = ("deduplicate", "deduplicate_near", "at_most", "text_column", "label_column")

Command = Callable[..., Any]

#: Parameters of `train` that an experiment decides itself.
DECIDED = ("seed", "baselines")


def with_systems(command: Command) -> Command:
    """`--objectives` and `--systems`."""
    names = ", ".join(CATALOGUE)
    for option in (
        click.option("--systems", metavar="TOML", help="The same from a file, under own names."),
        click.option(
            "--objectives",
            metavar="A,B,C",
            callback=_parsed,
            help="What to compare, each OBJECTIVE or OBJECTIVE:PARAMETER=VALUE+PARAMETER=VALUE, "
            f"of: {names}. Also the baselines nbsvm, fasttext and ngrams.",
        ),
    ):
        command = option(command)
    return command


def with_run(command: Command) -> Command:
    """Where to write, how often, by whom, and how to tell of it."""
    for option in (
        click.option("--quiet", is_flag=True, help="No progress on stderr."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
        click.option("--label-column", metavar="NAME", help="Label column, name or number from 1."),
        click.option("--text-column", metavar="NAME", help="Text column, name or number from 1."),
        click.option("--config", metavar="TOML", help="Parameters from a file; options win."),
        click.option(
            "--at-most",
            type=click.IntRange(8),
            metavar="N",
            help="Keep N rows of each file, drawn by class; for sets that take too long.",
        ),
        click.option(
            "--deduplicate-near",
            is_flag=True,
            help="Remove training rows that are almost a dev or test text.",
        ),
        click.option("--deduplicate", is_flag=True, help="Remove copies within and across splits."),
        click.option("--scheduler", metavar="ADDRESS", help="Of the Dask cluster to run fits on."),
        click.option(
            "--backend",
            type=click.Choice(["processes", "dask"]),
            default="processes",
            show_default=True,
            help="Who runs the fits: processes here, or the workers of --scheduler.",
        ),
        click.option(
            "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Fits at a time."
        ),
        click.option(
            "--reference",
            metavar="NAME",
            default="tfidf_logreg",
            show_default=True,
            help="System the others are tested against.",
        ),
        click.option("--out", metavar="DIR", help="Folder to write, new or to go on with."),
        click.option(
            "--seeds", type=click.IntRange(1, 10_000), help="Fits of each system, seeds 0, 1, ..."
        ),
    ):
        command = option(command)
    return command


def without(command: click.Command, *names: str) -> None:
    """Take away parameters of `train` that would say a thing twice here."""
    command.params = [option for option in command.params if option.name not in names]


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


def common_parameters(
    options: dict[str, Any], decided: Sequence[str], verb: str, progress: Progress
) -> dict[str, Any]:
    """The parameters for all systems: options, then the file given with `--config`."""
    from superconext.config.files import read_config

    given = given_parameters(options)
    if not options["config"]:
        return given
    from_file = read_config(Path(options["config"]))
    for name in decided:
        if from_file.pop(name, None) is not None:
            progress.say(f"note: {options['config']}: {name} is left out; {verb} decides it")
    return {**from_file, **given}


def chosen_workers(options: dict[str, Any]) -> Workers:
    """Who runs the fits. Wrong usage for options that do not go together."""
    from superconext.experiments.parallel import Workers

    workers = Workers(options["jobs"], options["backend"], options["scheduler"])
    as_usage(workers.check)
    return workers


def as_usage(check: Callable[..., Any], *arguments: Any) -> Any:
    """Call a check; a ConfigError from it is wrong usage."""
    try:
        return check(*arguments)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _parsed(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> tuple[System, ...] | None:
    from superconext.experiments.systems import parse_systems

    try:
        return None if value is None else parse_systems(value)
    except ConfigError as error:
        raise click.BadParameter(str(error), ctx, option) from None
