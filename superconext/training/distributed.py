"""Distributed training: one training by several processes.

    torchrun --nproc-per-node K -m superconext train ...

Every process reads the same rows and draws the same batches. It encodes its share of each batch;
the sentence vectors are gathered, every process forms the loss of the whole batch, hands its own
share of the gradient back to its encoder, and the gradients are summed. So the batch is as large
as `batch_size` says, all its negatives are used, and the result is that of one process. The first
process alone writes, probes and prints.

Training asks its `World` for what it cannot know by itself and need not know how many processes
answer. Without torchrun there is a world of one process, for which none of this does anything.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.core.errors import ConfigError, TrainingError
from superconext.encoders.base import EncoderOutput

T = TypeVar("T")

Arrays = dict[str, np.ndarray]

#: Seconds that a process may keep the others waiting in a batch.
PATIENCE = 45
#: The same where the first process alone works while the others wait, on word vectors for hours.
LONG_PATIENCE = 86_400


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

    def broadcast(self, value: T) -> T:
        """The first process's value, which JSON can hold, in every process."""
        return value

    def begin(self, weights: Sequence[Tensor], about: dict[str, Any]) -> None:
        """Start all processes from the first one's weights.

        about: facts of the data by name.

        Raises TrainingError where a fact differs between processes.
        """

    def hand_out(self, of: Callable[[int], Arrays] | None = None) -> Arrays:
        """What the first process makes for this one.

        of: arrays by name for the process of each number; None in every process but the first.
        """
        assert of is not None
        return of(0)

    def begin_step(self, *numbers: int) -> None:
        """Make every random draw of a step a function of these numbers and the process."""

    def mean(self, losses: Tensor) -> Tensor:
        """The mean of the losses `[n]` of all processes, 0 for none; its gradient is this process's
        part."""
        return losses.mean() if len(losses) else losses.sum()

    def encode(
        self, encode: Callable[[np.ndarray], EncoderOutput], rows: np.ndarray, lengths: np.ndarray
    ) -> EncoderOutput:
        """Rows `[N]` of the given lengths encoded, by all processes together."""
        return encode(rows)

    def all_reduce_gradients(
        self, own: Sequence[nn.Parameter], common: Sequence[nn.Parameter]
    ) -> None:
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


class ProcessLost(TrainingError):
    """Another process of the training has ended or does not answer."""


