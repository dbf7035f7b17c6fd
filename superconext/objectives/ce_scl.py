"""CE+SCL: cross-entropy and a supervised contrastive loss on the same sentence vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn import functional

from superconext.core.errors import ConfigError
from superconext.objectives.base import Batch, Shape
from superconext.objectives.cross_entropy import CrossEntropy
from superconext.objectives.options import parse_options
from superconext.objectives.similarity import widened
from superconext.objectives.supcon import supcon_losses

if TYPE_CHECKING:
    from superconext.config.parameters import Config

REDUCTIONS = ("mean", "sum")


@dataclass(frozen=True)
class Options:
    """weight: lambda, the share of SCL. scl_reduction: mean over anchors, or their sum."""

    weight: float = 0.9
    scl_reduction: str = "mean"

    def __post_init__(self) -> None:
        if not 0 <= self.weight < 1:
            raise ConfigError(
                f"options: weight = {self.weight:g}; expected at least 0 and below 1, for at 1 "
                "the classifier gets no gradient (objective = supcon trains without one)"
            )
        if self.scl_reduction not in REDUCTIONS:
            raise ConfigError(
                f"options: scl_reduction = {self.scl_reduction!r}; "
                f"expected one of {', '.join(REDUCTIONS)}"
            )


class CESCL(CrossEntropy):
    """Softmax classifier whose sentence vectors are also pulled together by class.

    With sentence vectors h, unit vectors h/||h|| in SCL only, and lambda = `weight`::

        L     = (1 - lambda) L_CE + lambda L_SCL
        L_CE  = -(1/N) sum_i log softmax(W h_i + b)_{y_i}
        L_SCL = mean over anchors of L_out (see SupCon)

    The paper prints L_SCL as a sum over rows beside a mean for L_CE, which puts the batch
    size into lambda; `scl_reduction=sum` is that form. Its "final hidden layer before the
    softmax" and its "[CLS]" are both the sentence vector here. Rows without a positive are
    no anchors; without any, L_SCL is 0. `temperature` is the run's: the paper's best is
    0.3, with lambda 0.9. Batches are shuffled, not balanced, as in the paper.

    Source: Gunel et al. (2021), equations 1 to 3.
    """

    options_type = Options

    def __init__(
        self,
        sentence_size: int,
        classes: int,
        temperature: float = 0.1,
        options: Options | None = None,
    ) -> None:
        super().__init__(sentence_size, classes)
        self.temperature = temperature
        self.options = options or Options()

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> CESCL:
        options = parse_options(config.options, Options)
        return cls(shape.sentence, shape.classes, config.temperature, options)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]`; scalars: both terms, accuracy, similarities."""
        scores = self.classifier(widened(batch.sentence))
        cross_entropy = functional.cross_entropy(scores, batch.labels)
        losses, similarities = supcon_losses(
            batch.sentence, batch.labels, batch.ids, self.temperature
        )
        scl = losses.sum()
        if self.options.scl_reduction == "mean":
            scl = scl / max(len(losses), 1)
        weight = self.options.weight
        return (1 - weight) * cross_entropy + weight * scl, {
            "batch_accuracy": float((scores.argmax(dim=1) == batch.labels).float().mean()),
            "cross_entropy": float(cross_entropy.detach()),
            "scl": float(scl.detach()),
            **similarities,
        }
