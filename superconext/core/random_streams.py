"""Named streams of random numbers: what NumPy draws in training comes from one of these.

A stream is NumPy's generator seeded by (seed, number of the stream, further numbers), so that
drawing more from one stream changes nothing in another. Two streams that never meet in one
training may share a number; their numbers are part of what makes a run repeatable and stay.
"""

from __future__ import annotations

import numpy as np

#: Order of the classes in a balanced batch, one for each batch.
CLASS_ORDER = 1
#: Order of a class's rows, one for each class and pass.
CLASS_ROWS = 2
#: Order of all rows, one for each pass, where batches are not balanced.
ALL_ROWS = 3
#: Vectors of words that the word vectors lack.
WORD_NOISE = 4
#: Sentences of the unlabelled pool.
POOL = 5
#: Rows of a large file that stand for all of them.
SAMPLE = 5
#: Sentences of unlabelled text that pre-training is judged on.
PRETRAINING_HELD = 5
#: Order in which texts are dealt into the folds of a cross-validation, one for each deal.
FOLD_ORDER = 6
#: Order of the sentences in pre-training, one for each epoch.
PRETRAINING_ORDER = 6
#: Words that pre-training compares with, one for each step.
PRETRAINING_WORDS = 7
#: The same for the sentences held back.
PRETRAINING_HELD_WORDS = 8
#: Keys that columns of n-gram counts are hashed by.
COLUMNS = 9
#: Labels drawn from soft ones, one draw for each epoch.
SOFT_LABELS = 10
#: Sentences that lose their emoji in pre-training, one draw for each step.
PRETRAINING_EMOJI = 11
#: Words of a pool's sentence that are hidden to be guessed, one draw for each step and row.
HIDDEN_WORDS = 12


def random_stream(seed: int, stream: int, *numbers: int) -> np.random.Generator:
    """The generator of a stream; `numbers` tell apart its passes, classes or steps."""
    return np.random.default_rng([seed, stream, *numbers])
