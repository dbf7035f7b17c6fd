"""The projection head between sentence vector and loss, thrown away after training.

SuperConText section IV.B: identity, linear, or W2 ReLU(W1 h); the last is best there
(Table 2).
"""

from __future__ import annotations

from torch import nn


def projection_head(kind: str, size: int) -> nn.Module:
    """Module from sentence vectors `[N, size]` to projected ones of the same width."""
    if kind == "identity":
        return nn.Identity()
    if kind == "linear":
        return nn.Linear(size, size)
    return nn.Sequential(nn.Linear(size, size), nn.ReLU(), nn.Linear(size, size))
