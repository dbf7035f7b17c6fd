"""Callbacks: hooks into training, and those that the package comes with.

Dev scores, the weights that training ends with, early stopping, progress and the curves of
TensorBoard are callbacks; one of your own extends `Callback`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superconext.core.errors import ConfigError, MissingExtraError
from superconext.core.progress import Advance, Progress

if TYPE_CHECKING:
    from torch import Tensor

    from superconext.training.trainer import Trainer

Record = dict[str, Any]


@dataclass
class EpochSoFar:
    """What an epoch has given until now; a training stopped within an epoch resumes from it.

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


class Callback:
    """Every hook does nothing here; override the ones you need.

    To end training after the current epoch, set `trainer.stop = True` in any hook. To change a
    learning rate, set `full_lr` of a group in `trainer.optimizer.param_groups`, of which each step
    takes the share of its schedule; `lr` is set anew.

    Example:
        >>> class Loud(Callback):
        ...     def on_epoch_end(self, trainer, record):
        ...         print(record["epoch"], sorted(record))
        >>> callbacks = [Loud(), EarlyStopping(patience=2)]  # SuperConTextClassifier(callbacks=...)

    every_process: where several processes train together, whether it works in each of them,
        as one that changes weights must, and not in the first alone.
    """

    every_process = False

    def on_train_begin(self, trainer: Trainer) -> None:
        """Before the first epoch, also of a resumed run."""

    def on_epoch_begin(self, trainer: Trainer, epoch: int) -> None:
        """Before the first batch of an epoch (counted from 0)."""

    def on_step_begin(self, trainer: Trainer, step: int) -> None:
        """Before each batch of an epoch (counted from 0)."""

    def on_step_end(self, trainer: Trainer, step: int, loss: float) -> None:
        """After each weight update."""

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        """After an epoch. `record` is its history row and may be added to."""

    def on_train_end(self, trainer: Trainer) -> None:
        """After the last epoch, also when stopped early."""


class StepCount(Callback):
    """Counts the weight updates of all trainings of a fit, in `steps`."""

    steps = 0

    def on_train_end(self, trainer: Trainer) -> None:
        self.steps += trainer.steps_done


class DevProbe(Callback):
    """Adds `dev_score` to each epoch's record: the score of a probe on frozen features."""

    def __init__(self, score: Callable[[Trainer], float]) -> None:
        self.score = score

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
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

    def on_train_end(self, trainer: Trainer) -> None:
        if self.weights is not None:
            trainer.load_weights(self.weights)


class KeepBest(WeightKeeper):
    """Keeps the epoch with the highest `dev_score` (the first on ties), which is `value`."""

    def __init__(self) -> None:
        super().__init__(float("-inf"))

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
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

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        if record["epoch"] <= trainer.epochs * (1 - self.share):
            return
        self.value += 1
        current = trainer.weights()
        if self.weights is None:
            self.weights = {k: v.detach().clone() for k, v in current.items()}
            return
        for name, mean in self.weights.items():
            if mean.is_floating_point():
                mean += (current[name] - mean) / self.value
            else:  # such as a count of steps
                mean.copy_(current[name])


#: What `keep` may be.
KEEPERS: dict[str, Callable[[], WeightKeeper] | None] = {
    "average": KeepAverage,
    "best": KeepBest,
    "last": None,
}


