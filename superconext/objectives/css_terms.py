"""Retrieval from unlabelled text and the three contrastive losses of CSS-LM.

N labelled rows of a batch (T), M rows in the pool, R of them retrieved for this batch (O);
f(u, v) = cos(u, v) / temperature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from superconext.config.parameters import parameter
from superconext.objectives.base import PoolOptions
from superconext.objectives.pairwise import class_mean, masked_log_sum_exp, normalised


def form_parameter() -> Any:
    """The option `form`, which SCF has too."""
    text = "Means, without i in Z_i; or faithful: sums over all rows, as printed."
    return parameter("mean", text, choices=("mean", "faithful"))


@dataclass(frozen=True)
class RetrievalOptions(PoolOptions):
    """What CSS-LM and CSS-LM-ST share."""

    levels: str = parameter(
        "D+C", "Spaces that retrieve and have a loss.", choices=("D+C", "D", "C")
    )
    form: str = form_parameter()
    retrieved: int = parameter(16, "K, rows in each set of a query.", low=1)
    queries: int = parameter(16, "Rows of a batch that retrieve.", low=1)
    negatives: str = parameter(
        "random",
        "Random rows of the pool, or each query's farthest.",
        choices=("random", "farthest"),
    )
    negative_rows: int = parameter(64, "How many random negatives.", low=0)
    warmup: int = parameter(1, "Epochs before the first retrieval.", low=0)
    weight: float = parameter(1.0, "Of the contrastive losses.", low=0)


@dataclass(frozen=True)
class Spaces:
    """Domain and class vectors of the same rows, `[n, d]` each."""

    domain: Tensor
    cls: Tensor

    @property
    def joint(self) -> Tensor:
        """x = [d; c], `[n, 2d]`."""
        return torch.cat([self.domain, self.cls], dim=1)

    @property
    def units(self) -> Tensor:
        """Both as unit vectors side by side, `[n, 2d]`: what the pool's memory holds."""
        return torch.cat([normalised(self.domain), normalised(self.cls)], dim=1)


@dataclass(frozen=True)
class Retrieved:
    """Pool rows of one batch, and what each is to each labelled row.

    rows: distinct row numbers of the pool `[R]`. The others are booleans `[N, R]`:
    positives P(i), domain_positives P_D(i), class_positives P_C(i), negatives N(i),
    domain_negatives N_D(i), class_negatives (N_C(i) without its labelled rows).
    """

    rows: Tensor
    positives: Tensor
    domain_positives: Tensor
    class_positives: Tensor
    negatives: Tensor
    domain_negatives: Tensor
    class_negatives: Tensor


def nothing_retrieved(labels: Tensor) -> Retrieved:
    """The empty sets training starts with."""
    empty = torch.zeros(len(labels), 0, dtype=torch.bool, device=labels.device)
    return Retrieved(labels.new_empty(0), *[empty] * 6)


def choose_queries(labels: Tensor, count: int) -> Tensor:
    """Positions `[Q]` of up to `count` rows that retrieve, the classes taking turns.

    With queries of one class alone no other class would retrieve, and N_C be empty.
    """
    same = labels[:, None] == labels[None, :]
    turn = same.tril(-1).sum(dim=1)
    return torch.argsort(turn, stable=True)[:count]


@torch.no_grad()
def retrieve(
    units: Tensor, memory: Tensor, labels: Tensor, options: RetrievalOptions, own_sets: bool
) -> Retrieved:
    """Nearest pool rows of some rows of the batch as positives, others as negatives.

    A query's own vectors decide: fT(i, .) = fD(i, .) + fC(i, .) with cosines, of which
    `levels` may leave one out. (The published code scores a linear layer over query and
    pool row side by side, a sum of one term each, so that fD and fC rank the pool alike
    for every query.) One matrix product for each space, `[Q, M]`.

    Random negatives are the same rows for the whole batch; farthest ones are each query's
    own. What a row of the same class has as a positive is no negative of the class, and
    what any row has as a domain positive is no domain negative.

    units: `Spaces.units` of the batch `[N, 2d]`; memory: of the pool `[M, 2d]`; labels: `[N]`;
    own_sets: whether P_D and P_C are wanted beside P.
    """
    width = memory.shape[1] // 2
    queries = choose_queries(labels, options.queries)
    asked = units[queries].to(memory)
    scores = {
        "D": asked[:, :width] @ memory[:, :width].T,
        "C": asked[:, width:] @ memory[:, width:].T,
    }
    scores["D+C"] = scores["D"] + scores["C"]
    size = min(options.retrieved, len(memory))
    lists = {"P": scores[options.levels].topk(size).indices}
    levels = [level for level in ("D", "C") if own_sets and level in options.levels]
    for level in levels:
        lists[level] = scores[level].topk(size).indices
    drawn = memory.new_empty(0, dtype=torch.int64)
    if options.negatives == "random":
        # From the CPU's generator, whose state is part of a checkpoint.
        drawn = torch.randperm(len(memory))[: options.negative_rows].to(memory.device)
    else:
        lists["N"] = scores[options.levels].topk(size, largest=False).indices
        if "D" in levels:
            lists["N_D"] = scores["D"].topk(size, largest=False).indices
    rows = torch.unique(torch.cat([*(ids.flatten() for ids in lists.values()), drawn]))
    for_all = torch.isin(rows, drawn)

    def mask(name: str) -> Tensor:
        members = torch.zeros(len(labels), len(rows), dtype=torch.bool, device=rows.device)
        if name in lists:
            members[queries[:, None], torch.searchsorted(rows, lists[name])] = True
        return members

    same = labels[:, None] == labels[None, :]
    positives, of_domain, of_class = mask("P"), mask("D"), mask("C")
    return Retrieved(
        rows,
        positives,
        of_domain,
        of_class,
        (mask("N") | for_all) & ~_union(same, positives),
        (mask("N_D") | for_all) & ~of_domain.any(dim=0),
        _union(~same, of_class) & ~_union(same, of_class),
    )


def _union(related: Tensor, sets: Tensor) -> Tensor:
    """For each row the union `[N, R]` of the sets of the rows it is related to `[N, N]`."""
    return (related.float() @ sets.float()) > 0


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
    logits: Tensor, near: Tensor, retrieved: Tensor, others: Tensor, against: Tensor, form: str
) -> Tensor:
    """Towards labelled positives and towards pool positives, under one Z_i.

    logits: f of the batch with batch and pool `[N, N + R]`. near, others: `[N, N]`, labelled
    positives and rows in Z_i. retrieved, against: `[N, R]`, pool positives and negatives.
    """
    n = len(logits)
    seen = torch.cat([others, retrieved | against], dim=1)
    total = logits.new_zeros(())
    for part, positive in ((logits[:, :n], near), (logits[:, n:], retrieved)):
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
