"""The second part of pre-training: emoji of unlabelled sentences as their classes.

An emoji tells what its writer felt, so it is a label that costs nothing. The sentences that hold
one of the most frequent emoji lose all of theirs, and the encoder, by now a language model, learns
with SuperLoss on balanced batches to bring sentences of the same emoji together: the same loss,
sampler and loop as with labels. A sentence with several emoji is given one of them by chance.

Source: Felbo et al. (2017), "Using millions of emoji occurrences to learn any-domain
representations for detecting sentiment, emotion and sarcasm", for emoji as labels; the loss and
the balanced batches are SuperConText's.

At the end a logistic regression on the sentence vectors learns to tell the emoji apart. Its scores
say which directions of the vectors tell feelings, which a classifier with few labels needs to know
(`emoji_scores`).
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from superconext.config.parameters import resolve
from superconext.core.progress import Progress
from superconext.core.random_streams import PRETRAINING_EMOJI, random_stream
from superconext.data.sampler import BalancedBatches
from superconext.data.token_store import TokenStore
from superconext.encoders.base import Encoder, sentence_vectors
from superconext.encoders.layers import projection_head
from superconext.objectives.superloss import SuperLoss
from superconext.probe.logistic_regression import of_unit_length
from superconext.text.characters import EMOJI, SKIN_TONES
from superconext.training.callbacks import Callback
from superconext.training.checkpoint import Checkpointer
from superconext.training.pretraining.language_model import (
    SAVED_EVERY,
    Corpus,
    Settings,
    WarmUpAndDecay,
)
from superconext.training.trainer import Trainer

#: Emoji that become classes: the most frequent ones, each in so many sentences.
MOST_CLASSES, FEWEST_OF_ONE = 32, 50

#: Sentences without which there is no second part.
FEWEST_SENTENCES = 1_000

#: Words that a sentence has beside its emoji.
_FEWEST_WORDS = 2

#: Rows of a batch, Adam's rate at its height, and the temperature of the loss.
BATCH_SIZE, LEARNING_RATE, TEMPERATURE = 256, 1e-3, 0.1

#: Sentences that the logistic regression is fitted to, at most, its C and its iterations.
MOST_SCORED, SCORES_C, SCORES_ITERATIONS = 40_000, 1.0, 100

_IS_EMOJI = re.compile(f"[{EMOJI}]").match
_TONES = frozenset(map(chr, SKIN_TONES))


@dataclass(frozen=True)
class EmojiRows:
    """Sentences without their emoji, and which emoji each had.

    store: of N sentences. labels: numbers of emoji, int64 `[N]`. names: the emoji, the most
    frequent first.
    """

    store: TokenStore
    labels: np.ndarray
    names: Sequence[str]


def emoji_rows(corpus: Corpus, seed: int) -> EmojiRows | None:
    """The sentences to learn from that hold emoji; None where they or their emoji are too few."""
    faces: dict[str, int] = {}
    kinds = np.full(len(corpus.vocabulary), -1, dtype=np.int64)
    for number, word in enumerate(corpus.vocabulary.words):
        if _IS_EMOJI(word):  # tones and what is joined to it make no other emoji
            kinds[number] = faces.setdefault(word[0], len(faces))
    rows = corpus.trained
    tokens, lengths = corpus.store.take(rows)
    kind, row = kinds[tokens], np.repeat(np.arange(len(rows)), lengths)
    words = np.bincount(row[kind < 0], minlength=len(rows))
    there = (kind >= 0) & (words >= _FEWEST_WORDS)[row]
    pairs = np.unique(np.stack([row[there], kind[there]]), axis=1)

    counts = np.bincount(pairs[1], minlength=len(faces))
    counts[[number for face, number in faces.items() if face in _TONES]] = 0
    chosen = np.argsort(-counts, kind="stable")[:MOST_CLASSES]
    chosen = chosen[counts[chosen] >= FEWEST_OF_ONE]
    place = np.full(len(faces), -1)
    place[chosen] = np.arange(len(chosen))
    pairs = pairs[:, place[pairs[1]] >= 0]
    # One emoji of each sentence: the first after a shuffle.
    pairs = random_stream(seed, PRETRAINING_EMOJI).permutation(pairs, axis=1)
    found, first = np.unique(pairs[0], return_index=True)
    labels = place[pairs[1, first]]
    if len(chosen) < 2 or len(found) < FEWEST_SENTENCES or len(np.unique(labels)) < len(chosen):
        return None
    kept = (kind < 0) & np.isin(row, found)
    offsets = np.append(0, np.cumsum(words[found]))
    found_faces = list(faces)  # in the order of their numbers
    return EmojiRows(TokenStore(tokens[kept], offsets), labels, [found_faces[k] for k in chosen])


def emoji_training(
    encoder: Encoder,
    rows: EmojiRows,
    settings: Settings,
    states: Path,
    progress: Progress,
    callbacks: Sequence[Callback] = (),
) -> Trainer:
    """The training of an encoder on emoji, as far as its states in the folder `states` go."""
    torch.manual_seed(settings.seed)  # whatever the first part has drawn
    config = replace(
        resolve({}),
        learning_rate=LEARNING_RATE,
        temperature=TEMPERATURE,
        epochs=settings.emoji_epochs,
        seed=settings.seed,
        compile=settings.compile,
    )
    batch = min(BATCH_SIZE, len(rows.labels))
    steps = len(rows.labels) // batch
    saver = Checkpointer(states, 0, "emoji", progress, every=SAVED_EVERY)
    trainer = Trainer(
        encoder,
        projection_head("linear", encoder.sentence_size),
        SuperLoss(TEMPERATURE),
        BalancedBatches(rows.labels, batch, steps, settings.seed),
        rows.store,
        rows.labels,
        config,
        [WarmUpAndDecay(LEARNING_RATE), *callbacks, saver],
    )
    if saver.restore(trainer):
        steps = trainer.epochs * trainer.batches.steps
        progress.say(f"resuming on emoji after step {trainer.steps_done} of {steps}")
    return trainer


def emoji_scores(encoder: Encoder, rows: EmojiRows, seed: int) -> np.ndarray:
    """Weights float32 `[K, d]` whose products with sentence vectors at unit length tell K emoji
    apart, as well as a logistic regression does.

    They are centred, as a constant added to all scores tells nothing, and scaled so that the scores
    vary as much in total as the vectors do.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    drawn = np.arange(len(rows.labels))
    if len(drawn) > MOST_SCORED:
        drawn = np.sort(random_stream(seed, PRETRAINING_EMOJI).choice(drawn, MOST_SCORED, False))
    tokens, lengths = rows.store.take(drawn)
    store = TokenStore(tokens, np.append(0, np.cumsum(lengths)))
    vectors = of_unit_length(sentence_vectors(encoder, store)).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=SCORES_C, max_iter=SCORES_ITERATIONS)
        weights = model.fit(vectors, rows.labels[drawn]).coef_.astype(np.float64)
    weights -= weights.mean(axis=0) if len(weights) > 1 else 0.0
    spread = (vectors @ weights.T).var(axis=0).sum()
    scale = np.sqrt(vectors.var(axis=0).sum() / spread) if spread > 0 else 0.0
    return (weights * scale).astype(np.float32)
