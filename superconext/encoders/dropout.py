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

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.share == 0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.share)
        return x * dropout_mask(x.shape, self.share, x.dtype)


def dropout_mask(shape: torch.Size, share: float, dtype: torch.dtype) -> Tensor:
    """Zeros with probability `share` and 1 / (1 - share) elsewhere, on the CPU."""
    seed = int(torch.randint(2**62, ()))
    count = shape.numel()
    words = np.random.SFC64(seed).random_raw(-(-count // 4))
    bits = torch.from_numpy(words.view(np.int16)[:count]).view(shape)
    dropped = round(share * _LEVELS)
    mask = torch.empty(shape, dtype=dtype)
    torch.ge(bits, dropped - _LEVELS // 2, out=mask)
    return mask.mul_(_LEVELS / (_LEVELS - dropped))
