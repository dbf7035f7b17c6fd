"""Pre-training by several processes, each of which keeps a share of the sentences.

    torchrun --nproc-per-node K -m superconext pretrain ...

The first process reads the text and trains the word vectors. Then each process is given the table
and every K-th sentence to learn from. Of a batch it reads its own sentences, and the gradients are
summed: order, words to compare with and weights are those of one process, except for what dropout
draws. The sentences with emoji, few of all, are given to every process, as rows are in `train`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from superconext.core.process import keep_freed_memory
from superconext.core.progress import Progress
from superconext.data.token_store import TokenStore
from superconext.text.tokenize import Vocabulary
from superconext.training.distributed import Arrays, T, current_world, led
from superconext.training.pretraining.emoji import EmojiRows, emoji_training
from superconext.training.pretraining.language_model import Corpus, Settings, pretraining


@dataclass(frozen=True)
class Shard(TokenStore):
    """Some sentences of a larger store, under the numbers they have there.

    numbers: of the sentences in the larger store, ascending, int64 `[N]`.
    """

    numbers: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(cls, arrays: Arrays) -> Shard:
        """What `arrays` has been given of."""
        return cls(arrays["tokens"], arrays["offsets"], None, arrays["numbers"])

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As in the larger store, of those of the rows that are here."""
        return super().take(np.searchsorted(self.numbers, rows[np.isin(rows, self.numbers)]))

    def checksum(self) -> int:
        """Nothing to compare: the first process has made the shards of all."""
        return 0


def dealt_out(
    corpus: Corpus, table: np.ndarray, settings: Settings, threads: int, states: Path
) -> TokenStore:
    """Give each process its share; returns this one's, which is all where it is alone."""
    world = current_world()
    if world.size == 1:
        return corpus.store
    about = {"settings": asdict(settings), "threads": threads, "states": str(states.absolute())}
    world.broadcast(about)

    def arrays_of(rank: int) -> Arrays:
        numbers = corpus.trained[rank :: world.size]
        tokens, lengths = corpus.store.take(numbers)
        offsets = np.append(0, np.cumsum(lengths))
        own = {"tokens": tokens, "offsets": offsets, "numbers": numbers}
        return {**own, "table": table, "counts": corpus.counts, "trained": corpus.trained}

    return Shard.of(world.hand_out(arrays_of))


def deal_out_emoji(rows: EmojiRows | None) -> None:
    """Give every process the sentences with emoji; None: there is no second part."""
    world = current_world()
    world.broadcast({"names": list(rows.names)} if rows else {})
    if rows:
        store, labels = rows.store, rows.labels
        arrays = {"tokens": store.tokens, "offsets": store.offsets, "labels": labels}
        world.hand_out(lambda rank: arrays)


def by_all(work: Callable[[], T]) -> T | None:
    """What `work` returns, which pre-trains, all processes together; None in all but the first."""
    return led(work, _help)


def _help() -> None:
    world = current_world()
    about: dict[str, Any] = world.broadcast({})
    if not about:  # the encoder is in the cache
        return
    keep_freed_memory()
    torch.set_num_threads(about["threads"])
    settings, states = Settings(**about["settings"]), Path(about["states"])
    arrays = world.hand_out()
    nothing = np.empty(0, np.int64)
    share = Shard.of(arrays)
    corpus = Corpus(Vocabulary([], []), share, arrays["counts"], arrays["trained"], nothing)
    trainer = pretraining(corpus, arrays["table"], settings, states)
    trainer.fit()
    emoji: dict[str, Any] = world.broadcast({})
    if emoji:
        arrays = world.hand_out()
        store = TokenStore(arrays["tokens"], arrays["offsets"])
        rows = EmojiRows(store, arrays["labels"], emoji["names"])
        emoji_training(trainer.encoder, rows, settings, states, Progress()).fit()
