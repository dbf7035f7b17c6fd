"""Vectors of words outside a table, composed of hashed character n-grams as in fastText.

Source: Bojanowski et al., "Enriching Word Vectors with Subword Information" (TACL 2017).
The hash is the one of the reference implementation, which is FNV-1a with one quirk: each
byte is widened as a *signed* 8-bit number, so every byte of a non-ASCII character flips
the upper 24 bits too. gensim does the same; files of either can be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from superconext.core.errors import VectorsError
from superconext.text.ngrams import WordNgrams

_FNV_OFFSET = 2166136261
_FNV_PRIME = 16777619

# Floats gathered at once while composing: bounds the working memory.
_GATHER_FLOATS = 1 << 24
# N-grams hashed at once where the buckets are few enough to be gathered all.
_HASHED = 1 << 20
# Rows looked through at once.
_SCANNED = 16_384
# From so many rows on scipy adds them up; its import would cost more than a few rows do.
_MANY_ROWS = 16_384

#: Characters of the longest n-gram; hashing takes room for as many numbers a character.
LONGEST = 100


class SubwordTable:
    """Vectors of hashed character n-grams.

    Args:
        buckets: `[B, d]`, float16 or float32 (float64 is narrowed); may be memory-mapped.
        min_n: shortest n-gram, in characters, with the word written `<word>`.
        max_n: longest n-gram.

    Raises:
        VectorsError: an empty or badly shaped table, or impossible n-gram lengths.
    """

    def __init__(self, buckets: npt.NDArray[Any], min_n: int, max_n: int) -> None:
        if buckets.ndim != 2 or 0 in buckets.shape or buckets.dtype.kind != "f":
            raise VectorsError(
                f"subword table has shape {buckets.shape} and type {buckets.dtype}; expected a "
                "float array [buckets, dimension] with at least one row; train or convert it again"
            )
        whole = all(isinstance(n, int | np.integer) for n in (min_n, max_n))
        if not whole or not 1 <= min_n <= max_n <= LONGEST:
            raise VectorsError(
                f"n-gram lengths are min_n={min_n!r:.40}, max_n={max_n!r:.40}; expected "
                f"1 <= min_n <= max_n <= {LONGEST}; choose such lengths"
            )
        self.buckets = buckets.astype(np.float32) if buckets.dtype.itemsize > 4 else buckets
        self.min_n = min_n
        self.max_n = max_n

    @property
    def dimension(self) -> int:
        """Length `d` of a vector."""
        return int(self.buckets.shape[1])

    def rows_in_use(self) -> npt.NDArray[np.int64]:
        """The buckets that are not all zeros, ascending."""
        starts = range(0, len(self.buckets), _SCANNED)
        used = [self.buckets[start : start + _SCANNED].any(axis=1) for start in starts]
        return np.flatnonzero(np.concatenate(used))

    def hashes(self, word: str) -> list[int]:
        """Bucket of each n-gram of `<word>`, in reading order, shorter first."""
        return self._hash_many([word])[0].tolist()

    def ngrams_of(self, words: Sequence[str], times: float) -> WordNgrams:
        """The buckets of words, for vectors of which a word gets `times` the mean."""
        ids, counts = self._hash_many(words)
        return WordNgrams(ids, np.append(0, np.cumsum(counts)), counts, times, len(self.buckets))

    def plus(self, change: npt.NDArray[np.float32]) -> SubwordTable:
        """The table with a change `[B, d]` added."""
        return SubwordTable(self.buckets + change, self.min_n, self.max_n)

    def composes(self, word: str) -> bool:
        """Whether a word has an n-gram, and so a vector."""
        # A lone bracket is not an n-gram.
        return len(word) + 2 >= self.min_n and (self.max_n > 1 or word != "")

    def compose_many(
        self, words: Sequence[str], word_vectors: npt.NDArray[Any] | None = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Vectors `[n, d]` float32 of n words, and whether each has an n-gram, bool `[n]`.

        A vector is the mean of the word's n-gram vectors, or zeros where there is none.
        `word_vectors` `[n, d]`, where given, take part in the mean, or are it: so fastText makes
        the vector of a word of its vocabulary.
        """
        vectors = np.zeros((len(words), self.dimension), dtype=np.float32)
        if word_vectors is not None:
            vectors += word_vectors
        has_ngram = np.zeros(len(words), dtype=bool)
        for at, ids, counts in self._batches(words):
            sums = self._sums(ids, counts)
            if word_vectors is not None:
                sums += word_vectors[at]
            sums /= (counts + (word_vectors is not None))[:, None].astype(np.float32)
            vectors[at] = sums
            has_ngram[at] = True
        return vectors, has_ngram

    def _sums(
        self, ids: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        """Sums `[n, d]` of the first `counts[0]` of the buckets `ids`, the next `counts[1]`, ..."""
        ends = np.cumsum(counts)
        if len(ids) < _MANY_ROWS:
            return np.add.reduceat(
                self.buckets[ids].astype(np.float32, copy=False), ends - counts, axis=0
            )
        try:
            from scipy.sparse import csr_matrix
        except ImportError:  # where an export answers: some words at a time
            half = len(counts) // 2
            if not half:
                part = self.buckets[ids].sum(axis=0, keepdims=True, dtype=np.float32)
                return part.astype(np.float32)
            parts_of = (
                (ids[: ends[half - 1]], counts[:half]),
                (ids[ends[half - 1] :], counts[half:]),
            )
            return np.concatenate([self._sums(*part) for part in parts_of])

        # Each distinct bucket is widened once; a sparse product adds them up without a copy.
        place = np.zeros(len(self.buckets), dtype=np.int32)
        place[ids] = 1
        distinct = np.flatnonzero(place)
        place[distinct] = np.arange(len(distinct))
        parts = np.ones(len(ids), dtype=np.float32), place[ids], np.append(0, ends)
        sums: npt.NDArray[np.float32] = csr_matrix(
            parts, shape=(len(counts), len(distinct))
        ) @ self.buckets[distinct].astype(np.float32, copy=False)
        return sums

    def _batches(
        self, words: Sequence[str]
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Yield (positions of words, their bucket ids end to end, ids for each word)."""
        longest = max(self.max_n - self.min_n + 1, 1)
        most = _GATHER_FLOATS // self.dimension
        if len(self.buckets) <= most:
            most = _HASHED
        start = 0
        while start < len(words):
            # As many words as surely have no more n-grams than that, or one.
            end, room = start, most
            while end < len(words) and (end == start or room >= longest * (len(words[end]) + 2)):
                room -= longest * (len(words[end]) + 2)
                end += 1
            ids, counts = self._hash_many(words[start:end])
            at = np.flatnonzero(counts)
            if len(at):
                yield at + start, ids, counts[at]
            start = end

    def _hash_many(
        self, words: Sequence[str]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """`hashes` of many words, end to end, and how many each has `[n]`.

        Column n - 1 of `values` goes through the n-grams of n characters from every beginning.
        """
        text = "".join([f"<{word}>" for word in words])
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
        lone = (codes >= 0xD800) & (codes < 0xE000)
        codes = np.where(lone, ord("?"), codes).astype(np.uint32)
        units, sizes = _utf8(codes)
        lengths = np.fromiter(map(len, words), dtype=np.int64, count=len(words)) + 2
        ends = np.cumsum(lengths)
        left = np.repeat(ends, lengths) - np.arange(len(codes))
        value = np.full(len(codes), _FNV_OFFSET, dtype=np.uint32)
        columns = range(self.min_n, self.max_n + 1)
        values = np.zeros((len(codes), len(columns)), dtype=np.uint32)
        for n in range(1, min(self.max_n, int(lengths.max(initial=0))) + 1):
            # N-grams that reach into the next word come out too, and are left out below.
            value = value[: len(codes) - n + 1]
            for unit, more in zip(units, sizes, strict=True):
                longer = (value ^ unit[n - 1 :]) * np.uint32(_FNV_PRIME)
                value = longer if more is None else np.where(more[n - 1 :], longer, value)
            if n >= self.min_n:
                values[: len(value), n - self.min_n] = value
        taken = left[:, None] >= np.array(columns)
        if self.min_n == 1:
            # A lone bracket is not an n-gram.
            taken[ends - lengths, 0] = taken[ends - 1, 0] = False
        counts = np.add.reduceat(taken.sum(axis=1), ends - lengths)
        return (values[taken] % np.uint32(len(self.buckets))).astype(np.int64), counts


def _utf8(
    codes: npt.NDArray[np.uint32],
) -> tuple[list[npt.NDArray[np.uint32]], list[npt.NDArray[np.bool_] | None]]:
    """First bytes of each code point, second bytes, ..., as far as there are any, each `[L]` and
    widened as signed 8-bit numbers; and which code points have that byte, None for all."""
    sizes = 1 + (codes >= 0x80) + (codes >= 0x800) + (codes >= 0x10000).astype(np.int64)
    most = int(sizes.max(initial=1))
    units = np.zeros((most, len(codes)), dtype=np.uint32)
    heads = (0x00, 0xC0, 0xE0, 0xF0)
    for size in range(1, most + 1):
        rows = np.flatnonzero(sizes == size)
        rest = codes[rows]
        for unit in range(size - 1, 0, -1):
            units[unit, rows] = 0x80 | (rest & 0x3F)
            rest = rest >> np.uint32(6)
        units[0, rows] = heads[size - 1] | rest
    units[units >= 0x80] |= np.uint32(0xFFFFFF00)
    return list(units), [None if not unit else sizes > unit for unit in range(most)]
