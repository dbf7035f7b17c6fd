"""One clean file of unlabelled text out of many: `superconext data pool`.

Each line is one sentence or post. What is left out, and why:

    unreadable       bytes that are no text, records that cannot be parsed
    short            fewer words than asked for, once addresses and handles are gone
    left out         the words of a labelled text (`duplicates.Decontamination`)
    other language   unlike the wanted texts (`text.language.Resemblance`)
    repeat           the words of a line that is kept
    near repeat      similar to one (`duplicates`: character 4-grams, found by MinHash bands)

Memory is bounded: tables of a fixed size remember what is kept, and beyond some ten million lines
the oldest are forgotten, so that a repeat may stay but nothing is dropped wrongly. The file grows
beside its place (`OUT.part`), and a state beside it (`OUT.part.json`) says how far each source was
read; a call that was stopped resumes from there, its memory made again from what is kept.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import os
import zipfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from io import RawIOBase
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from superconext._version import __version__
from superconext.core.errors import ConfigError, DataError, StoppedEarly, listed
from superconext.core.files import blamed_on, sync, write_json
from superconext.core.progress import WARNING, Progress
from superconext.data.columns import Known
from superconext.data.duplicates import (
    Decontamination,
    jaccard,
    shingles,
    signatures_of,
    text_hashes,
    wording,
)
from superconext.data.file_format import (
    FILE_FORMATS,
    RowFile,
    Wanted,
    format_of_suffix,
    open_rows,
)
from superconext.data.lines import STDIN, most_unpacked, open_file, open_stream
from superconext.data.plain_text import TextDoubts
from superconext.data.reading import CELL_LINES, LOOK_AHEAD, read_texts
from superconext.text.language import Resemblance
from superconext.text.markup import cleaned
from superconext.text.normalize import normalizer_of
from superconext.text.tokenize import Tokenizer

#: Why a line is left out, in the order in which it is asked.
REASONS = ("unreadable", "short", "left out", "other language", "repeat", "near repeat")

_BATCH = 2048  # lines judged at once
_SAVED = 20_000  # lines between two states
_SAMPLE = 20_000  # lines that languages are learned from, shared by the sources
_SAMPLED = 200_000  # lines of a source that they are drawn from
_SHOWN = 5  # lines left out that are shown for each reason
_IDENTITY = 64  # letters of a state's identity

#: Of a signature of 64: at a similarity of 0.8 one pair in 100 is missed, more where very many
#: lines are made of one template.
_ROWS, _BANDS = 5, 12
_SLOTS, _LATEST = 1 << 16, 16  # of each band's table, and lines that a slot remembers
_LOOKED_AT = 32  # lines that share a band with a new one and are compared with it
_PLACE = 40  # bits of a place in the file
_MOST_HASHES = 1 << 25


@dataclass(frozen=True)
class PoolRequest:
    """What the user asked for.

    files: of any format that texts are read from, or zip archives of such.
    like: labelled files that show the wanted language; unlike: text in languages to drop.
    near: similarity from which a line is a near repeat, None not to look.
    min_words: words a line has at least.
    """

    files: tuple[str, ...]
    out: str
    leave_out: tuple[str, ...] = ()
    like: tuple[str, ...] = ()
    unlike: tuple[str, ...] = ()
    text_column: str | None = None
    encoding: str | None = None
    near: float | None = 0.8
    min_words: int = 2
    normalize: str = "auto"

    @property
    def texts(self) -> tuple[str, ...]:
        """Every file that is read."""
        return (*self.files, *self.leave_out, *self.like, *self.unlike)


@dataclass(frozen=True)
class Source:
    """A file, or a member of a zip archive."""

    path: str
    member: str = ""

    @property
    def name(self) -> str:
        return f"{self.path}:{self.member}" if self.member else self.path

    def lines(
        self,
        request: PoolRequest,
        skip: Callable[[DataError], None],
        doubts: TextDoubts | None = None,
    ) -> Iterator[str]:
        """Its lines as they stand. skip: told of what cannot be read. doubts: follows them.

        Raises DataError for what is wrong with the whole file.
        """

        if self.member:
            with zipfile.ZipFile(self.path) as archive:  # its members stay open until their end
                stream = cast(BinaryIO, archive.open(self.member))
            opened = open_stream(stream, self.name, request.encoding)
        else:
            opened = open_file(self.path, encoding=request.encoding)
        with opened:
            tabular = request.text_column if format_of_suffix(opened.suffix) else None
            wanted = Wanted(tabular, None, labelled=False)
            rows = open_rows(RowFile(opened, wanted, skip, LOOK_AHEAD, CELL_LINES))
            for block in rows.blocks() if rows is not None else ():
                for text in block.texts:  # cells of a table that says it is plain text
                    for line in text.split("\t"):
                        if doubts is not None:
                            doubts.add(line)
                        yield line


def sources_of(files: Sequence[str], say: Callable[[str], None]) -> list[Source]:
    """The files, each zip archive as its members whose format is known by their name; `say` is
    told of the others.

    Raises DataError for an archive that is broken, locked, or packed beyond belief.
    """
    suffixes = {".txt", ".gz", ".bz2"}
    for name in FILE_FORMATS.names():
        kind = FILE_FORMATS.get(name)
        suffixes |= {*kind.suffixes, *kind.within}
    found = []
    for path in files:
        try:
            is_zip = zipfile.is_zipfile(path)
            is_zip |= path.lower().endswith(".zip") and Path(path).is_file()
            members = _members(path) if is_zip else []
        except (OSError, zipfile.BadZipFile, NotImplementedError) as error:
            raise DataError(f"{path}: broken archive ({error}), expected a zip: copy it") from None
        if not members or any(member.filename == "xl/workbook.xml" for member in members):
            found.append(Source(path))
            continue
        files_in = [m for m in members if "__MACOSX" not in m.filename and not m.is_dir()]
        kept = [m for m in files_in if Path(m.filename).suffix.lower() in suffixes]
        if others := [m.filename for m in files_in if m not in kept]:
            say(f"note: {path}: no known format, passed over: {listed(others, 3)}")
        bomb = next((m for m in kept if m.file_size > most_unpacked(m.compress_size)), None)
        if not kept or bomb or any(member.flag_bits & 1 for member in kept):
            what = "no file of a known format"
            if kept:
                what = f"{bomb.filename!r} packed beyond belief" if bomb else "locked files"
            raise DataError(f"{path}: found {what} in the archive, expected text: unpack it")
        found += [Source(path, member.filename) for member in kept]
    return found


def _members(path: str) -> list[zipfile.ZipInfo]:
    with zipfile.ZipFile(path) as archive:
        return archive.infolist()


class _Hashes:
    """A set of 64-bit numbers in an array; when it may not grow, new ones take old ones' place."""

    def __init__(self) -> None:
        self.slots, self.count = array("Q", bytes(8 << 12)), 0

    def add(self, key: int) -> bool:
        """Whether the number is new."""
        key = key or 1
        if self.count * 2 > len(self.slots):
            self._grow()
        mask = len(self.slots) - 1
        for step in range(32):
            place = (key + step) & mask
            if self.slots[place] == key:
                return False
            if not self.slots[place]:
                self.slots[place] = key
                self.count += 1
                return True
        if self._grow():  # a crowded place
            return self.add(key)
        self.slots[key & mask] = key
        return True

    def _grow(self) -> bool:
        """Twice the room, where there may be more."""
        if len(self.slots) >= _MOST_HASHES:
            return False
        old, self.slots, self.count = self.slots, array("Q", bytes(16 * len(self.slots))), 0
        for number in filter(None, old):
            self.add(number)
        return True

    def __contains__(self, key: int) -> bool:
        key, mask = key or 1, len(self.slots) - 1
        for step in range(32):
            found = self.slots[(key + step) & mask]
            if found == key or not found:
                return bool(found)
        return False


