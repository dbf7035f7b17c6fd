"""Which texts resemble given ones: two character n-gram models and the odds between them.

One model is of the wanted text, the other of everything else in a collection, which nobody has
labelled. It starts with the lines that are least like the wanted text and is trained again on those
that the odds give to it (learning from positive and unlabelled examples; Liu et al., 2003). Lines
of one source tend to be of one language, so each source has odds of its own. A collection is wider
than the labelled text, so a line is dropped on strong evidence alone (`_EVIDENCE`).

A model is interpolated from n-grams of one to five characters, a count c and the lower order p'
giving (c + A p') / (n + A) with n the count of the context (MacKay and Peto, 1995).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ORDER = 5
_SLOTS = 1 << 21  # of the hash table of counts of each order
_ADDED = 4.0  # A of the equation
_SEED_SHARE = 0.1  # of the wanted text is less like itself than the first lines of the others
_ROUNDS = 3
_FEWEST = 50  # lines that make a model
_PER_LETTER = 0.3  # n-grams overlap: evidence of a letter that counts
_EVIDENCE = 6.0  # log odds against a line that drop it
_BATCH = 4096  # texts scored at once
_MOST = 20_000  # wanted texts, and lines of the collection, that are learned from

_NO_LETTERS = re.compile(r"[\W_]+")
_RUN = re.compile(r"(.)\1{2,}")


def letters(text: str) -> str:
    """What the models read of a text: words in lower case, letters three times at most twice."""
    return _RUN.sub(r"\1\1", f" {_NO_LETTERS.sub(' ', text.casefold()).strip()} ")


class CharacterModel:
    """Probabilities of characters given the four before them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.counts = [np.zeros(_SLOTS, dtype=np.int32) for _ in range(_ORDER)]
        for begin in range(0, len(texts), _BATCH):
            for count, slots in zip(
                self.counts, _slots(texts[begin : begin + _BATCH]), strict=True
            ):
                count += np.bincount(slots, minlength=_SLOTS).astype(np.int32)
        self.total = int(self.counts[0].sum())

    def bits(self, texts: Sequence[str]) -> Floats:
        """Mean log2 probability of the characters of each text, `[N]`."""
        means = np.zeros(len(texts))
        for begin in range(0, len(texts), _BATCH):
            part = texts[begin : begin + _BATCH]
            sizes = np.array([len(text) for text in part])
            slots = _slots(part)
            chance = (self.counts[0][slots[0]] + 1) / (self.total + _ORDER * 100)
            starts = (np.cumsum(sizes) - sizes)[sizes > 0]
            for order in range(1, _ORDER):
                seen = self.counts[order][slots[order]]
                context = np.roll(self.counts[order - 1][slots[order - 1]], 1)
                context[starts] = 0  # a text begins with nothing before it
                context = np.maximum(context, seen)  # slots are shared by chance
                chance = (seen + _ADDED * chance) / (context + _ADDED)
            owners = np.repeat(np.arange(len(part)), sizes)
            sums = np.bincount(owners, np.log2(chance), len(part))
            means[begin : begin + len(part)] = sums / np.maximum(sizes, 1)
        return means


def _slots(texts: Sequence[str]) -> list[NDArray[np.int64]]:
    """Slots of the n-grams that end at each character of all texts, for n from 1 to `_ORDER`."""
    pad = " " * (_ORDER - 1)
    joined = "".join(pad + text for text in texts).encode("utf-32-le", "replace")
    codes = np.frombuffer(joined, dtype="<u4").astype(np.uint64) + np.uint64(1)
    inside = np.ones(len(codes), dtype=bool)
    sizes = np.array([len(text) + len(pad) for text in texts])
    for step in range(len(pad)):
        inside[np.cumsum(sizes) - sizes + step] = False
    slots = []
    hashed = np.zeros(len(codes), dtype=np.uint64)
    for order in range(_ORDER):
        # The n-gram grows to the left: the character `order` places before the last one.
        hashed = (hashed + np.roll(codes, order)) * np.uint64(0x9E3779B97F4A7C15)
        hashed ^= hashed >> np.uint64(29)
        slots.append((hashed[inside] >> np.uint64(8)).astype(np.int64) & (_SLOTS - 1))
    return slots


