"""A smaller model for export: without vectors that it does not need, and what that costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

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
    small = replace(model, indexer=model.indexer.pruned(expected))
    sizes = [one.indexer.sizes() for one in (model, small)]
    before, after = (np.array(one.predict(texts)) for one in (model, small))
    truth = np.array(labels)
    report = PruneReport(
        words=(sizes[0].get("words", 0), sizes[1].get("words", 0)),
        buckets=(sizes[0].get("buckets", 0), sizes[1].get("buckets", 0)),
        accuracy=(float((before == truth).mean()), float((after == truth).mean())),
        changed=int((before != after).sum()),
        rows=len(truth),
    )
    return small, report
