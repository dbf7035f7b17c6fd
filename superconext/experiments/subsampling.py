"""Subsampling and noise: the training rows of a draw, and damage to them.

A draw is named by its kind (see `KINDS`) and a number, and a split by the draw and the seed. Dev
and test rows are never damaged. Draws that take fewer rows are nested: what a seed draws as
`rows20` is part of what it draws as `rows100` (but for a row where rounding takes one from a class
as another gets two), so that a curve shows what more rows do, not what other rows do. With `shots`
dev rows may be drawn too, from the other end of the same shuffle, as many as training rows: a
system with 8 labels a class must not choose its settings on hundreds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from superconext.core.errors import ConfigError, DataError
from superconext.data.duplicates import Rows, keys_of

Labelled = tuple[list[str], list[str]]

#: Rows of the rarest class under `rho` (LaCon, section 4.2).
RAREST = 32

#: Fewest rows of a class that any draw leaves: a contrastive loss needs a positive.
_FEWEST = 2


@dataclass(frozen=True)
class Kind:
    """title: what draws of the kind are, `{}` is the number. least, most: limits of the number.
    takes_fewer: whether some of the rows are taken, rather than all damaged. draws_dev: whether as
    many dev rows are drawn where none are given."""

    title: str
    least: int = 1
    most: int = 10**9
    takes_fewer: bool = True
    draws_dev: bool = False


KINDS = {
    "shots": Kind("{} rows of each class", least=_FEWEST, draws_dev=True),
    "rows": Kind("{} rows, classes as they come", least=2 * _FEWEST),
    "share": Kind("{} percent of the rows", most=100),
    "rho": Kind("imbalance 1:{}"),
    "labels": Kind("{} percent of the labels wrong", most=100, takes_fewer=False),
    "words": Kind("{} percent of the words damaged", most=100, takes_fewer=False),
    "mteb": Kind(
        "{} rows of each class and the first 2,048 test rows, as MTEB takes them",
        least=_FEWEST,
        draws_dev=True,
    ),
}

#: MTEB's seed, and how many test rows its tasks of tweets have at most.
_MTEB_SEED, _MTEB_TEST = 42, 2048

_NAME = re.compile(rf"({'|'.join(KINDS)})(\d+)")
#: The split in which a tenth of the rows is test for all seeds, and of the others a tenth dev by
#: the seed: of values that are chosen on dev, no seed's dev rows may be another's test rows.
TEST_HELD = "held"

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
    def of(self) -> Kind:
        return KINDS[self.kind]

    def describe(self, number: str = "") -> str:
        """What it is, for people; with other words for its number, such as "N"."""
        return self.of.title.format(number or self.amount)


def parse_draw(name: str) -> Draw:
    """A draw by its name. Raises ConfigError."""
    match = _NAME.fullmatch(name)
    if match:
        draw = Draw(match[1], int(match[2]))
        if draw.of.least <= draw.amount <= draw.of.most:
            return draw
    raise ConfigError(
        f"draw {name!r}: expected one of {', '.join(KINDS)} and a number, such as shots16 or "
        "share10: change it"
    )


def draw_of(split: str) -> Draw | None:
    """The draw that a split of this name is; None where all rows are taken as they are."""
    match = _SPLIT.fullmatch(split)
    return Draw(match[1], int(match[2])) if match else None


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
    rest = {name: train_rows for name, train_rows in parts.items() if name != "train"}
    if draw.kind == "labels":
        return {"train": (list(texts), wrong_labels(labels, draw.amount, seed)), **rest}
    if draw.kind == "words":
        return {"train": (damaged_words(texts, draw.amount, seed), list(labels)), **rest}
    if draw.kind == "mteb":
        train_rows, dev_rows = mteb_rows(labels, draw.amount, seed)
        test_texts, test_labels = rest["test"]
        rest["test"] = test_texts[:_MTEB_TEST], test_labels[:_MTEB_TEST]
        if not own_dev:
            rest["dev"] = pick(parts["train"], dev_rows)
        return {"train": pick(parts["train"], train_rows), **rest}
    dev = draw.of.draws_dev and not own_dev
    train_rows, dev_rows = draw_rows(parts["train"], draw, seed, dev=dev)
    if dev:
        rest["dev"] = pick(parts["train"], dev_rows)
    return {"train": pick(parts["train"], train_rows), **rest}


def draw_rows(rows: Labelled, draw: Draw, seed: int, *, dev: bool = False) -> tuple[Rows, Rows]:
    """Sorted rows to train on and to choose on, of a draw that takes fewer.

    A text is drawn once however often its copies (`duplicates.text_keys`) stand there, and never
    if they have two labels.

    Args:
        dev: whether as many dev rows are drawn; else there are none.

    Raises DataError where a class has too few texts.
    """
    keys, labels = keys_of(rows[0]), rows[1]
    drawable = distinct_rows(keys, labels)
    counts = counts_of(draw, {label: len(places) for label, places in drawable.items()})
    train, dev_rows = [], []
    # Shuffled are the distinct texts, of which those that only look distinct are then left out.
    for index, (label, places) in enumerate(distinct_rows(*rows).items()):
        count, kept = counts[label], drawable[label]
        needed = 2 * count if dev else count
        if len(kept) < needed:
            more, advice = f"{draw}", "leave this draw out, or give more rows"
            if draw.kind == "shots":
                more = f"{draw.amount} shots" + " and as many dev rows" * dev
                enough = dev and all(len(of) >= count for of in drawable.values())
                advice = "draw fewer" + ", or choose on a file of its own (fewshot --dev)" * enough
            raise DataError(
                f"class {label!r} has {len(kept)} distinct texts to draw from; expected "
                f"{needed} for {more}: {advice}"
            )
        # The legacy generator: its stream is frozen, so a seed draws the same everywhere.
        order = np.array(places)[np.random.RandomState([seed, index]).permutation(len(places))]
        order = order[np.isin(order, kept)]
        train.append(order[:count])
        dev_rows.append(order[len(order) - count :] if dev else order[:0])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(dev_rows))


def mteb_rows(labels: Sequence[str], count: int, experiment: int) -> tuple[Rows, Rows]:
    """The rows that MTEB's experiment of this number, from 0, is trained on, in its order; and as
    many that come after them, for whoever chooses something (MTEB does not).

    Each experiment shuffles the order that the one before it left, with the same seed, and takes
    the first rows of each class; rows are taken as they stand, copies too.

    Raises DataError where a class has too few rows.

    Source: `AbsTaskClassification` of the package mteb 2.26.
    """
    shuffled = np.random.RandomState(_MTEB_SEED).permutation(len(labels))
    order = np.arange(len(labels))
    for _ in range(experiment + 1):
        order = order[shuffled]
    train: list[int] = []
    dev: list[int] = []
    taken = dict.fromkeys(labels, 0)
    for row in order.tolist():
        label = labels[row]
        if taken[label] < 2 * count:
            (train if taken[label] < count else dev).append(row)
            taken[label] += 1
    for label, rows in taken.items():
        if rows < count:
            raise DataError(
                f"class {label!r} has {rows} rows; expected {count} for mteb{count}: give more rows"
            )
    return np.array(train), np.array(dev, dtype=np.int64)


def expected_overlap(rows: Labelled, draw: Draw, counts: Mapping[str, int] | None = None) -> float:
    """The share of a draw's training rows that another draw is expected to have too.

    counts: of the classes in a draw, where it is made of a part of the rows.
    """
    drawable = distinct_rows(keys_of(rows[0]), rows[1])
    sizes = {label: len(places) for label, places in drawable.items()}
    if draw.kind == "mteb":  # takes rows as they stand
        sizes = Counter(rows[1])
    counts = counts or counts_of(draw, sizes)
    shared = sum(count * min(1.0, count / sizes[label]) for label, count in counts.items())
    return float(shared / sum(counts.values()))


def counts_of(draw: Draw, sizes: Mapping[str, int]) -> dict[str, int]:
    """How many texts of each class a draw takes, of those there are."""
    if draw.kind in ("shots", "mteb"):
        return dict.fromkeys(sizes, draw.amount)
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
    noisy = list(labels)
    for row in draw.permutation(len(noisy))[: round(len(noisy) * percent / 100)]:
        others = [name for name in names if name != labels[row]]
        noisy[row] = others[draw.randint(len(others))]
    return noisy


def damaged_words(texts: Sequence[str], percent: int, seed: int) -> list[str]:
    """The texts with each word damaged at this rate: dropped, replaced by a word drawn from
    all texts, or swapped with the next one, each as likely. One word at least is left."""
    draw = np.random.RandomState([seed, _STREAMS["words"]])
    pool = [word for text in texts for word in text.split()]
    damaged = []
    for text in texts:
        words = text.split()
        if not words:
            damaged.append(text)
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
        damaged.append(" ".join(kept or words[:1]))
    return damaged


def pick(rows: Labelled, places: Rows) -> Labelled:
    """The texts and labels at these places."""
    texts, labels = rows
    return [texts[row] for row in places], [labels[row] for row in places]


def distinct_rows(texts: Sequence[str], labels: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each class, classes sorted, that may be drawn: the first of equal texts, or
    keys, none of one with several labels."""
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