class Resemblance:
    """What to keep of a collection, by wanted texts.

    Args:
        wanted: texts in the wanted language.
        lines: some lines of each source of the collection.
        unwanted: texts in languages that are not wanted, where there are such.

    Attributes:
        odds: log odds of each source that a line is wanted.
    """

    def __init__(
        self,
        wanted: Sequence[str],
        lines: Mapping[str, Sequence[str]],
        unwanted: Sequence[str] = (),
    ) -> None:
        draw = np.random.RandomState(0)
        wanted = [letters(wanted[i]) for i in draw.permutation(len(wanted))[:_MOST]]
        unwanted = [letters(unwanted[i]) for i in draw.permutation(len(unwanted))[:_MOST]]
        texts = [letters(line) for some in lines.values() for line in some]
        sizes = np.array([len(some) for some in lines.values()])
        sources = np.repeat(np.arange(len(lines)), sizes)
        halves = [wanted[side::2] for side in (0, 1)]
        own = np.concatenate(
            [CharacterModel(halves[1 - side]).bits(halves[side]) for side in (0, 1)]
        )
        score = CharacterModel(wanted).bits(texts) - np.quantile(own, _SEED_SHARE)
        sides = draw.randint(0, 2, len(texts))
        self.odds = dict.fromkeys(lines, 0.0)
        self._models: tuple[CharacterModel, CharacterModel] | None = None
        for _ in range(_ROUNDS):
            others = [
                [texts[i] for i in np.flatnonzero((score < 0) & (sides == k))] for k in (0, 1)
            ]
            if min(map(len, others)) + len(unwanted) < _FEWEST:
                return
            # Each half is judged by a model of the other one, or lines would vouch for themselves.
            score = np.empty(len(texts))
            for side in (0, 1):
                models = _balanced(wanted, [*others[1 - side], *unwanted])
                rows = np.flatnonzero(sides == side)
                score[rows] = _difference(models, [texts[row] for row in rows])
        self._models = _balanced(wanted, [*others[0], *others[1], *unwanted])
        weight = score * _weights(texts)
        prior = np.zeros(len(lines))
        for _ in range(20):
            likely = 1 / (1 + np.exp(-np.clip(weight + prior[sources], -30, 30)))
            share = np.bincount(sources, likely, len(lines)) / np.maximum(sizes, 1)
            prior = np.log(np.clip(share, 0.01, 0.99) / np.clip(1 - share, 0.01, 0.99))
        self.odds = dict(zip(lines, prior.tolist(), strict=True))

    def wanted(self, lines: Sequence[str], source: str) -> NDArray[np.bool_]:
        """Which lines of a source to keep, `[N]`; all where the collection has no others."""
        if self._models is None:
            return np.ones(len(lines), dtype=bool)
        texts = [letters(line) for line in lines]
        odds = _difference(self._models, texts) * _weights(texts) + self.odds[source]
        kept: NDArray[np.bool_] = odds > -_EVIDENCE
        return kept


def _balanced(wanted: list[str], others: list[str]) -> tuple[CharacterModel, CharacterModel]:
    """Models of as many characters each, for more text alone makes more likely."""
    size = min(sum(map(len, wanted)), sum(map(len, others)))
    return CharacterModel(_first(wanted, size)), CharacterModel(_first(others, size))


def _first(texts: list[str], size: int) -> list[str]:
    order = np.random.RandomState(1).permutation(len(texts))
    ends = np.cumsum([len(texts[i]) for i in order])
    return [texts[i] for i in order[: int(np.searchsorted(ends, size)) + 1]]


def _difference(models: tuple[CharacterModel, CharacterModel], texts: list[str]) -> Floats:
    difference: Floats = models[0].bits(texts) - models[1].bits(texts)
    return difference


def _weights(texts: list[str]) -> Floats:
    return np.array([len(text) for text in texts]) * np.log(2) * _PER_LETTER
