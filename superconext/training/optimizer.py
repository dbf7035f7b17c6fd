"""Adam whose step over a table of vectors costs what the rows of the batch cost.

Under plain Adam a row that the batch does not use still moves, by what is left of its momentum, and
its two moments still decay; so each step walks over the whole table. All of that follows from the
row's last gradient, so it can wait until the row is read again. With m and v a row's moments
after step t, b1 and b2 their decay and r = b1 / sqrt(b2), the steps t + 1 .. t' without a
gradient take it to b1^(t'-t) m and b2^(t'-t) v, and move it by::

    - sum over s = t + 1 .. t' of w_s m / (sqrt(v) + eps_s),
      w_s = lr_s r^(s-t) sqrt(1 - b2^s) / (1 - b1^s),  eps_s = eps sqrt(1 - b2^s) / sqrt(b2)^(s-t)

Both are the same for all rows whose last step was t, so such rows owe
(sum of w_s) m / (sqrt(v) + mean of eps_s weighted by w_s). The mean is the only approximation; it
is exact to the first order of eps / sqrt(v), and eps is 1e-8.

Source: Kingma and Ba (2015), "Adam", algorithm 1, with its skipped steps summed. torch's SparseAdam
leaves those steps out instead, which is another training: a rare row then moves by a tenth.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn

#: A table has so many times the rows of its first batch if its steps put rows off: where the
#: last cache holds the table, a pass over it in order took less time than choosing a twelfth.
LAZY_FROM = 6

#: Rows updated at once, so that their moments stay in the processor's cache.
_BLOCK = 1024


def _plain(name: str) -> Any:
    """A method of Adam without torch's wrappers, which import its compiler: that takes a second."""
    return inspect.unwrap(getattr(torch.optim.Adam, name))


@runtime_checkable
class RowReader(Protocol):
    """A module that reads some rows of a large table in each batch, with row-sparse gradients.

    before_reading: called with the table `[V, ...]` and the distinct rows about to be read,
        int64 `[n]` (None for all), so that the optimiser can make up for steps it has put off.
    """

    before_reading: Callable[[Tensor, Tensor | None], None] | None


def make_optimizer(modules: nn.Module, groups: list[dict[str, Any]]) -> RowAdam:
    """The optimiser of `Encoder.parameter_groups`; the `RowReader`s in `modules` tell it what they
    read."""
    optimizer = RowAdam(groups)
    for module in modules.modules():
        if isinstance(module, RowReader):
            module.before_reading = optimizer.catch_up
    return optimizer


def clip_gradients(parameters: Iterable[Tensor], limit: float) -> Tensor:
    """Scale all gradients so that their norm is at most `limit`; returns the norm before, a scalar.

    `torch.nn.utils.clip_grad_norm_` for parameters some of whose gradients are row-sparse.
    """
    stand_ins = []
    for parameter in parameters:
        if parameter.grad is not None and parameter.grad.is_sparse:
            rows, values = _rows_of(parameter.grad)
            parameter.grad = torch.sparse_coo_tensor(
                rows[None], values, parameter.shape, check_invariants=False
            )
            stand_in = values.detach()
            stand_in.grad = values
            stand_ins.append(stand_in)
        else:
            stand_ins.append(parameter)
    return nn.utils.clip_grad_norm_(stand_ins, limit)


@dataclass
class _Rows:
    """Bookkeeping of one table's rows, in addition to the optimiser's state.

    slot: place of each row in the state, int64 `[V]`, -1 for a row that has none.
    last: the step each place is brought up to, int64 `[capacity]`.
    rows, exp_avg, exp_avg_sq: the state with room to grow, `[capacity, ...]`.
    base, owed: `owed[:, t - base]` is the sum of w_s, and of w_s eps_s, for rows last brought
        up to step t.
    """

    slot: Tensor
    last: Tensor
    rows: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor
    base: int
    owed: np.ndarray


