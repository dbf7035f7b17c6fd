"""How do the bytes of a file become text?

A file is UTF-8, with or without a byte order mark, plain or gzipped. Line ends are
brought to `\\n` here, once, so that every reader counts the same lines: `\\r\\n` and
`\\n` end a line; a lone `\\r` ends one only in a file that has no `\\n` at all, and is a
stray character otherwise. U+2028, U+0085 and the vertical tab never end a line: they
occur inside scraped sentences.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

from superconext.core.errors import DataError

_BLOCK = 1 << 20
#: What a gzip file may unpack to in any case (bytes), and how many times its own size beyond.
_ALWAYS, _MOST_RATIO = 1 << 26, 100

STDIN = "-"
STDIN_NAME = "standard input"


@dataclass(frozen=True)
class Source:
    """The bytes of one file, unpacked where it was gzipped, and what it was called."""

    name: str  # as given by the caller; "standard input" for "-"
    suffix: str  # lower case, without a closing ".gz": ".tsv", ".csv", "" ...
    data: bytes
    sha256: str  # of the bytes as they lie on disk, still packed


def shown(value: str, limit: int = 40) -> str:
    """Quote a value for a one-line message, shortened to `limit` characters."""
    short = value if len(value) <= limit else value[: limit - 1] + "…"
    return "'" + "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short) + "'"


def open_source(path: str | Path) -> Source:
    """Read and unpack one file; `"-"` is standard input.

    Raises DataError for a missing file, a directory, an unreadable or empty file and a
    broken gzip.
    """
    if str(path) == STDIN:
        name, suffixes, packed = STDIN_NAME, [], sys.stdin.buffer.read()
    else:
        name, suffixes = str(path), [s.lower() for s in Path(path).suffixes]
        packed = _read_bytes(Path(path), name)
    digest = hashlib.sha256(packed).hexdigest()
    gzipped = suffixes[-1:] == [".gz"]
    if gzipped:
        suffixes.pop()
    data = packed
    # The two magic bytes cannot open a UTF-8 file, so a gzip without the suffix is safe to see.
    if packed and (gzipped or packed.startswith(b"\x1f\x8b")):
        try:
            data = _unpacked(packed, name)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(
                f"{name}: broken gzip ({error}), expected a whole gzip file: "
                "copy or download it again"
            ) from None
    if not data.strip():
        raise DataError(f"{name} is empty, expected one example a line: check the file name")
    return Source(name, suffixes[-1] if suffixes else "", data, digest)


def decode(source: Source) -> str:
    """The text of a file, with `\\n` as its only line end.

    Raises DataError, with the line number, for bytes that are not UTF-8 and for a NUL.
    """
    data = source.data
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataError(
            f"{source.name}: found a UTF-16 byte order mark, expected UTF-8: "
            "save the file as UTF-8 (iconv -f UTF-16 -t UTF-8)"
        )
    if data.startswith(b"PK\x03\x04"):
        raise DataError(
            f"{source.name}: found a zip archive or a spreadsheet, expected text: "
            "unpack it, or save the sheet as CSV in UTF-8"
        )
    if b"\0" in data:
        line = _line_of(data, data.index(b"\0"))
        raise DataError(
            f"{source.name}, line {line}: found a NUL byte, expected text: "
            "the file is binary or UTF-16; save it as UTF-8"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        whole = error.object  # with a byte order mark the codec counts from behind it
        line = _line_of(whole, error.start)
        raise DataError(
            f"{source.name}, line {line}: byte 0x{whole[error.start]:02x} is not UTF-8, expected "
            "UTF-8: convert the file (such as iconv -f WINDOWS-1256 -t UTF-8)"
        ) from None
    text = text.replace("\r\n", "\n") if "\n" in text else text.replace("\r", "\n")
    if not text.strip():
        raise DataError(f"{source.name} is empty, expected one example a line: check the file")
    return text


def _unpacked(packed: bytes, name: str) -> bytes:
    """The content of a gzip file, held to what sentences can be packed from."""
    limit = max(_ALWAYS, _MOST_RATIO * len(packed))
    pieces, size = [], 0
    with gzip.GzipFile(fileobj=io.BytesIO(packed)) as stream:
        while piece := stream.read(_BLOCK):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise DataError(
                    f"{name}: {len(packed)} bytes that unpack to more than {limit}, expected "
                    f"sentences, which no packing makes {_MOST_RATIO} times shorter: do not trust "
                    "the file"
                )
    return b"".join(pieces)


def _line_of(data: bytes, position: int) -> int:
    return data.count(b"\n" if b"\n" in data else b"\r", 0, position) + 1


def _read_bytes(path: Path, name: str) -> bytes:
    if path.is_dir():
        raise DataError(f"{name} is a directory, expected a file: name a file in it")
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{name}: no such file, expected a data file: check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{shown(name, 200)} cannot be read ({reason}): check the path") from None