class _Kept:
    """What is kept: the hashes of all wordings, and for near repeats where to look them up."""

    def __init__(self, path: Path, near: float | None, tokenizer: Tokenizer) -> None:
        self.path, self.near, self.tokenizer = path, near, tokenizer
        self.hashes = _Hashes()
        # Of the latest lines in a slot 1 + their place in the file, and 23 bits of the band's hash.
        self.bands = np.zeros((_BANDS, _SLOTS, _LATEST), dtype=np.int64)
        self.recent: dict[int, str] = {}  # wordings that are not in the file yet

    def keys(self, wordings: Sequence[str]) -> tuple[list[int], np.ndarray]:
        """Hash of each wording, and those of its bands `[N, 12]`, not negative."""
        hashes = text_hashes(wordings).tolist()
        if self.near is None or not wordings:
            return hashes, np.zeros((len(wordings), _BANDS), dtype=np.int64)
        signatures = signatures_of(wordings).astype(np.uint64)
        bands = np.zeros((len(wordings), _BANDS), dtype=np.uint64)
        for row in range(_ROWS):
            bands = (bands + signatures[:, row : _ROWS * _BANDS : _ROWS]) * np.uint64(
                0x9E3779B97F4A7C15
            )
            bands ^= bands >> np.uint64(31)
        return hashes, (bands >> np.uint64(1)).astype(np.int64)

    def is_near(self, words: str, bands: np.ndarray) -> bool:
        """Whether a line that is kept is as similar as `near`."""
        latest = self.bands[np.arange(_BANDS), bands % _SLOTS]
        same = latest >> _PLACE == (bands >> _PLACE)[:, None]
        places = latest[(latest > 0) & same] % (1 << _PLACE)
        own = None
        for place, _ in Counter(places.tolist()).most_common(_LOOKED_AT):
            other = self.recent.get(place) or self._read(place - 1)
            own = np.unique(shingles([words])[0]) if own is None else own
            if jaccard(own, np.unique(shingles([other])[0])) >= cast(float, self.near):
                return True
        return False

    def add(self, words: str, key: int, bands: np.ndarray, place: int) -> None:
        """Remember a line that is kept at a place of the file."""
        self.hashes.add(key)
        if self.near is not None:
            tags = bands >> _PLACE << _PLACE
            of_each, slots = np.arange(_BANDS), bands % _SLOTS
            self.bands[of_each, slots, 1:] = self.bands[of_each, slots, :-1]
            self.bands[of_each, slots, 0] = tags + place + 1
            self.recent[place + 1] = words

    def _read(self, place: int) -> str:
        with self.path.open("rb") as file:
            file.seek(place)
            return wording(self.tokenizer(file.readline().decode("utf-8").rstrip("\n")))


