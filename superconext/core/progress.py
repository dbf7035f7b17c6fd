"""Progress for people: bars and lines on stderr, silent in the library and in pipes."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

#: Seconds until a bar is shown, and between two of its moves.
_DELAY, _TICK = 2.0, 0.5

#: Seconds without a line until one says how far the work is, where no bar can be shown.
_LINES = 30.0

#: Begins a note, such as those of a reader, that is a warning.
WARNING = "warning: "


class Progress:
    """What long work reports to. This base says nothing but warnings, as Python's own."""

    #: The last summary, see `summarise`.
    summary = ""
    _noted: frozenset[str] = frozenset()

    def summarise(self, summary: str) -> None:
        """Say a summary, unless it is the one that was said last."""
        if summary != self.summary:
            self.summary = summary
            self.say(summary)

    def say(self, line: str) -> None:
        """A line the user may want to read."""

    def warn(self, line: str) -> None:
        """A line the user must not miss."""
        warnings.warn(line, stacklevel=3)

    def note(self, note: str, source: str = "") -> None:
        """A note about `source`, said once or, where it is a warning, warned of."""
        lead = f"{source}: " if source else ""
        if lead + note in self._noted:
            return
        self._noted |= {lead + note}
        if note.startswith(WARNING):
            self.warn(lead + note.removeprefix(WARNING))
        else:
            self.say(f"note: {lead}{note}")

    @contextmanager
    def bar(self, description: str) -> Iterator[Advance]:
        """A bar for one piece of work; call the given function with the share done, 0 to 1."""
        yield lambda share, /: None


class Advance(Protocol):
    def __call__(self, share: float, /) -> None: ...


class TerminalProgress(Progress):
    """Lines and bars on stderr; bars on a terminal and in notebooks, after two seconds, elsewhere
    lines, after half a minute without one.

    A bar moves as long as the work continues: its clock does where no share is known.

    quiet: warnings alone.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet or sys.stderr is None
        self._written = time.monotonic()

    def say(self, line: str) -> None:
        if not self.quiet:
            self._write(line)

    def warn(self, line: str) -> None:
        self._write(f"warning: {line}")

    def _write(self, line: str) -> None:
        if sys.stderr is None:  # closed, as by a daemon
            return
        from tqdm import tqdm

        self._written = time.monotonic()
        try:
            tqdm.write(line, file=sys.stderr)
        except BrokenPipeError:  # whoever read the lines has left; the work goes on
            sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

    @contextmanager
    def bar(self, description: str) -> Iterator[Advance]:
        if self.quiet:
            yield lambda share, /: None
            return
        if not (sys.stderr.isatty() or in_notebook()):
            yield self._lines(description)
            return
        from tqdm.auto import tqdm

        layout = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} (left {remaining})"
        with tqdm(
            total=1.0,
            desc=description,
            bar_format="{desc} {elapsed}",
            delay=_DELAY,
            leave=False,
            file=sys.stderr,
            **_size_where_unknown(),
        ) as bar:
            ended = threading.Event()

            def advance(share: float, /) -> None:
                bar.bar_format = layout
                bar.update(min(share, 1.0) - bar.n)

            def keep_moving() -> None:
                pause = _DELAY
                while not ended.wait(pause):
                    bar.refresh()
                    pause = _TICK

            ticker = threading.Thread(target=keep_moving, daemon=True)
            ticker.start()
            try:
                yield advance
            finally:
                ended.set()
                ticker.join()

    def _lines(self, description: str) -> Advance:
        def advance(share: float, /) -> None:
            if time.monotonic() - self._written >= _LINES:
                self.say(f"{description}: {share:.0%}")

        return advance


def _size_where_unknown() -> dict[str, int]:
    """A size for a terminal that says it has none, as in a container: tqdm would show nothing."""
    try:
        known = all(os.get_terminal_size(sys.stderr.fileno()))
    except (OSError, ValueError, AttributeError):  # no terminal: a cell of a notebook
        known = True
    return {} if known else {"ncols": 80, "nrows": 24}


def in_notebook() -> bool:
    """Whether this runs in a Jupyter kernel, where bars are widgets or lines of a cell."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    # Colab's and others' are derived from Jupyter's.
    return any(kind.__name__ == "ZMQInteractiveShell" for kind in type(shell).__mro__)
