"""Readers of word vectors: the content of a file decides its format, whatever its name.

Text comes row by row: GloVe writes `word n1 ... nd` and no header; word2vec and fastText (`.vec`)
put `V d` on the first line. Some words of the large GloVe files contain spaces, so a row is read
from the right: the last `d` fields are the numbers and the rest is the word.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import io
import os
import re
import zipfile
from collections import Counter
from collections.abc import Container, Iterator
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from superconext.core import cache
from superconext.core.errors import VectorsError
from superconext.core.files import cache_dir, clear_path
from superconext.core.progress import WARNING
from superconext.vectors.binary_formats import (
    FASTTEXT_MAGIC,
    read_fasttext_binary,
    read_gensim_vectors,
    read_word2vec_binary,
    readable,
)
from superconext.vectors.table import TEXT_ROWS, RowCollector, WordVectors, collect_rows
from superconext.vectors.torchtext_format import (
    LEGACY_TORCH,
    is_torchtext,
    object_vectors,
    read_torchtext_vectors,
    read_torchtext_vocab,
)

__all__ = ["path_of", "read_torchtext_vocab", "read_vectors"]

_HEAD = 1 << 16
_BUFFER = 1 << 20
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # the second begins an archive of nothing
_GZIP = b"\x1f\x8b"
_KINDS = (
    "expected GloVe, word2vec or fastText text (also .gz or in a .zip), a word2vec or fastText "
    ".bin, a gensim .kv, a torchtext .pt or a folder of vectors"
)
_KNOWN_OTHERS = {
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"\x28\xb5\x2f\xfd": "a zstd archive",
    b"\x93NUMPY": "a numpy array without words",
    b"\x89HDF": "an HDF5 file",
    b"PAR1": "a Parquet file",
    b"\xff\xfe": "UTF-16 text",
    b"\xfe\xff": "UTF-16 text",
}

_MAX_LINE = 1 << 20  # bytes; the longest row of a sane file is a hundredth of this
_SAMPLE_LINES = 100


def read_vectors(
    path: Any, keep: Container[str] | None = None, limit: int | None = None
) -> WordVectors:
    """Read word vectors of any known format.

    Args:
        path: a file, `archive.zip:member` when an archive holds several, or a folder written by
            `WordVectors.save`; also torchtext's `Vectors` (or anything with `itos` and
            `vectors`) itself.
        keep: hold only the rows of these words, exactly or but for case and Unicode form.
        limit: hold the first `limit` rows; with `keep`, besides those of `keep`.

    The table is named after the file, with the file's hash; `notes` says what was skipped. Raises
    VectorsError: no such file, an unknown format, a damaged file, or an object without vectors.

    Example:
        >>> _ = Path("small.txt").write_text("zwin 0.1 0.2\\nkhayb 0.3 -0.1\\n")
        >>> read_vectors("small.txt").lookup(["zwin", "inconnu"])[1].tolist()
        [True, False]
    """
    if is_torchtext(path):
        return object_vectors(path, keep, limit)
    path = Path(path)
    if path.is_dir():
        return _read_folder(path, keep, limit)
    file, member = _locate(path)
    try:
        with readable(path, "a whole file of word vectors"):
            vectors = _read_file(file, member, keep, limit)
            vectors.name = file.name if member is None else f"{file.name}:{member}"
            vectors.sha256 = _sha256(file)
    except VectorsError as error:
        if str(file) in str(error):
            raise
        raise VectorsError(f"{path}: {error}") from error
    return vectors


def _read_folder(path: Path, keep: Container[str] | None, limit: int | None) -> WordVectors:
    whole = WordVectors.load(path)
    if keep is None and limit is None:
        return whole
    part = collect_rows(whole.words, whole.matrix, str(path), keep, limit, whole.subwords)
    part.name, part.sha256 = whole.name, whole.sha256
    part.notes = whole.notes + part.notes
    part.emoji_scores = whole.emoji_scores
    return part


def _locate(path: Path) -> tuple[Path, str | None]:
    """The file, and the member of it that `archive.zip:member` names."""
    if path.is_file():
        return path, None
    archive, colon, member = str(path).rpartition(":")
    if colon and member and zipfile.is_zipfile(archive):
        return Path(archive), member
    raise VectorsError(f"{path}: no such file or folder; {_KINDS}; check the path")


def _read_file(
    file: Path, member: str | None, keep: Container[str] | None, limit: int | None
) -> WordVectors:
    source = str(file)
    with ExitStack() as stack:
        plain = stack.enter_context(file.open("rb", buffering=_BUFFER))
        stream = cast(BinaryIO, plain)
        magic = cast(io.BufferedReader, plain).peek(4)[:4]
        packed = ""
        if magic in _ZIP or member is not None:
            archive = stack.enter_context(zipfile.ZipFile(plain))
            if member is None and any(n.split("/")[-1] == "data.pkl" for n in archive.namelist()):
                return read_torchtext_vectors(file, keep, limit)
            member = member or _only_member(archive, source)
            if member not in archive.namelist():
                raise VectorsError(
                    f"{source}: no member {member!r}; expected one of "
                    f"{_shown(archive.namelist())}; name it after a colon"
                )
            stream = _buffered(stack.enter_context(archive.open(member)))
            source, packed = f"{source}:{member}", "zip"
        elif magic.startswith(_GZIP):
            stream = _buffered(stack.enter_context(gzip.GzipFile(fileobj=plain)))
            packed = "gzip"
        head = stream.read(_HEAD)
        kind = _kind(head, source)
        if packed and kind in ("fasttext", "pickle", "torch"):
            raise VectorsError(
                f"{source}: a binary model inside {packed}; expected it unpacked, for it is read "
                "in place; unpack it and name the file inside"
            )
        if kind == "fasttext":
            return read_fasttext_binary(file, keep, limit)
        if kind == "torch":
            return read_torchtext_vectors(file, keep, limit)
        if kind == "pickle":
            return read_gensim_vectors(file, keep, limit)
        stream.seek(0)
        if kind == "word2vec":
            size = None if packed else file.stat().st_size
            return read_word2vec_binary(stream, source, keep, limit, size)
        return read_text(stream, source, keep, limit)


def _buffered(stream: Any) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(stream, _BUFFER))


def _only_member(archive: zipfile.ZipFile, source: str) -> str:
    names = [
        info.filename
        for info in archive.infolist()
        if not info.is_dir()
        and not info.filename.startswith("__MACOSX/")
        and not info.filename.split("/")[-1].startswith(".")
    ]
    if len(names) == 1:
        return names[0]
    raise VectorsError(
        f"{source}: an archive of {len(names)} files ({_shown(names)}); expected one file of "
        f"vectors; name one of them as {source}:FILE"
    )


def _shown(names: list[str]) -> str:
    return " ".join(", ".join(names[:8]).split()) or "none"


def _kind(head: bytes, source: str) -> str:
    """`fasttext`, `torch`, `pickle`, `word2vec` (binary) or `text`, from the first bytes."""
    if head.startswith(FASTTEXT_MAGIC):
        return "fasttext"
    if head.startswith(LEGACY_TORCH):
        return "torch"
    if len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5:
        return "pickle"
    for magic, what in _KNOWN_OTHERS.items():
        if head.startswith(magic):
            raise VectorsError(f"{source}: {what}; {_KINDS}; convert or unpack it first")
    header = re.match(rb"\d{1,18}[ \t]\d{1,9}\s*?\n", head)
    if header and not _is_text(head[header.end() : header.end() + 4096]):
        return "word2vec"
    if header or _is_text(head, strict=False):
        return "text"
    raise VectorsError(
        f"{source}: unknown format, the file begins with {head[:12]!r}; {_KINDS}; convert it "
        "to one of these"
    )


def _is_text(sample: bytes, strict: bool = True) -> bool:
    """No control characters, and (strict) numbers after the first word or valid UTF-8."""
    control = sum(sample.count(bytes([code])) for code in (*range(9), *range(14, 32), 127))
    if b"\0" in sample or control * 50 > len(sample):
        return False
    if not strict or re.match(rb"[^ \t]*[ \t][\d.eE+\- ]{24}", sample):
        return True
    try:
        sample[:-3].decode("utf-8")  # the sample may end inside a character
    except UnicodeDecodeError as error:
        return error.end >= len(sample[:-3])
    return True


def _sha256(path: Path) -> str:
    """Hash of a file and of gensim's arrays beside it."""
    digest = hashlib.sha256()
    for part in [path, *sorted(path.parent.glob(f"{glob.escape(path.name)}.vectors*.npy"))]:
        with part.open("rb") as stream:
            while block := stream.read(_BUFFER):
                digest.update(block)
    return digest.hexdigest()


