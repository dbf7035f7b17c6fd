"""Token ids of many sentences in one ragged array, padded only when a batch is drawn."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from superconext.text.ngrams import WordNgrams
from superconext.text.vocabulary import PAD_ID, UNK_ID


@dataclass(frozen=True)
class Newcomers:
    """Words the training vocabulary (of size V) lacks; they have the ids V, V + 1, ...

    vectors: float32 `[U, e]`, zeros for a word no source knows.
    known: bool `[U]`, whether a source knows the word.
    ngrams: each word's character n-grams, or None where the encoder has none.
    """

    vectors: np.ndarray
    known: np.ndarray
    ngrams: WordNgrams | None = None

    def __len__(self) -> int:
        return len(self.vectors)


@dataclass(frozen=True)
class TokenStore:
    """Ragged token ids.

    tokens: int32 `[total]`, every sentence's ids one after the other.
    offsets: int64 `[N + 1]`, sentence i is `tokens[offsets[i]:offsets[i + 1]]`.
    newcomers: the words beyond the training vocabulary, or None.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    newcomers: Newcomers | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens in each sentence, int64 `[N]`, at least 1."""
        return np.diff(self.offsets)

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Tokens in each of the given sentences, int64 `[n]`."""
        return self.offsets[rows + 1] - self.offsets[rows]

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(ids of the given sentences one after the other, int32; lengths int64 `[n]`)."""
        lengths = self.lengths_of(rows)
        ends = np.cumsum(lengths)
        shift = np.repeat(self.offsets[rows] - (ends - lengths), lengths)
        return self.tokens[np.arange(len(shift)) + shift], lengths

    def subset(self, rows: np.ndarray) -> TokenStore:
        """A store of the given sentences alone."""
        tokens, lengths = self.take(rows)
        return TokenStore(tokens, np.append(0, np.cumsum(lengths)), self.newcomers)

    def checksum(self) -> int:
        """CRC-32 of the ids of all sentences."""
        return zlib.crc32(np.ascontiguousarray(self.tokens).data)

    def distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """The first of the sentences of the same ids, int64 `[D]` ascending, and which of these
        each sentence is like, int64 `[N]`."""
        data, size = self.tokens.tobytes(), self.tokens.itemsize
        edges = (self.offsets * size).tolist()
        number: dict[bytes, int] = {}
        place = np.fromiter(
            (number.setdefault(data[a:b], len(number)) for a, b in pairwise(edges)),
            dtype=np.int64,
            count=len(self),
        )
        first = np.full(len(number), len(self), dtype=np.int64)
        np.minimum.at(first, place, np.arange(len(self)))
        return first, place

    def pad(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(ids int64 `[n, T]` filled up with `PAD_ID`, lengths int64 `[n]`) of given rows."""
        tokens, lengths = self.take(rows)
        ids = np.full((len(rows), int(lengths.max())), PAD_ID, dtype=np.int64)
        ids[np.arange(ids.shape[1]) < lengths[:, None]] = tokens
        return ids, lengths


def build_store(
    sentences: Iterable[Sequence[int] | np.ndarray],
    max_length: int,
    newcomers: Newcomers | None = None,
) -> TokenStore:
    """Store sentences of token ids, each cut after `max_length` ids.

    A sentence without a token becomes the single unknown word, since an LSTM cannot read
    nothing.
    """
    parts = []
    for sentence in sentences:
        ids = np.asarray(sentence[:max_length], dtype=np.int32)
        parts.append(ids if len(ids) else np.array([UNK_ID], dtype=np.int32))
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    tokens = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
    return TokenStore(tokens, offsets, newcomers)
