"""Pooling of packed token states, and the packed BiLSTM for prediction, without a gradient.

Pooling drops states on the way, where it costs least: `share` is the probability, 0 for none.
What comes out is distributed as if all states had been dropped first.

The equations and the one non-linearity are those of `encoders.packed_lstm`. What is saved: the
input's share of the gates, W_x x + b, is worked out once for each distinct word of the batch and
not for each token; and the gates of a step, or its states where they are pooled, are forgotten in
the buffer they were made in, which stays in cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from superconext.encoders import compiled_gates
from superconext.encoders.layers import drop, random_bits, rounded
from superconext.encoders.packed_lstm import DOUBLED, Packing, turned


def pool_last(states: Tensor, packing: Packing, share: float = 0.0) -> Tensor:
    """The state each direction ends with: `[P, d]`, each direction in its reading order, to
    `[N, d]` in the caller's order."""
    return drop(states.index_select(0, packing.last[packing.back]), share)


def pool_mean(states: Tensor, packing: Packing, share: float = 0.0) -> Tensor:
    """Mean over the tokens, per dimension: `[P, d]` to `[N, d]` in the caller's order."""
    total: Tensor = _Sum.apply(drop(states, share), packing)
    lengths = torch.from_numpy(packing.lengths).to(states.dtype)
    return (total / lengths[:, None]).index_select(0, packing.back)


def pool_max(states: Tensor, packing: Packing, share: float = 0.0) -> Tensor:
    """Largest value over the tokens, per dimension: `[P, d]` to `[N, d]` in the caller's order."""
    largest: Tensor = _Max.apply(states, packing, share)
    return largest.index_select(0, packing.back)


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, packing: Packing) -> Tensor:
        ctx.packing = packing
        parts = states.split(packing.steps)
        total = parts[0].clone()
        for part in parts[1:]:
            total[: len(part)].add_(part)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient.index_select(0, torch.from_numpy(ctx.packing.row)), None


class _Max(torch.autograd.Function):
    """Nothing as large as the states is written but their gradient: the dropped states of a step
    are made, used and forgotten, and made again from the same random bits."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, packing: Packing, share: float) -> Tensor:
        bits = random_bits(states.shape) if share else None
        ctx.packing, ctx.share, ctx.bits = packing, share, bits
        ctx.kernel = None if bits is None else compiled_gates.active(states)
        if ctx.kernel:
            states = states.contiguous()
            largest = ctx.kernel.largest(states, packing, bits, rounded(share)[0])
        else:
            largest = states.new_full((packing.steps[0], states.shape[1]), -torch.inf)
            for part, _ in _dropped(states, bits, packing, share):
                torch.maximum(largest[: len(part)], part, out=largest[: len(part)])
        ctx.save_for_backward(states, largest)
        return largest * rounded(share)[1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        states, largest = ctx.saved_tensors
        gradient = gradient * rounded(ctx.share)[1]
        if ctx.kernel:
            given = states, ctx.packing, ctx.bits, rounded(ctx.share)[0]
            result, ties = ctx.kernel.largest_backward(*given, largest, gradient)
        else:
            result, ties = _largest_backward(states, largest, gradient, ctx)
        parts = result.split(ctx.packing.steps)
        # Tokens that share the largest value share its gradient, as in torch.amax.
        if bool((ties > 1).any()):
            share = 1 / ties.clamp(min=1)
            for found in parts:
                found.mul_(share[: len(found)])
        return result, None, None


def _largest_backward(
    states: Tensor, largest: Tensor, gradient: Tensor, ctx: Any
) -> tuple[Tensor, Tensor]:
    """Gradient of the states, and how many share each of the largest."""
    result, ties = torch.empty_like(states), torch.zeros_like(largest)
    steps = _dropped(states, ctx.bits, ctx.packing, ctx.share)
    for found, (part, kept) in zip(result.split(ctx.packing.steps), steps, strict=True):
        count = len(part)
        torch.eq(part, largest[:count], out=found)
        if kept is not None:
            found.mul_(kept)
        ties[:count].add_(found)
        found.mul_(gradient[:count])
    return result, ties


def _dropped(states: Tensor, bits: Tensor | None, packing: Packing, share: float) -> Any:
    """Each step's states with zeros where they are dropped, and ones where they are not."""
    parts = states.split(packing.steps)
    if bits is None:
        yield from ((part, None) for part in parts)
        return
    cut = rounded(share)[0]
    kept, dropped = torch.empty_like(parts[0]), torch.empty_like(parts[0])
    for part, own in zip(parts, bits.split(packing.steps), strict=True):
        count = len(part)
        torch.ge(own, cut, out=kept[:count])
        yield torch.mul(part, kept[:count], out=dropped[:count]), kept[:count]