def read_text(
    stream: BinaryIO,
    source: str,
    keep: Container[str] | None = None,
    limit: int | None = None,
) -> WordVectors:
    """Read rows from a stream of text; only the wanted ones are held.

    Every row is checked for its number of fields, and every wanted row for its numbers. Raises
    VectorsError: the text holds no vectors, or too many malformed rows.
    """
    lines = _lines(stream)
    sample = list(islice(lines, _SAMPLE_LINES))
    if not sample:
        raise VectorsError(f"{source}: the file is empty; {TEXT_ROWS}; copy it again")
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
                f"{WARNING}the last line ({last_line}) is cut short: the file looks half copied; "
                "copy it again"
            )
        if promised is not None and promised != collector.seen:
            collector.notes.append(
                f"{WARNING}the first line promises {promised} rows and {collector.seen} are there: "
                + ("the file may be cut off" if collector.seen < promised else "correct the line")
            )
    return collector.finish()


def _take(collector: RowCollector, number: int, raw: bytes) -> bool:
    """Hold a line's row if it is wanted; False when the line is malformed."""
    dimension = collector.dimension
    fields = raw.rsplit(None, dimension) if len(raw) < _MAX_LINE else []
    word = fields[0].strip() if len(fields) == dimension + 1 else b""
    # As many spaces in the word as numbers in a row: two rows have run together.
    spaces = word.count(b" ")
    if not word or spaces >= max(dimension, 8) or (spaces and _ends_in_number(word)):
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


