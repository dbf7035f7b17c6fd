"""What one parameter of a run is: its name, type, default, limits and help."""

from __future__ import annotations

import difflib
import math
import types
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from superconext.config.presets import PRESETS
from superconext.core.errors import ConfigError


def parameter(
    default: Any,
    help: str,
    *,
    choices: Sequence[str] | None = None,
    low: float | None = None,
    high: float | None = None,
    open_low: bool = False,
    group: str = "training",
) -> Any:
    """A field of a dataclass of parameters; `low` and `high` are allowed unless `open_low`."""
    meta = {
        "help": help,
        "choices": tuple(choices) if choices else None,
        "low": low,
        "high": high,
        "open_low": open_low,
        "group": group,
    }
    return field(default=default, metadata=meta)


@dataclass(frozen=True)
class Parameter:
    """One row of the table."""

    name: str
    type: type
    optional: bool
    default: Any
    help: str
    choices: tuple[str, ...] | None
    low: float | None
    high: float | None
    open_low: bool
    group: str

    @property
    def governed(self) -> bool:
        """Whether a preset may set it, so that callers leave it `None` by default."""
        return any(self.name in preset.values for preset in PRESETS.values())

    def check(self, value: Any) -> None:
        """Raise ConfigError unless `value` has the right type and lies in its limits."""
        if value is None and self.optional:
            return
        kind = self.type
        right = isinstance(value, (int, float) if kind is float else kind)
        if not right or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(
                f"{self.name} = {value!r}: expected {_KIND[kind]}, got {type(value).__name__}; "
                "change the value"
            )
        if self.choices and value not in self.choices:
            near = difflib.get_close_matches(value, self.choices, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"{self.name} = {value!r}: expected one of {', '.join(self.choices)}{hint}"
            )
        if kind in (int, float):
            if not math.isfinite(value):
                raise ConfigError(f"{self.name} = {value}: expected a finite number")
            below = self.low is not None and (
                value <= self.low if self.open_low else value < self.low
            )
            if below or (self.high is not None and value > self.high):
                raise ConfigError(
                    f"{self.name} = {value}: expected a value {self.limits()}; change it"
                )

    def limits(self) -> str:
        """The allowed range in words."""
        parts = []
        if self.low is not None:
            parts.append(f"{'above' if self.open_low else 'of at least'} {self.low:g}")
        if self.high is not None:
            parts.append(f"of at most {self.high:g}")
        return " and ".join(parts)


_KIND = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def table_of(parameters: type) -> tuple[Parameter, ...]:
    """The rows of a dataclass whose fields `parameter` made."""
    hints = typing.get_type_hints(parameters)
    rows = []
    for item in fields(parameters):
        hint = hints[item.name]
        optional = isinstance(hint, types.UnionType)
        if optional:
            hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
        rows.append(
            Parameter(
                name=item.name, type=hint, optional=optional, default=item.default, **item.metadata
            )
        )
    return tuple(rows)
