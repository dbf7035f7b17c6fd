"""A configuration as a TOML file: flat, one line for each parameter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from superconext.config.parameters import BY_NAME, PARAMETERS, Config, check_names
from superconext.config.toml_file import read_toml
from superconext.core.errors import ConfigError
from superconext.core.files import write_text


def read_config(path: Path) -> dict[str, Any]:
    """The parameters a TOML file names, checked for name, type and limits.

    Raises ConfigError naming the file and the key.
    """
    values = read_toml(path, "name = value")
    check_names(list(values), str(path))
    for name, value in values.items():
        if isinstance(value, list | dict):
            raise ConfigError(f"{path}: found tables under {name}; expected one value: change it")
        if BY_NAME[name].type is float and isinstance(value, int) and not isinstance(value, bool):
            values[name] = value = float(value)
        try:
            BY_NAME[name].check(value)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
    return values


def write_config(path: Path, config: Config) -> None:
    """Write every parameter that has a value, each under its help as a comment."""
    lines = []
    for parameter in PARAMETERS:
        value = getattr(config, parameter.name)
        lines.append(f"# {parameter.help}")
        if value is None:
            lines.append(f"# {parameter.name} is not set\n")
        else:
            # JSON's text, number and true/false literals are TOML's too.
            lines.append(f"{parameter.name} = {json.dumps(value, ensure_ascii=False)}\n")
    write_text(path, "\n".join(lines))
