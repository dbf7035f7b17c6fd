"""Does a reader answer or refuse, whatever it is given, quickly and in little memory?

A finding is an exception that is none of the project's own, a message that cannot be shown or
names no file, more than five seconds, or memory out of proportion to the input.
"""

from __future__ import annotations

import random
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from superconext.core.errors import SuperConTextError
from tests.reliability.mutate import Mutator
from tests.reliability.readers import Case, Reader

#: Seconds one input may take.
PATIENCE = 5.0

#: Bytes of resident memory one input (of at most 64 KiB) may add, and of address space.
MEMORY, ADDRESSES = 96 << 20, 1 << 30

_TRACED = 16  # one input in so many is traced, for tracing costs much more than reading
_POOL = 400


class Hang(BaseException):
    """An input took longer than PATIENCE; no reader may catch it."""


@dataclass
class Finding:
    """What an input did, and the input."""

    what: str
    case: Case
    trace: str = ""


@dataclass
class Counts:
    """What came of the inputs of one reader. Memory in bytes, times in seconds."""

    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    memory: int = 0
    seconds: float = 0.0
    lines: int = 0
    messages: set[str] = field(default_factory=set)
    findings: list[Finding] = field(default_factory=list)


def judge(reader: Reader, folder: Path, case: Case, counts: Counts) -> None:
    """Read one input and count what came of it."""
    before = _peak()
    started = time.perf_counter()
    what = trace = ""
    try:
        with _patience():
            reader.read(folder, case)
        counts.accepted += 1
    except SuperConTextError as error:
        counts.refused += 1
        what = _fault(error, reader.names(folder, case))
        trace = traceback.format_exc() if what else ""
        if len(counts.messages) < 5000:
            counts.messages.add(" ".join(str(error).split()[1:4]))
    except Hang:
        what, trace = "hang", traceback.format_exc()
    except Exception as error:
        what, trace = f"{type(error).__name__}: {error}"[:200], traceback.format_exc()
    counts.inputs += 1
    counts.slowest = max(counts.slowest, time.perf_counter() - started)
    grown = _peak() - before
    counts.memory = max(counts.memory, grown)
    if not what and grown > MEMORY:
        what = f"{grown >> 20} MiB of memory for {len(case.data)} bytes"
    if what:
        counts.findings.append(Finding(what, case, trace))


def _fault(error: BaseException, names: tuple[str, ...]) -> str:
    """What is wrong with a refusal: of the system's memory, or its message."""
    message = str(error)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (MemoryError, AssertionError)):
            return f"{type(cause).__name__} taken for a fault of the file"
        cause = cause.__cause__ or cause.__context__
    if not any(name in message for name in names):
        return f"a message that names no file: {message[:200]}"
    try:
        message.encode("utf-8")
    except UnicodeEncodeError:
        return f"a message that cannot be written: {message[:200]!a}"
    if len(message) > 20_000:
        return f"a message of {len(message)} characters"
    return ""


def fuzz(
    reader: Reader,
    folder: Path,
    inputs: int,
    seed: int = 0,
    seconds: float | None = None,
    report: Callable[[Counts], None] | None = None,
) -> Counts:
    """Read `inputs` inputs made of the reader's seeds, or as many as `seconds` allow.

    Those that reach lines of the package which none before them reached are kept and changed
    further, as far as one input in `_TRACED` that is traced tells.
    """
    draw = random.Random(f"{reader.name} {seed}")
    mutator = Mutator(reader.tokens, draw)
    pool: list[Case] = list(reader.seeds(folder))
    counts, seen = Counts(), set[tuple[str, int]]()
    started = time.perf_counter()
    for case in pool:
        with _tracing(seen):
            judge(reader, folder, case, counts)
    own = len(pool)
    with _address_limit():
        while counts.inputs < inputs:
            if seconds is not None and time.perf_counter() - started > seconds:
                break
            case = draw.choice(pool)
            others = [other.data for other in draw.sample(pool, min(3, len(pool)))]
            case = Case(case.name, mutator.mutate(case.name, case.data, others))
            if counts.inputs % _TRACED == 0:
                reached = len(seen)
                with _tracing(seen):
                    judge(reader, folder, case, counts)
                if len(seen) > reached:
                    pool.append(case)
                    if len(pool) > own + _POOL:
                        del pool[own]
            else:
                judge(reader, folder, case, counts)
            if report is not None and counts.inputs % 10_000 == 0:
                report(counts)
    counts.seconds, counts.lines = time.perf_counter() - started, len(seen)
    return counts


@contextmanager
def _patience() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _address_limit() -> Iterator[None]:
    """Memory that is asked for and never touched counts too: it is refused beyond a limit."""
    status = Path("/proc/self/statm")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    if status.exists():
        pages = int(status.read_text().split()[0])
        soft = pages * resource.getpagesize() + ADDRESSES
        resource.setrlimit(resource.RLIMIT_AS, (soft, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


@contextmanager
def _tracing(seen: set[tuple[str, int]]) -> Iterator[None]:
    """Add the lines of the package that run inside to `seen`."""

    def lines(frame: FrameType, event: str, argument: Any) -> Any:
        seen.add((frame.f_code.co_filename, frame.f_lineno))
        return lines

    def calls(frame: FrameType, event: str, argument: Any) -> Any:
        return lines if "superconext" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(calls)
    try:
        yield
    finally:
        sys.settrace(before)


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
