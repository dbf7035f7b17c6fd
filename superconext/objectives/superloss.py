"""SuperLoss, the fully supervised contrastive loss of SuperConText.

Not to be confused with the curriculum loss of the same name (Castells et al., 2020).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn import functional

from superconext.objectives.base import Batch, Objective, Shape
from superconext.objectives.mining import Miner
from superconext.objectives.similarity import (
    class_mean,
    masked_log_mean_exp,
    normalised,
    pairs,
    similarity_report,
)

if TYPE_CHECKING:
    from superconext.config import Config


class SuperLoss(Objective):
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

    Source: SuperConText (2023), Algorithm 1 and equations 3 to 8.
    """

    chance_level = math.log(2)

    def __init__(
        self,
        temperature: float = 0.1,
        reduction: str = "macro",
        include_self: bool = False,
        miner: Miner | None = None,
    ) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"temperature must be above 0, got {temperature}")
        if reduction not in ("macro", "micro"):
            raise ValueError(f"reduction must be 'macro' or 'micro', got {reduction!r}")
        self.temperature = temperature
        self.reduction = reduction
        self.include_self = include_self
        self.miner = miner or Miner()

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> SuperLoss:
        return cls(
            temperature=config.temperature,
            reduction=config.reduction,
            include_self=config.include_self,
            miner=Miner(
                config.mining,
                config.mining_threshold,
                config.mining_warmup,
                config.mining_max_similarity,
                config.mining_fallback,
            ),
        )

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.projected` `[N, p]`; scalars: similarities and mining shares."""
        z = normalised(batch.projected)
        cosine = z @ z.T
        masks = pairs(batch.labels, batch.ids, self.include_self)
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
        if self.reduction == "micro":
            return losses.mean(), scalars
        return class_mean(losses, batch.labels[valid]), scalars
