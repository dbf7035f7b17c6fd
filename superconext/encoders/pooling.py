"""Token states to one sentence vector."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def pool_last(states: Tensor, mask: Tensor) -> Tensor:
    """Forward half at the last real token, backward half at the first: `[N, T, d]` to `[N, d]`.

    Each half has then read the whole sentence.
    """
    half = states.shape[2] // 2
    last = mask.sum(dim=1) - 1
    rows = torch.arange(len(states), device=states.device)
    return torch.cat([states[rows, last, :half], states[:, 0, half:]], dim=1)


def pool_mean(states: Tensor, mask: Tensor) -> Tensor:
    """Mean over the real tokens: `[N, T, d]` to `[N, d]`."""
    weights = mask.unsqueeze(2).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1)


def pool_max(states: Tensor, mask: Tensor) -> Tensor:
    """Largest value over the real tokens, per dimension: `[N, T, d]` to `[N, d]`."""
    return states.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(dim=1)


POOLING: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "last": pool_last,
    "mean": pool_mean,
    "max": pool_max,
}
