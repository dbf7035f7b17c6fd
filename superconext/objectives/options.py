"""Settings that only one objective has: `name=value` text to that objective's dataclass.

Settings that several objectives share (temperature, mining, ...) are parameters of the
run; what is left lives beside the objective, as a frozen dataclass of int, float, bool
and str fields called `Options`.
"""

from __future__ import annotations

import difflib
import math
import typing
from dataclasses import fields
from typing import Any, TypeVar

from superconext.core.errors import ConfigError

T = TypeVar("T")

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}


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
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known) or 'none'}"
            raise ConfigError(f"options: this objective has no option {name!r}; {hint}")
        values[name] = _convert(name, value, hints[name])
    return options(**values)


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
