"""The pool of unlabelled sentences: its draw, and its vectors during training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import torch
from torch import Tensor

from superconext.config.parameters import files_of
from superconext.core.errors import ConfigError, DataError
from superconext.core.random_streams import HIDDEN_WORDS, POOL, random_stream
from superconext.core.registry import expect_floats
from superconext.data.duplicates import wording
from superconext.data.token_store import TokenStore
from superconext.encoders.base import (
    Encoder,
    EncoderOutput,
    encode_rows,
    encoded_blocks,
    length_groups,
)
from superconext.objectives.base import Objective
from superconext.text.tokenize import Tokenizer
from superconext.training.distributed import World


def pool_sources(
    unlabelled: str | Sequence[str] | None, objective: str, own: Sequence[str] = ()
) -> tuple[str, ...]:
    """The files a pool is read from, beside `own` texts of the training file. Raises ConfigError
    where there is neither."""
    if not unlabelled and own:
        return ()
    if not unlabelled:
        raise ConfigError(
            f"unlabelled is not set, and objective {objective} learns from unlabelled text beside "
            "the labelled rows; expected a file with one sentence a line: add --unlabelled FILE"
        )
    return files_of(unlabelled)


def draw_pool(
    texts: Sequence[str],
    tokenizer: Tokenizer,
    labelled: Iterable[Sequence[str]],
    size: int,
    seed: int,
    source: str,
) -> tuple[list[list[str]], int]:
    """Tokens of up to `size` sentences of a file, and how many rows were passed over.

    Rows are tried in an order that the seed decides. Passed over are those without a word, those
    that say what an earlier one said, and those that say what a labelled sentence says, word for
    word (`data.duplicates.wording`): an unlabelled copy of a dev text would leak it into training.
    labelled: tokens of every training, dev and test sentence. Raises DataError if no row is left.
    """
    seen = {wording(tokens) for tokens in labelled}
    seen.add("")
    kept: list[list[str]] = []
    passed = 0
    for row in random_stream(seed, POOL).permutation(len(texts)):
        if len(kept) == size:
            break
        tokens = tokenizer(texts[row])
        words = wording(tokens)
        if words in seen:
            passed += 1
            continue
        seen.add(words)
        kept.append(tokens)
    if not kept:
        raise DataError(
            f"{source}: found {len(texts)} rows, and each is empty or a labelled text; "
            "expected other unlabelled sentences: name a file that has some"
        )
    return kept, passed


class EncodedPool:
    """The pool as an objective sees it in a batch, see `objectives.base.Pool`.

    store: token ids of the M >= 1 sentences, which `encoder` encodes; objective: says what is
    remembered of each; arithmetic: context of the encoder's arithmetic in training; world: the
    processes that encode together; seed: of the words that are hidden; guesses: whether the
    encoder guesses them.
    """

    def __init__(
        self,
        store: TokenStore,
        encoder: Encoder,
        objective: Objective,
        arithmetic: Callable[[], AbstractContextManager[None]] = nullcontext,
        world: World | None = None,
        seed: int = 0,
        guesses: bool = False,
    ) -> None:
        self.store, self.encoder, self.objective = store, encoder, objective
        self.seed, self.guesses = seed, guesses
        self._arithmetic, self._world = arithmetic, world or World()
        self._memory: Tensor | None = None
        self._table: Tensor | None = None

    def begin_epoch(self) -> None:
        """Forget what earlier weights made of the sentences."""
        self._memory = self._table = None

    @property
    def memory(self) -> Tensor:
        """`Objective.remembered` of every sentence, float32 `[M, r]`, without gradient.

        Made without dropout when it is first asked for in an epoch, so an epoch without
        retrieval costs nothing and a resumed epoch has what the stopped one would have had.
        """
        if self._memory is None:
            self._memory = self._remember()
        return self._memory

    @torch.no_grad()
    def _remember(self) -> Tensor:
        memory: Tensor | None = None
        for rows, output in encoded_blocks(self.encoder, self.store):
            part = self.objective.remembered(output.sentence)
            width = part.shape[1] if isinstance(part, Tensor) and part.dim() == 2 else "r"
            meaning = ", a row for each sentence"
            expect_floats(self.objective, "remembered", part, (len(rows), width), meaning, False)
            part = part.float()
            if memory is None:
                memory = part.new_empty(len(self.store), part.shape[1])
            memory[torch.from_numpy(rows).to(part.device)] = part
        assert memory is not None
        return memory

    def encode(self, rows: Tensor) -> Tensor:
        """Sentence vectors `[R, d]` of pool rows `[R]`, with dropout and with gradient.

        The gradient reaches the encoder, but not the word vectors: many of the pool's words
        are not in the training vocabulary, so all of them are read from one table made when
        the epoch begins.
        """
        if self._table is None:
            self._table = self.encoder.vector_table(self.store.oov_words)

        def encode(part: np.ndarray) -> EncoderOutput:
            return encode_rows(self.encoder, self.store, part, table=self._table)

        numbers = rows.cpu().numpy()
        with self._arithmetic():
            output = self._world.encode(encode, numbers, self.store.lengths_of(numbers))
        return output.sentence

    def guess(self, rows: Tensor, step: int) -> Tensor | None:
        """See `objectives.base.Pool`; which words are hidden follows from seed, step and row."""
        if not self.guesses:
            return None

        def encode(part: np.ndarray) -> EncoderOutput:
            groups = length_groups(self.store.lengths_of(part), 4)
            return EncoderOutput.of_sentences(
                torch.cat([self._guessed(part[group], step) for group in groups])
            )

        numbers = rows.cpu().numpy()
        with self._arithmetic():
            output = self._world.encode(encode, numbers, self.store.lengths_of(numbers))
        total, count = output.sentence.sum(dim=0)
        return total / count.clamp(min=1)

    def _guessed(self, rows: np.ndarray, step: int) -> Tensor:
        """`Encoder.guess` of pool rows `[n]`."""
        ids, lengths = self.store.pad(rows)
        draws = np.ones((2, *ids.shape))
        for row, length, place in zip(rows, lengths, range(len(rows)), strict=True):
            stream = random_stream(self.seed, HIDDEN_WORDS, step, int(row))
            draws[:, place, :length] = stream.random((2, length))
        device = next(self.encoder.parameters()).device
        given = [torch.from_numpy(array).to(device) for array in (ids, lengths, draws)]
        guessed = self.encoder.guess(*given)
        expect_floats(self.encoder, "guess", guessed, (len(rows), 2), finite=False)
        return guessed
