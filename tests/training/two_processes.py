"""What each of two processes does in test_distributed: `python -m tests.training.two_processes`."""

import os
import signal
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from superconext.encoders import words as embedding
from superconext.training import optimizer
from superconext.training.callbacks import Callback, KeepAverage
from superconext.training.distributed import current_world, joined
from tests.training.small_trainers import make_trainer, without_chance

#: Trainings by name: an objective and its parameters.
PLANS = {
    "superloss": ("superloss", {}),
    "chunked": ("superloss", {"options": "mining=topk,mining_threshold=3,mining_warmup=0"}),
    "supcon": ("supcon", {"mini_batch_size": 5}),
    "cross_entropy": ("cross_entropy", {}),
    "two views": ("ce_cl", {}),
    "class tokens": ("dualcl", {}),
    "token states": ("leam", {"options": "dropout=0"}),
    "pool": ("css_lm", {"options": "warmup=0"}),
    "sparse": ("superloss", {}),
    "a row too few": ("cross_entropy", {}),
}


class Meddler(Callback):
    """Ends training from within the first process, and shows what ran where."""

    def on_epoch_end(self, trainer, record):
        record["rank"] = current_world().rank
        trainer.stop = record["epoch"] == 2


def trained(name, dropout=False):
    """Weights after two of nine epochs, the mean of both."""
    objective, parameters = PLANS[name]
    embedding.SPARSE_FROM = 10 if name == "sparse" else 20_000
    optimizer.LAZY_FROM = 0
    trainer = make_trainer(objective, epochs=9, **parameters)
    if name == "chunked":
        sys.modules[type(trainer.objective).__module__].CHUNKED_FROM = 10
    if name == "a row too few":
        trainer.batches.batch_size, trainer.batches.steps_per_pass = 59, 2
    trainer.callbacks += [KeepAverage(1.0), Meddler()]
    if not dropout:
        without_chance(trainer)
    history = trainer.fit()
    assert [record["rank"] for record in history] == [0, 0]
    return {key: value.clone() for key, value in trainer.weights().items()}


def main():
    task, out = sys.argv[1:]
    torch.set_num_threads(1)
    with joined() as world:
        if task == "die":
            if world.rank == 1:
                PLANS["superloss"][1]["steps_per_epoch"] = 2
                trainer = make_trainer("superloss", epochs=9)
                trainer.callbacks.append(Killed())
                trainer.fit()
            make_trainer("superloss", epochs=9).fit()
        if world.rank == 1:  # it is to get the first process's weights
            torch.rand(7)
        found = {}
        for name in PLANS:
            found |= {f"{name}/{key}": value for key, value in trained(name).items()}
        for turn in ("first", "second"):
            again = trained("two views", dropout=True)
            found |= {f"{turn} turn/{key}": value for key, value in again.items()}
        save_file(found, Path(out) / f"{world.rank}.safetensors")


class Killed(Callback):
    """A process that the system ends."""

    every_process = True

    def on_epoch_end(self, trainer, record):
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
