"""The three contrastive losses of CSS-LM, over labelled rows and rows of the pool.

N labelled rows of a batch (T) and R retrieved rows (O); f(u, v) = cos(u, v) / temperature.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from superconext.objectives.css_retrieval import Retrieved
from superconext.objectives.similarity import class_mean, masked_log_sum_exp, normalised


@dataclass(frozen=True)
class Labelled:
    """Which labelled rows of a batch stand how to each other, booleans `[N, N]`.

    same: C(i), the other rows of the class. others: rows in the denominators. A row drawn
    twice is neither, as the row itself; in form "faithful" all rows are `others`.
    """

    labels: Tensor
    same: Tensor
    others: Tensor

    @classmethod
    def of(cls, labels: Tensor, ids: Tensor, form: str) -> Labelled:
        apart = ids[:, None] != ids[None, :]
        others = torch.ones_like(apart) if form == "faithful" else apart
        return cls(labels, (labels[:, None] == labels[None, :]) & apart, others)


def css_loss(
    rows: Tensor, pool: Tensor, t: Labelled, o: Retrieved, temperature: float, form: str
) -> Tensor:
    """L_CSS (equation 2) from vectors `[N, 2d]` and pool vectors `[R, 2d]`.

    With nothing retrieved this is L_CS (equation 1).
    """
    rows, pool = normalised(rows), normalised(pool)
    logits = rows @ torch.cat([rows, pool]).T / temperature
    total = _two_pulls(logits, t.same, o.positives, t.others, o.negatives, form)
    pairs, anchors = _pool_pairs(pool, o.positives, o.negatives, temperature)
    if form == "faithful":
        return total + (pairs / (t.same[anchors].sum(dim=1) + 1)).sum()
    return total + class_mean(pairs, t.labels[anchors])


def domain_loss(
    rows: Tensor, pool: Tensor, t: Labelled, o: Retrieved, temperature: float, form: str
) -> Tensor:
    """L_D (equation 6) from domain vectors `[N, d]` and `[R, d]`.

    All labelled rows are one domain. Of the whole pool in the denominator, N_D stands for
    what is not in P_D(i).
    """
    rows, pool = normalised(rows), normalised(pool)
    logits = rows @ torch.cat([rows, pool]).T / temperature
    near, far = o.domain_positives, o.domain_negatives
    return _two_pulls(logits, t.others, near, t.others, far, form)


def class_loss(
    rows: Tensor, pool: Tensor, t: Labelled, o: Retrieved, temperature: float, form: str
) -> Tensor:
    """L_C (equation 7) from class vectors `[N, d]` and `[R, d]`.

    The first sum is over C(i) and the pool's terms of Z are of class vectors: as printed
    (over all of T, of domain vectors) it could not tell classes apart.
    """
    rows, pool = normalised(rows), normalised(pool)
    logits = rows @ torch.cat([rows, pool]).T / temperature
    return _two_pulls(logits, t.same, o.class_positives, t.others, o.class_negatives, form)


def _two_pulls(
    logits: Tensor, near: Tensor, found: Tensor, others: Tensor, against: Tensor, form: str
) -> Tensor:
    """Towards labelled positives and towards pool positives, under one Z_i.

    logits: f of the batch with batch and pool `[N, N + R]`. near, others: `[N, N]`, labelled
    positives and rows in Z_i. found, against: `[N, R]`, pool positives and negatives.
    """
    n = len(logits)
    seen = torch.cat([others, found | against], dim=1)
    total = logits.new_zeros(())
    for part, positive in ((logits[:, :n], near), (logits[:, n:], found)):
        valid = positive.any(dim=1)
        log_z = masked_log_sum_exp(logits[valid], seen[valid])
        means = (part * positive)[valid].sum(dim=1) / positive[valid].sum(dim=1)
        losses = log_z - means
        total = total + losses.sum() / (1 if form == "faithful" else max(len(losses), 1))
    return total


def _pool_pairs(
    pool: Tensor, positives: Tensor, negatives: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Mean of log Zu_j - f(j, k) over ordered pairs of P(i), `[A]`, and the rows i `[A]`.

    Row by row of the batch, so that only |P(i)| x |P(i) + N(i)| similarities are made.
    """
    anchors = torch.nonzero(positives.sum(dim=1) > 1).flatten()
    means = []
    for i in anchors.tolist():
        inside = pool[positives[i]]
        itself = torch.eye(len(inside), dtype=torch.bool, device=pool.device)
        near = (inside @ inside.T / temperature).masked_fill(itself, -torch.inf)
        far = inside @ pool[negatives[i]].T / temperature
        log_z = torch.logsumexp(torch.cat([near, far], dim=1), dim=1)
        means.append(log_z.mean() - near[~itself].mean())
    return torch.stack(means) if means else pool.sum(dim=1)[:0], anchors
