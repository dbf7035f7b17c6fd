"""How is a text file of word vectors read, one row at a time?

GloVe writes `word n1 ... nd` and no header; word2vec and fastText (`.vec`) put `V d` on the
first line. Some words of the large GloVe files contain spaces, so a row is read from the
right: the last `d` fields are the numbers and the rest is the word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from itertools import chain, islice
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from superconext.core.errors import VectorsError
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors

_MAX_LINE = 1 << 20  # bytes; the longest row of a sane file is a hundredth of this
_SAMPLE_LINES = 100
_CHUNK_ROWS = 4_096
_CHUNK_NUMBERS = 1 << 22  # of a chunk: rows of a strange file may be very long
_TOLERATED = 10  # malformed rows that never stop a file, whatever their share
_TOLERATED_SHARE = 0.01
_EXPECTED = "expected `word n1 ... nd` on each line, after an optional first line `words dimension`"


class RowCollector:
    """Holds the wanted rows of one file, and counts what was wrong with the others.

    Args:
        source: the file, as messages name it.
        dimension: numbers in a row.
        keep: words wanted, exactly or without regard to case; None with no limit wants all.
        limit: the first `limit` rows are wanted too.
        unit: what `where` counts in messages.
    """

    def __init__(
        self,
        source: str,
        dimension: int,
        keep: Container[str] | None = None,
        limit: int | None = None,
        unit: str = "line",
    ) -> None:
        if limit is not None and limit < 0:
            raise VectorsError(f"limit is {limit}; expected 0 or more rows; choose such a number")
        self.source, self.dimension, self.unit = source, dimension, unit
        self.seen = 0
        self.notes: list[str] = []
        self._all = keep is None and limit is None
        self._limit = 0 if limit is None else limit
        self._only_limit = keep is None and limit is not None
        self._exact: Container[str] = ()
        self._folded: Container[str] = ()
        if keep is not None:
            self._exact = self._folded = keep
            if isinstance(keep, Iterable):
                self._exact = frozenset(keep)
                self._folded = frozenset(word.casefold() for word in self._exact)
        self._words: dict[str, None] = {}
        self._chunks: list[npt.NDArray[np.float32]] = []
        self._chunk_rows = max(1, min(_CHUNK_ROWS, _CHUNK_NUMBERS // max(dimension, 1)))
        self._bad = self._repeated = self._undecoded = 0
        self._first_bad = self._first_repeated = ""

    @property
    def ended(self) -> bool:
        """Can no later row be wanted?"""
        return self._only_limit and self.seen >= self._limit

    def decode(self, raw: bytes) -> str:
        """The word of these bytes, with a mark for what is not UTF-8, which is counted."""
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            self._undecoded += 1
            return raw.decode("utf-8", "replace")

    def wants(self, word: str, where: int) -> bool:
        """Count a row, and say whether to hold it."""
        self.seen += 1
        if not (
            self._all
            or self.seen <= self._limit
            or word in self._exact
            or word.casefold() in self._folded
        ):
            return False
        if word in self._words:
            self._repeated += 1
            self._first_repeated = self._first_repeated or f"{word!r} at {self.unit} {where}"
            return False
        return True

    def add(self, word: str, row: npt.NDArray[Any], where: int) -> bool:
        """Hold a row `[d]`, unless a number in it is not finite."""
        if not np.isfinite(row).all():
            self.malformed(where, "a number is not finite")
            return False
        at = len(self._words) % self._chunk_rows
        if at == 0:
            self._chunks.append(np.empty((self._chunk_rows, self.dimension), dtype=np.float32))
        self._chunks[-1][at] = row
        self._words[word] = None
        return True

    def malformed(self, where: int, why: str) -> None:
        """Count a row that cannot be used (it has been counted as seen)."""
        self._bad += 1
        self._first_bad = self._first_bad or f"{self.unit} {where} ({why})"

    def finish(self, name: str, subwords: SubwordTable | None = None) -> WordVectors:
        """The table.

        Raises:
            VectorsError: no row at all, or more than one row in a hundred malformed.
        """
        if self._bad > max(_TOLERATED, self.seen * _TOLERATED_SHARE) or 2 * self._bad > self.seen:
            raise VectorsError(
                f"{self.source}: {self._bad} of {self.seen} rows are malformed, first at "
                f"{self._first_bad}; expected rows of {self.dimension} finite numbers; copy or "
                "convert the file again"
            )
        if self.seen == 0 and not self.ended:
            raise VectorsError(f"{self.source}: no row of numbers; {_EXPECTED}; check the file")
        notes = list(self.notes)
        if self._bad:
            notes.append(f"{self._bad} malformed rows skipped, first at {self._first_bad}")
        if self._repeated:
            notes.append(
                f"{self._repeated} repeated words, the first row kept; first {self._first_repeated}"
            )
        if self._undecoded:
            notes.append(f"{self._undecoded} words are not UTF-8 and hold replacement marks")
        if not self._words and not self.ended:
            notes.append("none of the wanted words stands in the file")
        matrix = np.empty((len(self._words), self.dimension), dtype=np.float32)
        # Each chunk is let go as soon as it is copied, so the table is never held twice.
        self._chunks.reverse()
        for start in range(0, len(matrix), self._chunk_rows):
            part = matrix[start : start + self._chunk_rows]
            part[:] = self._chunks.pop()[: len(part)]
        return WordVectors(list(self._words), matrix, subwords, name=name, notes=notes)


def collect_rows(
    words: Iterable[str],
    matrix: npt.NDArray[Any],
    source: str,
    name: str,
    keep: Container[str] | None,
    limit: int | None,
    subwords: SubwordTable | None = None,
) -> WordVectors:
    """The wanted rows of a matrix `[V, d]` that is already at hand or memory-mapped."""
    collector = RowCollector(source, int(matrix.shape[1]), keep, limit, unit="row")
    with np.errstate(over="ignore"):
        for row, word in enumerate(words):
            if collector.ended:
                break
            if collector.wants(word, row + 1):
                collector.add(word, matrix[row].astype(np.float32), row + 1)
    return collector.finish(name, subwords)


def read_text(
    stream: BinaryIO,
    source: str,
    name: str,
    keep: Container[str] | None = None,
    limit: int | None = None,
) -> WordVectors:
    """Read rows from a stream of text; only the wanted ones are held.

    Every row is checked for its number of fields, and every wanted row for its numbers.

    Raises:
        VectorsError: the text holds no vectors, or too many malformed rows.
    """
    lines = _lines(stream)
    sample = list(islice(lines, _SAMPLE_LINES))
    if not sample:
        raise VectorsError(f"{source}: the file is empty; {_EXPECTED}; copy it again")
    promised, dimension = _shape(sample, source)
    if promised is not None:
        sample = sample[1:]
    collector = RowCollector(source, dimension, keep, limit)
    last_bad, last_line, last_raw = 0, 0, b"\n"
    with np.errstate(over="ignore"):
        for number, raw in chain(sample, lines):
            if collector.ended:
                break
            last_line, last_raw = number, raw
            if not _take(collector, number, raw):
                last_bad = number
    if not collector.ended:
        if last_bad and last_bad == last_line and not last_raw.endswith(b"\n"):
            collector.notes.append(
                f"the last line ({last_line}) is cut short: the file looks half copied; "
                "copy it again"
            )
        if promised is not None and promised != collector.seen:
            collector.notes.append(
                f"the first line promises {promised} rows and {collector.seen} are there: the "
                "file may be cut off"
            )
    return collector.finish(name)


def _take(collector: RowCollector, number: int, raw: bytes) -> bool:
    """Hold a line's row if it is wanted; False when the line is malformed."""
    dimension = collector.dimension
    fields = raw.rsplit(None, dimension) if len(raw) < _MAX_LINE else []
    word = fields[0].strip() if len(fields) == dimension + 1 else b""
    # As many spaces in the word as numbers in a row: two rows have run together.
    if not word or word.count(b" ") >= max(dimension, 8):
        collector.seen += 1
        collector.malformed(number, f"not a word and {dimension} numbers")
        return False
    text = collector.decode(word)
    if not collector.wants(text, number):
        return True
    try:
        row = np.fromiter(map(float, fields[1:]), dtype=np.float32, count=dimension)
    except ValueError:
        collector.malformed(number, f"one of the last {dimension} fields is not a number")
        return False
    return collector.add(text, row, number)


