"""Which reader does a file of word vectors need? Its content decides, whatever its name."""

from __future__ import annotations

import glob
import gzip
import hashlib
import io
import re
import zipfile
from collections.abc import Container
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, cast

from superconext.core.errors import VectorsError
from superconext.vectors.binary_formats import (
    FASTTEXT_MAGIC,
    read_fasttext_binary,
    read_gensim_vectors,
    read_word2vec_binary,
)
from superconext.vectors.table import WordVectors
from superconext.vectors.text_format import collect_rows, read_text
from superconext.vectors.torchtext_format import LEGACY_TORCH, first_line, read_torchtext_vectors
from superconext.vectors.torchtext_format import read_torchtext_vocab as _read_vocab_file
from superconext.vectors.torchtext_objects import is_torchtext, object_vectors, object_words

__all__ = ["read_torchtext_vocab", "read_vectors"]

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


def read_torchtext_vocab(source: Any) -> list[str]:
    """The words of a torchtext vocabulary, in the order of their ids.

    Args:
        source: a file that `torch.save` or `pickle.dump` made, or the `Vocab` itself.

    Raises:
        VectorsError: it holds something else, or is damaged.
    """
    return object_words(source) if is_torchtext(source) else _read_vocab_file(source)


def read_vectors(
    path: Any, keep: Container[str] | None = None, limit: int | None = None
) -> WordVectors:
    """Read word vectors of any known format.

    Args:
        path: a file, `archive.zip:member` when an archive holds several, or a folder written by
            `WordVectors.save`; also torchtext's `Vectors` (or anything with `itos` and
            `vectors`) itself.
        keep: hold only the rows of these words, matched exactly or without regard to case.
        limit: hold the first `limit` rows; with `keep`, besides those of `keep`.

    Returns:
        The table, named after the file, with the file's hash; `notes` says what was skipped.

    Raises:
        VectorsError: no such file, an unknown format, a damaged file, or an object without
            vectors.
    """
    if is_torchtext(path):
        return object_vectors(path, keep, limit)
    path = Path(path)
    if path.is_dir():
        return _read_folder(path, keep, limit)
    file, member = _locate(path)
    try:
        vectors = _read_file(file, member, keep, limit)
        vectors.name = file.name if member is None else f"{file.name}:{member}"
        vectors.sha256 = _sha256(file)
    except VectorsError as error:
        if str(file) in str(error):
            raise
        raise VectorsError(f"{path}: {error}") from error
    except Exception as error:  # a damaged archive can make its reader fail in many ways
        raise VectorsError(
            f"{path}: cannot be read ({first_line(error)}); expected a whole file of word "
            "vectors; copy it again"
        ) from error
    return vectors


def _read_folder(path: Path, keep: Container[str] | None, limit: int | None) -> WordVectors:
    whole = WordVectors.load(path)
    if keep is None and limit is None:
        return whole
    part = collect_rows(
        whole.words, whole.matrix, str(path), whole.name, keep, limit, whole.subwords
    )
    part.sha256 = whole.sha256
    part.notes = whole.notes + part.notes
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
    source = name = str(file)
    with ExitStack() as stack:
        plain = stack.enter_context(file.open("rb", buffering=_BUFFER))
        stream = cast(BinaryIO, plain)
        magic = cast(io.BufferedReader, plain).peek(4)[:4]
        packed = ""
        if magic in _ZIP or member is not None:
            archive = stack.enter_context(zipfile.ZipFile(plain))
            if member is None and any(n.split("/")[-1] == "data.pkl" for n in archive.namelist()):
                return read_torchtext_vectors(file, name, keep, limit)
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
            return read_fasttext_binary(file, name, keep, limit)
        if kind == "torch":
            return read_torchtext_vectors(file, name, keep, limit)
        if kind == "pickle":
            return read_gensim_vectors(file, name, keep, limit)
        stream.seek(0)
        if kind == "word2vec":
            size = None if packed else file.stat().st_size
            return read_word2vec_binary(stream, source, name, keep, limit, size)
        return read_text(stream, source, name, keep, limit)


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
