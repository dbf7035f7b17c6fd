"""CSS-LM, contrastive semi-supervised fine-tuning, and the two methods it is compared with.

`SCF` learns from labelled rows alone. `CSSLM` adds rows retrieved from unlabelled text
(`css_terms`), and `CSSLMST` gives the retrieved rows pseudo labels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.config.parameters import parameter
from superconext.core.errors import TrainingError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.base import (
    Batch,
    CheckedOptions,
    Objective,
    Pool,
    batch_accuracy,
)
from superconext.objectives.css_terms import (
    Labelled,
    RetrievalOptions,
    Retrieved,
    Spaces,
    class_loss,
    css_loss,
    domain_loss,
    form_parameter,
    nothing_retrieved,
    retrieve,
)
from superconext.objectives.pairwise import normalised, pairs, similarity_report, widened


@dataclass(frozen=True)
class SCFOptions(CheckedOptions):
    """Settings of SCF."""

    form: str = form_parameter()
    weight: float = parameter(1.0, "Of L_CS.", low=0)


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
    options_type: type = SCFOptions

    def __init__(
        self, sentence_size: int, classes: int, temperature: float = 0.1, options: Any = None
    ) -> None:
        super().__init__()
        # Without a bias: a constant part of every vector would swell every cosine.
        self.domain_head = nn.Linear(sentence_size, sentence_size, bias=False)
        self.class_head = nn.Linear(sentence_size, sentence_size, bias=False)
        self.hidden = nn.Linear(2 * sentence_size, 2 * sentence_size)
        self.classifier = nn.Linear(2 * sentence_size, classes)
        self.temperature = temperature
        self.options = options or self.options_type()

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]`; scalars: both terms, accuracy, similarities."""
        vectors = self.spaces(batch.sentence)
        cross_entropy, scalars = self.classified(vectors, batch)
        labelled = Labelled.of(batch.labels, batch.ids, self.options.form)
        none = nothing_retrieved(batch.labels)
        x = vectors.joint
        contrast = css_loss(x, x[:0], labelled, none, self.temperature, self.options.form)
        scalars["contrast"] = float(contrast.detach())
        return cross_entropy + self.options.weight * contrast, scalars

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
        reduction = "sum" if self.options.form == "faithful" else "mean"
        cross_entropy = functional.cross_entropy(scores, batch.targets, reduction=reduction)
        unit = normalised(vectors.joint.detach())
        masks = pairs(batch.labels, batch.ids)
        return cross_entropy, {
            **batch_accuracy(scores, batch.targets),
            "cross_entropy": float(cross_entropy.detach()),
            **similarity_report(unit @ unit.T, masks.positive, masks.negative),
        }

    def class_scores(self, output: EncoderOutput) -> Tensor:
        return self.scores(self.spaces(output.sentence))


@dataclass(frozen=True)
class CSSLMOptions(RetrievalOptions):
    """Settings of CSS-LM."""

    patience: int = parameter(
        2, "Dev scores in a row below the best so far that end L_D and L_C; 0: never.", low=0
    )


