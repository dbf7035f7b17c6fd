"""Which fits are done? `results.jsonl`: a line a fit, safe from kills and second writers."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from superconext.errors import RunError
from superconext.experiments.plan import Key, key_of
from superconext.training.progress import Progress

FILE = "results.jsonl"
LOCK = ".lock"

#: The byte that is locked: one past all content, for Windows lets nobody read a locked byte.
_LOCKED = 1 << 20


def read_results(path: Path) -> dict[Key, dict[str, Any]]:
    """The lines of a results file by fit; of two lines for one fit the first stands.

    A last line without its line end is what a kill left of a write, and is passed over.
    Raises RunError, naming the line, for anything else that is no line of results.
    """
    found: dict[Key, dict[str, Any]] = {}
    if not path.exists():
        return found
    *whole, _ = path.read_bytes().split(b"\n")
    for number, text in enumerate(whole, 1):
        try:
            line = json.loads(text)
            found.setdefault(key_of(line), line)
        except (ValueError, KeyError, TypeError):
            raise RunError(
                f"{path}, line {number}: found no result of a fit, expected one JSON object with "
                "system, seed and split: remove the line, and its fit is run again"
            ) from None
    return found


class ResultsFile:
    """The results of a comparison, and the place to add to them.

    lines: what stands, by fit.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.lines = read_results(self.path)
        self._cut_torn_line()

    def add(self, line: Mapping[str, Any]) -> None:
        """Append a line; when this returns it is on the disk."""
        text = json.dumps(line, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        with self.path.open("ab") as stream:
            stream.write(text.encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        self.lines[key_of(line)] = dict(line)

    def _cut_torn_line(self) -> None:
        """Else the next line would be written onto the end of a torn one."""
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with self.path.open("r+b") as stream:
                stream.truncate(whole)


@contextmanager
def only_writer(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder's lock inside the block, for one process at a time may write there.

    The lock is the operating system's, and dies with its holder, however that dies: a lock
    file whose process has gone does not stand in the way. Raises RunError while another
    process, on this machine or, where the file system tells, on another, is writing.
    """
    with (folder / LOCK).open("a+", encoding="utf-8") as stream:
        taken = _try_lock(stream)
        stream.seek(0)
        holder = stream.read().strip()
        if not taken:
            raise RunError(
                f"{folder}: {holder or 'another process'} is writing there; expected a folder of "
                "one's own: wait until it ends, or choose another with --out"
            )
        if holder:
            progress.say(
                f"note: {holder} was stopped while writing {folder}; its finished fits are kept"
            )
        stream.truncate(0)
        stream.write(f"process {os.getpid()} on {platform.node()}")
        stream.flush()
        try:
            yield
        finally:
            stream.truncate(0)


def _try_lock(stream: IO[str]) -> bool:
    if sys.platform == "win32":
        import msvcrt

        stream.seek(_LOCKED)
        try:
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
