"""The model card's inputs: data files, class counts and word vectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from superconext.report.facts import Facts, look, number, text_of
from superconext.report.table import clean, markdown

_SPLITS = ("train", "dev", "test")


def vectors(facts: Facts) -> str:
    """The word vectors the encoder starts from, in one line."""
    name = text_of(_file_name(look(facts, "vectors", "name")))
    dimension = number(look(facts, "vectors", "dimension"))
    source = text_of(look(facts, "vectors", "trained_on"))
    if not name and not source:
        return "<!-- Which word vectors does it start from? Not recorded. -->"
    parts = [f"Word vectors: {name or 'unnamed'}"]
    if dimension is not None:
        parts.append(f"{dimension:g} dimensions")
    parts.append(f"trained on {source}" if source else "trained on <!-- what? not recorded -->")
    return ", ".join(parts) + "."


def data(facts: Facts) -> str:
    """Files, row counts and hashes, then the rows of each class in each split."""
    splits = [name for name in _SPLITS if isinstance(look(facts, "data", name), Mapping)]
    if not splits:
        return "<!-- Which files was it trained and judged on? Not recorded. -->"
    files = [
        {
            "split": name,
            "file": _file_name(look(facts, "data", name, "file")),
            "rows": _whole(look(facts, "data", name, "rows")),
            "SHA-256": clean(str(look(facts, "data", name, "sha256") or ""))[:16] or None,
        }
        for name in splits
    ]
    tables = [markdown(files, ("split", "file", "rows", "SHA-256"))]
    found = {name: look(facts, "data", name, "classes") for name in splits}
    counts = {name: given for name, given in found.items() if isinstance(given, Mapping)}
    names = list(dict.fromkeys(label for given in counts.values() for label in given))
    if names:
        rows = [
            {"class": str(label), **{s: _whole(given.get(label, 0)) for s, given in counts.items()}}
            for label in names
        ]
        tables.append("Rows of each class:")
        tables.append(markdown(rows, ("class", *counts)))
    tables.append("(The hash is cut to its first 16 digits; `manifest.json` has it whole.)")
    return "\n\n".join(tables)


def _file_name(given: Any) -> str | None:
    """The last part alone: folder names of the author's machine are nobody's business."""
    if not isinstance(given, str) or not clean(given):
        return None
    return re.split(r"[/\\]", clean(given).rstrip("/\\"))[-1] or None


def _whole(given: Any) -> int | None:
    value = number(given)
    return None if value is None else int(value)
