"""Character n-grams of words, by id; two spellings of one word share some.

Many words are cut at once as whole numbers (`PackedNgrams`), few of them as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superconext.core.errors import RunError

#: The longest n-grams a saved vocabulary may have, in characters.
LONGEST = 64

#: From so many words on they are cut as numbers.
_MANY = 500

# Bits of a number that holds an n-gram.
_BITS = 63
# Slots of the hash table for each n-gram, at least.
_SLOTS = 4
# Fibonacci hashing: the golden ratio times 2^64 (Knuth, The Art of Computer Programming, 6.4).
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class WordNgrams:
    """N-grams of n words, ragged.

    ids: int64 `[total]`; word i has `ids[offsets[i]:offsets[i + 1]]`, its known n-grams.
    offsets: int64 `[n + 1]`.
    counts: int64 `[n]`, how many n-grams each word has, known or not.
    times: what they add to a word is so many times the mean of their vectors; None: their sum over
        the square root of their number.
    size: ids there are, of these and of other words; 0: not said.
    """

    ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    counts: NDArray[np.int64]
    times: float | None = None
    size: int = 0

    def scales(self, chosen: NDArray[np.int64]) -> NDArray[np.float32]:
        """What the sums of the chosen words' n-gram vectors are multiplied by, `[m]`."""
        counts = np.maximum(self.counts[chosen], 1)
        by_number = 1.0 / np.sqrt(counts) if self.times is None else self.times / counts
        return by_number.astype(np.float32)


