"""SupCon, the supervised contrastive loss of Khosla et al., and the multi-class N-pair loss."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from superconext.config.parameters import parameter
from superconext.objectives.base import Batch, CheckedOptions, WithTemperature
from superconext.objectives.pairwise import (
    Terms,
    class_blocks,
    class_mean,
    cosine_sums,
    masked_log_mean_exp,
    masked_log_sum_exp,
    normalised,
    pairs,
    pairwise_loss,
    similarities,
    similarity_report,
    widened,
)

#: Rows from which on chunks are faster than masks over all pairs, measured on a CPU.
CHUNKED_FROM = 320


@dataclass(frozen=True)
class Options(CheckedOptions):
    """Settings of SupCon."""

    form: str = parameter(
        "out", "The mean over positives outside or inside the logarithm.", choices=("out", "in")
    )


class SupCon(WithTemperature):
    """Each positive against all other rows of the batch, positives and negatives alike.

    With unit vectors, s_ij = <z_i, z_j> / temperature, P(i) the rows of i's class and A(i)
    all rows, both without the rows that are sentence i itself::

        L_out = mean over i of  sum_{p in P(i)} -log(exp(s_ip) / S_i) / |P(i)|
        L_in  = mean over i of  -log(sum_{p in P(i)} exp(s_ip) / |P(i)| / S_i)
        S_i   = sum_{a in A(i)} exp(s_ia)

    L_in <= L_out by Jensen's inequality. A collapsed encoder has ``log |A(i)|``, so log(N - 1)
    in a batch of N different sentences; the best L_out is about ``log |P(i)|``, not 0.

    Chosen where paper and code differ: the mean over anchors (the paper prints a sum), over
    those that have a positive; no factor temperature / base temperature, which would tie
    the learning rate to the temperature. A sentence drawn twice is neither its own positive
    nor its own candidate. Without any anchor the loss is 0 with zero gradient.

    Source: Khosla et al. (2020), equations 2 (out, the better one) and 3 (in).
    """

    options_type = Options

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.projected` `[N, p]`; scalars: similarities.

        Large batches are computed in chunks, see `pairwise`.
        """
        if len(batch.labels) >= CHUNKED_FROM:
            return self.chunked(batch)
        return self.plain(batch)

    def plain(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """The loss with masks over all N x N pairs, as the equations have it."""
        losses, scalars = supcon_losses(
            batch.projected, batch.labels, batch.ids, self.temperature, self.options.form
        )
        if len(losses) == 0:
            return (batch.projected * 0).sum(), scalars
        return losses.mean(), scalars

    def chunked(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """The same loss a few rows at a time, its gradient formed with it."""
        z = normalised(batch.projected)
        blocks = class_blocks(batch.labels, batch.ids)
        valid = (blocks.positives > 0).to(z.dtype)
        weights = valid / valid.sum().clamp(min=1)
        logs = blocks.positives.clamp(min=1).to(z.dtype).log()
        inside = self.options.form == "in"

        def rule(p: Tensor, n: Tensor, negatives: Tensor, here: slice) -> Terms:
            everyone, w = torch.logaddexp(p, n), weights[here]
            loss = everyone - (p - logs[here]) if inside else everyone
            positive = w * (torch.exp(p - everyone) - (1.0 if inside else 0.0))
            return Terms(w * loss, positive, w * torch.exp(n - everyone))

        loss, sums = pairwise_loss(z, blocks, self.temperature, rule), cosine_sums(z, blocks)
        if not inside:  # the positives' mean similarity takes no N x N numbers
            mean = sums[0] / blocks.positives.clamp(min=1)
            loss = loss - (weights * mean).sum() / self.temperature
        return loss, similarities(sums, blocks)


def supcon_losses(
    vectors: Tensor, labels: Tensor, ids: Tensor, temperature: float, form: str = "out"
) -> tuple[Tensor, dict[str, float]]:
    """SupCon terms of the anchors that have a positive, `[A]`, from vectors `[N, d]`.

    Also gives the mean similarities. `vectors` need not be normalised.
    """
    z = normalised(vectors)
    cosine = z @ z.T
    masks = pairs(labels, ids)
    scalars = similarity_report(cosine, masks.positive, masks.negative)
    valid = masks.positive.any(dim=1)
    logits = cosine[valid] / temperature
    positive = masks.positive[valid]
    all_others = masked_log_sum_exp(logits, positive | masks.negative[valid])
    if form == "in":
        return all_others - masked_log_mean_exp(logits, positive), scalars
    return all_others - (logits * positive).sum(dim=1) / positive.sum(dim=1), scalars


@dataclass(frozen=True)
class NPairOptions(CheckedOptions):
    """Settings of the N-pair loss."""

    normalise: bool = parameter(True, "Cosine over temperature, else inner products.")
    l2: float = parameter(0.002, "On the norms of vectors that are not normalised.", low=0)


class NPair(WithTemperature):
    """N-pair loss over all disjoint tuple sets of a batch.

    A tuple set holds one pair (anchor a_k, positive p_k) of each of its classes. With
    s(a, p) = <a, p> / temperature on unit vectors::

        L_t = mean over k of log(1 + sum_{j != k} exp(s(a_k, p_j) - s(a_k, p_k)))
        L   = mean over tuple sets t of L_t

    The N_k rows of a class are split into floor(N_k / 2) disjoint pairs, and the t-th
    pairs of all classes form tuple set t, so the whole batch is used (well-known
    implementations keep one pair of each class). Classes with fewer pairs are missing
    from the last sets; a set with one class left has no negative and is not counted.
    A sentence drawn twice is never paired with itself: rows are paired at half the class's
    length, repeats lying side by side, which loses no pair that could be made. Which rows
    meet follows their order in the batch, which the sampler shuffles. Without any tuple
    set the loss is 0 with zero gradient.

    `normalise=False` is the paper's own form: inner products, no temperature, plus `l2`
    times the mean squared norm of the rows used.

    Source: Sohn (2016), section 3.2 (the multi-class N-pair loss and its norm penalty).
    """

    options_type = NPairOptions

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.projected` `[N, p]`; scalars: similarities over the whole batch."""
        z = normalised(batch.projected)
        blocks = class_blocks(batch.labels, batch.ids)
        scalars = similarities(cosine_sums(z.detach(), blocks), blocks)
        anchor, positive, tuple_set = tuple_sets(batch.labels, batch.ids)
        if len(anchor) == 0:
            return (batch.projected * 0).sum(), scalars
        rows = z if self.options.normalise else widened(batch.projected)
        a, p = rows[anchor], rows[positive]
        places, there = _slots(tuple_set)
        # Only within its tuple is a pair contrasted: C x C logits for each, not M x M.
        logits = a[places] @ p[places].transpose(1, 2)
        logits = logits / (self.temperature if self.options.normalise else 1.0)
        positive_logits = logits.diagonal(dim1=1, dim2=2)[there]
        logits = logits.masked_fill(~there[:, None, :], -torch.inf)
        losses = torch.logsumexp(logits, dim=2)[there] - positive_logits
        tuple_set = there.nonzero()[:, 0]
        loss = class_mean(losses, tuple_set)
        if not self.options.normalise:
            loss = loss + self.options.l2 * torch.cat([a, p]).square().sum(dim=1).mean()
        return loss, scalars


@torch.no_grad()
def tuple_sets(labels: Tensor, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Anchor rows, positive rows and tuple set of every pair, each `[M]` with M <= N / 2."""
    rows = len(labels)
    position = torch.arange(rows, device=labels.device)
    kinds, sentence = torch.unique(ids, return_inverse=True)
    # Repeats of a sentence stand where it came first, and so next to each other.
    first = position.new_full((len(kinds),), rows).scatter_reduce(0, sentence, position, "amin")
    _, group, size = torch.unique(labels, return_inverse=True, return_counts=True)
    order = torch.argsort(group * rows + first[sentence], stable=True)
    group, start = group[order], size.cumsum(0) - size
    rank = position - start[group]
    paired = rank < (size // 2)[group]
    other = order[(position + (size - size // 2)[group])[paired]]
    anchor, group = order[paired], group[paired]
    distinct = ids[anchor] != ids[other]
    anchor, other, group = anchor[distinct], other[distinct], group[distinct]

    pairs_of = torch.bincount(group, minlength=len(size))
    tuple_set = torch.arange(len(group), device=labels.device)
    tuple_set = tuple_set - (pairs_of.cumsum(0) - pairs_of)[group]
    contrasted = torch.bincount(tuple_set)[tuple_set] > 1
    return anchor[contrasted], other[contrasted], tuple_set[contrasted]


@torch.no_grad()
def _slots(tuple_set: Tensor) -> tuple[Tensor, Tensor]:
    """The pairs of each of T tuples, `[T, C]`, the first one where a tuple has fewer than the
    largest; and where there is one, bool `[T, C]`."""
    _, tuple_set, sizes = torch.unique(tuple_set, return_inverse=True, return_counts=True)
    order = torch.argsort(tuple_set, stable=True)
    there = torch.arange(int(sizes.max()), device=sizes.device) < sizes[:, None]
    places = torch.zeros_like(there, dtype=torch.long)
    places[there] = order
    return places, there
