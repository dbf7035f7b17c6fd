"""Token ids of many sentences in one ragged array, padded only when a batch is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from superconext.text.vocabulary import Vocabulary

PAD = 0
UNKNOWN = 1


@dataclass(frozen=True)
class TokenStore:
    """Ragged token ids.

    tokens: int32 `[total]`, every sentence's ids one after the other.
    offsets: int64 `[N + 1]`, sentence i is `tokens[offsets[i]:offsets[i + 1]]`.
    extra: float32 `[U, d]` or None: word vectors of ids `V`, `V + 1`, ..., the words that
        the training vocabulary (size V) lacks but another source knows.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    extra: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Tokens in each sentence, int64 `[N]`, at least 1."""
        return np.diff(self.offsets)

    def pad(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(ids int64 `[n, T]` filled up with `PAD`, lengths int64 `[n]`) of the given rows."""
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        columns = np.arange(int(lengths.max()))
        inside = columns[None, :] < lengths[:, None]
        position = np.where(inside, starts[:, None] + columns[None, :], 0)
        return np.where(inside, self.tokens[position], PAD).astype(np.int64), lengths


def build_store(
    sentences: Iterable[Sequence[int] | np.ndarray],
    max_length: int,
    extra: np.ndarray | None = None,
) -> TokenStore:
    """Store sentences of token ids, each cut after `max_length` ids.

    A sentence without a token becomes the single id `UNKNOWN`, since an LSTM cannot read
    nothing.
    """
    parts = []
    for sentence in sentences:
        ids = np.asarray(sentence[:max_length], dtype=np.int32)
        parts.append(ids if len(ids) else np.array([UNKNOWN], dtype=np.int32))
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    tokens = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
    return TokenStore(tokens, offsets, extra)


def encode_tokens(
    token_lists: Iterable[Sequence[str]], vocabulary: Vocabulary, max_length: int
) -> TokenStore:
    """Store of tokenised sentences under a vocabulary; unknown tokens become `UNKNOWN`."""
    return build_store((vocabulary.encode(tokens) for tokens in token_lists), max_length)
