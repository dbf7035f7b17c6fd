"""Predicting with a static student (`superconext export RUN --format static`); needs NumPy alone.

A text is cut at white space, in lower case. Each piece p is a sum of vectors: its own, and those of
its runs r of 2 to 4 characters, a space at either end. A vector is found by a hash, so there is no
vocabulary. The sum x over a text goes through one hidden layer::

    v(p) = e(p) + sum_r e(r) / sqrt(runs),   x = sum_p v(p) / sqrt(pieces)
    probabilities = softmax(B relu(A x + a) + b)

That is fastText's classifier (Joulin et al., 2017, "Bag of tricks for efficient text
classification") with a hidden layer. This module and what it imports are copied into the folder
(`export.standalone`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from threading import Lock

import numpy as np

from superconext.core.arrays import read_arrays
from superconext.core.errors import check_texts
from superconext.core.files import file_sha256
from superconext.core.label_types import typed_labels
from superconext.core.process import gc_paused
from superconext.export.exported_model import ExportedModel, check_seal, checked_facts, opening
from superconext.probe.base import softmax

#: Of `static.json`.
FORMAT = 1

#: The file of facts, by which a folder is known to hold a student; and that of the weights.
FACTS, WEIGHTS = "static.json", "static.safetensors"

#: Characters in the longest run; characters that are read of a piece.
LONGEST_RUN, LONGEST = 4, 64

#: Pieces whose vectors are remembered, and that are worked on at once.
_REMEMBERED, _PIECES = 200_000, 1_000

#: Held while what is remembered is read and added to. One for all students: each can be copied.
_LOCK = Lock()

# The multiplier of FNV-1a, and the golden ratio times 2^32: the top bits of the product are used.
_STEP, _GOLDEN = np.uint32(0x01000193), np.uint32(0x9E3779B9)


def hashed(pieces: Sequence[str], bits: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of a table of 2^bits vectors that pieces are made of, those of one length at a time.

    Gives their places `[k]`, and of each the row of its own and those of its runs, `[1 + R, k]`.
    """
    cut = [piece[:LONGEST] for piece in pieces]
    sizes = np.fromiter(map(len, cut), np.int64, len(cut))
    order = np.argsort(sizes, kind="stable")
    text = f" {'  '.join([cut[place] for place in order.tolist()])} "
    data = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    for size in np.unique(sizes + 2).tolist():
        powers = np.cumprod(np.full((size, 1), _STEP), axis=0, dtype=np.uint32)
        alike, order = np.split(order, [int((sizes == size - 2).sum())])
        for first in range(0, len(alike), _PIECES):
            places = alike[first : first + _PIECES]
            own, data = np.split(data, [len(places) * size])
            codes = np.ascontiguousarray(own.reshape(-1, size).T)
            hashes, found = codes, [(codes * powers).sum(axis=0, keepdims=True, dtype=np.uint32)]
            for length in range(2, min(LONGEST_RUN, size) + 1):
                hashes = hashes[:-1] * _STEP + codes[length - 1 :]
                found.append(hashes)
            rows = (np.concatenate(found) * _GOLDEN) >> np.uint32(32 - bits)
            yield places, rows.astype(np.int64)


class StaticModel(ExportedModel):
    """Text to probabilities with the static student of a run.

    Raises RunError when the folder is damaged.
    """

    indexer = None

    def __init__(self, folder: str | Path) -> None:
        self.folder = folder = Path(folder)
        with opening(folder, "static", "static"):
            facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
            if facts["format"] != FORMAT:
                raise ValueError(f"format {facts['format']!r}, this version reads {FORMAT}")
            if file_sha256(folder / WEIGHTS) != facts["files"][WEIGHTS]:
                raise ValueError(f"{WEIGHTS} is not what {FACTS} lists")
            self.classes, self.columns = checked_facts(facts)
            self.classes_ = typed_labels(self.classes, facts.get("label_type", "str"))
            arrays = read_arrays(folder / WEIGHTS)
            table, *self._layers = (arrays[name] for name in ("table", "A", "a", "B", "b"))
            sizes = [len(array) for array in self._layers]
            if [table.shape[1], sizes[1], sizes[1], len(self.classes)] != sizes:
                raise ValueError(f"{WEIGHTS} holds arrays that do not fit together")
            check_seal(facts, FACTS)
        self._table, self._bits = table.astype(np.float32), len(table).bit_length() - 1
        self._known: dict[str, int] = {}
        self._vectors = np.empty((0, table.shape[1]), np.float32)

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Class probabilities float64 `[N, C]`, columns as `classes`."""
        a, a0, b, b0 = self._layers
        hidden = np.maximum(self.features(texts) @ a + a0, 0)
        return softmax((hidden @ b + b0).astype(np.float64))

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """The sums that stand for texts, float32 `[N, d]`; zeros for one without a word."""
        texts = check_texts(texts, some=False)
        with gc_paused():  # of the many lists none refers to another
            rows = [text.lower().split() for text in texts]
        counts = np.fromiter(map(len, rows), np.int64, len(rows))
        sums = np.zeros((len(texts), self._table.shape[1]), np.float32)
        if some := np.flatnonzero(counts).tolist():
            begin = np.cumsum(counts) - counts
            vectors = self._vectors_of(list(chain.from_iterable(rows)))
            parts = np.add.reduceat(vectors, begin[some], axis=0)
            sums[some] = parts / np.sqrt(counts[some, None]).astype(np.float32)
        return sums

    def _vectors_of(self, pieces: list[str]) -> np.ndarray:
        """The vectors `[n, d]` of pieces; several threads may ask at once."""
        with _LOCK:
            fresh = [piece for piece in dict.fromkeys(pieces) if piece not in self._known]
            if len(self._known) + len(fresh) > len(self._vectors):
                fresh = list(dict.fromkeys(pieces))
                room = max(_REMEMBERED, len(fresh)), self._table.shape[1]
                self._known, self._vectors = {}, np.empty(room, np.float32)
            begin, end = len(self._known), len(self._known) + len(fresh)
            self._vectors[begin:end] = self._composed(fresh)
            self._known.update(zip(fresh, range(begin, end), strict=True))
            numbers = np.fromiter(map(self._known.__getitem__, pieces), np.int64, len(pieces))
            return self._vectors.take(numbers, axis=0)

    def _composed(self, pieces: Sequence[str]) -> np.ndarray:
        """The vectors `[n, d]` of pieces."""
        vectors = np.empty((len(pieces), self._table.shape[1]), np.float32)
        for places, rows in hashed(pieces, self._bits):
            own, runs = self._table.take(rows[0], axis=0), self._table.take(rows[1:], axis=0)
            vectors[places] = own + runs.sum(axis=0) / np.float32(np.sqrt(len(runs)))
        return vectors
