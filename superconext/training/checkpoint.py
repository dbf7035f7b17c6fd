"""The state of training on disk, and going on from it.

One checkpoint holds everything an epoch boundary needs: weights, Adam's moments, the
random state and the history. The samplers are functions of (seed, epoch), so they need
none. Tensors go to safetensors, the rest to JSON in its header. The last two are kept.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

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
from superconext.training.callbacks import Callback, Record, Training, WeightKeeper

#: Checkpoints that are kept of each training: a damaged one has the one before to fall back to.
KEPT = 2


class Checkpointer(Callback):
    """Saves one member's training after every epoch and restores it.

    Args:
        folder: made when missing.
        member: number of the member, from 0.
        stage: name of a later stage of its training; none for the first.
        progress: told of a checkpoint that is damaged.
    """

    def __init__(
        self, folder: Path, member: int, stage: str = "", progress: Progress | None = None
    ) -> None:
        self.folder = folder
        self.name = f"member-{member}-{stage}" if stage else f"member-{member}"
        self.progress = progress or Progress()

    def path(self, epoch: int) -> Path:
        """The checkpoint after so many epochs."""
        return self.folder / f"{self.name}-epoch-{epoch}.safetensors"

    def saved(self) -> dict[int, Path]:
        """The checkpoints that are there, by the epochs done; the last one first."""
        pattern = re.compile(re.escape(self.name) + r"-epoch-(\d+)\.safetensors")
        names = [path.name for path in self.folder.iterdir()] if self.folder.is_dir() else []
        epochs = [int(match[1]) for name in names if (match := pattern.fullmatch(name))]
        return {epoch: self.path(epoch) for epoch in sorted(epochs, reverse=True)}

    def on_epoch_end(self, trainer: Training, record: Record) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"weights.{name}": value for name, value in trainer.weights().items()}
        moments = optimizer_tensors(trainer.optimizer)
        tensors |= {f"adam.{name}": value for name, value in moments.items()}
        keeper = _keeper(trainer)
        if keeper and keeper.weights:
            tensors |= {f"kept.{name}": value for name, value in keeper.weights.items()}
        tensors["random_state"] = torch.get_rng_state()
        facts = {
            "epoch": trainer.epoch,
            "history": trainer.history,
            "kept": keeper.value if keeper and keeper.weights else None,
        }
        write_state(self.path(trainer.epoch), facts, tensors)
        for epoch, path in self.saved().items():
            if not trainer.epoch - KEPT < epoch <= trainer.epoch:
                path.unlink()

    def restore(self, trainer: Training) -> bool:
        """Put the last whole state back, and say so if it is not the last; False if there is none.

        Raises RunError when all that is there is damaged, or the state of another training.
        """
        damaged: list[str] = []
        for epoch, path in self.saved().items():
            try:
                facts, tensors = read_state(path)
            except DAMAGE as error:
                damaged.append(f"{path}: the checkpoint cannot be used ({error})")
                continue
            if damaged:
                what = "; ".join(damaged)
                self.progress.warn(f"{what}; going on from the one before, after epoch {epoch}")
            try:
                self._put_back(trainer, facts, tensors)
            except DAMAGE as error:
                raise _refused(f"{path}: the checkpoint cannot be used ({error})") from None
            return True
        if damaged:
            raise _refused("; ".join(damaged))
        return False

    def _put_back(
        self, trainer: Training, facts: dict[str, Any], tensors: dict[str, Tensor]
    ) -> None:
        trainer.load_weights(part(tensors, "weights."))
        load_optimizer(trainer.optimizer, part(tensors, "adam."))
        trainer.history, trainer.epoch = facts["history"], facts["epoch"]
        keeper = _keeper(trainer)
        if keeper and facts["kept"] is not None:
            keeper.value, keeper.weights = facts["kept"], part(tensors, "kept.")
        torch.set_rng_state(tensors["random_state"])


def _refused(found: str) -> RunError:
    return RunError(f"{found}; expected the state of this very training: start anew with --force")


def _keeper(trainer: Training) -> WeightKeeper | None:
    return next((c for c in trainer.callbacks if isinstance(c, WeightKeeper)), None)