@dataclass
class _State:
    """How far a pool has come; written beside it.

    identity: a hash of the request and its files.
    """

    identity: str
    source: int = 0
    line: int = 0
    size: int = 0
    counts: list[dict[str, int]] = field(default_factory=list)
    shown: dict[str, list[list[Any]]] = field(default_factory=dict)

    @property
    def saved(self) -> bool:
        """Whether the one on the disk is worth going on from."""
        return bool(self.source or self.line)


def make_pool(request: PoolRequest, progress: Progress) -> dict[str, Any]:
    """Write the pool. Returns `sources` (name, read, kept, and a count for each reason), `kept`,
    and `dropped`: some lines left out by reason.

    Raises DataError for a file that cannot be read, and where something else stands in the place of
    `OUT.part`; ConfigError where a file to write is among the texts, or one of these is standard
    input; StoppedEarly for a KeyboardInterrupt that leaves what the same call goes on from.
    """
    out = Path(request.out)
    if STDIN in request.texts:
        raise ConfigError("-: text is read several times; expected a file: save it as one")
    part, state_path = (out.with_name(out.name + end) for end in (".part", ".part.json"))
    for path in (out, part, state_path):
        if any(Path(text).resolve() == path.resolve() for text in request.texts):
            raise ConfigError(
                f"{path} is one of the files, and would be written; expected a new one: choose "
                "another --out"
            )
    _check_own(part, state_path)
    sources = sources_of(request.files, progress.say)
    state = _begun(request, sources, state_path, part)
    with _resumable(state, state_path, part):
        tokenizer = _fill(request, sources, state, state_path, part, progress)
    if not state.size:
        _remove(part, state_path)
        unread = [line for _, line in state.shown.get("unreadable", [])[:1]]
        raise DataError(
            f"{', '.join(request.files)}: no line is kept, expected some text: see the reasons "
            f"({'; '.join([_reasons(state), *unread])})"
        )
    os.replace(part, out)
    state_path.unlink(missing_ok=True)
    sync(out.parent)
    return {
        "out": str(out),
        "profile": tokenizer.normalizer.named,
        "kept": sum(count.get("kept", 0) for count in state.counts),
        "sources": [
            {
                "source": source.name,
                **{name: count.get(name, 0) for name in ("read", "kept", *REASONS)},
            }
            for source, count in zip(sources, state.counts, strict=True)
        ],
        "dropped": {name: [line for _, line in some] for name, some in sorted(state.shown.items())},
    }


