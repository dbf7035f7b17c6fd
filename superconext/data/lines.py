"""The bytes of a file as lines of text, in blocks and in bounded memory.

A file is UTF-8, UTF-16 with a byte order mark, or in an encoding that is named; plain, or packed
by gzip or bzip2. `\\r\\n` and `\\n` end a
line; a lone `\\r` does in a file without `\\n` (one whose first piece has none) and is a stray
character otherwise. U+2028, U+0085 and the vertical tab never end a line: they occur inside
scraped sentences. A block holds as many lines as one read brings, so that a slow pipe is answered
line by line and a file in large pieces.
"""

from __future__ import annotations

import bz2
import codecs
import hashlib
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from superconext.core.errors import ConfigError, DataError, listed

#: What a file may open with that says its encoding; the longer ones first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE = 1 << 16  # bytes that are guessed on
_HEAD = 1 << 10  # bytes in which two of five are NUL where the file is UTF-16
_ALEF = b"\xc7"  # in windows-1256 and iso-8859-6
_FREQUENT = frozenset("اليمونرت")  # more than half of the letters of Arabic
_WITH_LATIN = re.compile(rb"[\xc0-\xff]*[A-Za-z][A-Za-z\xc0-\xff]*")

#: In place of an encoding, where nobody can name one: errors then say to save the file as UTF-8.
UNNAMED = ""


def check_encoding(name: str) -> str:
    """The name itself. Raises ConfigError where Python knows no encoding of texts of that name."""
    try:
        "".encode(name)
        if codecs.lookup(name).name in ("idna", "punycode"):  # of names of domains
            raise LookupError
    except (LookupError, ValueError):
        raise ConfigError(
            f"found encoding {name!r}, expected one that Python knows: give a name such as "
            "windows-1256, windows-1252 or utf-16"
        ) from None
    return name


def encoding_of(first: bytes, asked: str | None) -> str | None:
    """The encoding to read a file in that begins with `first`; None for UTF-8.

    It is that of the byte order mark, else the one asked for, unless the beginning is UTF-8 and
    more than ASCII, which no other encoding is by chance. Raises ConfigError for an unknown name.
    """
    marked = next((name for mark, name in _MARKS.items() if first.startswith(mark)), None)
    if marked is not None or not asked:
        return marked
    check_encoding(asked)
    return None if _is_utf8(first) else asked


def _is_utf8(first: bytes) -> bool:
    """Whether what a file begins with is UTF-8 and more than ASCII."""
    with suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(first)
        return not first.isascii()
    return False


def transcoded(
    chunks: Iterable[bytes], encoding: str, name: str, asked: str | None = None
) -> Iterator[bytes]:
    """The chunks in UTF-8. Raises DataError with the line that is not in the encoding.

    asked: the encoding that the user names; `UNNAMED` where he cannot.
    """
    decoder = codecs.getincrementaldecoder(encoding)()
    line, begun = 1, False

    def decode(chunk: bytes, final: bool = False) -> bytes:
        nonlocal line, begun
        try:
            text = decoder.decode(chunk, final)
        except UnicodeError as error:
            at, found = line, str(error)
            if isinstance(error, UnicodeDecodeError):
                at += error.object[: error.start].decode(encoding, "ignore").count("\n")
                found = f"byte 0x{error.object[error.start]:02x} ({error.reason})"
            mend = "give --encoding the encoding the file is in, or copy it again"
            if asked == UNNAMED:
                mend = "save the file as UTF-8, or copy it again"
            elif not begun and (better := _unmarked(chunk, encoding)):
                at, found, mend = 1, "no byte order mark", better
            raise DataError(
                f"{name}, line {at}: found {found}, expected text in {encoding}: {mend}"
            ) from None
        line, begun = line + text.count("\n"), True
        return text.encode("utf-8", "replace")

    for chunk in chunks:
        yield decode(chunk)
    yield decode(b"", final=True)


