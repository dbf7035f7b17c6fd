"""A bridge between Arabizi and Arabic script: both spellings of a word to one key.

Latin-script dialect is mapped letter by letter to Arabic script by the table of its dialect,
then both scripts are folded to a skeleton: short vowels and alef go, emphatic letters join
their plain partners (Arabizi writes `t` for ت and ط), doubled letters become one. The key is
meant to be compared, not read. Different words can share a key (قلب heart, قلّب searched), so
the bridge is off unless asked for.
"""

from __future__ import annotations

import re
import unicodedata

from superconext.core.errors import ConfigError, suggestion

# Conventions common to the Maghreb, as chat users write them: digits for the letters they
# resemble (3 ع, 7 ح, 9 ق, 2 ء, 6 ط), with an apostrophe for the dotted letter (3' غ, 7' خ,
# 9' ض); French digraphs (ch ش, ou و, gh غ, kh خ). 5 is خ (khamsa, five, begins with it).
# An empty string is a short vowel: it is not written in Arabic script.
_COMMON = {
    "tch": "تش",
    "3'": "غ",
    "7'": "خ",
    "9'": "ض",
    "6'": "ظ",
    "ch": "ش",
    "sh": "ش",
    "gh": "غ",
    "kh": "خ",
    "th": "ث",
    "dh": "ذ",
    "dj": "ج",
    "ph": "ف",
    "ou": "و",
    "oo": "و",
    "ee": "ي",
    "ce": "س",
    "ci": "سي",
    "2": "ء",
    "3": "ع",
    "5": "خ",
    "6": "ط",
    "7": "ح",
    "9": "ق",
    "a": "",
    "b": "ب",
    "c": "ك",
    "d": "د",
    "e": "",
    "f": "ف",
    "g": "گ",
    "h": "ه",
    "i": "ي",
    "j": "ج",
    "k": "ك",
    "l": "ل",
    "m": "م",
    "n": "ن",
    "p": "پ",
    "q": "ق",
    "r": "ر",
    "s": "س",
    "t": "ت",
    "v": "ڤ",
    "w": "و",
    "y": "ي",
    "z": "ز",
}

DIALECTS: dict[str, dict[str, str]] = {
    # 8 for ه (kay8reb, kan8dmo), x for ش (xi, xno); o and u are long as a rule (chof, nod).
    "moroccan": {**_COMMON, "8": "ه", "x": "ش", "o": "و", "u": "و"},
    # French habits: ou is the long vowel, o and u are short; 8 for ه.
    "algerian": {**_COMMON, "8": "ه", "x": "كس", "o": "", "u": ""},
    # 8 for غ (8odwa, 8alta), 4 for ذ (ha4a); o and u are short.
    "tunisian": {**_COMMON, "8": "غ", "4": "ذ", "x": "كس", "o": "", "u": ""},
}

# What the two scripts tell apart differently, or writers leave out.
_FOLD = str.maketrans(
    {
        **dict.fromkeys("ط", "ت"),
        **dict.fromkeys("ضظذ", "د"),
        **dict.fromkeys("ص", "س"),
        **dict.fromkeys("ث", "ت"),
        **dict.fromkeys("ڭڨݣ", "گ"),
        **dict.fromkeys("پ", "ب"),
        **dict.fromkeys("ڤ", "ف"),
        **dict.fromkeys("ی", "ي"),
        **dict.fromkeys("ک", "ك"),
        **dict.fromkeys("أإآٱ", "ا"),
        "چ": "تش",
        "ؤ": "ء",
        "ئ": "ء",
    }
)
_LATIN = re.compile("[a-z]")
_ARABIC = re.compile("[ء-غف-يٮ-ۓݐ-ݿ]")
_NOT_SKELETON = re.compile("[^ء-غف-يٮ-ۓݐ-ݿ]")
_ARTICLE = re.compile("^[aei]l(?=[^aeiou'’-].)|^[aei]l['’-]")
_FINAL = re.compile("(?<=.)[ةى]$")
_DOUBLE = re.compile(r"(.)\1+")


class Bridge:
    """Token to key. Tokens of neither script (numbers, emoji, `<url>`) stay as they are.

    Raises `ConfigError` for an unknown dialect.
    """

    def __init__(self, dialect: str) -> None:
        if dialect not in DIALECTS:
            raise ConfigError(
                f"bridge: found dialect {dialect!r}, expected one of {', '.join(DIALECTS)}; "
                f"{suggestion(dialect, DIALECTS)}"
            )
        self.dialect = dialect
        self._table = DIALECTS[dialect]
        longest_first = sorted(self._table, key=len, reverse=True)
        self._unit = re.compile("|".join(map(re.escape, longest_first)))

    def __call__(self, token: str) -> str:
        if token.startswith("<"):
            return token
        key = token.lower()
        if not key.isascii():
            # é is e; an Arabic hamza stays with its letter, which has a fold of its own.
            key = "".join(
                c if "\u0600" <= c <= "\u077f" else unicodedata.normalize("NFD", c)[0] for c in key
            )
        if _LATIN.search(key):
            key = self._arabic(key.replace("’", "'"))
        elif not _ARABIC.search(key):
            return token
        return self._skeleton(key) or token

    def _arabic(self, word: str) -> str:
        word = _ARTICLE.sub("l", word)
        start = "ا" if word[0] in "aeiou" and not word.startswith("ou") else ""
        # A final o or u is the plural or the pronoun (kanktbo, dialo), long in every dialect.
        end = "و" if len(word) > 1 and word[-1] in "ou" and not word.endswith(("ou", "oo")) else ""
        body = word[1:] if start else word
        body = body[:-1] if end and body else body
        return start + self._unit.sub(lambda unit: self._table[unit[0]], body) + end

    @staticmethod
    def _skeleton(word: str) -> str:
        word = _NOT_SKELETON.sub("", word).translate(_FOLD)
        if word.startswith("ء"):
            word = "ا" + word[1:]  # 2ana and أنا
        if word.startswith("ال") and len(word) > 3:
            word = word[1:]  # l9dim and القديم: the article is ل in both
        word = _FINAL.sub("", word)
        word = word[:1] + word[1:].replace("ا", "")
        return _DOUBLE.sub(r"\1", word[:1] + word[1:].replace("ء", ""))
