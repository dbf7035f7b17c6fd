"""The pairs of a batch without N x N masks: rows sorted by class, and sums over whole classes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

#: A class of fewer rows is small, a batch of fewer classes has few: what pays, differs.
SMALL = 32


@dataclass
class Pairing:
    """The pairs of a batch in few numbers.

    order: the rows sorted by class, `[N]`. Everything below is in this order.
    group, sentence: class and (class, sentence) of each row, numbered from 0, `[N]`.
    sizes, copies: rows of each class, and of each sentence.
    """

    order: Tensor
    group: Tensor
    sentence: Tensor
    sizes: Tensor
    copies: Tensor

    @property
    def positives(self) -> Tensor:
        """Rows of the same class but another sentence, for each row, `[N]`."""
        return self.sizes[self.group] - self.copies[self.sentence]

    @property
    def negatives(self) -> Tensor:
        """Rows of other classes, for each row, `[N]`."""
        return len(self.order) - self.sizes[self.group]

    def twins(self) -> Tensor:
        """All ordered pairs of different places that hold the same sentence, `[2, R]`."""
        places = torch.argsort(self.sentence, stable=True)
        count = self.copies[self.sentence[places]]
        begin = (torch.cumsum(self.copies, 0) - self.copies)[self.sentence[places]]
        first = torch.repeat_interleave(places, count)
        run = torch.arange(len(first), device=first.device)
        run = run - torch.repeat_interleave(torch.cumsum(count, 0) - count, count)
        second = places[torch.repeat_interleave(begin, count) + run]
        pairs = torch.stack([first, second])[:, first != second]
        return pairs[:, torch.argsort(pairs[0], stable=True)]


def pairing(labels: Tensor, ids: Tensor) -> Pairing:
    """Of labels `[N]` and sentence ids `[N]`; what is positive says `similarity.pairs`."""
    order = torch.argsort(labels, stable=True)
    group, sizes = _runs(labels[order])
    sorted_ids, place = torch.sort(ids)
    number, copies = _runs(sorted_ids)
    if len(copies) == len(ids):
        return Pairing(order, group, torch.arange(len(ids), device=ids.device), sizes, copies)
    own = torch.empty_like(number).index_copy(0, place, number)[order]
    _, sentence, copies = torch.unique(
        group * len(labels) + own, return_inverse=True, return_counts=True
    )
    return Pairing(order, group, sentence, sizes, copies)


def _runs(values: Tensor) -> tuple[Tensor, Tensor]:
    """Of sorted values `[N]`: which distinct one each is, from 0, and how often each occurs."""
    number = torch.zeros_like(values, dtype=torch.long)
    torch.cumsum(values[1:] != values[:-1], 0, out=number[1:])
    return number, torch.bincount(number)


def cosine_sums(z: Tensor, pairs: Pairing) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of cosines in O(N d): of each row with its positives and with the copies of its own
    sentence, itself among them (`[N]` in `pairs.order`), and of all rows of different classes."""
    rows = z.index_select(0, pairs.order)
    width = rows.shape[1]
    if len(pairs.sizes) <= SMALL:
        parts = rows.split(pairs.sizes.tolist())
        classes = torch.stack([part.sum(dim=0) for part in parts])
        inner = torch.cat([part @ total for part, total in zip(parts, classes, strict=True)])
    else:
        classes = rows.new_zeros(len(pairs.sizes), width).index_add(0, pairs.group, rows)
        inner = (rows * classes.index_select(0, pairs.group)).sum(dim=1)
    copies = rows
    if len(pairs.copies) < len(rows):
        totals = rows.new_zeros(len(pairs.copies), width).index_add(0, pairs.sentence, rows)
        copies = totals.index_select(0, pairs.sentence)
    own = (rows * copies).sum(dim=1)
    negative = classes.sum(dim=0).square().sum() - classes.square().sum()
    return inner - own, own, negative


@torch.no_grad()
def similarities(
    sums: tuple[Tensor, Tensor, Tensor], pairs: Pairing, include_self: bool = False
) -> dict[str, float]:
    """Mean cosine of positive and of negative pairs, as `similarity.similarity_report`, from
    `cosine_sums`."""
    positive, own, negative = sums
    count, total = int(pairs.positives.sum()), float(positive.sum())
    if include_self:
        count, total = count + int(pairs.copies.square().sum()), total + float(own.sum())
    report = {"positive_similarity": total / count} if count else {}
    others = int(pairs.negatives.sum())
    return report | ({"negative_similarity": float(negative) / others} if others else {})
