"""CSS-LM, contrastive semi-supervised fine-tuning, and the two methods it is compared with.

`SCF` learns from labelled rows alone. `CSSLM` adds rows retrieved from unlabelled text, and
`CSSLMST` gives the retrieved rows pseudo labels. N labelled rows of a batch (T), M rows in the
pool, R of them retrieved for this batch (O); f(u, v) = cos(u, v) / temperature.
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
    PoolOptions,
    batch_accuracy,
)
from superconext.objectives.pairwise import (
    class_mean,
    masked_log_sum_exp,
    normalised,
    pairs,
    similarity_report,
    widened,
)


def form_parameter() -> Any:
    """The option `form`, which SCF has too."""
    text = "Means, without i in Z_i; or faithful: sums over all rows, as printed."
    return parameter("mean", text, choices=("mean", "faithful"))


@dataclass(frozen=True)
class RetrievalOptions(PoolOptions):
    """What CSS-LM and CSS-LM-ST share."""

    levels: str = parameter(
        "D+C", "Spaces that retrieve and have a loss.", choices=("D+C", "D", "C")
    )
    form: str = form_parameter()
    retrieved: int = parameter(16, "K, rows in each set of a query.", low=1)
    queries: int = parameter(16, "Rows of a batch that retrieve.", low=1)
    negatives: str = parameter(
        "random",
        "Random rows of the pool, or each query's farthest.",
        choices=("random", "farthest"),
    )
    negative_rows: int = parameter(64, "How many random negatives.", low=0)
    warmup: int = parameter(1, "Epochs before the first retrieval.", low=0)
    weight: float = parameter(1.0, "Of the contrastive losses.", low=0)


@dataclass(frozen=True)
class Spaces:
    """Domain and class vectors of the same rows, `[n, d]` each."""

    domain: Tensor
    cls: Tensor

    @property
    def joint(self) -> Tensor:
        """x = [d; c], `[n, 2d]`."""
        return torch.cat([self.domain, self.cls], dim=1)

    @property
    def units(self) -> Tensor:
        """Both as unit vectors side by side, `[n, 2d]`: what the pool's memory holds."""
        return torch.cat([normalised(self.domain), normalised(self.cls)], dim=1)


@dataclass(frozen=True)
class Retrieved:
    """Pool rows of one batch, and what each is to each labelled row.

    rows: distinct row numbers of the pool `[R]`. The others are booleans `[N, R]`:
    positives P(i), domain_positives P_D(i), class_positives P_C(i), negatives N(i),
    domain_negatives N_D(i), class_negatives (N_C(i) without its labelled rows).
    """

    rows: Tensor
    positives: Tensor
    domain_positives: Tensor
    class_positives: Tensor
    negatives: Tensor
    domain_negatives: Tensor
    class_negatives: Tensor


def nothing_retrieved(labels: Tensor) -> Retrieved:
    """The empty sets training starts with."""
    empty = torch.zeros(len(labels), 0, dtype=torch.bool, device=labels.device)
    return Retrieved(labels.new_empty(0), *[empty] * 6)


def choose_queries(labels: Tensor, count: int) -> Tensor:
    """Positions `[Q]` of up to `count` rows that retrieve, the classes taking turns.

    With queries of one class alone no other class would retrieve, and N_C be empty.
    """
    same = labels[:, None] == labels[None, :]
    turn = same.tril(-1).sum(dim=1)
    return torch.argsort(turn, stable=True)[:count]


