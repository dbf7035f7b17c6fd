"""Characters: classes of words, emoji and invisible marks for regular expressions, and scripts.

`re` has no Unicode categories: its `\\w` leaves out combining marks, which would cut
Hindi, Amharic or vocalised Arabic words into pieces, and takes `_` in. The classes here
are built from the Unicode database at first use (a few hundredths of a second, then kept).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

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
    (0x1950, 0x19CF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1A7F),  # Tai Tham
    (0x1B05, 0x1B4C),  # Balinese
    (0x2E80, 0x2FDF),  # CJK radicals
    (0x3005, 0x3007),
    (0x3041, 0x30FF),  # kana
    (0x3105, 0x312F),  # bopomofo
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA984, 0xA9C0),  # Javanese
    (0xA9E0, 0xA9EF),  # Myanmar, extended
    (0xA9FA, 0xA9FE),
    (0xAA60, 0xAA7F),
    (0xAA80, 0xAADF),  # Tai Viet
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),  # halfwidth kana
    (0x1B000, 0x1B16F),
    (0x20000, 0x323AF),
)

#: 0 of every script whose digits NFKC leaves as they are; 1 to 9 follow it. Those beyond the BMP
#: are left out, as `re` would test their ranges one by one at each character.
ZEROS = (
    0x0660, 0x06F0, 0x07C0, 0x0966, 0x09E6, 0x0A66, 0x0AE6, 0x0B66, 0x0BE6, 0x0C66, 0x0CE6,
    0x0D66, 0x0DE6, 0x0E50, 0x0ED0, 0x0F20, 0x1040, 0x1090, 0x17E0, 0x1810, 0x1946, 0x19D0,
    0x1A80, 0x1A90, 0x1B50, 0x1BB0, 0x1C40, 0x1C50, 0xA620, 0xA8D0, 0xA900, 0xA9D0, 0xA9F0,
    0xAA50, 0xABF0,
)  # fmt: skip

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


def class_body(ranges: Iterable[tuple[int, int]]) -> str:
    """Write code point ranges as the inside of a regex `[...]` class."""
    return "".join(
        _written(first) if first == last else f"{_written(first)}-{_written(last)}"
        for first, last in ranges
    )


def _written(code: int) -> str:
    # Escapes take `re` several times as long to read; in ASCII a character may mean something.
    return f"\\x{code:02x}" if code < 0x80 else chr(code)


# Letters and marks end here; what lies above is Han (unspaced), plus one block of marks.
_PLANES, _MARKS_ABOVE = range(0x20000), range(0xE0100, 0xE01F0)
_BMP = 0x10000


@lru_cache(maxsize=1)
def _kinds() -> str:
    """One letter for each code point of `_PLANES` and `_MARKS_ABOVE`: its category's first.

    But `-` where none is assigned, `x` for what is written without spaces or is a picture, unless
    it is a mark, and `J` for the joiners.
    """
    categories = "".join(map(unicodedata.category, map(chr, (*_PLANES, *_MARKS_ABOVE))))
    kinds = bytearray(categories.replace("Cn", "--")[::2], "ascii")
    for first, last in (*_UNSPACED_RANGES, *_EMOJI_RANGES):
        end = min(last + 1, len(_PLANES))
        kinds[first:end] = re.sub(b"[^M]", b"x", kinds[first:end])
    for code in _JOINERS:
        kinds[code] = ord("J")
    return kinds.decode("ascii")


def _ranges(categories: str) -> list[tuple[int, int]]:
    """Code point ranges whose category begins with one of the letters in `categories`.

    Letters and numerals of unspaced scripts are left out; marks take the joiners along.
    """
    taken = f"[{categories}{'J' * ('M' in categories)}]+"
    # Beyond the BMP `re` tests ranges one by one: fewer, wider ones, with what is not assigned
    # between them, are faster.
    wide = re.compile(f"{taken}(?:-+{taken})*")
    matches = [
        *re.compile(taken).finditer(_kinds(), 0, _BMP),
        *wide.finditer(_kinds(), _BMP, len(_PLANES)),
        *wide.finditer(_kinds(), len(_PLANES)),
    ]
    return [(_code(match.start()), _code(match.end() - 1)) for match in matches]


def _code(position: int) -> int:
    """The code point at a position of `_kinds`."""
    beyond = position - len(_PLANES)
    return position if beyond < 0 else _MARKS_ABOVE[beyond]


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


MIXED = "mixed"
NONE = "no letters"

#: The group of texts in no single script.
OTHER = "mixed or other"

#: Texts of a group from which on figures are given for it alone.
FEWEST_OF_SCRIPT = 50

_MAIN = 0.9  # share of the letters from which one script counts as the text's own


def script_of(text: str) -> str:
    """`Arabic`, `Latin` and so on if nine in ten letters are, else `mixed` or `no letters`.

    Kana, and Han beside kana, is `Japanese`. Addresses, mentions and hashtags count like everything
    else.
    """
    counts = letters_of(text)
    if kana := counts.pop("Hiragana", 0) + counts.pop("Katakana", 0):
        counts["Japanese"] = kana + counts.pop("Han", 0)
    if not counts:
        return NONE
    script, count = counts.most_common(1)[0]
    return script if count >= _MAIN * counts.total() else MIXED


def letters_of(text: str) -> Counter[str]:
    """How many letters of a text are in each script."""
    counts = Counter(map(_script, text))
    del counts[""]
    return counts


def script_counts(texts: Iterable[str]) -> dict[str, int]:
    """How many texts are in each script, the most frequent first."""
    return dict(Counter(map(script_of, texts)).most_common())


def script_groups(texts: Iterable[str]) -> list[str]:
    """The group of each text: its script, or `OTHER` where it has no single one."""
    return [OTHER if script in (MIXED, NONE) else script for script in map(script_of, texts)]


def rows_by_script(texts: Sequence[str]) -> dict[str, np.ndarray]:
    """The rows of each group that has `FEWEST_OF_SCRIPT`, the largest first; empty where fewer
    than two groups have."""
    groups = np.array(script_groups(texts))
    sizes = Counter(groups.tolist()).most_common()
    kept = [str(name) for name, size in sizes if size >= FEWEST_OF_SCRIPT]
    return {name: np.flatnonzero(groups == name) for name in kept} if len(kept) > 1 else {}


# Scripts whose name is not the first word of their letters' names; "" for letters of several.
_SCRIPTS = {
    "BASSA": "Bassa Vah",
    "CANADIAN": "Canadian syllabics",
    "CJK": "Han",
    "GUNJALA": "Gunjala Gondi",
    "HANIFI": "Hanifi Rohingya",
    "KAYAH": "Kayah Li",
    "MASARAM": "Masaram Gondi",
    "MEETEI": "Meetei Mayek",
    "MENDE": "Mende Kikakui",
    "NEW": "New Tai Lue",
    "NKO": "N'Ko",
    "OL": "Ol Chiki",
    "PAHAWH": "Pahawh Hmong",
    "SORA": "Sora Sompeng",
    "SYLOTI": "Syloti Nagri",
    "TAI": "Tai",
    "WARANG": "Warang Citi",
    **dict.fromkeys(("FEMININE", "MASCULINE", "MODIFIER", "KATAKANA-HIRAGANA", "MATHEMATICAL"), ""),
}


@lru_cache(maxsize=1 << 14)
def _script(character: str) -> str:
    """Script of a letter by its Unicode name, "" for all else and for letters of several scripts.

    `re` and `unicodedata` do not know the property Script; the names tell it for every letter
    but a few symbols.
    """
    if not character.isalpha():
        return ""
    words = unicodedata.name(character, "OTHER").split()
    first = words[words[0] in ("FULLWIDTH", "HALFWIDTH")]
    return _SCRIPTS.get(first, first.capitalize())
