"""Hooks into training. Progress, the dev probe, kept weights and logging all stand on these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from superconext.config.parameters import Config
    from superconext.data.sampler import Batches
    from superconext.encoders.base import Encoder
    from superconext.objectives.base import Objective
    from superconext.training.optimizer import RowAdam

Record = dict[str, Any]


@dataclass
class EpochSoFar:
    """What an epoch has given until now; a training stopped within an epoch goes on from it.

    step: batches done. sums, counts: of each named scalar, over these batches.
    seconds: time they took.
    """

    step: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def add(self, scalars: Mapping[str, float]) -> None:
        """Count in what a batch has given."""
        for name, value in scalars.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
            self.counts[name] = self.counts.get(name, 0) + 1
        self.step += 1

    def means(self) -> dict[str, float]:
        """Mean of each scalar."""
        return {name: total / self.counts[name] for name, total in self.sums.items()}


class Training(Protocol):
    """What a hook may use of the `Trainer` it is called by.

    epoch: the one that runs, or is to run next, counted from 0; epochs: how many there are.
    so_far: what the running epoch has given until now.
    steps_done: batches that are done, of all epochs.
    history: the records of the finished epochs.
    stop: set to True to end after the current epoch.
    """

    encoder: Encoder
    objective: Objective
    batches: Batches
    config: Config
    optimizer: RowAdam
    callbacks: list[Callback]
    epoch: int
    epochs: int
    so_far: EpochSoFar
    history: list[Record]
    stop: bool

    @property
    def steps_done(self) -> int: ...

    def weights(self) -> dict[str, Tensor]:
        """The weights that training changes, by name."""

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Put back what `weights` gave."""


class Callback:
    """Every hook does nothing here; override the ones you need.

    To end training after the current epoch, set `trainer.stop = True` in any hook.

    every_process: where several processes train together, whether it works in each of them,
        as one that changes weights must, and not in the first alone.
    """

    every_process = False

    def on_train_begin(self, trainer: Training) -> None:
        """Before the first epoch, also of a resumed run."""

    def on_epoch_begin(self, trainer: Training, epoch: int) -> None:
        """Before the first batch of an epoch (counted from 0)."""

    def on_step_begin(self, trainer: Training, step: int) -> None:
        """Before each batch of an epoch (counted from 0)."""

    def on_step_end(self, trainer: Training, step: int, loss: float) -> None:
        """After each weight update."""

    def on_epoch_end(self, trainer: Training, record: Record) -> None:
        """After an epoch. `record` is its history row and may be added to."""

    def on_train_end(self, trainer: Training) -> None:
        """After the last epoch, also when stopped early."""


class DevProbe(Callback):
    """Adds `dev_score` to each epoch's record.

    Args:
        score: called with the trainer, returns the score of a probe on frozen features.
    """

    def __init__(self, score: Callable[[Training], float]) -> None:
        self.score = score

    def on_epoch_end(self, trainer: Training, record: Record) -> None:
        record["dev_score"] = self.score(trainer)


class WeightKeeper(Callback):
    """Ends training with other weights than the last ones.

    weights: what is kept so far, or None. value: a number that goes with it. Both are part
    of a checkpoint.
    """

    every_process = True

    def __init__(self, value: float) -> None:
        self.value = value
        self.weights: dict[str, Tensor] | None = None

    def on_train_end(self, trainer: Training) -> None:
        if self.weights is not None:
            trainer.load_weights(self.weights)


class KeepBest(WeightKeeper):
    """Keeps the epoch with the highest `dev_score` (the first on ties), which is `value`."""

    def __init__(self) -> None:
        super().__init__(float("-inf"))

    def on_epoch_end(self, trainer: Training, record: Record) -> None:
        if record.get("dev_score", float("-inf")) > self.value:
            self.value = record["dev_score"]
            self.weights = {k: v.detach().clone() for k, v in trainer.weights().items()}


class KeepAverage(WeightKeeper):
    """Keeps the mean of the weights after each of the last epochs; `value` counts them.

    Late epochs wander around a flat optimum, and their mean lies nearer its middle.

    Args:
        share: of the epochs that are averaged.

    Source: Izmailov et al. (2018), "Averaging weights leads to wider optima and better
    generalization"; here without its cyclical learning rate.
    """

    def __init__(self, share: float = 0.4) -> None:
        super().__init__(0.0)
        self.share = share

    def on_epoch_end(self, trainer: Training, record: Record) -> None:
        if record["epoch"] <= trainer.epochs * (1 - self.share):
            return
        self.value += 1
        current = trainer.weights()
        if self.weights is None:
            self.weights = {k: v.detach().clone() for k, v in current.items()}
            return
        for name, mean in self.weights.items():
            mean += (current[name] - mean) / self.value


#: What `keep` may be.
KEEPERS: dict[str, Callable[[], WeightKeeper] | None] = {
    "average": KeepAverage,
    "best": KeepBest,
    "last": None,
}
