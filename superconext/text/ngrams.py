"""Character n-grams of words, by id: what two spellings of one word still share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superconext.errors import RunError

#: The longest n-grams a saved vocabulary may have, in characters.
LONGEST = 64


@dataclass(frozen=True)
class WordNgrams:
    """N-grams of n words, ragged.

    ids: int64 `[total]`; word i has `ids[offsets[i]:offsets[i + 1]]`, its known n-grams.
    offsets: int64 `[n + 1]`.
    counts: int64 `[n]`, how many distinct n-grams each word has, known or not.
    """

    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]


class NgramVocabulary:
    """The n-grams of `<word>` (with its boundary marks) that training words have.

    Args:
        ngrams: distinct n-grams in order of their ids, from 0.
        shortest, longest: their lengths in characters.
    """

    def __init__(self, ngrams: Sequence[str], shortest: int = 2, longest: int = 5) -> None:
        self.ngrams = tuple(ngrams)
        self.shortest, self.longest = shortest, longest
        self._ids = {ngram: i for i, ngram in enumerate(self.ngrams)}

    @classmethod
    def build(
        cls, words: Iterable[str], shortest: int = 2, longest: int = 5, min_words: int = 1
    ) -> NgramVocabulary:
        """Keep the n-grams of at least `min_words` distinct words."""
        seen: Counter[str] = Counter()
        for word in set(words):
            seen.update(_cut(word, shortest, longest))
        kept = sorted(ngram for ngram, count in seen.items() if count >= min_words)
        return cls(kept, shortest, longest)

    def __len__(self) -> int:
        return len(self.ngrams)

    def encode(self, words: Sequence[str]) -> WordNgrams:
        """Distinct n-grams of each word.

        A word in angle brackets (a placeholder such as `<url>`) has none.
        """
        known, find = self._ids.keys(), self._ids.__getitem__
        ids: list[int] = []
        offsets = np.zeros(len(words) + 1, dtype=np.int64)
        counts = np.zeros(len(words), dtype=np.int64)
        for position, word in enumerate(words):
            pieces = _cut(word, self.shortest, self.longest)
            ids.extend(sorted(map(find, known & pieces)))
            offsets[position + 1] = len(ids)
            counts[position] = len(pieces)
        return WordNgrams(np.array(ids, dtype=np.int64), offsets, counts)

    def to_json(self) -> dict[str, Any]:
        """A JSON document that `from_json` reads."""
        return {"shortest": self.shortest, "longest": self.longest, "ngrams": list(self.ngrams)}

    @classmethod
    def from_json(cls, data: Any) -> NgramVocabulary:
        """Read `to_json`'s document. Raises RunError when it is damaged."""
        ngrams = data.get("ngrams") if isinstance(data, dict) else None
        if (
            not isinstance(ngrams, list)
            or not all(isinstance(ngram, str) for ngram in ngrams)
            or len(set(ngrams)) != len(ngrams)
            or not isinstance(data.get("shortest"), int)
            or not isinstance(data.get("longest"), int)
            # The lengths are looped over for each word.
            or not 1 <= data["shortest"] <= data["longest"] <= LONGEST
        ):
            raise RunError(
                "n-grams: found no list of distinct texts with their lengths; expected the "
                "document as it was written: copy the run again"
            )
        return cls(ngrams, data["shortest"], data["longest"])


def _cut(word: str, shortest: int, longest: int) -> set[str]:
    if word.startswith("<") and word.endswith(">") and len(word) > 2:
        return set()
    marked = f"<{word}>"
    return {
        marked[start : start + size]
        for size in range(shortest, longest + 1)
        for start in range(len(marked) - size + 1)
    }
