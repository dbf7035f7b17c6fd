"""SuperLoss, the fully supervised contrastive loss of SuperConText.

Not to be confused with the curriculum loss of the same name (Castells et al., 2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from superconext.config.parameters import parameter
from superconext.core.errors import ConfigError
from superconext.objectives.base import Batch, CheckedOptions, WithTemperature
from superconext.objectives.mining import Miner, Tally
from superconext.objectives.pairwise import (
    Choice,
    ClassBlocks,
    Pairs,
    Terms,
    class_blocks,
    class_mean,
    cosine_sums,
    masked_log_mean_exp,
    normalised,
    pairs,
    pairwise_loss,
    similarities,
    similarity_report,
    survivors,
)

#: Rows from which on chunks are faster than masks over all pairs, measured on a CPU.
CHUNKED_FROM = 160


@dataclass(frozen=True)
class Options(CheckedOptions):
    """Settings of SuperLoss: its form, which negatives it mines, and how many rows it looks at.

    n_positives and negatives_per_class say how many rows of each batch a class's part of the
    loss looks at, 0 for all of them: rows of the class itself, at least 2, which alone are its
    anchors and positives, and rows of every other class. Both are drawn anew for every class and
    batch, uniformly, from torch's generator, so the run's seed decides. A class that has fewer
    rows gives all it has. Figure 5 of SuperConText takes, for example,
    `n_positives=300,negatives_per_class=175`; its 5 classes then need a batch size of at least
    1500.
    """

    n_positives: int = parameter(0, "Rows of a class that its part of the loss looks at.", low=0)
    negatives_per_class: int = parameter(
        0, "Rows of every other class that it looks at; 0 for all.", low=0
    )
    reduction: str = parameter(
        "macro",
        "Mean over classes of class means (equation 3) or over rows (equation 8).",
        choices=("macro", "micro"),
    )
    include_self: bool = parameter(
        False, "Count a row as its own positive, as equation 6 prints it (audit only)."
    )
    mining: str = parameter(
        "none",
        "Which negatives are kept after the warm-up.",
        choices=("none", "threshold", "topk", "quantile"),
    )
    mining_threshold: float = parameter(
        0.5,
        "threshold: keep negatives whose cosine exceeds this. "
        "topk: how many each anchor keeps. quantile: share each anchor keeps.",
        low=-1.0,
    )
    mining_warmup: float = parameter(
        1 / 3, "Share of the epochs trained with every negative first.", low=0.0, high=1.0
    )
    mining_max_similarity: float = parameter(
        1.0, "Drop mined negatives above this cosine (label noise).", low=-1.0, high=1.0
    )
    mining_fallback: str = parameter(
        "hardest",
        "An anchor left without a negative uses its hardest one, all, or is skipped.",
        choices=("hardest", "all", "skip"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_positives == 1:
            raise ConfigError(
                "options: n_positives = 1; expected at least 2, for an anchor is one of them, or 0 "
                "for all rows of the class"
            )

    @property
    def sample(self) -> bool:
        return bool(self.n_positives or self.negatives_per_class)

    @property
    def miner(self) -> Miner:
        return Miner(
            self.mining,
            self.mining_threshold,
            self.mining_warmup,
            self.mining_max_similarity,
            self.mining_fallback,
        )


class SuperLoss(WithTemperature):
    """Mean positive against mean negative similarity, per anchor, in log space.

    For anchor i of class k with unit vectors z and s_ij = <z_i, z_j> / temperature::

        p_i = mean over positives of exp(s_ip)     (same class, not the row itself)
        n_i = mean over negatives of exp(s_in)     (other classes, or the mined ones)
        l_i = -log(p_i / (p_i + n_i)) = softplus(log n_i - log p_i)

    `reduction="macro"` is equation 3 (mean over classes of class means), "micro" is
    equation 8 (mean over rows). Equations 6 to 8 let a row be its own positive; that
    form is `include_self=True`, for auditing only: at temperature 0.1 its gradient is
    about a hundred times smaller.

    Anchors without a positive or without a negative do not contribute; the means are
    over the anchors that do. A batch in which none does gives 0 with zero gradient.
    A collapsed encoder has loss log 2, whatever the batch.

    Batches of `CHUNKED_FROM` rows or more are computed in chunks, with memory for N d
    numbers instead of N N; the values are the same.

    Source: SuperConText (2023), Algorithm 1 and equations 3 to 8.

    Example:
        >>> z = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        >>> labels = torch.tensor([0, 0, 1, 1])
        >>> batch = Batch(z, z, labels, ids=torch.arange(4), epoch=0, epochs=1)
        >>> loss, _ = SuperLoss(temperature=0.5)(batch)
        >>> print(f"{loss:.4f}, softplus(0 - 2) = {math.log1p(math.exp(-2)):.4f}")
        0.1269, softplus(0 - 2) = 0.1269
    """

    options_type = Options
    chance_level = math.log(2)

    def __init__(
        self, temperature: float = 0.1, options: Options | None = None, miner: Miner | None = None
    ) -> None:
        super().__init__(temperature, options)
        self.miner = miner or self.options.miner

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.projected` `[N, p]`; scalars: similarities and mining shares."""
        if len(batch.labels) >= CHUNKED_FROM and not self.options.sample:
            return self.chunked(batch)
        return self.plain(batch)

    def plain(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """The loss with masks over all N x N pairs, as the equations have it."""
        z = normalised(batch.projected)
        cosine = z @ z.T
        masks = pairs(batch.labels, batch.ids, self.options.include_self)
        if self.options.sample:
            masks = sampled(masks, batch.labels, self.options)
        negative, report = masks.negative, {"kept": 1.0}
        if self.miner.active(batch.epoch, batch.epochs):
            negative, report = self.miner.select(cosine, negative)
        scalars = similarity_report(cosine, masks.positive, masks.negative) | report

        valid = masks.positive.any(dim=1) & negative.any(dim=1)
        if not bool(valid.any()):
            return (batch.projected * 0).sum(), scalars
        logits = cosine[valid] / self.temperature
        losses = functional.softplus(
            masked_log_mean_exp(logits, negative[valid])
            - masked_log_mean_exp(logits, masks.positive[valid])
        )
        if self.options.reduction == "micro":
            return losses.mean(), scalars
        return class_mean(losses, batch.labels[valid]), scalars

    def chunked(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """The same loss a few rows at a time, its gradient formed with it."""
        z = normalised(batch.projected)
        blocks = class_blocks(batch.labels, batch.ids)
        positives, valid = blocks.positives, blocks.negatives > 0
        if self.options.include_self:
            positives = blocks.sizes[blocks.group]
        valid &= positives > 0
        sums = cosine_sums(z.detach(), blocks)
        scalars: dict[str, float] = similarities(sums, blocks, self.options.include_self) | {
            "kept": 1.0
        }
        tally = Tally()
        choose: Choice | None = None
        if self.miner.active(batch.epoch, batch.epochs):

            def mined(cosine: Tensor, negative: Tensor | None) -> Tensor:
                return self.miner.choose(cosine, negative, tally)

            choose = mined

            if self.miner.fallback == "skip":  # who is left decides the weights
                valid &= survivors(z.detach(), blocks, choose)
                tally = Tally()
        weights = self._weights(valid, blocks).to(z.dtype)

        def rule(p: Tensor, n: Tensor, negatives: Tensor, here: slice) -> Terms:
            p = p - positives[here].clamp(min=1).to(p.dtype).log()
            difference = n - negatives.clamp(min=1).to(p.dtype).log() - p
            slope = weights[here] * torch.sigmoid(difference)
            return Terms(weights[here] * functional.softplus(difference), -slope, slope)

        loss = pairwise_loss(z, blocks, self.temperature, rule, choose, self.options.include_self)
        return loss, scalars | (tally.report() if choose else {})

    def _weights(self, valid: Tensor, blocks: ClassBlocks) -> Tensor:
        """Of each anchor's term, summing to 1, in the order of `blocks`."""
        weights = valid.double()
        if self.options.reduction == "macro":
            of_class = weights.new_zeros(len(blocks.sizes)).index_add(0, blocks.group, weights)
            weights = weights / of_class[blocks.group].clamp(min=1)
        return weights / weights.sum().clamp(min=1e-30)


def sampled(masks: Pairs, labels: Tensor, options: Options) -> Pairs:
    """The pairs that are left of a batch when each class looks at some rows only."""
    kinds, group, sizes = torch.unique(labels, return_inverse=True, return_counts=True)
    # For each class, every row's place among the rows of its own class in a random order.
    wanted = torch.full((len(kinds), len(kinds)), options.negatives_per_class or len(labels))
    wanted.fill_diagonal_(options.n_positives or len(labels))
    keys = torch.rand(len(kinds), len(labels), dtype=torch.float64).to(labels.device)
    place = torch.empty_like(group)
    seen = torch.empty(len(kinds), len(labels), dtype=torch.bool, device=labels.device)
    first = torch.cumsum(sizes, 0) - sizes
    for k in range(len(kinds)):
        order = torch.argsort(group + keys[k])  # by class, within it at random
        place[order] = torch.arange(len(labels), device=labels.device) - first[group[order]]
        seen[k] = place < wanted.to(labels.device)[k, group]
    mine = seen[group]
    anchor = mine.diagonal()
    return Pairs(masks.positive & mine & anchor[:, None], masks.negative & mine & anchor[:, None])
