"""Many one-text classifiers, one answer: the hard and soft ensembling of DualCL."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

#: Scores held at once, N x bank rows x classes.
_CHUNK = 2**22


def ensembled_scores(sentence: Tensor, bank: Tensor, kind: str) -> Tensor:
    """Log shares `[N, C]` of sentences `[N, d]` under all classifiers of a bank `[M, C, d]`.

    With S_ijk = <z_i, theta_j^k>, "soft" is the mean over j of softmax_k S_ij, and "hard"
    the share of the j whose largest S_ijk is at k; the soft share decides between classes
    of as many votes.

    Source: DualCL, section 4.4.2, which leaves ties open.
    """
    rows, classes = len(sentence), bank.shape[1]
    votes = sentence.new_zeros(rows, classes)
    shares = sentence.new_zeros(rows, classes)
    for part in bank.split(max(1, _CHUNK // max(1, rows * classes))):
        scores = torch.einsum("nd,mcd->nmc", sentence, part)
        shares += scores.softmax(dim=2).sum(dim=1)
        votes.scatter_add_(1, scores.argmax(dim=2), torch.ones_like(scores[:, :, 0]))
    shares = shares / len(bank)
    if kind == "hard":
        # A share is at most 1: added to whole votes it parts equals and nothing else.
        shares = (votes + shares) / (len(bank) + 1)
    return shares.clamp_min(torch.finfo(shares.dtype).tiny).log()


def spread_rows(labels: np.ndarray, count: int) -> np.ndarray:
    """Up to `count` (0: all) row numbers `[M]` of labels `[N]`, each class by its share."""
    if not 0 < count < len(labels):
        return np.arange(len(labels))
    by_class = np.argsort(labels, kind="stable")
    picked = by_class[np.arange(count) * len(labels) // count]
    return np.sort(picked)
