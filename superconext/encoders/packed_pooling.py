"""Packed token states to one vector for each sentence; the same as `encoders.pooling`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from superconext.encoders.packing import Packing


def pool_last(states: Tensor, packing: Packing) -> Tensor:
    """The state each direction ends with: `[P, d]`, each direction in its reading order, to
    `[N, d]` in the caller's order."""
    return states[packing.last[packing.back]]


def pool_mean(states: Tensor, packing: Packing) -> Tensor:
    """Mean over the tokens, per dimension: `[P, d]` to `[N, d]` in the caller's order."""
    total: Tensor = _Sum.apply(states, packing)
    lengths = torch.from_numpy(packing.lengths).to(states.dtype)
    return (total / lengths[:, None])[packing.back]


def pool_max(states: Tensor, packing: Packing) -> Tensor:
    """Largest value over the tokens, per dimension: `[P, d]` to `[N, d]` in the caller's order."""
    largest: Tensor = _Max.apply(states, packing)
    return largest[packing.back]


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
        return gradient[torch.from_numpy(ctx.packing.row)], None


class _Max(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, packing: Packing) -> Tensor:
        parts = states.split(packing.steps)
        largest = parts[0].clone()
        for part in parts[1:]:
            torch.maximum(largest[: len(part)], part, out=largest[: len(part)])
        ctx.packing = packing
        ctx.save_for_backward(states, largest)
        return largest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        # Tokens that share the largest value share its gradient, as in torch.amax.
        states, largest = ctx.saved_tensors
        steps = ctx.packing.steps
        result = torch.empty_like(states)
        parts = result.split(steps)
        ties = torch.zeros_like(largest)
        for part, state in zip(parts, states.split(steps), strict=True):
            torch.eq(state, largest[: len(part)], out=part)
            ties[: len(part)].add_(part)
        shared = gradient / ties
        for part in parts:
            part.mul_(shared[: len(part)])
        return result, None


PACKED_POOLING: dict[str, Callable[[Tensor, Packing], Tensor]] = {
    "last": pool_last,
    "mean": pool_mean,
    "max": pool_max,
}
