"""Similarities, masks and masked means: the arithmetic the pairwise losses share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


def widened(vectors: Tensor) -> Tensor:
    """The vectors in at least float32; losses are not computed in half precision."""
    if vectors.dtype in (torch.float16, torch.bfloat16):
        return vectors.float()
    return vectors


def normalised(vectors: Tensor) -> Tensor:
    """Unit-length rows in at least float32, `[N, d]`.

    Half precision underflows in the norm, so it is widened first.
    """
    return functional.normalize(widened(vectors), dim=-1)


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


def masked_log_sum_exp(logits: Tensor, mask: Tensor) -> Tensor:
    """log of the sum of exp(logits) over the True entries of each row, `[N]`.

    Rows of `mask` must each have a True entry: select the valid rows first, for the
    gradient of an all-masked row is not a number.
    """
    return torch.logsumexp(logits.masked_fill(~mask, -torch.inf), dim=1)


def masked_log_mean_exp(logits: Tensor, mask: Tensor) -> Tensor:
    """log of the mean of exp(logits) over the True entries of each row, `[N]`.

    Rows of `mask` must each have a True entry, as for `masked_log_sum_exp`.
    """
    return masked_log_sum_exp(logits, mask) - mask.sum(dim=1).to(logits.dtype).log()


def class_mean(losses: Tensor, groups: Tensor) -> Tensor:
    """Mean over the groups present of each group's mean, from `[N]` and group numbers `[N]`."""
    _, index, counts = torch.unique(groups, return_inverse=True, return_counts=True)
    weights = 1.0 / (counts.to(losses.dtype)[index] * len(counts))
    return (losses * weights).sum()


@torch.no_grad()
def similarity_report(cosine: Tensor, positive: Tensor, negative: Tensor) -> dict[str, float]:
    """Mean cosine of the positive and of the negative pairs; absent kinds are left out."""
    report = {}
    for name, mask in (("positive_similarity", positive), ("negative_similarity", negative)):
        count = int(mask.sum())
        if count:
            report[name] = float((cosine * mask).sum()) / count
    return report
