"""LaCon's three terms: instances against labels, labels against instances, labels apart."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from superconext.objectives.similarity import masked_log_sum_exp, normalised

ICL_FORMS = ("mean", "sum")
LCL_FORMS = ("stable", "faithful", "none")


def instance_centred(
    instances: Tensor, embeddings: Tensor, labels: Tensor, temperature: float, heads: int
) -> Tensor:
    """Cross-entropy of each head's cosines with all labels, mean over rows, `[heads]`.

    Args:
        instances: H `[N, d]`; embeddings: L `[C, d]`; neither need be normalised.
        heads: must divide d. Head k has the coordinates k, k + heads, k + 2 heads, ...: each
            sees both directions of a BiLSTM, where a contiguous slice would see one. Behind
            a projection the numbering of the coordinates means nothing, and this is the
            paper's slicing.

    Source: LaCon, equation 4 (equation 3 with one head).
    """
    h = normalised(_by_head(instances, heads))
    e = normalised(_by_head(embeddings, heads))
    logits = h @ e.transpose(1, 2) / temperature  # [heads, N, C]
    losses = functional.cross_entropy(logits.flatten(0, 1), labels.repeat(heads), reduction="none")
    return losses.view(heads, -1).mean(dim=1)


def label_centred(cosine: Tensor, labels: Tensor, temperature: float, form: str) -> Tensor:
    """Each label present against the rows of other classes, from cosines `[N, C]`.

    With s = cosine / temperature, A(p) the rows of class p and B(p) the others::

        faithful  mean over p of sum_{a in A(p)} -log(exp(s_ap) / sum_{b in B(p)} exp(s_bp))
        stable    mean over p of mean_{a in A(p)} of
                  -log(exp(s_ap) / (exp(s_ap) + sum_{b in B(p)} exp(s_bp)))

    p runs over the classes of the batch; with a single one B(p) is empty and the term is 0.

    Source: LaCon, equation 5 (faithful).
    """
    classes = torch.arange(cosine.shape[1], device=labels.device)
    own = classes[:, None] == labels[None, :]  # [C, N]
    anchors = own.any(dim=1) & (~own).any(dim=1)
    if form == "none" or not bool(anchors.any()):
        return (cosine * 0).sum()
    own = own[anchors]
    logits = cosine.T[anchors] / temperature
    gap = masked_log_sum_exp(logits, ~own)[:, None] - logits
    if form == "faithful":
        return (gap * own).sum() / len(own)
    return ((functional.softplus(gap) * own).sum(dim=1) / own.sum(dim=1)).mean()


def label_spread(embeddings: Tensor) -> Tensor:
    """Mean over ordered pairs i != j of exp(1 + cos(L_i, L_j)) - 1, from `[C, d]`.

    Between 0 and e^2 - 1; 0 for a single label. Source: LaCon, equation 6.
    """
    unit = normalised(embeddings)
    apart = ~torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    penalty = torch.expm1(1.0 + unit @ unit.T) * apart
    return penalty.sum() / apart.sum().clamp_min(1)


def _by_head(vectors: Tensor, heads: int) -> Tensor:
    """`[M, d]` to `[heads, M, d / heads]`."""
    return vectors.reshape(len(vectors), -1, heads).permute(2, 0, 1)
