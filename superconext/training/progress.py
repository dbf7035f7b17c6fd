"""Progress for people: bars and lines on stderr, silent in the library and in pipes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from superconext.training.callbacks import Callback, Record, Training


class Progress:
    """What long work reports to. This base says nothing but warnings, as Python's own."""

    def say(self, line: str) -> None:
        """A line the user may want to read."""

    def warn(self, line: str) -> None:
        """A line the user must not miss."""
        warnings.warn(line, stacklevel=3)

    @contextmanager
    def bar(self, description: str) -> Iterator[Advance]:
        """A bar for one piece of work; call the given function with the share done, 0 to 1."""
        yield _ignore


class Advance(Protocol):
    def __call__(self, share: float, /) -> None: ...


def _ignore(share: float, /) -> None:
    pass


class TerminalProgress(Progress):
    """Lines and bars on stderr; bars only on a terminal and only after two seconds.

    quiet: warnings alone.
    """

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet

    def say(self, line: str) -> None:
        if not self.quiet:
            self._write(line)

    def warn(self, line: str) -> None:
        self._write(f"warning: {line}")

    def _write(self, line: str) -> None:
        from tqdm import tqdm

        tqdm.write(line, file=sys.stderr)

    @contextmanager
    def bar(self, description: str) -> Iterator[Advance]:
        from tqdm import tqdm

        layout = "{desc}: {percentage:3.0f}%|{bar}| {elapsed} (left {remaining})"
        with tqdm(
            total=1.0,
            desc=description,
            bar_format=layout,
            delay=2.0,
            leave=False,
            file=sys.stderr,
            disable=True if self.quiet else None,
        ) as bar:

            def advance(share: float, /) -> None:
                bar.update(min(share, 1.0) - bar.n)

            yield advance


class StepBar(Callback):
    """Moves a bar with every batch."""

    def __init__(self, advance: Advance) -> None:
        self.advance = advance

    def on_step_end(self, trainer: Training, step: int, loss: float) -> None:
        done = trainer.epoch * trainer.batches.steps + step + 1
        self.advance(done / (trainer.epochs * trainer.batches.steps))


#: Heading, history key and format of each column of the epoch lines.
_COLUMNS = (
    ("epoch", "epoch", "5d"),
    ("loss", "loss", "7.4f"),
    ("pos sim", "positive_similarity", "7.3f"),
    ("neg sim", "negative_similarity", "7.3f"),
    ("neg kept", "kept", "8.1%"),
    ("dev acc", "dev_score", "7.3f"),
    ("seconds", "seconds", "7.1f"),
)


class EpochLines(Callback):
    """One aligned line for each epoch, under a heading. Columns the objective lacks are dashes."""

    def __init__(self, progress: Progress, member: int = 0, members: int = 1) -> None:
        self.progress = progress
        self.title = f"member {member + 1} of {members}" if members > 1 else ""

    def on_train_begin(self, trainer: Training) -> None:
        if self.title:
            self.progress.say(f"{self.title}: {trainer.config.objective}")
        self.progress.say(
            "  ".join(f"{heading:>{max(len(heading), 7)}s}" for heading, _, _ in _COLUMNS)
        )

    def on_epoch_end(self, trainer: Training, record: Record) -> None:
        cells = []
        for heading, key, layout in _COLUMNS:
            text = format(record[key], layout) if key in record else "-"
            cells.append(f"{text.strip():>{max(len(heading), 7)}s}")
        self.progress.say("  ".join(cells))
