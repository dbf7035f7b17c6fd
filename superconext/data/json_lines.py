"""What does one line of a JSON lines file hold?"""

from __future__ import annotations

import json
import re
from typing import Any

from superconext.core.errors import DataError
from superconext.data.source import shown

_DECODER = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=lambda _: None, strict=False
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def json_record(line: str, source: str, number: int) -> dict[str, Any]:
    """The object on one line. Numbers stay as spelt; other constants become None."""
    try:
        record = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep"
        raise DataError(
            f"{source}, line {number}: not valid JSON ({reason}), expected one object a "
            "line: correct the line"
        ) from None
    if not isinstance(record, dict):
        raise DataError(
            f"{source}, line {number}: found a JSON {_json_type(record)}, expected one object "
            'a line such as {"text": "...", "label": "..."}: write each record on its own line'
        )
    return record


def json_value(record: dict[str, Any], key: str, source: str, number: int) -> str:
    """The text or number under a key, as text."""
    if key not in record:
        found = ", ".join(shown(name, 24) for name in list(record)[:8]) or "none"
        raise DataError(
            f"{source}, line {number}: no key {shown(key)}, found {found}, expected the keys "
            "of the first record: complete the record or remove it"
        )
    value = record[key]
    if not isinstance(value, str):
        raise DataError(
            f"{source}, line {number}: {shown(key)} is a JSON {_json_type(value)}, expected a "
            "string or a number: one text and one label a record"
        )
    # JSON escapes can spell what no UTF-8 file can hold.
    if "\0" in value or (not value.isascii() and _SURROGATE.search(value)):
        raise DataError(
            f"{source}, line {number}: found an escaped NUL or half a surrogate pair, "
            "expected text: correct the escape or remove the line"
        )
    return value


def _json_type(value: object) -> str:
    names = {bool: "boolean", list: "array", dict: "object", str: "string or number"}
    return names.get(type(value), "null or NaN")