def _lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Number and bytes of each line, split at line feeds only and never longer than a bound.

    Words of real files hold U+0085 and U+2028, at which `str.splitlines` would break a row.
    """
    number = 0
    while raw := stream.readline(_MAX_LINE):
        number += 1
        rest = raw
        while len(rest) == _MAX_LINE and not rest.endswith(b"\n"):
            rest = stream.readline(_MAX_LINE)
        yield number, raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw


def _shape(sample: list[tuple[int, bytes]], source: str) -> tuple[int | None, int]:
    """Rows the header promises (None without a header) and numbers in a row."""
    first = sample[0][1].split()
    header = len(first) == 2 and all(field.isdigit() and len(field) < 19 for field in first)
    votes = Counter(_numbers(raw) for _, raw in (sample[1:] if header else sample))
    del votes[0]
    likely = votes.most_common(1)[0][0] if votes else 0
    if header:
        promised, dimension = int(first[0]), int(first[1])
        if dimension >= 1 and (likely == dimension or (likely == 0 and promised == 0)):
            return promised, dimension
        raise VectorsError(
            f"{source}: the first line promises rows of {dimension} numbers and most rows have "
            f"{likely}; {_EXPECTED}; correct the first line or copy the file again"
        )
    if likely < 2:
        shown = sample[0][1][:40].decode("utf-8", "replace").strip()
        raise VectorsError(
            f"{source}: the first line begins {shown!r} and rows hold {likely} numbers; "
            f"{_EXPECTED}; name a file of word vectors"
        )
    return None, likely


def _numbers(raw: bytes) -> int:
    """How many fields at the end of a line are numbers, the first field being the word."""
    count = 0
    fields = raw.split()
    for field in reversed(fields[1:]):
        try:
            float(field)
        except ValueError:
            break
        count += 1
    return count
