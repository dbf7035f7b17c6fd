"""The training loop: batches from the sampler, a loss from the objective, Adam."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager

import numpy as np
import torch
from torch import Tensor, nn

from superconext.config.parameters import Config
from superconext.core.errors import TrainingError
from superconext.data.sampler import Batches
from superconext.data.token_store import TokenStore
from superconext.encoders.base import Encoder, EncoderOutput, encode_rows
from superconext.objectives.base import Batch, Objective
from superconext.training.cached_gradients import encode_for_training
from superconext.training.callbacks import Callback, Record
from superconext.training.length import decided_epochs
from superconext.training.optimizer import clip_gradients, make_optimizer
from superconext.training.pool import EncodedPool
from superconext.training.world import current_world

#: Largest gradient norm.
GRADIENT_CLIP = 5.0


class Trainer:
    """Trains one encoder, its projection head and the objective's own parameters.

    Attributes:
        epoch: the next epoch to run, counted from 0; epochs: how many there are.
        history: one record for each finished epoch: `epoch` (from 1), `loss`, the means
            of the objective's scalars, whatever callbacks add, and `seconds`.
        stop: set to True to end after the current epoch.
        mini_batch_size: sentences encoded at once; None: decided by their tokens.
    """

    mini_batch_size: int | None = None

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        objective: Objective,
        batches: Batches,
        store: TokenStore,
        labels: np.ndarray,
        config: Config,
        callbacks: Sequence[Callback] = (),
        pool: TokenStore | None = None,
    ) -> None:
        self.encoder, self.head, self.objective = encoder, head, objective
        self.batches, self.store, self.config = batches, store, config
        self.labels = torch.from_numpy(np.asarray(labels, dtype=np.int64))
        self.callbacks = list(callbacks)
        self.device = torch.device(config.device)
        self.modules = nn.ModuleDict({"encoder": encoder, "head": head, "objective": objective})
        self.modules.to(self.device)
        self.parameters = [p for p in self.modules.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(self.modules, self.parameters, config.learning_rate)
        self.world = current_world()
        self._seed = torch.initial_seed() % 2**63  # generators take no negative numbers
        self.pool: EncodedPool | None = None
        if pool is not None:
            self.pool = EncodedPool(pool, encoder, objective, self._arithmetic, self.world)
        self.epoch, self.epochs = 0, decided_epochs(config)
        self.history: list[Record] = []
        self.stop = False

    def fit(self) -> list[Record]:
        """Run the epochs that are left and return the history.

        Raises TrainingError when the loss or a gradient is not finite, and lets
        KeyboardInterrupt through with the weights as they were after the last update.
        """
        if self.world.size > 1:
            self.world.begin(list(self.weights().values()), self._about())
        self._call("on_train_begin")
        self.stop = self.world.tell(self.stop)
        while self.epoch < self.epochs and not self.stop:
            record = self._run_epoch()
            self.history.append(record)
            self.epoch += 1
            self._end_epoch(record)
        self.finish()
        return self.history

    def finish(self) -> None:
        """Tell callbacks and objective that no epoch follows; `fit` does, an interrupted
        caller must."""
        self.optimizer.catch_up()
        self._call("on_train_end")
        self.modules.eval()
        with torch.no_grad(), self._arithmetic():
            self.objective.end_training(self._encode, self.labels.to(self.device))

    def weights(self) -> dict[str, Tensor]:
        """All weights by name: `encoder.*`, `head.*`, `objective.*`."""
        return self.modules.state_dict()

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Put back what `weights` gave."""
        self.modules.load_state_dict(weights)

    def _run_epoch(self) -> Record:
        started = time.perf_counter()
        self._call("on_epoch_begin", self.epoch)
        self.modules.train()
        self.objective.begin_epoch(self.epoch, self.history)
        if self.pool is not None:
            self.pool.begin_epoch()
        sums: dict[str, float] = {}
        counts: dict[str, int] = {}
        for step, rows in enumerate(self.batches.epoch(self.epoch)):
            scalars = self._step(rows, step)
            for name, value in scalars.items():
                sums[name] = sums.get(name, 0.0) + value
                counts[name] = counts.get(name, 0) + 1
            self._call("on_step_end", step, scalars["loss"])
        self.optimizer.catch_up()
        record: Record = {"epoch": self.epoch + 1}
        record |= {name: total / counts[name] for name, total in sums.items()}
        record["seconds"] = time.perf_counter() - started
        return record

    def _end_epoch(self, record: Record) -> None:
        """Let the callbacks work on the record, in the other processes on the first one's."""
        if self.world.main:
            self._call("on_epoch_end", record)
        told, self.stop = self.world.tell((record, self.stop))
        if not self.world.main:
            record |= told
            self._call("on_epoch_end", record)

    def _step(self, rows: np.ndarray, step: int) -> dict[str, float]:
        self.world.begin_step(self._seed, self.epoch, step)
        loss, scalars = self.objective(self._batch(rows))
        value = float(loss.detach())
        if not math.isfinite(value):
            raise self._not_finite("the loss", step)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._sum_gradients()
        norm = clip_gradients(self.parameters, GRADIENT_CLIP)
        if not math.isfinite(float(norm)):
            raise self._not_finite("a gradient", step)
        self.optimizer.step()
        return {"loss": value, **scalars}

    def _batch(self, rows: np.ndarray) -> Batch:
        def view() -> tuple[EncoderOutput, Tensor]:
            with self._arithmetic():
                output = self._encode_to_train(rows)
                projected = (
                    self.head(output.sentence)
                    if self.objective.uses_projection
                    else output.sentence
                )
            return output, projected

        def second_view() -> tuple[Tensor, Tensor]:
            output, projected = view()
            return output.sentence, projected

        output, projected = view()
        whole = self.objective.needs_token_states
        ids = torch.from_numpy(rows)
        return Batch(
            sentence=output.sentence,
            projected=projected,
            labels=self.labels[ids].to(self.device),
            ids=ids.to(self.device),
            epoch=self.epoch,
            epochs=self.epochs,
            token_states=output.token_states if whole else None,
            mask=output.mask if whole else None,
            class_states=output.class_states,
            second_view=second_view,
            pool=self.pool,
        )

    def _encode(self, rows: np.ndarray) -> EncoderOutput:
        """Training rows under the encoder as it is."""
        whole = self.objective.needs_token_states
        return encode_rows(self.encoder, self.store, rows, whole=whole)

    def _encode_to_train(self, rows: np.ndarray) -> EncoderOutput:
        """The same with gradient, however large the batch, in all processes together."""

        def encode(part: np.ndarray) -> EncoderOutput:
            return encode_for_training(
                self.encoder,
                self.store,
                part,
                whole=self.objective.needs_token_states,
                layers=self.config.layers,
                mini_batch_size=self.mini_batch_size,
            )

        return self.world.encode(encode, rows, self.store.lengths_of(rows))

    def _sum_gradients(self) -> None:
        own = [p for p in self.encoder.parameters() if p.requires_grad]
        common = [
            p
            for module in (self.head, self.objective)
            for p in module.parameters()
            if p.requires_grad
        ]
        self.world.sum_gradients(own, common)

    def _about(self) -> dict[str, int]:
        """What must be the same in every process."""
        labels = zlib.crc32(self.labels.numpy().data, self.store.checksum())
        return {"rows of checksum": labels, "finished epochs": self.epoch}

    def _arithmetic(self) -> AbstractContextManager[None]:
        context: AbstractContextManager[None] = torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=self.config.precision == "bfloat16"
        )
        return context

    def _not_finite(self, what: str, step: int) -> TrainingError:
        return TrainingError(
            f"{what} is not finite in epoch {self.epoch + 1}, batch {step + 1}: expected a "
            f"number; lower learning_rate (now {self.config.learning_rate:g}) or raise "
            f"temperature (now {self.config.temperature:g})"
        )

    def _call(self, hook: str, *arguments: object) -> None:
        for callback in self.callbacks:
            if self.world.main or callback.every_process:
                getattr(callback, hook)(self, *arguments)
