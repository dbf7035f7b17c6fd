"""Cross-entropy, the objective everybody starts from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.nn import functional

from superconext.objectives.base import Batch, Objective, Shape
from superconext.objectives.similarity import widened

if TYPE_CHECKING:
    from superconext.config.parameters import Config
    from superconext.encoders.base import EncoderOutput


class CrossEntropy(Objective):
    """Linear softmax classifier on the sentence vector, plain shuffled batches.

    L = -(1/N) sum_i log softmax(W h_i + b)_{y_i}
    """

    batches = "shuffled"
    uses_projection = False

    def __init__(self, sentence_size: int, classes: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(sentence_size, classes)

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> CrossEntropy:
        return cls(shape.sentence, shape.classes)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]`; scalar: training accuracy of the batch."""
        scores = self.classifier(widened(batch.sentence))
        loss = functional.cross_entropy(scores, batch.labels)
        accuracy = float((scores.argmax(dim=1) == batch.labels).float().mean())
        return loss, {"batch_accuracy": accuracy}

    def class_scores(self, output: EncoderOutput) -> Tensor:
        scores: Tensor = self.classifier(widened(output.sentence))
        return scores
