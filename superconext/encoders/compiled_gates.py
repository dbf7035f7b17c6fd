"""The element-wise half of a training step, compiled by this machine's C++ compiler.

What `packed_lstm` and the pooling of `packed_inference` do in some twenty small operations a step,
`compiled_gates.cpp` does in two passes, for float32 weights on a CPU, with products in float32 or
bfloat16. Results differ in the last digits. It is used within `compiled(True)` alone.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from superconext.core.compiler import CompilerError, library_of
from superconext.core.progress import Progress

if TYPE_CHECKING:
    from superconext.encoders.packed_lstm import Packing

SOURCE = Path(__file__).with_suffix(".cpp")
#: Arguments of the functions: i an integer of 64 bits, s of 32, p an address.
_ARGUMENTS = {
    "forward_float32": "iippppppiii",
    "forward_bfloat16": "iippppppiii",
    "backward_float32": "iippiiippppp",
    "backward_bfloat16": "iippiiippppp",
    "largest": "ipippsp",
    "largest_backward": "ipippspppp",
}
_KINDS = {"i": ctypes.c_int64, "s": ctypes.c_int32, "p": ctypes.c_void_p}
_active: list[Kernel] = []


@contextmanager
def compiled(wanted: bool) -> Iterator[None]:
    """Within it the kernel is used, if there is one; does nothing unless `wanted`."""
    made = kernel() if wanted else ""
    if isinstance(made, Kernel):
        _active.append(made)
    try:
        yield
    finally:
        if isinstance(made, Kernel):
            _active.pop()


def active(x: Tensor) -> Kernel | None:
    """The kernel that is used now for values like `x`."""
    fitting = _active and x.dtype == torch.float32 and x.device.type == "cpu"
    return _active[-1] if fitting else None


@functools.cache
def kernel() -> Kernel | str:
    """The kernel of this machine, or why there is none."""
    try:
        return Kernel(library_of(SOURCE))
    except (CompilerError, OSError, AttributeError) as error:
        return str(error)


def warn_without_kernel(progress: Progress) -> None:
    """Warn where there is none."""
    if isinstance(made := kernel(), str):
        progress.warn(f"compile: {made}; training goes on without, and is slower")


class Kernel:
    """The functions of the library; tensors are those of `packed_lstm` and `packed_inference`."""

    def __init__(self, library: Path) -> None:
        found = ctypes.CDLL(str(library))
        self._functions: dict[str, Any] = {name: getattr(found, name) for name in _ARGUMENTS}
        for name, arguments in _ARGUMENTS.items():
            self._functions[name].argtypes = [_KINDS[one] for one in arguments]
            self._functions[name].restype = None

    def forward(
        self, packing: Packing, joined: Tensor, products: Tensor | None, *made: Tensor
    ) -> Callable[[int], None]:
        """A function that does all of step t of `_in_time` but its products; made: gates, cells
        and states."""
        function = self._functions[f"forward_{_name(joined)}"]
        steps, offsets, h = [*packing.steps, 0], packing.offsets.tolist(), made[2].shape[2]
        row, half, size = joined.stride(0), joined.stride(1), joined.element_size()
        room = joined[:, :, -1 - h : -1].data_ptr()
        gate, cell, state = (tensor.data_ptr() for tensor in made)

        def step(t: int) -> None:
            n, at = steps[t], offsets[t] * 8 * h  # bytes of the states of all tokens before
            source = gate + 4 * at if products is None else products.data_ptr()
            before = cell + offsets[t - 1] * 8 * h if t else None
            places = source, gate + 4 * at, before, cell + at, state + at
            to = room + offsets[t + 1] * row * size
            function(n, h, *places, to, row, half, steps[t + 1])

        return step

    def backward(
        self, packing: Packing, results: Sequence[Tensor], delta: Tensor, *made: Tensor
    ) -> Callable[[int], None]:
        """A function that does all of step t of `_through_time` but its products; made: gates,
        cells and the gradient of the states, contiguous."""
        function = self._functions[f"backward_{_name(delta)}"]
        steps, offsets, h = [*packing.steps, 0], packing.offsets.tolist(), made[1].shape[2]
        wide, size = results[0].shape[2], delta.element_size()
        carry = made[1].new_zeros(steps[0], 2, h)
        gate, cell, up = (tensor.data_ptr() for tensor in made)
        into = [result.data_ptr() + (wide - h) * size for result in results] + [0]

        def step(t: int) -> None:
            n, at = steps[t], offsets[t] * 8 * h
            before = cell + offsets[t - 1] * 8 * h if t else None
            places = gate + 4 * at, before, cell + at, carry.data_ptr()
            later = into[t + 1], 2 * wide, wide, steps[t + 1]
            function(n, h, up + at, *later, *places, delta.data_ptr() + at * size)

        return step

    def largest(self, states: Tensor, packing: Packing, bits: Tensor, cut: int) -> Tensor:
        """Of each row's states `[P, d]` the largest, those with `bits` below `cut` being 0:
        `[N, d]`."""
        best = states.new_full((packing.steps[0], states.shape[1]), -torch.inf)
        self._functions["largest"](*_pooled(states, packing, bits, cut), best.data_ptr())
        return best

    def largest_backward(
        self, states: Tensor, packing: Packing, bits: Tensor, cut: int, best: Tensor, up: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradient of the states `[P, d]` for that of the largest `[N, d]`, and how many states
        share each, by which it is yet to be divided, `[N, d]`."""
        result, ties, up = torch.empty_like(states), torch.zeros_like(best), up.contiguous()
        places = best.data_ptr(), up.data_ptr(), ties.data_ptr(), result.data_ptr()
        self._functions["largest_backward"](*_pooled(states, packing, bits, cut), *places)
        return result, ties


def _pooled(states: Tensor, packing: Packing, bits: Tensor, cut: int) -> tuple[Any, ...]:
    counts = (ctypes.c_int64 * len(packing.steps))(*packing.steps)
    return len(counts), counts, states.shape[1], states.data_ptr(), bits.data_ptr(), cut


def _name(x: Tensor) -> str:
    return str(x.dtype).removeprefix("torch.")
