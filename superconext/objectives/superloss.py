"""SuperLoss, the fully supervised contrastive loss of SuperConText, and its hard negatives.

Not to be confused with the curriculum loss of the same name (Castells et al., 2020).

Hard negative mining chooses the negatives that stay in the loss after the warm-up. SuperConText
section V.D words it three ways, and all three are here: negatives above a similarity threshold, the
k most similar ones, or the most similar share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from superconext.config.parameters import parameter
from superconext.core.errors import ConfigError
from superconext.objectives.base import Batch, CheckedOptions, WithTemperature
from superconext.objectives.pairwise import (
    Choice,
    ClassBlocks,
    Pairs,
    Terms,
    class_blocks,
    class_mean,
    cosine_sums,
    count_true,
    masked_log_mean_exp,
    normalised,
    pairs,
    pairwise_loss,
    similarities,
    similarity_report,
    survivors,
)


@dataclass
class Tally:
    """Counts over the anchors of a batch: negatives, anchors that have any, negatives kept, and
    anchors that kept none by themselves."""

    available: int = 0
    anchors: int = 0
    kept: int = 0
    empty: int = 0

    def report(self) -> dict[str, float]:
        """Shares and a mean, see `Miner.select`."""
        anchors = max(self.anchors, 1)
        return {
            "kept": self.kept / self.available if self.available else 1.0,
            "kept_per_anchor": self.kept / anchors,
            "fallback": self.empty / anchors,
        }


@dataclass(frozen=True)
class Miner:
    """How negatives are chosen.

    mode: "none", "threshold" (cosine above `level`), "topk" (the `level` hardest) or
        "quantile" (the hardest share `level` of each anchor's negatives).
    level: see mode.
    warmup: share of the epochs in which every negative is kept.
    max_similarity: negatives above this cosine are dropped as probable label noise.
    fallback: an anchor that keeps none takes its "hardest" that is not dropped so, takes "all"
        such, or is left out ("skip"). The hardest keeps the loss finite once classes are apart.
    """

    mode: str = "none"
    level: float = 0.5
    warmup: float = 1 / 3
    max_similarity: float = 1.0
    fallback: str = "hardest"

    def __post_init__(self) -> None:
        if self.mode == "topk" and self.level < 1:
            raise ConfigError(
                f"mining = topk with mining_threshold = {self.level:g}; expected the number of "
                "negatives that each anchor keeps, 1 or more: add mining_threshold=20, say"
            )
        if self.mode == "quantile" and not 0 < self.level <= 1:
            raise ConfigError(
                f"mining = quantile with mining_threshold = {self.level:g}; expected the share of "
                "negatives that each anchor keeps, above 0 and at most 1: add mining_threshold=0.2"
            )

    def active(self, epoch: int, epochs: int) -> bool:
        """Whether mining has begun: from epoch `ceil(warmup * epochs)` on, counted from 0."""
        return self.mode != "none" and epoch >= math.ceil(self.warmup * epochs)

    @torch.no_grad()
    def select(self, cosine: Tensor, negative: Tensor) -> tuple[Tensor, dict[str, float]]:
        """The kept negatives `[N, N]` and a report, from cosines `[N, N]`.

        The report has `kept` (share of all negatives kept), `kept_per_anchor` (mean
        count) and `fallback` (share of anchors that kept none by themselves).
        """
        tally = Tally()
        return self.choose(cosine, negative, tally), tally.report()

    @torch.no_grad()
    def choose(self, cosine: Tensor, negative: Tensor | None, tally: Tally) -> Tensor:
        """The kept negatives of some anchors, `[n, N]`; their counts are added to the tally.

        negative: which pairs are negatives, `[n, N]`, or None where all are.
        """
        if negative is None:
            available = torch.full((len(cosine),), cosine.shape[1], device=cosine.device)
            kept = self._hard(cosine, available)
        else:
            available = count_true(negative)
            kept = negative & self._hard(_negatives_only(cosine, negative), available)
        if self.max_similarity < 1.0:
            kept = kept & (cosine <= self.max_similarity)
        numbers = count_true(kept)
        empty = (numbers == 0) & (available > 0)
        if bool(empty.any()):
            kept = self._fall_back(kept, empty, cosine, negative)
            numbers = count_true(kept)
        tally.available += int(available.sum())
        tally.anchors += int((available > 0).sum())
        tally.kept += int(numbers.sum())
        tally.empty += int(empty.sum())
        return kept

    def _hard(self, cosine: Tensor, available: Tensor) -> Tensor:
        """Which entries of `[n, N]` count as hard, bool; pairs that are no negatives must be below
        all others."""
        if self.mode == "threshold" and self.level > -1:
            return cosine > self.level
        if self.mode in ("none", "threshold"):  # every cosine passes -1, rounding aside
            return torch.ones_like(cosine, dtype=torch.bool)
        if self.mode == "topk":
            wanted = torch.full_like(available, int(self.level)).minimum(available)
        else:
            # Guarded against 0.1 * 10 = 1.0000000000000002, which would keep one too many.
            wanted = torch.ceil(available.double() * self.level - 1e-9).long()
        return _row_top(cosine, wanted)

    def _fall_back(
        self, kept: Tensor, empty: Tensor, cosine: Tensor, negative: Tensor | None
    ) -> Tensor:
        if self.fallback == "skip":
            return kept
        rows = torch.nonzero(empty)[:, 0]
        some = torch.ones_like(kept[rows]) if negative is None else negative[rows]
        if self.max_similarity < 1.0:
            some = some & (cosine[rows] <= self.max_similarity)
        if self.fallback == "hardest":
            some = _row_top(_negatives_only(cosine[rows], some), some.any(dim=1).to(rows.dtype))
        return kept.index_copy(0, rows, some)


def _negatives_only(cosine: Tensor, negative: Tensor) -> Tensor:
    """Cosines, with whatever is no negative below all of them."""
    return cosine.sub((~negative).to(cosine.dtype), alpha=4.0)


def _row_top(scores: Tensor, wanted: Tensor) -> Tensor:
    """True at the `wanted[i]` largest entries of row i; ties go to the lower column."""
    largest = int(wanted.max()) if wanted.numel() else 0
    if largest == 0:
        return torch.zeros_like(scores, dtype=torch.bool)
    chosen = scores >= _largest(scores, wanted)[:, None]
    chosen &= (wanted > 0)[:, None]
    tied = torch.nonzero(count_true(chosen) > wanted)[:, 0]
    if len(tied):
        order = torch.sort(scores[tied], dim=1, descending=True, stable=True).indices
        rank = torch.arange(largest, device=scores.device)
        first = rank[None, :] < wanted[tied, None]
        none = torch.zeros_like(chosen[tied])
        chosen[tied] = none.scatter(1, order[:, :largest], first)
    return chosen


def _largest(scores: Tensor, wanted: Tensor) -> Tensor:
    """The `wanted[i]`-th largest entry of row i (the largest, where 0 are wanted), `[n]`."""
    place = wanted.clamp(min=1)
    if scores.device.type != "cpu":
        top = torch.topk(scores, int(place.max()), dim=1).values
        return top.gather(1, place[:, None] - 1)[:, 0]
    values = scores.numpy()
    columns = values.shape[1] - place.numpy()
    parted = np.partition(values, np.unique(columns), axis=1)
    return torch.from_numpy(parted[np.arange(len(parted)), columns])


#: Rows from which on chunks are faster than masks over all pairs, measured on a CPU.
CHUNKED_FROM = 160


@dataclass(frozen=True)
class Options(CheckedOptions):
    """Settings of SuperLoss: its form, which negatives it mines, and how many rows it looks at.

    n_positives and negatives_per_class say how many rows of each batch a class's part of the
    loss looks at, 0 for all of them: rows of the class itself, at least 2, which alone are its
    anchors and positives, and rows of every other class. Both are drawn again for every class and
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
        "An anchor left without a negative uses its hardest one, all, or is skipped; "
        "mining_max_similarity still holds.",
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

            # Who is left decides the weights.
            if self.miner.fallback == "skip" or self.miner.max_similarity < 1.0:
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