def _unmarked(first: bytes, encoding: str) -> str:
    """What to do about a file without the byte order mark that UTF-16 and UTF-32 begin with; "" for
    one with it, and for another encoding."""
    if codecs.lookup(encoding).name not in _MARKS.values() or first.startswith(tuple(_MARKS)):
        return ""
    if b"\0" not in first:
        return "leave out --encoding" if first.isascii() else advice(first)
    of_four = [max(first[place::4], default=0) for place in range(4)]
    for name, plane, zero in (("utf-32-le", 2, 3), ("utf-32-be", 1, 0)):
        if of_four[plane] <= 0x10 and not of_four[zero]:  # the last plane is 0x10
            return f"give --encoding {name}"
    # The high bytes of characters are alike; little-endian they come last.
    little = len({*first[1::2]}) <= len({*first[::2]})
    return f"give --encoding utf-16-{'le' if little else 'be'}"


def advice(sample: bytes, asked: str | None = None) -> str:
    """What to do about bytes that are not UTF-8: the likely encoding, with how it would read.

    asked: as in `transcoded`.
    """
    guess = guessed(sample)
    named = asked != UNNAMED
    if guess is None:
        among = "(Arabic: windows-1256; French: windows-1252)"
        return f"give --encoding its encoding {among}" if named else "save the file as UTF-8"
    text = sample.decode(guess, "replace")
    foreign = re.compile(r"[^\W\d_a-zA-Z]{3}|[^\x00-\x7f]")  # of punctuation nothing can be told
    found = max(foreign.finditer(text), key=lambda one: len(one[0]), default=None)
    place = found.start() if found else 0
    start = max(text.rfind(mark, 0, place) for mark in "\n \t;,|") + 1
    shown = text[start : place + 40].split("\n")[0]
    how = f"give --encoding {guess}" if named else f"save the file as UTF-8; it is in {guess}"
    return f"{how} if {shown.strip()!r} reads right"


def _is_latin(sample: bytes) -> bool:
    """Whether bytes read as words of Latin letters of which few have an accent: too few letters for
    statistics to tell."""
    try:
        text = sample.decode("windows-1252")
    except UnicodeDecodeError:
        return False
    letters = [character for character in text if character.isalpha()]
    accents = [character for character in letters if not character.isascii()]
    if b"\0" in sample or re.search("[\u0160\u0161\u017d\u017e\u0178\u0192\u02c6]", text):
        return False  # letters at bytes where the Macintosh has those with accents
    signs = {character for character in text if not character.isascii()} - {*accents}
    words = (word for word in re.findall(r"[^\W\d_]+", text) if not word.isascii())
    return (
        0 < 4 * len(accents) <= len(letters)
        and signs <= _SIGNS
        and all(re.search("[a-zA-Z]", word) or word in "àÀ" for word in words)
    )


def guessed(sample: bytes) -> str | None:
    """The likely encoding of bytes, by charset-normalizer; None where it sees none.

    Arabic is told by its letter alef, which stands for a rare capital in other encodings. Among
    encodings of Latin letters it often takes a rare one: there windows-1252 is taken,
    where it reads the bytes too, but for those of the Macintosh.
    """
    sample = sample[:_SAMPLE]
    alone = _WITH_LATIN.sub(b" ", sample)  # words that have no letter of ASCII
    high = sum(byte >= 0xC0 for byte in alone)
    read = alone.decode("windows-1256")
    frequent = sum(letter in _FREQUENT for letter in read)
    arabic = sum("\u0620" < letter < "\u064b" for letter in read)
    mostly = arabic > 0.7 * sum(not character.isascii() for character in read)
    if alone.count(_ALEF) * 20 > high and mostly and b"\0" not in sample:
        with suppress(UnicodeDecodeError):
            of_iso = sum(letter in _FREQUENT for letter in alone.decode("iso-8859-6"))
            if of_iso > 1.2 * frequent:
                return "iso-8859-6"
        return "windows-1256"
    if high and arabic == sum(letter.isalpha() for letter in read) <= 2 * frequent:
        return "windows-1256"
    if _is_latin(sample):
        return "windows-1252"
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return None
    best = from_bytes(sample).best()
    if best is None or best.encoding.startswith("utf"):
        return None
    letters = [c for c in sample.decode(best.encoding, "ignore") if c.isalpha()]
    if not best.encoding.startswith("mac") and all(
        ord(c) < 0x250 or 0x1E00 <= ord(c) < 0x1F00 for c in letters
    ):
        with suppress(UnicodeDecodeError):
            sample.decode("windows-1252")
            return "windows-1252"
    return {"cp1256": "windows-1256"}.get(best.encoding, best.encoding)


