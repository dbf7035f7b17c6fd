"""Which training rows does a protocol want, or what damage to them?

A draw is named by its kind and a number, and a split by the draw and the seed:

    shots16   16 distinct texts of each class
    rows100   100 distinct texts, the classes in their own proportions
    share10   10 percent of them
    rho5      32 texts of the rarest class, 5 x 32 of the largest, the others between
    labels20  20 percent of the training rows get another label
    words20   20 percent of the words of the training rows are dropped, replaced or swapped

Dev and test rows are never damaged. Draws that take fewer rows are nested: what a seed draws
as `rows20` is part of what it draws as `rows100`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from superconext.core.errors import ConfigError, DataError
from superconext.data.duplicates import Rows
from superconext.experiments.shots import distinct_rows, draw_shots, overlap

Labelled = tuple[list[str], list[str]]

#: What each kind is, in words; `{}` is the number.
KINDS = {
    "shots": "{} rows of each class",
    "rows": "{} rows, classes as they come",
    "share": "{} percent of the rows",
    "rho": "imbalance 1:{}",
    "labels": "{} percent of the labels wrong",
    "words": "{} percent of the words damaged",
}
_DAMAGE = ("labels", "words")

#: Rows of the rarest class under `rho` (LaCon, section 4.2).
RAREST = 32

#: Fewest rows of a class that any draw leaves: a contrastive loss needs a positive.
_FEWEST = 2

_NAME = re.compile(rf"({'|'.join(KINDS)})(\d+)")
_SPLIT = re.compile(rf"({'|'.join(KINDS)})(\d+)-\d+")
#: Streams of their own, so that damage does not follow the draw of the same seed.
_STREAMS = {"labels": 1001, "words": 1002}


@dataclass(frozen=True)
class Draw:
    """kind: of KINDS. amount: its number."""

    kind: str
    amount: int

    def __str__(self) -> str:
        return f"{self.kind}{self.amount}"

    @property
    def takes_fewer(self) -> bool:
        """Whether it takes some of the rows, rather than damaging all of them."""
        return self.kind not in _DAMAGE

    def told(self) -> str:
        """What it is, for people."""
        return KINDS[self.kind].format(self.amount)


def parse_draw(name: str) -> Draw:
    """A draw by its name. Raises ConfigError."""
    found = _NAME.fullmatch(name)
    if found:
        draw = Draw(found[1], int(found[2]))
        least = {"shots": _FEWEST, "rows": 2 * _FEWEST}.get(draw.kind, 1)
        most = 100 if draw.kind in ("share", *_DAMAGE) else 10**9
        if least <= draw.amount <= most:
            return draw
    raise ConfigError(
        f"draw {name!r}: expected one of {', '.join(KINDS)} and a number, such as shots16 or "
        "share10: change it"
    )


def draw_of(split: str) -> Draw | None:
    """The draw that a split of this name is; None where all rows are taken as they are."""
    found = _SPLIT.fullmatch(split)
    return Draw(found[1], int(found[2])) if found else None


def drawn(
    parts: Mapping[str, Labelled], draw: Draw, seed: int, *, own_dev: bool
) -> dict[str, Labelled]:
    """The parts with the training rows drawn or damaged.

    Args:
        parts: "train" and "test", and "dev" unless `shots` is to draw it.
        own_dev: whether the dev rows are kept; else `shots` draws as many as it trains on.

    Raises DataError where a class has too few rows.
    """
    texts, labels = parts["train"]
    rest = {name: rows for name, rows in parts.items() if name != "train"}
    if draw.kind == "labels":
        return {"train": (list(texts), wrong_labels(labels, draw.amount, seed)), **rest}
    if draw.kind == "words":
        return {"train": (damaged_words(texts, draw.amount, seed), list(labels)), **rest}
    if draw.kind == "shots":
        rows, held = draw_shots(texts, labels, draw.amount, seed, dev=not own_dev)
        if not own_dev:
            rest["dev"] = _pick(parts["train"], held)
        return {"train": _pick(parts["train"], rows), **rest}
    return {"train": _pick(parts["train"], _counted_rows(texts, labels, draw, seed)), **rest}


def expected_overlap(rows: Labelled, draw: Draw, *, own_dev: bool) -> float:
    """The share of a draw's training rows that another draw is expected to have too."""
    if draw.kind == "shots":
        return overlap(*rows, draw.amount, dev=not own_dev)
    sizes = {label: len(of) for label, of in distinct_rows(*rows).items()}
    counts = counts_of(draw, sizes)
    shared = sum(count * min(1.0, count / sizes[label]) for label, count in counts.items())
    return float(shared / sum(counts.values()))


