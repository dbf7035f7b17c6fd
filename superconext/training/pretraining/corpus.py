"""Unlabelled text as a language model reads it: ids, the words it may predict, a part held back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from superconext.core.errors import DataError
from superconext.data.token_store import TokenStore, build_store
from superconext.text.vocabulary import Vocabulary

#: Most words that are read, and that are predicted; the rarer ones are read as unknown.
MOST_READ, MOST_PREDICTED = 200_000, 50_000

#: A word seen fewer times is read and not predicted: of it nothing general can be learned.
FEWEST_SEEN = 3

#: Tokens kept of a sentence.
LONGEST = 200

#: Sentences without which there is nothing to learn, and share and number held back at most.
FEWEST_SENTENCES = 100
_HELD_SHARE, _MOST_HELD = 0.02, 2_000


@dataclass(frozen=True)
class Corpus:
    """words: ids from 2, the most frequent first; store: their ids, of sentences of two tokens
    or more; counts: how often each of the predicted words is seen `[W]`, ids 2 to W + 1;
    trained, held: numbers of the sentences to learn from and of those to judge on.
    """

    vocabulary: Vocabulary
    store: TokenStore
    counts: np.ndarray
    trained: np.ndarray
    held: np.ndarray

    @property
    def tokens(self) -> int:
        """Tokens to learn from."""
        return int(self.store.lengths_of(self.trained).sum())


def read_corpus(sentences: Iterable[Sequence[str]], seed: int) -> Corpus:
    """Two passes over token lists.

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
    order = np.random.default_rng([seed, 5]).permutation(len(store))
    held = min(int(len(store) * _HELD_SHARE), _MOST_HELD)
    # Cut sentences count fewer times than the vocabulary was ordered by, which is no matter.
    counts = np.maximum(seen[:predicted], 1).astype(np.float64)
    return Corpus(vocabulary, store, counts, np.sort(order[held:]), np.sort(order[:held]))
