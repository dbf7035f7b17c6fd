"""LaCon: sentences and label embeddings contrasted with each other, no classifier."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.config.parameters import parameter
from superconext.core.errors import ConfigError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.base import Batch, Objective, batch_accuracy
from superconext.objectives.leam import (
    AttentionOptions,
    LabelAttention,
    batch_tokens,
    label_embeddings,
    text_tokens,
)
from superconext.objectives.pairwise import (
    masked_log_sum_exp,
    normalised,
    similarity_report,
    widened,
)


@dataclass(frozen=True)
class Options(AttentionOptions):
    """LaCon's settings; `LaCon` says where each default comes from."""

    fusion: bool = parameter(
        False, "Attend to tokens by label (LaCon-fusion), instead of taking the sentence vector."
    )
    heads: int = parameter(
        4, "Views that ICL is computed on; must divide the sentence vector's size.", low=1
    )
    icl: str = parameter("mean", "Of ICL over the heads.", choices=("mean", "sum"))
    lcl: str = parameter("stable", "Form of LCL.", choices=("stable", "faithful", "none"))
    regulariser: float = parameter(0.1, "lambda, the weight of LER.", low=0)
    layers: int = parameter(3, "Linear layers of the projection g; 0 leaves it out.", low=0)


class LaCon(Objective):
    """Label anchored contrastive learning: three losses over sentences and label embeddings.

    With x the sentence vector (vanilla) or the attended one (fusion, see `LabelAttention`),
    H = g(x), trainable label embeddings L, s = cosine / temperature, h^k and l^k the k-th
    of m heads, A(p) and B(p) the rows that are and are not of class p::

        L    = ICL' + LCL + lambda LER
        ICL' = (1/N) sum_i sum_k -log softmax_p(s(h_i^k, l_p^k))_{y_i}        then / m
        LCL  = mean over p of mean_{a in A(p)} -log(e_a / (e_a + sum_{b in B(p)} e_b)),
               e_a = exp(s(L_p, H_a))
        LER  = mean_{i != j} of exp(1 + cos(L_i, L_j)) - 1

    Prediction: argmax_p cos(H, L_p), over the whole width. The probe sees the encoder's
    sentence vector, before g; in fusion that vector is trained through the token states.

    Where paper and sense part, the default is the sensible form:

    - `lcl=faithful` is equation 5 as printed: the positive is missing from its own
      denominator, so the term has no floor at 0 and never lets go of a pair, and it sums
      over A(p), so it grows with the batch beside the other two. `lcl=none` leaves it out.
    - `icl=sum` is equation 4 as printed, m times the weight of equation 3.
    - Equation 6 lacks a bracket; LER is the mean over ordered pairs of labels.
    - A batch of one class has no B(p): LCL is 0 there.

    Defaults: `heads` 4 for 256 dimensions (the paper's best on RTE is 6 for 768, where few
    and many are worse); `regulariser` 0.1 of the paper's grid 0.1 to 1, for ICL' and LCL are
    means here; `layers` 3, the paper's MLP with ReLU between (without it results fall);
    `width` 5, unstated there (LEAM's 55 is for long texts); `kernel` full, LEAM's code.
    `temperature` is the run's, and its 0.1 is within the paper's recommended 0.1 to 0.2.
    Labels start at random, as there. Batches are balanced, so every one has two classes.

    Source: LaCon (Zhang et al., 2022), equations 1 to 9.
    """

    uses_projection = False
    options_type = Options

    def __init__(
        self, size: int, classes: int, temperature: float = 0.1, options: Options | None = None
    ) -> None:
        super().__init__()
        self.options = options or Options()
        heads = self.options.heads
        if size % heads or (heads > 1 and size < 2 * heads):
            fitting = [str(m) for m in range(1, min(size // 2, 16) + 1) if size % m == 0]
            raise ConfigError(
                f"options: heads = {heads} does not cut the sentence vector's {size} dimensions "
                f"into equal parts of at least 2; expected one of {', '.join(fitting)}, or "
                "another hidden_size"
            )
        self.temperature = temperature
        self.labels = label_embeddings(classes, size)
        layers: list[nn.Module] = []
        for number in range(self.options.layers):
            layers += [nn.ReLU()] * (number > 0) + [nn.Linear(size, size)]
        self.projection = nn.Sequential(*layers)
        self.needs_token_states = self.options.fusion
        if self.options.fusion:
            self.attention = LabelAttention(classes, self.options.width, self.options.kernel)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]`, in fusion of `batch.token_states` `[N, T, d]`.

        Scalars: the three terms, the accuracy of the native rule, and the mean cosine of a
        sentence with its own label and with the others. Raises TrainingError in fusion if
        the batch has no token states.
        """
        if self.options.fusion:
            states, mask = batch_tokens(batch, "lacon")
            instances = self._instances(self.attention(states, mask, self.labels))
        else:
            instances = self._instances(batch.sentence)
        cosine = normalised(instances) @ normalised(self.labels).T
        per_head = instance_centred(
            instances, self.labels, batch.labels, self.temperature, self.options.heads
        )
        icl = per_head.sum() if self.options.icl == "sum" else per_head.mean()
        lcl = label_centred(cosine, batch.labels, self.temperature, self.options.lcl)
        ler = label_spread(self.labels)
        is_label = batch.labels[:, None] == batch.labels.new_tensor(range(cosine.shape[1]))
        return icl + lcl + self.options.regulariser * ler, {
            **batch_accuracy(cosine, batch.labels),
            "icl": float(icl.detach()),
            "lcl": float(lcl.detach()),
            "ler": float(ler.detach()),
            **similarity_report(cosine.detach(), is_label, ~is_label),
        }

    def class_scores(self, output: EncoderOutput) -> Tensor:
        """Cosine with each label over temperature, `[N, C]`; its softmax is equation 3's."""
        sentence = output.sentence
        if self.options.fusion:
            sentence = self.attention(
                text_tokens(output.token_states, output.mask), output.mask, self.labels
            )
        instances = self._instances(sentence)
        return normalised(instances) @ normalised(self.labels).T / self.temperature

    def _instances(self, sentence: Tensor) -> Tensor:
        instances: Tensor = self.projection(widened(sentence))
        return instances


def instance_centred(
    instances: Tensor, embeddings: Tensor, labels: Tensor, temperature: float, heads: int
) -> Tensor:
    """Cross-entropy of each head's cosines with all labels, mean over rows, `[heads]`.

    instances: H `[N, d]`; embeddings: L `[C, d]`; neither need be normalised. heads: must divide d.
    Head k has the coordinates k, k + heads, k + 2 heads, ...: each sees both directions of a
    BiLSTM, where a contiguous slice would see one. Behind a projection the numbering of the
    coordinates means nothing, and this is the paper's slicing.

    Source: LaCon, equation 4 (equation 3 with one head).
    """
    h = normalised(_by_head(instances, heads))
    e = normalised(_by_head(embeddings, heads))
    logits = h @ e.transpose(1, 2) / temperature  # [heads, N, C]
    losses = functional.cross_entropy(logits.flatten(0, 1), labels.repeat(heads), reduction="none")
    return losses.view(heads, -1).mean(dim=1)


def label_centred(cosine: Tensor, labels: Tensor, temperature: float, form: str) -> Tensor:
    """Each label present against the rows of other classes, from cosines `[N, C]`.

    With s = cosine / temperature, A(p) the rows of class p and B(p) the others::

        faithful  mean over p of sum_{a in A(p)} -log(exp(s_ap) / sum_{b in B(p)} exp(s_bp))
        stable    mean over p of mean_{a in A(p)} of
                  -log(exp(s_ap) / (exp(s_ap) + sum_{b in B(p)} exp(s_bp)))

    p runs over the classes of the batch; with a single one B(p) is empty and the term is 0.

    Source: LaCon, equation 5 (faithful).
    """
    classes = torch.arange(cosine.shape[1], device=labels.device)
    members = classes[:, None] == labels[None, :]  # [C, N]
    anchors = members.any(dim=1) & (~members).any(dim=1)
    if form == "none" or not bool(anchors.any()):
        return (cosine * 0).sum()
    members = members[anchors]
    logits = cosine.T[anchors] / temperature
    gap = masked_log_sum_exp(logits, ~members)[:, None] - logits
    if form == "faithful":
        return (gap * members).sum() / len(members)
    return ((functional.softplus(gap) * members).sum(dim=1) / members.sum(dim=1)).mean()


def label_spread(embeddings: Tensor) -> Tensor:
    """Mean over ordered pairs i != j of exp(1 + cos(L_i, L_j)) - 1, from `[C, d]`.

    Between 0 and e^2 - 1; 0 for a single label. Source: LaCon, equation 6.
    """
    unit = normalised(embeddings)
    apart = ~torch.eye(len(unit), dtype=torch.bool, device=unit.device)
    penalty = torch.expm1(1.0 + unit @ unit.T) * apart
    return penalty.sum() / apart.sum().clamp_min(1)


def _by_head(vectors: Tensor, heads: int) -> Tensor:
    """`[M, d]` to `[heads, M, d / heads]`."""
    return vectors.reshape(len(vectors), -1, heads).permute(2, 0, 1)
