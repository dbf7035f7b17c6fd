"""Epoch lines and the step bar: callbacks that report training to a `Progress`."""

from __future__ import annotations

from superconext.core.progress import Advance, Progress
from superconext.training.callbacks import Callback, Record, Training


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
