"""Hooks into training. Progress, the dev probe, keep-best and logging all stand on these."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from superconext.training.trainer import Trainer

Record = dict[str, Any]


class Callback:
    """Every hook does nothing here; override the ones you need.

    To end training after the current epoch, set `trainer.stop = True` in any hook.
    """

    def on_train_begin(self, trainer: Trainer) -> None:
        """Before the first epoch, also of a resumed run."""

    def on_epoch_begin(self, trainer: Trainer, epoch: int) -> None:
        """Before the first batch of an epoch (counted from 0)."""

    def on_step_end(self, trainer: Trainer, step: int, loss: float) -> None:
        """After each weight update."""

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        """After an epoch. `record` is its history row and may be added to."""

    def on_train_end(self, trainer: Trainer) -> None:
        """After the last epoch, also when stopped early."""


class DevProbe(Callback):
    """Adds `dev_score` to each epoch's record.

    Args:
        score: called with the trainer, returns the score of a probe on frozen features.
    """

    def __init__(self, score: Callable[[Trainer], float]) -> None:
        self.score = score

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        record["dev_score"] = self.score(trainer)


class KeepBest(Callback):
    """Ends with the weights of the epoch that has the highest `dev_score` (first on ties)."""

    def __init__(self) -> None:
        self.best = float("-inf")
        self.weights: dict[str, Tensor] | None = None

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        if record.get("dev_score", float("-inf")) > self.best:
            self.best = record["dev_score"]
            self.weights = {k: v.detach().clone() for k, v in trainer.weights().items()}

    def on_train_end(self, trainer: Trainer) -> None:
        if self.weights is not None:
            trainer.load_weights(self.weights)
