"""Sentences and tokens of text files, larger than memory or not, for training word vectors."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import tempfile
import weakref
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

from superconext._version import __version__
from superconext.core.errors import ColumnError, ConfigError, DataError
from superconext.core.files import file_sha256, refuse_pipe, write_json
from superconext.core.progress import WARNING, Advance, Progress
from superconext.data.duplicates import Decontamination
from superconext.data.file_format import format_of_suffix
from superconext.data.formats import FASTTEXT_PREFIX
from superconext.data.lines import (
    STDIN,
    UNNAMED,
    OpenFile,
    advice,
    end_of_lines,
    guessed,
    open_file,
    refuse_other,
    shard_paths,
    shown,
)
from superconext.data.plain_text import TextDoubts
from superconext.data.reading import RowStream
from superconext.data.token_store import MemoryRows, TokenRows
from superconext.text.mojibake import mended
from superconext.text.normalize import normalizer_of
from superconext.text.tokenize import Tokenizer

#: Lines, shared by the files, on which the profile `auto` is decided.
PROFILE_LINES = 20_000

#: Unlabelled text of so many times the size of the labelled texts is learned from without them.
#: Of less the training rows are too large a part to be missed.
APART_FROM = 20

_LONGEST = 1 << 20  # bytes; a longer line is read in pieces
_FEW_DAMAGED = 10  # lines in another encoding that are read all the same, with a note
_SAMPLE = 1 << 12  # bytes, about, that another encoding is guessed on
_RECORD = "tokenizer.json"
_REPORT = 5_000  # lines between two steps of a progress bar


class Lines:
    """The sentences of one or more files, read again on each pass.

    Plain text (also `.gz`) is streamed, one sentence a line, blank lines left out. Labelled
    files (of a format known by its suffix, or lines that open with `__label__`) are streamed too,
    but only their text column, so that no label becomes a word. `encoding` and `fix_text` are those
    of `RowStream`; by default nobody can name an encoding.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        text_column: str | None = None,
        encoding: str | None = UNNAMED,
        fix_text: bool = False,
    ) -> None:
        self.once = False  # whether there is one pass alone, so that a pipe may be read
        self.paths = [Path(path) for path in paths]
        self.text_column, self.encoding, self.fix_text = text_column, encoding, fix_text
        self._found: dict[Path, tuple[int, list[str]]] = {}  # lines that were read, and notes

    @property
    def notes(self) -> list[str]:
        """How the files were read, and what is odd about them; the first lines tell of a file that
        was not read, because what is learned from it is in the cache. Raises DataError if it cannot
        be read."""
        for path in self.paths:
            if path not in self._found:
                lines = self.of(path)
                for _ in islice(lines, PROFILE_LINES):
                    pass
                lines.close()
        return [note for path in dict.fromkeys(self.paths) for note in self._found[path][1]]

    def __iter__(self) -> Iterator[str]:
        for path in self.paths:
            yield from self.of(path)

    def of(self, path: Path) -> Generator[str, None, None]:
        """The sentences of one of the files. Raises DataError if it cannot be read."""
        if str(path) == STDIN:
            raise DataError("-: text is read several times; expected a file: save it as one")
        if not self.once:
            _refuse_what_is_no_file(path)
        with open_file(path, encoding=self.encoding) as file:
            refuse_other(file)
            start = file.first.lstrip(b"\xef\xbb\xbf \t\r\n")
            is_table = start.startswith(FASTTEXT_PREFIX.encode())
            is_table = is_table or format_of_suffix(file.suffix) is not None
            tabular = self.text_column is not None or is_table
            yield from self._rows(path) if tabular else self._plain(path, file)

    def _rows(self, path: Path) -> Iterator[str]:
        """The text column of a table or of labelled lines."""
        reading: dict[str, Any] = {"encoding": self.encoding, "fix_text": self.fix_text}
        rows = RowStream(path, self.text_column, labelled=False, **reading)
        try:
            for block in rows:
                yield from block.texts
        except ColumnError as error:
            if self.encoding != UNNAMED:
                raise
            found = str(error).rpartition(": ")[0]  # without the options, which others have
            raise ColumnError(
                f"{found}: write its texts alone into a file, one a line, or name their column text"
            ) from None
        finally:
            self._keep(path, rows.read, rows.notes)

    def _plain(self, path: Path, file: OpenFile) -> Iterator[str]:
        """The lines on which something stands."""
        doubts = TextDoubts()
        damaged = whole = 0
        sample = b""
        notes = [f"read as {file.encoding}"] if file.encoding else []
        try:
            for number, row in enumerate(_lines(file.chunks), start=1):
                raw = row.removesuffix(b"\r")  # else a line would count as several
                if b"\0" in raw:
                    raise DataError(
                        f"{path}, line {number}: found a NUL byte, expected text: the file is "
                        "binary or UTF-16; name a text file"
                    )
                try:
                    line = raw.decode("utf-8")
                    whole += not line.isascii()
                except UnicodeDecodeError:
                    damaged += 1
                    sample += raw[:_SAMPLE] + b"\n" if len(sample) < _SAMPLE else b""
                    line = raw.decode("utf-8", "replace")
                doubts.add(line)
                if line.strip():
                    yield mended(line) if self.fix_text else line
            most = max(whole, min(max(_FEW_DAMAGED, doubts.count / 10), max(doubts.count / 2, 2)))
            if damaged > most:
                raise DataError(
                    f"{path}: {damaged} of {doubts.count} lines are not UTF-8, expected UTF-8"
                    + self._mend(path, sample) * (damaged > whole)
                )
        finally:
            if not self.fix_text:
                notes += doubts.garbled(", or give --fix-text" * (self.encoding != UNNAMED))
            notes += doubts.tabular()
            if damaged:
                found = (
                    f"{damaged} of {doubts.count} lines are not UTF-8 and have replacement marks"
                )
                notes.append(found + self._mend(path, sample) * (damaged > whole))
            self._keep(path, doubts.count, notes)

    def _mend(self, path: Path, sample: bytes) -> str:
        mend = f": {advice(sample, self.encoding)}"
        if self.encoding == UNNAMED:
            named = guessed(sample) or "NAME"
            mend += (
                "; --encoding is for labelled files, but superconext data pool "
                f"{shlex.quote(str(path))} --encoding {named} --out NEW.txt saves it so"
            )
        return mend

    def _keep(self, path: Path, count: int, notes: Sequence[str]) -> None:
        """Keep the notes about `count` lines of a file; one that warns opens with that."""
        if count < self._found.get(path, (0, []))[0]:
            return
        told = []
        for note in dict.fromkeys(notes):
            lead = WARNING * note.startswith(WARNING)
            told.append(f"{lead}{path}: {note.removeprefix(lead)}")
        self._found[path] = count, told


