"""Character n-grams of words, by id: what two spellings of one word still share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, repeat
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superconext.core.errors import RunError
from superconext.text.packed_ngrams import PackedNgrams

#: The longest n-grams a saved vocabulary may have, in characters.
LONGEST = 64

#: From so many words on they are cut as numbers.
_MANY = 500

#: Characters of the longest words, boundary marks included, that are cut by a template.
_TEMPLATES = 40


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
        self._ids = dict(zip(self.ngrams, range(len(self.ngrams)), strict=True))
        self._packed: PackedNgrams | None = None

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
        if len(words) >= _MANY:
            if self._packed is None:
                self._packed = PackedNgrams(self.ngrams, self.shortest, self.longest)
            cut_at_once = self._packed.find(
                ["" if word[:1] == "<" and _whole(word) else f"<{word}>" for word in words]
            )
            if cut_at_once is not None:
                ids, owners, sizes = cut_at_once
                return WordNgrams(ids, _offsets(owners, len(words)), sizes)
        counts: list[int] = []

        def cut() -> Iterator[Collection[str]]:
            for word in words:
                ngrams = _cut(word, self.shortest, self.longest)
                counts.append(len(ngrams))
                yield ngrams

        found = map(self._ids.get, chain.from_iterable(cut()), repeat(-1))
        ids = np.fromiter(found, dtype=np.int64)
        owners = np.repeat(np.arange(len(words)), counts)[ids >= 0]
        # In the order of the words, and of the ids in each.
        base = owners * len(self)
        ids = np.sort(base + ids[ids >= 0]) - base
        return WordNgrams(ids, _offsets(owners, len(words)), np.array(counts, dtype=np.int64))

    def to_json(self) -> dict[str, Any]:
        """A JSON document that `from_json` reads."""
        return {"shortest": self.shortest, "longest": self.longest, "ngrams": list(self.ngrams)}

    @classmethod
    def from_json(cls, data: Any) -> NgramVocabulary:
        """Read `to_json`'s document. Raises RunError when it is damaged."""
        ngrams = data.get("ngrams") if isinstance(data, dict) else None
        if (
            not isinstance(ngrams, list)
            or not set(map(type, ngrams)) <= {str}
            or not isinstance(data.get("shortest"), int)
            or not isinstance(data.get("longest"), int)
            # The lengths are looped over for each word.
            or not 1 <= data["shortest"] <= data["longest"] <= LONGEST
        ):
            raise _damage()
        result = cls(ngrams, data["shortest"], data["longest"])
        if len(result._ids) != len(ngrams):
            raise _damage()
        return result


def _damage() -> RunError:
    return RunError(
        "n-grams: found no list of distinct texts with their lengths; expected the document as it "
        "was written: copy the run again"
    )


def _whole(word: str) -> bool:
    return word.startswith("<") and word.endswith(">") and len(word) > 2


def _offsets(owners: NDArray[np.int64], words: int) -> NDArray[np.int64]:
    """Where each word's n-grams begin and end, given the word of each."""
    return np.append(0, np.cumsum(np.bincount(owners, minlength=words))).astype(np.int64)


def _cut(word: str, shortest: int, longest: int) -> Collection[str]:
    """The distinct n-grams of a word."""
    if _whole(word):
        return ()
    marked = f"<{word}>"
    first = len(marked) - shortest + 1
    if first < 2 or len(marked) > _TEMPLATES:
        return {
            marked[start : start + size]
            for size in range(shortest, longest + 1)
            for start in range(len(marked) - size + 1)
        }
    ngrams: tuple[str, ...] = _template(len(marked), shortest, longest)(marked)
    # Where no two of the shortest are equal, no two that begin with them are.
    return ngrams if len(set(ngrams[:first])) == first else set(ngrams)


@lru_cache(maxsize=1024)
def _template(length: int, shortest: int, longest: int) -> itemgetter[Any]:
    """What cuts text of so many characters into its n-grams, shorter first."""
    return itemgetter(
        *(
            slice(start, start + size)
            for size in range(shortest, longest + 1)
            for start in range(length - size + 1)
        )
    )
