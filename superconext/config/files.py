"""TOML files: any document, read in bounded time and memory, and the parameters of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from superconext.config.parameters import (
    BY_NAME,
    IDLE,
    OPTION,
    PARAMETERS,
    Config,
    check_names,
    options_text,
)
from superconext.core.errors import ConfigError
from superconext.core.files import write_text

#: Bytes of a document. The longest sane one, a hundred systems, has a tenth of it.
MOST_BYTES = 1 << 18

#: Dots on a line that is no comment. A parser's time grows with the square of a dotted key.
MOST_DOTS = 64

#: Characters of a key and of a value.
MOST_KEY, MOST_TEXT = 100, 4096

#: The key that may hold a table of single values: the settings of one objective.
TABLE = "options"


def read_toml(path: Path, expected: str) -> dict[str, Any]:
    """The document in a file.

    Args:
        expected: what it should hold, for messages.

    Raises ConfigError naming the file, and the line where one is at fault.
    """
    import tomllib

    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"{path}: cannot be read ({reason}); expected a TOML file: check the path"
        ) from None
    if len(data) > MOST_BYTES:
        raise ConfigError(
            f"{path}: longer than {MOST_BYTES >> 10} KiB; expected {expected}: name another file"
        )
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.count(b".") > MOST_DOTS and not line.lstrip().startswith(b"#"):
            raise ConfigError(
                f"{path}, line {number}: found {line.count(b'.')} dots; expected {expected}, of at "
                f"most {MOST_DOTS} dots a line: shorten it"
            )
    try:
        document: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    # Besides its own error: of bytes that are no UTF-8, of a number of thousands of digits, of
    # a date that is none.
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML ({error}); expected {expected}") from None
    except RecursionError:
        raise ConfigError(
            f"{path}: not valid TOML (nested too deep); expected {expected}"
        ) from None
    for key, value in document.items():
        _check(key, value, str(path), expected)
    return document


def read_config(path: Path) -> dict[str, Any]:
    """The parameters a TOML file names, checked for name, type and limits.

    `options` may be a table. Parameters that have left are passed over where they changed nothing
    (`IDLE`). Raises ConfigError naming the file and the key.
    """
    values = read_toml(path, "name = value")
    values = {name: value for name, value in values.items() if IDLE.get(name, ...) != value}
    check_names(values, str(path))
    single = {n.removeprefix(OPTION): values.pop(n) for n in [*values] if n.startswith(OPTION)}
    if single or isinstance(values.get(TABLE), dict):
        values[TABLE] = options_text(values.get(TABLE), single)
    for name, value in values.items():
        if isinstance(value, list) and any(isinstance(one, dict) for one in value):
            raise ConfigError(f"{path}: found tables under {name}; expected one value: change it")
        if BY_NAME[name].type is float and isinstance(value, int) and not isinstance(value, bool):
            values[name] = value = float(value)
        try:
            BY_NAME[name].check(value)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
    return values


def write_config(path: Path, config: Config, more: Mapping[str, str | None] | None = None) -> None:
    """Write every parameter that has a value, each under its help as a comment.

    more: further entries, such as a model of an earlier version needs; None is left out.
    """
    lines = []
    for parameter in PARAMETERS:
        value = getattr(config, parameter.name)
        lines.append(f"# {parameter.help}")
        if value is None:
            lines.append(f"# {parameter.name} is not set\n")
        else:
            # JSON's text, number and true/false literals are TOML's too.
            lines.append(f"{parameter.name} = {json.dumps(value, ensure_ascii=False)}\n")
    for name, text in (more or {}).items():
        if text is not None:
            lines.append(f"{name} = {json.dumps(text, ensure_ascii=False)}\n")
    write_text(path, "\n".join(lines))


def _check(key: str, value: Any, where: str, expected: str) -> None:
    """Raise ConfigError unless it is one value, `TABLE`, or an array of tables of such."""
    if isinstance(value, list) and value and all(isinstance(table, dict) for table in value):
        for number, table in enumerate(value, 1):
            for name, inner in table.items():
                several = name in BY_NAME and BY_NAME[name].several
                if (isinstance(inner, list) and not several) or (
                    isinstance(inner, dict) and name != TABLE
                ):
                    raise ConfigError(_found(where, f"{key} {number}, {name}", inner, expected))
                _check(name, inner, f"{where}, {key} {number}", expected)
    elif isinstance(value, dict) and key == TABLE:
        for name, inner in value.items():
            if isinstance(inner, dict | list):
                raise ConfigError(_found(where, f"{key}, {name}", inner, expected))
            _check(name, inner, f"{where}, {key}", expected)
    elif isinstance(value, list) and key in BY_NAME and BY_NAME[key].several:
        for inner in value:
            if isinstance(inner, dict | list):
                raise ConfigError(_found(where, f"an item of {key}", inner, expected))
            _check(key, inner, where, expected)
    elif isinstance(value, dict | list) or len(key) > MOST_KEY:
        raise ConfigError(_found(where, key, value, expected))
    elif isinstance(value, str) and len(value) > MOST_TEXT:
        raise ConfigError(
            f"{where}: {_short(key)} is a text of {len(value)} characters; expected at most "
            f"{MOST_TEXT}: shorten it"
        )
    # TOML's whole numbers have 64 bits; Python would take a million digits, and not print them.
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ConfigError(
            f"{where}: {_short(key)} is a number of {value.bit_length()} bits; expected at most "
            "64: change it"
        )


def _found(where: str, key: str, value: Any, expected: str) -> str:
    kinds: dict[type, str] = {dict: "a table", list: "an array"}
    kind = kinds.get(type(value), "a value")
    return f"{where}: found {kind} under {_short(key)}; expected {expected}: change it"


def _short(key: str) -> str:
    return ascii(key) if len(key) <= MOST_KEY else ascii(key[:30]) + "..."