def make_tokenizer(lines: Lines, normalize: str = "auto", bridge: str | None = None) -> Tokenizer:
    """The tokenizer for a text; `auto` is decided on the first lines of each of its files.

    normalize: profile and rules, see `parse_normalize`.

    Raises ConfigError for an unknown profile, rule or dialect, DataError for an unreadable file.
    """
    share = max(PROFILE_LINES // max(len(lines.paths), 1), 1)
    first = (line for path in lines.paths for line in islice(lines.of(path), share))
    return Tokenizer(normalizer_of(normalize, first), bridge)


def text_to_clear(
    lines: Lines, tokenizer: Tokenizer, held: Sequence[str], rows: TokenRows
) -> tuple[Decontamination, bool]:
    """What unlabelled lines are cleared of, and whether that is every labelled text.

    held: dev and test texts, which are always left out. rows: of training. Lines that are
    `APART_FROM` times as much text as both are cleared of both: what is learned from them alone
    does not depend on which rows are held out, so that another seed finds it in the cache.
    """
    if lines.paths and isinstance(rows, MemoryRows):
        everything = Decontamination(held, tokenizer, rows)
        there = [path for path in lines.paths if all(map(os.path.isfile, files_of(path)))]
        size = sum(_size(path) * _packed(path) for path in there)
        if size >= APART_FROM * everything.size:
            return everything, True
    return Decontamination(held if lines.paths else (), tokenizer), False


def files_of(path: Path) -> list[Path]:
    """The file, or those of a folder that Hugging Face `datasets` saved."""
    return shard_paths(path) if os.path.isfile(path / "state.json") else [path]


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in files_of(path))


def _packed(path: Path) -> int:
    """About what gzip gains on text."""
    return 4 if path.suffix == ".gz" else 1


def record_tokenizer(folder: Path, tokenizer: Tokenizer) -> None:
    """Note in a folder of word vectors how their words are spelt."""
    write_json(folder / _RECORD, tokenizer.to_dict())


def recorded_tokenizer(source: str | Path) -> Tokenizer | None:
    """What `record_tokenizer` noted, or None. Raises ConfigError if it is damaged."""
    path = Path(source) / _RECORD
    if not path.is_file():
        return None
    try:
        return Tokenizer.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ConfigError(
            f"{path}: not the record of a tokenizer ({error}); expected one as `vectors train` "
            "writes it; remove it, or train the vectors again"
        ) from error