def _ends_in_number(word: bytes) -> bool:
    """Whether the last part of a word with spaces is a number as rows have them, with a point: the
    row has a number too many."""
    return bool(re.search(rb" [+-]?\d*\.\d+(?:[eE][+-]?\d+)?$", word))


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
            f"{likely}; {TEXT_ROWS}; correct the first line or copy the file again"
        )
    if likely < 2:
        shown = sample[0][1][:40].decode("utf-8", "replace").strip()
        raise VectorsError(
            f"{source}: the first line begins {shown!r} and rows hold {likely} numbers; "
            f"{TEXT_ROWS}; name a file of word vectors"
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


def path_of(source: Any) -> Any:
    """The path of vectors that may be an object, a `WordVectors` or one of torchtext's.

    Such an object is written to the cache, under its content's hash, also over an entry that was
    damaged; a path is given back as text, and anything else as it is, for whoever checks parameters
    to refuse. Raises VectorsError for an object whose words and vectors do not fit each other, or a
    cache that cannot be written.
    """
    if isinstance(source, os.PathLike):
        return os.fspath(source)
    if source is None or isinstance(source, str):
        return source
    if is_torchtext(source):
        source = read_vectors(source)
    if not isinstance(source, WordVectors):
        return source
    folder = cache_dir() / "vectors" / f"given-{source.content_sha256()[:32]}"
    cache.use(folder)
    try:
        WordVectors.load(folder, verify=True)
    except VectorsError:  # there is none, or it is damaged
        folder.parent.mkdir(parents=True, exist_ok=True)
        clear_path(folder)
        source.save(folder)
        cache.trim()
    return str(folder)
