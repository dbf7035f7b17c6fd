"""Classifiers on token states and label embeddings: LEAM and LSAN.

`LabelAttention`, the core of LEAM, is also the fusion of LaCon.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.config.parameters import Config, parameter
from superconext.core.errors import ConfigError, TrainingError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.base import (
    Batch,
    CheckedOptions,
    Objective,
    Shape,
    batch_accuracy,
    parse_options,
)
from superconext.objectives.pairwise import normalised, widened

#: Standard deviation of fresh label embeddings.
LABEL_SCALE = 0.1


def label_embeddings(classes: int, size: int) -> nn.Parameter:
    """Trainable rows from N(0, 0.01), `[C, size]`.

    The papers start them at random (LaCon) or at the mean word vector of the label's name
    (LEAM, LSAN). Labels of a dialect corpus are seldom words of the dialect, and states of
    an encoder are no word vectors, so they are random here. Only their direction matters
    to a cosine; their length sets how far one step of Adam turns them.
    """
    return nn.Parameter(LABEL_SCALE * torch.randn(classes, size))


@dataclass(frozen=True, kw_only=True)
class AttentionOptions(CheckedOptions):
    """Settings of `LabelAttention`."""

    width: int = parameter(5, "Tokens in the window, an odd number.", low=1)
    kernel: str = parameter("full", "Each class sees all or itself.", choices=("full", "shared"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % 2 == 0:
            raise ConfigError(
                f"options: width = {self.width}; expected an odd number of at least 1, so that the "
                "window has a token in its middle"
            )


def batch_tokens(batch: Batch, name: str) -> tuple[Tensor, Tensor]:
    """Token states `[N, T, d]`, as `text_tokens` gives them, and mask `[N, T]` of a batch.

    Raises TrainingError if the batch has none.
    """
    if batch.token_states is None or batch.mask is None:
        raise TrainingError(
            f"objective {name}: found a batch without token states, expected "
            "Batch.token_states and Batch.mask, for it attends to tokens; set them"
        )
    return text_tokens(batch.token_states, batch.mask), batch.mask


def text_tokens(states: Tensor, mask: Tensor) -> Tensor:
    """Token states `[N, T, d]` in at least float32, 0 at padding, where anything may stand."""
    return widened(states).masked_fill(~mask.unsqueeze(2), 0.0)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension with weight 0 where the mask is False.

    The maximum is taken out first, so large scores do not overflow. Every row needs a True.
    """
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)


class LabelAttention(nn.Module):
    """Sentence vector as a mean of token states, weighted by their match with any label.

    With token states E_t, label embeddings L_c and a window of `width` tokens around t::

        G_tc   = cos(E_t, L_c)                       0 beyond the sentence's ends
        u_t    = ReLU(sum_k W_k G_(t+k) + b)         kernel = full, W_k is C x C
        u_tc   = ReLU(sum_k W_k G_(t+k)c + b_c)      kernel = shared, W_k is one number
        beta_t = softmax over the sentence's tokens of max_c u_tc
        z      = sum_t beta_t E_t

    The full kernel, in which each class sees the matches of all, is LEAM's public code; the
    shared one has C^2 times fewer weights, for many classes and few rows. LaCon says only
    "convolution then max-pooling". Padding is cut from G, so a sentence's vector does not
    depend on the sentences beside it, and the softmax subtracts the maximum.

    Sources: Wang et al. (2018, LEAM) and its public code; LaCon, equation 9.
    """

    def __init__(self, classes: int, width: int = 5, kernel: str = "full") -> None:
        super().__init__()
        inputs = classes if kernel == "full" else 1
        bound = (inputs * width) ** -0.5
        self.weight = nn.Parameter(
            torch.empty(classes if kernel == "full" else 1, inputs, width).uniform_(-bound, bound)
        )
        self.bias = nn.Parameter(torch.zeros(classes))
        self.shared = kernel == "shared"

    def forward(self, states: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """Vectors `[N, d]` from `text_tokens` `[N, T, d]`, mask `[N, T]` and labels `[C, d]`."""
        beta = self.weights(states, mask, labels)
        return (beta.unsqueeze(1) @ states).squeeze(1)

    def weights(self, states: Tensor, mask: Tensor, labels: Tensor) -> Tensor:
        """The weights beta, `[N, T]`: rows sum to 1, padding has 0."""
        match = normalised(states) @ normalised(labels).T
        match = match.masked_fill(~mask.unsqueeze(2), 0.0).transpose(1, 2)
        classes = len(labels)
        weight = self.weight.expand(classes, 1, -1) if self.shared else self.weight
        scores = functional.conv1d(
            match,
            weight,
            self.bias,
            padding=weight.shape[2] // 2,
            groups=classes if self.shared else 1,
        )
        return masked_softmax(scores.relu().amax(dim=1), mask)


@dataclass(frozen=True)
class Options(AttentionOptions):
    """LEAM's settings; `LEAM` says where each default comes from."""

    hidden: int = parameter(300, "Units of the classifier's hidden layer.", low=1)
    dropout: float = parameter(
        0.5, "Before each layer of the classifier.", low=0, high=1, open_high=True
    )
    regulariser: float = parameter(
        1.0, "gamma, the weight of classifying the label embeddings themselves.", low=0
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
    reads_temperature = False
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
        cross_entropy = functional.cross_entropy(scores, batch.targets)
        classes = torch.arange(len(self.labels), device=scores.device)
        of_labels = functional.cross_entropy(self.classifier(self.labels), classes)
        return cross_entropy + self.options.regulariser * of_labels, {
            **batch_accuracy(scores, batch.targets),
            "cross_entropy": float(cross_entropy.detach()),
            "label_cross_entropy": float(of_labels.detach()),
        }

    def class_scores(self, output: EncoderOutput) -> Tensor:
        """Logits `[N, C]` from token states `[N, T, d]` and mask `[N, T]`."""
        return self._scores(text_tokens(output.token_states, output.mask), output.mask)

    def _scores(self, states: Tensor, mask: Tensor) -> Tensor:
        scores: Tensor = self.classifier(self.attention(states, mask, self.labels))
        return scores


@dataclass(frozen=True)
class LSANOptions(CheckedOptions):
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
    reads_temperature = False
    needs_token_states = True
    options_type = LSANOptions

    def __init__(self, size: int, classes: int, options: LSANOptions | None = None) -> None:
        super().__init__()
        if size % 2:
            raise ConfigError(
                f"objective = 'lsan': token states of {size} dimensions found; expected an even "
                "number, a forward and a backward half: choose another encoder"
            )
        self.options = options or LSANOptions()
        self.labels = label_embeddings(classes, size // 2)
        self.hidden = nn.Linear(size, self.options.attention, bias=False)
        self.self_attention = nn.Linear(self.options.attention, classes, bias=False)
        self.of_label = nn.Linear(size, 1)
        self.of_self = nn.Linear(size, 1)
        by_class = self.options.readout == "class"
        self.readout = nn.Linear(size, 1 if by_class else classes, bias=not by_class)

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> LSAN:
        return cls(shape.sentence, shape.classes, parse_options(config.options, LSANOptions))

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
