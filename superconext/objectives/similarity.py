"""Pairwise similarities and masked log-means, the arithmetic every pairwise loss shares."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


def normalised(vectors: Tensor) -> Tensor:
    """Unit-length rows in at least float32, `[N, d]`.

    Half precision underflows in the norm, so it is widened first.
    """
    if vectors.dtype in (torch.float16, torch.bfloat16):
        vectors = vectors.float()
    return functional.normalize(vectors, dim=-1)


@dataclass
class Pairs:
    """Which pairs of a batch are positives and which negatives, `[N, N]` booleans."""

    positive: Tensor
    negative: Tensor


def pairs(labels: Tensor, ids: Tensor, include_self: bool = False) -> Pairs:
    """Positives share the label but not the id; negatives differ in label.

    A row drawn twice has similarity 1 with itself and would stand in for the diagonal
    (which at low temperature switches the gradient off), so equal ids are no positives.
    `include_self` admits them, as equation 6 of SuperConText prints it.
    """
    same = labels[:, None] == labels[None, :]
    positive = same if include_self else same & (ids[:, None] != ids[None, :])
    return Pairs(positive, ~same)


def masked_log_mean_exp(logits: Tensor, mask: Tensor) -> Tensor:
    """log of the mean of exp(logits) over the True entries of each row, `[N]`.

    Rows of `mask` must each have a True entry: select the valid rows first, for the
    gradient of an all-masked row is not a number.
    """
    filled = logits.masked_fill(~mask, -torch.inf)
    return torch.logsumexp(filled, dim=1) - mask.sum(dim=1).to(logits.dtype).log()
