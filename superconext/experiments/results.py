"""Which fits are done? `results.jsonl`: a line a fit, safe from kills and second writers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

from superconext.core import locks
from superconext.core.errors import RunError
from superconext.core.files import sync
from superconext.core.progress import Progress
from superconext.experiments.plan import Key, key_of

FILE = "results.jsonl"
LOCK = ".lock"


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
        """Append a line; when this returns it is on the disk, and when it raises, gone again."""
        text = json.dumps(line, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        new = not self.path.exists()
        with self.path.open("ab", buffering=0) as stream:
            before = stream.seek(0, os.SEEK_END)
            try:
                _write_all(stream, text.encode() + b"\n")
                os.fsync(stream.fileno())
            except OSError as error:
                stream.truncate(before)
                error.filename = str(self.path)
                raise
        if new:
            sync(self.path.parent)
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


def _write_all(stream: FileIO, content: bytes) -> None:
    """A full disk takes a part of it before it refuses the rest."""
    while content:
        content = content[stream.write(content) :]


@contextmanager
def only_writer(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder's lock inside the block; see `locks.only_writer` for what it raises."""
    with locks.only_writer(folder / LOCK, folder, progress.say, "its finished fits are kept"):
        yield
