"""Options: settings that one objective, or one encoder, alone has.

They are the fields (int, float, bool, str) of a frozen dataclass, filled from the parameter
`options`, "name=value,name=value". A name is the encoder's where the encoder has one, else the
objective's. A dataclass that extends `CheckedOptions` says with each field what it may be.
"""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from superconext.config.parameters import table_of
from superconext.core.errors import ConfigError, suggestion

T = TypeVar("T")

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class CheckedOptions:
    """Options whose fields are made by `config.parameters.parameter`; this one has none.

    Raises ConfigError for a value that its field does not allow.
    """

    def __post_init__(self) -> None:
        for row in table_of(type(self)):
            try:
                row.check(getattr(self, row.name))
            except ConfigError as error:
                raise ConfigError(f"options: {error} ({row.help.rstrip('.')})") from None


def parse_options(text: str | None, options: type[T]) -> T:
    """An `options` instance with the values that `text` ("margin=0.3,form=soft") names.

    Raises ConfigError for a part without "=", an unknown name, or a value of another type.
    """
    hints = typing.get_type_hints(options)
    known = [field.name for field in fields(options)]  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in (text or "").split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ConfigError(f"options: found {part!r}, expected name=value")
        if name not in known:
            hint = suggestion(name, known, f"known: {', '.join(known) or 'none'}")
            raise ConfigError(f"options: this objective has no option {name!r}; {hint}")
        values[name] = _convert(name, value, hints[name])
    return options(**values)


def own_options(text: str | None, options: type) -> str | None:
    """The part of `text` whose names are fields of `options`; None if there is none."""
    return _filtered(text, options, True)


def other_options(text: str | None, options: type) -> str | None:
    """The part of `text` whose names are no fields of `options`; None if there is none."""
    return _filtered(text, options, False)


def _filtered(text: str | None, options: type, own: bool) -> str | None:
    names = {field.name for field in fields(options)}
    parts = [piece for piece in (text or "").split(",") if piece.strip()]
    return ",".join(p for p in parts if (p.partition("=")[0].strip() in names) is own) or None


def _convert(name: str, value: str, kind: type) -> Any:
    try:
        if kind is bool:
            return _TRUTH[value.lower()]
        converted = kind(value)
    except (ValueError, KeyError):
        raise ConfigError(
            f"options: {name} = {value!r}; expected a value of type {kind.__name__}"
        ) from None
    if kind is float and not math.isfinite(converted):
        raise ConfigError(f"options: {name} = {value}; expected a finite number")
    return converted
