"""Parsers of public data sets, each of which is published in a layout of its own.

A parser takes the files of a set by role and gives rows (label, text) by part: `train`, `dev`
and `test`, or `all`. Rows without a text or a label are left in: `fetch` drops and counts them.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from pathlib import Path, PurePosixPath
from typing import IO, Any

from superconext.core.errors import DataError
from superconext.data.columns import resolve
from superconext.data.file_format import RowFile, Wanted
from superconext.data.formats import Csv, TableFormat, Tsv
from superconext.data.lines import UNNAMED, OpenFile, open_bytes, open_file, whole_lines
from superconext.data.splits import Row

#: Bytes all members together may unpack to, and how many there may be.
LIMIT = 1 << 30
MOST = 250_000

_OVERHEAD = MOST * 1024  # bytes of headers and filling between the members of a tar archive


def read_tar(
    path: Path, wanted: Callable[[str], bool], limit: int = LIMIT
) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of the wanted files of a tar archive, gzipped or not, in its order.

    Raises DataError for an archive that is broken, escapes or explodes.
    """
    total = count = 0
    try:
        with _unpacked(path) as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
            # A stream cannot go back, so each member is read before the next one is looked at.
            packed.limit = limit + _OVERHEAD
            for member in archive:
                count, total = count + 1, total + max(member.size, 0)
                _check(path, member.name, count, total, limit)
                if not (member.isreg() or member.isdir()):
                    raise DataError(_refused(path, f"{member.name!r} is a link or a device"))
                if member.isreg() and wanted(member.name):
                    stream = archive.extractfile(member)
                    if stream is not None:
                        yield member.name, _exactly(path, member.name, stream, member.size)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # a damaged archive makes its reader fail in many ways
        raise DataError(_broken(path, error)) from None