class CSSLM(SCF):
    """SCF beside unlabelled rows that are near the labelled ones in domain and in class.

    x = [d; c], L_CE and f as in SCF; fD and fC are f on d and on c alone. For some rows i of
    the batch (queries), the K pool rows of highest fD(i, .) + fC(i, .) become P(i), those of
    highest fD P_D(i), those of highest fC P_C(i). C(i): other rows of i's class; N(i), N_D(i):
    negatives from the pool; N_C(i): what other classes have in P_C and i's class has not::

        L     = L_CE + weight (L_CSS + L_D + L_C)
        L_CSS = mean_i of      -1/|C(i)| sum_{j in C(i)} (f(i, j) - log Zs_i)
              + mean_i of      -1/|P(i)| sum_{j in P(i)} (f(i, j) - log Zs_i)
              + class mean_i   -1/(|P(i)| (|P(i)| - 1)) sum_{j != k in P(i)} (f(j, k) - log Zu_ij)
        Zs_i: over the batch and P(i) + N(i);  Zu_ij: f(j, k) over k in P(i) + N(i)
        L_D   = mean_i of -1/(N - 1) sum_{j in T} (fD(i, j) - log Zd_i)
              + mean_i of -1/|P_D(i)| sum_{j in P_D(i)} (fD(i, j) - log Zd_i)
        L_C   = the same of fC, C(i) for T and P_C(i) for P_D(i)
        Zd_i: over the batch and P_D(i) + N_D(i);  Zc_i: over the batch and P_C(i) + N_C(i)

    No Z of a row includes the row; a mean is over the rows whose set is not empty.

    Chosen where the paper leaves it open, is infeasible or is misprinted (see `css_terms`):
    f is cosine over temperature. Means, so that the four losses weigh alike; the third term
    of L_CSS has the class's mean, as its ``1 / (|C(i)| + 1)`` gives under the sums that
    `form=faithful` keeps (with k = i in Z_i). Negatives are random pool rows, drawn anew for
    each batch: the farthest ones (`negatives=farthest`, as printed) are easy, and all of the
    pool, as in Zd, is too many to encode. `queries` bounds the rows encoded for a batch; at
    the paper's batches of 4 all rows retrieve. Retrieval compares with a memory of the whole
    pool made when the epoch begins; what it finds is encoded again, with gradient. The
    paper's own variants are `levels=D` and `levels=C` (fT, and L_D or L_C, of one space
    alone). The sets are empty for the first `warmup` epochs, which are SCF's.

    **Fall-back to two losses**, measured: once `dev_score` (of the quick probe after each
    epoch) was below its best so far in `patience` epochs in a row, all with retrieval, L_D and
    L_C are dropped for good and training goes on. Section 4.2 does so when the score "starts
    to drop"; that is patience=1, and on a few hundred dev rows often means one row. The best
    weights are not put back then, which the paper does not ask for (`keep=best` ends with
    them). Without dev rows nothing is dropped. The scalar `fallen_back` tells the epoch.

    Source: Su et al. (2021, CSS-LM), equations 2 to 9, Algorithm 1, section 4.2. Prediction
    is the classifier's.
    """

    needs_pool = True
    reads_dev_score = True
    options_type: type = CSSLMOptions

    #: Whether L_D and L_C have been dropped.
    fallen_back = False

    def begin_epoch(self, epoch: int, history: Sequence[Mapping[str, Any]]) -> None:
        """Decide from the dev scores whether L_D and L_C are still wanted."""
        options = self.options
        if isinstance(options, CSSLMOptions):
            drop = first_drop(history, options.warmup, options.patience)
            self.fallen_back = drop is not None

    def remembered(self, sentence: Tensor) -> Tensor:
        """Unit domain and class vectors side by side `[n, 2d]`."""
        return self.spaces(sentence).units

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]` and `batch.pool`.

        Scalars: each loss, accuracy, similarities, how many pool rows were encoded, and
        whether L_D and L_C have been dropped. Raises TrainingError without a pool.
        """
        vectors = self.spaces(batch.sentence)
        total, scalars = self.classified(vectors, batch)
        retrieved, pool = self.retrieved(vectors, batch, own_sets=not self.fallen_back)
        labelled = Labelled.of(batch.labels, batch.ids, self.options.form)
        common = (labelled, retrieved, self.temperature, self.options.form)
        losses = {"contrast": css_loss(vectors.joint, pool.joint, *common)}
        if not self.fallen_back:
            losses |= self.level_losses(vectors, pool, labelled, retrieved)
        for name, loss in losses.items():
            total = total + self.options.weight * loss
            scalars[name] = float(loss.detach())
        scalars["pool_rows"] = float(len(retrieved.rows))
        scalars["fallen_back"] = float(self.fallen_back)
        return total, scalars

    def level_losses(
        self, vectors: Spaces, pool: Spaces, labelled: Labelled, retrieved: Retrieved
    ) -> dict[str, Tensor]:
        """L_D and L_C, as far as `levels` wants them; none while nothing is retrieved."""
        common = (labelled, retrieved, self.temperature, self.options.form)
        losses = {}
        if len(retrieved.rows) and "D" in self.options.levels:
            losses["domain"] = domain_loss(vectors.domain, pool.domain, *common)
        if len(retrieved.rows) and "C" in self.options.levels:
            losses["class"] = class_loss(vectors.cls, pool.cls, *common)
        return losses

    def retrieved(self, vectors: Spaces, batch: Batch, own_sets: bool) -> tuple[Retrieved, Spaces]:
        """What this batch draws from the pool, and its vectors `[R, d]` with gradient."""
        pool = self._pool(batch)
        if batch.epoch < self.options.warmup:
            return nothing_retrieved(batch.labels), Spaces(vectors.domain[:0], vectors.cls[:0])
        units = vectors.units.detach()
        retrieved = retrieve(units, pool.memory, batch.labels, self.options, own_sets)
        return retrieved, self.spaces(pool.encode(retrieved.rows))

    def _pool(self, batch: Batch) -> Pool:
        if batch.pool is None:
            raise TrainingError(
                f"objective {type(self).__name__}: found a batch without unlabelled text, "
                "expected Batch.pool to hold some; give the trainer a pool"
            )
        return batch.pool


@dataclass(frozen=True)
class CSSLMSTOptions(RetrievalOptions):
    """Settings of CSS-LM-ST."""

    pseudo: str = parameter(
        "query", "Whose label a retrieved row gets.", choices=("query", "classifier")
    )
    confidence: float = parameter(
        0.9, "Probability that the classifier's label needs.", low=0, high=1, open_high=True
    )


class CSSLMST(CSSLM):
    """Cross-entropy on labelled rows and on retrieved ones, whose labels are made up.

    Everything but the third loss as in CSSLM::

        L    = L_CE + L_ST + weight (L_D + L_C)
        L_ST = mean over i and j in P(i) of -log p(y_i | x_j)         pseudo=query
             = mean over j in any P(i) of  -log p(yhat_j | x_j)       pseudo=classifier
               yhat_j = argmax p(. | x_j), of the rows where max p > `confidence`

    The paper names pseudo-labelling without saying whose label it is; its code gives a
    retrieved row the label of the row that retrieved it. Pseudo-labelling proper takes the
    classifier's. `form=faithful` keeps sums. The paper drops nothing here on a dev score.

    Sources: Su et al. (2021, CSS-LM), section 4.3; Lee (2013) for pseudo=classifier.
    """

    options_type: type = CSSLMSTOptions

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.sentence` `[N, d]` and `batch.pool`.

        Scalars: each loss, accuracy, similarities, how many pool rows were encoded and the
        share of retrieved positives with a pseudo label. Raises TrainingError without a pool.
        """
        vectors = self.spaces(batch.sentence)
        total, scalars = self.classified(vectors, batch)
        retrieved, pool = self.retrieved(vectors, batch, own_sets=True)
        labelled = Labelled.of(batch.labels, batch.ids, self.options.form)
        for name, loss in self.level_losses(vectors, pool, labelled, retrieved).items():
            total = total + self.options.weight * loss
            scalars[name] = float(loss.detach())
        if len(retrieved.rows):
            loss, used = self._self_training(self.scores(pool), retrieved, batch.labels)
            total = total + loss
            scalars["pseudo_cross_entropy"], scalars["pseudo_share"] = float(loss.detach()), used
        scalars["pool_rows"] = float(len(retrieved.rows))
        return total, scalars

    def _self_training(
        self, scores: Tensor, retrieved: Retrieved, labels: Tensor
    ) -> tuple[Tensor, float]:
        """L_ST from scores of the pool rows `[R, C]`, and the share of rows it uses."""
        log_p = functional.log_softmax(scores, dim=1)
        if self.options.pseudo == "query":
            # How often rows of each class retrieved each pool row, [R, C].
            of_class = functional.one_hot(labels, scores.shape[1]).to(log_p.dtype)
            weights = retrieved.positives.T.to(log_p.dtype) @ of_class
            share = 1.0
        else:
            best, chosen = log_p.detach().max(dim=1)
            of_any = retrieved.positives.any(dim=0)
            kept = of_any & (best.exp() > self.options.confidence)
            weights = torch.zeros_like(log_p)
            weights[kept, chosen[kept]] = 1.0
            share = float(kept.sum()) / max(int(of_any.sum()), 1)
        loss = -(weights * log_p).sum()
        if self.options.form == "faithful":
            return loss, share
        return loss / weights.sum().clamp(min=1), share


def first_drop(history: Sequence[Mapping[str, Any]], warmup: int, patience: int) -> int | None:
    """Number (from 0) of the epoch by which L_D and L_C had done harm, or None.

    Its `dev_score` and those of the `patience` - 1 epochs before it, all after the warm-up,
    were each below the best until then. `patience` 0: never.
    """
    best, below = float("-inf"), 0
    for epoch, record in enumerate(history):
        if "dev_score" not in record:
            continue
        below = below + 1 if epoch >= warmup and record["dev_score"] < best else 0
        if below and below == patience:
            return epoch
        best = max(best, record["dev_score"])
    return None
