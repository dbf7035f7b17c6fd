"""Distributed runs: the first process makes the run folder, the others help to train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.data.lines import STDIN
from superconext.runs.splits import TrainRequest, read_splits
from superconext.training.distributed import LeftToMain, World, current_world, joined


def distributed(run: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """What `run`, which makes a run folder, returns; None in every process but the first.

    Without torchrun there is one process, and this is `run()`. Raises ProcessLost where another
    process ends before its time.
    """
    with joined() as world:
        if world.main:
            return run()
        _help(world)
        return None


def call_helpers(request: TrainRequest, checkpoint: Path) -> None:
    """Tell the other processes what the first is about to train; there may be none.

    Raises ConfigError where they cannot read what it has read.
    """
    world = current_world()
    if world.size == 1:
        return
    if STDIN in (request.train, request.dev, request.test):
        raise ConfigError(
            f"{STDIN} names the standard input, which {world.size} processes cannot all read; "
            "expected files: write it to one first"
        )
    world.broadcast({"request": asdict(request), "checkpoint": str(checkpoint.absolute())})


def _help(world: World) -> None:
    from superconext.fitting.fit import fit_model

    told: dict[str, Any] = world.broadcast({})
    request = TrainRequest(**told["request"])
    config = resolve(request.given, "train")
    silent = _Silent()
    splits = read_splits(request, config, silent)
    try:
        fit_model(
            splits.train,
            config,
            splits.dev,
            test_texts=splits.test.texts if splits.test else (),
            progress=silent,
            checkpoint=Path(told["checkpoint"]),
        )
    except LeftToMain:
        return


class _Silent(Progress):
    """The first process has said it all."""

    def warn(self, line: str) -> None:
        pass
