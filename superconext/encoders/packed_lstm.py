"""One bidirectional LSTM layer over packed tokens, forward and backward written out.

Made for a CPU, where whatever is not a matrix product costs: no token is padding, the two
directions share their element-wise work, a step is worked through while it is in cache, and
input, recurrence and bias are one product, of [x_t h_{t-1} 1] with the three weights joined.

With gates i, f, g, o (in the order of nn.LSTM)::

    [i f g o] = [s s tanh s](W_x x_t + W_h h_{t-1} + b)        s the logistic function
    c_t = f c_{t-1} + i g,   h_t = o tanh(c_t)

The code has one non-linearity, s, for it costs a fifth of tanh here: tanh(x) = 2 s(2x) - 1. The
rows of g are therefore doubled in the weights, and the cell that is kept is 2 c_t. What these
factors do to the four gates' gradients is corrected in the weights (`_FACTORS`).

Source: Hochreiter and Schmidhuber (1997) with the forget gate of Gers et al. (2000).

Packed tokens are a batch of sentences without padding: first all first tokens, then all second.
The longest sentence is first, so the sentences that still have a token at step t are the first
`steps[t]` rows, and one step of an LSTM is one slice.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from superconext.encoders import compiled_gates


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


#: Of each gate's rows in the weights.
DOUBLED = (1.0, 1.0, 2.0, 1.0)
#: True gradient over the one computed, for each gate: see `_through_time`.
_FACTORS = (2.0, 0.5, 4.0, 1.0)
#: Rows of joined input begin at multiples of so many elements.
_ALIGNED = 16

#: Whether the graph that is passed back through is kept for another pass. torch 2.3 does not say.
_graph_is_kept = getattr(torch._C._autograd, "_get_current_graph_task_keep_graph", lambda: True)
_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


def packed_bilstm(
    x: Tensor, packing: Packing, ahead: torch.nn.LSTM, back: torch.nn.LSTM, aligned: bool
) -> Tensor:
    """States `[P, 2h]` of a bidirectional layer over packed tokens `[P, i]`.

    The forward half is `ahead`'s state at each token. The backward half is `back`'s at the
    same token if `aligned`, otherwise in its own reading order: at the place of token t of a
    sentence then stands its state at token t from the end. Without gradient nothing is kept.

    Under autocast to bfloat16 the factors of matrix products are rounded to it, everything else
    stays in the type of the weights.
    """
    # What products have here is asked of one: torch 2.3 has other names for the question.
    kind = torch.mm(x.new_zeros(1, 1), x.new_zeros(1, 1)).dtype
    weights: list[Tensor] = []
    for lstm in (ahead, back):
        inputs, recurrent, bias, other_bias = lstm.parameters()
        weights += [inputs, recurrent, bias + other_bias]
    states: Tensor = _Layer.apply(x, packing, aligned, kind, *weights)
    return states.flatten(1)


class _Layer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, packing: Packing, aligned: bool, kind: torch.dtype, *weights: Tensor
    ) -> Tensor:
        with torch.autocast("cpu", enabled=False):
            joined = _joined_input(x, packing, weights[1].shape[1], kind)
            matrices = [_joined_weights(weights[d : d + 3], DOUBLED).to(kind) for d in (0, 3)]
            kernel = compiled_gates.active(weights[0])
            gates, cells, states = _in_time(joined, matrices, packing, weights[0].dtype, kernel)
        ctx.packing, ctx.aligned, ctx.kernel = packing, aligned, kernel
        ctx.save_for_backward(joined, gates, cells, *weights)
        return turned(states, packing) if aligned else states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        joined, gates, cells, *weights = ctx.saved_tensors
        packing, (width, before) = ctx.packing, (w.shape[1] for w in weights[:2])
        if ctx.aligned:
            gradient = turned(gradient, packing)
        matrices = [_joined_weights(weights[d : d + 3], _FACTORS).to(joined.dtype) for d in (0, 3)]
        needs_input = bool(ctx.needs_input_grad[0])
        start = 0 if needs_input else width
        matrices = [matrix[:, start : width + before] for matrix in matrices]
        # At a step's end nobody needs its gates any more, so what comes out may take their place:
        # that spares a block as large and what it costs to fetch it into cache.
        spent = not _graph_is_kept() and joined.dtype == gates.dtype
        delta = gates if spent else torch.empty_like(gates, dtype=joined.dtype)
        given = gradient, gates, cells, matrices, packing, needs_input, delta
        into = _through_time(*given, ctx.kernel)
        results: list[Tensor | None] = []
        for d in (0, 1):
            whole = (joined[:, d].t() @ delta[:, d]).t().to(gates.dtype)
            whole = _scaled(whole, _FACTORS)
            ends = (width, width + before)
            results += [whole[:, : ends[0]], whole[:, ends[0] : ends[1]], whole[:, ends[1]]]
        if not needs_input:
            return None, None, None, None, *results
        backward = into[:, 1, :width].index_select(0, packing.reversed)
        return into[:, 0, :width] + backward, None, None, None, *results


def turned(states: Tensor, packing: Packing) -> Tensor:
    """`[P, 2, h]` with the backward half in the other order."""
    return torch.stack([states[:, 0], states[:, 1].index_select(0, packing.reversed)], dim=1)


def _scaled(rows: Tensor, factors: tuple[float, ...]) -> Tensor:
    """The rows of the four gates `[4h, k]`, each gate's times its factor."""
    factor = rows.new_tensor(factors).view(4, 1, 1)
    return (rows.reshape(4, -1, rows.shape[1]) * factor).view(rows.shape)


