"""Layers that encoders share: dropout, pooling of token states, the projection head.

Dropout's random numbers cost little: on a CPU torch draws its mask at about 8 ns an element, more
than an LSTM spends on it. Here one draw from torch's generator seeds a fast bit generator, so
runs stay repeatable from torch's random state alone.

The projection head stands between sentence vector and loss and is thrown away after training.
SuperConText section IV.B: identity, linear, or W2 ReLU(W1 h); the last is best there (Table 2).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

_LEVELS = 1 << 16


class Dropout(nn.Module):
    """Zeroes elements with probability `share` in training and scales up the others.

    On a CPU the probability is rounded to a multiple of 1/65536, and the scale to match.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    @property
    def active(self) -> float:
        """The share that is dropped now: 0 outside training."""
        return self.share if self.training else 0.0

    def forward(self, x: Tensor) -> Tensor:
        return drop(x, self.active)


def drop(x: Tensor, share: float) -> Tensor:
    """`x` with a share of its elements dropped and the others scaled up."""
    if share == 0:
        return x
    if x.device.type != "cpu":
        return nn.functional.dropout(x, share)
    cut, scale = rounded(share)
    mask = torch.empty(x.shape, dtype=x.dtype)
    torch.ge(random_bits(x.shape), cut, out=mask)
    return x * mask.mul_(scale)


def rounded(share: float) -> tuple[int, float]:
    """(the lowest of `random_bits` that keeps an element, the scale of those kept)."""
    dropped = min(round(share * _LEVELS), _LEVELS - 1)  # a share of almost 1 keeps some
    return dropped - _LEVELS // 2, _LEVELS / (_LEVELS - dropped)


def random_bits(shape: torch.Size) -> Tensor:
    """Uniform int16 on the CPU, from one draw of torch's generator."""
    seed = int(torch.randint(2**62, ()))
    count = shape.numel()
    words = np.random.SFC64(seed).random_raw(-(-count // 4))
    return torch.from_numpy(words.view(np.int16)[:count]).view(shape)


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


def projection_head(kind: str, size: int) -> nn.Module:
    """Module from sentence vectors `[N, size]` to projected ones of the same width."""
    if kind == "identity":
        return nn.Identity()
    if kind == "linear":
        return nn.Linear(size, size)
    return nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size))
