"""SupCon, the supervised contrastive loss of Khosla et al."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from superconext.config.parameters import parameter
from superconext.objectives.base import Batch, CheckedOptions, WithTemperature
from superconext.objectives.pairwise import (
    Terms,
    class_blocks,
    cosine_sums,
    masked_log_mean_exp,
    masked_log_sum_exp,
    normalised,
    pairs,
    pairwise_loss,
    similarities,
    similarity_report,
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