#: Signs that French, Spanish or German text has, in windows-1252.
_SIGNS = frozenset("€…‘’“”–—•«»°\xa0¿¡")

STDIN = "-"
STDIN_NAME = "standard input"

#: Bytes asked for at once.
CHUNK = 1 << 18

#: A longer line (in bytes) is not held; it is reported as bad.
LONGEST = 1 << 24

#: Lines given out at once, at most.
RUN_LINES = 4096

#: What a gzip file read into memory may unpack to in any case (bytes), and how many times its
#: own size beyond.
ALWAYS_UNPACKED, MOST_RATIO = 1 << 26, 100

#: What stands for the first bytes of a folder that Hugging Face `datasets` saved.
ARROW_FOLDER = b"\0arrow folder"

#: How binary formats begin, which no encoding applies to.
_BINARY = (b"PK\x03\x04", b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")

#: Consecutive lines and the 1-based number of the first.
Run = tuple[int, list[str]]


def shown(value: str, limit: int = 40) -> str:
    """A value quoted for a one-line message, shortened to `limit` characters."""
    short = value if len(value) <= limit else value[: limit - 1] + "…"
    return "'" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short) + "'"


def some_shown(values: Iterable[str], most: int = 5) -> str:
    """The first few values, each as `shown`, and how many more there are."""
    return listed([shown(value, 24) for value in values], most)


@dataclass
class OpenFile:
    """A file that is being read; made by `open_file`.

    Attributes:
        path: as given by the caller; "-" is standard input.
        name: the same for messages.
        suffix: lower case, without a closing ".gz": ".tsv", ".csv", "" ...
        first: the first bytes, unpacked; empty for an empty file.
        chunks: all bytes, unpacked, without a byte order mark.
        packed: whether the file is gzipped or bzipped.
        encoding: the one it is in, where that is not UTF-8.
        asked: the one that the user names, `UNNAMED` where nobody can.
        digest: SHA-256 of the bytes read so far, as they lie on disk.
        streams: what is to be closed. All are at the end of the file; `with` does it also where
            the reading stops before.
        notes: what is to be told of how it was opened.
    """

    path: str | Path
    name: str
    suffix: str
    first: bytes
    chunks: Iterator[bytes]
    packed: bool = False
    encoding: str | None = None
    asked: str | None = None
    digest: Any = field(default_factory=hashlib.sha256)
    streams: list[BinaryIO] = field(default_factory=list)
    notes: Sequence[str] = ()

    def __enter__(self) -> OpenFile:
        return self

    def __exit__(self, *error: object) -> None:
        for stream in self.streams:
            stream.close()

    def binary(self) -> Any:
        """The whole as a path or a seekable stream of bytes, for readers of binary formats."""
        if str(self.path) == STDIN or self.packed:
            return io.BytesIO(b"".join(self.chunks))
        return self.path

    def runs(self, bad: Callable[[DataError], None]) -> Iterator[Run]:
        """All lines in runs of consecutive ones; a line that cannot be read goes to `bad`.

        Raises DataError for a broken gzip, and what `bad` raises.
        """
        number = 1
        array = self.suffix == ".json"
        chunks = _objects_on_lines(self.chunks) if array else self.chunks
        for block in _whole_lines(chunks, quoted=self.suffix == ".csv"):
            if block is None:
                what = "an array of objects" if array else "a sentence: break it up"
                bad(
                    DataError(
                        f"{self.name}, line {number}: longer than {LONGEST >> 20} MiB, expected "
                        f"{what}"
                    )
                )
                number += 1
                continue
            try:
                text = block.decode("utf-8")
            except UnicodeDecodeError:
                text = "\0"
            if "\0" not in text:
                lines = (text.replace("\r\n", "\n") if "\r" in text else text).split("\n")
                if not lines[-1]:
                    lines.pop()
                for begin in range(0, len(lines), RUN_LINES):
                    yield number + begin, lines[begin : begin + RUN_LINES]
                number += len(lines)
                del lines, text  # so that two chunks are never held at once
                continue
            good: list[Run] = [(number, [])]
            for raw in _split(block):
                line = self._decoded(raw, number)
                number += 1
                if isinstance(line, str):
                    good[-1][1].append(line)
                else:
                    bad(line)
                    good.append((number, []))
            yield from good

    def _decoded(self, raw: bytes, number: int) -> str | DataError:
        where = f"{self.name}, line {number}"
        if b"\0" in raw:
            mend = "save the file as UTF-8, or an old workbook (.xls) as .xlsx"
            head = self.first[:_HEAD]
            wide = len(raw) <= 2 * raw.count(0) + 2 and 5 * head.count(0) >= 2 * len(head)
            if wide and self.asked != UNNAMED:
                kind = "le" if raw.index(0) % 2 else "be"
                mend = f"give --encoding utf-16-{kind}, which it seems to be in"
            return DataError(f"{where}: found a NUL byte, expected text: {mend}")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            mend = "save the line as UTF-8 or remove it"
            if not _is_utf8(self.first):  # else no other encoding is of use
                mend = advice(b"\n".join((raw, self.first)), self.asked)
            found = f"byte 0x{raw[error.start]:02x} is not UTF-8"
            return DataError(f"{where}: {found}, expected UTF-8: {mend}")


