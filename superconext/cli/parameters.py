"""Command line options out of the table of parameters, in groups, and those that have left."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import click

from superconext.config.parameters import (
    BY_NAME,
    GROUPS,
    PARAMETERS,
    REMOVED,
    Parameter,
    removal,
)
from superconext.config.presets import PRESETS
from superconext.core.errors import ConfigError
from superconext.encoders.registry import ENCODERS
from superconext.objectives.catalogue import OBJECTIVES
from superconext.probe import check_probe_features, probe_feature_names

_TYPES: dict[type, Any] = {int: click.INT, float: click.FLOAT, str: click.STRING}

#: Groups of options that are no parameters; the others stand first, as "Options".
_GROUP_OF = {
    **dict.fromkeys(
        ("dev", "test", "datasets", "splits", "deduplicate", "deduplicate_near", "at_most"), "data"
    ),
    **dict.fromkeys(("text_column", "label_column", "store"), "data"),
    **dict.fromkeys(("out", "force", "keep_text", "as_json", "quiet"), "output"),
}


class Command(click.Command):
    """A command that says of an option of earlier versions what to use instead."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = [*args]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            flag = error.option_name
            name = flag.lstrip("-").replace("-", "_").removeprefix("no_")
            if name not in REMOVED:
                raise
            following = dict(itertools.pairwise(words))
            following |= dict(word.split("=", 1) for word in words if "=" in word)
            instead = removal(name, flag=True, value=following.get(flag) or None)
            raise click.UsageError(f"found {flag}, which has left; {instead}", ctx) from None


class GroupedCommand(Command):
    """A command with every parameter of a run: its help has a heading for each group."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            name = option.name or ""
            group = BY_NAME[name].group if name in BY_NAME else _GROUP_OF.get(name, "options")
            if record is not None:
                groups.setdefault(group, []).append(record)
        for group in ("options", *GROUPS):
            if group in groups:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(groups[group])


class RegisteredName(click.ParamType):
    """A name of a registry, which is looked into only when a name is given or help is shown."""

    name = "name"

    def __init__(self, names: Callable[[], list[str]], check: Callable[[str], None]) -> None:
        self.names, self.check = names, check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            self.check(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)
        return value

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(self.names())}]"


#: Parameters whose choices are the names in a registry.
_REGISTERED = {
    "objective": RegisteredName(OBJECTIVES.names, OBJECTIVES.check),
    "encoder": RegisteredName(ENCODERS.names, ENCODERS.check),
    "probe_features": RegisteredName(probe_feature_names, check_probe_features),
}


def with_parameters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for every parameter; one not given arrives as None."""
    for parameter in reversed(PARAMETERS):
        command = _option(parameter)(command)
    return command


def given_parameters(options: dict[str, Any]) -> dict[str, Any]:
    """The parameters among a command's options that the user named."""
    return {name: value for name, value in options.items() if name in BY_NAME and value is not None}


def _option(parameter: Parameter) -> Callable[..., Any]:
    flag = "--" + parameter.name.replace("_", "-")
    if parameter.type is bool:
        return click.option(
            f"{flag}/--no-{flag[2:]}", parameter.name, default=None, help=_help(parameter)
        )
    kind, metavar = _REGISTERED.get(parameter.name, _TYPES[parameter.type]), None
    if parameter.additions:
        metavar = f"[{'|'.join(parameter.choices or ())}][+RULE][-RULE]"
    elif parameter.choices:
        kind = click.Choice(parameter.choices)
    return click.option(
        flag,
        parameter.name,
        type=kind,
        metavar=metavar,
        default=None,
        callback=_checked(parameter),
        help=_help(parameter),
    )


def _checked(parameter: Parameter) -> Callable[..., Any]:
    """A value outside its limits is wrong usage, as a word where a number belongs is."""

    def check(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
        try:
            if value is not None:
                parameter.check(value)
        except ConfigError as error:
            raise click.BadParameter(str(error), ctx, option) from None
        return value

    return check


def _help(parameter: Parameter) -> str:
    """The parameter's help and its default under each preset where they differ."""
    values = {
        name: preset.values.get(parameter.name, parameter.default)
        for name, preset in PRESETS.items()
    }
    default = values.pop("dialect")
    others = [f"{name}: {_show(value)}" for name, value in values.items() if value != default]
    if default is None and not others:
        return parameter.help
    shown = "; ".join([_show(default), *others])
    return f"{parameter.help}  [default: {shown}]"


def _show(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
