"""Training as curves in TensorBoard; needs the extra of that name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from superconext.core.errors import MissingExtraError
from superconext.training.callbacks import Callback, Record, Training


class TensorBoard(Callback):
    """Writes the loss of every batch and every number of every epoch's record.

    Args:
        folder: made when missing; each training (each member, each fit) gets a folder of
            its own in it, `training-1`, `training-2` and so on.

    Raises MissingExtraError where the package tensorboard is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        _writer_class()
        self.folder = Path(folder)
        self._writer: Any = None

    def on_train_begin(self, trainer: Training) -> None:
        self._close()
        self._writer = _writer_class()(log_dir=str(self._new_folder()))

    def on_step_end(self, trainer: Training, step: int, loss: float) -> None:
        if self._writer is not None:
            done = trainer.epoch * trainer.batches.steps + step
            self._writer.add_scalar("step/loss", loss, done)

    def on_epoch_end(self, trainer: Training, record: Record) -> None:
        if self._writer is None:
            return
        for name, value in record.items():
            if name != "epoch" and isinstance(value, (int, float)):
                self._writer.add_scalar(f"epoch/{name}", value, record["epoch"])
        self._writer.flush()

    def on_train_end(self, trainer: Training) -> None:
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