@torch.no_grad()
def retrieve(
    units: Tensor, memory: Tensor, labels: Tensor, options: RetrievalOptions, own_sets: bool
) -> Retrieved:
    """Nearest pool rows of some rows of the batch as positives, others as negatives.

    A query's own vectors decide: fT(i, .) = fD(i, .) + fC(i, .) with cosines, of which
    `levels` may leave one out. (The published code scores a linear layer over query and
    pool row side by side, a sum of one term each, so that fD and fC rank the pool alike
    for every query.) One matrix product for each space, `[Q, M]`.

    Random negatives are the same rows for the whole batch; farthest ones are each query's
    own. What a row of the same class has as a positive is no negative of the class, and
    what any row has as a domain positive is no domain negative.

    units: `Spaces.units` of the batch `[N, 2d]`; memory: of the pool `[M, 2d]`; labels: `[N]`;
    own_sets: whether P_D and P_C are wanted beside P.
    """
    width = memory.shape[1] // 2
    queries = choose_queries(labels, options.queries)
    asked = units[queries].to(memory)
    scores = {
        "D": asked[:, :width] @ memory[:, :width].T,
        "C": asked[:, width:] @ memory[:, width:].T,
    }
    scores["D+C"] = scores["D"] + scores["C"]
    size = min(options.retrieved, len(memory))
    lists = {"P": scores[options.levels].topk(size).indices}
    levels = [level for level in ("D", "C") if own_sets and level in options.levels]
    for level in levels:
        lists[level] = scores[level].topk(size).indices
    drawn = memory.new_empty(0, dtype=torch.int64)
    if options.negatives == "random":
        # From the CPU's generator, whose state is part of a checkpoint.
        drawn = torch.randperm(len(memory))[: options.negative_rows].to(memory.device)
    else:
        lists["N"] = scores[options.levels].topk(size, largest=False).indices
        if "D" in levels:
            lists["N_D"] = scores["D"].topk(size, largest=False).indices
    rows = torch.unique(torch.cat([*(ids.flatten() for ids in lists.values()), drawn]))
    for_all = torch.isin(rows, drawn)

    def mask(name: str) -> Tensor:
        members = torch.zeros(len(labels), len(rows), dtype=torch.bool, device=rows.device)
        if name in lists:
            members[queries[:, None], torch.searchsorted(rows, lists[name])] = True
        return members

    same = labels[:, None] == labels[None, :]
    positives, of_domain, of_class = mask("P"), mask("D"), mask("C")
    return Retrieved(
        rows,
        positives,
        of_domain,
        of_class,
        (mask("N") | for_all) & ~_union(same, positives),
        (mask("N_D") | for_all) & ~of_domain.any(dim=0),
        _union(~same, of_class) & ~_union(same, of_class),
    )


def _union(related: Tensor, sets: Tensor) -> Tensor:
    """For each row the union `[N, R]` of the sets of the rows it is related to `[N, N]`."""
    return (related.float() @ sets.float()) > 0


@dataclass(frozen=True)
class Labelled:
    """Which labelled rows of a batch stand how to each other, booleans `[N, N]`.

    same: C(i), the other rows of the class. others: rows in the denominators. A row drawn
    twice is neither, as the row itself; in form "faithful" all rows are `others`.
    """

    labels: Tensor
    same: Tensor
    others: Tensor

    @classmethod
    def of(cls, labels: Tensor, ids: Tensor, form: str) -> Labelled:
        apart = ids[:, None] != ids[None, :]
        others = torch.ones_like(apart) if form == "faithful" else apart
        return cls(labels, (labels[:, None] == labels[None, :]) & apart, others)


def css_loss(
    rows: Tensor, pool: Tensor, t: Labelled, o: Retrieved, temperature: float, form: str
) -> Tensor:
    """L_CSS (equation 2) from vectors `[N, 2d]` and pool vectors `[R, 2d]`.

    With nothing retrieved this is L_CS (equation 1).
    """
    rows, pool = normalised(rows), normalised(pool)
    logits = rows @ torch.cat([rows, pool]).T / temperature
    total = _two_pulls(logits, t.same, o.positives, t.others, o.negatives, form)
    pairs, anchors = _pool_pairs(pool, o.positives, o.negatives, temperature)
    if form == "faithful":
        return total + (pairs / (t.same[anchors].sum(dim=1) + 1)).sum()
    return total + class_mean(pairs, t.labels[anchors])


def domain_loss(
    rows: Tensor, pool: Tensor, t: Labelled, o: Retrieved, temperature: float, form: str
) -> Tensor:
    """L_D (equation 6) from domain vectors `[N, d]` and `[R, d]`.

    All labelled rows are one domain. Of the whole pool in the denominator, N_D stands for
    what is not in P_D(i).
    """
    rows, pool = normalised(rows), normalised(pool)
    logits = rows @ torch.cat([rows, pool]).T / temperature
    near, far = o.domain_positives, o.domain_negatives
    return _two_pulls(logits, t.others, near, t.others, far, form)


