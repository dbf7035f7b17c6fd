"""Token ids of more sentences than memory holds, in files.

A file holds int32 ids, one sentence after the other; where each begins stands in a second one,
int64 `[N + 1]`. Sentences are read from the file, not through a mapping of it: around an address
that is read the kernel maps as much as its cache keeps in one piece, up to 2 MiB, all of which
counts as the process's memory, so that 200 short sentences from all over a file cost 160 MB.
"""

from __future__ import annotations

import weakref
import zlib
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from superconext.core.files import write_array
from superconext.data.token_store import TokenStore
from superconext.text.vocabulary import UNK_ID

#: Tokens handled at once when a whole file is passed over.
CHUNK = 1 << 20


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
    """Write the given rows of `words` with other ids, each cut after `max_length` tokens.

    Args:
        words: ids of all sentences, and `offsets` `[N + 1]` of them.
        rows: sentences to write, `[n]`, ascending.
        ids: the new id of each old one, int32.

    A sentence without a token becomes the single unknown word, as in `build_store`.
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
