"""The time that a training may take: fewer epochs where it would take longer.

After a few steps the time of an epoch is known, and after the first what is done between two. Where
the epochs would not be done before a deadline, training begins again with those that will be, and a
resumed run has the same number. An encoder of fewer epochs predicts a little worse, and shows
whether training is worth its time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from superconext.config.parameters import Config
from superconext.core.errors import RunError
from superconext.core.files import write_json
from superconext.training.callbacks import Callback, Record
from superconext.training.trainer import Trainer

#: Steps after which the time of an epoch is known.
TIMED = 8

#: Share of the time left that a training of fewer epochs takes, by what was timed.
_OF_TIME = 0.9

Trained = TypeVar("Trained")


def clock() -> float:
    """Seconds of processor time: by a clock on the wall a busy machine would choose otherwise."""
    return time.process_time()


class OutOfTime(Exception):
    """Not even one epoch can be done before the deadline."""


class _TooLong(Exception):
    """The epochs of a training would not be done before its deadline.

    epochs: those there is time for, 0 or more. of: those it was to have.
    """

    def __init__(self, epochs: int, of: int) -> None:
        super().__init__(epochs, of)
        self.epochs, self.of = epochs, of


class _Timer(Callback):
    """Raises _TooLong after the first `TIMED` steps, those of one epoch, or the first past the
    deadline. With the first epoch it is known what stands between epochs, as scores on dev: then it
    raises _TooLong or calls `passed`."""

    def __init__(self, deadline: float, passed: Callable[[], None]) -> None:
        self.deadline, self.passed = deadline, passed
        self._steps, self._began, self._of_step, self._latest = 0, 0.0, 0.0, 0.0

    def on_train_begin(self, trainer: Trainer) -> None:
        self._steps, self._began = 0, clock()

    def on_step_end(self, trainer: Trainer, step: int, loss: float) -> None:
        self._steps, self._latest = self._steps + 1, clock()
        last = min(TIMED, trainer.batches.steps)
        if self._steps == last or (self._steps < last and self._latest > self.deadline):
            self._of_step = (self._latest - self._began) / max(self._steps - 1, 1)
            self._judge(trainer, self._of_step * trainer.batches.steps)
        if self._steps == 1:  # slower than the others, as it makes what these use again
            self._began = clock()

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        if trainer.epoch == 1:
            between = clock() - self._latest
            self._judge(trainer, self._of_step * trainer.batches.steps + between)
            self.passed()

    def _judge(self, trainer: Trainer, seconds: float) -> None:
        """seconds: of an epoch; 0 where the clock's ticks are too coarse to tell."""
        if not seconds:
            return
        left = (self.deadline - clock()) / seconds
        if trainer.epochs - trainer.steps_done / trainer.batches.steps > max(left, 0.0):
            raise _TooLong(max(int(_OF_TIME * left), 0), trainer.epochs)


class EpochBudget:
    """How many epochs of an encoder there is time for.

    Attributes:
        epochs: None: as many as the number of rows asks for.
        of: how many these were, where `epochs` are fewer.
    """

    def __init__(self, folder: Path | None = None) -> None:
        """folder: a checkpoint's, which tells a resumed run. Raises RunError where it cannot."""
        self.epochs: int | None = None
        self.of: int | None = None
        self._file = None if folder is None else folder / "epochs.json"
        self._decided = self._file is not None and self._file.exists()
        if self._file is not None and self._decided:
            try:
                known = json.loads(self._file.read_text(encoding="utf-8"))
                self.epochs, self.of = known["epochs"], known["of"]
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise RunError(
                    f"{self._file}: cannot be read ({error}); expected what a run that was stopped "
                    "has written: start again with --force"
                ) from None

    def config(self, config: Config) -> Config:
        """The configuration with these epochs."""
        return config if self.epochs is None else replace(config, epochs=self.epochs)

    def train(
        self,
        fit: Callable[[Config, Sequence[Callback]], Trained],
        config: Config,
        deadline: float,
    ) -> Trained:
        """What `fit` returns of a configuration and callbacks, with fewer epochs where all would
        end after the deadline of `clock`. The first training that ends before it decides on the
        number for all. Raises OutOfTime where there is no time for one epoch."""
        while not self._decided:
            try:
                return fit(self.config(config), [_Timer(deadline, self._decide)])
            except _TooLong as found:
                if not found.epochs:
                    raise OutOfTime from None
                self.epochs, self.of = found.epochs, self.of or found.of
        return fit(self.config(config), ())

    def _decide(self) -> None:
        self._decided = True
        if self._file is not None:
            write_json(self._file, {"epochs": self.epochs, "of": self.of})
