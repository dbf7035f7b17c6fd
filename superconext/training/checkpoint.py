"""The state of training on disk, and going on from it.

One checkpoint holds everything an epoch boundary needs: weights, Adam's moments, the
random state and the history. The samplers are functions of (seed, epoch), so they need
none. Tensors go to safetensors, the rest to JSON.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from superconext.errors import RunError
from superconext.files import beside
from superconext.training.callbacks import Callback, Record, WeightKeeper

if TYPE_CHECKING:
    from superconext.training.trainer import Trainer


class Checkpointer(Callback):
    """Saves one member's training after every epoch and restores it.

    Args:
        folder: made when missing.
        member: number of the member, from 0.
        stage: name of a later stage of its training; none for the first.
    """

    def __init__(self, folder: Path, member: int, stage: str = "") -> None:
        name = f"member-{member}-{stage}" if stage else f"member-{member}"
        self.path = folder / f"{name}.safetensors"

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        from safetensors.torch import save_file

        self.path.parent.mkdir(parents=True, exist_ok=True)
        tensors = {f"weights.{name}": value for name, value in trainer.weights().items()}
        for index, moments in trainer.optimizer.state_dict()["state"].items():
            for name, value in moments.items():
                tensors[f"adam.{index}.{name}"] = torch.as_tensor(value)
        keeper = _keeper(trainer)
        if keeper and keeper.weights:
            tensors |= {f"kept.{name}": value for name, value in keeper.weights.items()}
        tensors["random_state"] = torch.get_rng_state()
        contiguous = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        facts = {
            "epoch": trainer.epoch,
            "history": trainer.history,
            "kept": keeper.value if keeper and keeper.weights else None,
        }
        # One file, so that a stop between two writes cannot part tensors and facts.
        with beside(self.path) as temporary:
            save_file(contiguous, temporary, {"facts": json.dumps(facts)})

    def restore(self, trainer: Trainer) -> bool:
        """Put the saved state back; False if there is none.

        Raises RunError when the file is damaged or of another training.
        """
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return False
        try:
            with safe_open(self.path, framework="pt") as saved:
                facts: dict[str, Any] = json.loads(saved.metadata()["facts"])
                tensors: dict[str, Tensor] = {n: saved.get_tensor(n) for n in saved.keys()}  # noqa: SIM118
            trainer.load_weights(_part(tensors, "weights."))
            state = trainer.optimizer.state_dict()
            state["state"] = _moments(_part(tensors, "adam."))
            trainer.optimizer.load_state_dict(state)
            trainer.history, trainer.epoch = facts["history"], facts["epoch"]
            keeper = _keeper(trainer)
            if keeper and facts["kept"] is not None:
                keeper.value, keeper.weights = facts["kept"], _part(tensors, "kept.")
            torch.set_rng_state(tensors["random_state"])
        except (OSError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise RunError(
                f"{self.path}: the checkpoint cannot be used ({error}); expected the "
                "state of this very training: start anew with --force"
            ) from None
        return True


def _keeper(trainer: Trainer) -> WeightKeeper | None:
    return next((c for c in trainer.callbacks if isinstance(c, WeightKeeper)), None)


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name[len(prefix) :]: t for name, t in tensors.items() if name.startswith(prefix)}


def _moments(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, key = name.split(".", 1)
        moments.setdefault(int(index), {})[key] = value
    return moments
