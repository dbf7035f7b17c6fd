"""Checkpoints: the state of a training on disk, from which it resumes.

A checkpoint holds the weights that training changes, Adam's moments, the random state, the
history and what the running epoch has given so far. The samplers are functions of (seed, epoch),
so they need no state. Tensors go to safetensors, the rest to JSON in its header. The last two
checkpoints are kept.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from time import monotonic, perf_counter, process_time
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from superconext.core.errors import RunError
from superconext.core.progress import Progress
from superconext.core.state_file import (
    DAMAGE,
    load_optimizer,
    optimizer_tensors,
    part,
    read_state,
    write_state,
)
from superconext.training.callbacks import Callback, EpochSoFar, Record, WeightKeeper

if TYPE_CHECKING:
    from superconext.training.trainer import Trainer

#: Checkpoints that are kept of each training: a damaged one has the one before to fall back to.
KEPT = 2

#: What epochs that follow one another write, at most, in bytes a second; a stop then costs a few
#: seconds more. Checkpoints below `SMALL` bytes do not count.
RATE, SMALL = 2**24, 2**20


class Checkpointer(Callback):
    """Saves one member's training after an epoch and restores it.

    Args:
        folder: made when missing.
        member: number of the member, from 0.
        stage: name of a later stage of its training; none for the first.
        progress: reports a checkpoint that is damaged.
        every: batches, counted over all epochs, after which it also saves within an epoch;
            None: at the end of epochs alone. Not for objectives with a pool, whose memory
            is of the epoch's beginning.
    """

    def __init__(
        self,
        folder: Path,
        member: int,
        stage: str = "",
        progress: Progress | None = None,
        every: int | None = None,
    ) -> None:
        self.folder, self.every = folder, every
        self.unit = "step" if every else "epoch"
        self.name = f"member-{member}-{stage}" if stage else f"member-{member}"
        self.progress = progress or Progress()
        self._next = 0.0  # when the disk is free for another, by the monotonic clock
        self._began = _now()
        #: Seconds that stopped processes took up to the state restored: on the wall, of processors.
        self.before = (0.0, 0.0)

    def path(self, number: int) -> Path:
        """The checkpoint after so many epochs, or with `every` after so many batches."""
        return self.folder / f"{self.name}-{self.unit}-{number}.safetensors"

    def saved(self) -> dict[int, Path]:
        """The checkpoints that are there, by their numbers; the last one first."""
        pattern = re.compile(re.escape(f"{self.name}-{self.unit}-") + r"(\d+)\.safetensors")
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        numbers = [int(match[1]) for name in names if (match := pattern.fullmatch(name))]
        return {number: self.path(number) for number in sorted(numbers, reverse=True)}

    def on_step_end(self, trainer: Trainer, step: int, loss: float) -> None:
        due = self.every is not None and trainer.steps_done % self.every == 0
        if due and trainer.so_far.step < trainer.batches.steps:
            self.save(trainer)

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        last = trainer.stop or trainer.epoch == trainer.epochs
        if last or monotonic() >= self._next:
            self.save(trainer)

    def save(self, trainer: Trainer) -> None:
        """Write the state, and remove all but the last `KEPT`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        trainer.optimizer.catch_up()
        tensors = {f"weights.{name}": value for name, value in trainer.weights().items()}
        moments = optimizer_tensors(trainer.optimizer)
        tensors |= {f"adam.{name}": value for name, value in moments.items()}
        keeper = _keeper(trainer)
        if keeper and keeper.weights:
            tensors |= {f"kept.{name}": value for name, value in keeper.weights.items()}
        tensors["random_state"] = torch.get_rng_state()
        facts = {
            "epoch": trainer.epoch,
            "so_far": asdict(trainer.so_far),
            "history": trainer.history,
            "kept": keeper.value if keeper and keeper.weights else None,
            "seconds": [
                before + now - began
                for before, now, began in zip(self.before, _now(), self._began, strict=True)
            ],
        }
        number = trainer.steps_done if self.every else trainer.epoch
        write_state(self.path(number), facts, tensors)
        written = self.path(number).stat().st_size
        self._next = monotonic() + written / RATE * (written >= SMALL)
        saved = self.saved()
        kept = [other for other in saved if other <= number][:KEPT]
        for other, path in saved.items():
            if other not in kept:
                path.unlink()

    def restore(self, trainer: Trainer) -> bool:
        """Put the last whole state back, and say so if it is not the last; False if there is none.

        Raises RunError when all that is there is damaged, or the state of another training.
        """
        damaged: list[str] = []
        for number, path in self.saved().items():
            try:
                facts, tensors = read_state(path)
            except DAMAGE as error:
                damaged.append(f"{path}: the checkpoint cannot be used ({error})")
                continue
            if damaged:
                what, after = "; ".join(damaged), f"{self.unit} {number}"
                self.progress.warn(f"{what}; resuming from the one before, after {after}")
            try:
                self._put_back(trainer, facts, tensors)
            except DAMAGE as error:
                raise _refused(f"{path}: the checkpoint cannot be used ({error})") from None
            return True
        if damaged:
            raise _refused("; ".join(damaged))
        return False

    def _put_back(
        self, trainer: Trainer, facts: dict[str, Any], tensors: dict[str, Tensor]
    ) -> None:
        trainer.load_weights(part(tensors, "weights."))
        load_optimizer(trainer.optimizer, part(tensors, "adam."))
        so_far = EpochSoFar(**facts["so_far"])
        trainer.history, trainer.epoch, trainer.so_far = facts["history"], facts["epoch"], so_far
        keeper = _keeper(trainer)
        if keeper and facts["kept"] is not None:
            keeper.value, keeper.weights = facts["kept"], part(tensors, "kept.")
        torch.set_rng_state(tensors["random_state"])
        wall, cpu = facts.get("seconds", self.before)  # earlier versions did not keep them
        self.before = float(wall), float(cpu)


def _now() -> tuple[float, float]:
    return perf_counter(), process_time()


def _refused(problem: str) -> RunError:
    return RunError(
        f"{problem}; expected the state of this very training: start again with --force"
    )


def _keeper(trainer: Trainer) -> WeightKeeper | None:
    return next((c for c in trainer.callbacks if isinstance(c, WeightKeeper)), None)
