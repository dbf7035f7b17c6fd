"""Which characters make words, emoji and invisible marks, as bodies of regex classes.

`re` has no Unicode categories: its `\\w` leaves out combining marks, which would cut
Hindi, Amharic or vocalised Arabic words into pieces, and takes `_` in. The classes here
are built from the Unicode database at first use (under 0.1 s, then kept).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache

# Scripts written without spaces between words. Each character (with its marks) is a token:
# a whole sentence as one token would be unknown for ever.
_UNSPACED_RANGES = (
    (0x0E01, 0x0E2E),  # Thai consonants; the vowels and tones are the next line and marks
    (0x0E2F, 0x0E4F),
    (0x0E80, 0x0ECF),  # Lao
    (0x0EDC, 0x0EDF),
    (0x1000, 0x103F),  # Myanmar
    (0x1050, 0x108F),
    (0x1780, 0x17D3),  # Khmer
    (0x2E80, 0x2FDF),  # CJK radicals
    (0x3005, 0x3007),
    (0x3041, 0x30FF),  # kana
    (0x3105, 0x312F),  # bopomofo
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),  # halfwidth kana
    (0x1B000, 0x1B16F),
    (0x20000, 0x323AF),
)

# Pictures, close to the property Extended_Pictographic. What NFKC takes apart (such as the
# trade mark sign) is left out on purpose: it is not a picture any more after that rule.
_EMOJI_RANGES = (
    (0x2190, 0x21FF),
    (0x2300, 0x2328),
    (0x232B, 0x23FF),
    (0x25A0, 0x2775),
    (0x2794, 0x27BF),
    (0x2934, 0x2935),
    (0x2B00, 0x2B59),
    (0x1F000, 0x1F0FF),
    (0x1F170, 0x1F171),
    (0x1F17E, 0x1F17F),
    (0x1F18E, 0x1F18E),
    (0x1F300, 0x1F64F),
    (0x1F680, 0x1F6FF),
    (0x1F780, 0x1F7FF),
    (0x1F90C, 0x1FAFF),
)

ZWJ = "\u200d"
# In the middle of a word these join or hint at hyphens; they never end a word (UAX #29).
_JOINERS = (0x00AD, 0x200C, 0x200D, 0x2060)

SKIN_TONES = range(0x1F3FB, 0x1F400)

INVISIBLE = frozenset(
    {0x00AD, 0x034F, 0x061C, 0x180E, 0x200C, 0x200E, 0x200F, 0xFEFF, 0xE0001}
    | set(range(0x202A, 0x202F))  # bidi embeddings and overrides
    | set(range(0x2060, 0x2070))  # word joiner, invisible operators, bidi isolates
    | {0xFE0E, 0xFE0F}  # text or picture style of the same emoji
    | {0xFFF9, 0xFFFA, 0xFFFB}
    # Controls that are not white space, NUL among them.
    | {c for c in range(0xA0) if unicodedata.category(chr(c)) == "Cc" and not chr(c).isspace()}
)
# Zero width space is a word boundary by definition; the others are blanks to the eye.
BLANKS = frozenset({0x200B, 0x2800, 0x3164, 0xFFA0})


def class_body(ranges: Iterable[tuple[int, int]]) -> str:
    """Write code point ranges as the inside of a regex `[...]` class."""
    return "".join(
        f"\\U{first:08x}" if first == last else f"\\U{first:08x}-\\U{last:08x}"
        for first, last in ranges
    )


# Letters and marks end here; what lies above is Han (unspaced), plus one block of marks.
_CODES = (*range(0x20000), *range(0xE0100, 0xE01F0))


def _ranges(categories: str) -> list[tuple[int, int]]:
    """Code point ranges whose category begins with one of the letters in `categories`.

    Letters and numerals of unspaced scripts are left out; marks take the joiners along.
    """
    skip: set[int] = set()
    for first, last in (*_UNSPACED_RANGES, *_EMOJI_RANGES):
        skip.update(range(first, min(last, 0x1FFFF) + 1))
    ranges: list[tuple[int, int]] = []
    bridged = False  # only unassigned code points since the last range ended
    for code in _CODES:
        category = unicodedata.category(chr(code))
        taken = category[0] in categories and (category[0] == "M" or code not in skip)
        if taken or ("M" in categories and code in _JOINERS):
            # Beyond the BMP `re` tests ranges one by one: fewer, wider ones are faster.
            if ranges and (ranges[-1][1] == code - 1 or (bridged and code > 0xFFFF)):
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
            bridged = True
        elif category != "Cn" or code in skip:
            bridged = False
    return ranges


@lru_cache(maxsize=1)
def letters() -> str:
    """Class body: letters and numerals of every script written with spaces."""
    return class_body(_ranges("LN"))


@lru_cache(maxsize=1)
def word() -> str:
    """Class body: what may stand inside a word, that is `letters`, marks and joiners."""
    return class_body(_ranges("LNM"))


@lru_cache(maxsize=1)
def marks() -> str:
    """Class body: combining marks (categories Mn, Mc, Me) and joiners."""
    return class_body(_ranges("M"))


UNSPACED = class_body(_UNSPACED_RANGES)
EMOJI = class_body(_EMOJI_RANGES)
