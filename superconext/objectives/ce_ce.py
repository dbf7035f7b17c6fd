"""CE+CE: cross-entropy twice, once on unit vectors with temperature; the control of CE+SCL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor
from torch.nn import functional

from superconext.core.errors import ConfigError
from superconext.objectives.base import Batch, Shape
from superconext.objectives.cross_entropy import CrossEntropy
from superconext.objectives.options import parse_options
from superconext.objectives.similarity import normalised, widened

if TYPE_CHECKING:
    from superconext.config.parameters import Config


@dataclass(frozen=True)
class Options:
    """weight: lambda, the share of the scaled term. normalise_weights: unit rows of W there."""

    weight: float = 0.9
    normalise_weights: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.weight < 1:
            raise ConfigError(
                f"options: weight = {self.weight:g}; expected at least 0 and below 1, for at 1 "
                "the classifier's bias gets no gradient"
            )


class CECE(CrossEntropy):
    """What of CE+SCL's gain is normalisation and temperature, without any contrast of rows.

    With sentence vectors h, u = h/||h|| and lambda = `weight`::

        L = -(1/N) sum_i (1 - lambda) log softmax(W h_i + b)_{y_i}
                         + lambda log softmax(W u_i / temperature)_{y_i}

    The paper says only that SCL is replaced by cross-entropy, keeping normalisation and
    temperature. Chosen here: both terms share W, the scaled one has no bias, and W keeps
    its length (`normalise_weights=True` makes that term a cosine softmax). Prediction is
    W h + b. `temperature` is the run's; CE+SCL's best is 0.3. Batches are shuffled.

    Source: Gunel et al. (2021), appendix, tables 8 to 10 (CE+CE).
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
    def from_config(cls, config: Config, shape: Shape) -> CECE:
        options = parse_options(config.options, Options)
        return cls(shape.sentence, shape.classes, config.temperature, options)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]`; scalars: both terms and the accuracy."""
        scores = self.classifier(widened(batch.sentence))
        cross_entropy = functional.cross_entropy(scores, batch.labels)
        weights = self.classifier.weight
        if self.options.normalise_weights:
            weights = normalised(weights)
        scaled = functional.cross_entropy(
            normalised(batch.sentence) @ weights.T / self.temperature, batch.labels
        )
        weight = self.options.weight
        return (1 - weight) * cross_entropy + weight * scaled, {
            "batch_accuracy": float((scores.argmax(dim=1) == batch.labels).float().mean()),
            "cross_entropy": float(cross_entropy.detach()),
            "scaled_cross_entropy": float(scaled.detach()),
        }
