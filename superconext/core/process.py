"""The process: how its threads wait, what it does with freed memory, pauses of the collector.

At the end of every parallel piece of work the faster thread waits for the one that a neighbour's
program pushed aside, and a thread that spins while it waits pushes others aside itself. So threads
here spin briefly and then sleep, and a command takes one for each processor that is idle when it
begins; scripts/bench_threads.py measures both. Results depend on the number in their last bits, so
it is kept to the end and written into the run's manifest. Nothing here imports torch: how threads
wait is read from the environment when torch is imported.

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
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

#: Rounds that a waiting thread of libgomp, torch's on Linux, spins before it sleeps: long enough
#: for the short gaps between the pieces of a training step, shorter than a time slice by far.
SPIN = "1000"

#: Threads taken without being asked for; a step has no use for many.
MOST = 4

#: Seconds for which the processors are watched, and how often at most: the end of a program that
#: was there a moment ago is no neighbour, and one is busy at every look.
WATCHED, LOOKS = 0.1, 4

#: An idle processor is one that was idle for this share of the time.
_IDLE = 0.75

#: Columns of a `cpu` line of /proc/stat: work of low priority, no work, waiting for a disk.
_NICE, _NONE, _DISK = 1, 3, 4

Times = Mapping[int, tuple[float, float]]


def wait_briefly(environment: dict[str, str] | os._Environ[str] = os.environ) -> None:
    """Let OpenMP's workers sleep soon instead of spinning; where the user has not said how.

    Must come before torch is imported.
    """
    if not {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} & set(environment):
        environment["OMP_WAIT_POLICY"] = "passive"
        environment["GOMP_SPINCOUNT"] = SPIN


def processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def choose_threads(
    watch: Callable[[], tuple[int, int] | None] | None = None,
    environment: dict[str, str] | os._Environ[str] = os.environ,
) -> int:
    """Threads for a run whose user names none: one for each idle processor, `MOST` at most.

    Where none is idle: one for each processor, `MOST` at most, and they sleep at once where
    `wait_briefly` had let them spin; so it must come before torch is imported. OMP_NUM_THREADS is
    obeyed where it is set to a number. Where the load cannot be told the answer is 1.

    Args:
        watch: tells how many processors are idle and how many there are, or None; by default
            `idle_processors`.
    """
    named = environment.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if named.isdigit() and int(named) >= 1:
        return int(named)
    idle, there = (watch or idle_processors)() or (1, 1)
    if idle == 0 and environment.get("GOMP_SPINCOUNT") == SPIN:
        environment["GOMP_SPINCOUNT"] = "0"
    return min(idle or there, MOST)


def idle_processors(seconds: float = WATCHED) -> tuple[int, int] | None:
    """How many processors open to this process nobody uses, and how many are open; None if unknown.

    They are watched for `seconds`, and again while some seem busy, `LOOKS` times at most; the most
    that were idle at one look count. Work of lower priority than this process's own is none.
    """
    most, before = 0, _times()
    there = len(before or ())
    for _ in range(LOOKS):
        if before is None:
            return None
        time.sleep(seconds)
        after = _times()
        if after is None:
            return None
        most = max(most, idle_between(before, after))
        if most == there:
            break
        before = after
    return most, there


def idle_between(before: Times, after: Times) -> int:
    """Processors idle between two readings of (time without work, all time) for each."""
    idle = 0
    for number in before.keys() & after.keys():
        free, whole = (b - a for a, b in zip(before[number], after[number], strict=True))
        idle += whole > 0 and free / whole >= _IDLE
    return idle


def _times() -> Times | None:
    try:
        with open("/proc/stat", encoding="ascii") as stream:
            lines = stream.read().splitlines()
        allowed = os.sched_getaffinity(0)
        yielding = os.getpriority(os.PRIO_PROCESS, 0) <= 0
    except (OSError, ValueError, AttributeError):
        return None
    return read_times(lines, allowed, yielding)


def read_times(lines: list[str], allowed: set[int], yielding: bool) -> Times:
    """The `cpu` lines of /proc/stat as (time without work, all time) by processor.

    yielding: whether work of low priority makes way for this process.
    """
    times: dict[int, tuple[float, float]] = {}
    for line in lines:
        name, _, rest = line.partition(" ")
        number = name.removeprefix("cpu")
        if not name.startswith("cpu") or not number.isdigit() or int(number) not in allowed:
            continue
        values = [float(value) for value in rest.split()[:8]]  # guests count as user already
        free = values[_NONE] + values[_DISK] + (values[_NICE] if yielding else 0.0)
        times[int(number)] = (free, sum(values))
    return times


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


def processor_kind() -> str:
    """What tells apart processors that compute differently: model and features, as Linux lists
    them; elsewhere the name alone."""
    about = [platform.machine(), platform.processor()]
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines()
        about += dict.fromkeys(
            line for line in lines if line.startswith(("model name", "flags", "Features"))
        )
    return "\n".join(about)
