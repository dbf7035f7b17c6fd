"""Which few rows of each class does a seed draw?

Draws are nested: what a seed draws at 4 shots is part of what it draws at 8, so that a
curve over shots shows what more rows do, not what other rows do. Dev rows are taken from
the other end of the same shuffle, as many as training rows: a system that is told to make
do with 8 labels a class must not choose its settings on hundreds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from superconext.core.errors import DataError
from superconext.data.duplicates import Rows

_SPLIT = re.compile(r"shots(\d+)-\d+")


def split_name(shots: int, seed: int) -> str:
    """What the draw is called."""
    return f"shots{shots}-{seed}"


def shots_of(split: str) -> int | None:
    """How many rows of each class a split of this name draws; None where it draws none."""
    found = _SPLIT.fullmatch(split)
    return int(found[1]) if found else None


def draw_shots(
    texts: Sequence[str], labels: Sequence[str], shots: int, seed: int, *, dev: bool
) -> tuple[Rows, Rows]:
    """Sorted rows to train on and to choose on, `shots` distinct texts of each class.

    Args:
        dev: whether dev rows are drawn too; else there are none.

    A text is drawn once however often it stands there, and never if it has two labels.
    Raises DataError where a class has too few.
    """
    train, held = [], []
    for index, rows in enumerate(_drawable(texts, labels, shots, dev).values()):
        # The legacy generator: its stream is frozen, so a seed draws the same everywhere.
        order = np.array(rows)[np.random.RandomState([seed, index]).permutation(len(rows))]
        train.append(order[:shots])
        held.append(order[len(order) - shots :] if dev else order[:0])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(held))


def overlap(texts: Sequence[str], labels: Sequence[str], shots: int, *, dev: bool) -> float:
    """The share of a draw's training rows that another draw is expected to have too."""
    sizes = [len(rows) for rows in _drawable(texts, labels, shots, dev).values()]
    return float(np.mean([shots / size for size in sizes]))


def distinct_rows(texts: Sequence[str], labels: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each class, classes sorted, that may be drawn: the first of equal texts,
    none of a text with several labels."""
    first: dict[str, int] = {}
    several = set()
    for row, text in enumerate(texts):
        if labels[first.setdefault(text, row)] != labels[row]:
            several.add(text)
    rows: dict[str, list[int]] = {label: [] for label in sorted(set(labels))}
    for text, row in first.items():
        if text not in several:
            rows[labels[row]].append(row)
    return rows


def _drawable(
    texts: Sequence[str], labels: Sequence[str], shots: int, dev: bool
) -> dict[str, list[int]]:
    """The same, with enough rows of each class for a draw."""
    rows = distinct_rows(texts, labels)
    needed = 2 * shots if dev else shots
    for label, found in rows.items():
        if len(found) < needed:
            more = f"{shots} shots and as many dev rows" if dev else f"{shots} shots"
            advice = "give fewer --shots, or rows to choose on with --dev" if dev else "give fewer"
            raise DataError(
                f"class {label!r} has {len(found)} distinct texts to draw from; expected {needed} "
                f"for {more}: {advice}"
            )
    return rows
