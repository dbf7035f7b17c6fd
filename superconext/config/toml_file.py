"""A TOML document from anybody: read in bounded time and memory, whatever it holds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from superconext.core.errors import ConfigError

#: Bytes of a document. The longest sane one, a hundred systems, has a tenth of it.
MOST_BYTES = 1 << 18

#: Dots on a line that is no comment. A parser's time grows with the square of a dotted key.
MOST_DOTS = 64

#: Characters of a key and of a value.
MOST_KEY, MOST_TEXT = 100, 4096


def read_toml(path: Path, expected: str) -> dict[str, Any]:
    """The document in a file.

    Args:
        expected: what it should hold, for messages.

    Raises ConfigError naming the file, and the line where one is at fault.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
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


def _check(key: str, value: Any, where: str, expected: str) -> None:
    """Raise ConfigError unless it is one value, or an array of tables of single values."""
    if isinstance(value, list) and value and all(isinstance(table, dict) for table in value):
        for number, table in enumerate(value, 1):
            for name, inner in table.items():
                if isinstance(inner, dict | list):
                    raise ConfigError(_found(where, f"{key} {number}, {name}", inner, expected))
                _check(name, inner, f"{where}, {key} {number}", expected)
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
