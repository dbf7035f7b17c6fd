"""The projection head between sentence vector and loss, thrown away after training.

SuperConText section IV.B: identity, linear, or W2 ReLU(W1 h); the last is best there
(Table 2).
"""

from __future__ import annotations

from torch import nn


def projection_head(kind: str, sentence_size: int, projection_size: int) -> nn.Module:
    """Module from `[N, sentence_size]` to `[N, projection_size]` (identity keeps the size)."""
    if kind == "identity":
        return nn.Identity()
    if kind == "linear":
        return nn.Linear(sentence_size, projection_size)
    return nn.Sequential(
        nn.Linear(sentence_size, sentence_size),
        nn.ReLU(),
        nn.Linear(sentence_size, projection_size),
    )


def projected_size(kind: str, sentence_size: int, projection_size: int) -> int:
    """Width of the head's output."""
    return sentence_size if kind == "identity" else projection_size
