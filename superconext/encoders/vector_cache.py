"""Sentence vectors of frozen models, kept on disk by model and text.

A cache is one SQLite file. What cannot be read or written costs time and never a run.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
from torch import Tensor

from superconext.core import cache

#: Seconds to wait for another process that writes.
_PATIENCE = 30
#: Keys that one question asks for; SQLite takes 999 in its oldest versions.
_AT_ONCE = 500


class VectorCache:
    """The vectors of one model and its settings.

    Args:
        folder: made when missing.
        identity: of the model and of everything else that the vectors follow from.
    """

    def __init__(self, folder: Path, identity: str) -> None:
        self.path = folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.sqlite"
        cache.use(self.path)
        cache.trim()

    def vectors(
        self, ids: np.ndarray, lengths: np.ndarray, encode: Callable[[np.ndarray], Tensor]
    ) -> np.ndarray:
        """Vectors float32 `[N, d]` of padded ids `[N, T]` with lengths `[N]`.

        encode: rows `[n]` to their vectors `[n, d]`, for those that are not known.
        """
        keys = [
            hashlib.sha256(np.ascontiguousarray(row[:length], dtype=np.int32).data).digest()
            for row, length in zip(ids, lengths, strict=True)
        ]
        known = self._read(keys)
        missing = {key: row for row, key in enumerate(keys) if key not in known}
        if missing:
            fresh = encode(np.array([*missing.values()])).detach().float().cpu().numpy()
            made = dict(zip(missing, fresh, strict=True))
            self._write(made)
            known |= made
        return np.stack([known[key] for key in keys])

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_PATIENCE)
        connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")
        return connection

    def _read(self, keys: list[bytes]) -> dict[bytes, np.ndarray]:
        rows: list[tuple[bytes, bytes]] = []
        try:
            with closing(self._connect()) as connection:
                for start in range(0, len(keys), _AT_ONCE):
                    part = keys[start : start + _AT_ONCE]
                    marks = ",".join("?" * len(part))
                    query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"
                    rows += connection.execute(query, part)
            return {key: np.frombuffer(vector, dtype=np.float32) for key, vector in rows}
        except (sqlite3.OperationalError, OSError):  # busy, or no place to write
            return {}
        except (sqlite3.Error, ValueError):  # damaged
            self.path.unlink(missing_ok=True)
            return {}

    def _write(self, vectors: dict[bytes, np.ndarray]) -> None:
        rows = [(key, np.ascontiguousarray(vector).tobytes()) for key, vector in vectors.items()]
        try:
            with closing(self._connect()) as connection, connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError):
            return
