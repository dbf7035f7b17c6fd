"""The second part of pre-training: emoji of unlabelled sentences as their classes.

The sentences that hold one of the most frequent emoji lose all of theirs, and the encoder, by now a
language model, learns with SuperLoss on balanced batches to bring sentences of the same emoji
together: the same loss, sampler and loop as with labels. A sentence with several emoji is given one
of them by chance. `vectors.emoji` has the sentences and the source.

At the end a logistic regression on the sentence vectors learns to tell the emoji apart
(`emoji_scores`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from superconext.config.parameters import resolve
from superconext.core.progress import Progress
from superconext.data.sampler import BalancedBatches
from superconext.encoders.base import Encoder, sentence_vectors
from superconext.encoders.layers import projection_head
from superconext.objectives.superloss import SuperLoss
from superconext.training.callbacks import Callback
from superconext.training.checkpoint import Checkpointer
from superconext.training.pretraining.language_model import (
    SAVED_EVERY,
    Corpus,
    Settings,
    WarmUpAndDecay,
    steps_of_part,
)
from superconext.training.trainer import Trainer
from superconext.vectors.emoji import EmojiRows, rows_of, scores_of

#: Sentences without which there is no second part, and of an emoji, that it becomes a class.
FEWEST_SENTENCES, FEWEST_OF_ONE = 1_000, 50

#: Rows of a batch, Adam's rate at its height, and the temperature of the loss.
BATCH_SIZE, LEARNING_RATE, TEMPERATURE = 256, 1e-3, 0.1

#: How much the scores vary against the sentence vectors. Emoji are in these already: at 1 the
#: scores gain -0.1 to 0.3 points more on sentiment, and cost twice as much on topics with few rows
#: (scripts/results/emoji_scores.csv).
SCORES_SIZE = 0.5


def emoji_rows(corpus: Corpus, seed: int) -> EmojiRows | None:
    """The sentences to learn from that hold emoji; None where they or their emoji are too few."""
    tokens, lengths = corpus.store.take(corpus.trained)
    words = corpus.vocabulary.words
    return rows_of(words, tokens, lengths, seed, FEWEST_SENTENCES, FEWEST_OF_ONE)


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
    steps = steps_of_part(len(rows.labels) // batch, settings.part)
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
    """The `scores_of` an encoder's sentence vectors, float32 `[K, d]`."""
    some = rows.drawn(seed)
    return scores_of(sentence_vectors(encoder, some.store), some.labels, SCORES_SIZE)