def class_loss(
    rows: Tensor, pool: Tensor, t: Labelled, o: Retrieved, temperature: float, form: str
) -> Tensor:
    """L_C (equation 7) from class vectors `[N, d]` and `[R, d]`.

    The first sum is over C(i) and the pool's terms of Z are of class vectors: as printed
    (over all of T, of domain vectors) it could not tell classes apart.
    """
    rows, pool = normalised(rows), normalised(pool)
    logits = rows @ torch.cat([rows, pool]).T / temperature
    return _two_pulls(logits, t.same, o.class_positives, t.others, o.class_negatives, form)


def _two_pulls(
    logits: Tensor, near: Tensor, retrieved: Tensor, others: Tensor, against: Tensor, form: str
) -> Tensor:
    """Towards labelled positives and towards pool positives, under one Z_i.

    logits: f of the batch with batch and pool `[N, N + R]`. near, others: `[N, N]`, labelled
    positives and rows in Z_i. retrieved, against: `[N, R]`, pool positives and negatives.
    """
    n = len(logits)
    seen = torch.cat([others, retrieved | against], dim=1)
    total = logits.new_zeros(())
    for part, positive in ((logits[:, :n], near), (logits[:, n:], retrieved)):
        valid = positive.any(dim=1)
        log_z = masked_log_sum_exp(logits[valid], seen[valid])
        means = (part * positive)[valid].sum(dim=1) / positive[valid].sum(dim=1)
        losses = log_z - means
        total = total + losses.sum() / (1 if form == "faithful" else max(len(losses), 1))
    return total


def _pool_pairs(
    pool: Tensor, positives: Tensor, negatives: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    """Mean of log Zu_j - f(j, k) over ordered pairs of P(i), `[A]`, and the rows i `[A]`.

    Row by row of the batch, so that only |P(i)| x |P(i) + N(i)| similarities are made.
    """
    anchors = torch.nonzero(positives.sum(dim=1) > 1).flatten()
    means = []
    for i in anchors.tolist():
        inside = pool[positives[i]]
        itself = torch.eye(len(inside), dtype=torch.bool, device=pool.device)
        near = (inside @ inside.T / temperature).masked_fill(itself, -torch.inf)
        far = inside @ pool[negatives[i]].T / temperature
        log_z = torch.logsumexp(torch.cat([near, far], dim=1), dim=1)
        means.append(log_z.mean() - near[~itself].mean())
    return torch.stack(means) if means else pool.sum(dim=1)[:0], anchors


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
        self.guesses_words = getattr(self.options, "language_model", 0) > 0

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
    language_model: float = parameter(
        0.0, "Of a masked language model's loss on retrieved rows; the paper has none.", low=0
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
    `form=faithful` keeps (with k = i in Z_i). Negatives are random pool rows, drawn again for
    each batch: the farthest ones (`negatives=farthest`, as printed) are easy, and all of the
    pool, as in Zd, is too many to encode. `queries` bounds the rows encoded for a batch; at
    the paper's batches of 4 all rows retrieve. Retrieval compares with a memory of the whole
    pool made when the epoch begins; what it finds is encoded again, with gradient. The
    paper's own variants are `levels=D` and `levels=C` (fT, and L_D or L_C, of one space
    alone). The sets are empty for the first `warmup` epochs, which are SCF's.

    **Fall-back to two losses**, measured: once `dev_score` (of the quick probe after each
    epoch) was below its best so far in `patience` epochs in a row, all with retrieval, L_D and
    L_C are dropped for good and training continues. Section 4.2 does so when the score "starts
    to drop"; that is patience=1, and on a few hundred dev rows often means one row. The best
    weights are not put back then, which the paper does not ask for (`keep=best` ends with
    them). Without dev rows nothing is dropped. The scalar `fallen_back` tells the epoch.

    `language_model` weighs one more loss, which equation 9 has not: that of a masked language
    model on the retrieved rows, mean over the hidden words w of -log p(w | the other words), 15%
    of the words hidden (of these 80% by a mask, 10% by any other word, 10% not at all). It needs
    a transformer with the head for it, which itself stays as it is.

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
        if self.guesses_words and len(retrieved.rows):
            guessed = self._pool(batch).guess(retrieved.rows, batch.step)
            if guessed is not None:
                total = total + self.options.language_model * guessed
                scalars["language_model"] = float(guessed.detach())
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
    reads_dev_score = False

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
