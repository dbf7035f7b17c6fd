"""Arithmetic of losses over pairs of rows: similarities, masks, class blocks, large batches.

A batch of few rows is computed with masks over all N x N pairs (`pairs`). A larger one is sorted
by class (`ClassBlocks`), and `pairwise_loss` reads it in chunks of rows. A loss over all pairs
needs of each anchor i only two numbers and two distributions::

    p_i = log sum over its positives of exp(s_ij),     softmax over its positives
    n_i = log sum over its negatives of exp(s_ij),     softmax over its negatives

The loss is a scalar, so its gradient can be formed as soon as a chunk of rows is known, and the
chunk then forgotten: memory is b N + N d for chunks of b rows instead of several times N x N, and
the passes over N x N numbers, which cost more than the matrix products, are few.

Source: the tiling of Inf-CL (Cheng et al., 2024), here for losses with many positives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

#: A class of fewer rows is small, a batch of fewer classes has few: they are computed otherwise.
SMALL = 32
#: Similarities in one chunk of rows (16 MiB in float32).
CHUNK = 1 << 22
#: On a CPU: most rows of a chunk (more leave its caches, fewer make slow products), and most
#: similarities that are kept whole.
ROWS, WHOLE = 256, 1 << 19
#: Stands for minus infinity, where a whole row may be masked.
_FAR = -1e30


def widened(vectors: Tensor) -> Tensor:
    """The vectors in at least float32; losses are not computed in half precision."""
    if vectors.dtype in (torch.float16, torch.bfloat16):
        return vectors.float()
    return vectors


def normalised(vectors: Tensor) -> Tensor:
    """Unit-length rows in at least float32, `[N, d]`.

    Half precision underflows in the norm, so it is widened first.
    """
    return functional.normalize(widened(vectors), dim=-1)


@dataclass
class Pairs:
    """Which pairs of a batch are positives and which negatives, `[N, N]` booleans."""

    positive: Tensor
    negative: Tensor


def pairs(labels: Tensor, ids: Tensor, include_self: bool = False) -> Pairs:
    """Positives share the label but not the id; negatives differ in label.

    A row drawn twice has similarity 1 with itself and would stand in for the diagonal
    (which at low temperature switches the gradient off), so equal ids are no positives.
    `include_self` admits them, as equation 6 of SuperConText prints it.
    """
    same = labels[:, None] == labels[None, :]
    positive = same if include_self else same & (ids[:, None] != ids[None, :])
    return Pairs(positive, ~same)


def masked_log_sum_exp(logits: Tensor, mask: Tensor) -> Tensor:
    """log of the sum of exp(logits) over the True entries of each row, `[N]`.

    Rows of `mask` must each have a True entry: select the valid rows first, for the
    gradient of an all-masked row is not a number.
    """
    return torch.logsumexp(logits.masked_fill(~mask, -torch.inf), dim=1)


def masked_log_mean_exp(logits: Tensor, mask: Tensor) -> Tensor:
    """log of the mean of exp(logits) over the True entries of each row, `[N]`.

    Rows of `mask` must each have a True entry, as for `masked_log_sum_exp`.
    """
    return masked_log_sum_exp(logits, mask) - mask.sum(dim=1).to(logits.dtype).log()


def class_mean(losses: Tensor, groups: Tensor) -> Tensor:
    """Mean over the groups present of each group's mean, from `[N]` and group numbers `[N]`."""
    _, index, counts = torch.unique(groups, return_inverse=True, return_counts=True)
    weights = 1.0 / (counts.to(losses.dtype)[index] * len(counts))
    return (losses * weights).sum()


@torch.no_grad()
def similarity_report(cosine: Tensor, positive: Tensor, negative: Tensor) -> dict[str, float]:
    """Mean cosine of the positive and of the negative pairs; absent kinds are left out."""
    report = {}
    for name, mask in (("positive_similarity", positive), ("negative_similarity", negative)):
        count = int(mask.sum())
        if count:
            report[name] = float((cosine * mask).sum()) / count
    return report


