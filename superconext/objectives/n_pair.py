"""Multi-class N-pair loss: each positive against one row of every other class at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from superconext.config.parameters import parameter
from superconext.objectives.base import Batch, CheckedOptions, WithTemperature
from superconext.objectives.pairwise import (
    class_blocks,
    class_mean,
    cosine_sums,
    normalised,
    similarities,
    widened,
)


@dataclass(frozen=True)
class Options(CheckedOptions):
    """Settings of the N-pair loss."""

    normalise: bool = parameter(True, "Cosine over temperature, else inner products.")
    l2: float = parameter(0.002, "On the norms of vectors that are not normalised.", low=0)


class NPair(WithTemperature):
    """N-pair loss over all disjoint tuple sets of a batch.

    A tuple set holds one pair (anchor a_k, positive p_k) of each of its classes. With
    s(a, p) = <a, p> / temperature on unit vectors::

        L_t = mean over k of log(1 + sum_{j != k} exp(s(a_k, p_j) - s(a_k, p_k)))
        L   = mean over tuple sets t of L_t

    The N_k rows of a class are split into floor(N_k / 2) disjoint pairs, and the t-th
    pairs of all classes form tuple set t, so the whole batch is used (well-known
    implementations keep one pair of each class). Classes with fewer pairs are missing
    from the last sets; a set with one class left has no negative and is not counted.
    A sentence drawn twice is never paired with itself: rows are paired at half the class's
    length, repeats lying side by side, which loses no pair that could be made. Which rows
    meet follows their order in the batch, which the sampler shuffles. Without any tuple
    set the loss is 0 with zero gradient.

    `normalise=False` is the paper's own form: inner products, no temperature, plus `l2`
    times the mean squared norm of the rows used.

    Source: Sohn (2016), section 3.2 (the multi-class N-pair loss and its norm penalty).
    """

    options_type = Options

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.projected` `[N, p]`; scalars: similarities over the whole batch."""
        z = normalised(batch.projected)
        blocks = class_blocks(batch.labels, batch.ids)
        scalars = similarities(cosine_sums(z.detach(), blocks), blocks)
        anchor, positive, tuple_set = tuple_sets(batch.labels, batch.ids)
        if len(anchor) == 0:
            return (batch.projected * 0).sum(), scalars
        rows = z if self.options.normalise else widened(batch.projected)
        a, p = rows[anchor], rows[positive]
        places, there = _slots(tuple_set)
        # Only within its tuple is a pair contrasted: C x C logits for each, not M x M.
        logits = a[places] @ p[places].transpose(1, 2)
        logits = logits / (self.temperature if self.options.normalise else 1.0)
        positive_logits = logits.diagonal(dim1=1, dim2=2)[there]
        logits = logits.masked_fill(~there[:, None, :], -torch.inf)
        losses = torch.logsumexp(logits, dim=2)[there] - positive_logits
        tuple_set = there.nonzero()[:, 0]
        loss = class_mean(losses, tuple_set)
        if not self.options.normalise:
            loss = loss + self.options.l2 * torch.cat([a, p]).square().sum(dim=1).mean()
        return loss, scalars


@torch.no_grad()
def tuple_sets(labels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Anchor rows, positive rows and tuple set of every pair, each `[M]` with M <= N / 2."""
    rows = len(labels)
    position = torch.arange(rows, device=labels.device)
    kinds, sentence = torch.unique(ids, return_inverse=True)
    # Repeats of a sentence stand where it came first, and so next to each other.
    first = position.new_full((len(kinds),), rows).scatter_reduce(0, sentence, position, "amin")
    _, group, size = torch.unique(labels, return_inverse=True, return_counts=True)
    order = torch.argsort(group * rows + first[sentence], stable=True)
    group, start = group[order], size.cumsum(0) - size
    rank = position - start[group]
    paired = rank < (size // 2)[group]
    other = order[(position + (size - size // 2)[group])[paired]]
    anchor, group = order[paired], group[paired]
    distinct = ids[anchor] != ids[other]
    anchor, other, group = anchor[distinct], other[distinct], group[distinct]

    pairs_of = torch.bincount(group, minlength=len(size))
    tuple_set = torch.arange(len(group), device=labels.device)
    tuple_set = tuple_set - (pairs_of.cumsum(0) - pairs_of)[group]
    contrasted = torch.bincount(tuple_set)[tuple_set] > 1
    return anchor[contrasted], other[contrasted], tuple_set[contrasted]


@torch.no_grad()
def _slots(tuple_set: Tensor) -> tuple[Tensor, Tensor]:
    """The pairs of each of T tuples, `[T, C]`, the first one where a tuple has fewer than the
    largest; and where there is one, bool `[T, C]`."""
    _, tuple_set, sizes = torch.unique(tuple_set, return_inverse=True, return_counts=True)
    order = torch.argsort(tuple_set, stable=True)
    there = torch.arange(int(sizes.max()), device=sizes.device) < sizes[:, None]
    places = torch.zeros_like(there, dtype=torch.long)
    places[there] = order
    return places, there