def read_zip(
    path: Path, wanted: Callable[[str], bool], limit: int = LIMIT
) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of the wanted files of a zip archive, in its order. Raises as `read_tar`."""
    total = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for count, member in enumerate(archive.infolist(), start=1):
                total += member.file_size
                _check(path, member.filename, count, total, limit)
                mode = member.external_attr >> 16
                if mode and (mode & 0o170000) not in (0, 0o040000, 0o100000):
                    raise DataError(_refused(path, f"{member.filename!r} is a link or a device"))
            for member in archive.infolist():
                if not member.filename.endswith("/") and wanted(member.filename):
                    with archive.open(member) as stream:
                        yield (
                            member.filename,
                            _exactly(path, member.filename, stream, member.file_size),
                        )
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise DataError(_broken(path, error)) from None


class _Limited(io.RawIOBase):
    """The bytes of a file, gunzipped if need be, up to a limit: headers can explode too."""

    def __init__(self, path: Path, source: IO[bytes]) -> None:
        self.path, self.source, self.limit, self.done = path, source, _OVERHEAD, 0

    def read(self, size: int = -1) -> bytes:
        data = self.source.read(size)
        self.done += len(data)
        if self.done > self.limit:
            raise DataError(_refused(self.path, f"it unpacks to more than {self.limit} bytes"))
        return data

    def close(self) -> None:
        self.source.close()
        super().close()


def _unpacked(path: Path) -> _Limited:
    with path.open("rb") as stream:
        gzipped = stream.read(2) == b"\x1f\x8b"
    source: Any = gzip.GzipFile(path) if gzipped else path.open("rb")
    return _Limited(path, source)


def _check(path: Path, name: str, count: int, total: int, limit: int) -> None:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in (parts.parts or ("",))[0]:
        raise DataError(_refused(path, f"{name!r} leads out of the folder it is unpacked in"))
    if count > MOST or total > limit:
        found = f"more than {MOST} files" if count > MOST else f"more than {limit} bytes"
        raise DataError(_refused(path, f"it unpacks to {found}"))


def _exactly(path: Path, name: str, stream: IO[bytes], size: int) -> bytes:
    # The sizes in a header are words only: what comes out must agree with them.
    data = stream.read(size + 1)
    if len(data) != size:
        raise DataError(_refused(path, f"{name!r} is not as long as it says"))
    return data


def _refused(path: Path, found: str) -> str:
    return f"{path}: {found}; expected an archive of plain files: remove it and do not trust it"


def _broken(path: Path, error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    return f"{path}: broken archive ({reason}); expected a whole one: remove it and fetch it again"


Files = Mapping[str, Path]
Parts = dict[str, list[Row]]
Options = Mapping[str, str]
Parser = Callable[[Files, Options], Parts]


def _each_file(parse: Callable[[OpenFile, Options], list[Row]]) -> Parser:
    """The parser of sets in which every part is a file of the same layout."""

    @wraps(parse)
    def parser(files: Files, options: Options) -> Parts:
        parts = {}
        for role, path in files.items():
            with _opened(path) as file:
                parts[role] = parse(file, options)
        return parts

    return parser


def _opened(path: Path) -> OpenFile:
    return open_file(path, limited=True, encoding=UNNAMED)


@_each_file
def tsv(file: OpenFile, options: Options) -> list[Row]:
    """Tables with a header and tabs, no quoting; `unescape` names an escape written for a space."""
    rows = _table(Tsv, file, options)
    escape = options.get("unescape")
    return [(label, text.replace(escape, " ")) for label, text in rows] if escape else rows


@_each_file
def csv(file: OpenFile, options: Options) -> list[Row]:
    """Tables with a header, after RFC 4180."""
    return _table(Csv, file, options)


def _table(layout: type[TableFormat], file: OpenFile, options: Options) -> list[Row]:
    records = (
        pair
        for numbers, cells in layout(RowFile(file, Wanted())).records()
        for pair in zip(numbers, cells, strict=True)
    )
    _, header = next(records, (0, []))
    label, content = (
        resolve(header, options[name], name, "the catalogue's entry", file.name)
        for name in ("label", "text")
    )
    rows = []
    for line, cells in records:
        if len(cells) <= max(label, content):
            raise _unexpected(file.name, line, f"{len(cells)} columns", f"{len(header)}")
        rows.append((cells[label], cells[content]))
    return rows


@_each_file
def label_first(file: OpenFile, options: Options) -> list[Row]:
    """Lines `label text`: a word, a space, the sentence. UTF-8, or else Latin-1 as Kim's files."""
    data = b"".join(file.chunks)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    rows = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line.strip():
            label, space, sentence = line.partition(" ")
            if not label or (not space and len(label) > 40):
                raise _unexpected(file.name, number, "no label", "a label and a space")
            rows.append((label, sentence))
    return rows


def lines_of_label(files: Files, options: Options) -> Parts:
    """A file for each part and label, role `part/label`, one text a line."""
    parts: Parts = {}
    for role, path in files.items():
        part, label = role.split("/")
        lines = whole_lines(_opened(path))
        parts.setdefault(part, []).extend((label, line) for line in lines)
    return parts


_ARFF_ROW = re.compile(r"\s*(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|([^,'\"]*))\s*(?:,|$)")
_ARFF_ESCAPE = re.compile(r"\\(.)")
_ARFF_CHARACTERS = {"n": " ", "r": " ", "t": " "}


@_each_file
def arff(file: OpenFile, options: Options) -> list[Row]:
    """Weka's format with two attributes, text and class; quoted values with backslash escapes."""
    lines = whole_lines(file)
    mark = next((n for n, line in enumerate(lines) if line.strip().casefold() == "@data"), None)
    if mark is None:
        raise DataError(f"{file.name}: found no line @data, expected an ARFF file: fetch it again")
    rows = []
    for number, line in enumerate(lines[mark + 1 :], start=mark + 2):
        if not line.strip() or line.startswith("%"):
            continue
        values = _arff_values(line)
        if values is None or len(values) != 2:
            raise _unexpected(file.name, number, "another row", "a text and a class")
        rows.append((values[1].strip(), values[0]))
    return rows


