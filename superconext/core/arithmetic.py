"""What this processor multiplies fast, measured once and remembered in the cache.

bfloat16: a processor without it emulates it, many times slower.

float32: torch leaves matrix products to MKL, which on AMD processors uses half the width of
AVX-512. torch's other library, oneDNN, uses all of it: on Zen 5 it is twice as fast. torch calls it
for float32 only where it is allowed to round the factors to bfloat16, and oneDNN does so only on
processors where that is faster still (AMX). So it is allowed here where products stay as exact as
MKL's.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import TYPE_CHECKING

from superconext.core.files import cache_dir, write_json
from superconext.core.process import processor_kind

if TYPE_CHECKING:
    import torch

#: File of the cache: for each kind of processor and version of torch, what was measured.
FILE = "arithmetic.json"

#: oneDNN is taken where it is this many times as fast: less may be chance, which would change the
#: last bits of results from one time to the next.
GAIN = 1.4

#: Rows, inner size and columns of the products that are compared with exact ones; one is timed.
_SHAPES = (128, 256, 512), (4, 300, 64), (64, 2000, 64)

#: Error of a product in oneDNN over MKL's, beyond which it is not as exact: bfloat16's is a
#: thousand times as large.
_ERROR = 8.0

_lock = threading.Lock()
_inside = 0


def bfloat16_slowdown() -> float:
    """How many times as long a matrix product takes in bfloat16 as in float32."""
    return _remembered("bfloat16", measure_bfloat16)


@contextmanager
def fast_products(allowed: bool = True) -> Iterator[None]:
    """Inside the block torch multiplies float32 matrices on the processor with the faster library.

    Nothing changes where the user has set `torch.set_float32_matmul_precision`, or not `allowed`.
    """
    import torch

    global _inside
    if not (allowed and _onednn_wins()):
        yield
        return
    with _lock:
        entered = _inside > 0 or _precision() == "highest"
        if entered:
            torch.set_float32_matmul_precision("medium")
            _inside += 1
    try:
        yield
    finally:
        with _lock:
            if entered:
                _inside -= 1
                if not _inside:
                    torch.set_float32_matmul_precision("highest")


def float32_library() -> str:
    """Which library multiplies float32 matrices inside `fast_products` on this processor."""
    return "oneDNN" if _onednn_wins() else "torch's own"


@functools.cache
def _onednn_wins() -> bool:
    import torch

    there = torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available()
    return there and _remembered("onednn", measure_onednn) >= GAIN


def _precision() -> str:
    """What the user allows float32 products; "" where that was set for one library alone."""
    import torch

    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return ""


def measure_bfloat16() -> float:
    """`bfloat16_slowdown`, measured in some 20 ms."""
    import torch

    def seconds(kind: torch.dtype) -> float:
        return _seconds(torch.ones(64, 128, dtype=kind), torch.ones(128, 256, dtype=kind))

    return seconds(torch.bfloat16) / seconds(torch.float32)


def measure_onednn() -> float:
    """How many times as fast oneDNN multiplies float32 matrices as MKL, measured in some 20 ms.

    0 where it is less exact, or cannot be asked.
    """
    import torch

    before = _precision()
    if not before:
        return 0.0
    draw = torch.Generator().manual_seed(0)
    gain = 0.0
    try:
        for rows, inner, columns in _SHAPES:
            one = torch.randn(rows, inner, generator=draw)
            other = torch.randn(inner, columns, generator=draw)
            exact = one.double() @ other.double()
            errors, seconds = [], []
            for precision in ("highest", "medium"):
                torch.set_float32_matmul_precision(precision)
                errors.append(float(((one @ other).double() - exact).abs().max()))
                if not gain:
                    seconds.append(_seconds(one, other))
            if errors[1] > _ERROR * errors[0]:
                return 0.0
            gain = gain or seconds[0] / seconds[1]
    finally:
        torch.set_float32_matmul_precision(before)
    return gain


def _seconds(one: torch.Tensor, other: torch.Tensor) -> float:
    import torch

    found = []
    for _ in range(5):
        # That of the processor counts in ticks of 16 ms on some systems, which is too coarse.
        began = perf_counter()
        for _ in range(3):
            torch.mm(one, other)
        found.append(perf_counter() - began)
    return min(found)


def _remembered(name: str, measure: Callable[[], float]) -> float:
    """What was measured on this kind of processor with this torch and these limits for its
    libraries."""
    import torch

    limits = [
        os.environ.get(name, "") for name in ("ONEDNN_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS")
    ]
    kind = hashlib.sha256("\n".join([torch.__version__, *limits, processor_kind()]).encode())
    key = f"{name} {kind.hexdigest()[:16]}"
    known = {}
    with suppress(OSError, ValueError, TypeError):
        known = dict(json.loads((cache_dir() / FILE).read_text("utf-8")))
    if not isinstance(known.get(key), float):
        known[key] = measure()
        with suppress(OSError):
            cache_dir().mkdir(parents=True, exist_ok=True)
            write_json(cache_dir() / FILE, known)
    return float(known[key])