class Processes(World):
    """Several processes, each of which this is one of.

    Args:
        rank, size: see `World`.
        pauses: process group of torch that has `LONG_PATIENCE`; its main one has `PATIENCE`.
    """

    def __init__(self, rank: int, size: int, pauses: Any) -> None:
        self.rank, self.size = rank, size
        self._pauses = pauses
        self._steps: Any = None  # of nccl, where the tensors are on GPUs
        self._numbers: list[int] = []

    def broadcast(self, value: T) -> T:
        # As text: torch's way of sending objects would pickle them.
        data = np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
        size = torch.tensor([len(data)])
        self._broadcast(size)
        text = (
            torch.from_numpy(data.copy())
            if self.main
            else torch.empty(int(size), dtype=torch.uint8)
        )
        self._broadcast(text)
        received: T = value if self.main else json.loads(text.numpy().tobytes())
        return received

    def begin(self, weights: Sequence[Tensor], about: dict[str, Any]) -> None:
        first = self.broadcast(about)
        for name, value in about.items():
            if first[name] != value:
                raise TrainingError(
                    f"process {self.rank} found {name} {value}, the first process {first[name]}; "
                    "expected the same files for all: put them where every process reads them"
                )
        if self._steps is None and any(tensor.is_cuda for tensor in weights):
            import torch.distributed as dist

            self._steps = dist.new_group(timeout=timedelta(seconds=PATIENCE), backend="nccl")
        for tensor in weights:
            copy = tensor.detach().cpu().contiguous()
            self._broadcast(copy)
            with torch.no_grad():
                tensor.copy_(copy)

    def hand_out(self, of: Callable[[int], Arrays] | None = None) -> Arrays:
        import torch.distributed as dist

        own = of(0) if of else {}
        for rank in range(1, self.size):
            arrays = of(rank) if of else {}
            kinds = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
            for name, kind, shape in self.broadcast(kinds):
                if self.rank not in (0, rank):
                    continue
                array = np.ascontiguousarray(arrays[name] if of else np.empty(shape, kind))
                data = torch.from_numpy(array.reshape(-1).view(np.uint8))
                with self._answered(LONG_PATIENCE):
                    if of:
                        dist.send(data, rank, group=self._pauses)
                    else:
                        dist.recv(data, 0, group=self._pauses)
                        own[name] = array
        return own

    def mean(self, losses: Tensor) -> Tensor:
        whole = torch.tensor([losses.detach().double().sum(), len(losses)], dtype=torch.float64)
        self.sum_(whole)
        whole[1].clamp_(min=1)
        own = losses.sum() / whole[1]
        return own + (whole[0] / whole[1] - own.detach())

    def begin_step(self, *numbers: int) -> None:
        self._numbers = [*numbers, 0]
        torch.manual_seed(_seed([*self._numbers, self.size]))  # the objective's draws, all alike

    def encode(
        self, encode: Callable[[np.ndarray], EncoderOutput], rows: np.ndarray, lengths: np.ndarray
    ) -> EncoderOutput:
        # Dealt out by length, so that all have about as many tokens.
        share = np.argsort(-lengths, kind="stable")[self.rank :: self.size]
        spare = len(share) == 0  # fewer rows than processes: one that does not count
        if spare:
            share = np.zeros(1, dtype=np.int64)
        self._numbers[-1] += 1  # another view of the batch has other dropout
        devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(_seed([*self._numbers, self.rank]))
            output = encode(rows[share])

        def whole(part: Tensor) -> Tensor:
            part = part * 0 if spare else part
            place = torch.from_numpy(share).to(part.device)
            gathered: Tensor = _Gather.apply(part, place, len(rows), self)
            return gathered

        classes = None if output.class_states is None else whole(output.class_states)
        result = EncoderOutput.of_sentences(whole(output.sentence), classes)
        if output.token_states.dim() == 3:
            width = int(lengths.max())
            missing = width - output.token_states.shape[1]
            result.token_states = whole(functional.pad(output.token_states, (0, 0, 0, missing)))
            mask = torch.from_numpy(np.arange(width) < lengths[:, None])
            result.mask = mask.to(output.mask.device)
        return result

    def all_reduce_gradients(
        self, own: Sequence[nn.Parameter], common: Sequence[nn.Parameter]
    ) -> None:
        weights = [*own, *common]
        shares = [1.0] * len(own) + [1.0 / self.size] * len(common)
        grads = [weight.grad for weight in weights]
        flags = torch.tensor(
            [[g is not None for g in grads], [g is not None and g.is_sparse for g in grads]]
        ).float()
        self.sum_(flags)
        dense: dict[torch.dtype, list[tuple[Tensor, float]]] = {}
        for weight, share, (present, sparse) in zip(weights, shares, flags.T.tolist(), strict=True):
            if not present:  # nor may there be one afterwards, for Adam would move on without
                continue
            if sparse:
                weight.grad = self._sum_rows(weight, share)
                continue
            if weight.grad is None:
                weight.grad = torch.zeros_like(weight)
            dense.setdefault(weight.dtype, []).append((weight.grad, share))
        for alike in dense.values():
            flat = torch.cat([grad.flatten() * share for grad, share in alike])
            self.sum_(flat)
            parts = flat.split([grad.numel() for grad, _ in alike])
            for (grad, _), part in zip(alike, parts, strict=True):
                grad.copy_(part.view_as(grad))

    def _sum_rows(self, weight: nn.Parameter, share: float) -> Tensor:
        """The sum of row-sparse gradients, each of other rows."""
        if weight.grad is None:
            rows, values = torch.empty(0, dtype=torch.int64), weight.detach()[:0]
        else:
            grad = weight.grad.coalesce()
            rows, values = grad.indices()[0], grad.values() * share
        counts = torch.zeros(self.size, dtype=torch.int64)
        counts[self.rank] = len(rows)
        self.sum_(counts)
        first = int(counts[: self.rank].sum())
        all_rows = torch.zeros(int(counts.sum()), dtype=torch.int64, device=weight.device)
        all_values = weight.new_zeros(len(all_rows), *weight.shape[1:]).detach()
        all_rows[first : first + len(rows)] = rows
        all_values[first : first + len(rows)] = values
        self.sum_(all_rows)
        self.sum_(all_values)
        total = torch.sparse_coo_tensor(
            all_rows[None], all_values, weight.shape, check_invariants=False
        )
        return total.coalesce()

    def sum_(self, values: Tensor) -> None:
        """Put the sum over all processes in place of a tensor."""
        import torch.distributed as dist

        with self._answered(PATIENCE):
            dist.all_reduce(values, group=self._steps if values.is_cuda else None)

    def _broadcast(self, values: Tensor) -> None:
        import torch.distributed as dist

        with self._answered(LONG_PATIENCE):
            dist.broadcast(values, 0, group=self._pauses)

    @contextmanager
    def _answered(self, patience: int) -> Iterator[None]:
        try:
            yield
        except ProcessLost:  # by `_stopped`
            raise
        except RuntimeError as error:
            raise ProcessLost(
                f"process {self.rank} of {self.size}: another process has ended, or has not "
                f"answered for {patience} s ({str(error).splitlines()[0]}); expected all "
                f"{self.size} to continue: see the other one's message, and resume or start again"
            ) from None


