"""Which rows of the vectors does a model need? The others can be left out of its folder.

A bucket of n-grams that no known word falls into was never trained on one: it holds what
it was initialised with. Words the training text lacks can be left out too, all but those
of a text that tells what the model will read; they are then composed of n-grams, as other
unseen words are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors

if TYPE_CHECKING:
    from superconext.fitting.model import Model


@dataclass(frozen=True)
class PruneReport:
    """What was left out, and what that costs.

    words, buckets: rows (before, after). accuracy: on the labelled rows (before, after).
    changed: how many of their labels are another now, of `rows`.
    """

    words: tuple[int, int]
    buckets: tuple[int, int]
    accuracy: tuple[float, float]
    changed: int
    rows: int

    @property
    def loss(self) -> float:
        """Accuracy lost, a fraction; below 0 where the smaller model does better."""
        return self.accuracy[0] - self.accuracy[1]


def prune(
    model: Model,
    texts: Sequence[str],
    labels: Sequence[str],
    expected: Sequence[str] | None = None,
) -> tuple[Model, PruneReport]:
    """A model with the rows that serve, and what it lost.

    Args:
        texts, labels: rows `[N]` to measure the loss on.
        expected: texts such as the model will read; of words outside the training text only
            theirs are kept. None keeps all.
    """
    reserve = model.reserve
    words = list(reserve.words)
    if expected is not None:
        found = {token for text in expected for token in model.tokenizer(text)}
        reserve = reserve.restrict(sorted(found))
        words = sorted({*found, *reserve.words})
    buckets = (0, 0)
    if reserve.subwords is not None:
        used = _used_buckets(reserve.subwords, [*model.vocabulary.words[2:], *words])
        table = np.where(used[:, None], reserve.subwords.buckets, 0)
        buckets = (_filled(reserve.subwords.buckets), _filled(table))
        subwords = SubwordTable(
            table.astype(reserve.subwords.buckets.dtype),
            reserve.subwords.min_n,
            reserve.subwords.max_n,
        )
        reserve = WordVectors(
            reserve.words, reserve.matrix, subwords, name=reserve.name, sha256=reserve.sha256
        )
    small = replace(model, reserve=reserve)
    before, after = (np.array(one.predict(texts)) for one in (model, small))
    truth = np.array(labels)
    report = PruneReport(
        words=(len(model.reserve), len(reserve)),
        buckets=buckets,
        accuracy=(float((before == truth).mean()), float((after == truth).mean())),
        changed=int((before != after).sum()),
        rows=len(truth),
    )
    return small, report


def _used_buckets(table: SubwordTable, words: Sequence[str]) -> np.ndarray:
    """Whether an n-gram of one of the words falls into each bucket, bool `[B]`."""
    used = np.zeros(len(table.buckets), dtype=bool)
    for word in words:
        used[table.hashes(word)] = True
    return used


def _filled(buckets: np.ndarray) -> int:
    return int(buckets.any(axis=1).sum())
