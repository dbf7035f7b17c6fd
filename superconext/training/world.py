"""Who trains: this process alone, or several that share each batch.

Training asks the world for what it cannot know by itself and need not know how many answer.
`distributed.py` has the world of several processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn

from superconext.encoders.base import EncoderOutput

T = TypeVar("T")


class LeftToMain(Exception):
    """Training is done, and what is left is the first process's work alone."""


class World:
    """The processes of a training: here only this one.

    rank: number of this process, from 0. size: how many there are.
    """

    rank, size = 0, 1

    @property
    def main(self) -> bool:
        """Whether this is the process that writes, probes and prints."""
        return self.rank == 0

    def tell(self, value: T) -> T:
        """The first process's value, which JSON can hold, in every process."""
        return value

    def begin(self, weights: Sequence[Tensor], about: dict[str, Any]) -> None:
        """Start all processes from the first one's weights.

        Raises TrainingError where what `about` says of the data differs.
        """

    def begin_step(self, *numbers: int) -> None:
        """Make every random draw of a step a function of these numbers and the process."""

    def encode(
        self, encode: Callable[[np.ndarray], EncoderOutput], rows: np.ndarray, lengths: np.ndarray
    ) -> EncoderOutput:
        """Rows `[N]` of the given lengths encoded, by all processes together."""
        return encode(rows)

    def sum_gradients(self, own: Sequence[nn.Parameter], common: Sequence[nn.Parameter]) -> None:
        """Make each process's gradients those of the whole batch.

        own: weights whose gradient is of this process's share of the rows; common: those whose
        gradient every process has in full.
        """


_world: ContextVar[World] = ContextVar("world", default=World())  # noqa: B039


def current_world() -> World:
    """The processes that train together: this one alone outside `joined`."""
    return _world.get()


def leave_to_main() -> None:
    """End here in every process but the first. Raises LeftToMain there."""
    if not current_world().main:
        raise LeftToMain


@contextmanager
def within(world: World) -> Iterator[World]:
    """Make it the current world inside."""
    token = _world.set(world)
    try:
        yield world
    finally:
        _world.reset(token)
