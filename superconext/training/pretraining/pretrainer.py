"""The loop that trains an encoder as a two-way language model, and goes on where it was stopped."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from superconext.core.errors import RunError, TrainingError
from superconext.core.progress import Progress
from superconext.core.state_file import (
    DAMAGE,
    load_optimizer,
    optimizer_tensors,
    part,
    read_state,
    write_state,
)
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.embedding import WordEmbedding
from superconext.training.optimizer import clip_gradients, make_optimizer
from superconext.training.pretraining.corpus import Corpus
from superconext.training.pretraining.language_model import TwoWayLanguageModel

#: Steps between two states on disk, and states that are kept.
SAVED_EVERY, KEPT = 500, 2

#: Steps, a tenth of all at most, over which the learning rate rises to its height; it then falls in
#: a line to zero.
WARM_UP = 200

#: Norm of the gradient at most.
_CLIP = 5.0


@dataclass(frozen=True)
class Settings:
    """hidden_size: LSTM units in each direction; batch_size: sentences; learning_rate: Adam's."""

    hidden_size: int = 128
    epochs: int = 2
    batch_size: int = 128
    learning_rate: float = 0.002
    dropout: float = 0.2
    word_dropout: float = 0.2
    sample: int = 2048
    seed: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Pretrainer:
    """Trains the encoder of a `TwoWayLanguageModel`; the word vectors stay as they are.

    Args:
        corpus: the text.
        table: vectors of the vocabulary's words, float32 `[V, e]`.
        states: folder for the states to go on from; None to keep none.

    Attributes:
        encoder: what is trained.
        history: one record an epoch: `epoch`, `loss` and `held_loss` in nats for each predicted
            word (against a sample, see the model), `seconds`.
    """

    def __init__(
        self,
        corpus: Corpus,
        table: np.ndarray,
        settings: Settings,
        states: Path | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.corpus, self.settings, self.states = corpus, settings, states
        self.progress = progress or Progress()
        torch.manual_seed(settings.seed)
        words = torch.from_numpy(table)
        self.encoder = BiLSTMEncoder(
            WordEmbedding(words, tune=False),
            settings.hidden_size,
            dropout=settings.dropout,
            word_dropout=settings.word_dropout,
        )
        self.model = TwoWayLanguageModel(
            self.encoder, words[2 : 2 + len(corpus.counts)], corpus.counts, sample=settings.sample
        )
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(self.model, self.parameters, settings.learning_rate)
        batch = min(settings.batch_size, len(corpus.trained))
        self.steps_per_epoch = len(corpus.trained) // batch
        self.steps = self.steps_per_epoch * settings.epochs
        self.step = 0
        self.history: list[dict[str, Any]] = []
        self._sum = self._seconds = 0.0

    def fit(self, advance: Callable[[float], None]) -> None:
        """Run the steps that are left.

        Raises TrainingError when the loss or a gradient is not finite, RunError when all
        states that are there are damaged, and lets KeyboardInterrupt through.
        """
        self._restore()
        for epoch in range(self.step // self.steps_per_epoch, self.settings.epochs):
            self._run_epoch(epoch, advance)
        self.model.eval()

    def _run_epoch(self, epoch: int, advance: Callable[[float], None]) -> None:
        """What is left of an epoch."""
        rng = np.random.default_rng([self.settings.seed, 6, epoch])
        order = np.array_split(rng.permutation(self.corpus.trained), self.steps_per_epoch)
        started = time.perf_counter()
        for rows in order[self.step - epoch * self.steps_per_epoch :]:
            self._sum += self._one_step(rows)
            self.step += 1
            advance(self.step / self.steps)
            ends = self.step % self.steps_per_epoch == 0
            if not ends and self.step % SAVED_EVERY:
                continue
            # Whether states are kept or not, the rows are brought up to date at the same steps.
            self.optimizer.catch_up()
            now = time.perf_counter()
            self._seconds, started = self._seconds + now - started, now
            if ends:
                self._end_epoch(epoch)
            if self.states is not None:
                self._save(self.states)

    def _one_step(self, rows: np.ndarray) -> float:
        self.model.train()
        rise = max(1, min(WARM_UP, self.steps // 10))
        rate = self.settings.learning_rate * min(1.0, (self.step + 1) / rise)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * (1 - self.step / self.steps)
        rng = np.random.default_rng([self.settings.seed, 7, self.step])
        loss = self.model(*self.corpus.store.take(rows), rng)
        value = float(loss.detach())
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        norm = float(clip_gradients(self.parameters, _CLIP))
        if not (math.isfinite(value) and math.isfinite(norm)):
            raise TrainingError(
                f"the loss or a gradient is not finite in step {self.step + 1}: expected numbers; "
                f"lower --learning-rate (now {self.settings.learning_rate:g})"
            )
        self.optimizer.step()
        return value

    def _end_epoch(self, epoch: int) -> None:
        record = {
            "epoch": epoch + 1,
            "loss": self._sum / self.steps_per_epoch,
            "held_loss": self._held_loss(),
            "seconds": self._seconds,
        }
        self._sum = self._seconds = 0.0
        self.history.append(record)
        self.progress.say(
            f"epoch {epoch + 1}: loss {record['loss']:.4f}, on sentences held back "
            f"{record['held_loss']:.4f}, {record['seconds']:.1f} s"
        )

    def _held_loss(self) -> float:
        """Of sentences that are not trained on, with the same other words at any time."""
        self.model.eval()
        rng, losses = np.random.default_rng([self.settings.seed, 8]), []
        with torch.no_grad():
            for rows in np.array_split(self.corpus.held, -(-len(self.corpus.held) // 256)):
                losses.append(float(self.model(*self.corpus.store.take(rows), rng)))
        return float(np.mean(losses))

    def _save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {f"weights.{name}": value for name, value in self._trained()}
        moments = optimizer_tensors(self.optimizer)
        tensors |= {f"adam.{name}": value for name, value in moments.items()}
        tensors["random_state"] = torch.get_rng_state()
        facts = {
            "step": self.step,
            "history": self.history,
            "sum": self._sum,
            "seconds": self._seconds,
        }
        write_state(folder / f"step-{self.step}.safetensors", facts, tensors)
        for _, path in self._saved()[KEPT:]:
            path.unlink()

    def _saved(self) -> list[tuple[int, Path]]:
        """The states that are there, the last one first."""
        if self.states is None or not self.states.is_dir():
            return []
        found = []
        for path in self.states.iterdir():
            match = re.fullmatch(r"step-(\d+)\.safetensors", path.name)
            if match:
                found.append((int(match[1]), path))
        return sorted(found, reverse=True)

    def _trained(self) -> list[tuple[str, Tensor]]:
        """The weights that training moves, by name."""
        named = self.model.named_parameters()
        return [(name, value.detach()) for name, value in named if value.requires_grad]

    def _restore(self) -> None:
        damaged = []
        for step, path in self._saved():
            try:
                facts, tensors = read_state(path)
                weights = part(tensors, "weights.")
                for name, value in self._trained():
                    value.copy_(weights[name])
                load_optimizer(self.optimizer, part(tensors, "adam."))
                self.history, self._sum = facts["history"], facts["sum"]
                self._seconds, self.step = facts["seconds"], facts["step"]
                torch.set_rng_state(tensors["random_state"])
            except DAMAGE as error:
                damaged.append(f"{path}: the state cannot be used ({error})")
                continue
            if damaged:
                self.progress.warn(f"{'; '.join(damaged)}; going on from the one before it")
            self.progress.say(f"going on after step {step} of {self.steps}")
            return
        if damaged:
            raise RunError(f"{'; '.join(damaged)}; expected a state of this training: remove it")