def count_true(mask: Tensor) -> Tensor:
    """How many of each row are True, int64 `[n]`; numpy counts ten times as fast on a CPU."""
    if mask.device.type == "cpu":
        return torch.from_numpy(np.count_nonzero(mask.numpy(), axis=1))
    return mask.sum(dim=1)


@dataclass
class ClassBlocks:
    """The pairs of a batch in few numbers, its rows sorted by class.

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


def class_blocks(labels: Tensor, ids: Tensor) -> ClassBlocks:
    """The blocks of labels `[N]` and sentence ids `[N]`; `pairs` says what is positive."""
    order = torch.argsort(labels, stable=True)
    group, sizes = _runs(labels[order])
    sorted_ids, place = torch.sort(ids)
    number, copies = _runs(sorted_ids)
    if len(copies) == len(ids):
        return ClassBlocks(order, group, torch.arange(len(ids), device=ids.device), sizes, copies)
    id_number = torch.empty_like(number).index_copy(0, place, number)[order]
    _, sentence, copies = torch.unique(
        group * len(labels) + id_number, return_inverse=True, return_counts=True
    )
    return ClassBlocks(order, group, sentence, sizes, copies)


def _runs(values: Tensor) -> tuple[Tensor, Tensor]:
    """Of sorted values `[N]`: which distinct one each is, from 0, and how often each occurs."""
    number = torch.zeros_like(values, dtype=torch.long)
    torch.cumsum(values[1:] != values[:-1], 0, out=number[1:])
    return number, torch.bincount(number)


def cosine_sums(z: Tensor, blocks: ClassBlocks) -> tuple[Tensor, Tensor, Tensor]:
    """Sums of cosines in O(N d): of each row with its positives and with the copies of its own
    sentence, itself among them (`[N]` in `blocks.order`), and of all rows of different classes."""
    rows = z.index_select(0, blocks.order)
    width = rows.shape[1]
    if len(blocks.sizes) <= SMALL:
        parts = rows.split(blocks.sizes.tolist())
        classes = torch.stack([part.sum(dim=0) for part in parts])
        inner = torch.cat([part @ total for part, total in zip(parts, classes, strict=True)])
    else:
        classes = rows.new_zeros(len(blocks.sizes), width).index_add(0, blocks.group, rows)
        inner = (rows * classes.index_select(0, blocks.group)).sum(dim=1)
    copies = rows
    if len(blocks.copies) < len(rows):
        totals = rows.new_zeros(len(blocks.copies), width).index_add(0, blocks.sentence, rows)
        copies = totals.index_select(0, blocks.sentence)
    same_sentence = (rows * copies).sum(dim=1)
    negative = classes.sum(dim=0).square().sum() - classes.square().sum()
    return inner - same_sentence, same_sentence, negative


@torch.no_grad()
def similarities(
    sums: tuple[Tensor, Tensor, Tensor], blocks: ClassBlocks, include_self: bool = False
) -> dict[str, float]:
    """Mean cosine of positive and of negative pairs, as `similarity_report`, from `cosine_sums`."""
    positive, same_sentence, negative = sums
    count, total = int(blocks.positives.sum()), float(positive.sum())
    if include_self:
        count, total = count + int(blocks.copies.square().sum()), total + float(same_sentence.sum())
    report = {"positive_similarity": total / count} if count else {}
    others = int(blocks.negatives.sum())
    return report | ({"negative_similarity": float(negative) / others} if others else {})


@dataclass
class Terms:
    """What a loss makes of n anchors.

    loss: their terms, weighted, `[n]`.
    positive, negative: d loss / d p and d loss / d n, `[n]`.
    """

    loss: Tensor
    positive: Tensor
    negative: Tensor


#: Terms of the anchors at the given places (a slice of `ClassBlocks.order`) from their p and n,
#: which are about -1e30 where there is no positive or no negative, and their number of negatives,
#: `[n]`.
Rule = Callable[[Tensor, Tensor, Tensor, slice], Terms]
#: Negatives that stay, bool `[n, M]`, from cosines `[n, M]` and which of them are negatives, bool
#: `[n, M]`, or None where all are.
Choice = Callable[[Tensor, "Tensor | None"], Tensor]


def pairwise_loss(
    z: Tensor,
    blocks: ClassBlocks,
    temperature: float,
    rule: Rule,
    choose: Choice | None = None,
    include_self: bool = False,
) -> Tensor:
    """The sum of a rule's terms over all anchors, with gradient to unit vectors `[N, d]`.

    s_ij = <z_i, z_j> / temperature. `include_self` counts a row, and every other copy of its
    sentence, among its positives. A choice is constant: no gradient flows through it.
    """
    value: Tensor = _Pairwise.apply(z, blocks, temperature, rule, choose, include_self)
    return value


class _Pairwise(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        blocks: ClassBlocks,
        temperature: float,
        rule: Rule,
        choose: Choice | None,
        include_self: bool,
    ) -> Tensor:
        rows = z.index_select(0, blocks.order)
        wanted = bool(ctx.needs_input_grad[0])
        # A batch that fits into a chunk keeps its matrix, which then takes one product, not two.
        square = len(rows) ** 2 <= (min(CHUNK, WHOLE) if z.device.type == "cpu" else CHUNK)
        gradient = torch.zeros_like(rows) if wanted and not square else None
        twins = torch.empty(2, 0, dtype=torch.long, device=z.device)
        if not include_self and len(blocks.copies) < len(rows):
            twins = blocks.twins()
        total = z.new_zeros(())
        buffer = z.new_empty(len(rows) if square else 0, len(rows))
        for here, window in chunks(blocks):
            count = here.stop - here.start
            if not square and len(buffer) < count:
                buffer = z.new_empty(count, len(rows))
            # A choice wants cosines; otherwise the temperature costs no pass of its own.
            scale = 1 / temperature if choose is None else 1.0
            s = buffer[here] if square else buffer[:count]
            torch.mm(rows[here] * scale, rows.t(), out=s)
            positive = s[:, window].clone()
            rest, negatives = _part(s, positive, here, window, blocks, choose)
            if not include_self:
                _drop_same_sentence(positive, here, window, twins)
            if choose is not None:
                positive.mul_(1 / temperature)
                rest.mul_(1 / temperature)
            terms = rule(_soft_max_(positive), _soft_max_(rest), negatives, here)
            total += terms.loss.sum()
            if not wanted:
                continue
            rest.mul_(terms.negative[:, None])
            positive.mul_(terms.positive[:, None])
            if rest is s:
                s[:, window].add_(positive)
            else:
                s[:, : window.start] = rest[:, : window.start]
                s[:, window] = positive
                s[:, window.stop :] = rest[:, window.start :]
            if gradient is not None:
                gradient[here].addmm_(s, rows)
                gradient.addmm_(s.t(), rows[here])
        if wanted and gradient is None:
            gradient = buffer.t().contiguous().add_(buffer) @ rows
        if gradient is not None:
            result = torch.empty_like(z)
            result[blocks.order] = gradient.mul_(1 / temperature)
            ctx.save_for_backward(result)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (formed,) = ctx.saved_tensors
        return formed * gradient, None, None, None, None, None


def chunks(blocks: ClassBlocks) -> list[tuple[slice, slice]]:
    """Slices of rows, each with the slice of columns that holds all their positives."""
    sizes = blocks.sizes.tolist()
    most = max(1, CHUNK // len(blocks.order))
    if blocks.order.device.type == "cpu":
        most = min(most, ROWS)
    result: list[tuple[slice, slice]] = []
    start = begin = 0
    for k, size in enumerate(sizes):
        stop = begin + size
        following = sizes[k + 1] if k + 1 < len(sizes) else most
        # Small classes wait for company, as long as it leaves room.
        if max(size, following) < SMALL and stop - start + following <= most:
            begin = stop
            continue
        window = slice(start, stop)
        for first in range(start, stop, most):
            result.append((slice(first, min(first + most, stop)), window))
        start = begin = stop
    return result


def _part(
    s: Tensor,
    positive: Tensor,
    here: slice,
    window: slice,
    blocks: ClassBlocks,
    choose: Choice | None,
) -> tuple[Tensor, Tensor]:
    """The cosines of (chosen) negatives, all others masked, and how many each row has, `[n]`.

    The first is `s`, `[n, N]`, or, where a choice is made and the window holds one class, a copy
    of the other columns: in a batch of few classes that is much less to search. In `positive`,
    the cosines of the window, what is no positive is masked.
    """
    group, columns = blocks.group[here], blocks.group[window]
    one_class = bool(columns[0] == columns[-1])
    if choose is not None and one_class and len(columns) < len(blocks.order):
        others = torch.cat([s[:, : window.start], s[:, window.stop :]], dim=1)
        kept = choose(others, None)
        others.add_((~kept).to(s.dtype), alpha=_FAR)
        return others, count_true(kept)
    if one_class:
        s[:, window].fill_(_FAR)
        return s, blocks.negatives[here]
    same = group[:, None] == columns[None, :]
    positive.add_((~same).to(s.dtype), alpha=_FAR)
    if choose is None:
        s[:, window].add_(same.to(s.dtype), alpha=_FAR)
        return s, blocks.negatives[here]
    negative = torch.ones_like(s, dtype=torch.bool)
    negative[:, window] = ~same
    kept = choose(s, negative)
    s.add_((~kept).to(s.dtype), alpha=_FAR)
    return s, count_true(kept)


def _drop_same_sentence(positive: Tensor, here: slice, window: slice, twins: Tensor) -> None:
    positive.diagonal(here.start - window.start).fill_(_FAR)
    if twins.shape[1] == 0:
        return
    bounds = twins.new_tensor([here.start, here.stop])
    low, high = torch.searchsorted(twins[0].contiguous(), bounds).tolist()
    first, second = twins[:, low:high]
    positive[first - here.start, second - window.start] = _FAR


def _soft_max_(logits: Tensor) -> Tensor:
    """log of the sum of exp of each row, `[n]`; the rows become their softmax."""
    top = logits.amax(dim=1)
    torch.softmax(logits, dim=1, out=logits)
    return top - logits.amax(dim=1).log()


def survivors(z: Tensor, blocks: ClassBlocks, choose: Choice) -> Tensor:
    """Whether a choice leaves each row a negative, bool `[N]` in `blocks.order`."""
    rows, remaining = z[blocks.order], []
    for here, window in chunks(blocks):
        s = rows[here] @ rows.t()
        remaining.append(_part(s, s[:, window].clone(), here, window, blocks, choose)[1] > 0)
    return torch.cat(remaining)


@torch.no_grad()
def hardest(z: Tensor, blocks: ClassBlocks) -> tuple[Tensor, Tensor]:
    """Of each row the least similar positive and the most similar negative, places `[N]` in
    `blocks.order`; any place where it has none."""
    rows = z[blocks.order]
    twins = blocks.twins()
    positives, negatives = [], []
    for here, window in chunks(blocks):
        s = rows[here] @ rows.t()
        opposite = s[:, window].neg()
        _drop_same_sentence(opposite, here, window, twins)
        _part(s, opposite, here, window, blocks, None)
        positives.append(opposite.argmax(dim=1) + window.start)
        negatives.append(s.argmax(dim=1))
    return torch.cat(positives), torch.cat(negatives)
