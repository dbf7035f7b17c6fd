"""Pre-training: a two-way language model as an objective of the one training loop.

Each direction of the LSTM predicts the word it will read next. The forward LSTM has read the
words up to a place, and so has, from the other end, the backward one; neither has seen the word
it predicts. With states s, a linear map A for each direction and the output vectors v and biases
b of the words, the score of word w is v_w . (A s) + b_w, and the loss is the cross-entropy of
the true next word, summed over both directions and averaged over all predictions. It is taken
over the true word and a sample of K others instead of all V, each score less the log of the
number of times its word is expected in the sample, so that the frequent words, which are drawn
more often, are not punished for it.

Of a word is read its vector, which stays as it is, and four times the mean of what the vectors of
its character n-grams have learned, so that another spelling of a word gains from what it teaches.

Frequent words say little of a sentence: each occurrence is predicted with a chance of
sqrt(t / share of the word) at most, so that fewer scores are needed and rarer words weigh more.

Sources: Peters et al. (2018), "Deep contextualized word representations", section 3.1, for one
layer and without shared weights; Jean et al. (2015), "On using very large target vocabulary for
neural machine translation", section 3, for the sampled softmax; Mikolov et al. (2013),
"Distributed representations of words and phrases", section 2.3, for the chance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from superconext.config.parameters import resolve
from superconext.core.errors import DataError
from superconext.core.progress import Progress
from superconext.core.random_streams import (
    PRETRAINING_HELD,
    PRETRAINING_HELD_WORDS,
    PRETRAINING_ORDER,
    PRETRAINING_WORDS,
    random_stream,
)
from superconext.data.token_store import TokenStore, build_store
from superconext.encoders.packed_lstm import Packing
from superconext.encoders.pretrained import TwoWayReader, encoder_to_pretrain, start_from
from superconext.encoders.words import row_table
from superconext.objectives.base import Batch, Objective
from superconext.text.ngrams import WordNgrams
from superconext.text.tokenize import Vocabulary
from superconext.training.callbacks import Callback, Record
from superconext.training.checkpoint import Checkpointer
from superconext.training.distributed import current_world
from superconext.training.trainer import Trainer

#: Most words that are read, and that are predicted; the rarer ones are read as unknown.
MOST_READ, MOST_PREDICTED = 200_000, 50_000

#: A word seen fewer times is read and not predicted: of it nothing general can be learned.
FEWEST_SEEN = 3

#: Tokens kept of a sentence.
LONGEST = 200

#: Sentences without which there is nothing to learn, and the share and number held out at most.
FEWEST_SENTENCES = 100
_HELD_OUT_SHARE, _MOST_HELD_OUT = 0.02, 2_000

#: Power of the word counts by which the other words are drawn: Mikolov et al. (2013).
FLATTENED = 0.75

#: Share of the text from which on a word is not always predicted, at least the mean share.
FREQUENT = 2e-4

#: Sentences from which on a batch has `LARGE_BATCH` of them: an epoch has steps enough.
MANY_SENTENCES, LARGE_BATCH = 50_000, (256, 0.003)
SMALL_BATCH = (128, 0.002)

#: Steps between two states on disk.
SAVED_EVERY = 500

#: Steps, a tenth of all at most, over which the learning rate rises to its height; it then falls in
#: a line to zero.
WARM_UP = 200

#: Held-out sentences read at once.
_HELD_OUT_BLOCK = 256


@dataclass(frozen=True)
class Settings:
    """What pre-training is asked for.

    hidden_size: LSTM units in each direction. batch_size: sentences. learning_rate: Adam's at
    its height; None: as the text asks for, see `of_text`. dropout, word_dropout: as in training.
    sample: K, other words in each batch. frequent: `FREQUENT`; 1: every word is always predicted.
    emoji_epochs: of the second part, see `emoji`; 0 for none. compile: as in training.
    part: of the sentences, that an epoch reads, drawn anew each time.
    """

    hidden_size: int = 128
    epochs: int = 2
    batch_size: int | None = None
    learning_rate: float | None = None
    dropout: float = 0.2
    word_dropout: float = 0.2
    sample: int = 1024
    frequent: float = FREQUENT
    emoji_epochs: int = 8
    seed: int = 0
    compile: bool = False
    part: float = 1.0

    def of_text(self, sentences: int) -> Settings:
        """The settings for so many sentences to learn from, none of them None."""
        size, rate = LARGE_BATCH if sentences >= MANY_SENTENCES else SMALL_BATCH
        size = size if self.batch_size is None else self.batch_size
        rate = rate if self.learning_rate is None else self.learning_rate
        return replace(self, batch_size=size, learning_rate=rate)


#: What differs by default where training goes on from another encoder, on less text.
CONTINUED = {"epochs": 10, "emoji_epochs": 0}


@dataclass(frozen=True)
class Corpus:
    """Unlabelled text as a language model reads it.

    vocabulary: the words that are read, ids from 2, the most frequent first.
    store: token ids of the sentences of two tokens or more.
    counts: how often each of the W predicted words, ids 2 to W + 1, is seen, `[W]`.
    trained, held_out: numbers of the sentences to learn from and of those held out.
    """

    vocabulary: Vocabulary
    store: TokenStore
    counts: np.ndarray
    trained: np.ndarray
    held_out: np.ndarray

    @property
    def tokens(self) -> int:
        """Tokens to learn from."""
        return int(self.store.lengths_of(self.trained).sum())


def read_corpus(sentences: Iterable[Sequence[str]], seed: int) -> Corpus:
    """The corpus of sentences as token lists, in two passes over them.

    Raises DataError for fewer than `FEWEST_SENTENCES` sentences of two tokens or more.
    """
    vocabulary = Vocabulary.build(sentences, max_size=MOST_READ)
    store = build_store(
        (vocabulary.encode(tokens) for tokens in sentences if len(tokens) > 1), LONGEST
    )
    seen = np.bincount(store.tokens, minlength=len(vocabulary))[2:]
    predicted = min(int((seen >= FEWEST_SEEN).sum()), MOST_PREDICTED)
    if len(store) < FEWEST_SENTENCES or predicted < 2:
        raise DataError(
            f"found {len(store)} sentences of two words or more and {predicted} words seen "
            f"{FEWEST_SEEN} times or more; expected at least {FEWEST_SENTENCES} and 2 to pretrain "
            "on: give more text"
        )
    order = random_stream(seed, PRETRAINING_HELD).permutation(len(store))
    size = min(int(len(store) * _HELD_OUT_SHARE), _MOST_HELD_OUT)
    # Cut sentences count fewer times than the vocabulary was ordered by, which is no matter.
    counts = np.maximum(seen[:predicted], 1).astype(np.float64)
    return Corpus(vocabulary, store, counts, np.sort(order[size:]), np.sort(order[:size]))


class TwoWayLanguageModel(Objective):
    """The output side of a language model on a one-layer encoder.

    Args:
        encoder: one layer, without class tokens; its weights are not this module's.
        words: vectors of the words that may be predicted, `[W, e]`, to start from. They are the
            ids 2 to W + 1; other ids are read and never predicted.
        counts: how often each is seen in the text, `[W]`.
        sample: the K other words that each batch is compared with.
        frequent: see `FREQUENT`.
        seed: of their draws.
    """

    batches = "shuffled"
    uses_projection = False
    reads_tokens = True

    def __init__(
        self,
        encoder: TwoWayReader,
        words: Tensor,
        counts: np.ndarray,
        sample: int = 1024,
        frequent: float = FREQUENT,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self._read, self.seed = encoder.read_both_ways, seed
        half = encoder.sentence_size // 2
        self.maps = nn.ModuleList(nn.Linear(half, words.shape[1], bias=False) for _ in range(2))
        self.words = row_table(words)
        shares = counts / counts.sum()
        self._kept = np.sqrt(max(frequent, 1 / len(shares)) / shares).clip(max=1.0)
        predicted = shares * self._kept / (shares * self._kept).sum()
        self.bias = row_table(torch.from_numpy(np.log(predicted)).float()[:, None])
        weights = shares**FLATTENED
        self._cumulated = np.cumsum(weights / weights.sum())
        self._shares = weights / weights.sum()
        self.sample = min(sample, len(words))

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Loss of `batch.tokens` and `batch.lengths`; no further scalars."""
        assert batch.tokens is not None and batch.lengths is not None
        rng = random_stream(self.seed, PRETRAINING_WORDS, batch.step)
        if not len(batch.lengths):  # all sentences are other processes'
            return current_world().mean(torch.zeros(0, requires_grad=True)), {}
        chance = int(rng.integers(1 << 63))
        losses = self.losses(batch.tokens, batch.lengths, rng, chance)
        return current_world().mean(losses), {}

    def losses(
        self,
        tokens: np.ndarray,
        lengths: np.ndarray,
        rng: np.random.Generator,
        chance: int | None = None,
    ) -> Tensor:
        """Negative log-likelihood of each next word, `[M]` with gradient.

        tokens: ids of N sentences one after the other, `[sum of lengths]`; lengths: of the
        sentences, `[N]`; rng: draws the other words; chance: a number that decides, with a
        sentence and a place in it, whether the word there is predicted, so that one process
        decides as many; None: all are.
        """
        states, targets = self._predictions(tokens, lengths, chance)
        drawn, expected = self._draw(rng)
        distinct, place = np.unique(np.concatenate([targets, drawn]), return_inverse=True)
        rows = self.words(torch.from_numpy(distinct))
        bias = self.bias(torch.from_numpy(distinct)).squeeze(1)
        true, others = (torch.from_numpy(part) for part in np.split(place, [len(targets)]))
        right = (states * rows.index_select(0, true)).sum(1) + bias.index_select(0, true)
        # The true word is compared as if it had been drawn too.
        right = right - torch.from_numpy(np.log(self._expected(targets))).to(right)
        offsets = bias.index_select(0, others) - torch.from_numpy(np.log(expected)).to(bias)
        column = np.minimum(np.searchsorted(drawn, targets), len(drawn) - 1)
        itself = np.flatnonzero(drawn[column] == targets)
        same = torch.from_numpy(itself), torch.from_numpy(column[itself])
        losses: Tensor = _Losses.apply(states, rows.index_select(0, others), offsets, right, same)
        return losses

    def _predictions(
        self, tokens: np.ndarray, lengths: np.ndarray, chance: int | None = None
    ) -> tuple[Tensor, np.ndarray]:
        """Mapped states `[M, e]` of both directions and the words they are to predict `[M]`."""
        packing = Packing(lengths)
        starts = np.cumsum(lengths) - lengths
        sentences = _sentences(tokens, starts, lengths)[packing.order]
        starts = starts[packing.order]
        ids = tokens[starts[packing.row] + packing.time].astype(np.int64)
        states = self._read(torch.from_numpy(ids), packing)
        # Each half is in its own reading order, so the next token is the next in time.
        before = np.flatnonzero(packing.time < packing.lengths[packing.row] - 1)
        after = packing.offsets[packing.time[before] + 1] + packing.row[before]
        kept, targets = [], []
        for direction, read in enumerate((ids, ids[packing.reversed.numpy()])):
            target = read[after] - 2
            known = (target >= 0) & (target < len(self._shares))
            if chance is not None:
                place = sentences[packing.row[before]], packing.time[before]
                drawn = _uniform(chance, direction, *place)
                known &= drawn < self._kept[np.where(known, target, 0)]
            half = states[direction].index_select(0, torch.from_numpy(before[known]))
            kept.append(self.maps[direction](half))
            targets.append(target[known])
        return torch.cat(kept), np.concatenate(targets)

    def _draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Distinct words `[K' <= K]` drawn by their flattened shares, and how often expected."""
        spots = np.searchsorted(self._cumulated, rng.random(self.sample), side="right")
        drawn = np.unique(np.minimum(spots, len(self._shares) - 1))
        return drawn, self._expected(drawn)

    def _expected(self, words: np.ndarray) -> np.ndarray:
        """The chance that a word is among the distinct words of a sample."""
        return -np.expm1(self.sample * np.log1p(-self._shares[words]))


def _sentences(tokens: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """A number for each sentence that follows from its words alone, uint64 `[N]`."""
    places = np.arange(1, len(tokens) + 1) - np.repeat(starts, lengths)
    return np.add.reduceat(tokens.astype(np.uint64) * (places * places).astype(np.uint64), starts)


def _uniform(*numbers: Any) -> np.ndarray:
    """Numbers in [0, 1), `[n]`, that follow from whole ones, each `[n]` or one for all: the
    finaliser of SplitMix64 over each in turn."""
    state = np.zeros(1, dtype=np.uint64)
    for one in numbers:
        state = (state ^ np.asarray(one).astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
        state ^= state >> np.uint64(31)
    return (state >> np.uint64(11)) * 2.0**-53


class _Losses(torch.autograd.Function):
    """log(exp r + sum of exp(x . w + b) over the other words w) - r for each state x, `[M]`.

    Their scores `[M, K]` are most of a step: they are written once and worked on in place, and the
    gradients are two matrix products with what is left of them.

    Args: states `[M, e]`, words `[K, e]` and their b `[K]`, r `[M]`; which states (first) are not
    compared with which words (second), those that are to be predicted.
    """

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        states, words, offsets, right, same = given
        # A product with the offsets in it spares a copy of them for every state.
        ones = states.new_ones(len(states), 1)
        offset = torch.cat([words, offsets[:, None]], dim=1)
        scores = torch.cat([states, ones], dim=1) @ offset.t()
        scores[same] = -math.inf
        top = torch.maximum(scores.amax(1), right)
        scores.sub_(top[:, None]).exp_()
        own = (right - top).exp_()
        total = scores.sum(1) + own
        ctx.save_for_backward(states, words, scores, total, own)
        return top + total.log() - right

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        states, words, scores, total, own = ctx.saved_tensors
        share = (grads[0] / total)[:, None]
        both = scores.t() @ torch.cat([states * share, share], dim=1)
        of_right = own * share.squeeze(1) - grads[0]
        return (scores @ words) * share, both[:, :-1], both[:, -1], of_right, None


def steps_of_part(steps: int, part: float) -> int:
    """Of so many steps those of a part, one at least."""
    return max(1, round(part * steps))


class EqualBatches:
    """Every one of the `rows` `[N]` once an epoch in a new order of `seed`, in batches of sizes
    that differ by one at most: `batch_size` sentences at least, or all of them where they are
    fewer. part: of these batches, from the first on, that an epoch has.
    """

    def __init__(self, rows: np.ndarray, batch_size: int, seed: int, part: float = 1.0) -> None:
        self.rows, self.seed = rows, seed
        self.batches = len(rows) // min(batch_size, len(rows))
        self.steps = steps_of_part(self.batches, part)

    def epoch(self, number: int) -> Iterator[np.ndarray]:
        order = random_stream(self.seed, PRETRAINING_ORDER, number).permutation(self.rows)
        yield from np.array_split(order, self.batches)[: self.steps]


class WarmUpAndDecay(Callback):
    """Learning rate that rises to `rate` over the first steps and falls in a line to zero."""

    every_process = True

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def on_step_begin(self, trainer: Trainer, step: int) -> None:
        steps = trainer.epochs * trainer.batches.steps
        rise = max(1, min(WARM_UP, steps // 10))
        rate = self.rate * min(1.0, (trainer.steps_done + 1) / rise)
        for group in trainer.optimizer.param_groups:
            group["full_lr"] = rate * (1 - trainer.steps_done / steps)


class HeldOutLoss(Callback):
    """Adds `held_loss` to each epoch's record and reports it.

    It is the loss of the sentences held out, against the same other words at any time.
    """

    def __init__(
        self, model: TwoWayLanguageModel, corpus: Corpus, seed: int, progress: Progress
    ) -> None:
        self.model, self.corpus, self.seed, self.progress = model, corpus, seed, progress

    def on_epoch_end(self, trainer: Trainer, record: Record) -> None:
        loss = record["held_loss"] = self.loss(trainer)
        held = "none (no word to predict)" if loss is None else f"{loss:.4f}"
        self.progress.say(
            f"epoch {record['epoch']}: loss {record['loss']:.4f}, on held-out sentences {held}, "
            f"{record['seconds']:.1f} s"
        )

    def loss(self, trainer: Trainer) -> float | None:
        """Mean over blocks of the held-out sentences, without dropout; None where none of their
        words is frequent enough to be predicted."""
        trainer.encoder.eval()
        held_out, losses = self.corpus.held_out, []
        rng = random_stream(self.seed, PRETRAINING_HELD_WORDS)
        with torch.no_grad():
            for rows in np.array_split(held_out, -(-len(held_out) // _HELD_OUT_BLOCK)):
                block = self.model.losses(*self.corpus.store.take(rows), rng)
                losses += [float(block.mean())] * bool(len(block))
        return float(np.mean(losses)) if losses else None


def pretraining(
    corpus: Corpus,
    table: np.ndarray,
    settings: Settings,
    states: Path,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    share: TokenStore | None = None,
    init: str | None = None,
    ngrams: WordNgrams | None = None,
) -> Trainer:
    """The training of an encoder as a language model, as far as its states on disk go.

    table: word vectors of the vocabulary, float32 `[V, e]`, which stay as they are. ngrams: of the
    same words; their vectors learn, and are added to those of the words. Each record of the history
    has `epoch`, `loss` and `held_loss` in nats for each predicted word (against a sample), and
    `seconds`. states: folder of the states to resume from. share: the sentences that this process
    reads; None: those of the corpus. init: folder of the encoder to start from, which learned with
    the same word vectors.

    Raises RunError when all states that are there are damaged, and what `start_from` does.
    """
    progress = progress or Progress()
    settings = settings.of_text(len(corpus.trained))
    assert settings.batch_size is not None and settings.learning_rate is not None
    torch.manual_seed(settings.seed)
    words = torch.from_numpy(table)
    config = replace(
        resolve({}),
        hidden_size=settings.hidden_size,
        epochs=settings.epochs,
        batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        dropout=settings.dropout,
        word_dropout=settings.word_dropout,
        pooling="mean",
        seed=settings.seed,
        compile=settings.compile,
    )
    encoder = encoder_to_pretrain(words, config, ngrams)
    if init:
        start_from(encoder, init)
    predicted = words[2 : 2 + len(corpus.counts)]
    model = TwoWayLanguageModel(
        encoder,
        predicted,
        corpus.counts,
        sample=settings.sample,
        frequent=settings.frequent,
        seed=settings.seed,
    )
    saver = Checkpointer(states, 0, "pretraining", progress, every=SAVED_EVERY)
    trainer = Trainer(
        encoder,
        nn.Identity(),
        model,
        EqualBatches(corpus.trained, settings.batch_size, settings.seed, settings.part),
        share or corpus.store,
        None,
        config,
        [
            WarmUpAndDecay(settings.learning_rate),
            HeldOutLoss(model, corpus, settings.seed, progress),
            *callbacks,
            saver,
        ],
    )
    if saver.restore(trainer):
        steps = trainer.epochs * trainer.batches.steps
        progress.say(f"resuming after step {trainer.steps_done} of {steps}")
    return trainer