def _fill(
    request: PoolRequest,
    sources: Sequence[Source],
    state: _State,
    state_path: Path,
    part: Path,
    progress: Progress,
) -> Tokenizer:
    """Read what is left of the sources into `part`; returns what the lines are compared by."""
    sample = {source.name: _sample(source, request, _SAMPLE // len(sources)) for source in sources}
    first = (line for some in sample.values() for line in some)
    tokenizer = Tokenizer(normalizer_of(request.normalize, first))
    column, encoding = request.text_column, request.encoding
    left_out = Decontamination.of_files(request.leave_out, tokenizer, column, encoding=encoding)
    known = Known(text=column)
    wanted, unwanted = (
        [text for path in files for text in read_texts(path, known=known, encoding=encoding).texts]
        for files in (request.like, request.unlike)
    )
    for note in left_out.notes:
        progress.note(note)
    language = Resemblance(wanted, sample, unwanted) if wanted else None
    kept = _remembered(state, state_path, part, request.near, tokenizer, progress)
    total = sum(Path(path).stat().st_size for path in request.files if Path(path).is_file()) or 1
    # Unbuffered, so that nothing is left to fail when it is closed.
    with part.open("r+b", buffering=0) as file, progress.bar("pooling") as advance:
        file.seek(state.size)
        seen = state.size  # bytes of the lines read, about
        for number in range(state.source, len(sources)):
            source = sources[number]
            counts = Counter(state.counts[number])
            unread = Counter[str]()

            def skip(error: DataError, unread: Counter[str] = unread) -> None:
                unread["unreadable"] += 1
                _show(state.shown.setdefault("unreadable", []), str(error))

            doubts = TextDoubts()
            position = saved = state.line
            for begin, lines in _batches(source.lines(request, skip, doubts)):
                position = begin + len(lines)
                if position <= state.line:
                    continue
                lines = lines[max(state.line - begin, 0) :]
                seen += sum(len(line.encode("utf-8", "replace")) + 1 for line in lines)
                judged = _judged(lines, source.name, request, tokenizer, left_out, language, kept)
                fresh = bytearray()
                for line, words, bands, key, reason in judged:
                    counts["read"] += 1
                    # Asked here, for lines of one batch may repeat one another.
                    if not reason and key in kept.hashes:
                        reason = "repeat"
                    elif not reason and kept.near is not None and kept.is_near(words, bands):
                        reason = "near repeat"
                    if reason:
                        counts[reason] += 1
                        _show(state.shown.setdefault(reason, []), line)
                        continue
                    counts["kept"] += 1
                    kept.add(words, key, bands, state.size)
                    data = line.encode("utf-8", "replace") + b"\n"
                    fresh += data
                    state.size += len(data)
                with blamed_on(part):
                    _write(file, fresh)
                kept.recent.clear()
                advance(min(seen / total, 1.0))
                if position - saved >= _SAVED:
                    saved = position
                    with blamed_on(part):
                        os.fsync(file.fileno())
                    state.counts[number] = dict(counts)
                    _save(state, number, position, state_path)
            for note in [*doubts.garbled(), *doubts.tabular()]:
                progress.note(f"{WARNING}{source.name}: {note.removeprefix(WARNING)}")
            counts["unreadable"] = unread["unreadable"]
            counts["read"] += unread["unreadable"]
            with blamed_on(part):
                os.fsync(file.fileno())
            state.counts[number] = dict(counts)
            _save(state, number + 1, 0, state_path)
    return tokenizer


def _write(file: RawIOBase, data: bytes | bytearray) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) :]


def _save(state: _State, source: int, line: int, path: Path) -> None:
    write_json(path, {**asdict(state), "source": source, "line": line})
    state.source, state.line = source, line


def _judged(
    lines: Sequence[str],
    source: str,
    request: PoolRequest,
    tokenizer: Tokenizer,
    left_out: Decontamination,
    language: Resemblance | None,
    kept: _Kept,
) -> Iterator[tuple[str, str, np.ndarray, int, str]]:
    """Each line clean, its wording, bands and hash, and why it is left out ("" so far not)."""
    lines = [cleaned(line) for line in lines]
    tokens = tokenizer.many(lines)
    wordings = [wording(words) for words in tokens]
    hashes, bands = kept.keys(wordings)
    similar = language.wanted(lines, source) if language else np.ones(len(lines), dtype=bool)
    for place, line in enumerate(lines):
        reason = ""
        if sum(map(_has_letter, wordings[place].split())) < request.min_words:
            reason = "short"
        elif left_out.holds(tokens[place]):
            reason = "left out"
        elif not similar[place]:
            reason = "other language"
        yield line, wordings[place], bands[place], hashes[place], reason


def _has_letter(word: str) -> bool:
    return any(map(str.isalpha, word))


