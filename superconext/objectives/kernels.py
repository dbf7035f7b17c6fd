"""Pairwise losses of large batches: rows in chunks, the gradient formed with the loss.

A loss of all N x N pairs needs of each anchor i only two numbers and two distributions::

    p_i = log sum over its positives of exp(s_ij),     softmax over its positives
    n_i = log sum over its negatives of exp(s_ij),     softmax over its negatives

The loss is a scalar, so its gradient can be formed as soon as a chunk of rows is known, and the
chunk forgotten: memory is b N + N d for chunks of b rows instead of several N x N. That takes
four products of 2 b N d per chunk where autograd takes three, but far fewer passes over N x N
numbers, which cost more than the products when d is small.

Source: the tiling of Inf-CL (Cheng et al., 2024), for losses with many positives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

#: Elements of one chunk of similarities (16 MiB in float32).
CHUNK = 1 << 22
#: Classes of fewer rows in a batch than this share their chunks.
_SMALL_CLASS = 32
#: Stands for minus infinity where a whole row may be masked.
_FAR = -1e30


@dataclass
class Anchors:
    """What a loss makes of n anchors' rows.

    loss: their share of the loss, `[n]`.
    negative: of the softmax over the negatives in dloss/ds, `[n]`.
    positive: of the softmax over the positives, `[n]`.
    """

    loss: Tensor
    negative: Tensor
    positive: Tensor


#: From p and n (see above) of the anchors with the given places in the batch, `[n]` each.
Rule = Callable[[Tensor, Tensor, Tensor], Anchors]


class Choose(Protocol):
    """Which negatives stay, from cosines `[n, N]` and negatives `[n, N]` of some anchors."""

    def __call__(self, cosine: Tensor, negative: Tensor, rows: Tensor) -> Tensor: ...


@dataclass
class Pairing:
    """The pairs of a batch, summarised.

    order: rows sorted by class, `[N]`. starts: where each class begins in it, then N.
    positives, negatives: of each row (in the batch's order), how many it has, `[N]`.
    same: pairs of places in `order` (each both ways) that hold the same sentence, `[2, R]`,
        without those of a row with itself.
    """

    order: Tensor
    starts: list[int]
    positives: Tensor
    negatives: Tensor
    same: Tensor


def pairing(labels: Tensor, ids: Tensor) -> Pairing:
    """Summarise labels `[N]` and sentence ids `[N]` (see `similarity.pairs`)."""
    order = torch.argsort(labels, stable=True)
    _, group, counts = torch.unique(labels[order], return_inverse=True, return_counts=True)
    starts = [0, *torch.cumsum(counts, 0).tolist()]
    size = counts[group]
    # Rows of one class and one sentence: adjacent once sorted by sentence within the class.
    _, sentence = torch.unique(ids[order], return_inverse=True)
    key = group * len(labels) + sentence
    _, twin, twins = torch.unique(key, return_inverse=True, return_counts=True)
    positives, negatives = torch.empty_like(size), torch.empty_like(size)
    positives[order] = size - twins[twin]
    negatives[order] = len(labels) - size
    return Pairing(order, starts, positives, negatives, _twins(twin, twins))


def _twins(twin: Tensor, counts: Tensor) -> Tensor:
    """All ordered pairs of different places with equal `twin`, `[2, R]`."""
    if int(counts.max()) == 1:
        return twin.new_empty(2, 0)
    places = torch.argsort(twin, stable=True)
    count = counts[twin[places]]
    first = torch.repeat_interleave(places, count)
    begin = (torch.cumsum(counts, 0) - counts)[twin[places]]
    offset = torch.arange(len(first), device=twin.device)
    offset = offset - torch.repeat_interleave(torch.cumsum(count, 0) - count, count)
    second = places[torch.repeat_interleave(begin, count) + offset]
    different = first != second
    return torch.stack([first[different], second[different]])
