"""Packed token states to one vector for each sentence; the same as `encoders.layers`.

Dropout of the states is done on the way, where it costs least: `share` is its probability, 0 for
none. What comes out is distributed as if all states had been dropped first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from superconext.encoders.layers import drop, random_bits, rounded
from superconext.encoders.packed.packing import Packing


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
        largest = states.new_full((packing.steps[0], states.shape[1]), -torch.inf)
        for part, _ in _dropped(states, bits, packing, share):
            torch.maximum(largest[: len(part)], part, out=largest[: len(part)])
        ctx.packing, ctx.share, ctx.bits = packing, share, bits
        ctx.save_for_backward(states, largest)
        return largest * rounded(share)[1]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        states, largest = ctx.saved_tensors
        gradient = gradient * rounded(ctx.share)[1]
        result = torch.empty_like(states)
        parts, ties = result.split(ctx.packing.steps), torch.zeros_like(largest)
        steps = _dropped(states, ctx.bits, ctx.packing, ctx.share)
        for found, (part, kept) in zip(parts, steps, strict=True):
            count = len(part)
            torch.eq(part, largest[:count], out=found)
            if kept is not None:
                found.mul_(kept)
            ties[:count].add_(found)
            found.mul_(gradient[:count])
        # Tokens that share the largest value share its gradient, as in torch.amax.
        if bool((ties > 1).any()):
            share = 1 / ties.clamp(min=1)
            for found in parts:
                found.mul_(share[: len(found)])
        return result, None, None


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
