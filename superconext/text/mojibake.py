"""Text that was saved wrongly. Mojibake: UTF-8 read as an encoding of one byte a character.

`référence` becomes `rÃ©fÃ©rence` and `ال` becomes `Ø§Ù„` (read as Windows-1252) or `ط§ظ„` (as
Windows-1256). It is recognised by pairs of a character that stands for the first byte of a UTF-8
sequence and one that stands for a following byte, in places where no orthography has them. It is
repaired by ftfy (extra `ftfy`), and for Windows-1256, which ftfy does not know, by reading it back.
Bytes of Windows-1256 that are read as Windows-1252 are only recognised, and so are texts whose
letters became question marks, U+FFFD or escapes (`DAMAGE`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from html.entities import html5

from superconext.core.errors import MissingExtraError


def _following(encoding: str) -> str:
    """Class body of the characters that bytes 0x80 to 0xBF stand for."""
    return re.escape("".join(bytes([i]).decode(encoding, "ignore") for i in range(0x80, 0xC0)))


_LATIN, _ARABIC = "\x80-\x9f" + _following("cp1252"), _following("cp1256")
_AS_1256 = f"(?:[طظعغ][{_ARABIC}])" + "{3,}"


@lru_cache(maxsize=1)
def _pattern() -> re.Pattern[str]:
    alternatives = [
        f"(?<![^\\W\\d_a-zà-ÿ])[ÃÂ][{_LATIN}]",  # accented letters; not at the end of MAÇÃ”
        f"(?:[ØÙÚÛÐÑÎÏ×][{_LATIN}])" + "{2}",  # Arabic, Cyrillic, Greek, Hebrew
        f"â[€\x80][{_LATIN}]|ðŸ[{_LATIN}]",  # punctuation, pictures
        _AS_1256,
    ]
    return re.compile("|".join(alternatives))


#: Without a match of these, which are faster, there is none of the pattern.
_FIRST = re.compile("[ÃÂØÙÚÛÐÑÎÏ×âð]"), re.compile(f"[طظعغ][{_ARABIC}]")


def is_garbled(text: str) -> bool:
    """Whether a text holds mojibake."""
    if text.isascii() or not any(first.search(text) for first in _FIRST):
        return False
    return _pattern().search(text) is not None


#: A letter that Windows-1252 has and ASCII lacks.
_ACCENTED = "[À-ÖØ-öø-ÿŒœŠšŽžŸƒ]"
_MISREAD = re.compile(rf"(?<!\w){_ACCENTED}{{2,}} {_ACCENTED}{{3,}}(?!\w)")


def is_misread(text: str) -> bool:
    """Whether a text has two words in a row of accented letters alone, which no Latin orthography
    has: Arabic, Greek or Cyrillic in an encoding of one byte a letter, read as Windows-1252."""
    return not text.isascii() and _MISREAD.search(text) is not None


#: What texts with a kind of damage do, and what to do about it.
DAMAGE = {
    "misread": (
        "look like another alphabet read in a wrong encoding",
        "give --encoding that of the file (Arabic: windows-1256)",
    ),
    "lost": (
        "have question or replacement marks in place of letters or emoji",
        "they are lost here, so save the original again as UTF-8",
    ),
    "escaped": (
        "spell letters as escapes, such as &eacute; or \\u062e",
        "decode these, or save the original again as UTF-8",
    ),
}
_ESCAPE = re.compile(r"&#(?:x([\da-f]{2,5})|(\d{2,6}));|\\u([\da-f]{4})|&([a-z]+;)", re.IGNORECASE)


def damage_of(text: str) -> str:
    """The kind of `DAMAGE` that a text has, "" for none: mojibake is none of these, nor are single
    question marks, and signs as escapes (`&amp;`)."""
    if is_misread(text):
        return "misread"
    if "\ufffd" in text or ("??" in text and _is_lost(text)):
        return "lost"
    if ("&" in text or "\\u" in text) and any(map(_spells_letter, _ESCAPE.finditer(text))):
        return "escaped"
    return ""


def _is_lost(text: str) -> bool:
    """Whether most words, and two at least, are question marks alone, beside no letter."""
    words = text.split()
    lost = sum(len(word) > 1 and not word.strip("?") for word in words)
    return lost > 1 and 2 * lost > len(words) and not any(map(str.isalpha, text))


def _spells_letter(match: re.Match[str]) -> bool:
    hexadecimal, decimal, escaped, name = match.groups()
    if name:
        character = html5.get(name, "")
    else:
        character = chr(int(decimal) if decimal else int(hexadecimal or escaped, 16))
    return not character.isascii() and character.isalpha()


def garbled_rows(texts: Sequence[str]) -> list[int]:
    """Places of the texts that hold mojibake."""
    if not is_garbled("\n".join(texts)):
        return []
    return [row for row, text in enumerate(texts) if is_garbled(text)]


def mended(text: str) -> str:
    """The text with its mojibake undone; one without it is given back as it is.

    Raises MissingExtraError without ftfy where there is something to repair.
    """
    if not is_garbled(text):
        return text
    try:
        import ftfy
    except ImportError:
        raise MissingExtraError("Mending garbled text", "ftfy") from None
    return re.sub(_AS_1256, _read_back, ftfy.fix_encoding(text))


def _read_back(match: re.Match[str]) -> str:
    try:
        return match[0].encode("cp1256").decode("utf-8")
    except UnicodeError:
        return match[0]


#: Runs of characters that UTF-8 becomes where it is read as Windows-1252 or Latin-1.
_FOREIGN = re.compile(
    "[\x80-\xff\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc"
    "\u2013\u2014\u2018-\u201a\u201c-\u201e\u2020-\u2022\u2026\u2030\u2039\u203a\u20ac\u2122]{2,}"
)


def likely_meant(text: str) -> str:
    """What a garbled text may have been, read back as far as that goes without ftfy; "" for one
    that looks sound. A replacement character, of which nothing can be restored, stays."""
    if "\ufffd" not in text and not is_garbled(text):
        return ""
    return re.sub(_AS_1256, _read_back, _FOREIGN.sub(lambda run: _decoded(run[0]), text))


def _decoded(run: str) -> str:
    # Windows-1252 leaves five bytes undefined, which readers pass through as Latin-1 does.
    octets = bytearray()
    for character in run:
        try:
            octets += character.encode("cp1252")
        except UnicodeEncodeError:
            octets.append(ord(character) & 0xFF)
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return run