class RowAdam(torch.optim.Adam):
    """Adam with its defaults, in one fused pass where torch has it, and lazy on tables.

    Weight decay is apart from the gradient (Loshchilov and Hutter, 2019, "Decoupled weight decay
    regularization"): a group's `decay`, which is not for tables.

    A parameter with row-sparse gradients keeps moments of the rows that ever had one alone:
    `state[p]` has `step`, `rows` int64 `[R]`, `exp_avg` and `exp_avg_sq` `[R, ...]`. Rows
    have to be brought up to date by `catch_up` before anything reads them. Where the first
    gradient names a large share of the rows, all have moments and nothing is put off.
    """

    add_param_group, zero_grad = _plain("add_param_group"), _plain("zero_grad")

    def __init__(
        self, parameters: Iterable[Tensor] | Iterable[dict[str, Any]], learning_rate: float = 1e-3
    ) -> None:
        parameters = [*parameters]  # type: ignore[assignment]
        self._tables: dict[Tensor, _Rows] = {}
        self._whole: dict[Tensor, Tensor] = {}
        try:
            super().__init__(parameters, lr=learning_rate, fused=True)
        except RuntimeError:  # before torch 2.4 on a CPU, and on devices that lack it
            super().__init__(parameters, lr=learning_rate)
        for group in self.param_groups:
            group["full_lr"] = group["lr"]

    def set_rate(self, rate: float) -> None:
        """Multiply the learning rates that were given by `rate`, for the steps that follow."""
        for group in self.param_groups:
            group["lr"] = rate * group["full_lr"]

    @torch.no_grad()
    def catch_up(self, parameter: Tensor | None = None, rows: Tensor | None = None) -> None:
        """Make up for the steps that rows have passed over.

        Args:
            parameter: a table; None for all of them.
            rows: distinct row numbers, int64 `[n]`; None for all of the table.
        """
        for table in [parameter] if parameter is not None else list(self._tables):
            known = self._tables.get(table)
            if known is None or known.owed.shape[1] == 1:
                continue
            if rows is not None:
                slots = known.slot[rows]
                self._pay(table, known, slots[slots >= 0])
                continue
            count = len(self.state[table]["rows"])
            self._pay(table, known, torch.arange(count, device=table.device))
            known.base, known.owed = int(self.state[table]["step"]), np.zeros((2, 1))

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """One step; a gradient that is row-sparse costs only its rows."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        sparse = []
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None and parameter.grad.is_sparse:
                    sparse.append((group, parameter, parameter.grad))
                    parameter.grad = self._whole_gradient(parameter)
            if group.get("decay"):
                moved = [p for p in group["params"] if p.grad is not None]
                if moved:  # none of a layer above the one that is read
                    torch._foreach_mul_(moved, 1 - group["lr"] * group["decay"])
        _plain("step")(self)
        for group, parameter, grad in sparse:
            if parameter.grad is None:
                self._step_rows(group, parameter, *_rows_of(grad))
            else:  # zeros again, for the next step
                parameter.grad.index_fill_(0, _rows_of(grad)[0], 0)
            parameter.grad = grad
        return loss

    def state_dict(self) -> dict[str, Any]:
        """Of rows that are up to date."""
        self.catch_up()
        state: dict[str, Any] = _plain("state_dict")(self)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Put back what `state_dict` gave."""
        _plain("load_state_dict")(self, state_dict)
        self._tables.clear()
        parameters = [p for group in self.param_groups for p in group["params"]]
        for index, saved in state_dict["state"].items():
            if "rows" in saved:  # torch has made them floating point
                table = parameters[index]
                self.state[table]["rows"] = saved["rows"].to(table.device, torch.int64, copy=True)
                self._table(table)

    def _whole_gradient(self, table: Tensor) -> Tensor | None:
        """A row-sparse gradient as one of all rows; None for a table that puts rows off."""
        assert table.grad is not None
        rows, values = _rows_of(table.grad)
        state = self.state[table]
        if "rows" in state or (not state and len(rows) * LAZY_FROM <= len(table)):
            return None
        if table not in self._whole:
            self._whole[table] = torch.zeros_like(table)
        return self._whole[table].index_copy_(0, rows, values)

    def _step_rows(self, group: dict[str, Any], table: Tensor, rows: Tensor, grad: Tensor) -> None:
        known = self._table(table)
        self.catch_up(table, rows)
        slots = self._slots(table, known, rows)
        state = self.state[table]
        state["step"] += 1
        step = int(state["step"])
        rate, eps, (beta1, beta2) = group["lr"], group["eps"], group["betas"]
        root = math.sqrt(1 - beta2**step)
        size = rate / (1 - beta1**step)
        for start in range(0, len(rows), _BLOCK):
            part = slice(start, start + _BLOCK)
            here, new = slots[part], grad[part]
            first = known.exp_avg[here].lerp_(new, 1 - beta1)
            second = known.exp_avg_sq[here].mul_(beta2).addcmul_(new, new, value=1 - beta2)
            known.exp_avg.index_copy_(0, here, first)
            known.exp_avg_sq.index_copy_(0, here, second)
            move = first.div_(second.sqrt_().div_(root).add_(eps))
            table.index_add_(0, rows[part], move, alpha=-size)
        known.last[slots] = step
        # What each row that sits this step out now owes for it.
        recent = known.owed[:, -_window(beta1, beta2) :]
        passed = np.arange(recent.shape[1], 0, -1.0)
        weights = size * root * (beta1 / math.sqrt(beta2)) ** passed
        recent += weights, weights * eps * root / math.sqrt(beta2) ** passed
        known.owed = np.pad(known.owed, ((0, 0), (0, 1)))

    def _pay(self, table: Tensor, known: _Rows, slots: Tensor) -> None:
        """Bring the rows in these places, without gradient since, to the present step."""
        state = self.state[table]
        group = next(g for g in self.param_groups if any(p is table for p in g["params"]))
        step, (beta1, beta2) = int(state["step"]), group["betas"]
        slots = slots[known.last[slots] < step]
        owed, small = torch.from_numpy(known.owed).to(table.device)
        small = small / owed.where(owed > 0, 1)  # at a rate of 0 nothing is owed
        for here in slots.split(_BLOCK):
            last = known.last[here]
            passed = (step - last).double()
            first, second = known.exp_avg[here], known.exp_avg_sq[here]
            since = last - known.base
            move = first / second.sqrt().add_(_column(small[since], first))
            move.mul_(_column(owed[since], first))
            table.index_add_(0, known.rows[here], move, alpha=-1)
            first.mul_(_column(torch.pow(beta1, passed), first))
            second.mul_(_column(torch.pow(beta2, passed), second))
            known.exp_avg.index_copy_(0, here, first)
            known.exp_avg_sq.index_copy_(0, here, second)
        known.last[slots] = step

    def _table(self, table: Tensor) -> _Rows:
        """The bookkeeping of a table, made from its state or for an empty one."""
        if table not in self._tables:
            state = self.state[table]
            if not state:
                state["step"] = torch.tensor(0.0, dtype=torch.float32)
                state["rows"] = torch.empty(0, dtype=torch.int64, device=table.device)
                state["exp_avg"] = torch.empty_like(table[:0])
                state["exp_avg_sq"] = torch.empty_like(table[:0])
            rows, step = state["rows"], int(state["step"])
            slot = torch.full((len(table),), -1, dtype=torch.int64, device=table.device)
            slot[rows] = torch.arange(len(rows), device=table.device)
            self._tables[table] = _Rows(
                slot,
                torch.full_like(rows, step),
                rows,
                state["exp_avg"],
                state["exp_avg_sq"],
                step,
                np.zeros((2, 1)),
            )
        return self._tables[table]

    def _slots(self, table: Tensor, known: _Rows, rows: Tensor) -> Tensor:
        """The places `[n]` of rows, with new ones of zeros for those that had none."""
        new = rows[known.slot[rows] < 0]
        if len(new):
            state = self.state[table]
            start = len(state["rows"])
            end = start + len(new)
            if end > len(known.rows):
                capacity = min(max(end, 2 * len(known.rows)), len(table))
                for name in ("last", "rows", "exp_avg", "exp_avg_sq"):
                    old = getattr(known, name)
                    wider = old.new_empty(capacity, *old.shape[1:])
                    wider[:start] = old[:start]
                    setattr(known, name, wider)
            known.slot[new] = torch.arange(start, end, device=table.device)
            known.rows[start:end] = new
            for name in ("exp_avg", "exp_avg_sq"):
                getattr(known, name)[start:end] = 0
            for name in ("rows", "exp_avg", "exp_avg_sq"):
                state[name] = getattr(known, name)[:end]
        return known.slot[rows]


def _rows_of(grad: Tensor) -> tuple[Tensor, Tensor]:
    """Ascending distinct rows `[n]` and values `[n, ...]` of a row-sparse gradient."""
    rows = grad._indices()[0]
    # As one backward pass leaves it; several add up, and torch forgets either way.
    if bool((rows[1:] > rows[:-1]).all()):
        return rows, grad._values()
    grad = grad.coalesce()
    return grad.indices()[0], grad.values()


def _column(numbers: Tensor, like: Tensor) -> Tensor:
    return numbers.to(like.dtype).reshape(-1, *[1] * (like.dim() - 1))


def _window(beta1: float, beta2: float) -> int:
    """Steps after which nothing of a gradient's momentum is left in double precision."""
    return math.ceil(math.log(1e-18) / math.log(beta1 / math.sqrt(beta2)))