class EarlyStopping(Callback):
    """Ends training after `patience` epochs in a row without an improvement.

    The parameter `keep` decides the final weights: "best" suits (with "average" it is the mean
    over those of the last 40% of `epochs` that were run).

    >>> from superconext import SuperConTextClassifier
    >>> stop = EarlyStopping(patience=2, monitor="loss", mode="min", min_delta=0.01)
    >>> model = SuperConTextClassifier(epochs=60, hidden_size=8, batch_size=8, callbacks=[stop])
    >>> texts = ["zwin bzaf", "khayb bzaf", "film zwin", "film khayb"]
    >>> len(model.fit(texts, ["good", "bad"] * 2).history_) < 60
    True

    Args:
        patience: epochs without a gain before training ends.
        monitor: key of the epoch's record, such as "loss" or "dev_score" (only if rows are held
            out).
        mode: "max" if more is better, "min" if less is.
        min_delta: smallest change that counts as an improvement.

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

    def on_train_begin(self, trainer: Trainer) -> None:
        # A callback serves many trainings: members, repeated fits. A resumed one goes on
        # from its history.
        self._forget()
        for record in trainer.history:
            self.on_epoch_end(trainer, record)

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        if self.monitor not in record:
            raise ConfigError(
                f"early stopping watches {self.monitor!r}, which the epochs do not record; "
                f"expected one of {', '.join(record)}: watch one of them (dev_score needs "
                "enough rows to hold some out)"
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


class StepBar(Callback):
    """Moves a progress bar, called with the share done from 0 to 1, with every batch."""

    def __init__(self, advance: Advance) -> None:
        self.advance = advance

    def on_step_end(self, trainer: Trainer, step: int, loss: float) -> None:
        self.advance(trainer.steps_done / (trainer.epochs * trainer.batches.steps))


#: Heading, history key and format of the columns of the epoch lines.
_COLUMNS = (
    ("epoch", "epoch", "5d"),
    ("loss", "loss", "7.4f"),
    ("pos sim", "positive_similarity", "7.3f"),
    ("neg sim", "negative_similarity", "7.3f"),
    ("neg kept", "kept", "8.1%"),
    ("dev acc", "dev_score", "7.3f"),
    ("seconds", "seconds", "7.1f"),
)
#: Columns in front of what an objective reports by other names, and how many of these are shown.
_IN_FRONT, _MOST_OWN = 2, 3


class EpochLines(Callback):
    """Reports an aligned line for each epoch, of the columns that the first one has; where the
    objective reports none of the similarities, its own numbers take their place."""

    def __init__(self, progress: Progress, member: int = 0, members: int = 1) -> None:
        self.progress = progress
        self.title = f"member {member + 1} of {members}" if members > 1 else ""
        self.columns: list[tuple[str, str, str]] = []
        self.mines: str | None = None

    def on_train_begin(self, trainer: Trainer) -> None:
        self.columns = []
        self.mines = getattr(getattr(trainer.objective, "miner", None), "mode", None)
        if self.title:
            self.progress.say(f"{self.title}: {trainer.config.objective}")

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        if not self.columns:
            self.columns = self._columns_of(record)
            self._say(heading for heading, _, _ in self.columns)
        self._say(
            format(record[key], layout).strip() if key in record else "-"
            for _, key, layout in self.columns
        )

    def on_train_end(self, trainer: Trainer) -> None:
        kept = [one for one in trainer.callbacks if isinstance(one, KeepAverage)]
        if kept and kept[0].value > 1 and any(key == "dev_score" for _, key, _ in self.columns):
            self.progress.say(
                f"the model has the mean weights of the last {kept[0].value:.0f} epochs; dev acc "
                "is that of each epoch by itself"
            )

    def _columns_of(self, record: Record) -> list[tuple[str, str, str]]:
        columns = [column for column in _COLUMNS if column[1] in record]
        if self.mines == "none":
            columns = [column for column in columns if column[1] != "kept"]
        known = {key for _, key, _ in _COLUMNS}
        if not {"positive_similarity", "negative_similarity"} & record.keys():
            own = [
                name
                for name, value in record.items()
                if name not in known and isinstance(value, (int, float))
            ]
            columns[_IN_FRONT:_IN_FRONT] = [
                (name.replace("_", " "), name, "7.4g") for name in own[:_MOST_OWN]
            ]
        return columns

    def _say(self, cells: Iterable[str]) -> None:
        widths = (max(len(heading), 7) for heading, _, _ in self.columns)
        self.progress.say("  ".join(f"{c:>{w}s}" for c, w in zip(cells, widths, strict=True)))


class TensorBoard(Callback):
    """Writes the loss of every batch and every number of every epoch's record for TensorBoard.

    Args:
        folder: made when missing; each training (each member, each fit) gets a folder of
            its own in it, `training-1`, `training-2` and so on.

    Raises MissingExtraError where the package tensorboard is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        _writer_class()
        self.folder = Path(folder)
        self._writer: Any = None

    def on_train_begin(self, trainer: Trainer) -> None:
        self._close()
        self._writer = _writer_class()(log_dir=str(self._new_folder()))

    def on_step_end(self, trainer: Trainer, step: int, loss: float) -> None:
        if self._writer is not None:
            done = trainer.epoch * trainer.batches.steps + step
            self._writer.add_scalar("step/loss", loss, done)

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        if self._writer is None:
            return
        for name, value in record.items():
            if name != "epoch" and isinstance(value, (int, float)):
                self._writer.add_scalar(f"epoch/{name}", value, record["epoch"])
        self._writer.flush()

    def on_train_end(self, trainer: Trainer) -> None:
        self._close()

    def _new_folder(self) -> Path:
        number = 1
        while True:
            path = self.folder / f"training-{number}"
            try:
                path.mkdir(parents=True)
                return path
            except FileExistsError:  # an earlier training's, or one beside this
                number += 1

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __getstate__(self) -> dict[str, Any]:
        # Open files stay where they are; a copy opens its own.
        return {**self.__dict__, "_writer": None}


def _writer_class() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("Writing for TensorBoard", "tensorboard") from None
    return SummaryWriter
