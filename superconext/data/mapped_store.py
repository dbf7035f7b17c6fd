"""Token ids of more sentences than memory holds, in files that are mapped into it.

A file holds int32 ids, one sentence after the other; where each begins stands in a second one,
int64 `[N + 1]`. Pages that were read stay mapped and would count as the process's memory until
the whole file does, so they are given back every `KEPT` bytes; the system's cache keeps them as
long as it has room.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from superconext.data.token_store import TokenStore
from superconext.files import write_array
from superconext.text.vocabulary import UNK_ID

#: Bytes of pages that stay mapped, about.
KEPT = 1 << 25
#: What the kernel maps around an address that is read, at most.
_AROUND = 1 << 16
#: Sentences from anywhere in a file that are read before pages are given back.
_ROWS = KEPT // _AROUND
#: Tokens handled at once when a whole file is passed over.
CHUNK = 1 << 20


@dataclass(frozen=True)
class MappedStore(TokenStore):
    """A token store whose `tokens` are those of `file`; made by `open_ids`."""

    file: MappedFile | None = field(default=None, compare=False)

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        some = [self._take(rows[k : k + _ROWS]) for k in range(0, max(len(rows), 1), _ROWS)]
        if len(some) == 1:
            return some[0]
        tokens, lengths = zip(*some, strict=True)
        return np.concatenate(tokens), np.concatenate(lengths)

    def _take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = super().take(rows)
        if self.file is not None:
            self.file.was_read(int(found[1].sum()), len(rows))
        return found


class MappedFile:
    """int32 `[total]` in a file, mapped for reading.

    ids: the numbers.
    """

    def __init__(self, path: Path) -> None:
        self._touched = 0
        self._map: mmap.mmap | None = None
        if path.stat().st_size == 0:  # nothing cannot be mapped
            self.ids = np.empty(0, dtype=np.int32)
            return
        with path.open("rb") as stream:
            self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        self.ids = np.frombuffer(self._map, dtype=np.int32)

    def was_read(self, count: int, places: int = 1) -> None:
        """Count ids that were read, in runs at so many places, and give all pages back when
        they are many."""
        self._touched += count * self.ids.itemsize + places * _AROUND
        if self._touched >= KEPT and self._map is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
            self._touched = 0


def open_ids(folder: Path) -> MappedStore:
    """The store that `write_cut` made in `folder`. Raises OSError or ValueError if damaged."""
    file = MappedFile(folder / "ids.bin")
    offsets = np.load(folder / "offsets.npy", allow_pickle=False)
    if offsets[-1] != len(file.ids):
        raise ValueError("its files do not belong together")
    return MappedStore(file.ids, offsets, None, file)


def write_cut(
    folder: Path,
    words: MappedFile,
    offsets: np.ndarray,
    rows: np.ndarray,
    ids: np.ndarray,
    max_length: int,
) -> None:
    """Write the given rows of `words` with other ids, each cut after `max_length` tokens.

    Args:
        words: ids of all sentences, and `offsets` `[N + 1]` of them.
        rows: sentences to write, `[n]`, ascending.
        ids: the new id of each old one, int32.

    A sentence without a token becomes the single unknown word, as in `build_store`.
    """
    starts, whole = offsets[rows], offsets[rows + 1] - offsets[rows]
    lengths = np.minimum(whole, max_length)
    ends = np.cumsum(np.maximum(lengths, 1))
    with (folder / "ids.bin").open("wb") as stream:
        for part in chunks(whole):
            kept = lengths[part]
            first = np.cumsum(kept) - kept
            position = np.repeat(starts[part] - first, kept) + np.arange(int(kept.sum()))
            new = ids[words.ids[position]]
            if not kept.all():
                new = np.insert(new, first[kept == 0], UNK_ID)
            stream.write(new.astype(np.int32, copy=False).data)
            words.was_read(int(whole[part].sum()))
    write_array(folder / "offsets.npy", np.concatenate([[0], ends]).astype(np.int64))


def chunks(lengths: np.ndarray) -> list[slice]:
    """Slices over sentences of the given lengths `[n]`, of about `CHUNK` tokens each."""
    part = np.cumsum(lengths) // CHUNK
    cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(lengths)]
    return [slice(a, b) for a, b in pairwise(cuts) if b > a]
