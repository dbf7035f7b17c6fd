"""Token ids of many sentences in one ragged array, in memory or in a file.

A file holds int32 ids, one sentence after the other; where each begins is in a second one,
int64 `[N + 1]`. Sentences are read from the file, not through a mapping of it: around an address
that is read the kernel maps as much as its cache keeps in one piece, up to 2 MiB, all of which
counts as the process's memory, so that 200 short sentences from all over a file cost 160 MB.
"""

from __future__ import annotations

import hashlib
import json
import weakref
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np

from superconext.core.files import write_array
from superconext.text.ngrams import WordNgrams
from superconext.text.tokenize import PAD_ID, UNK_ID, Tokenizer, Vocabulary

#: Tokens handled at once when a whole file is passed over.
CHUNK = 1 << 20


@dataclass(frozen=True)
class OovWords:
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
    oov_words: the words beyond the training vocabulary, or None.
    """

    tokens: np.ndarray
    offsets: np.ndarray
    oov_words: OovWords | None = None

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
        return TokenStore(tokens, np.append(0, np.cumsum(lengths)), self.oov_words)

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
    oov_words: OovWords | None = None,
) -> TokenStore:
    """Store sentences of token ids, each cut after `max_length` ids.

    A sentence without a token becomes the single unknown word: an LSTM cannot read nothing.
    """
    parts = []
    for sentence in sentences:
        ids = np.asarray(sentence[:max_length], dtype=np.int32)
        parts.append(ids if len(ids) else np.array([UNK_ID], dtype=np.int32))
    offsets = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    tokens = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
    return TokenStore(tokens, offsets, oov_words)


class TokenRows(Protocol):
    """The tokens of N training rows. `file_rows.TrainingRows` are those of a large file."""

    @property
    def tokenizer(self) -> Tokenizer:
        """What made the tokens."""

    @property
    def digest(self) -> str:
        """A hash that stands for all the tokens."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Sequence[str]]:
        """The tokens of each row."""

    def vocabulary(self, min_count: int) -> Vocabulary:
        """The words seen `min_count` times or more."""

    def store(self, vocabulary: Vocabulary, min_count: int, max_length: int) -> TokenStore:
        """Token ids `[N]` under the vocabulary that these rows have at `min_count`."""


class MemoryRows(list[list[str]]):
    """Token rows in memory: a list of the tokens of each row.

    beside: tokens of further texts, which are no rows, to train word vectors on.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        tokens: Iterable[list[str]],
        beside: Sequence[list[str]] = (),
    ) -> None:
        super().__init__(tokens)
        self.tokenizer, self.beside = tokenizer, beside

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()

    def vocabulary(self, min_count: int) -> Vocabulary:
        return Vocabulary.build(self, min_count=min_count)

    def store(self, vocabulary: Vocabulary, min_count: int, max_length: int) -> TokenStore:
        return build_store([vocabulary.encode(row) for row in self], max_length)


def text_of(rows: TokenRows, alone: bool) -> TokenRows | None:
    """What word vectors or an encoder may learn from: the rows and what is beside them; `alone`:
    the latter only, None where there is nothing."""
    beside = rows.beside if isinstance(rows, MemoryRows) else ()
    if not beside:
        return None if alone else rows
    return MemoryRows(rows.tokenizer, [*(() if alone else rows), *beside])


class IdFile:
    """int32 `[total]` in a file.

    ids: the same mapped, for whoever wants an array; all of it that was touched may count as
        the process's memory.
    """

    def __init__(self, path: Path) -> None:
        self._stream = path.open("rb", buffering=0)
        weakref.finalize(self, self._stream.close)
        nothing = path.stat().st_size == 0  # which cannot be mapped
        self.ids = np.empty(0, np.int32) if nothing else np.memmap(path, np.int32, "r")

    def __len__(self) -> int:
        return len(self.ids)

    def read(self, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The runs of so many ids that start there, one after the other, int32 `[total]`.

        Raises OSError where the file has become shorter.
        """
        ends = np.cumsum(lengths)
        found = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.int32)
        # A run that starts where the one before it ends is read with it.
        new = np.ones(len(starts), dtype=bool)
        new[1:] = starts[1:] != starts[:-1] + lengths[:-1]
        edges = [*(ends - lengths)[new].tolist(), len(found)]
        for start, (a, b) in zip(starts[new].tolist(), pairwise(edges), strict=True):
            self._stream.seek(start * found.itemsize)
            wanted = found[a:b]
            if self._stream.readinto(wanted.data) != wanted.nbytes:
                raise OSError(f"{self._stream.name}: shorter than it was; start again")
        return found


@dataclass(frozen=True)
class FileStore(TokenStore):
    """A token store whose `tokens` are those of `file`; made by `open_ids`."""

    file: IdFile | None = None

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        assert self.file is not None
        lengths = self.lengths_of(rows)
        return self.file.read(self.offsets[rows], lengths), lengths

    def checksum(self) -> int:
        assert self.file is not None
        found = 0
        for part in chunks(self.lengths):
            starts = self.offsets[part]
            found = zlib.crc32(self.file.read(starts, self.lengths[part]).data, found)
        return found


def open_ids(folder: Path) -> FileStore:
    """The store that `write_cut` made in `folder`. Raises OSError or ValueError if damaged."""
    file = IdFile(folder / "ids.bin")
    offsets = np.load(folder / "offsets.npy", allow_pickle=False)
    if offsets[-1] != len(file):
        raise ValueError("its files do not belong together")
    return FileStore(file.ids, offsets, None, file)


def write_cut(
    folder: Path,
    words: IdFile,
    offsets: np.ndarray,
    rows: np.ndarray,
    ids: np.ndarray,
    max_length: int,
) -> None:
    """Write the given rows `[n]`, ascending, of `words` with other ids, each cut after
    `max_length`.

    words: ids of all sentences, and `offsets` `[N + 1]` of them. ids: the new id of each old one,
    int32. A sentence without a token becomes the single unknown word, as in `build_store`.
    """
    lengths = np.minimum(offsets[rows + 1] - offsets[rows], max_length)
    with (folder / "ids.bin").open("wb") as stream:
        for part in chunks(lengths):
            kept = lengths[part]
            new = ids[words.read(offsets[rows[part]], kept)]
            if not kept.all():
                new = np.insert(new, (np.cumsum(kept) - kept)[kept == 0], UNK_ID)
            stream.write(new.astype(np.int32, copy=False).data)
    ends = np.cumsum(np.maximum(lengths, 1))
    write_array(folder / "offsets.npy", np.concatenate([[0], ends]).astype(np.int64))


def chunks(lengths: np.ndarray) -> list[slice]:
    """Slices over sentences of the given lengths `[n]`, of about `CHUNK` tokens each."""
    part = np.cumsum(lengths) // CHUNK
    cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(lengths)]
    return [slice(a, b) for a, b in pairwise(cuts) if b > a]
