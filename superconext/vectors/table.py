"""Tables of word vectors: look-up, their folder on disk, collecting rows, coverage of a text."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from superconext.core.errors import VectorsError, plural
from superconext.core.files import replace_folder, staging_folder, write_array
from superconext.core.progress import WARNING
from superconext.data.token_store import TokenStore
from superconext.text.tokenize import UNK_ID, Tokenizer, Vocabulary, folded
from superconext.vectors.subwords import SubwordTable

FOLDER_FORMAT = "superconext-vectors"
FOLDER_VERSION = 1
_SCAN_ROWS = 16_384
#: Beside `subwords.npy`: which rows it has, where the others are zeros.
_ROWS = "subword_rows.json"
#: The emoji scores, a row for each emoji.
_EMOJI = "emoji_scores.npy"
#: Most rows that are made in memory for those: a damaged file may ask for any number.
_MOST_BUCKETS = 1 << 24

# The header of a `.npy` file of floats in two dimensions, and bytes of the longest one.
_HEADER = re.compile(
    rb"\{'descr': ?'([<>|=]?f[248])', ?'fortran_order': ?(True|False), "
    rb"?'shape': ?\((\d{1,18}), ?(\d{1,18}),?\),? ?\}\s*"
)
_MOST_HEADER = 4096

#: What a text file of vectors looks like, for messages.
TEXT_ROWS = "expected `word n1 ... nd` on each line, after an optional first line `words dimension`"
_CHUNK_ROWS = 4_096
_CHUNK_NUMBERS = 1 << 22  # of a chunk: rows of a strange file may be very long
_TOLERATED = 10  # malformed rows that never stop a file, whatever their share
_TOLERATED_SHARE = 0.01


class WordVectors:
    """Words and their vectors.

    Attributes:
        words: `V` words; the first of two equal words is the one that counts.
        matrix: `[V, d]` float32 or float16, possibly memory-mapped and then read-only.
        subwords: character n-grams that serve words outside the table, or None.
        name: where the table comes from, for people.
        sha256: hash of the file it was read from, or of the content of a trained table.
        notes: what was skipped, repeated or fallen back on, one sentence each.
        emoji_scores: weights float32 `[K, d]` that tell K emoji apart in the mean of a sentence's
            vectors (`vectors.emoji`), where these were trained on text with emoji; else None.

    Raises:
        VectorsError: the parts do not fit each other.
    """

    def __init__(
        self,
        words: Sequence[str],
        matrix: npt.NDArray[Any],
        subwords: SubwordTable | None = None,
        *,
        name: str = "",
        sha256: str = "",
        notes: Iterable[str] = (),
        emoji_scores: npt.NDArray[np.float32] | None = None,
    ) -> None:
        if matrix.ndim != 2 or matrix.shape[0] != len(words) or matrix.dtype.kind != "f":
            raise VectorsError(
                f"vectors {name!r}: {len(words)} words beside a matrix of shape {matrix.shape} and "
                f"type {matrix.dtype}; expected floats [words, dimension]; make the table again"
            )
        if subwords is not None and subwords.dimension != matrix.shape[1]:
            raise VectorsError(
                f"vectors {name!r}: words have {matrix.shape[1]} numbers and subwords "
                f"{subwords.dimension}; expected the same; make the table again"
            )
        self.words = list(words)
        self.matrix = matrix.astype(np.float32) if matrix.dtype.itemsize > 4 else matrix
        self.subwords = subwords
        self.name = name
        self.sha256 = sha256
        self.notes = list(notes)
        self.emoji_scores = emoji_scores
        self._index = _first_rows(self.words)
        self._folded: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._index

    @property
    def dimension(self) -> int:
        """Length `d` of a vector."""
        return int(self.matrix.shape[1])

    def known(self, words: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Whether each word, exactly as written, is a whole word of the table: bool `[n]`."""
        return np.fromiter((word in self._index for word in words), dtype=bool, count=len(words))

    def _rows(self, words: Sequence[str]) -> npt.NDArray[np.int64]:
        """Row of each word, exact or `folded`, or -1: `[n]`."""
        find = self._index.get
        rows = np.fromiter((find(word, -1) for word in words), dtype=np.int64, count=len(words))
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            if self._folded is None:
                self._folded = _first_rows(list(map(folded, self.words)))
            for position in missing.tolist():
                rows[position] = self._folded.get(folded(words[position]), -1)
        return rows

    def lacking(self, words: Sequence[str]) -> list[str]:
        """Those of the words that have no row, in any case."""
        return [
            word for word, row in zip(words, self._rows(words).tolist(), strict=True) if row < 0
        ]

    def lookup(self, words: Sequence[str]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Vectors `[n, d]` float32 of words, seen or not, and whether each got one, bool `[n]`.

        Each word gets its row; else that of the first one equal to it but for case or Unicode form;
        else a vector composed from its character n-grams; else zeros.
        """
        rows = self._rows(words)
        has_vector = rows >= 0
        vectors = np.zeros((len(words), self.dimension), dtype=np.float32)
        vectors[has_vector] = self.matrix[rows[has_vector]]
        if self.subwords is not None and not has_vector.all():
            missing = np.flatnonzero(~has_vector)
            composed, has_ngram = self.subwords.compose_many([words[i] for i in missing.tolist()])
            vectors[missing] = composed
            has_vector[missing] = has_ngram
        return vectors, has_vector

    def restrict(self, words: Iterable[str]) -> WordVectors:
        """The rows that `lookup` would use for these words, in table order; subwords stay."""
        rows = self._rows(list(words))
        rows = np.unique(rows[rows >= 0])
        return WordVectors(
            [self.words[row] for row in rows],
            self.matrix[rows],
            self.subwords,
            name=self.name,
            sha256=self.sha256,
            notes=self.notes,
            emoji_scores=self.emoji_scores,
        )

    def nearest(self, word: str, n: int = 10) -> list[tuple[str, float]]:
        """The `n` words of the table with the largest cosine to `word`, itself left out.

        Raises VectorsError: `word` has no vector, or one of zero length.
        """
        (query,), (has_vector,) = self.lookup([word])
        norm = float(np.linalg.norm(query))
        if not has_vector or norm == 0.0:
            expected = (
                "a word of the table; choose another word, or a table with subwords"
                if self.subwords is None
                else "a word with character n-grams that it has learned; choose another word"
            )
            raise VectorsError(
                f"vectors {self.name!r} hold no vector for {word!r}; expected {expected}"
            )
        cosine = np.zeros(len(self.words), dtype=np.float32)
        for start in range(0, len(self.words), _SCAN_ROWS):
            block = self.matrix[start : start + _SCAN_ROWS].astype(np.float32, copy=False)
            norms = np.linalg.norm(block, axis=1)
            cosine[start : start + _SCAN_ROWS] = (block @ (query / norm)) / np.where(
                norms > 0, norms, 1.0
            )
        ranked = (int(row) for row in np.argsort(-cosine, kind="stable"))
        itself = self._rows([word])[0]
        best = [(self.words[row], float(cosine[row])) for row in ranked if row != itself]
        return best[: max(n, 0)]

    def content_sha256(self) -> str:
        """Hash of the words and numbers themselves, whatever file they came from."""
        digest = hashlib.sha256(json.dumps(self.words).encode())
        arrays = [self.matrix]
        if self.subwords is not None:
            arrays.append(self.subwords.buckets)
            digest.update(f"{self.subwords.min_n},{self.subwords.max_n}".encode())
        if self.emoji_scores is not None:
            arrays.append(self.emoji_scores)
        for array in arrays:
            digest.update(f"{array.dtype.str}{array.shape}".encode())
            for start in range(0, len(array), _SCAN_ROWS):
                digest.update(np.ascontiguousarray(array[start : start + _SCAN_ROWS]).data)
        return digest.hexdigest()

    def save(self, folder: str | Path, also: Callable[[Path], object] | None = None) -> None:
        """Write `info.json`, `words.json`, `matrix.npy` into a folder, and where they are there
        `subwords.npy` and `emoji_scores.npy`.

        Where more than half of the rows of subwords are zeros, as of a small text, the others
        alone are written, and their numbers into `subword_rows.json`.
        The folder is made beside its place and renamed, so that none stands there half written. An
        earlier folder of vectors is replaced; for anything else in the way VectorsError is raised.
        also: called with the folder before it gets its name, to write more into it.
        """
        folder = Path(folder)
        if folder.exists() and not _replaceable(folder):
            raise VectorsError(
                f"{folder}: already there and not a folder of word vectors; expected a free name; "
                "choose another one or remove it"
            )
        folder.parent.mkdir(parents=True, exist_ok=True)
        with staging_folder(folder) as hidden:
            fresh = hidden / "new"
            fresh.mkdir()
            content = self.content_sha256()
            info: dict[str, Any] = {
                "format": FOLDER_FORMAT,
                "version": FOLDER_VERSION,
                "name": self.name,
                "words": len(self.words),
                "dimension": self.dimension,
                "sha256": self.sha256 or content,
                "content_sha256": content,
                "subwords": None,
                "emoji": 0 if self.emoji_scores is None else len(self.emoji_scores),
                "notes": self.notes,
            }
            (fresh / "words.json").write_text(json.dumps(self.words), encoding="utf-8")
            write_array(fresh / "matrix.npy", self.matrix)
            if self.subwords is not None:
                table = self.subwords
                info["subwords"] = {
                    "buckets": len(table.buckets),
                    "min_n": table.min_n,
                    "max_n": table.max_n,
                }
                rows = table.rows_in_use()
                if sparse := 2 * len(rows) < len(table.buckets) <= _MOST_BUCKETS:
                    (fresh / _ROWS).write_text(json.dumps(rows.tolist()), encoding="utf-8")
                info["subwords"]["sparse"] = sparse
                write_array(
                    fresh / "subwords.npy", table.buckets[rows] if sparse else table.buckets
                )
            if self.emoji_scores is not None:
                write_array(fresh / _EMOJI, self.emoji_scores)
            text = json.dumps(info, indent=2, ensure_ascii=False)
            (fresh / "info.json").write_text(text + "\n", encoding="utf-8", errors="replace")
            if also is not None:
                also(fresh)
            replace_folder(fresh, folder, hidden / "old")

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = False) -> WordVectors:
        """Read a folder written by `save`; the numbers stay on disk, memory-mapped.

        verify: also read every number and compare with the hash noted when it was written. Raises
        VectorsError: a file is missing or damaged, or of a newer version.
        """
        folder = Path(folder)
        try:
            info = json.loads((folder / "info.json").read_text(encoding="utf-8"))
            if not isinstance(info, dict) or info.get("format") != FOLDER_FORMAT:
                raise ValueError("info.json does not describe word vectors")
            if info.get("version") != FOLDER_VERSION:
                raise ValueError(f"format version {info.get('version')!r}, not {FOLDER_VERSION}")
            words = json.loads((folder / "words.json").read_text(encoding="utf-8"))
            if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
                raise ValueError("words.json is not a list of words")
            matrix = open_floats(folder / "matrix.npy", (len(words), info["dimension"]))
            subwords = None
            if info["subwords"] is not None:
                counts = info["subwords"]
                buckets = _open_buckets(folder, counts, info["dimension"])
                subwords = SubwordTable(buckets, counts["min_n"], counts["max_n"])
            notes = [str(note) for note in info["notes"]]
            table = cls(words, matrix, subwords, name=str(info["name"]), notes=notes)
            table.sha256 = str(info["sha256"])
            if info.get("emoji"):  # folders of older versions do not say
                scores = open_floats(folder / _EMOJI, (info["emoji"], info["dimension"]))
                table.emoji_scores = np.array(scores, dtype=np.float32)
                if not np.isfinite(table.emoji_scores).all():
                    raise ValueError(f"{_EMOJI} has numbers that are not finite")
            if verify and table.content_sha256() != info["content_sha256"]:
                raise ValueError("the content differs from the hash in info.json")
        except (OSError, EOFError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise VectorsError(
                f"{folder}: not a readable folder of word vectors ({error}); expected info.json, "
                "words.json and matrix.npy of this version; convert or train the vectors again"
            ) from error
        return table


def _first_rows(words: list[str]) -> dict[str, int]:
    """The first place of each distinct word."""
    return dict(zip(reversed(words), range(len(words) - 1, -1, -1), strict=True))


def _open_buckets(folder: Path, counts: Any, dimension: int) -> npt.NDArray[Any]:
    """Subword rows `[buckets, d]` as `WordVectors.save` wrote them: those on disk, or in memory
    where the others are zeros."""
    if not isinstance(counts, dict):
        raise ValueError("info.json says of subwords what is no object")
    if not counts.get("sparse"):
        return open_floats(folder / "subwords.npy", (counts["buckets"], dimension))
    if counts["buckets"] > _MOST_BUCKETS:
        raise ValueError(f"info.json has more than {_MOST_BUCKETS} rows of subwords")
    rows = json.loads((folder / _ROWS).read_text(encoding="utf-8"))
    if not isinstance(rows, list) or not all(type(row) is int for row in rows):
        raise ValueError(f"{_ROWS} is not a list of whole numbers")
    if not all(low < high for low, high in pairwise([-1, *rows, counts["buckets"]])):
        raise ValueError(f"{_ROWS} has numbers that do not ascend below {counts['buckets']}")
    kept = open_floats(folder / "subwords.npy", (len(rows), dimension))
    buckets = np.zeros((counts["buckets"], dimension), kept.dtype)
    buckets[rows] = kept
    return buckets


def _replaceable(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    try:
        info = json.loads((folder / "info.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return not any(folder.iterdir())
    return isinstance(info, dict) and info.get("format") == FOLDER_FORMAT


def open_floats(path: Path, expected: tuple[int, int] | None = None) -> npt.NDArray[Any]:
    """The floats `[rows, d]` of a `.npy` file, memory-mapped, without believing its header.

    expected: the shape it must have, if one is known. Raises OSError: no such file; ValueError:
    another type or shape, or a file shorter than it says.
    """
    with path.open("rb") as stream:
        start = stream.read(12)
        wide = start[6:7] == b"\x02"
        size = int.from_bytes(start[8 : 12 if wide else 10], "little")
        stream.seek(at := 12 if wide else 10)
        # NumPy evaluates the header as Python's literals, which a few bytes can make slow.
        header = _HEADER.fullmatch(stream.read(size)) if size <= _MOST_HEADER else None
        left = os.fstat(stream.fileno()).st_size - at - size
    if header is None or start[:6] != b"\x93NUMPY":
        raise ValueError(f"{path.name} has no header of an array of floats in two dimensions")
    dtype = np.dtype(header[1].decode())
    shape = int(header[3]), int(header[4])
    if expected is not None and shape != expected:
        raise ValueError(f"{path.name} is not a float array of shape {list(expected)}")
    if math.prod(shape) * dtype.itemsize > left:
        raise ValueError(f"{path.name} is shorter than the shape {shape} in its header")
    if 0 in shape:  # nothing to map
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", at + size, shape, "F" if header[2] == b"True" else "C")


class RowCollector:
    """Holds the wanted rows of one file, and counts what was wrong with the others.

    Args:
        source: the file, as messages name it.
        dimension: numbers in a row.
        keep: words wanted, exactly or `folded`; None with no limit wants all.
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
                self._folded = frozenset(map(folded, self._exact))
        self._words: dict[str, None] = {}
        self._chunks: list[npt.NDArray[np.float32]] = []
        self._chunk_rows = max(1, min(_CHUNK_ROWS, _CHUNK_NUMBERS // max(dimension, 1)))
        self._bad = self._repeated = self._undecoded = 0
        self._first_bad = self._first_repeated = ""

    @property
    def ended(self) -> bool:
        """Whether no later row can be wanted."""
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
            or folded(word) in self._folded
        ):
            return False
        return not self._repeats(word, where)

    def _repeats(self, word: str, where: int) -> bool:
        """Whether there is a row of this word already; if so it is counted."""
        if word not in self._words:
            return False
        self._repeated += 1
        self._first_repeated = self._first_repeated or f"{word!r} at {self.unit} {where}"
        return True

    def add(self, word: str, row: npt.NDArray[Any], where: int) -> bool:
        """Hold a row `[d]`, unless a number in it is not finite, or one of its word is held: two
        may have been wanted before the first was added."""
        if self._repeats(word, where):
            return True
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

    def finish(self, subwords: SubwordTable | None = None) -> WordVectors:
        """The table, named after the source.

        Raises VectorsError: no row at all, or more than one row in a hundred malformed.
        """
        if self._bad > max(_TOLERATED, self.seen * _TOLERATED_SHARE) or 2 * self._bad > self.seen:
            raise VectorsError(
                f"{self.source}: {self._bad} of {self.seen} rows are malformed, first at "
                f"{self._first_bad}; expected rows of {self.dimension} finite numbers; copy or "
                "convert the file again"
            )
        if self.seen == 0 and not self.ended:
            raise VectorsError(f"{self.source}: no row of numbers; {TEXT_ROWS}; check the file")
        notes = list(self.notes)
        if self._bad:
            notes.append(
                f"{plural(self._bad, 'malformed row')} skipped, first at {self._first_bad}"
            )
        if self._repeated:
            notes.append(
                f"{plural(self._repeated, 'repeated word')}, the first row kept; first "
                f"{self._first_repeated}"
            )
        if self._undecoded:
            words = plural(self._undecoded, "word")
            many = WARNING * (self._undecoded > self.seen // 100)
            notes.append(f"{many}{words} not in UTF-8, now with replacement marks")
        if not self._words and not self.ended:
            notes.append("none of the wanted words is in the file")
        matrix = np.empty((len(self._words), self.dimension), dtype=np.float32)
        # Each chunk is let go as soon as it is copied, so the table is never held twice.
        self._chunks.reverse()
        for start in range(0, len(matrix), self._chunk_rows):
            part = matrix[start : start + self._chunk_rows]
            part[:] = self._chunks.pop()[: len(part)]
        return WordVectors(list(self._words), matrix, subwords, name=self.source, notes=notes)


def collect_rows(
    words: Iterable[str],
    matrix: npt.NDArray[Any],
    source: str,
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
    return collector.finish(subwords)


#: Where a label's name is cut beside spaces. Not at figures: they are letters in Arabizi.
_CUT = re.compile(r"(?<=[a-z])(?=[A-Z])|[_./:-]+")


def count_words(token_lists: Iterable[Sequence[str]]) -> Counter[str]:
    """How often each word occurs in a text."""
    return Counter(chain.from_iterable(token_lists))


#: Words without a vector that `coverage` names.
_MISSING_SHOWN = 20


def coverage(vectors: WordVectors, counts: Mapping[str, int]) -> dict[str, Any]:
    """What of a text, whose words' `counts` are given, has a vector.

    Returns `types` and `tokens`, the size of the text, and for `exact` (the word as written),
    `any_case` (that, or a word equal but for case) and `served` (that, or composed of character
    n-grams) the counts and shares of both; `missing`, the most frequent words (with their counts)
    that are not in the table in any case, equal counts by code point.
    """
    words = list(counts)
    # `restrict` gives the rows that words find exactly or but for case.
    listed = {folded(word) for word in vectors.restrict(words).words}
    any_case = [folded(word) in listed for word in words]
    subwords = vectors.subwords
    known_by = {
        "exact": vectors.known(words).tolist(),
        "any_case": any_case,
        "served": [
            ok or (subwords is not None and subwords.composes(word))
            for word, ok in zip(words, any_case, strict=True)
        ],
    }
    tokens = sum(counts.values())
    report: dict[str, Any] = {"types": len(words), "tokens": tokens}
    for name, flags in known_by.items():
        of_types = sum(flags)
        of_tokens = sum(counts[word] for word, ok in zip(words, flags, strict=True) if ok)
        report[name] = {
            "types": of_types,
            "tokens": of_tokens,
            "type_share": of_types / max(len(words), 1),
            "token_share": of_tokens / max(tokens, 1),
        }
    absent = [word for word, ok in zip(words, any_case, strict=True) if not ok]
    absent.sort(key=lambda word: (-counts[word], word))
    report["missing"] = [[word, counts[word]] for word in absent[:_MISSING_SHOWN]]
    return report


def label_vectors(
    labels: Sequence[str],
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    table: np.ndarray,
    reserve: WordVectors,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean word vector of each label's name, "veryPositive" and "very_positive" being two words.

    Only whole words count: the n-grams of an English name in a table of another language
    say little, and are the same in "positive" and "negative". A name without a word that
    the vocabulary or the vectors know has no vector, nor have names that come to the same.

    Args:
        labels: names of the C classes.
        table: vectors of the vocabulary's words `[V, e]`; reserve: of other words.

    Returns:
        vectors float32 `[C, e]`, zeros where there is none; bool `[C]`, whether there is one.
    """
    vectors = np.zeros((len(labels), table.shape[1]), dtype=np.float32)
    for row, label in enumerate(labels):
        word_vectors = []
        for word in tokenizer(" ".join(_CUT.split(label)).lower()):
            if word.startswith("<"):  # a placeholder, such as that of a number
                continue
            if word in vocabulary:
                word_vectors.append(table[vocabulary.index(word)])
            elif word in reserve:
                word_vectors.append(reserve.lookup([word])[0][0])
        if word_vectors:
            vectors[row] = np.mean(word_vectors, axis=0)
    known = vectors.any(axis=1)
    _, group, size = np.unique(vectors, axis=0, return_inverse=True, return_counts=True)
    known &= size[group.reshape(-1)] == 1
    vectors[~known] = 0.0
    return vectors, known


def mean_vectors(store: TokenStore, table: np.ndarray) -> np.ndarray:
    """The mean of the word vectors of each text, float32 `[N, e]`.

    Args:
        store: token ids of N texts.
        table: vectors `[V, e]` of the vocabulary. Words beyond it have the vectors that the store
            brings, or the unknown word's where no source knows them.
    """
    from scipy.sparse import csr_matrix

    new = store.oov_words
    if new is not None and len(new):
        given = np.where(new.known[:, None], new.vectors, table[UNK_ID])
        table = np.concatenate([table, given])
    shares = np.repeat(1.0 / store.lengths, store.lengths)
    shape = len(store), len(table)
    means = csr_matrix((shares, store.tokens, store.offsets), shape=shape) @ table
    return np.asarray(means, dtype=np.float32)
