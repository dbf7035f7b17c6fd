"""LSAN: a sentence vector for every class, by self-attention and by label embeddings."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.config.parameters import Config, parameter
from superconext.core.errors import ConfigError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.base import (
    Batch,
    CheckedOptions,
    Objective,
    Shape,
    batch_accuracy,
    parse_options,
)
from superconext.objectives.leam import (
    batch_tokens,
    label_embeddings,
    masked_softmax,
    text_tokens,
)


@dataclass(frozen=True)
class Options(CheckedOptions):
    """Settings of LSAN."""

    attention: int = parameter(200, "Units of the self-attention.", low=1)
    readout: str = parameter("class", "How class vectors become scores.", choices=("class", "mean"))


class LSAN(Objective):
    """Label-specific attention network with a softmax, for one label a sentence.

    With token states O_t = [f_t; b_t] (forward and backward halves) and trainable label
    embeddings V_c of half their size::

        M1_c = sum_t A_ct O_t,   A_c = softmax over the sentence's tokens of W2_c tanh(W1 O_t)
        M2_c = sum_t [(V_c . f_t) f_t; (V_c . b_t) b_t]
        M_c  = w_c M2_c + (1 - w_c) M1_c,   w_c = p_c / (p_c + q_c),
               p_c = sigmoid(<a, M2_c> + a_0), q_c = sigmoid(<b, M1_c> + b_0)
        L    = (1/N) sum_i -log softmax(scores_i)_{y_i}
        readout = class   scores_c = <r, M_c>, class c judged by its own vector
        readout = mean    scores   = R mean_c M_c + r_0, as in the public code

    Prediction: the highest score. The probe sees the encoder's sentence vector, which is
    trained through the token states.

    The paper is for many labels at once, with a sigmoid; LaCon compares with this softmax.
    A mean over class vectors throws away which class is which, so `readout=class` is the
    default. `attention` 200 is the public code's. That code lets padding into both
    attentions, starts the LSTM from noise, never trains the labels and drops the last test
    batch; here padding has no weight, labels are trained and start at random (see
    `label_embeddings`). `temperature` is not used. Batches are shuffled.

    Source: Xiao et al. (2019) and its public code.
    """

    batches = "shuffled"
    uses_projection = False
    needs_token_states = True
    options_type = Options

    def __init__(self, size: int, classes: int, options: Options | None = None) -> None:
        super().__init__()
        if size % 2:
            raise ConfigError(
                f"objective = 'lsan': token states of {size} dimensions found; expected an even "
                "number, a forward and a backward half: choose another encoder"
            )
        self.options = options or Options()
        self.labels = label_embeddings(classes, size // 2)
        self.hidden = nn.Linear(size, self.options.attention, bias=False)
        self.self_attention = nn.Linear(self.options.attention, classes, bias=False)
        self.of_label = nn.Linear(size, 1)
        self.of_self = nn.Linear(size, 1)
        by_class = self.options.readout == "class"
        self.readout = nn.Linear(size, 1 if by_class else classes, bias=not by_class)

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> LSAN:
        return cls(shape.sentence, shape.classes, parse_options(config.options, Options))

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.token_states` `[N, T, d]`; scalars: accuracy, mean weight of M2.

        Raises TrainingError if the batch has no token states.
        """
        states, mask = batch_tokens(batch, "lsan")
        vectors, share = self._class_vectors(states, mask)
        scores = self._scores(vectors)
        return functional.cross_entropy(scores, batch.targets), {
            **batch_accuracy(scores, batch.targets),
            "label_attention": float(share.detach().mean()),
        }

    def class_scores(self, output: EncoderOutput) -> Tensor:
        """Logits `[N, C]` from token states `[N, T, d]` and mask `[N, T]`."""
        return self._scores(
            self._class_vectors(text_tokens(output.token_states, output.mask), output.mask)[0]
        )

    def _class_vectors(self, states: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """M `[N, C, d]` and w `[N, C, 1]` from `text_tokens` `[N, T, d]`."""
        scores = self.self_attention(torch.tanh(self.hidden(states))).transpose(1, 2)
        by_self = masked_softmax(scores, mask.unsqueeze(1)) @ states
        halves = []
        for half in states.chunk(2, dim=2):
            match = half @ self.labels.T  # 0 at padding, as the states are
            halves.append(match.transpose(1, 2) @ half)
        by_label = torch.cat(halves, dim=2)
        # p / (p + q) without the quotient, which is 0 / 0 where both sigmoids vanish.
        share = torch.sigmoid(
            functional.logsigmoid(self.of_label(by_label))
            - functional.logsigmoid(self.of_self(by_self))
        )
        return share * by_label + (1 - share) * by_self, share

    def _scores(self, vectors: Tensor) -> Tensor:
        if self.options.readout == "class":
            scores: Tensor = self.readout(vectors).squeeze(2)
        else:
            scores = self.readout(vectors.mean(dim=1))
        return scores
