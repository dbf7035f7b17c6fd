"""What each word contributes to the answer of a run, found by leaving it out.

The contribution of a word to a class is the log-odds of the class for the text, less those for
the text without the word, whose probabilities are 1 / C where it was the only one. It holds for
whatever a run predicts with, n-grams included, for it asks nothing but the one rule of prediction.
Two words that say the same hide each other: without one the other still stands.

An encoder reads no more than the first tokens of a long text. What it reads stays so where a word
of it is left out: none moves up. Words that nothing reads are left out; n-grams read them all.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from superconext.core.blank import uniform_for_blank
from superconext.probe.base import Probe
from superconext.text.characters import UNSPACED

#: Texts that are predicted at once, about.
_AT_ONCE = 4096


class Model(Protocol):
    """What is asked of a run's model (`superconext.fitting.model.Model`)."""

    @property
    def classes(self) -> list[str]: ...
    @property
    def probe(self) -> Probe: ...
    def features(self, texts: Sequence[str]) -> np.ndarray: ...
    def combined(self, texts: Sequence[str], probabilities: np.ndarray) -> np.ndarray: ...
    def probabilities(self, texts: Sequence[str]) -> np.ndarray: ...


_WORD = re.compile(rf"[{UNSPACED}]|[^\s{UNSPACED}]+")


@dataclass(frozen=True)
class Explanation:
    """The answer for one text and what its words do to it.

    label: the predicted class, or the one asked about; a classifier gives it in the type of its
        classes. probability: its own.
    words: (word, contribution) in the order of the text, of those that are read; the contribution
        in units of log-odds; above 0 speaks for the label.
    spans: where each word is in the text, (first, last + 1).
    """

    text: str
    label: str | int | float
    probability: float
    words: list[tuple[str, float]]
    spans: list[tuple[int, int]]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        words = [{"word": word, "contribution": round(value, 4)} for word, value in self.words]
        return {
            "text": self.text,
            "label": self.label,
            "probability": round(self.probability, 4),
            "words": words,
        }


def explain(
    model: Model, texts: Sequence[str], labels: Sequence[str | None] = ()
) -> list[Explanation]:
    """An explanation of each text. Characters of scripts without spaces count as words.

    labels: the class to explain of each text; by default, or for None, the predicted one.
    """
    labels = labels or [None] * len(texts)
    found: list[Explanation] = []
    begin = size = 0
    for end, text in enumerate(texts, 1):
        size += 1 + len(word_spans(text))
        if size >= _AT_ONCE or end == len(texts):
            found += _explained(model, texts[begin:end], labels[begin:end])
            begin, size = end, 0
    return found


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where each word of a text stands: (first, last + 1)."""
    return [match.span() for match in _WORD.finditer(text)]


def read_until(model: Model, text: str) -> int:
    """Where the last word that the encoder of a model reads of a text ends; the text's length
    where it reads all."""
    indexer = getattr(model, "indexer", None)
    if indexer is None or not indexer.cut([indexer.tokenizer(text)]):
        return len(text)
    ends = [last for _, last in word_spans(text)]

    def tokens(words: int) -> int:
        return int(indexer.store([text[: ends[words]]]).lengths[0])

    return ends[bisect_left(range(len(ends) - 1), tokens(len(ends) - 1), key=tokens)]


def _explained(
    model: Model, texts: Sequence[str], labels: Sequence[str | None]
) -> list[Explanation]:
    ends = [read_until(model, text) for text in texts]
    everything = getattr(model, "ensemble", None) is not None
    spans = [
        [(first, last) for first, last in word_spans(text) if everything or first < end]
        for text, end in zip(texts, ends, strict=True)
    ]
    asked: list[str] = []
    heads: list[str] = []  # what the encoder reads of each
    for text, end, places in zip(texts, ends, spans, strict=True):
        for first, last in [(len(text), len(text)), *places]:
            asked.append(text[:first] + text[last:])
            heads.append(text[: min(first, end)] + text[last:end])
    if asked == heads:
        shares = model.probabilities(asked)
    else:
        shares = model.combined(asked, model.probe.probabilities(model.features(heads)))
    shares = np.clip(uniform_for_blank(asked, shares), 1e-12, 1 - 1e-12)
    odds = np.log(shares) - np.log1p(-shares)
    found, at = [], 0
    for text, places, label in zip(texts, spans, labels, strict=True):
        best = int(shares[at].argmax()) if label is None else model.classes.index(label)
        change = odds[at, best] - odds[at + 1 : at + 1 + len(places), best]
        words = [
            (text[first:last], float(value))
            for (first, last), value in zip(places, change, strict=True)
        ]
        found.append(Explanation(text, model.classes[best], float(shares[at, best]), words, places))
        at += 1 + len(places)
    return found


def nearest(rows: np.ndarray, others: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers `[N, k]` and cosines of the `count` rows of `[M, d]` nearest to each of `[N, d]`."""
    count = min(count, len(others))
    unit = _unit(others)
    found, cosines = [], []
    for start in range(0, len(rows), 1024):
        similar = _unit(rows[start : start + 1024]) @ unit.T
        some = np.argpartition(-similar, count - 1, axis=1)[:, :count]
        order = np.argsort(-np.take_along_axis(similar, some, axis=1), axis=1, kind="stable")
        some = np.take_along_axis(some, order, axis=1)
        found.append(some)
        cosines.append(np.take_along_axis(similar, some, axis=1))
    return np.concatenate(found), np.concatenate(cosines)


def _unit(rows: np.ndarray) -> np.ndarray:
    rows = np.nan_to_num(rows.astype(np.float32))
    unit: np.ndarray = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return unit
