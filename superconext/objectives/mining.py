"""Hard negative mining: the choice of the negatives that stay in the loss after the warm-up.

SuperConText section V.D words it three ways, and all three are here: negatives above a
similarity threshold, the k most similar ones, or the most similar share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from superconext.core.errors import ConfigError
from superconext.objectives.pairwise import count_true


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
    fallback: an anchor that keeps none takes its "hardest", takes "all", or is left
        out ("skip"). The hardest keeps the loss finite once classes are apart.
    """

    mode: str = "none"
    level: float = 0.5
    warmup: float = 1 / 3
    max_similarity: float = 1.0
    fallback: str = "hardest"

    def __post_init__(self) -> None:
        if self.mode == "topk" and self.level < 1:
            raise ConfigError(
                f"mining_threshold = {self.level}: with mining = topk it is the number of "
                "negatives each anchor keeps; expected at least 1"
            )
        if self.mode == "quantile" and not 0 < self.level <= 1:
            raise ConfigError(
                f"mining_threshold = {self.level}: with mining = quantile it is the share of "
                "negatives each anchor keeps; expected more than 0 and at most 1"
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
        if self.fallback == "hardest":
            some = _row_top(_negatives_only(cosine[rows], some), torch.ones_like(rows))
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
