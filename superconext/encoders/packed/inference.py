"""A bidirectional LSTM layer over packed tokens for prediction, where no gradient is wanted.

The equations and the one non-linearity are those of `encoders.packed_lstm`. What is saved: the
input's share of the gates, W_x x + b, is worked out once for each distinct word of the batch and
not for each token; and the gates of a step, or its states where they are pooled, are forgotten in
the buffer they were made in, which stays in cache.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from superconext.encoders.packed.lstm import DOUBLED, turned
from superconext.encoders.packed.packing import Packing

#: Sentences taken through time together: their gates stay in cache.
_ROWS = 512


@torch.no_grad()
@torch.autocast("cpu", enabled=False)
def read_rows(
    rows: Tensor,
    index: Tensor,
    packing: Packing,
    ahead: nn.LSTM,
    back: nn.LSTM,
    aligned: bool,
) -> Tensor:
    """States `[P, 2h]` of packed tokens, as `packed_bilstm` of `rows[index]` has them.

    rows: distinct inputs `[D, i]`. index: the row of each packed token, int64 `[P]`.
    """
    states = rows.new_empty(len(packing), 2, ahead.hidden_size)
    for t, first, hidden in _in_time(rows, index, packing, ahead, back):
        start = int(packing.offsets[t]) + first
        states[start : start + hidden.shape[1]].copy_(hidden.transpose(0, 1))
    return (turned(states, packing) if aligned else states).flatten(1)


@torch.no_grad()
@torch.autocast("cpu", enabled=False)
def pooled_rows(
    rows: Tensor,
    index: Tensor,
    packing: Packing,
    ahead: nn.LSTM,
    back: nn.LSTM,
    pooling: str,
) -> Tensor:
    """`PACKED_POOLING[pooling]` of `read_rows`, `[N, 2h]` in the caller's order, with no more
    states kept than those of a step.

    The larger part of the time goes into products either way; writing every state and reading it
    again, from memory that is new each time, would be a tenth of the rest.
    """
    pooled = rows.new_empty(2, len(packing.lengths), ahead.hidden_size)
    for t, first, hidden in _in_time(rows, index, packing, ahead, back):
        n = hidden.shape[1]
        place = pooled[:, first : first + n]
        if pooling == "last" or t == 0:
            place.copy_(hidden)  # for "last", again and again until the sentence has ended
        elif pooling == "max":
            torch.maximum(place, hidden, out=place)
        else:
            place.add_(hidden)
    if pooling == "mean":
        pooled /= torch.from_numpy(packing.lengths).to(pooled.dtype)[:, None]
    return pooled.transpose(0, 1).flatten(1).index_select(0, packing.back)


def _in_time(
    rows: Tensor, index: Tensor, packing: Packing, ahead: nn.LSTM, back: nn.LSTM
) -> Iterator[tuple[int, int, Tensor]]:
    """Yield (t, first of some rows of the packing, their states `[2, n, h]` after t + 1 tokens),
    each direction in its reading order. The states are written over at the next step."""
    width = ahead.hidden_size
    projected, recurrent = [], []
    for lstm in (ahead, back):
        inputs, hidden, bias, other_bias = lstm.parameters()
        factor = inputs.new_tensor(DOUBLED).repeat_interleave(width)
        weights = (inputs * factor[:, None]).t().contiguous()
        projected.append(torch.addmm((bias + other_bias) * factor, rows, weights))
        recurrent.append((hidden * factor[:, None]).t().contiguous())
    places = (index, index.index_select(0, packing.reversed))
    like, most = projected[0], min(_ROWS, packing.steps[0])
    gates = like.new_empty(2, most, 4 * width)
    cells, bounded, states = (like.new_empty(2, most, width) for _ in range(3))
    starts: list[int] = packing.offsets.tolist()
    for first in range(0, packing.steps[0], _ROWS):
        for t, count in enumerate(packing.steps):
            n = min(count - first, _ROWS)
            if n <= 0:
                break
            start = starts[t] + first
            for d in (0, 1):
                own = gates[d, :n]
                torch.index_select(projected[d], 0, places[d][start : start + n], out=own)
                if t:
                    own.addmm_(states[d, :n], recurrent[d])
            i, f, g, o = gates[:, :n].sigmoid_().split(width, dim=2)
            c, b, h = cells[:, :n], bounded[:, :n], states[:, :n]
            # c holds 2 c_t, and g the s of a doubled value: see `packed_lstm`.
            if t:
                c.mul_(f).sub_(i, alpha=2).addcmul_(i, g, value=4)
            else:
                torch.mul(i, g, out=c).mul_(4).sub_(i, alpha=2)
            torch.sigmoid(c, out=b).mul_(2).sub_(1)
            yield t, first, torch.mul(o, b, out=h)
