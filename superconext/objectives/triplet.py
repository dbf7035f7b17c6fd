"""Triplet margin loss on unit vectors: an anchor nearer to its positives than to its negatives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from superconext.config.parameters import Config, parameter
from superconext.objectives.base import Batch, CheckedOptions, Objective, Shape, parse_options
from superconext.objectives.pairwise import (
    ClassBlocks,
    chunks,
    class_blocks,
    cosine_sums,
    hardest,
    normalised,
    similarities,
)


@dataclass(frozen=True)
class Options(CheckedOptions):
    """Settings of the triplet loss."""

    margin: float = parameter(
        0.3, "Wanted gap between the two distances, which are at most 2.", low=0, high=2
    )
    form: str = parameter(
        "hard", "Which triplets count.", choices=("hard", "all", "semi_hard", "soft")
    )


class Triplet(Objective):
    """Triplet loss over the pairs of a batch, in four forms.

    With unit vectors z, D_ij = ||z_i - z_j|| = sqrt(2 - 2 <z_i, z_j>), margin m, P(a) the
    rows of the anchor's class (not the same sentence) and N(a) the rows of other classes::

        hard       mean over a of [max_P D_ap - min_N D_an + m]_+
        soft       mean over a of softplus(max_P D_ap - min_N D_an)
        semi_hard  mean over (a, p) of [D_ap - D_an* + m]_+, where n* is the nearest negative
                   farther than p, or the farthest negative if none is
        all        mean over the triplets with D_ap - D_an + m > 0 of that value

    Anchors need a positive and a negative; a batch without one, and in form "all" a batch
    without a violated triplet, gives 0 with zero gradient. The temperature is not used.
    SuperConText compares with "triplet loss" and leaves the form open: batch-hard is taken.
    `chance_level` is the loss at collapse (batch-hard from scratch can get stuck there:
    then use form=soft or a lower learning rate).

    No form builds the N^3 triplets: negatives are sorted once for each anchor, so that a
    binary search and running sums give the semi-hard negative and the sum over all.

    Sources: Hermans et al. (2017), section 2 (hard, soft, all with the mean over non-zero
    terms); Schroff et al. (2015), section 3.2 (semi-hard, there on squared distances).
    The scalar `active` is the share of terms with a positive loss.
    """

    reads_temperature = False
    options_type = Options

    def __init__(self, options: Options | None = None) -> None:
        super().__init__()
        self.options = options or Options()
        self.chance_level = math.log(2) if self.options.form == "soft" else self.options.margin

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> Triplet:
        return cls(parse_options(config.options, Options))

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.projected` `[N, p]`; scalars: similarities, share of active terms."""
        z = normalised(batch.projected)
        blocks = class_blocks(batch.labels, batch.ids)
        scalars = similarities(cosine_sums(z.detach(), blocks), blocks)
        valid = (blocks.positives > 0) & (blocks.negatives > 0)
        if not bool(valid.any()):
            return (batch.projected * 0).sum(), scalars
        form, margin = self.options.form, self.options.margin
        if form in ("all", "semi_hard"):
            over = _batch_all if form == "all" else _semi_hard
            loss, active = over(z, blocks, margin)
            return loss, scalars | {"active": active}
        gap = _hardest_gap(z, blocks, valid)
        if form == "soft":
            return functional.softplus(gap).mean(), scalars
        losses = functional.relu(gap + margin)
        return losses.mean(), scalars | {"active": float((losses > 0).float().mean())}


def _distance(cosine: Tensor) -> Tensor:
    """Of unit vectors; clamped because the root has no gradient at 0."""
    return (2 - 2 * cosine).clamp_min(1e-12).sqrt()


def _hardest_gap(z: Tensor, blocks: ClassBlocks, valid: Tensor) -> Tensor:
    """max_P D_ap - min_N D_an of the valid anchors: which ones these are has no gradient, so the
    N x N cosines are not passed back through."""
    positive, negative = hardest(z, blocks)
    rows = z[blocks.order]
    anchor = rows[valid]
    far, near = ((anchor * rows[some[valid]]).sum(dim=1) for some in (positive, negative))
    return _distance(far) - _distance(near)


def _by_window(z: Tensor, blocks: ClassBlocks) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Of some anchors at a time: their distances to the rows of a window with all their positives
    `[n, P]`, which of these are positives, their distances to their negatives, nearest first and
    then infinities, `[n, M]`, and how many these are, `[n, 1]`."""
    rows = z[blocks.order]
    for here, window in chunks(blocks):
        own, columns = blocks.group[here], blocks.group[window]
        positive = own[:, None] == columns[None, :]
        positive &= blocks.sentence[here][:, None] != blocks.sentence[window][None, :]
        anchors, negatives = rows[here], blocks.negatives[here][:, None]
        if bool(columns[0] == columns[-1]):
            others = torch.cat([rows[: window.start], rows[window.stop :]])
            if len(others) == 0:
                continue
            distance = _distance(anchors @ others.T)
        else:  # small classes together, whose negatives are in the window too
            same = own[:, None] == blocks.group[None, :]
            distance = _distance(anchors @ rows.T).masked_fill(same, torch.inf)
        yield _distance(anchors @ rows[window].T), positive, _ascending(distance), negatives


def _ascending(values: Tensor) -> Tensor:
    if values.device.type != "cpu":
        return values.sort(dim=1).values
    # On a processor numpy sorts three times as fast as torch.
    return values.gather(1, torch.from_numpy(np.argsort(values.detach().numpy(), axis=1)))


def _semi_hard(z: Tensor, blocks: ClassBlocks, margin: float) -> tuple[Tensor, float]:
    """Mean over the positive pairs and the share of them with a positive loss."""
    total, count, active = z.new_zeros(()), 0, 0
    for distance, positive, nearest, negatives in _by_window(z, blocks):
        positive = positive & (negatives > 0)
        # How many negatives are no farther than p is the place of the first one that is.
        place = torch.searchsorted(nearest.detach(), distance.detach(), right=True)
        farther = nearest.gather(1, place.minimum(negatives - 1).clamp_min(0))
        losses = functional.relu(distance - farther + margin) * positive
        total = total + losses.sum()
        count += int(positive.sum())
        active += int(torch.count_nonzero(losses))
    return total / count, active / count


def _batch_all(z: Tensor, blocks: ClassBlocks, margin: float) -> tuple[Tensor, float]:
    """Mean over the violated triplets and their share of all."""
    total, count, triplets = z.new_zeros(()), 0, 0
    for distance, positive, nearest, negatives in _by_window(z, blocks):
        limit = distance + margin
        # How many negatives are nearer than the limit, none where the pair is no positive.
        violated = torch.searchsorted(nearest.detach(), limit.detach()) * positive
        running = nearest.masked_fill(nearest.isinf(), 0.0).cumsum(dim=1)
        below = running.gather(1, (violated - 1).clamp_min(0)) * (violated > 0)
        total = total + (violated * limit - below).sum()
        count += int(violated.sum())
        triplets += int((positive * negatives).sum())
    return total / max(count, 1), count / triplets
