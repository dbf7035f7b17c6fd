"""Memory of the process: freed blocks that are kept or given back, and pauses of the collector.

glibc gives every freed block of some size back to the kernel, and each page of the next one
costs a fault and a clearing: at a large batch over a million faults a step, up to half its time.
Large tensors in large pages (2 MiB instead of 4 KiB) spare the processor looking pages up.

Importing torch and reading a large vocabulary make some hundred thousand objects that stay.
Python's garbage collector looks through all of them again and again, and once more when the
program ends: together a third of the processor time until a small file is predicted. So it is
paused while a model is made ready.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # the names' numbers in malloc.h
#: Blocks above this many bytes still come from and go back to the kernel.
LARGEST_KEPT = 1 << 30


def keep_freed_memory() -> bool:
    """Ask the allocator to reuse freed blocks; True if it is one that can be asked (glibc).

    Memory once used then stays with the process until it ends. Nothing is changed where the
    user has set the allocator up (`MALLOC_..._` or `GLIBC_TUNABLES` in the environment). Best
    called before torch makes its first tensor: only then does torch ask for large pages
    (unless `THP_MEM_ALLOC_ENABLE` says otherwise).
    """
    if not sys.platform.startswith("linux"):
        return False
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    if "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "") or any(
        name in os.environ for name in ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
    ):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    mallopt.argtypes, mallopt.restype = [ctypes.c_int, ctypes.c_int], ctypes.c_int
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_KEPT) and mallopt(_TRIM_THRESHOLD, 2**31 - 1))


def give_back_freed_memory() -> None:
    """Return what is freed to the kernel once, where the allocator can (glibc): for a place after
    which other blocks are asked for than before."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim.argtypes, trim.restype = [ctypes.c_size_t], ctypes.c_int
        trim(0)


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the garbage collector inside the block; afterwards it is as it was."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def skip_final_collection() -> None:
    """End the program without a last collection: what it leaves goes with the process."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