def _batches(lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Number of the first, from 0, and some lines; the breaks are the same on every call."""
    begin, batch = 0, []
    for line in lines:
        batch.append(line)
        if len(batch) == _BATCH:
            yield begin, batch
            begin, batch = begin + len(batch), []
    if batch:
        yield begin, batch


def _rank(line: str) -> int:
    """A number that makes a draw of lines the same on every call."""
    return int.from_bytes(hashlib.blake2b(line.encode("utf-8", "replace"), digest_size=8).digest())


def _sample(source: Source, request: PoolRequest, most: int) -> list[str]:
    lines = set(
        islice(source.lines(request, lambda error: None), _SAMPLED if request.like else most)
    )
    return [cleaned(line) for line in heapq.nsmallest(max(most, 100), lines, key=_rank)]


def _show(some: list[list[Any]], line: str) -> None:
    """Keep a line among those that are shown: the ones of the lowest ranks."""
    rank = _rank(line)
    if (len(some) < _SHOWN or rank < some[-1][0]) and [rank, line] not in some:
        some.append([rank, line])
        some.sort()
        del some[_SHOWN:]


def _read_state(path: Path) -> _State | None:
    """The state of an unfinished pool; None where there is none, or something else."""
    with suppress(OSError, ValueError, TypeError, RecursionError):
        state = _State(**json.loads(path.read_text(encoding="utf-8")))
        if isinstance(state.identity, str) and len(state.identity) == _IDENTITY:
            return state
    return None


def _check_own(part: Path, state_path: Path) -> None:
    """Raise DataError where what is written on the way would replace what is no unfinished pool."""
    if _read_state(state_path) is not None:
        return
    for path in (part, state_path):
        if os.path.lexists(path):
            raise DataError(
                f"{path} exists and is not of an unfinished pool; expected the name to be free: "
                "rename or remove it"
            )


def _begun(request: PoolRequest, sources: Sequence[Source], state_path: Path, part: Path) -> _State:
    """The state of a call that was stopped, where it was the same, or a new one."""
    stats = [
        (Path(p).stat().st_size, Path(p).stat().st_mtime_ns) if Path(p).exists() else None
        for p in request.texts
    ]
    facts = [asdict(request), [source.name for source in sources], stats, __version__]
    identity = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    state = _read_state(state_path)
    there = part.stat().st_size if part.is_file() else -1
    if state is None or state.identity != identity or there < state.size:
        return _State(identity, counts=[{} for _ in sources])
    return state


@contextmanager
def _resumable(state: _State, state_path: Path, part: Path) -> Iterator[None]:
    """When the block raises, keep what the same call can go on from, if there is any."""
    try:
        yield
    except BaseException as error:
        on_disk = _read_state(state_path)
        if on_disk is None or on_disk.identity != state.identity:
            raise
        if not on_disk.saved:
            _remove(part, state_path)
        elif isinstance(error, KeyboardInterrupt):
            raise StoppedEarly(
                f"interrupted; what was kept so far is in {part}: repeat the command to resume"
            ) from None
        raise


def _remove(part: Path, state_path: Path) -> None:
    part.unlink(missing_ok=True)
    state_path.unlink(missing_ok=True)


def _remembered(
    state: _State,
    state_path: Path,
    part: Path,
    near: float | None,
    tokenizer: Tokenizer,
    progress: Progress,
) -> _Kept:
    """What is kept so far, made again from `part`; that and the state are made where all is new."""
    kept = _Kept(part, near, tokenizer)
    if not state.saved:
        if part.exists():
            progress.note(f"{part}, an unfinished pool, is discarded, and reading starts anew")
        write_json(state_path, asdict(state))  # first: it tells that `part` is ours
        with blamed_on(part):
            part.write_bytes(b"")
        return kept
    with part.open("r+b") as file:
        file.truncate(state.size)
        place = 0
        for _, lines in _batches(line.decode("utf-8").rstrip("\n") for line in file):
            wordings = [wording(words) for words in tokenizer.many(lines)]
            for row, (key, bands) in enumerate(zip(*kept.keys(wordings), strict=True)):
                kept.add(wordings[row], key, bands, place)
                place += len(lines[row].encode()) + 1
            kept.recent.clear()
    progress.say(f"resuming after {state.size} bytes of {part}")
    return kept


def _reasons(state: _State) -> str:
    totals: Counter[str] = sum((Counter(counts) for counts in state.counts), Counter())
    return ", ".join(f"{totals[name]} {name}" for name in ("read", *REASONS) if totals[name])
