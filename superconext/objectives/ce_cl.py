"""CE+CL: cross-entropy, and an unsupervised contrast of two dropout views of each sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from superconext.core.errors import ConfigError, TrainingError
from superconext.objectives.base import Batch, Shape
from superconext.objectives.cross_entropy import CrossEntropy
from superconext.objectives.options import parse_options
from superconext.objectives.similarity import (
    masked_log_sum_exp,
    normalised,
    similarity_report,
    widened,
)

if TYPE_CHECKING:
    from superconext.config.parameters import Config

FORMS = ("nt_xent", "simcse")


@dataclass(frozen=True)
class Options:
    """weight: alpha, of the contrast. form: which candidates. temperature_cl: its own."""

    weight: float = 0.15
    form: str = "nt_xent"
    temperature_cl: float = 0.1

    def __post_init__(self) -> None:
        if self.weight < 0:
            raise ConfigError(f"options: weight = {self.weight:g}; expected a value of at least 0")
        if self.form not in FORMS:
            raise ConfigError(f"options: form = {self.form!r}; expected one of {', '.join(FORMS)}")
        if not self.temperature_cl > 0:
            raise ConfigError(
                f"options: temperature_cl = {self.temperature_cl:g}; expected a value above 0"
            )


class CECL(CrossEntropy):
    """Softmax classifier on sentence vectors h, beside which h' has a fresh dropout mask.

    With alpha = `weight` and s(u, v) = cos(u, v) / temperature_cl::

        L = L_CE(h) + alpha L_CL
        nt_xent  L_CL = mean over the 2N views u of -log(exp(s(u, u')) / sum_v exp(s(u, v)))
                 u' the other view of u's sentence, v over the 2N - 1 views that are not u
        simcse   L_CL = mean over i of -log(exp(s(h_i, h'_i)) / sum_j exp(s(h_i, h'_j)))

    Labels are used by L_CE alone. Papers that compare with CE+CL name the framework and
    little else. Chosen: ConSERT's joint loss (weight 0.15, temperature 0.1) with the mean
    over all 2N views, as its paper words it (its code adds the two directions' means, so
    weight 0.3 here); SimCSE's own temperature is 0.05. Classification uses the first view.
    A sentence that stands twice in the batch is no negative of itself. Batches are shuffled.

    Sources: Yan et al. (2021, ConSERT), section 3; Gao et al. (2021, SimCSE), equation 4.
    """

    options_type = Options

    def __init__(self, sentence_size: int, classes: int, options: Options | None = None) -> None:
        super().__init__(sentence_size, classes)
        self.options = options or Options()

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> CECL:
        """Raises ConfigError where nothing is random: two views would be the same vectors."""
        if config.dropout == 0 and config.word_dropout == 0:
            raise ConfigError(
                "dropout = 0: objective ce_cl contrasts two dropout views and finds them equal; "
                "expected dropout or word_dropout above 0, such as dropout = 0.2"
            )
        return cls(shape.sentence, shape.classes, parse_options(config.options, Options))

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]` and its second view; scalars: both terms, accuracy,
        mean cosine of the two views of a sentence and of views of different sentences.

        Raises TrainingError if the batch has no `second_view`.
        """
        if batch.second_view is None:
            raise TrainingError(
                "objective ce_cl: found a batch without a second view, expected "
                "Batch.second_view to encode it again with dropout; set it"
            )
        scores = self.classifier(widened(batch.sentence))
        cross_entropy = functional.cross_entropy(scores, batch.labels)
        first, second = normalised(batch.sentence), normalised(batch.second_view()[0])
        ids = batch.ids
        row = torch.arange(len(ids), device=ids.device)
        if self.options.form == "simcse":
            cosine, partner = first @ second.T, row
        else:
            both = torch.cat([first, second])
            cosine, ids = both @ both.T, torch.cat([ids, ids])
            partner = torch.cat([row + len(row), row])
        positive = partner[:, None] == torch.arange(len(ids), device=ids.device)
        negative = ids[:, None] != ids[None, :]
        logits = cosine / self.options.temperature_cl
        contrast = (masked_log_sum_exp(logits, positive | negative) - logits[positive]).mean()
        return cross_entropy + self.options.weight * contrast, {
            "batch_accuracy": float((scores.argmax(dim=1) == batch.labels).float().mean()),
            "cross_entropy": float(cross_entropy.detach()),
            "contrast": float(contrast.detach()),
            **similarity_report(cosine, positive, negative),
        }