def _joined_weights(weights: tuple[Tensor, ...] | list[Tensor], factors: Any) -> Tensor:
    """[W_x W_h b], `[4h, i + h + 1]`."""
    inputs, recurrent, bias = weights
    return _scaled(torch.cat([inputs, recurrent, bias[:, None]], dim=1), factors)


def _joined_input(x: Tensor, packing: Packing, before: int, kind: torch.dtype) -> Tensor:
    """[x_t, room for h_{t-1}, 1] of each direction in its reading order, `[P, 2, i + h + 1]`."""
    width = x.shape[1]
    whole = width + before + 1
    stride = -(-whole // _ALIGNED) * _ALIGNED
    # In bfloat16 a product may read what stands behind a row, times zero: never a NaN by chance.
    made = torch.empty if kind == x.dtype else torch.zeros
    joined = made(len(x), 2, stride, dtype=kind)[:, :, :whole]
    joined[:, 0, :width].copy_(x)
    joined[:, 1, :width].copy_(x.index_select(0, packing.reversed))
    joined[: packing.steps[0], :, width:-1].zero_()
    joined[:, :, -1].fill_(1)
    return joined


def _in_time(
    joined: Tensor,
    matrices: list[Tensor],
    packing: Packing,
    dtype: torch.dtype,
    kernel: compiled_gates.Kernel | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gates `[P, 2, 4h]`, cells 2c and states h, both `[P, 2, h]`.

    Puts h_{t-1} into its room in `joined`.
    """
    steps, width = packing.steps, matrices[0].shape[0] // 4
    gates = torch.empty(len(joined), 2, 4 * width, dtype=dtype)
    cells, states = (torch.empty(len(joined), 2, width, dtype=dtype) for _ in range(2))
    bounded = torch.empty(steps[0], 2, width, dtype=dtype)
    low = joined.dtype != dtype
    products = torch.empty(steps[0], 2, 4 * width, dtype=joined.dtype) if low else None
    columns = [matrix.t() for matrix in matrices]
    whole, halves = gates.split(steps), [gates[:, d].split(steps) for d in (0, 1)]
    i, f, g, o = (gates[:, :, k * width : (k + 1) * width].split(steps) for k in range(4))
    c, h = cells.split(steps), states.split(steps)
    x = [joined[:, d].split(steps) for d in (0, 1)]
    room = joined[:, :, -1 - width : -1].split(steps)
    step = kernel and kernel.forward(packing, joined, products, gates, cells, states)
    for t, n in enumerate(steps):
        for d in (0, 1):
            if products is None:
                torch.mm(x[d][t], columns[d], out=halves[d][t])
            else:
                torch.mm(x[d][t], columns[d], out=products[:n, d])
        if step:
            step(t)
            continue
        if products is not None:
            whole[t].copy_(products[:n])
        whole[t].sigmoid_()
        if t:
            torch.mul(f[t], c[t - 1][:n], out=c[t])
            c[t].sub_(i[t], alpha=2).addcmul_(i[t], g[t], value=4)
        else:
            torch.mul(i[t], g[t], out=c[t])
            c[t].mul_(4).sub_(i[t], alpha=2)
        torch.mul(o[t], _tanh_of_half(c[t], bounded[:n]), out=h[t])
        if t + 1 < len(steps):
            room[t + 1].copy_(h[t][: steps[t + 1]])
    return gates, cells, states


def _tanh_of_half(doubled: Tensor, out: Tensor) -> Tensor:
    return torch.sigmoid(doubled, out=out).mul_(2).sub_(1)


def _through_time(
    gradient: Tensor,
    gates: Tensor,
    cells: Tensor,
    matrices: list[Tensor],
    packing: Packing,
    keep_input: bool,
    delta: Tensor,
    kernel: compiled_gates.Kernel | None,
) -> Tensor:
    """Gradients of what the gates' non-linearities got, over `_FACTORS`, into `delta`
    `[P, 2, 4h]`, which may be the gates themselves. Gives back those times the matrices (whose
    last columns are W_h), of the last step alone unless `keep_input`.

    With q = dL/dh_t and k = dL/dc_t, and s' = s (1 - s) taken of all four gates at once::

        dL/do = q tanh(c)        dL/df = k c_{t-1}         = (k 2c_{t-1}) / 2
        dL/dg' = 4 k i s'(g')    dL/di = k (2 s(g') - 1)   = 2 (k s(g') - k / 2)

    where g' is half of what s got, its weights being doubled.
    """
    steps, width = packing.steps, gates.shape[2] // 4
    kind, most = matrices[0].dtype, steps[0]
    low = kind != gates.dtype
    into = torch.empty(len(gates) if keep_input else most, 2, matrices[0].shape[1], dtype=kind)
    # Whatever one step alone needs is written to the same place every time, and stays in cache.
    exact = gates.new_empty(most, 2, 4 * width)
    q_all, m_all, b_all = (gates.new_empty(most, 2, width) for _ in range(3))
    k_all = gates.new_zeros(most, 2, width)
    whole, c, dh = (x.split(steps) for x in (gates, cells, gradient))
    deltas, halves = delta.split(steps), [delta[:, d].split(steps) for d in (0, 1)]
    results = into.split(steps) if keep_input else [into[:n] for n in steps]
    i, f, g, o = (gates[:, :, k * width : (k + 1) * width].split(steps) for k in range(4))
    gradient = gradient.contiguous()
    step = kernel and kernel.backward(packing, results, delta, gates, cells, gradient)
    after = 0
    for t in range(len(steps) - 1, -1, -1):
        if step:
            step(t)
            for d in (0, 1):
                torch.mm(halves[d][t], matrices[d], out=results[t][:, d])
            continue
        n = steps[t]
        q, k, m, b, d_whole = q_all[:n], k_all[:n], m_all[:n], b_all[:n], exact[:n]
        if after:
            torch.add(dh[t][:after], results[t + 1][:, :, -width:], out=q[:after])
        if n > after:
            q[after:].copy_(dh[t][after:])
        after = n
        di, df, dg, do = d_whole.split(width, dim=2)
        _tanh_of_half(c[t], b)
        torch.mul(q, b, out=do)
        torch.mul(q, o[t], out=m)
        k.add_(_tanh_backward(m, b, grad_input=m))
        torch.mul(k, g[t], out=m)
        torch.sub(m, k, alpha=0.5, out=di)
        torch.mul(k, i[t], out=dg)
        if t:
            torch.mul(k, c[t - 1][:n], out=df)
        else:
            df.zero_()
        k.mul_(f[t])
        if low:
            _sigmoid_backward(d_whole, whole[t], grad_input=d_whole)
            deltas[t].copy_(d_whole)
        else:
            _sigmoid_backward(d_whole, whole[t], grad_input=deltas[t])
        for d in (0, 1):
            torch.mm(halves[d][t], matrices[d], out=results[t][:, d])
    return into
