"""Locks: one process at a time writes to a place, by a lock that dies with its holder."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from superconext.core.errors import RunError

#: The byte that is locked: one past all content, for Windows lets nobody read a locked byte.
_LOCKED = 1 << 20
_ADVICE = (
    "expected a folder that nothing else writes: wait until it ends, or choose another with --out"
)
#: Seconds between two attempts to get a lock that is waited for.
_PAUSE = 0.2
_UNSUPPORTED = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL}


@contextmanager
def only_writer(
    lock: Path,
    place: Path,
    say: Callable[[str], None],
    kept: str,
    *,
    remove: bool = False,
    advice: str = _ADVICE,
    wait: bool = False,
) -> Iterator[None]:
    """Hold the lock file inside the block, for one process at a time may write at `place`.

    The lock is the operating system's, and dies with its holder, however that dies: a lock
    file whose process has gone does not stand in the way. Where the file system has no locks,
    the process that the file names is looked for instead.

    Args:
        lock: the file that is locked, made when missing; `remove` takes it away at the end.
        place: what is guarded, for the messages.
        say: called with a line where an earlier holder was stopped while it wrote; `kept` says
            in it what of that holder's work is kept.
        advice: to a process that comes second: what was expected, what to do.
        wait: whether a process that comes second waits until the first has ended.

    Raises RunError, unless it waits, while another process, on this machine or, where the file
    system tells, on another, is writing, and OSError, naming `place`, where the file cannot be
    made.
    """
    handle, holder = _opened(lock, place, advice, wait)
    try:
        if holder:
            say(f"note: {holder} was stopped while writing {place}; {kept}")
        os.ftruncate(handle, 0)
        os.lseek(handle, 0, os.SEEK_SET)
        with contextlib.suppress(OSError):  # on a full disk the lock still holds, nameless
            os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
        yield
    finally:
        os.ftruncate(handle, 0)
        if remove:
            with contextlib.suppress(OSError):  # Windows keeps a file that is open
                lock.unlink()
        os.close(handle)


def _opened(lock: Path, place: Path, advice: str, wait: bool) -> tuple[int, str]:
    """The locked file and who held it before, if that was stopped while writing."""
    while True:
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            error.filename = str(place)
            raise
        try:
            taken = try_lock(handle)
            holder = os.read(handle, 500).decode("utf-8", "replace").strip()
            if taken is None:
                taken = not _lives(holder)
            if not taken and not wait:
                raise RunError(f"{place}: {holder or 'another process'} is writing there; {advice}")
            # Whoever held it may have removed the file since it was opened here.
            if taken and _is_still(handle, lock):
                return handle, holder
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if not taken:
            time.sleep(_PAUSE)


def _is_still(handle: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(handle)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _lives(holder: str) -> bool:
    """Whether `process PID on HOST` is one of this machine that runs; unknown ones do."""
    words = holder.split(" ", 3)
    if len(words) != 4 or not words[1].isdigit():
        return False
    if words[3] != platform.node():
        return True
    try:
        os.kill(int(words[1]), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return int(words[1]) != os.getpid()


def locked_file(make: Callable[[], tuple[int, Path]]) -> tuple[int, Path]:
    """A new file, open and locked, and its name: what `make` makes, made again where a process that
    clears away what dead ones left has taken it in the moment before it was locked."""
    while True:
        handle, path = make()
        if try_lock(handle) is not False and os.fstat(handle).st_nlink:
            return handle, path
        os.close(handle)


def try_lock(handle: int) -> bool | None:
    """Lock an open file without waiting; None where the file system has no locks.

    The lock ends when the file is closed, or its process ends.
    """
    if sys.platform == "win32":
        import msvcrt

        os.lseek(handle, _LOCKED, os.SEEK_SET)
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
        return True
    try:
        import fcntl
    except ImportError:  # a Python without it: the process that the file names is looked for
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return None
    return True
