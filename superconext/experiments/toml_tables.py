"""Lists of systems and of data sets: `[[system]]` and `[[dataset]]` tables of a TOML file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from superconext.config.files import read_toml
from superconext.config.parameters import BY_NAME, FILE_PARAMETERS, OPTION, check_names
from superconext.core.errors import ConfigError

#: Decided by the experiment itself, so no parameter of a system or a data set.
OWN_PARAMETERS = ("objective", "seed", "baselines")

#: Parameters by name, in the order they were given; hashable, unlike a mapping.
Parameters = tuple[tuple[str, Any], ...]


def read_tables(path: Path, key: str) -> list[dict[str, Any]]:
    """The `[[key]]` tables of a TOML file, in order. Raises ConfigError naming the file."""
    document = read_toml(path, f"[[{key}]] tables")
    tables = document.pop(key, [])
    if document:
        raise ConfigError(
            f"{path}: found {next(iter(document))!r}; expected [[{key}]] tables alone: remove it"
        )
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        raise ConfigError(f"{path}: found no [[{key}]] table; expected one or more: add them")
    return tables


def checked_parameters(
    values: Mapping[str, Any], where: str, folder: Path | None = None, also: Sequence[str] = ()
) -> Parameters:
    """The values as parameters of `train`, checked one by one.

    Args:
        where: what an error message names.
        folder: what paths among the values are relative to; None leaves them.
        also: keys the table may have beside parameters, for the hint at a misspelt one.

    Raises ConfigError for what is no parameter, what the experiment decides, and values
    of the wrong type or outside their limits.
    """
    found = []
    for name, value in values.items():
        if name in OWN_PARAMETERS:
            raise ConfigError(f"{where}: found {name}, which the experiment decides: leave it out")
        check_names([name], where, also)
        if name == "options" and isinstance(value, Mapping):
            found += [(f"{OPTION}{option}", inner) for option, inner in value.items()]
            continue
        if name.startswith(OPTION):
            found.append((name, value))
            continue
        parameter = BY_NAME[name]
        if parameter.type is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        try:
            parameter.check(value)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
        if name in FILE_PARAMETERS and folder is not None:
            value = os.path.join(folder, value)
        found.append((name, value))
    return tuple(found)


def text_of(table: Mapping[str, Any], key: str, where: str) -> str | None:
    """The text under a key, None where there is none. Raises ConfigError for anything else."""
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise ConfigError(f'{where}: {key} = {value!r}; expected text, as {key} = "..."')
    return value
