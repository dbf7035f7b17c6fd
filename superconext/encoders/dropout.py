"""Dropout whose random numbers cost little.

On a CPU torch draws its mask at about 8 ns an element, more than an LSTM spends on it. Here one
draw from torch's generator seeds a fast bit generator: runs stay repeatable from torch's random
state alone.
"""

from __future__ import annotations

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
    dropped = round(share * _LEVELS)
    return dropped - _LEVELS // 2, _LEVELS / (_LEVELS - dropped)


def random_bits(shape: torch.Size) -> Tensor:
    """Uniform int16 on the CPU, from one draw of torch's generator."""
    seed = int(torch.randint(2**62, ()))
    count = shape.numel()
    words = np.random.SFC64(seed).random_raw(-(-count // 4))
    return torch.from_numpy(words.view(np.int16)[:count]).view(shape)
