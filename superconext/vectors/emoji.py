"""Emoji of unlabelled text as labels of its sentences.

An emoji tells what its writer felt, so it is a label that costs nothing (Felbo et al., 2017, "Using
millions of emoji occurrences to learn any-domain representations for detecting sentiment, emotion
and sarcasm"). Sentences lose all of theirs, and a logistic regression learns from their vectors
which they had. Its scores tell which directions of the vectors tell feelings, which a classifier
with few labels needs to know. They are learned of mean word vectors where those are trained, and of
an encoder's sentence vectors at the end of its pretraining, which learns from emoji itself.
"""

from __future__ import annotations

import re
import warnings
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from superconext.core.random_streams import PRETRAINING_EMOJI, random_stream
from superconext.data.token_store import TokenStore
from superconext.probe.logistic_regression import of_unit_length
from superconext.text.characters import EMOJI, SKIN_TONES

#: Emoji that become classes at most: the most frequent ones.
MOST_CLASSES = 32

#: Sentences with emoji, in all and for each emoji, from which on word vectors get scores. Those of
#: 540 sentences with 25 emoji, out of 150,000 words, gained 2 points with 8 rows per class.
FEWEST_SENTENCES, FEWEST_OF_ONE = 100, 10

#: Sentences that the logistic regression is fitted to, at most, its C and its iterations.
MOST_SCORED, SCORES_C, SCORES_ITERATIONS = 40_000, 1.0, 100

#: Sentences with emoji that are kept in memory, at most: the first ones of the text.
_MOST_READ = 400_000

#: Words that a sentence has beside its emoji.
_FEWEST_WORDS = 2

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

    def drawn(self, seed: int) -> EmojiRows:
        """At most `MOST_SCORED` of the sentences."""
        if len(self.labels) <= MOST_SCORED:
            return self
        numbers = np.arange(len(self.labels))
        stream = random_stream(seed, PRETRAINING_EMOJI)
        numbers = np.sort(stream.choice(numbers, MOST_SCORED, replace=False))
        tokens, lengths = self.store.take(numbers)
        store = TokenStore(tokens, np.append(0, np.cumsum(lengths)))
        return EmojiRows(store, self.labels[numbers], self.names)


def rows_of(
    words: Sequence[str],
    tokens: np.ndarray,
    lengths: np.ndarray,
    seed: int,
    fewest_sentences: int,
    fewest_of_one: int,
) -> EmojiRows | None:
    """The sentences that hold emoji; None where they or their emoji are too few.

    Of a sentence with several emoji one is drawn.

    Args:
        words: by their ids.
        tokens: ids of all sentences, one after another, int `[T]`. lengths: of each, `[N]`.
        fewest_sentences, fewest_of_one: that hold emoji, all and of each emoji.
    """
    faces: dict[str, int] = {}
    kinds = np.full(len(words), -1, dtype=np.int64)
    for number, word in enumerate(words):
        if _IS_EMOJI(word):  # tones and what is joined to it make no other emoji
            kinds[number] = faces.setdefault(word[0], len(faces))
    kind, row = kinds[tokens], np.repeat(np.arange(len(lengths)), lengths)
    beside = np.bincount(row[kind < 0], minlength=len(lengths))
    there = (kind >= 0) & (beside >= _FEWEST_WORDS)[row]
    pairs = np.unique(np.stack([row[there], kind[there]]), axis=1)

    counts = np.bincount(pairs[1], minlength=len(faces))
    counts[[number for face, number in faces.items() if face in _TONES]] = 0
    chosen = np.argsort(-counts, kind="stable")[:MOST_CLASSES]
    chosen = chosen[counts[chosen] >= fewest_of_one]
    place = np.full(len(faces), -1)
    place[chosen] = np.arange(len(chosen))
    pairs = pairs[:, place[pairs[1]] >= 0]
    # One emoji of each sentence: the first after a shuffle.
    pairs = random_stream(seed, PRETRAINING_EMOJI).permutation(pairs, axis=1)
    found, first = np.unique(pairs[0], return_index=True)
    # An emoji that is always beside others may be drawn of no sentence.
    drawn, labels = np.unique(place[pairs[1, first]], return_inverse=True)
    chosen = chosen[drawn]
    if len(chosen) < 2 or len(found) < fewest_sentences:
        return None
    kept = (kind < 0) & np.isin(row, found)
    offsets = np.append(0, np.cumsum(beside[found]))
    found_faces = list(faces)  # in the order of their numbers
    return EmojiRows(TokenStore(tokens[kept], offsets), labels, [found_faces[k] for k in chosen])


def rows_of_lists(
    token_lists: Iterable[Sequence[str]], known: Iterable[str], seed: int
) -> tuple[EmojiRows, list[str]] | None:
    """The sentences that hold an emoji of the `known` words, and the words of their ids; None where
    they are too few."""
    faces = {word for word in known if _IS_EMOJI(word)}
    numbers: dict[str, int] = {}
    ids, lengths = array("i"), array("i")
    for tokens in token_lists if faces else ():
        if not faces.isdisjoint(tokens):
            ids.extend([numbers.setdefault(token, len(numbers)) for token in tokens])
            lengths.append(len(tokens))
            if len(lengths) == _MOST_READ:
                break
    if len(lengths) < FEWEST_SENTENCES:
        return None
    words, flat = list(numbers), np.array(ids, dtype=np.int32)
    fewest = FEWEST_SENTENCES, FEWEST_OF_ONE
    rows = rows_of(words, flat, np.array(lengths, dtype=np.int64), seed, *fewest)
    return None if rows is None else (rows.drawn(seed), words)


def scores_of(vectors: np.ndarray, labels: np.ndarray, size: float = 1.0) -> np.ndarray:
    """Weights float32 `[K, d]` whose products with sentence vectors at unit length tell K emoji
    apart, as well as a logistic regression does.

    They are centred, as a constant added to all scores tells nothing, and scaled so that the scores
    vary `size` times as much in total, by standard deviation, as the vectors do.

    Args:
        vectors: of sentences `[N, d]`. labels: which emoji each had, int `[N]`, 0 to K - 1.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    vectors = of_unit_length(vectors).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=SCORES_C, max_iter=SCORES_ITERATIONS)
        weights = model.fit(vectors, labels).coef_.astype(np.float64)
    weights -= weights.mean(axis=0) if len(weights) > 1 else 0.0
    spread = (vectors @ weights.T).var(axis=0).sum()
    scale = size * np.sqrt(vectors.var(axis=0).sum() / spread) if spread > 0 else 0.0
    return (weights * scale).astype(np.float32)
