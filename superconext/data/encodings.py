"""Character encodings other than UTF-8: read under their name, guessed for a message."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from contextlib import suppress

from superconext.core.errors import ConfigError, DataError

#: What a file may open with that says its encoding; the longer ones first.
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SAMPLE = 1 << 16  # bytes that are guessed on


def check_encoding(name: str) -> str:
    """The name itself. Raises ConfigError where Python knows no text encoding of that name."""
    try:
        "".encode(name)
    except (LookupError, ValueError):
        raise ConfigError(
            f"found encoding {name!r}, expected one that Python knows: give a name such as "
            "windows-1256, windows-1252 or utf-16"
        ) from None
    return name


def encoding_of(first: bytes, asked: str | None) -> str | None:
    """The encoding to read a file in that begins with `first`; None for UTF-8.

    It is that of the byte order mark, else the one asked for, unless the beginning is UTF-8 and
    more than ASCII, which no other encoding is by chance.
    """
    marked = next((name for mark, name in _MARKS.items() if first.startswith(mark)), None)
    if marked is not None or asked is None:
        return marked
    with suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(first)
        return asked if first.isascii() else None
    return asked


def transcoded(chunks: Iterable[bytes], encoding: str, name: str) -> Iterator[bytes]:
    """The chunks in UTF-8. Raises DataError with the line that is not in the encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1

    def decode(chunk: bytes, final: bool = False) -> bytes:
        nonlocal line
        try:
            text = decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding, "ignore")
            raise DataError(
                f"{name}, line {line + before.count(chr(10))}: byte 0x"
                f"{error.object[error.start]:02x} ({error.reason}), expected text in {encoding}: "
                "give --encoding the encoding the file is in, or copy it again"
            ) from None
        line += text.count("\n")
        return text.encode("utf-8", "replace")

    for chunk in chunks:
        yield decode(chunk)
    yield decode(b"", final=True)


def advice(sample: bytes) -> str:
    """What to do about bytes that are not UTF-8: the likely encoding, with how it would read."""
    guess = guessed(sample)
    if guess is None:
        return "give --encoding its encoding (Arabic: windows-1256; French: windows-1252)"
    place = next((i for i, byte in enumerate(sample) if byte > 127), 0)
    read = sample[max(place - 8, 0) : place + 40].decode(guess, "replace").split("\n")
    shown = max(read, key=lambda part: (not part.isascii(), len(part)))
    return f"give --encoding {guess} if {shown.strip()!r} reads right"


def guessed(sample: bytes) -> str | None:
    """The likely encoding of bytes, by charset-normalizer; None where it sees none.

    Among encodings of Latin letters it often takes a rare one: there windows-1252 is taken,
    where it reads the bytes too, but for those of the Macintosh.
    """
    try:
        from charset_normalizer import from_bytes
    except ImportError:
        return None
    best = from_bytes(sample[:_SAMPLE]).best()
    if best is None or best.encoding.startswith("utf"):
        return None
    letters = [c for c in sample[:_SAMPLE].decode(best.encoding, "ignore") if c.isalpha()]
    if not best.encoding.startswith("mac") and all(ord(c) < 0x250 for c in letters):
        with suppress(UnicodeDecodeError):
            sample.decode("windows-1252")
            return "windows-1252"
    return {"cp1256": "windows-1256"}.get(best.encoding, best.encoding)
