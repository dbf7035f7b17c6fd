"""How is a file of any size read line by line, in constant memory?

The rules of `source` hold: UTF-8 with or without a byte order mark, plain or gzipped;
`\\n` and `\\r\\n` end a line, and a lone `\\r` does in a file without `\\n` (here: one whose
first piece has none). Lines come in blocks, as many as one read brings, so that a slow
pipe is answered line by line and a file in large pieces.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from superconext.core.errors import DataError
from superconext.data.source import STDIN, STDIN_NAME, Source, decode, shown

#: Bytes asked for at once.
CHUNK = 1 << 18

#: A longer line (in bytes) is not held; it comes out as None.
LONGEST = 1 << 24

Lines = list[bytes | None]


@dataclass(frozen=True)
class LineStream:
    """An open file.

    name, suffix: as `Source` has them. first: the first bytes, unpacked, empty for an
    empty file. blocks: its lines without their ends, None for one that is too long.
    """

    name: str
    suffix: str
    first: bytes
    blocks: Iterator[Lines]


def open_lines(path: str | Path) -> LineStream:
    """Open a file, or standard input for `"-"`.

    Raises DataError for a missing file, a directory, and bytes that are no text; later,
    while reading, for a broken gzip.
    """
    if str(path) == STDIN:
        name, suffixes, stream = STDIN_NAME, [], sys.stdin.buffer
    else:
        name, suffixes = str(path), [suffix.lower() for suffix in Path(path).suffixes]
        stream = _open(Path(path), name)
    chunks = _chunks(stream, name, close=str(path) != STDIN)
    first = next(chunks, b"")
    gzipped = suffixes[-1:] == [".gz"]
    if gzipped:
        suffixes.pop()
    if first and (gzipped or first.startswith(b"\x1f\x8b")):
        chunks = _unpacked(_with_first(first, chunks), name)
        first = next(chunks, b"")
    if first[:4].startswith((b"\xff\xfe", b"\xfe\xff", b"PK\x03\x04")):
        decode(Source(name, "", first[:4], ""))  # says what it is instead of UTF-8 text
    suffix = suffixes[-1] if suffixes else ""
    body = _with_first(first.removeprefix(b"\xef\xbb\xbf"), chunks)
    return LineStream(name, suffix, first, _lines(body))


def decode_lines(
    lines: Lines, first_number: int, source: str
) -> Iterator[tuple[int, str | DataError]]:
    """Each line's number and its text, or what is wrong with it."""
    whole = [line for line in lines if line is not None]
    if len(whole) == len(lines):
        joined = b"\n".join([*whole, b""])
        try:
            text = joined.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError:
            text = "\0"
        if "\0" not in text:
            yield from enumerate(text.split("\n")[:-1], first_number)
            return
    for number, line in enumerate(lines, first_number):
        yield number, _decoded(line, f"{source}, line {number}")


def _decoded(line: bytes | None, where: str) -> str | DataError:
    if line is None:
        return DataError(
            f"{where}: longer than {LONGEST >> 20} MiB, expected a sentence: break it up"
        )
    if b"\0" in line:
        return DataError(f"{where}: found a NUL byte, expected text: save the file as UTF-8")
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        return DataError(
            f"{where}: byte 0x{line[error.start]:02x} is not UTF-8, expected UTF-8: convert the "
            "file (such as iconv -f WINDOWS-1256 -t UTF-8)"
        )


def _open(path: Path, name: str) -> BinaryIO:
    if path.is_dir():
        raise DataError(f"{name} is a directory, expected a file: name a file in it")
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise DataError(f"{name}: no such file, expected a data file: check the path") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{shown(name, 200)} cannot be read ({reason}): check the path") from None


def _chunks(stream: BinaryIO, name: str, close: bool) -> Iterator[bytes]:
    # read1 gives what has arrived instead of waiting until the chunk is full.
    read = getattr(stream, "read1", stream.read)
    try:
        while chunk := read(CHUNK):
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


def _unpacked(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The content of a gzip file, which may be several put one after the other."""
    unpacker = zlib.decompressobj(31)
    try:
        for chunk in chunks:
            while chunk:
                if unpacker.eof:
                    chunk = chunk.lstrip(b"\0")  # padding that some tapes and tools leave
                    if not chunk:
                        break
                    unpacker = zlib.decompressobj(31)
                if piece := unpacker.decompress(chunk, CHUNK):
                    yield piece
                chunk = unpacker.unconsumed_tail or unpacker.unused_data
        if piece := unpacker.flush():
            yield piece
        if not unpacker.eof:
            raise zlib.error("it ends too early")
    except zlib.error as error:
        raise DataError(
            f"{name}: broken gzip ({error}), expected a whole gzip file: copy or download it again"
        ) from None


def _lines(chunks: Iterator[bytes]) -> Iterator[Lines]:
    end = b""
    pieces: list[bytes] = []  # of the line that has begun
    held = 0
    several = False

    def whole(last: bytes) -> bytes | None:
        if held + len(last) > LONGEST:
            return None
        return b"".join([*pieces, last]) if pieces else last

    for chunk in chunks:
        if not end:
            end = b"\r" if b"\r" in chunk[:-1] and b"\n" not in chunk else b"\n"
        head, *rest = chunk.split(end)
        if rest:
            block = [whole(head)]
            *middle, head = rest
            pieces, held, several = [], 0, True
            yield [*block, *middle]
        held += len(head)
        if held > LONGEST:
            pieces = []
        elif head:
            pieces.append(head)
    if held:
        # A carriage return with no line feed behind it, in a file that has some, is a stray
        # character; whoever decodes takes one off each line.
        stray = several and bool(pieces) and pieces[-1].endswith(b"\r")
        yield [whole(b"\r" if stray else b"")]