class NgramVocabulary:
    """The n-grams of `<word>` (with its boundary marks) that training words have.

    ngrams: distinct n-grams in order of their ids, from 0. shortest, longest: their lengths in
    characters.
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

        looked_up = map(self._ids.get, chain.from_iterable(cut()), repeat(-1))
        ids = np.fromiter(looked_up, dtype=np.int64)
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
    return {
        marked[start : start + size]
        for size in range(shortest, longest + 1)
        for start in range(len(marked) - size + 1)
    }


class PackedNgrams:
    """The n-grams of a vocabulary as whole numbers: no text is cut, none is hashed.

    An n-gram of up to k characters is a number of k fields, one for each character's place in an
    alphabet, from 1 on, filled up with zeros. Ids are in a hash table of two arrays, in which
    all numbers are looked up together.

    ngrams: distinct n-grams in order of their ids, from 0; none longer than `longest`. shortest,
    longest: their lengths in characters.
    """

    def __init__(self, ngrams: Sequence[str], shortest: int, longest: int) -> None:
        self._shortest, self._longest = shortest, longest
        self._bits = _BITS // longest
        self._count = len(ngrams)
        codes, sizes = _codes(ngrams)
        # Of each code point, its place in the alphabet, 0 if it has none.
        self._places = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int32)
        self._places[codes] = 1
        self._characters = self._number(self._places)
        bits = max(_SLOTS * len(ngrams) - 1, 1).bit_length()
        self._down = np.uint64(64 - bits)
        self._keys = np.zeros(1 << bits, dtype=np.int64)
        self._ids = np.full(len(self._keys), -1, dtype=np.int64)
        if self._fits(self._characters):
            starts = np.cumsum(sizes) - sizes
            keys = np.zeros(len(ngrams), dtype=np.int64)
            for place in range(longest):
                some = np.flatnonzero(sizes > place)
                field = self._places[codes[starts[some] + place]].astype(np.int64)
                keys[some] |= field << self._shift(place)
            usual = np.flatnonzero(sizes <= longest)
            self._insert(keys[usual], usual)

    def find(
        self, words: Sequence[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None:
        """Known distinct n-grams of n words, written with their boundary marks.

        Returns None where the words have too many different characters for such numbers, else:
        the ids `[total]` in ascending order within each word, the word of each `[total]`, and
        how many distinct n-grams each word has, known or not, `[n]`.
        """
        codes, sizes = _codes(words)
        places = np.zeros(max(int(codes.max(initial=0)) + 1, len(self._places)), dtype=np.int32)
        places[codes] = 1
        places[: len(self._places)][self._places > 0] = 0
        # The vocabulary's characters keep their places; others come behind them.
        if not self._fits(self._number(places, self._characters)):
            return None
        places[: len(self._places)] += self._places
        fields = places[codes].astype(np.int64)
        word = np.repeat(np.arange(len(words)), sizes)
        left = np.repeat(np.cumsum(sizes), sizes) - np.arange(len(codes))
        key = np.zeros(len(codes), dtype=np.int64)
        keys, owners = [], []
        for length in range(1, min(self._longest, int(sizes.max(initial=0))) + 1):
            begun = len(codes) - length + 1
            key = key[:begun] | (fields[length - 1 :] << self._shift(length - 1))
            if length >= self._shortest:
                whole = left[:begun] >= length
                keys.append(key[whole])
                owners.append(word[:begun][whole])
        counts = np.maximum(sizes[:, None] - np.arange(self._shortest, self._longest + 1) + 1, 0)
        if not keys:
            empty = np.empty(0, dtype=np.int64)
            return empty, empty, counts.sum(axis=1)
        twice = _repeating(keys[0], owners[0])
        key, owner = np.concatenate(keys), np.concatenate(owners)
        counts = counts.sum(axis=1)
        if len(twice):
            chosen = np.zeros(len(words), dtype=bool)
            chosen[twice] = True
            key, owner = _distinct(key, owner, chosen[owner])
            counts[twice] = np.bincount(owner, minlength=len(words))[twice]
        ids = self._look_up(key)
        known = np.flatnonzero(ids >= 0)
        order = owner[known] * self._count + ids[known]
        order.sort()
        owner, ids = np.divmod(order, max(self._count, 1))
        return ids, owner, counts

    def _insert(self, keys: NDArray[np.int64], ids: NDArray[np.int64]) -> None:
        """Put distinct keys into the first free slots from their own on."""
        slots, mask = self._slots(keys), len(self._keys) - 1
        while len(keys):
            free = self._ids[slots] < 0
            self._ids[slots[free]] = ids[free]  # of several, the last one written has the slot
            mine = self._ids[slots] == ids
            self._keys[slots[mine]] = keys[mine]
            keys, ids, slots = keys[~mine], ids[~mine], (slots[~mine] + 1) & mask

    def _look_up(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """The id of each key, or -1."""
        slots, mask = self._slots(keys), len(self._keys) - 1
        ids = self._ids[slots]
        rest = np.flatnonzero((ids >= 0) & (self._keys[slots] != keys))
        slots, keys = slots[rest], keys[rest]
        while len(rest):
            slots = (slots + 1) & mask
            ids[rest] = self._ids[slots]
            on = (ids[rest] >= 0) & (self._keys[slots] != keys)
            rest, slots, keys = rest[on], slots[on], keys[on]
        return ids

    def _slots(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        return ((keys.view(np.uint64) * _GOLDEN) >> self._down).astype(np.int64)

    @staticmethod
    def _number(places: NDArray[np.int32], before: int = 0) -> int:
        """Replace the ones by before + 1, before + 2, ...; gives the last of these numbers."""
        some = np.flatnonzero(places)
        places[some] = np.arange(before + 1, before + 1 + len(some))
        return before + len(some)

    def _fits(self, characters: int) -> bool:
        return characters < 1 << self._bits

    def _shift(self, place: int) -> int:
        return self._bits * (self._longest - 1 - place)


def _repeating(keys: NDArray[np.int64], owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """The words that have one of these n-grams, their shortest, more than once.

    Where no two of the shortest are equal, no two that begin with them are.
    """
    # Equal ones have equal hashes; a word that is taken in for another reason is none the worse.
    marks = (owners << 31) | ((keys.view(np.uint64) * _GOLDEN) >> np.uint64(33)).astype(np.int64)
    marks.sort()
    return np.unique(marks[1:][marks[1:] == marks[:-1]] >> 31)


def _distinct(
    keys: NDArray[np.int64], owners: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The n-grams, those of the chosen places once for each word."""
    some, other = keys[chosen], owners[chosen]
    order = np.lexsort((some, other))
    some, other = some[order], other[order]
    first = np.append(True, (some[1:] != some[:-1]) | (other[1:] != other[:-1]))
    some, other = some[first], other[first]
    return np.append(keys[~chosen], some), np.append(owners[~chosen], other)


def _codes(texts: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Code points of texts, end to end, and how many each has."""
    data = "".join(texts).encode("utf-32-le", "surrogatepass")
    sizes = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    return np.frombuffer(data, dtype="<u4"), sizes
