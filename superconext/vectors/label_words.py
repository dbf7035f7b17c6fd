"""The word vectors of what a label is called: where a class's token may start."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from superconext.text.tokenize import Tokenizer
from superconext.text.vocabulary import Vocabulary
from superconext.vectors.table import WordVectors

#: Where a label's name is cut beside spaces. Not at figures: they are letters in Arabizi.
_CUT = re.compile(r"(?<=[a-z])(?=[A-Z])|[_./:-]+")


def label_vectors(
    labels: Sequence[str],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    table: np.ndarray,
    reserve: WordVectors,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean word vector of each label's name, "veryPositive" and "very_positive" being two words.

    Only whole words count: the n-grams of an English name in a table of another language
    say little, and are the same in "positive" and "negative". A name without a word that
    the vocabulary or the vectors know has no vector, nor have names that come to the same.

    Args:
        labels: names of the C classes.
        table: vectors of the vocabulary's words `[V, e]`; reserve: of other words.

    Returns:
        vectors float32 `[C, e]`, zeros where there is none; bool `[C]`, whether there is one.
    """
    vectors = np.zeros((len(labels), table.shape[1]), dtype=np.float32)
    for row, label in enumerate(labels):
        found = []
        for word in tokenizer(" ".join(_CUT.split(label)).lower()):
            if word.startswith("<"):  # a placeholder, such as that of a number
                continue
            if word in vocabulary:
                found.append(table[vocabulary.index(word)])
            elif word in reserve:
                found.append(reserve.lookup([word])[0][0])
        if found:
            vectors[row] = np.mean(found, axis=0)
    known = vectors.any(axis=1)
    _, group, size = np.unique(vectors, axis=0, return_inverse=True, return_counts=True)
    known &= size[group.reshape(-1)] == 1
    vectors[~known] = 0.0
    return vectors, known
