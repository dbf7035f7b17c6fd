"""Keyed hashes of training texts, by which a run recognises them.

A text is what the run's tokenizer makes of it: two texts of the same tokens are one to the run.
Of each only a keyed hash of 64 bits is kept (BLAKE2b, RFC 7693). The key follows from all texts
together: equal texts have other hashes in another run, and no table made in advance serves. No
text can be read back, but whoever has a run and a text can see whether it was learned from. That
is the purpose; what is given away (`export`, `push`) therefore goes without the hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

_KEY, _HASH = 16, 8  # bytes


@dataclass(frozen=True)
class SeenTexts:
    """Hashes of the distinct texts of each split, uint64 `[n]`, ascending, and their key."""

    key: bytes
    splits: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, splits: Mapping[str, Iterable[Sequence[str]]]) -> SeenTexts:
        """Those of texts that are lists of tokens; a text without a token is left out."""
        digests = {name: b"".join(_digests(texts)) for name, texts in splits.items()}
        key = hashlib.blake2b(b"".join(digests.values()), digest_size=_KEY).digest()
        hashes = {
            name: np.unique(
                _hashes((joined[i : i + _KEY] for i in range(0, len(joined), _KEY)), key)
            )
            for name, joined in digests.items()
        }
        return cls(key, hashes)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> SeenTexts:
        """What `arrays` gave. Raises ValueError for anything else."""
        splits = dict(arrays)
        key = splits.pop("key", np.empty(0))
        if key.dtype != np.uint8 or key.shape != (_KEY,) or not splits.keys() <= {"train", "dev"}:
            raise ValueError("no key of the texts seen, or other splits than train and dev")
        for name, hashes in splits.items():
            if hashes.dtype != np.uint64 or hashes.ndim != 1 or (hashes[1:] <= hashes[:-1]).any():
                raise ValueError(f"the hashes of the texts of {name} are no rising numbers")
        return cls(key.tobytes(), {name: splits[name] for name in sorted(splits, reverse=True)})

    def arrays(self) -> dict[str, np.ndarray]:
        """The same as arrays for a safetensors file."""
        return {"key": np.frombuffer(self.key, dtype=np.uint8), **self.splits}

    def split_of(self, texts: Iterable[Sequence[str]]) -> list[str | None]:
        """The first split in which each text stands, None where it stands in none."""
        hashes = _hashes(_digests(texts, keep_empty=True), self.key)
        found: list[str | None] = [None] * len(hashes)
        for name in reversed(list(self.splits)):
            known = self.splits[name]
            places = np.minimum(np.searchsorted(known, hashes), max(len(known) - 1, 0))
            for row in np.flatnonzero(known[places] == hashes).tolist() if len(known) else ():
                found[row] = name
        return found


def _digests(texts: Iterable[Sequence[str]], keep_empty: bool = False) -> Iterator[bytes]:
    for tokens in texts:
        if tokens or keep_empty:
            joined = " ".join(tokens).encode("utf-8", "surrogatepass")
            yield hashlib.blake2b(joined, digest_size=_KEY).digest()


def _hashes(digests: Iterable[bytes], key: bytes) -> np.ndarray:
    keyed = (hashlib.blake2b(d, key=key, digest_size=_HASH).digest() for d in digests)
    return np.frombuffer(b"".join(keyed), dtype="<u8").astype(np.uint64)
