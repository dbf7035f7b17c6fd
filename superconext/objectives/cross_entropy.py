"""Cross-entropy on the sentence vector, and the three objectives that add a term to it.

`CECE` adds a second, scaled cross-entropy, `CESCL` a supervised contrastive loss and `CECL` an
unsupervised contrast of two dropout views. The own rule of all is the classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.config.parameters import Config, parameter
from superconext.core.errors import ConfigError, TrainingError
from superconext.encoders import encoder_class
from superconext.encoders.base import EncoderOutput
from superconext.objectives.base import (
    Batch,
    CheckedOptions,
    Objective,
    Shape,
    batch_accuracy,
    parse_options,
)
from superconext.objectives.pairwise import (
    masked_log_sum_exp,
    normalised,
    similarity_report,
    widened,
)
from superconext.objectives.supcon import supcon_losses


class CrossEntropy(Objective):
    """Linear softmax classifier on the sentence vector, plain shuffled batches.

    L = -(1/N) sum_i log softmax(W h_i + b)_{y_i}
    """

    batches = "shuffled"
    uses_projection = False
    reads_temperature = False

    def __init__(self, sentence_size: int, classes: int) -> None:
        super().__init__()
        self.classifier = nn.Linear(sentence_size, classes)

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> Objective:
        return cls(shape.sentence, shape.classes)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]`; scalar: training accuracy of the batch."""
        loss, scalars = self.classified(batch)
        return loss, {"batch_accuracy": scalars["batch_accuracy"]}

    def classified(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Cross-entropy of `batch.sentence` `[N, d]`; scalars: it and the accuracy."""
        scores = self.classifier(widened(batch.sentence))
        loss = functional.cross_entropy(scores, batch.targets)
        accuracy = batch_accuracy(scores, batch.targets)
        return loss, accuracy | {"cross_entropy": float(loss.detach())}

    def class_scores(self, output: EncoderOutput) -> Tensor:
        scores: Tensor = self.classifier(widened(output.sentence))
        return scores


class _WithSecondTerm(CrossEntropy):
    """Cross-entropy beside a term that has the run's temperature."""

    reads_temperature = True

    def __init__(
        self, sentence_size: int, classes: int, temperature: float = 0.1, options: Any = None
    ) -> None:
        super().__init__(sentence_size, classes)
        self.temperature = temperature
        self.options = options or self.options_type()

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> Objective:
        return super(CrossEntropy, cls).from_config(config, shape)


@dataclass(frozen=True)
class CECEOptions(CheckedOptions):
    """Settings of CE+CE."""

    weight: float = parameter(
        0.9,
        "lambda, the share of the scaled term; at 1 the classifier's bias gets no gradient.",
        low=0,
        high=1,
        open_high=True,
    )
    normalise_weights: bool = parameter(False, "Unit rows of W in the scaled term.")


class CECE(_WithSecondTerm):
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

    options_type = CECEOptions

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]`; scalars: both terms and the accuracy."""
        cross_entropy, scalars = self.classified(batch)
        weights = self.classifier.weight
        if self.options.normalise_weights:
            weights = normalised(weights)
        scaled = functional.cross_entropy(
            normalised(batch.sentence) @ weights.T / self.temperature, batch.targets
        )
        scalars["scaled_cross_entropy"] = float(scaled.detach())
        weight = self.options.weight
        return (1 - weight) * cross_entropy + weight * scaled, scalars


@dataclass(frozen=True)
class CESCLOptions(CheckedOptions):
    """Settings of CE+SCL."""

    weight: float = parameter(
        0.9,
        "lambda, the share of SCL; for SCL without a classifier there is the objective supcon.",
        low=0,
        high=1,
        open_high=True,
    )
    scl_reduction: str = parameter("mean", "Of SCL over the anchors.", choices=("mean", "sum"))


class CESCL(_WithSecondTerm):
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

    options_type = CESCLOptions

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]`; scalars: both terms, accuracy, similarities."""
        cross_entropy, scalars = self.classified(batch)
        losses, similarities = supcon_losses(
            batch.sentence, batch.labels, batch.ids, self.temperature
        )
        scl = losses.sum()
        if self.options.scl_reduction == "mean":
            scl = scl / max(len(losses), 1)
        scalars |= {"scl": float(scl.detach()), **similarities}
        weight = self.options.weight
        return (1 - weight) * cross_entropy + weight * scl, scalars


@dataclass(frozen=True)
class CECLOptions(CheckedOptions):
    """Settings of CE+CL."""

    weight: float = parameter(0.15, "alpha, of the contrast.", low=0)
    form: str = parameter("nt_xent", "Candidates of the contrast.", choices=("nt_xent", "simcse"))
    temperature_cl: float = parameter(0.1, "Of the contrast.", low=0, open_low=True)


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

    options_type = CECLOptions

    def __init__(
        self, sentence_size: int, classes: int, options: CECLOptions | None = None
    ) -> None:
        super().__init__(sentence_size, classes)
        self.options = options or CECLOptions()

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> CECL:
        """Raises ConfigError where nothing is random: two views would be the same vectors."""
        unread = encoder_class(config.encoder).unread
        if {"dropout", "word_dropout"} <= unread:
            raise ConfigError(
                f"encoder = {config.encoder!r}: objective ce_cl contrasts two dropout views, and "
                "this encoder has no dropout; expected one that has, such as 'bilstm': use another "
                "encoder or objective"
            )
        if all(getattr(config, name) == 0 for name in {"dropout", "word_dropout"} - unread):
            raise ConfigError(
                "dropout = 0: objective ce_cl contrasts two dropout views and finds them equal; "
                "expected dropout or word_dropout above 0, such as dropout = 0.2"
            )
        return cls(shape.sentence, shape.classes, parse_options(config.options, CECLOptions))

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
        cross_entropy, scalars = self.classified(batch)
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
        scalars["contrast"] = float(contrast.detach())
        scalars |= similarity_report(cosine, positive, negative)
        return cross_entropy + self.options.weight * contrast, scalars