def counts_of(draw: Draw, sizes: Mapping[str, int]) -> dict[str, int]:
    """How many texts of each class a draw of `rows`, `share` or `rho` takes."""
    if draw.kind == "rho":
        # Cao et al. (2019): an exponential profile from the largest class to the smallest.
        order = sorted(sizes, key=lambda label: (-sizes[label], label))
        last = max(1, len(order) - 1)
        return {
            label: round(RAREST * draw.amount ** ((last - place) / last))
            for place, label in enumerate(order)
        }
    total = sum(sizes.values())
    wanted = draw.amount if draw.kind == "rows" else round(total * draw.amount / 100)
    exact = {label: wanted * size / total for label, size in sizes.items()}
    counts = {label: max(_FEWEST, int(share)) for label, share in exact.items()}
    for label in sorted(exact, key=lambda label: (int(exact[label]) - exact[label], label)):
        if sum(counts.values()) < wanted and counts[label] < exact[label]:
            counts[label] += 1
    return counts


def wrong_labels(labels: Sequence[str], percent: int, seed: int) -> list[str]:
    """The labels with a share of the rows given one of the other labels, each as likely.

    Raises DataError where there is no other label.
    """
    names = sorted(set(labels))
    if len(names) < 2:
        raise DataError("found one class; expected two or more to confuse: add rows")
    draw = np.random.RandomState([seed, _STREAMS["labels"]])
    found = list(labels)
    for row in draw.permutation(len(found))[: round(len(found) * percent / 100)]:
        others = [name for name in names if name != labels[row]]
        found[row] = others[draw.randint(len(others))]
    return found


def damaged_words(texts: Sequence[str], percent: int, seed: int) -> list[str]:
    """The texts with each word damaged at this rate: dropped, replaced by a word drawn from
    all texts, or swapped with the next one, each as likely. One word at least is left."""
    draw = np.random.RandomState([seed, _STREAMS["words"]])
    pool = [word for text in texts for word in text.split()]
    found = []
    for text in texts:
        words = text.split()
        if not words:
            found.append(text)
            continue
        kept: list[str] = []
        place = 0
        while place < len(words):
            word, how = words[place], None
            if draw.random_sample() < percent / 100:
                how = ("drop", "replace", "swap")[draw.randint(3)]
            if how == "replace":
                word = pool[draw.randint(len(pool))]
            if how == "swap" and place + 1 < len(words):
                kept.append(words[place + 1])
                place += 1
            if how != "drop":
                kept.append(word)
            place += 1
        found.append(" ".join(kept or words[:1]))
    return found


def _counted_rows(texts: Sequence[str], labels: Sequence[str], draw: Draw, seed: int) -> Rows:
    rows = distinct_rows(texts, labels)
    sizes = {label: len(of) for label, of in rows.items()}
    counts = counts_of(draw, sizes)
    _check(counts, sizes, draw)
    taken = []
    for index, (label, of) in enumerate(rows.items()):
        # The stream of `draw_shots`: frozen, and the smaller draw begins the larger one.
        order = np.array(of)[np.random.RandomState([seed, index]).permutation(len(of))]
        taken.append(order[: counts[label]])
    return np.sort(np.concatenate(taken))


def _check(counts: Mapping[str, int], sizes: Mapping[str, int], draw: Draw) -> None:
    for label, count in counts.items():
        if count > sizes[label]:
            raise DataError(
                f"class {label!r} has {sizes[label]} distinct texts to draw from; expected "
                f"{count} for {draw}: leave this draw out, or give more rows"
            )


def _pick(rows: Labelled, places: Rows) -> Labelled:
    texts, labels = rows
    return [texts[row] for row in places], [labels[row] for row in places]