def _arff_values(line: str) -> list[str] | None:
    values: list[str] = []
    at = 0
    while at < len(line):
        found = _ARFF_ROW.match(line, at)
        if found is None or found.end() == at:
            return None
        quoted = found[1] if found[1] is not None else found[2]
        if quoted is None:
            values.append(found[3].strip())
        else:
            values.append(
                _ARFF_ESCAPE.sub(lambda escape: _ARFF_CHARACTERS.get(escape[1], escape[1]), quoted)
            )
        at = found.end()
    return values


@_each_file
def jsonl(file: OpenFile, options: Options) -> list[Row]:
    """A JSON object a line, with the keys `text` and `label`."""
    rows = []
    for number, line in enumerate(whole_lines(file), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            row = record["label"], record["text"]
        except (ValueError, KeyError, TypeError, RecursionError):
            row = (None, None)
        if not all(isinstance(value, str) for value in row):
            raise _unexpected(
                file.name, number, "another line", "a JSON object with text and label"
            )
        rows.append(row)
    return rows


def numbered(files: Files, options: Options) -> Parts:
    """ASTD: `tweets` holds text, tab, label; the others 0-based lines of it that make a part."""
    file = _opened(files["tweets"])
    lines = whole_lines(file)
    parts: Parts = {}
    for role, path in files.items():
        if role == "tweets":
            continue
        rows = []
        for number, word in enumerate(whole_lines(_opened(path)), start=1):
            if not word.strip():
                continue
            place = int(word) if word.strip().isascii() and word.strip().isdigit() else -1
            if not 0 <= place < len(lines):
                raise _unexpected(
                    str(path), number, repr(word), f"a number below the {len(lines)} tweets"
                )
            text, tab, label = lines[place].rpartition("\t")
            if not tab:
                raise _unexpected(file.name, place + 1, "no tab", "a tweet, a tab, a label")
            rows.append((label, text))
        parts[role] = rows
    return parts


def glue_zip(files: Files, options: Options) -> Parts:
    """A zip of GLUE: train.tsv becomes train, dev.tsv test, for their test.tsv has no labels."""
    names = {f"{options['folder']}/train.tsv": "train", f"{options['folder']}/dev.tsv": "test"}
    path = files["all"]
    found = {names[name]: data for name, data in read_zip(path, names.__contains__)}
    parts: Parts = {}
    for name, part in names.items():
        if part not in found:
            raise DataError(f"{path}: found no {name} in it, expected one: fetch it again")
        parts[part] = _table(Tsv, open_bytes(f"{path}:{name}", ".tsv", found[part]), options)
    return parts


_REVIEW = re.compile(r"(train|test)/(neg|pos)/[^/]+\.txt")


def imdb_tar(files: Files, options: Options) -> Parts:
    """A review a file in `aclImdb/{train,test}/{neg,pos}`, in the order of their names."""
    path, prefix = files["all"], options["folder"] + "/"

    def review(name: str) -> re.Match[str] | None:
        return _REVIEW.fullmatch(name.removeprefix("./").removeprefix(prefix))

    found: list[tuple[str, str, str]] = []
    for name, data in read_tar(path, lambda name: review(name) is not None):
        try:
            found.append((name, str(review(name)), data.decode("utf-8")))
        except UnicodeDecodeError:
            raise _unexpected(f"{path}:{name}", 1, "another encoding", "UTF-8") from None
    parts: Parts = {"train": [], "test": []}
    for name, _, text in sorted(found):
        match = review(name)
        if match is not None:
            parts[match[1]].append((match[2], text))
    return parts


def _unexpected(name: str, line: int, found: str, expected: str) -> DataError:
    return DataError(
        f"{name}, line {line}: found {found}, expected {expected}: the file is not laid out as "
        "its authors published it; fetch it again"
    )


PARSERS: dict[str, Parser] = {
    parser.__name__: parser
    for parser in (
        tsv, csv, label_first, lines_of_label, arff, jsonl, numbered, glue_zip, imdb_tar
    )
}  # fmt: skip
