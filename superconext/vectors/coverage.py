"""Coverage of a text by word vectors, and the vectors of the names of labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from superconext.text.tokenize import Tokenizer
from superconext.text.vocabulary import Vocabulary
from superconext.vectors.table import WordVectors

#: Where a label's name is cut beside spaces. Not at figures: they are letters in Arabizi.
_CUT = re.compile(r"(?<=[a-z])(?=[A-Z])|[_./:-]+")


def count_words(token_lists: Iterable[Sequence[str]]) -> Counter[str]:
    """How often each word stands in a text."""
    return Counter(chain.from_iterable(token_lists))


def coverage(vectors: WordVectors, counts: Mapping[str, int], examples: int = 20) -> dict[str, Any]:
    """What of a text, whose words' `counts` are given, has a vector.

    Returns `types` and `tokens`, the size of the text, and for `exact` (the word as written),
    `any_case` (that, or a word equal but for case) and `served` (that, or composed of character
    n-grams) the counts and shares of both; `missing`, the most frequent words (with their counts;
    so many `examples`) that are not in the table in any case, equal counts by code point.
    """
    words = list(counts)
    # `restrict` gives the rows that words find exactly or but for case.
    listed = {word.casefold() for word in vectors.restrict(words).words}
    any_case = [word.casefold() in listed for word in words]
    subwords = vectors.subwords
    known_by = {
        "exact": vectors.known(words).tolist(),
        "any_case": any_case,
        "served": [
            ok or (subwords is not None and subwords.composes(word))
            for word, ok in zip(words, any_case, strict=True)
        ],
    }
    tokens = sum(counts.values())
    report: dict[str, Any] = {"types": len(words), "tokens": tokens}
    for name, flags in known_by.items():
        of_types = sum(flags)
        of_tokens = sum(counts[word] for word, ok in zip(words, flags, strict=True) if ok)
        report[name] = {
            "types": of_types,
            "tokens": of_tokens,
            "type_share": of_types / max(len(words), 1),
            "token_share": of_tokens / max(tokens, 1),
        }
    absent = [word for word, ok in zip(words, any_case, strict=True) if not ok]
    absent.sort(key=lambda word: (-counts[word], word))
    report["missing"] = [[word, counts[word]] for word in absent[:examples]]
    return report


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
        word_vectors = []
        for word in tokenizer(" ".join(_CUT.split(label)).lower()):
            if word.startswith("<"):  # a placeholder, such as that of a number
                continue
            if word in vocabulary:
                word_vectors.append(table[vocabulary.index(word)])
            elif word in reserve:
                word_vectors.append(reserve.lookup([word])[0][0])
        if word_vectors:
            vectors[row] = np.mean(word_vectors, axis=0)
    known = vectors.any(axis=1)
    _, group, size = np.unique(vectors, axis=0, return_inverse=True, return_counts=True)
    known &= size[group.reshape(-1)] == 1
    vectors[~known] = 0.0
    return vectors, known
