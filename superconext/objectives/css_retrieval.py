"""Which rows of the unlabelled pool does CSS-LM put beside a batch?

N labelled rows of a batch, M rows in the pool, R of them retrieved for this batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from superconext.core.errors import ConfigError
from superconext.objectives.base import PoolOptions
from superconext.objectives.similarity import normalised

LEVELS = ("D+C", "D", "C")
FORMS = ("mean", "faithful")
NEGATIVES = ("random", "farthest")


@dataclass(frozen=True)
class RetrievalOptions(PoolOptions):
    """What CSS-LM and CSS-LM-ST share.

    levels: D, C or D+C, the paper's variants: the spaces that retrieve and have a loss.
    form: means and without i in Z_i, or faithful: sums over all rows, as printed.
    retrieved: K, rows in each set of a query. queries: rows of a batch that retrieve.
    negatives: random rows of the pool, or each query's farthest. negative_rows: random ones.
    warmup: epochs before the first retrieval. weight: of the contrastive losses.
    """

    levels: str = "D+C"
    form: str = "mean"
    retrieved: int = 16
    queries: int = 16
    negatives: str = "random"
    negative_rows: int = 64
    warmup: int = 1
    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("levels", LEVELS), ("form", FORMS), ("negatives", NEGATIVES)):
            value = getattr(self, name)
            if value not in known:
                raise ConfigError(
                    f"options: {name} = {value!r}; expected one of {', '.join(known)}"
                )
        for name, low in (("retrieved", 1), ("queries", 1), ("negative_rows", 0), ("warmup", 0)):
            value = getattr(self, name)
            if value < low:
                raise ConfigError(f"options: {name} = {value}; expected a value of at least {low}")
        if self.weight < 0:
            raise ConfigError(f"options: weight = {self.weight:g}; expected a value of at least 0")


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

    Args:
        units: `Spaces.units` of the batch `[N, 2d]`; memory: of the pool `[M, 2d]`.
        labels: `[N]`.
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
        found = torch.zeros(len(labels), len(rows), dtype=torch.bool, device=rows.device)
        if name in lists:
            found[queries[:, None], torch.searchsorted(rows, lists[name])] = True
        return found

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
