"""Pairwise losses of large batches: rows in chunks, the gradient formed with the loss.

A loss over all N x N pairs needs of each anchor i only two numbers and two distributions::

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

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from superconext.objectives.mining import count
from superconext.objectives.pairing import SMALL, Pairing

#: Similarities in one chunk of rows (16 MiB in float32).
CHUNK = 1 << 22
#: Stands for minus infinity, where a whole row may be masked.
_FAR = -1e30


@dataclass
class Terms:
    """What a loss makes of n anchors.

    loss: their terms, weighted, `[n]`.
    positive, negative: d loss / d p and d loss / d n, `[n]`.
    """

    loss: Tensor
    positive: Tensor
    negative: Tensor


#: Terms of the anchors at the given places (a slice of `Pairing.order`) from their p and n, which
#: are about -1e30 where there is no positive or no negative, and their number of negatives, `[n]`.
Rule = Callable[[Tensor, Tensor, Tensor, slice], Terms]
#: Negatives that stay, bool `[n, M]`, from cosines `[n, M]` and which of them are negatives, bool
#: `[n, M]`, or None where all are.
Choice = Callable[[Tensor, "Tensor | None"], Tensor]


def pairwise_loss(
    z: Tensor,
    pairs: Pairing,
    temperature: float,
    rule: Rule,
    choose: Choice | None = None,
    include_self: bool = False,
) -> Tensor:
    """The sum of a rule's terms over all anchors, with gradient to unit vectors `[N, d]`.

    s_ij = <z_i, z_j> / temperature. `include_self` counts a row, and every other copy of its
    sentence, among its positives. A choice is constant: no gradient flows through it.
    """
    value: Tensor = _Pairwise.apply(z, pairs, temperature, rule, choose, include_self)
    return value


class _Pairwise(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,
        pairs: Pairing,
        temperature: float,
        rule: Rule,
        choose: Choice | None,
        include_self: bool,
    ) -> Tensor:
        rows = z.index_select(0, pairs.order)
        wanted = bool(ctx.needs_input_grad[0])
        # A batch that fits into a chunk keeps its matrix, which then takes one product, not two.
        square = len(rows) ** 2 <= CHUNK
        gradient = torch.zeros_like(rows) if wanted and not square else None
        twins = torch.empty(2, 0, dtype=torch.long, device=z.device)
        if not include_self and len(pairs.copies) < len(rows):
            twins = pairs.twins()
        total = z.new_zeros(())
        buffer = z.new_empty(len(rows) if square else 0, len(rows))
        for here, window in chunks(pairs):
            count = here.stop - here.start
            if not square and len(buffer) < count:
                buffer = z.new_empty(count, len(rows))
            # A choice wants cosines; otherwise the temperature costs no pass of its own.
            scale = 1 / temperature if choose is None else 1.0
            s = buffer[here] if square else buffer[:count]
            torch.mm(rows[here] * scale, rows.t(), out=s)
            positive = s[:, window].clone()
            rest, negatives = _part(s, positive, here, window, pairs, choose)
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
                _join(s, positive, rest, window)
            if gradient is not None:
                gradient[here].addmm_(s, rows)
                gradient.addmm_(s.t(), rows[here])
        if wanted and gradient is None:
            gradient = buffer.t().contiguous().add_(buffer) @ rows
        if gradient is not None:
            result = torch.empty_like(z)
            result[pairs.order] = gradient.mul_(1 / temperature)
            ctx.save_for_backward(result)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (formed,) = ctx.saved_tensors
        return formed * gradient, None, None, None, None, None


def chunks(pairs: Pairing) -> list[tuple[slice, slice]]:
    """Slices of rows, each with the slice of columns that holds all their positives."""
    sizes = pairs.sizes.tolist()
    most = max(1, CHUNK // len(pairs.order))
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
    s: Tensor, positive: Tensor, here: slice, window: slice, pairs: Pairing, choose: Choice | None
) -> tuple[Tensor, Tensor]:
    """The cosines of (chosen) negatives, all others masked, and how many each row has, `[n]`.

    The first is `s`, `[n, N]`, or, where a choice is made and the window holds one class, a copy
    of the other columns: in a batch of few classes that is much less to search. In `positive`,
    the cosines of the window, what is no positive is masked.
    """
    own, columns = pairs.group[here], pairs.group[window]
    one_class = bool(columns[0] == columns[-1])
    if choose is not None and one_class and len(columns) < len(pairs.order):
        others = torch.cat([s[:, : window.start], s[:, window.stop :]], dim=1)
        kept = choose(others, None)
        others.add_((~kept).to(s.dtype), alpha=_FAR)
        return others, count(kept)
    if one_class:
        s[:, window].fill_(_FAR)
        return s, pairs.negatives[here]
    same = own[:, None] == columns[None, :]
    positive.add_((~same).to(s.dtype), alpha=_FAR)
    if choose is None:
        s[:, window].add_(same.to(s.dtype), alpha=_FAR)
        return s, pairs.negatives[here]
    negative = torch.ones_like(s, dtype=torch.bool)
    negative[:, window] = ~same
    kept = choose(s, negative)
    s.add_((~kept).to(s.dtype), alpha=_FAR)
    return s, count(kept)


def _join(s: Tensor, positive: Tensor, others: Tensor, window: slice) -> None:
    """Put the columns of a window and the others back where they were."""
    s[:, : window.start] = others[:, : window.start]
    s[:, window] = positive
    s[:, window.stop :] = others[:, window.start :]


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


def survivors(z: Tensor, pairs: Pairing, choose: Choice) -> Tensor:
    """Whether a choice leaves each row a negative, bool `[N]` in `pairs.order`."""
    rows, found = z[pairs.order], []
    for here, window in chunks(pairs):
        s = rows[here] @ rows.t()
        found.append(_part(s, s[:, window].clone(), here, window, pairs, choose)[1] > 0)
    return torch.cat(found)


@torch.no_grad()
def hardest(z: Tensor, pairs: Pairing) -> tuple[Tensor, Tensor]:
    """Of each row the least similar positive and the most similar negative, places `[N]` in
    `pairs.order`; any place where it has none."""
    rows = z[pairs.order]
    twins = pairs.twins()
    positives, negatives = [], []
    for here, window in chunks(pairs):
        s = rows[here] @ rows.t()
        opposite = s[:, window].neg()
        _drop_same_sentence(opposite, here, window, twins)
        _part(s, opposite, here, window, pairs, None)
        positives.append(opposite.argmax(dim=1) + window.start)
        negatives.append(s.argmax(dim=1))
    return torch.cat(positives), torch.cat(negatives)