def open_file(
    path: str | Path, limited: bool = False, hashed: bool = False, encoding: str | None = None
) -> OpenFile:
    """Open a file, standard input for `"-"`, a folder of Hugging Face `datasets`, or one with a
    folder for each class that holds a .txt file for each text.

    Args:
        limited: whether a gzip file may unpack only to what sentences can be packed from; for
            readers that keep the whole in memory.
        hashed: whether `digest` is to be computed.
        encoding: that of a file that is not UTF-8; `UNNAMED` where nobody can name one.

    Raises DataError for a missing file and a directory; later, while reading, for a broken gzip
    and for bytes that are no text.
    """
    digest = hashlib.sha256()
    update = digest.update if hashed else None
    if str(path) == STDIN:
        chunks = _chunks(sys.stdin.buffer, STDIN_NAME, False, update)
        file = _of_chunks(path, STDIN_NAME, [], chunks, limited, None, encoding)
        file.digest = digest
        return file
    name = str(path)
    if (Path(path) / "state.json").is_file():
        return _open_folder(Path(path), name)
    if classes := _class_folders(Path(path)):
        return _open_classes(Path(path), name, classes, encoding)
    stream = _open(Path(path), name)
    try:
        chunks = _chunks(stream, name, True, update)
        size = os.fstat(stream.fileno()).st_size if limited else None
        file = _of_chunks(path, name, _suffixes(path), chunks, limited, size, encoding)
    except BaseException:
        stream.close()
        raise
    file.digest, file.streams = digest, [stream]
    return file


def open_stream(stream: BinaryIO, name: str, encoding: str | None = None) -> OpenFile:
    """The same of a stream of bytes, such as a member of an archive, which is closed at its end."""
    chunks = _chunks(stream, name, True, None)
    file = _of_chunks(name, name, _suffixes(name), chunks, True, None, encoding)
    file.packed, file.streams = True, [stream]  # no path leads to it
    return file


def _suffixes(path: str | Path) -> list[str]:
    return [suffix.lower() for suffix in Path(path).suffixes]


