"""The training loop: batches from a sampler, a loss from an objective, a step of Adam."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from superconext.config.parameters import Config
from superconext.config.presets import BY_ROWS, SMALL_STEPS_BELOW
from superconext.core.arithmetic import fast_products
from superconext.core.errors import TrainingError
from superconext.core.random_streams import SOFT_LABELS, random_stream
from superconext.data.auxiliary import drawn_labels
from superconext.data.sampler import Batches
from superconext.data.token_store import TokenStore
from superconext.encoders import encoder_class
from superconext.encoders.base import Encoder, EncoderOutput, encode_rows
from superconext.encoders.compiled_gates import compiled
from superconext.objectives.base import Batch, Objective
from superconext.training.cached_gradients import encode_for_training
from superconext.training.callbacks import Callback, EpochSoFar, Record
from superconext.training.distributed import World, current_world
from superconext.training.optimizer import clip_gradients, make_optimizer
from superconext.training.pool import EncodedPool

#: Largest gradient norm.
GRADIENT_CLIP = 5.0

#: Epochs of few rows, the paper's number; and of however many.
MOST_EPOCHS = 15
FEWEST_EPOCHS = 6

#: Rows read in all epochs together, where that is between the two: fifteen epochs of 3,000 rows.
ROWS_READ = 45_000

#: Passes over few rows and over many, and rows read in all between the two, of a pretrained model
#: that is fine-tuned (docs/transformer.md).
MOST_PASSES, FEWEST_PASSES, ROWS_TUNED_ON = 24, 3, 20_000


def epochs_of(rows: int) -> int:
    """Epochs for a number of training rows."""
    return min(max(ROWS_READ // max(rows, 1), FEWEST_EPOCHS), MOST_EPOCHS)


def passes_of(rows: int) -> int:
    """Epochs for a number of training rows of a pretrained model that is fine-tuned."""
    return min(max(ROWS_TUNED_ON // max(rows, 1), FEWEST_PASSES), MOST_PASSES)


def decided(config: Config, rows: int) -> Config:
    """The configuration with its epochs decided: as given, or by the number of training rows; so
    are pooling and learning rate of an encoder that starts pretrained, and the batch size of a
    pretrained model, which is no larger than the rows.

    Where `steps_per_epoch` is given an epoch has nothing to do with the rows, and there are
    `MOST_EPOCHS`.
    """
    for name, (few, many) in BY_ROWS.items():
        if getattr(config, name) is None:
            small = rows < SMALL_STEPS_BELOW or (config.freeze and name == "pooling")
            config = replace(config, **{name: few if small else many})
    if config.steps_per_epoch is not None:
        return config if config.epochs is not None else replace(config, epochs=MOST_EPOCHS)
    tuned = encoder_class(config.encoder).reads_model and not config.freeze
    if tuned:
        config = replace(config, batch_size=max(min(config.batch_size, rows), 4))
    if config.epochs is not None:
        return config
    return replace(config, epochs=passes_of(rows) if tuned else epochs_of(rows))


def decided_epochs(config: Config) -> int:
    """The epochs of a configuration that `decided` has seen, or that was given them."""
    if config.epochs is None:
        raise ValueError("found a configuration whose epochs are not decided; see decided")
    return config.epochs


class Trainer:
    """Trains one encoder, its projection head and the objective's own parameters.

    Args:
        encoder: what is trained; its frozen parameters stay as they are.
        head: from sentence vectors `[N, d]` to `Batch.projected` `[N, p]`.
        objective: the loss.
        batches: row numbers of each batch.
        store: token ids of the N training rows.
        labels: class indices `[N]`; None for an objective that reads the tokens itself.
        config: learning rate, epochs, precision and the like.
        callbacks: called in this order.
        pool: token ids of the unlabelled sentences, for objectives that need them.
        world: the processes that train together; None: the current ones.
        shares: the share of each class in each row's target `[N, C]`, where rows have soft labels.
            `Batch.labels` are then drawn from them again in each epoch.

    Attributes:
        epoch: the next epoch to run, counted from 0; epochs: how many there are.
        so_far: what the running epoch has given until now.
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
        labels: np.ndarray | None,
        config: Config,
        callbacks: Sequence[Callback] = (),
        pool: TokenStore | None = None,
        world: World | None = None,
        shares: np.ndarray | None = None,
    ) -> None:
        self.encoder, self.head, self.objective = encoder, head, objective
        self.batches, self.store, self.config = batches, store, config
        self.labels = torch.from_numpy(np.asarray([] if labels is None else labels, np.int64))
        self._drawn = self.labels
        self.shares = None if shares is None else torch.from_numpy(shares.astype(np.float32))
        self.callbacks = list(callbacks)
        self.device = torch.device(config.device)
        self.modules = nn.ModuleDict({"encoder": encoder, "head": head, "objective": objective})
        self.modules.to(self.device)
        self.parameters = [p for p in self.modules.parameters() if p.requires_grad]
        others = [p for part in (head, objective) for p in part.parameters() if p.requires_grad]
        assert config.learning_rate is not None  # decided with the epochs
        groups = encoder.parameter_groups(config.learning_rate, others)
        self.optimizer = make_optimizer(self.modules, groups)
        self.world = world or current_world()
        self._seed = torch.initial_seed() % 2**63  # generators take no negative numbers
        self.pool: EncodedPool | None = None
        if pool is not None:
            guesses = objective.guesses_words and encoder.start_guessing(config)
            about = self._arithmetic, self.world, config.seed, guesses
            self.pool = EncodedPool(pool, encoder, objective, *about)
        self.epoch, self.epochs, self.so_far = 0, decided_epochs(config), EpochSoFar()
        self.history: list[Record] = []
        self.stop = False

    def fit(self) -> list[Record]:
        """Run the epochs that are left and return the history.

        Raises TrainingError when the loss or a gradient is not finite, and lets
        KeyboardInterrupt through with the weights as they were after the last update.
        """
        with fast_products(self.device.type == "cpu"):
            return self._fit()

    def _fit(self) -> list[Record]:
        if self.world.size > 1:
            checksum = zlib.crc32(self.labels.numpy().data, self.store.checksum())
            same = {"rows of checksum": checksum, "finished steps": self.steps_done}
            self.world.begin(list(self.modules.state_dict().values()), same)
        self._call("on_train_begin")
        self.stop = self.world.broadcast(self.stop)
        while self.epoch < self.epochs and not self.stop:
            with compiled(self.config.compile):
                record = self._run_epoch()
            self.history.append(record)
            self.epoch, self.so_far = self.epoch + 1, EpochSoFar()
            self._end_epoch(record)
        self.finish()
        return self.history

    def finish(self) -> None:
        """Let callbacks and objective know that no epoch follows; `fit` does so, and who
        catches an interrupt must."""
        self.optimizer.catch_up()
        self._call("on_train_end")
        self.modules.eval()

        def encode(rows: np.ndarray) -> EncoderOutput:
            whole = self.objective.needs_token_states
            return encode_rows(self.encoder, self.store, rows, whole=whole)

        with torch.no_grad(), self._arithmetic():
            self.objective.end_training(encode, self.labels.to(self.device))

    @property
    def steps_done(self) -> int:
        """Batches that are done, of all epochs."""
        return self.epoch * self.batches.steps + self.so_far.step

    def weights(self) -> dict[str, Tensor]:
        """The weights that training changes, by name: `encoder.*`, `head.*`, `objective.*`.

        These are the trained parameters and all buffers; frozen parameters are left out.
        """
        trained = {id(parameter) for parameter in self.parameters}
        frozen = {id(p) for p in self.modules.parameters() if id(p) not in trained}
        every = self.modules.state_dict(keep_vars=True)
        return {name: value.detach() for name, value in every.items() if id(value) not in frozen}

    def load_weights(self, weights: dict[str, Tensor]) -> None:
        """Put back what `weights` gave. Raises ValueError for weights of other names."""
        if weights.keys() != self.weights().keys():
            raise ValueError("its weights are not those that this training changes")
        self.optimizer.catch_up()  # else what it owes is paid onto them
        self.modules.load_state_dict(weights, strict=False)

    def _run_epoch(self) -> Record:
        """Run what is left of an epoch."""
        before = time.perf_counter()
        self._call("on_epoch_begin", self.epoch)
        self.modules.train()
        self.objective.begin_epoch(self.epoch, self.history)
        if self.shares is not None:
            stream = random_stream(self.config.seed, SOFT_LABELS, self.epoch)
            self._drawn = torch.from_numpy(drawn_labels(self.shares.numpy(), stream))
        if self.pool is not None:
            self.pool.begin_epoch()
        for step, rows in enumerate(self.batches.epoch(self.epoch)):
            if step < self.so_far.step:  # done before the training was stopped
                continue
            self._call("on_step_begin", step)
            scalars = self._step(rows, step)
            self.so_far.add(scalars)
            now = time.perf_counter()
            self.so_far.seconds, before = self.so_far.seconds + now - before, now
            self._call("on_step_end", step, scalars["loss"])
        self.optimizer.catch_up()
        seconds = self.so_far.seconds + time.perf_counter() - before
        return {"epoch": self.epoch + 1, **self.so_far.means(), "seconds": seconds}

    def _end_epoch(self, record: Record) -> None:
        """Let the callbacks work on the record, in the other processes on the first one's."""
        if self.world.main:
            self._call("on_epoch_end", record)
        first, self.stop = self.world.broadcast((record, self.stop))
        if not self.world.main:
            record |= first
            self._call("on_epoch_end", record)

    def _step(self, rows: np.ndarray, step: int) -> dict[str, float]:
        alone = self.objective.reads_tokens  # by each process on its own rows, with its own draws
        self.world.begin_step(self._seed, self.epoch, step, *[self.world.rank] * alone)
        loss, scalars = self.objective.checked(self.objective(self._batch(rows)))
        value = float(loss.detach())
        if not math.isfinite(value):
            raise self._not_finite("the loss", step)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._reduce_gradients()
        norm = clip_gradients(self.parameters, GRADIENT_CLIP)
        if not math.isfinite(float(norm)):
            raise self._not_finite("a gradient", step)
        self.optimizer.set_rate(
            self.encoder.rate((self.steps_done + 0.5) / (self.epochs * self.batches.steps))
        )
        self.optimizer.step()
        return {"loss": value, **scalars}

    def _batch(self, rows: np.ndarray) -> Batch:
        if self.objective.reads_tokens:
            return self._unread_batch(rows)

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
            labels=self._drawn[ids].to(self.device),
            shares=None if self.shares is None else self.shares[ids].to(self.device),
            ids=ids.to(self.device),
            epoch=self.epoch,
            epochs=self.epochs,
            token_states=output.token_states if whole else None,
            mask=output.mask if whole else None,
            class_states=output.class_states,
            second_view=second_view,
            pool=self.pool,
            step=self.steps_done,
        )

    def _unread_batch(self, rows: np.ndarray) -> Batch:
        """A batch of token ids, for an objective that reads them itself."""
        none, ids = torch.empty(0), torch.from_numpy(rows)
        batch = Batch(none, none, self.labels[:0], ids, self.epoch, self.epochs)
        batch.step = self.steps_done
        batch.tokens, batch.lengths = self.store.take(rows)
        return batch

    def _encode_to_train(self, rows: np.ndarray) -> EncoderOutput:
        """Training rows with gradient, however large the batch, by all processes together."""

        def encode(part: np.ndarray) -> EncoderOutput:
            return encode_for_training(
                self.encoder,
                self.store,
                part,
                whole=self.objective.needs_token_states,
                mini_batch_size=self.mini_batch_size,
            )

        return self.world.encode(encode, rows, self.store.lengths_of(rows))

    def _reduce_gradients(self) -> None:
        if self.objective.reads_tokens:  # of which each process has its own
            self.world.all_reduce_gradients(self.parameters, [])
            return
        of_rows = [p for p in self.encoder.parameters() if p.requires_grad]
        common = [
            p
            for module in (self.head, self.objective)
            for p in module.parameters()
            if p.requires_grad
        ]
        self.world.all_reduce_gradients(of_rows, common)

    def _arithmetic(self) -> AbstractContextManager[None]:
        context: AbstractContextManager[None] = torch.autocast(
            self.device.type, dtype=torch.bfloat16, enabled=self.config.precision == "bfloat16"
        )
        return context

    def _not_finite(self, what: str, step: int) -> TrainingError:
        advice = f"lower learning_rate (now {self.config.learning_rate})"
        if not self.objective.reads_tokens:
            advice += f" or raise temperature (now {self.config.temperature:g})"
        own = type(self.objective)
        if not own.__module__.startswith("superconext."):
            advice = f"check the loss of {own.__name__}, or {advice}"
        return TrainingError(
            f"{what} is not finite in epoch {self.epoch + 1}, batch {step + 1}: expected a "
            f"number; {advice}"
        )

    def _call(self, hook: str, *arguments: object) -> None:
        for callback in self.callbacks:
            if self.world.main or callback.every_process:
                getattr(callback, hook)(self, *arguments)
