"""Command line options out of the table of parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from superconext.config.parameters import PARAMETERS, Parameter
from superconext.config.presets import PRESETS
from superconext.core.errors import ConfigError
from superconext.objectives.catalogue import CATALOGUE
from superconext.probe import probe_feature_names

_TYPES: dict[type, Any] = {int: click.INT, float: click.FLOAT, str: click.STRING}


def with_parameters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for every parameter; one not given arrives as None."""
    for parameter in reversed(PARAMETERS):
        command = _option(parameter)(command)
    return command


def given_parameters(options: dict[str, Any]) -> dict[str, Any]:
    """The parameters among a command's options that the user named."""
    names = {parameter.name for parameter in PARAMETERS}
    return {name: value for name, value in options.items() if name in names and value is not None}


def _option(parameter: Parameter) -> Callable[..., Any]:
    flag = "--" + parameter.name.replace("_", "-")
    if parameter.type is bool:
        return click.option(
            f"{flag}/--no-{flag[2:]}", parameter.name, default=None, help=_help(parameter)
        )
    named = parameter.name.endswith("objective")
    choices = list(CATALOGUE) if named else parameter.choices
    if parameter.name == "probe_features":
        choices = probe_feature_names()
    kind = click.Choice(choices) if choices else _TYPES[parameter.type]
    return click.option(
        flag,
        parameter.name,
        type=kind,
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