class Sentences:
    """Token lists: `given` ones, then those of `lines`, made when somebody first asks.

    Training passes over a text many times and tokenising is as slow as training, so the tokens
    of the lines are kept on disk, in a file without a name in `scratch`.

    scratch: folder for that file; by default the system's for such files. given: tokens made
    already. left_out: what lines may not say; such lines are left out, `given` ones stay.
    """

    def __init__(
        self,
        lines: Lines,
        tokenizer: Tokenizer,
        scratch: Path | None,
        progress: Progress,
        given: TokenRows | None = None,
        left_out: Decontamination | None = None,
    ) -> None:
        self.left_out = left_out
        self.lines, self.tokenizer, self.progress = lines, tokenizer, progress
        self.scratch, self.given = scratch, given
        self._kept: IO[str] | None = None

    @property
    def tokenised(self) -> bool:
        """Whether the lines have been tokenised."""
        return self._kept is not None

    def identity(self) -> str:
        """A hash of everything the tokens follow from, without making them.

        Raises DataError if a file is not there.
        """
        digest = hashlib.sha256((self.given.digest if self.given else "").encode())
        if self.lines.paths:
            facts: list[Any] = [self.tokenizer.to_dict(), self.lines.text_column, __version__]
            if self.lines.encoding or self.lines.fix_text:
                facts += [self.lines.encoding, self.lines.fix_text]
            for path in self.lines.paths:
                if not all(map(os.path.isfile, files_of(path))):  # or a text too long for a name
                    _refuse_what_is_no_file(path)
                    found, mend = "no such file", "check the path"
                    if os.path.isdir(path):
                        found = "is a folder"
                        mend = "superconext data pool FILES --out FILE makes one of many"
                    raise DataError(
                        f"{str(path)[:200]}: {found}; expected a file with one sentence a "
                        f"line: {mend}"
                    )
                facts += [*map(file_sha256, files_of(path)), path.suffixes]
            if self.left_out:
                facts.append(self.left_out.digest)
            digest.update(json.dumps(facts, sort_keys=True).encode())
        return digest.hexdigest()

    def __iter__(self) -> Iterator[Sequence[str]]:
        yield from self.given or ()
        if not self.lines.paths:
            return
        if self._kept is None:
            with self.progress.bar("tokenising") as advance:
                self._kept = self._tokenised(advance)
        self._kept.seek(0)
        for line in self._kept:
            yield line.rstrip("\n").split(" ")

    def _tokenised(self, advance: Advance) -> IO[str]:
        # No token holds white space, so a blank between two of them can be undone.
        with self._named():
            kept = tempfile.TemporaryFile(  # noqa: SIM115
                "w+", encoding="utf-8", errors="surrogatepass", newline="\n", dir=self.scratch
            )
        weakref.finalize(self, kept.close)
        total = sum(map(_size, self.lines.paths)) or 1
        done = count = 0
        for path in self.lines.paths:
            size, read = _size(path), 0
            packed = _packed(path)
            for line in self.lines.of(path):
                count += 1
                read += len(line.encode("utf-8", "replace"))
                tokens = self.tokenizer(line)
                if tokens and not self._left_out(line, tokens):
                    self._keep(kept, " ".join(tokens) + "\n")
                if count % _REPORT == 0:
                    advance((done + min(read / packed, size)) / total)
            done += size
        if not count:
            raise DataError(
                f"{', '.join(map(str, self.lines.paths))}: no text found; expected one sentence a "
                "line: check the file name"
            )
        self._keep(kept, "", flush=True)
        if self.left_out:
            lines = f"{self.left_out.removed} of {count} unlabelled lines"
            self.progress.say(
                f"left out: {lines}, because they repeat a labelled text"
                if self.left_out.removed
                else f"{lines} repeat a labelled text"
            )
        return kept

    def _left_out(self, line: str, tokens: Sequence[str]) -> bool:
        """Whether the line, or one of its cells beside a label, say, is to be left out."""
        return self.left_out is not None and self.left_out.repeats(line, tokens)

    def _keep(self, kept: IO[str], line: str, flush: bool = False) -> None:
        with self._named():
            kept.write(line)
            if flush:
                kept.flush()

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Inside the block errors name the folder: the file has no name that anybody knows."""
        try:
            yield
        except OSError as error:
            error.filename = str(self.scratch or tempfile.gettempdir())
            raise


def _refuse_what_is_no_file(path: Path) -> None:
    """Raise DataError for a pipe, and for several words without a suffix, where there is no such
    file."""
    name = str(path)
    if re.search(r"\s", path.name) and not re.search(r"\.\w+$", name) and not os.path.exists(path):
        raise DataError(
            f"found {shown(name)}, expected paths of text files, not sentences: write the texts "
            "into a file, one a line, and name that, or check the path"
        )
    refuse_pipe(path, "text")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their line feed, cut into pieces of `_LONGEST` bytes at most: between words,
    or at least characters."""
    begun = end = b""
    for chunk in chunks:
        end = end or end_of_lines(chunk, False)
        *ended, begun = (begun + chunk).split(end)
        for line in ended:
            while len(line) > _LONGEST:
                cut = _cut(line)
                yield line[:cut]
                line = line[cut:]
            yield line
        while len(begun) > _LONGEST:
            cut = _cut(begun)
            yield begun[:cut]
            begun = begun[cut:]
    if begun:
        yield begun


def _cut(line: bytes) -> int:
    """After the last blank or tab of the first `_LONGEST` bytes, or where no UTF-8 character is
    cut."""
    cut = max(line.rfind(blank, 0, _LONGEST) for blank in (b" ", b"\t")) + 1
    if not cut:
        cut = next((k for k in range(_LONGEST, _LONGEST - 4, -1) if line[k] >> 6 != 2), _LONGEST)
    return cut or _LONGEST
