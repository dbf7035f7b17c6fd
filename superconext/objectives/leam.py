"""LEAM: a classifier on tokens weighted by their match with label embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.core.errors import ConfigError
from superconext.objectives.base import Batch, Objective, Shape
from superconext.objectives.label_fusion import (
    LabelAttention,
    batch_tokens,
    check_attention,
    label_embeddings,
    text_tokens,
)
from superconext.objectives.options import parse_options

if TYPE_CHECKING:
    from superconext.config.parameters import Config
    from superconext.encoders.base import EncoderOutput


@dataclass(frozen=True)
class Options:
    """LEAM's settings; `LEAM` says where each default comes from.

    width, kernel: of the attention's window, see `LabelAttention`.
    hidden: units of the classifier's hidden layer. dropout: before each of its layers.
    regulariser: gamma, the weight of classifying the label embeddings themselves.
    """

    width: int = 5
    kernel: str = "full"
    hidden: int = 300
    dropout: float = 0.5
    regulariser: float = 1.0

    def __post_init__(self) -> None:
        check_attention(self.width, self.kernel)
        if self.hidden < 1:
            raise ConfigError(f"options: hidden = {self.hidden}; expected a value of at least 1")
        if not 0 <= self.dropout < 1:
            raise ConfigError(
                f"options: dropout = {self.dropout:g}; expected at least 0 and below 1"
            )
        if self.regulariser < 0:
            raise ConfigError(
                f"options: regulariser = {self.regulariser:g}; expected a value of at least 0"
            )


class LEAM(Objective):
    """Label-embedding attentive model, on the encoder's token states instead of word vectors.

    With z the attended vector of a sentence and V the trainable label embeddings (see
    `LabelAttention`), f = Linear(ReLU(Linear(.)))::

        L = (1/N) sum_i -log softmax(f(z_i))_{y_i} + gamma (1/C) sum_c -log softmax(f(V_c))_c

    Prediction: argmax_c f(z)_c. The probe sees the encoder's sentence vector, which is
    trained through the token states.

    Defaults: `hidden` 300, `dropout` 0.5, `regulariser` 1 and `kernel` full are the public
    code's, `width` is 5 for short texts (there 55, for reviews and articles). Label embeddings are
    trained and start at random, see `label_embeddings`. `temperature` is not used.
    Batches are shuffled.

    Source: Wang et al. (2018) and its public code; LaCon compares with it on contextual states.
    """

    batches = "shuffled"
    uses_projection = False
    needs_token_states = True
    options_type = Options

    def __init__(self, size: int, classes: int, options: Options | None = None) -> None:
        super().__init__()
        self.options = options or Options()
        self.labels = label_embeddings(classes, size)
        self.attention = LabelAttention(classes, self.options.width, self.options.kernel)
        self.classifier = nn.Sequential(
            nn.Dropout(self.options.dropout),
            nn.Linear(size, self.options.hidden),
            nn.ReLU(),
            nn.Dropout(self.options.dropout),
            nn.Linear(self.options.hidden, classes),
        )

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> LEAM:
        return cls(shape.sentence, shape.classes, parse_options(config.options, Options))

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.token_states` `[N, T, d]`; scalars: both terms and the accuracy.

        Raises TrainingError if the batch has no token states.
        """
        states, mask = batch_tokens(batch, "leam")
        scores = self._scores(states, mask)
        cross_entropy = functional.cross_entropy(scores, batch.labels)
        classes = torch.arange(len(self.labels), device=scores.device)
        of_labels = functional.cross_entropy(self.classifier(self.labels), classes)
        return cross_entropy + self.options.regulariser * of_labels, {
            "batch_accuracy": float((scores.argmax(dim=1) == batch.labels).float().mean()),
            "cross_entropy": float(cross_entropy.detach()),
            "label_cross_entropy": float(of_labels.detach()),
        }

    def class_scores(self, output: EncoderOutput) -> Tensor:
        """Logits `[N, C]` from token states `[N, T, d]` and mask `[N, T]`."""
        return self._scores(text_tokens(output.token_states, output.mask), output.mask)

    def _scores(self, states: Tensor, mask: Tensor) -> Tensor:
        scores: Tensor = self.classifier(self.attention(states, mask, self.labels))
        return scores
