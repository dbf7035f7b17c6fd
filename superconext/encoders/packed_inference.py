"""A bidirectional LSTM layer over packed tokens for prediction, where no gradient is wanted.

The equations and the one non-linearity are those of `encoders.packed_lstm`. What is saved: the
input's share of the gates, W_x x + b, is worked out once for each distinct word of the batch and
not for each token, and the gates of a step are forgotten in the buffer they were made in, which
stays in cache.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from superconext.encoders.packed_lstm import DOUBLED, turned
from superconext.encoders.packing import Packing


@torch.no_grad()
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
    with torch.autocast("cpu", enabled=False):
        width = ahead.hidden_size
        projected, recurrent = [], []
        for lstm in (ahead, back):
            inputs, hidden, bias, other_bias = lstm.parameters()
            factor = inputs.new_tensor(DOUBLED).repeat_interleave(width)
            weights = (inputs * factor[:, None]).t()
            projected.append(torch.addmm((bias + other_bias) * factor, rows, weights))
            recurrent.append((hidden * factor[:, None]).t().contiguous())
        places = (index, index.index_select(0, packing.reversed))
        states = _in_time(projected, places, recurrent, packing, width)
        return (turned(states, packing) if aligned else states).flatten(1)


def _in_time(
    projected: list[Tensor],
    places: tuple[Tensor, Tensor],
    recurrent: list[Tensor],
    packing: Packing,
    width: int,
) -> Tensor:
    """States `[P, 2, h]`, each direction in its reading order."""
    steps, like = packing.steps, projected[0]
    most = steps[0]
    gates = like.new_empty(2, most, 4 * width)
    cells, bounded, hidden = (like.new_empty(2, most, width) for _ in range(3))
    states = like.new_empty(len(packing), 2, width)
    chosen = [place.split(steps) for place in places]
    for t, (n, out) in enumerate(zip(steps, states.split(steps), strict=True)):
        for d in (0, 1):
            own = gates[d, :n]
            torch.index_select(projected[d], 0, chosen[d][t], out=own)
            if t:
                own.addmm_(hidden[d, :n], recurrent[d])
        i, f, g, o = gates[:, :n].sigmoid_().split(width, dim=2)
        c, b, h = cells[:, :n], bounded[:, :n], hidden[:, :n]
        # c holds 2 c_t, and g the s of a doubled value: see `packed_lstm`.
        if t:
            c.mul_(f).sub_(i, alpha=2).addcmul_(i, g, value=4)
        else:
            torch.mul(i, g, out=c).mul_(4).sub_(i, alpha=2)
        torch.sigmoid(c, out=b).mul_(2).sub_(1)
        torch.mul(o, b, out=h)
        out.copy_(h.transpose(0, 1))
    return states