class _Gather(torch.autograd.Function):
    """Rows of all processes `[N, ...]` from each one's `[n, ...]`; every process has the whole
    gradient already, so its own rows of it are what goes back."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, place: Tensor, rows: int, world: Processes) -> Tensor:
        ctx.save_for_backward(place)
        whole = part.new_zeros(rows, *part.shape[1:])
        whole.index_copy_(0, place, part)
        world.sum_(whole)
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        (place,) = ctx.saved_tensors
        return gradient.index_select(0, place), None, None, None


def _seed(numbers: Sequence[int]) -> int:
    """One seed of torch's from several numbers that are at least 0."""
    # Shifted as a Python number: numpy 1 shifts no unsigned ones by a signed one.
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0]) >> 1


@contextmanager
def joined() -> Iterator[World]:
    """Train together with the processes that torchrun started beside this one.

    They speak through gloo, and of tensors on GPUs, one for each process, through nccl.

    Raises ConfigError where torch cannot do that, ProcessLost when another process is not there.
    """
    rank, size = _launched()
    if size == 1:
        yield World()
        return
    import torch.distributed as dist

    if not dist.is_available():
        raise ConfigError(
            f"WORLD_SIZE = {size}, and this build of torch knows no torch.distributed; "
            "expected one that does: install it, or start without torchrun"
        )
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    try:
        dist.init_process_group(
            "gloo", rank=rank, world_size=size, timeout=timedelta(seconds=PATIENCE)
        )
    except (RuntimeError, ValueError) as error:
        raise ProcessLost(
            f"process {rank} of {size} did not find the others ({str(error).splitlines()[0]}); "
            "expected all of them within a minute: start them by torchrun"
        ) from None
    before: Any = None
    try:
        # torchrun ends the others when one has died; without this they would go without a word.
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGTERM, _stopped)
        pauses = dist.new_group(timeout=timedelta(seconds=LONG_PATIENCE), backend="gloo")
        with within(Processes(rank, size, pauses)) as world:
            yield world
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
        dist.destroy_process_group()


def led(work: Callable[[], T], help_with_it: Callable[[], object]) -> T | None:
    """What `work` returns, which the first process does while the others help with it; None in
    those. Without torchrun this is `work()`.

    Raises ProcessLost where another process ends before its time.
    """
    with joined() as world:
        if world.main:
            return work()
        help_with_it()
        return None


def _launched() -> tuple[int, int]:
    """Rank and number of processes, as torchrun puts them into the environment."""
    try:
        return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    except ValueError:
        raise ConfigError(
            f"RANK = {os.environ.get('RANK')!r}, WORLD_SIZE = {os.environ.get('WORLD_SIZE')!r}; "
            "expected two numbers, as torchrun sets them: unset them, or start by torchrun"
        ) from None


def _stopped(number: int, frame: object) -> None:
    raise ProcessLost(
        "stopped from outside, as by a scheduler, or by torchrun when another process has died; "
        "expected all to continue: see the other one's message, and resume (train --resume RUN, if "
        "an epoch was finished) or start again"
    )
