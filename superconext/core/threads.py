"""Threads of a run: their number, and how they wait for each other.

At the end of every parallel piece of work the faster thread waits for the one that a neighbour's
program pushed aside, and a thread that spins while it waits pushes others aside itself. So threads
here spin briefly and then sleep, and a command takes one for each processor that is idle when it
begins; docs/performance.md has the figures. Results depend on the number in their last bits, so it
is kept to the end and written into the run's manifest.

Nothing here imports torch: how threads wait is read from the environment when torch is imported.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping

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
