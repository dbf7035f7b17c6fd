"""The labelled rows of a file that is larger than memory, tokenised once and kept on disk.

Blocks of rows go to processes that normalise and split them; what comes back is small: the
distinct words of the block, and numbers. A folder then holds

    tokens.bin    int32, every sentence's words, numbered in the order in which they first came
    offsets.npy   int64 [N + 1], where each sentence begins
    labels.npy    int32 [N], class of each row, classes in sorted order
    lines.npy     int64 [N], line of the file each row starts on
    texts.npy     uint64 [N], a hash of each text, by which copies are known
    counts.npy    int64 [W], how often each word came
    words.json    the W words
    rows.json     classes, the reader's notes, the tokenizer, hashes of the others and of itself;
                  written last

Its name is made of the file's hash, the columns and the tokenizer, so a second run on the same
rows finds it; beneath it, named by the rows trained on, `min_count` and `max_length`, stand the
ids that training reads, and `files.json`, the hashes of these. What is half written is never
found, for folders are made beside and renamed. What is damaged is made again: whoever opens a
folder reads all of it once and compares the hashes.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from superconext._version import __version__
from superconext.core import cache
from superconext.core.files import (
    clear_staging,
    file_sha256,
    replace_folder,
    staging_folder,
    write_array,
    write_json,
)
from superconext.core.process import processors
from superconext.data.duplicates import key_of_words, text_hashes, told_several
from superconext.data.file_format import Block
from superconext.data.reading import RowStream
from superconext.data.splits import FLOOR, quotas
from superconext.data.token_store import FileStore, IdFile, chunks, open_ids, write_cut
from superconext.text.tokenize import Tokenizer, Vocabulary

#: Blocks given to each process before the next ones are read.
_AHEAD = 4

#: Changes with what a store holds.
_STORE = 4

#: What reading a store that is not there, or damaged, may raise.
_DAMAGE = (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError)


Tokenised = tuple[list[str], np.ndarray, np.ndarray, np.ndarray]


def tokenise_block(tokenizer: Tokenizer, keys: Tokenizer, texts: Sequence[str]) -> Tokenised:
    """(distinct words, ids of all tokens among them int32, tokens of each text int32, hashes of the
    texts by the words that `keys` cuts)."""
    index: dict[str, int] = {}
    pieces = tokenizer.pieces(texts)
    # Pieces come in the order of the text, so words are numbered as they first come in it.
    ids = np.array(
        [index.setdefault(token, len(index)) for token in chain.from_iterable(pieces.tokens)],
        dtype=np.int32,
    )
    chosen, edges = pieces.spread()
    hashes = _hashes_of(texts, pieces.lists() if keys is tokenizer else keys.many(texts))
    return list(index), ids[chosen], np.diff(edges).astype(np.int32), hashes


def _hashes_of(texts: Sequence[str], words: Iterable[Sequence[str]]) -> np.ndarray:
    return text_hashes(list(map(key_of_words, texts, words)))


def tokenise_file(
    stream: RowStream,
    tokenizer: Tokenizer,
    folder: Path,
    jobs: int | None = None,
    keys: Tokenizer | None = None,
) -> Iterator[int]:
    """Write what the head of this module lists into `folder`; gives out the rows done so far.

    Args:
        keys: cuts the words by which texts are copies of one another; None: the same.
        jobs: processes; by default as many as there are processors.

    The files do not depend on `jobs`. Raises DataError as the stream does.
    """
    index: dict[str, int] = {}
    counts = np.zeros(1024, dtype=np.int64)
    classes: dict[str, int] = {}
    lengths, labels, lines, hashes = array("i"), array("i"), array("q"), array("Q")
    with (folder / "tokens.bin").open("wb") as tokens:
        cut = tokenizer, keys or tokenizer
        for block, (words, ids, sizes, own) in _tokenised(stream.large_blocks(), *cut, jobs):
            there = np.array([index.setdefault(word, len(index)) for word in words], dtype=np.int32)
            if len(index) > len(counts):
                counts = np.concatenate([counts, np.zeros(len(index), dtype=np.int64)])
            counts[there] += np.bincount(ids, minlength=len(words))
            tokens.write(there[ids].data)  # unlike `tofile`, this says why it fails
            lengths.frombytes(sizes.tobytes())
            hashes.frombytes(own.tobytes())
            lines.extend(block.lines)
            labels.extend([classes.setdefault(label, len(classes)) for label in block.labels])
            yield len(lines)
    names = sorted(classes)
    place = np.empty(len(names), dtype=np.int32)
    place[[classes[name] for name in names]] = np.arange(len(names))
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.frombuffer(lengths, dtype=np.int32), out=offsets[1:])
    write_array(folder / "offsets.npy", offsets)
    write_array(folder / "labels.npy", place[np.frombuffer(labels, dtype=np.int32)])
    write_array(folder / "lines.npy", np.frombuffer(lines, dtype=np.int64))
    write_array(folder / "texts.npy", np.frombuffer(hashes, dtype=np.uint64))
    write_array(folder / "counts.npy", counts[: len(index)])
    (folder / "words.json").write_text(json.dumps(list(index)), encoding="utf-8")
    facts: dict[str, Any] = {
        "classes": names,
        "notes": stream.notes,
        "tokenizer": tokenizer.to_dict(),
        "keys": None if keys is None else keys.to_dict(),
        "files": _hashes(folder),
    }
    write_json(folder / "rows.json", {**facts, "itself": _hash_of(facts)})


def _hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in a folder, by name."""
    return {path.name: file_sha256(path) for path in sorted(folder.iterdir())}