PACKED_POOLING: dict[str, Callable[[Tensor, Packing, float], Tensor]] = {
    "last": pool_last,
    "mean": pool_mean,
    "max": pool_max,
}


#: Sentences taken through time together: their gates stay in cache.
_ROWS = 512


@torch.no_grad()
@torch.autocast("cpu", enabled=False)
def read_rows(
    rows: Tensor,
    index: Tensor,
    packing: Packing,
    ahead: nn.LSTM,
    back: nn.LSTM,
    aligned: bool,
) -> Tensor:
    """States `[P, 2h]` of packed tokens, as `packed_bilstm` of `rows[index]` has them.

    rows: distinct inputs `[D, i]`. index: the row of each packed token, int64 `[P]`.
    """
    states = rows.new_empty(len(packing), 2, ahead.hidden_size)
    for t, first, hidden in _in_time(rows, index, packing, ahead, back):
        start = int(packing.offsets[t]) + first
        states[start : start + hidden.shape[1]].copy_(hidden.transpose(0, 1))
    return (turned(states, packing) if aligned else states).flatten(1)


@torch.no_grad()
@torch.autocast("cpu", enabled=False)
def pooled_rows(
    rows: Tensor,
    index: Tensor,
    packing: Packing,
    ahead: nn.LSTM,
    back: nn.LSTM,
    pooling: str,
) -> Tensor:
    """`PACKED_POOLING[pooling]` of `read_rows`, `[N, 2h]` in the caller's order, with no more
    states kept than those of a step.

    The larger part of the time goes into products either way; writing every state and reading it
    again, from memory that is new each time, would be a tenth of the rest.
    """
    pooled = rows.new_empty(2, len(packing.lengths), ahead.hidden_size)
    for t, first, hidden in _in_time(rows, index, packing, ahead, back):
        n = hidden.shape[1]
        place = pooled[:, first : first + n]
        if pooling == "last" or t == 0:
            place.copy_(hidden)  # for "last", again and again until the sentence has ended
        elif pooling == "max":
            torch.maximum(place, hidden, out=place)
        else:
            place.add_(hidden)
    if pooling == "mean":
        pooled /= torch.from_numpy(packing.lengths).to(pooled.dtype)[:, None]
    return pooled.transpose(0, 1).flatten(1).index_select(0, packing.back)


def _in_time(
    rows: Tensor, index: Tensor, packing: Packing, ahead: nn.LSTM, back: nn.LSTM
) -> Iterator[tuple[int, int, Tensor]]:
    """Yield (t, first of some rows of the packing, their states `[2, n, h]` after t + 1 tokens),
    each direction in its reading order. The states are written over at the next step."""
    width = ahead.hidden_size
    projected, recurrent = [], []
    for lstm in (ahead, back):
        inputs, hidden, bias, other_bias = lstm.parameters()
        factor = inputs.new_tensor(DOUBLED).repeat_interleave(width)
        weights = (inputs * factor[:, None]).t().contiguous()
        projected.append(torch.addmm((bias + other_bias) * factor, rows, weights))
        recurrent.append((hidden * factor[:, None]).t().contiguous())
    places = (index, index.index_select(0, packing.reversed))
    like, most = projected[0], min(_ROWS, packing.steps[0])
    gates = like.new_empty(2, most, 4 * width)
    cells, bounded, states = (like.new_empty(2, most, width) for _ in range(3))
    starts: list[int] = packing.offsets.tolist()
    for first in range(0, packing.steps[0], _ROWS):
        for t, count in enumerate(packing.steps):
            n = min(count - first, _ROWS)
            if n <= 0:
                break
            start = starts[t] + first
            for d in (0, 1):
                own = gates[d, :n]
                torch.index_select(projected[d], 0, places[d][start : start + n], out=own)
                if t:
                    own.addmm_(states[d, :n], recurrent[d])
            i, f, g, o = gates[:, :n].sigmoid_().split(width, dim=2)
            c, b, h = cells[:, :n], bounded[:, :n], states[:, :n]
            # c holds 2 c_t, and g the s of a doubled value: see `packed_lstm`.
            if t:
                c.mul_(f).sub_(i, alpha=2).addcmul_(i, g, value=4)
            else:
                torch.mul(i, g, out=c).mul_(4).sub_(i, alpha=2)
            torch.sigmoid(c, out=b).mul_(2).sub_(1)
            yield t, first, torch.mul(o, b, out=h)
