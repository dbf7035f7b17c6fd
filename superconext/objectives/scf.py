"""SCF, supervised contrastive fine-tuning: CSS-LM's rival that sees no unlabelled text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.core.errors import ConfigError
from superconext.objectives.base import Batch, Objective, Shape
from superconext.objectives.css_retrieval import FORMS, Spaces, nothing_retrieved
from superconext.objectives.css_terms import Labelled, css_loss
from superconext.objectives.options import parse_options
from superconext.objectives.similarity import normalised, pairs, similarity_report, widened

if TYPE_CHECKING:
    from superconext.config.parameters import Config
    from superconext.encoders.base import EncoderOutput


@dataclass(frozen=True)
class Options:
    """form: mean, or faithful: sums, and i itself in Z_i. weight: of L_CS."""

    form: str = "mean"
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ConfigError(f"options: form = {self.form!r}; expected one of {', '.join(FORMS)}")
        if self.weight < 0:
            raise ConfigError(f"options: weight = {self.weight:g}; expected a value of at least 0")


class SCF(Objective):
    """Cross-entropy and SupCon on x = [d; c], the representation that CSS-LM learns.

    From sentence vectors h, with the run's temperature::

        d = tanh(W_D h), c = tanh(W_C h), x = [d; c], f(i, j) = cos(x_i, x_j) / temperature
        L    = L_CE + weight L_CS
        L_CE = mean over i of  -log softmax(W tanh(U x_i + a) + b)_{y_i}
        L_CS = mean over i of  -1/|C(i)| sum_{j in C(i)} (f(i, j) - log Z_i)
        Z_i  = sum over k != i of exp(f(i, k));  C(i): the other rows of i's class

    The paper reads d and c at two tokens in front of the text; in a BiLSTM the forward half
    of such a state has not read the text, so two heads stand in for them. It leaves f open:
    here cosine over temperature. `form=faithful` keeps its sums over rows and k = i in Z_i.
    Rows without another of their class have no L_CS. SCF is Gunel et al.'s loss as CSS-LM's
    authors compare with it; `ce_scl` is that loss on h, mixed by a weight.

    Source: Su et al. (2021, CSS-LM), equations 1, 5 and 8, section 4.3.
    """

    batches = "shuffled"
    uses_projection = False
    options_type: type = Options

    def __init__(
        self,
        sentence_size: int,
        classes: int,
        temperature: float = 0.1,
        form: str = "mean",
        weight: float = 1.0,
    ) -> None:
        super().__init__()
        # Without a bias: a constant part of every vector would swell every cosine.
        self.domain_head = nn.Linear(sentence_size, sentence_size, bias=False)
        self.class_head = nn.Linear(sentence_size, sentence_size, bias=False)
        self.hidden = nn.Linear(2 * sentence_size, 2 * sentence_size)
        self.classifier = nn.Linear(2 * sentence_size, classes)
        self.temperature, self.form, self.weight = temperature, form, weight

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> SCF:
        options = parse_options(config.options, Options)
        return cls(shape.sentence, shape.classes, config.temperature, options.form, options.weight)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]`; scalars: both terms, accuracy, similarities."""
        vectors = self.spaces(batch.sentence)
        cross_entropy, scalars = self.classified(vectors, batch)
        labelled = Labelled.of(batch.labels, batch.ids, self.form)
        none = nothing_retrieved(batch.labels)
        x = vectors.joint
        contrast = css_loss(x, x[:0], labelled, none, self.temperature, self.form)
        scalars["contrast"] = float(contrast.detach())
        return cross_entropy + self.weight * contrast, scalars

    def spaces(self, sentence: Tensor) -> Spaces:
        """d and c of sentence vectors `[n, d]`."""
        sentence = widened(sentence)
        return Spaces(torch.tanh(self.domain_head(sentence)), torch.tanh(self.class_head(sentence)))

    def scores(self, vectors: Spaces) -> Tensor:
        """The classifier's scores `[n, C]`."""
        scores: Tensor = self.classifier(torch.tanh(self.hidden(vectors.joint)))
        return scores

    def classified(self, vectors: Spaces, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """L_CE of the labelled rows; scalars: it, the accuracy and the similarities of x."""
        scores = self.scores(vectors)
        reduction = "sum" if self.form == "faithful" else "mean"
        cross_entropy = functional.cross_entropy(scores, batch.labels, reduction=reduction)
        unit = normalised(vectors.joint.detach())
        masks = pairs(batch.labels, batch.ids)
        return cross_entropy, {
            "batch_accuracy": float((scores.argmax(dim=1) == batch.labels).float().mean()),
            "cross_entropy": float(cross_entropy.detach()),
            **similarity_report(unit @ unit.T, masks.positive, masks.negative),
        }

    def class_scores(self, output: EncoderOutput) -> Tensor:
        return self.scores(self.spaces(output.sentence))
