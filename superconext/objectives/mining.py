"""Hard negatives: which of an anchor's negatives stay in the loss after the warm-up.

SuperConText section V.D words it three ways, and all three are here: negatives above a
similarity threshold, the k most similar ones, or the most similar share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from superconext.errors import ConfigError


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
        available = negative.sum(dim=1)
        kept = negative & self._hard(cosine, negative, available)
        if self.max_similarity < 1.0:
            kept = kept & (cosine <= self.max_similarity)
        empty = (~kept.any(dim=1)) & (available > 0)
        if bool(empty.any()):
            kept = self._fall_back(kept, empty, cosine, negative)
        total = int(available.sum())
        anchors = max(int((available > 0).sum()), 1)
        report = {
            "kept": float(kept.sum()) / total if total else 1.0,
            "kept_per_anchor": float(kept.sum()) / anchors,
            "fallback": float(empty.sum()) / anchors,
        }
        return kept, report

    def _hard(self, cosine: Tensor, negative: Tensor, available: Tensor) -> Tensor:
        if self.mode == "threshold" and self.level > -1:
            return cosine > self.level
        if self.mode in ("none", "threshold"):  # every cosine passes -1, rounding aside
            return torch.ones_like(negative)
        if self.mode == "topk":
            wanted = torch.full_like(available, int(self.level)).minimum(available)
        else:
            # Guarded against 0.1 * 10 = 1.0000000000000002, which would keep one too many.
            wanted = torch.ceil(available.double() * self.level - 1e-9).long()
        return _row_top(cosine.masked_fill(~negative, -torch.inf), wanted)

    def _fall_back(self, kept: Tensor, empty: Tensor, cosine: Tensor, negative: Tensor) -> Tensor:
        if self.fallback == "skip":
            return kept
        if self.fallback == "all":
            return torch.where(empty[:, None], negative, kept)
        one = _row_top(cosine.masked_fill(~negative, -torch.inf), empty.long())
        return kept | (one & negative)


def _row_top(scores: Tensor, wanted: Tensor) -> Tensor:
    """True at the `wanted[i]` largest entries of row i; ties go to the lower column."""
    largest = int(wanted.max()) if wanted.numel() else 0
    if largest == 0:
        return torch.zeros_like(scores, dtype=torch.bool)
    order = torch.sort(scores, dim=1, descending=True, stable=True).indices[:, :largest]
    rank = torch.arange(largest, device=scores.device)
    chosen = rank[None, :] < wanted[:, None]
    return torch.zeros_like(scores, dtype=torch.bool).scatter(1, order, chosen)
