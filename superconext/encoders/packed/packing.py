"""A batch of sentences token by token, without padding: first all first tokens, then all second.

Longest sentence first, so the sentences that still have a token at step t are the first
`steps[t]` rows, and one step of an LSTM is one slice.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch
from torch import Tensor


class Packing:
    """Where every token of N sentences stands among the P = sum of lengths packed ones.

    Rows are sentences from the longest to the shortest, row r is the caller's sentence
    `order[r]`; token t of row r stands at `offsets[t] + r`.

    Args:
        lengths: tokens in each sentence `[N]`, at least 1.

    Attributes:
        lengths: of the rows, descending, int64 `[N]`.
        steps: rows that have a token t, for each t.
        row, time: of each packed token, int64 `[P]`.
    """

    def __init__(self, lengths: np.ndarray) -> None:
        lengths = np.asarray(lengths, dtype=np.int64)
        self.order = np.argsort(-lengths, kind="stable")
        self.lengths = lengths[self.order]
        counts = len(lengths) - np.searchsorted(
            self.lengths[::-1], np.arange(int(self.lengths[0])), side="right"
        )
        self.steps: list[int] = counts.tolist()
        self.offsets = np.concatenate([[0], np.cumsum(counts)])
        self.time = np.repeat(np.arange(len(counts)), counts)
        self.row = np.arange(len(self.time)) - self.offsets[self.time]

    def __len__(self) -> int:
        return len(self.time)

    @cached_property
    def reversed(self) -> Tensor:
        """For each packed token the one as far from the other end of its sentence, `[P]`.

        Its own inverse: it turns reading order into backward reading order and back.
        """
        mirrored = self.offsets[self.lengths[self.row] - 1 - self.time] + self.row
        return torch.from_numpy(mirrored)

    @cached_property
    def last(self) -> Tensor:
        """The last token of each row, `[N]`."""
        return torch.from_numpy(self.offsets[self.lengths - 1] + np.arange(len(self.lengths)))

    @cached_property
    def back(self) -> Tensor:
        """The row of each of the caller's sentences, `[N]`."""
        return torch.from_numpy(np.argsort(self.order))

    @cached_property
    def padded(self) -> Tensor:
        """Where each packed token goes in the caller's `[N, T]`, flattened, `[P]`."""
        return torch.from_numpy(self.order[self.row] * len(self.steps) + self.time)

    def pad(self, states: Tensor) -> Tensor:
        """Packed `[P, d]` to `[N, T, d]` in the caller's order, zeros at padding."""
        rows, width = len(self.lengths), len(self.steps)
        flat = states.new_zeros(rows * width, states.shape[1])
        return flat.index_copy(0, self.padded, states).view(rows, width, -1)


def align(states: Tensor, packing: Packing) -> Tensor:
    """States `[P, d]` with each half in its own reading order to both halves at each token."""
    half = states.shape[1] // 2
    turned = states[:, half:].index_select(0, packing.reversed)
    return torch.cat([states[:, :half], turned], dim=1)


def surround(packing: Packing, extra: np.ndarray) -> tuple[Packing, Tensor]:
    """The packing of sentences with C more tokens at each end, mirrored.

    extra: for each row, which of C extra tokens stand at its front, outermost first, `[N, C]`;
        the same stand behind, outermost last.

    Also gives, for each packed token `[P + 2CN]`, where it is to be taken from: the P packed
    tokens of `packing` followed by the C extra ones.
    """
    count = extra.shape[1]
    lengths = np.empty_like(packing.lengths)
    lengths[packing.order] = packing.lengths + 2 * count
    outer = Packing(lengths)
    depth = np.minimum(outer.time, outer.lengths[outer.row] - 1 - outer.time)
    inside = depth >= count
    text = packing.offsets[np.where(inside, outer.time - count, 0)] + outer.row
    added = len(packing) + extra[outer.row, np.where(inside, 0, depth)]
    return outer, torch.from_numpy(np.where(inside, text, added))
