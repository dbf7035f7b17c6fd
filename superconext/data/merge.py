"""Merging of two labelled sets: every text once, and a list of conflicting labels.

Texts are the same where they are but for white space, which files without quoting lose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from superconext.data.dataset import Dataset


@dataclass
class Merged:
    """The rows of both sets, those of the old one first.

    rows: (label, text).
    conflicts: of each text with several labels its `text` and, for each label, where it stands
        (`old:line`, `new:line`) under `labels`.
    repeated: rows left out because their text stands before with the same label.
    replaced: rows left out because the other set decides.
    """

    rows: list[tuple[str, str]] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    repeated: int = 0
    replaced: int = 0


def merge(old: Dataset, new: Dataset, keep: str = "both") -> Merged:
    """One set of two.

    keep: which label a text has that is labelled otherwise in the other set: those of "both" (it
        stands once with each), of "old" or of "new".
    """
    labels: dict[str, dict[str, list[str]]] = {}
    sets: dict[str, set[str]] = {}
    for name, label, _, key, line in _rows(old, new):
        labels.setdefault(key, {}).setdefault(label, []).append(f"{name}:{line}")
        sets.setdefault(key, set()).add(name)
    merged = Merged()
    shown: set[str] = set()
    written: set[tuple[str, str]] = set()
    for name, label, text, key, _ in _rows(old, new):
        torn = len(labels[key]) > 1
        if torn and key not in shown:
            shown.add(key)
            merged.conflicts.append({"text": text, "labels": labels[key]})
        if torn and keep in sets[key] and name != keep:
            merged.replaced += 1
        elif (key, label) in written:
            merged.repeated += 1
        else:
            written.add((key, label))
            merged.rows.append((label, text))
    return merged


def _rows(old: Dataset, new: Dataset) -> Iterator[tuple[str, str, str, str, int]]:
    for name, part in (("old", old), ("new", new)):
        for row, (label, text) in enumerate(zip(part.labels, part.texts, strict=True)):
            line = part.lines[row] if len(part.lines) else row + 1
            yield name, label, text, " ".join(text.split()), line