def _hash_of(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _check_hashes(folder: Path, hashes: Mapping[str, str]) -> None:
    """Raise ValueError, or OSError, where a file is not what it was when it was written."""
    for name, expected in hashes.items():
        if file_sha256(folder / name) != expected:
            raise ValueError(f"{folder / name} is not what was written")


def _tokenised(
    blocks: Iterable[Block], tokenizer: Tokenizer, keys: Tokenizer, jobs: int | None
) -> Iterator[tuple[Block, Tokenised]]:
    """Each block with its tokens, in order."""
    jobs = processors() if jobs is None else jobs
    blocks = iter(blocks)
    first = list(islice(blocks, 2))
    if jobs == 1 or len(first) < 2:  # processes would cost more than they gain
        for block in chain(first, blocks):
            yield block, tokenise_block(tokenizer, keys, block.texts)
        return
    from joblib import Parallel, delayed

    blocks = chain(first, blocks)
    work, facts = delayed(_tokenise_there), json.dumps(tokenizer.to_dict())
    facts_of_keys = None if keys is tokenizer else json.dumps(keys.to_dict())
    with Parallel(n_jobs=jobs, return_as="generator", batch_size=1) as parallel:
        # Some blocks at a time, so that neither texts nor tokens pile up.
        while some := list(islice(blocks, _AHEAD * jobs)):
            found = parallel(work(facts, facts_of_keys, block.texts) for block in some)
            yield from zip(some, found, strict=True)


def _tokenise_there(facts: str, of_keys: str | None, texts: Sequence[str]) -> Tokenised:
    """`tokenise_block` in a process that remembers the words of the blocks before."""
    return tokenise_block(_tokenizer(facts), _tokenizer(of_keys or facts), texts)


@lru_cache(maxsize=2)
def _tokenizer(facts: str) -> Tokenizer:
    return Tokenizer.from_dict(json.loads(facts))


class FileRows:
    """What `tokenise_file` wrote into a folder. Raises one of `_DAMAGE` for anything else.

    classes: the labels in sorted order. counts: how often each word came.
    notes: what the reader decided.

    What there is of every row is read from its file each time it is asked for, since nobody needs
    it for long and all of it together weighs as much as a batch.
    """

    def __init__(self, folder: Path) -> None:
        facts = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
        if facts.pop("itself") != _hash_of(facts):
            raise ValueError("rows.json is not what was written")
        _check_hashes(folder, facts["files"])
        self.folder = folder
        self.classes: list[str] = facts["classes"]
        self.notes: list[str] = facts["notes"]
        self.tokenizer = Tokenizer.from_dict(facts["tokenizer"])
        self.keys = Tokenizer.from_dict(facts["keys"]) if facts["keys"] else self.tokenizer
        self.counts = self._array("counts")
        self.tokens = IdFile(folder / "tokens.bin")
        offsets, labels = self._array("offsets", "r"), self._array("labels", "r")
        self._count = len(labels)
        others = (self._array(name, "r") for name in ("lines", "texts"))
        if offsets[-1] != len(self.tokens) or {len(offsets) - 1, *map(len, others)} != {len(self)}:
            raise ValueError("its files do not belong together")

    def _array(self, name: str, mode: Literal["r"] | None = None) -> np.ndarray:
        found: np.ndarray = np.load(self.folder / f"{name}.npy", mode, allow_pickle=False)
        return found

    def __len__(self) -> int:
        return self._count

    def labels(self) -> np.ndarray:
        """Numbers of the classes, int32 `[N]`."""
        return self._array("labels").astype(np.int32, copy=False)

    def lines(self) -> np.ndarray:
        """The line of the file each row starts on, int64 `[N]`."""
        return self._array("lines")

    def offsets(self) -> np.ndarray:
        """Where each row begins in `tokens` and the last one ends, int64 `[N + 1]`."""
        return self._array("offsets")

    def words(self) -> list[str]:
        """The distinct words, in the order in which they first came."""
        found: list[str] = json.loads((self.folder / "words.json").read_text(encoding="utf-8"))
        return found

    def hashes(self) -> np.ndarray:
        """Of the texts, uint64 `[N]`: copies have one."""
        return self._array("texts")

    def told_conflicting(self) -> str:
        """As `duplicates.told_conflicting` tells it."""
        labels, lines = self.labels(), self.lines()
        _, first, group = np.unique(self._array("texts"), return_index=True, return_inverse=True)
        group = group.ravel()
        other = np.flatnonzero(labels != labels[first[group]])
        if not len(other):
            return ""
        texts = np.unique(group[other])
        start = first[texts].min()
        end = other[group[other] == group[start]][0]
        return told_several(len(texts), "on lines", lines[start], lines[end])

    def hold_back(self, most: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Sorted rows to train on, and rows held back: about the share `most` of each class.

        Copies of a text stand on one side, that of the first one. How many each class gives is as
        in `splits.stratified_holdout`: it keeps two texts.
        """
        labels = self.labels()
        _, first, group = np.unique(self._array("texts"), return_index=True, return_inverse=True)
        draw = np.random.RandomState(seed)  # its stream is frozen, as in `splits`
        own = [
            draw.permutation(np.flatnonzero(labels[first] == k)) for k in range(len(self.classes))
        ]
        held = np.zeros(len(first), dtype=bool)
        for texts, count in zip(own, quotas([*map(len, own)], most, draw), strict=True):
            held[texts[:count]] = True
        # A copy may have another label than the first one, whose class would go with it.
        pairs = np.unique(group.ravel() * len(own) + labels)
        text, label = np.divmod(pairs, len(own))
        for k in range(len(own)):
            of_class = text[label == k]
            short = min(FLOOR, len(of_class)) - int((~held[of_class]).sum())
            held[of_class[held[of_class]][: max(short, 0)]] = False
        out = held[group]
        return np.flatnonzero(~out), np.flatnonzero(out)


class TrainingRows:
    """The rows of a `FileRows` that are trained on.

    rows: their numbers, int64 `[n]`, ascending.
    sample: positions among them, int64, of the rows that what cannot take all is fitted on.
    digest: a hash of all that their tokens follow from.
    """

    def __init__(self, source: FileRows, rows: np.ndarray, sample: np.ndarray) -> None:
        self.source, self.rows, self.sample = source, rows, sample
        digest = hashlib.sha256(source.folder.name.encode())
        digest.update(np.ascontiguousarray(rows, dtype="<i8").tobytes())
        self.digest = digest.hexdigest()

    def __len__(self) -> int:
        return len(self.rows)

    def class_counts(self) -> dict[str, int]:
        """Rows of each class, sorted by label."""
        counts = np.bincount(self.labels, minlength=len(self.source.classes))
        return dict(zip(self.source.classes, counts.tolist(), strict=True))

    @property
    def tokenizer(self) -> Tokenizer:
        return self.source.tokenizer

    @property
    def labels(self) -> np.ndarray:
        """Class numbers int32 `[n]`."""
        return self.source.labels()[self.rows]

    def __iter__(self) -> Iterator[list[str]]:
        """The tokens of each row, whole."""
        words = np.array(self.source.words(), dtype=object)
        for ids, sizes in self._read(self.rows):
            ends = np.cumsum(sizes).tolist()
            tokens = words[ids].tolist()
            yield from (tokens[end - size : end] for size, end in zip(sizes, ends, strict=True))

    def has(self, texts: Sequence[str]) -> int:
        """How many of the texts are copies of one of these rows."""
        hashes = _hashes_of(texts, self.source.keys.many(texts))
        return int(np.isin(hashes, self.source.hashes()[self.rows]).sum())

    def _read(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, list[int]]]:
        """Ids of the source's words in some rows at a time, and how many each row has."""
        offsets = self.source.offsets()
        starts = offsets[rows]
        sizes = offsets[rows + 1] - starts
        del offsets
        for part in chunks(sizes):
            yield self.source.tokens.read(starts[part], sizes[part]), sizes[part].tolist()

    def vocabulary(self, min_count: int) -> Vocabulary:
        """The same vocabulary as `Vocabulary.build` makes of these rows' tokens."""
        source, words = self.source, self.source.words()
        counts = source.counts.copy()
        others = np.ones(len(source), dtype=bool)
        others[self.rows] = False
        for ids, _ in self._read(np.flatnonzero(others)):
            counts -= np.bincount(ids, minlength=len(counts))
        seen = {word: int(n) for word, n in zip(words, counts, strict=True) if n > 0}
        return Vocabulary.from_counts(Counter(seen), min_count)

    def longer_than(self, length: int) -> int:
        """How many rows have more tokens."""
        offsets = self.source.offsets()
        return int((offsets[self.rows + 1] - offsets[self.rows] > length).sum())

    def store(self, vocabulary: Vocabulary, min_count: int, max_length: int) -> FileStore:
        """Ids `[n]` of sentences under the vocabulary that these rows have at `min_count`."""
        name = hashlib.sha256(f"{self.digest} {min_count} {max_length}".encode()).hexdigest()[:32]
        place = self.source.folder / f"cut-{name}"

        def make(folder: Path) -> None:
            ids = vocabulary.encode(self.source.words())
            write_cut(folder, self.source.tokens, self.source.offsets(), self.rows, ids, max_length)
            write_json(folder / "files.json", _hashes(folder))

        return _kept(place, _open_whole_ids, make)


def _open_whole_ids(folder: Path) -> FileStore:
    _check_hashes(folder, json.loads((folder / "files.json").read_text(encoding="utf-8")))
    return open_ids(folder)


def tokenised_rows(
    file: str | Path,
    sha256: str,
    tokenizer: Tokenizer,
    columns: tuple[Any, Any],
    home: Path,
    advance: Callable[[int], None] = lambda done: None,
    jobs: int | None = None,
    reading: Mapping[str, Any] = MappingProxyType({}),
    keys: Tokenizer | None = None,
) -> FileRows:
    """The rows of a file, out of the folder `home` if they were tokenised before.

    Args:
        sha256: of the file's bytes.
        columns: text column and label column, as `read_labelled` takes them.
        home: stores are in `tokens` inside it.
        advance: called with the rows done so far.
        jobs: processes; by default as many as there are processors.
        reading: as `read_labelled` takes it.
        keys: as in `tokenise_file`.

    Raises DataError for rows that cannot be read, OSError where the store cannot be written.
    """
    facts = [sha256, Path(file).suffixes, columns, tokenizer.to_dict(), __version__, _STORE]
    # A header that is said not to be there is another reading than one that is looked for.
    said = {name for name in reading if reading[name] or (name, reading[name]) == ("header", False)}
    facts += [[name, reading[name]] for name in sorted(said)]
    facts.append(None if keys is None else keys.to_dict())
    name = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()

    def make(folder: Path) -> None:
        stream = RowStream(file, *columns, **reading)
        for done in tokenise_file(stream, tokenizer, folder, jobs, keys):
            advance(done)

    place = home / "tokens" / name[:32]
    cache.use(place)
    rows: FileRows = _kept(place, FileRows, make)
    cache.trim()
    return rows


def _kept(place: Path, read: Callable[[Path], Any], make: Callable[[Path], None]) -> Any:
    """What stands at `place`; made first where nothing whole does.

    Several processes may make the same at once; the first one's stays.
    """
    with suppress(*_DAMAGE):
        found = read(place)
        clear_staging(place)
        return found
    place.parent.mkdir(parents=True, exist_ok=True)
    with staging_folder(place) as hidden:
        fresh = hidden / "new"
        fresh.mkdir()
        make(fresh)
        with suppress(*_DAMAGE):
            return read(place)
        replace_folder(fresh, place, hidden / "old")
    return read(place)
