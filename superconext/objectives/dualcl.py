"""DualCL: the encoder writes a classifier for each text, and both are contrasted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from superconext.config.parameters import Config, parameter
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
    pairs,
    similarity_report,
    widened,
)

#: Training rows encoded at once for the bank.
_BLOCK = 256
#: Scores held at once in an ensemble, N x bank rows x classes.
_CHUNK = 2**22


@dataclass(frozen=True)
class PredictionOptions(CheckedOptions):
    """How DualCL predicts, and where its class tokens start."""

    ensemble: str = parameter(
        "none",
        "A text's own classifier, or the vote (hard) or mean softmax (soft) of a bank's.",
        choices=("none", "hard", "soft"),
    )
    bank: str = parameter(
        "train",
        "Training rows, or as in the paper the rows that are predicted together: a row's label "
        "then depends on the rows beside it.",
        choices=("train", "test"),
    )
    bank_size: int = parameter(
        1000, "Training rows kept in the bank, each class by its share; 0 for all.", low=0
    )
    class_tokens: str = parameter(
        "words",
        "They start at the word vectors of the label's words where these are known, or at random.",
        choices=("words", "random"),
    )


@dataclass(frozen=True)
class Options(PredictionOptions):
    """Settings of DualCL."""

    weight: float = parameter(0.5, "lambda, of L_dual.", low=0)
    include_own_pair: bool = parameter(False, "Count a row among its own candidates.")


class DualCLNoDual(Objective):
    """Cross-entropy of the classifier that the encoder writes for each text.

    theta_i^k is the state of class k's token beside text i (see `encoders.bilstm`), z_i
    the sentence vector, where the paper has the state of [CLS]::

        L_CE = -(1/N) sum_i log softmax_k(<theta_i^k, z_i>)_{y_i}

    without temperature and normalisation. No classifier weights are learned. Prediction is
    the largest <theta_i^k, z_i>, or an ensemble of the classifiers of other texts, see
    `PredictionOptions`. Batches are shuffled.

    The paper has tokens of its own for the classes ("[POS]"); its public code takes the label's
    words from BERT's vocabulary, so that what they mean is there from the start. As there, a
    token starts at the mean vector of its label's words, if vocabulary or word vectors know
    one, else at random (`vectors.table`): labels of a dialect corpus are often no words
    of the dialect. `class_tokens=random` is the paper's. Either way the tokens are trained.

    Source: DualCL, equations 8 and 10 and section 4.4.2; its row "w/o L_Dual" in Table 2.
    """

    batches = "shuffled"
    uses_projection = False
    reads_temperature = False
    needs_class_tokens = True
    options_type: type = PredictionOptions
    bank: Tensor

    def __init__(self, prediction: PredictionOptions | None = None) -> None:
        super().__init__()
        self.options = prediction or PredictionOptions()
        self.class_tokens = self.options.class_tokens
        self.scores_together = self.options.ensemble != "none" and self.options.bank == "test"
        # The classifiers of training rows `[M, C, d]`, none of them before the end.
        self.register_buffer("bank", torch.empty(0))

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> DualCLNoDual:
        return cls(parse_options(config.options, PredictionOptions))

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]` and `batch.class_states` `[N, C, d]`; scalar:
        training accuracy of the batch."""
        assert batch.class_states is not None
        scores = own_scores(batch.sentence, batch.class_states)
        loss = functional.cross_entropy(scores, batch.targets)
        return loss, batch_accuracy(scores, batch.targets)

    def end_training(self, encode: Callable[[np.ndarray], EncoderOutput], labels: Tensor) -> None:
        """Keep the classifiers of training rows, if prediction is to ask them."""
        if self.options.ensemble == "none" or self.options.bank == "test":
            return
        rows = spread_rows(labels.cpu().numpy(), self.options.bank_size)
        blocks = np.array_split(rows, -(-len(rows) // _BLOCK))
        states = [encode(block).class_states for block in blocks]
        self.bank = widened(torch.cat([part for part in states if part is not None]))

    def class_scores(self, output: EncoderOutput) -> Tensor:
        assert output.class_states is not None
        if self.options.ensemble == "none":
            return own_scores(output.sentence, output.class_states)
        bank = widened(output.class_states) if self.options.bank == "test" else self.bank
        return ensembled_scores(widened(output.sentence), bank, self.options.ensemble)

    def _load_from_state_dict(
        self, state_dict: Mapping[str, Any], prefix: str, *others: Any
    ) -> None:
        # The bank's size is not known before it is read.
        saved = state_dict.get(f"{prefix}bank")
        if isinstance(saved, Tensor):
            self.bank = self.bank.new_empty(saved.shape)
        super()._load_from_state_dict(state_dict, prefix, *others)


class DualCL(DualCLNoDual):
    """L_CE of `DualCLNoDual`, and texts and their classifiers contrasted with each other.

    With theta_i* the classifier of row i's own class, s_ij = cos(z_i, theta_j*) /
    temperature, P(i) the rows of i's class and A(i) all rows, both without the rows that
    are sentence i itself, and lambda = `weight`::

        L       = L_CE + lambda (L_z + L_theta)
        L_z     = mean over i of  sum_{p in P(i)} -log(exp(s_ip) / S_i) / |P(i)|
        S_i     = sum_{a in A(i)} exp(s_ia)
        L_theta = the same with s_ji for s_ij

    A row's own pair (z_i, theta_i*) is in L_CE alone, as equations 4 and 5 print it;
    `include_own_pair` adds it to both denominators, as the paper's Theorem 1 does. The paper
    says nothing of normalisation, without which its temperature 0.1 overflows: the cosine
    is what its authors' code has, in these two terms only. The mean is over the rows that
    have a positive; without any, L_z and L_theta are 0.

    lambda 0.5 and temperature 0.1 are the paper's (section 5.2).

    Source: DualCL (2022), equations 4 to 6, 8 and 9.
    """

    reads_temperature = True
    options_type = Options

    def __init__(self, temperature: float = 0.1, options: Options | None = None) -> None:
        options = options or Options()
        super().__init__(options)
        self.temperature = temperature
        self.weight, self.include_own_pair = options.weight, options.include_own_pair

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> DualCL:
        return cls(config.temperature, parse_options(config.options, Options))

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]` and `batch.class_states` `[N, C, d]`; scalars:
        the three terms, accuracy, similarities of texts and classifiers."""
        assert batch.class_states is not None
        cross_entropy, scalars = super().forward(batch)
        true_classifiers = batch.class_states[torch.arange(len(batch.labels)), batch.labels]
        cosine = normalised(batch.sentence) @ normalised(true_classifiers).T
        masks = pairs(batch.labels, batch.ids)
        candidates = masks.positive | masks.negative
        if self.include_own_pair:
            candidates = candidates | torch.eye(
                len(cosine), dtype=torch.bool, device=true_classifiers.device
            )
        dual_z = _contrast(cosine / self.temperature, masks.positive, candidates)
        dual_theta = _contrast(cosine.T / self.temperature, masks.positive, candidates)
        return cross_entropy + self.weight * (dual_z + dual_theta), {
            **scalars,
            "cross_entropy": float(cross_entropy.detach()),
            "dual_z": float(dual_z.detach()),
            "dual_theta": float(dual_theta.detach()),
            **similarity_report(cosine, masks.positive, masks.negative),
        }


def own_scores(sentence: Tensor, classifiers: Tensor) -> Tensor:
    """<theta_i^k, z_i> `[N, C]` of sentences `[N, d]` under their own `[N, C, d]`."""
    return torch.einsum("nd,ncd->nc", widened(sentence), widened(classifiers))


def _contrast(logits: Tensor, positive: Tensor, candidates: Tensor) -> Tensor:
    """Mean over the rows with a positive of log-sum-exp minus the positives' mean; scalar."""
    valid = positive.any(dim=1)
    if not bool(valid.any()):
        return (logits * 0).sum()
    logits, positive = logits[valid], positive[valid]
    means = (logits * positive).sum(dim=1) / positive.sum(dim=1)
    return (masked_log_sum_exp(logits, candidates[valid]) - means).mean()


def ensembled_scores(sentence: Tensor, bank: Tensor, kind: str) -> Tensor:
    """Log shares `[N, C]` of sentences `[N, d]` under all classifiers of a bank `[M, C, d]`.

    With S_ijk = <z_i, theta_j^k>, "soft" is the mean over j of softmax_k S_ij, and "hard"
    the share of the j whose largest S_ijk is at k; the soft share decides between classes
    of as many votes.

    Source: DualCL, section 4.4.2, which leaves ties open.
    """
    rows, classes = len(sentence), bank.shape[1]
    votes = sentence.new_zeros(rows, classes)
    shares = sentence.new_zeros(rows, classes)
    for part in bank.split(max(1, _CHUNK // max(1, rows * classes))):
        scores = torch.einsum("nd,mcd->nmc", sentence, part)
        shares += scores.softmax(dim=2).sum(dim=1)
        votes.scatter_add_(1, scores.argmax(dim=2), torch.ones_like(scores[:, :, 0]))
    shares = shares / len(bank)
    if kind == "hard":
        # A share is at most 1: added to whole votes it parts equals and nothing else.
        shares = (votes + shares) / (len(bank) + 1)
    return shares.clamp_min(torch.finfo(shares.dtype).tiny).log()


def spread_rows(labels: np.ndarray, count: int) -> np.ndarray:
    """Up to `count` (0: all) row numbers `[M]` of labels `[N]`, each class by its share."""
    if not 0 < count < len(labels):
        return np.arange(len(labels))
    by_class = np.argsort(labels, kind="stable")
    picked = by_class[np.arange(count) * len(labels) // count]
    return np.sort(picked)
