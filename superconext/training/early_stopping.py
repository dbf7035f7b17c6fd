"""When is training long enough? When the figure that is watched stops getting better."""

from __future__ import annotations

import math

from superconext.core.errors import ConfigError
from superconext.training.callbacks import Callback, Record, Training


class EarlyStopping(Callback):
    """Ends training once `patience` epochs in a row brought nothing better.

    Which weights training then ends with is for the parameter `keep` to say: "best" suits
    (with "average", the mean is over those of the last 40% of `epochs` that were run).

    Args:
        patience: epochs without a gain before training ends.
        monitor: key of the epoch's record, such as "dev_score" (there where rows are held
            back) or "loss".
        mode: "max" where more is better, "min" where less is.
        min_delta: how much better counts as better.

    Attributes:
        best: the best value so far, of the member being trained.
        waited: epochs since then.
        stopped_epoch: the epoch (from 1) after which training ended, None if it was not
            stopped.
    """

    def __init__(
        self,
        patience: int = 3,
        monitor: str = "dev_score",
        mode: str = "max",
        min_delta: float = 0.0,
    ) -> None:
        if patience < 1 or mode not in ("max", "min") or not min_delta >= 0:
            raise ConfigError(
                f"early stopping: found patience={patience!r}, mode={mode!r}, "
                f"min_delta={min_delta!r}; expected a patience of at least 1, mode 'max' or "
                "'min' and a min_delta of at least 0: change it"
            )
        self.patience, self.monitor, self.mode = patience, monitor, mode
        self.min_delta = min_delta
        self._forget()

    def _forget(self) -> None:
        self.best = -math.inf if self.mode == "max" else math.inf
        self.waited = 0
        self.stopped_epoch: int | None = None

    def on_train_begin(self, trainer: Training) -> None:
        # A callback serves many trainings: members, repeated fits. A resumed one goes on
        # from what its history tells.
        self._forget()
        for record in trainer.history:
            self._watch(trainer, record)

    def on_epoch_end(self, trainer: Training, record: Record) -> None:
        self._watch(trainer, record)

    def _watch(self, trainer: Training, record: Record) -> None:
        if self.monitor not in record:
            raise ConfigError(
                f"early stopping watches {self.monitor!r}, which the epochs do not record; "
                f"expected one of {', '.join(record)}: watch one of them (dev_score is there "
                "where there are enough rows to hold some back)"
            )
        value = record[self.monitor]
        gain = value - self.best if self.mode == "max" else self.best - value
        if gain > self.min_delta:
            self.best, self.waited = value, 0
            return
        self.waited += 1
        if self.waited >= self.patience:
            self.stopped_epoch = record["epoch"]
            trainer.stop = True
