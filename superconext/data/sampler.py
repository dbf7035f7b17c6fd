"""Samplers of batches: class-balanced, or shuffled.

Both samplers are pure functions of (seed, epoch): asking for an epoch again gives the
same batches, so a resumed run needs no stored sampler state.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from superconext.core.errors import DataError
from superconext.core.random_streams import ALL_ROWS, CLASS_ORDER, CLASS_ROWS, random_stream

#: Balanced batches in an epoch at least. A class smaller than its share of a batch repeats
#: rows, so a few dozen rows would fill an epoch with one batch, and a run with too few updates.
FEWEST_BATCHES = 8


class Batches(Protocol):
    """Row numbers, batch by batch."""

    steps: int

    def epoch(self, number: int) -> Iterator[np.ndarray]:
        """The batches of an epoch (counted from 0), each int64 `[n]` of row numbers."""


class BalancedBatches:
    """Every batch holds the same number of rows of each of its classes.

    A class is read through shuffled passes: each of its rows once, then again in a new
    order. A class smaller than its share of a batch therefore repeats rows inside the
    batch; the losses are given row numbers and do not count a repeat as a positive.

    Rows per class and batch: `batch_size // classes`, at least 2, so the batch may hold
    a few rows less than `batch_size`. With more classes than half the batch has room
    for, each batch takes `batch_size // 2` classes in a rotating, shuffled order.

    An epoch has `steps_per_epoch` batches. Unset, it has as many as it takes to see
    every row of the largest class once, so each row is seen at least once an epoch, but
    not fewer than `fewest`.
    Where `steps_per_epoch` is too small for that, the passes continue from epoch to epoch
    and no row comes a second time before every row of its class came once.

    Args:
        labels: class indices `[N]`, from 0 without gaps.
        batch_size: rows in a batch, over all classes; at least 4.
        steps_per_epoch: batches in an epoch, or None.
        seed: of the shuffles.
        fewest: batches in an epoch at least, where `steps_per_epoch` is None.

    Raises:
        DataError: fewer than two classes.
    """

    def __init__(
        self,
        labels: np.ndarray,
        batch_size: int,
        steps_per_epoch: int | None = None,
        seed: int = 0,
        fewest: int = FEWEST_BATCHES,
    ) -> None:
        labels = np.asarray(labels)
        self.members = rows_by_class(labels)
        classes = len(self.members)
        if classes < 2 or any(len(rows) == 0 for rows in self.members):
            raise DataError(
                f"found rows of {sum(len(rows) > 0 for rows in self.members)} of {classes} "
                "classes; a balanced batch needs at least two classes, numbered without gaps"
            )
        self.classes_per_batch = min(classes, max(2, batch_size // 2))
        self.rows_per_class = max(2, batch_size // self.classes_per_batch)
        largest = max(len(rows) for rows in self.members)
        visits = -(-largest // self.rows_per_class)
        cover = -(-classes * visits // self.classes_per_batch)
        self.steps = steps_per_epoch or max(cover, fewest)
        self.seed = seed
        # Draws of each class before each epoch, so far as computed.
        self._starts = [np.zeros(classes, dtype=np.int64)]
        # The pass each class is in, so that a batch costs no shuffle of the whole class.
        self._orders: dict[int, tuple[int, np.ndarray]] = {}

    def epoch(self, number: int) -> Iterator[np.ndarray]:
        position = self._start(number).copy()
        for chosen in self._schedule(number):
            batch = []
            for k in chosen:
                batch.append(self._draw(int(k), int(position[k])))
                position[k] += self.rows_per_class
            yield np.concatenate(batch).astype(np.int64)

    def _schedule(self, number: int) -> np.ndarray:
        """Classes of each batch of an epoch, `[steps, classes_per_batch]`."""
        classes = len(self.members)
        slots = np.arange(self.steps * self.classes_per_batch) % classes
        if self.classes_per_batch == classes:
            return slots.reshape(self.steps, classes)
        order = random_stream(self.seed, CLASS_ORDER, number).permutation(classes)
        return order[slots].reshape(self.steps, self.classes_per_batch)

    def _start(self, number: int) -> np.ndarray:
        sizes = np.array([len(rows) for rows in self.members])
        while len(self._starts) <= number:
            epoch = len(self._starts) - 1
            visits = np.bincount(self._schedule(epoch).ravel(), minlength=len(sizes))
            draws = visits * self.rows_per_class
            # A class read through at least once starts the next epoch with a new pass.
            whole = -(-draws // sizes) * sizes
            self._starts.append(self._starts[-1] + np.where(draws >= sizes, whole, draws))
        return self._starts[number]

    def _draw(self, k: int, position: int) -> np.ndarray:
        rows, taken = self.members[k], []
        wanted = self.rows_per_class
        while wanted:
            pass_number, offset = divmod(position, len(rows))
            part = self._order(k, pass_number)[offset : offset + wanted]
            taken.append(rows[part])
            wanted -= len(part)
            position += len(part)
        return np.concatenate(taken)

    def _order(self, k: int, pass_number: int) -> np.ndarray:
        if self._orders.get(k, (-1,))[0] != pass_number:
            generator = random_stream(self.seed, CLASS_ROWS, k, pass_number)
            self._orders[k] = (pass_number, _permutation(generator, len(self.members[k])))
        return self._orders[k][1]


def rows_by_class(labels: np.ndarray) -> list[np.ndarray]:
    """The rows of each class in ascending order, in one pass however many classes there are.

    They are int32 where that is enough: of millions of rows they are a good part of the memory.
    """
    counts = np.bincount(labels)
    # Sorting numbers of 16 bits stably takes one count, not comparisons.
    kind = np.uint16 if len(counts) <= 1 << 16 else np.int64
    order = np.argsort(labels.astype(kind), kind="stable").astype(_numbers_up_to(len(labels)))
    return np.split(order, np.cumsum(counts)[:-1])


def _numbers_up_to(rows: int) -> type[np.signedinteger]:
    return np.int32 if rows <= np.iinfo(np.int32).max else np.int64


def _permutation(generator: np.random.Generator, rows: int) -> np.ndarray:
    """What `generator.permutation(rows)` gives, in numbers no wider than need be."""
    order = np.arange(rows, dtype=_numbers_up_to(rows))
    generator.shuffle(order)
    return order


class ShuffledBatches:
    """Every row once an epoch, in a new order, `batch_size` at a time (the last may be short).

    `steps_per_epoch` cuts or extends the epoch; the passes then continue from epoch to epoch.
    """

    def __init__(
        self, rows: int, batch_size: int, steps_per_epoch: int | None = None, seed: int = 0
    ) -> None:
        self.rows, self.seed = rows, seed
        self.batch_size = min(batch_size, rows)
        self.steps_per_pass = -(-rows // self.batch_size)
        self.steps = steps_per_epoch or self.steps_per_pass

    def epoch(self, number: int) -> Iterator[np.ndarray]:
        order, current = np.empty(0, dtype=np.int64), -1
        for step in range(number * self.steps, (number + 1) * self.steps):
            pass_number, index = divmod(step, self.steps_per_pass)
            if pass_number != current:
                generator = random_stream(self.seed, ALL_ROWS, pass_number)
                order, current = _permutation(generator, self.rows), pass_number
            yield order[index * self.batch_size : (index + 1) * self.batch_size].astype(np.int64)


def make_batches(
    kind: str,
    labels: np.ndarray,
    batch_size: int,
    steps_per_epoch: int | None,
    seed: int,
    fewest: int = FEWEST_BATCHES,
) -> Batches:
    """The sampler an objective declares: "balanced" or "shuffled". fewest: of balanced batches."""
    if kind == "balanced":
        return BalancedBatches(labels, batch_size, steps_per_epoch, seed, fewest)
    return ShuffledBatches(len(labels), batch_size, steps_per_epoch, seed)