def _of_chunks(
    path: str | Path,
    name: str,
    suffixes: list[str],
    chunks: Iterator[bytes],
    limited: bool,
    size: int | None,
    encoding: str | None,
) -> OpenFile:
    first = next(chunks, b"")
    packing = _packing(suffixes[-1] if suffixes else "", first)
    if packing:
        if suffixes[-1:] == [packing]:
            suffixes.pop()
        chunks = _unpacked(_with_first(first, chunks), packing, name, limited, size)
        first = next(chunks, b"")
    file = _of_bytes(path, name, suffixes[-1] if suffixes else "", first, chunks, encoding)
    file.packed = bool(packing)
    return file


def open_bytes(name: str, suffix: str, data: bytes) -> OpenFile:
    """The same of bytes in memory."""
    return _of_bytes(name, name, suffix, data, iter(()), UNNAMED)


_ANOTHER = "name the file of the texts"
_EXPORT = "export its table as .csv"

#: How files of other kinds begin, what they are, and what to do. What a text may begin with too is
#: followed by a NUL byte, which no text has.
_OTHER_KINDS = (
    (rb"\x89PNG\r\n", "an image (PNG)", _ANOTHER),
    (rb"\xff\xd8\xff", "an image (JPEG)", _ANOTHER),
    (rb"GIF8[79]a(?=.*\0)", "an image (GIF)", _ANOTHER),
    (rb"RIFF.{4}WEBP", "an image (WebP)", _ANOTHER),
    (rb"II\*\0|MM\0\*", "an image (TIFF)", _ANOTHER),
    (rb"BM(?=.*\0)", "an image (BMP)", _ANOTHER),
    (rb"%PDF-\d", "a PDF", "save its text as .txt, or its table as .csv"),
    (rb"\{\\rtf", "a document (RTF)", "save it as plain text (.txt)"),
    (rb"(?:ID3|\xff[\xf2\xf3\xfa\xfb])(?=.*\0)", "audio (MP3)", _ANOTHER),
    (rb"RIFF.{4}WAVE", "audio (WAV)", _ANOTHER),
    (rb"fLaC(?=.*\0)", "audio (FLAC)", _ANOTHER),
    (rb"OggS\0", "audio or video (Ogg)", _ANOTHER),
    (rb"RIFF.{4}AVI ", "video (AVI)", _ANOTHER),
    (rb"\0{3}.ftyp", "audio or video (MP4)", _ANOTHER),
    (rb"\x1aE\xdf\xa3", "video (Matroska or WebM)", _ANOTHER),
    (rb"7z\xbc\xaf|Rar!\x1a\x07|\xfd7zXZ\0|\x28\xb5\x2f\xfd", "a packed file", "unpack it"),
    (rb"SQLite format 3\0", "a database (SQLite)", _EXPORT),
    (rb"\x93NUMPY", "an array of NumPy", _ANOTHER),
    (rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file (.xls)", "save it as .xlsx or .csv"),
    (rb"\$FL[23]@\(#\)|<stata_dta>|HEADER RECORD\*", "data of SPSS, Stata or SAS", _EXPORT),
    (rb"\x89HDF\r\n|RDX[23]\n|X\n\0", "data of HDF5 or R", _EXPORT),
    (rb"\x80[\x02-\x05](?=.*\0)", "a pickle", "write it as .csv or Parquet"),
)

#: What a download may leave in place of the file.
_NO_DATA = (
    (
        rb"\s*(?:<\?xml[^>]*>\s*)?(?><!--.*?-->\s*)*+<(?:!doctype\s+html|html)\b",
        "a web page (HTML)",
        "download the file itself (on GitHub and Hugging Face: the raw file)",
    ),
    (
        rb"version https://git-lfs\.github\.com/",
        "a Git LFS pointer in place of the file",
        "fetch the file with git lfs pull, or download it",
    ),
)


def _no_text(first: bytes) -> tuple[str, str] | None:
    """What a file is that begins so, and what to do, where that is neither text nor a table."""
    for begins, what, mend in _OTHER_KINDS:
        if re.match(begins, first, re.DOTALL):
            return what, mend
    return None


def refuse_other(file: OpenFile) -> None:
    """Raise DataError for an image, a PDF, audio and the like, and for a web page or a Git LFS
    pointer, which a download left in place of the file."""
    first = file.first.removeprefix(b"\xef\xbb\xbf")
    found = _no_text(first)
    for begins, what, mend in _NO_DATA if found is None else ():
        if re.match(begins, first, re.IGNORECASE | re.DOTALL):
            found = what, mend
    if found is not None:
        raise DataError(f"{file.name}: found {found[0]}, expected a table or text: {found[1]}")


def whole_lines(file: OpenFile) -> list[str]:
    """All lines of a file. Raises DataError for one that cannot be read and for an empty file."""

    def refuse(error: DataError) -> None:
        raise error

    with file:
        lines = list(chain.from_iterable(lines for _, lines in file.runs(refuse)))
    if not any(map(str.strip, lines)):
        raise DataError(
            f"{file.name} is empty or blank, expected one example a line: check the file"
        )
    return lines


def _of_bytes(
    path: str | Path,
    name: str,
    suffix: str,
    first: bytes,
    chunks: Iterator[bytes],
    encoding: str | None,
) -> OpenFile:
    asked, encoding = encoding, None
    if not first.startswith(_BINARY) and _no_text(first) is None:
        encoding = encoding_of(first, asked)
    if encoding is not None:
        chunks = transcoded(_with_first(first, chunks), encoding, name, asked)
        first = next(chunks, b"")
    body = _with_first(first.removeprefix(b"\xef\xbb\xbf"), chunks)
    return OpenFile(path, name, suffix, first, body, encoding=encoding, asked=asked)


def _open_folder(path: Path, name: str) -> OpenFile:
    digest = hashlib.sha256()
    shards = shard_paths(path)
    streams: list[BinaryIO] = []

    def chunks() -> Iterator[bytes]:
        for shard in shards:
            streams.append(_open(shard, str(shard)))
            yield from _chunks(streams[-1], name, True, digest.update)

    return OpenFile(path, name, ".arrow", ARROW_FOLDER, chunks(), digest=digest, streams=streams)


def _class_folders(path: Path) -> list[Path]:
    """The folders of two classes or more in a folder; none elsewhere."""
    if not path.is_dir() or (path / "dataset_dict.json").is_file():
        return []
    inside = sorted(one for one in path.glob("[!.]*") if one.is_dir())
    found = [one for one in inside if _texts_in(one)]
    return found if len(found) > 1 else []


def _texts_in(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("[!.]*") if file.suffix.lower() == ".txt")


def _open_classes(path: Path, name: str, classes: Sequence[Path], encoding: str | None) -> OpenFile:
    """The texts as JSON lines: `text`, `label` and `file`."""
    digest = hashlib.sha256()

    def lines() -> Iterator[bytes]:
        for folder in classes:
            for file in _texts_in(folder):
                with open_file(file, limited=True, encoding=encoding) as opened:
                    text = opened._decoded(b"".join(opened.chunks), 1)
                if not isinstance(text, str):
                    raise text
                row = {
                    "text": text.strip(),
                    "label": folder.name,
                    "file": f"{folder.name}/{file.name}",
                }
                line = json.dumps(row).encode() + b"\n"
                digest.update(line)
                yield line

    used = {file for folder in classes for file in _texts_in(folder)}
    inside = [*path.glob("[!.]*"), *(file for one in classes for file in one.glob("[!.]*"))]
    others = sorted(str(one.relative_to(path)) for one in {*inside} - used - {*classes})
    notes = []
    if others:
        found = f"{others[0]!r} and {len(others) - 1} more" if others[1:] else repr(others[0])
        notes = [f"passed over {found}: texts are read of files .txt in the folder of a class"]
    return OpenFile(path, name, ".jsonl", b"{", lines(), digest=digest, notes=notes)


def shard_paths(folder: Path) -> list[Path]:
    """The files of a folder that `save_to_disk` of Hugging Face `datasets` wrote, in order.

    Raises DataError where what stands for them is damaged, or leads elsewhere.
    """
    try:
        state = json.loads((folder / "state.json").read_bytes())
        names = [str(entry["filename"]) for entry in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError):
        names = []
    if not names or any(Path(name).name != name for name in names):
        raise DataError(
            f"{folder / 'state.json'}: found no list of files, expected one as `save_to_disk` of "
            "datasets writes it: save the data set again"
        )
    return [folder / name for name in names]


def _open(path: Path, name: str) -> BinaryIO:
    if (path / "dataset_dict.json").is_file():
        parts = ", ".join(sorted(str(p.parent) for p in path.glob("*/state.json"))) or "none"
        raise DataError(f"{name} holds several data sets, expected one: name one of {parts}")
    if path.is_dir():
        raise DataError(
            f"{name} is a directory, expected a file: name one in it, or of texts without labels "
            "make one of all (superconext data pool FILES --out FILE); texts with labels may be a "
            "folder for each class with a .txt file for each"
        )
    try:
        return path.open("rb")
    except FileNotFoundError:
        mend = "; to read the words themselves, pipe them in (echo ... | superconext ...)"
        raise DataError(
            f"{name}: no such file, expected a data file: check the path" + mend * (" " in name)
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{shown(name, 200)} cannot be read ({reason}): check the path") from None


def _chunks(
    stream: BinaryIO, name: str, close: bool, update: Callable[[bytes], None] | None
) -> Iterator[bytes]:
    # read1 gives what has arrived instead of waiting until the chunk is full.
    read = getattr(stream, "read1", stream.read)
    try:
        while chunk := read(CHUNK):
            if update is not None:
                update(chunk)
            yield chunk
    except OSError as error:
        raise DataError(f"{name} cannot be read ({error.strerror}): check the file") from None
    finally:
        if close:
            stream.close()


def _with_first(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from chunks


#: Packings by suffix: their name, how such files begin, and what unpacks them.
_PACKINGS: dict[str, tuple[str, bytes, Callable[[], Any]]] = {
    ".gz": ("gzip", b"\x1f\x8b", lambda: zlib.decompressobj(31)),
    ".bz2": ("bzip2", b"BZh", bz2.BZ2Decompressor),
}


def _packing(suffix: str, first: bytes) -> str:
    """The suffix of the packing a file is in, "" for none."""
    if not first or suffix in _PACKINGS:
        return suffix if first else ""
    # The two magic bytes cannot open a UTF-8 file, so a gzip without the suffix is safe to see.
    return ".gz" if first.startswith(b"\x1f\x8b") else ""


def _unpacked(
    chunks: Iterator[bytes], packing: str, name: str, limited: bool, size: int | None
) -> Iterator[bytes]:
    """The content of a packed file, which may be several put one after the other.

    size: bytes of the packed file, None where only those read so far are known.
    """
    kind, magic, unpacker_of = _PACKINGS[packing]
    unpacker = unpacker_of()
    taken = given = 0
    try:
        for chunk in chunks:
            if not (taken or magic.startswith(chunk[: len(magic)])):
                plain = shown(Path(name).name.removesuffix(packing), 100)
                raise DataError(
                    f"{name}: found a file that is no {kind}, expected one as its name says: name "
                    f"it {plain} if it is not packed, else copy or download it again"
                )
            taken += len(chunk)
            waiting = False  # bytes that the unpacker of bzip2 keeps to itself
            while chunk or waiting:
                if unpacker.eof:
                    chunk = chunk.lstrip(b"\0")  # padding that some tapes and tools leave
                    if not chunk:
                        break
                    unpacker = unpacker_of()
                if piece := unpacker.decompress(chunk, CHUNK):
                    given += len(piece)
                    _check_ratio(name, given, size or taken, limited)
                    yield piece
                chunk = getattr(unpacker, "unconsumed_tail", b"") or unpacker.unused_data
                waiting = not (unpacker.eof or getattr(unpacker, "needs_input", True))
        if packing == ".gz" and (piece := unpacker.flush()):
            yield piece
        if not unpacker.eof:
            raise zlib.error("it ends too early")
    except (zlib.error, OSError) as error:
        raise DataError(
            f"{name}: broken {kind} ({error}), expected a whole {kind} file: copy or download it "
            "again"
        ) from None


def most_unpacked(packed: int) -> int:
    """Bytes to which a file or archive of so many may unpack."""
    return max(ALWAYS_UNPACKED, MOST_RATIO * packed)


def _check_ratio(name: str, given: int, packed: int, limited: bool) -> None:
    limit = most_unpacked(packed)
    if limited and given > limit:
        raise DataError(
            f"{name}: {packed} bytes that unpack to more than {limit}, expected sentences, which "
            f"no packing makes {MOST_RATIO} times shorter: do not trust the file"
        )


#: A cell in quotes, or as much of one as has been read.
_QUOTED = re.compile(rb'"[^"]*(?:"|$)')


def end_of_lines(chunk: bytes, quoted: bool) -> bytes:
    """What ends the lines of a file that begins so; quoted: cells in quotes may hold line feeds."""
    bare = _QUOTED.sub(b"", chunk) if quoted else chunk
    return b"\r" if b"\r" in bare[:-1] and b"\n" not in bare else b"\n"


def _whole_lines(chunks: Iterator[bytes], quoted: bool = False) -> Iterator[bytes | None]:
    """Pieces of whole lines, a line feed behind each but perhaps the file's last one.

    None stands for one line that is too long. quoted: as `end_of_lines` has it.
    """
    end = b""
    pieces: list[bytes] = []  # of the line that has begun
    held = 0
    several = False
    for chunk in chunks:
        if not end:
            end = end_of_lines(chunk, quoted)
        cut = chunk.rfind(end) + 1
        if cut:
            several = True
            if held + cut <= LONGEST:
                block = b"".join([*pieces, chunk[:cut]])
                yield block if end == b"\n" else block.replace(end, b"\n")
            else:  # some line may be too long
                head, *rest = chunk[: cut - 1].split(end)
                for place, line in enumerate([head, *rest]):
                    size = len(line) + (0 if place else held)
                    whole = line if place else b"".join([*pieces, line])
                    yield whole + b"\n" if size <= LONGEST else None
            pieces, held, chunk = [], 0, chunk[cut:]
        held += len(chunk)
        if held > LONGEST:
            pieces = []
        elif chunk:
            pieces.append(chunk)
    if held > LONGEST:
        yield None
    elif held:
        # A carriage return at the end of the only line is its end, in other files a character.
        yield b"".join(pieces) if several else b"".join(pieces).removesuffix(b"\r")


#: What goes before the end of a string of JSON or of a piece of one; a whole string, or as much of
#: one as there is, and an object that another thing follows.
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_OF_JSON = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|\},', re.DOTALL)


def _objects_on_lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """The bytes of a JSON file; where it is an array without any line feed, with one behind each
    object in it: it may be as long as it likes."""
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= CHUNK:
            break
    if len(head) < CHUNK or b"\n" in head or not head.lstrip().startswith(b"["):
        yield head
        yield from chunks
        return
    rest, within = b"", False  # what may go on in the next piece, and whether that is in a string
    for chunk in chain([head], chunks):
        piece = rest + chunk
        parts: list[bytes] = []
        done = begin = 0
        if within:
            begin = _IN_STRING.match(piece).end()  # type: ignore[union-attr]
            within = not piece.startswith(b'"', begin)
            begin += not within
        for match in () if within else _OF_JSON.finditer(piece, begin):
            if match[0] == b"},":
                parts += [piece[done : match.end()], b"\n"]
                done = match.end()
            else:
                within, begin = not match[1], match.end()
        # A backslash of a string goes with what it escapes; a comma may follow an object.
        cut = begin if within else len(piece) - piece.endswith(b"}")
        yield b"".join([*parts, piece[done:cut]])
        rest = piece[cut:]
    yield rest


def _split(block: bytes) -> list[bytes]:
    """The lines of a block without their ends."""
    *ended, last = block.split(b"\n")
    return [line.removesuffix(b"\r") for line in ended] + ([last] if last else [])
