"""Normalisation rules: the patterns they find, and the table of what each does and where it is on.

`RULES` is in the order of application, and that order matters: characters first (so that later
patterns see one spelling), then placeholders, then runs. `docs/text.md` says of each why it is
there and shows an example, which `tests/text/test_normalize.py` tries.

Every pattern begins at a fixed character or behind a look-behind that lets it begin once in a
run: a search from each letter of a run to its end would take quadratic time. And none may find
in its own result, or in that of a later rule, something it has not found before: normalising
twice is normalising once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from superconext.text import characters

PROFILES = ("arabic", "arabizi", "latin", "none")
PLACEHOLDERS = ("<url>", "<email>", "<user>", "<num>")

_EVERY = ("arabic", "arabizi", "latin")

# Inside a word: C'est, aujourd’hui, est-elle, 3'ir (the apostrophe is a letter in Arabizi).
CONNECTORS = "'’_-"
# Inside a number: 3.5, 1,000, 23/12, 12:30, 2018-2019, 1_000, 1'000 and NFKC's 1⁄2.
_SEPARATORS = ".,:/⁄٫٬'’_-"


@lru_cache(maxsize=1)
def number_pattern() -> str:
    """Regex for a number: digits that touch no letter, with separators and a per cent sign.

    `3la`, `covid-19` and `3'ir` hold no number; `#12` and `@12` are names. The tokenizer
    reads numbers with the same pattern: outside hashtags, what is masked is what is a token.
    """
    word = characters.word()
    # Looking behind from after the first digit lets `re` skip to digits at once.
    before = rf"(?<![{word}#@]\d)(?<![{word}][{CONNECTORS}]\d)"
    after = f"(?![{CONNECTORS}]?[{word}])"
    return rf"\d{before}\d*(?:[{_SEPARATORS}]\d+)*[%٪‰]?{after}"


@lru_cache(maxsize=1)
def _hashtag() -> re.Pattern[str]:
    letters = characters.letters() + characters.UNSPACED
    return re.compile(f"(?<!#)#+(?=_*[{letters}])([_{characters.word()}{characters.UNSPACED}]+)")


@lru_cache(maxsize=1)
def _user() -> re.Pattern[str]:
    letters = characters.letters() + characters.UNSPACED
    return re.compile(f"@(?=_*[{letters}])[_{characters.word()}{characters.UNSPACED}]+")


@lru_cache(maxsize=1)
def _number() -> re.Pattern[str]:
    return re.compile(number_pattern())


# `ht{2,}p`, `w{3,}`: elongation must not turn `htttp://` or `Wwwww.` into an address that only
# a second pass would see.
# The address is ASCII and ends before closing punctuation: text glued to it is not lost.
_URL = re.compile(
    r"(?:[hH][tT]{2,}[pP][sS]?://|(?<![^\W_])(?:[wW]{3,}\.|[pP]ic\.twitter\.com/)(?=[A-Za-z0-9]))"
    r"(?:[!#-;=?-~]*[A-Za-z0-9/_=&%#+~$@-])?"
)
# Addresses glued to each other (`a@b.c+@d.e`) go together, or the second would wait a pass.
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+(?:[\w.+-]*@[\w.+-]+)*")
_ELONGATION = re.compile(r"([^\W\d_])\1{2,}")
_PUNCTUATION = re.compile(r"([^\w\s]|_)\1{3,}")
# Looking behind from after the joiner lets `re` skip to joiners at once.
_ZWJ_ASTRAY = re.compile(f"\u200d(?:(?<![{characters.EMOJI}]\u200d)|(?![{characters.EMOJI}]))")
_ARABIC_DIGIT = re.compile(r"(?<=[ء-يٮ-ۓ])(?=\d)|(?<=\d)(?=[ء-يٮ-ۓ])")


def join_emoji_only(text: str) -> str:
    """Drop zero width joiners, except between two emoji."""
    return _ZWJ_ASTRAY.sub("", text) if characters.ZWJ in text else text


# NFKC turns these into a space and a mark, which would cut the word in two.
_SPACING_FORMS: dict[int, str | None] = {
    0x00B4: "’",
    0x1FFD: "’",
    0xFDFC: "ريال",
    0xFDFD: "بسم الله الرحمن الرحيم",
    **{
        code: unicodedata.normalize("NFKC", chr(code)).strip()
        for code in (*range(0xFC5E, 0xFC64), *range(0xFE70, 0xFE80, 2))
        if unicodedata.normalize("NFKC", chr(code)).startswith(" ")
    },
}
_SPACING_CHARACTERS = frozenset(map(chr, _SPACING_FORMS))


def nfkc(text: str) -> str:
    """Unicode NFKC, without the spaces it would put before spacing accents."""
    if text.isascii():
        return text
    if not _SPACING_CHARACTERS.isdisjoint(text):
        text = text.translate(_SPACING_FORMS)
    # A line end composes with nothing. Most lines are seen to be in NFKC as they are, where one
    # mark anywhere would have the whole text taken apart and put together again.
    return "\n".join([unicodedata.normalize("NFKC", line) for line in text.split("\n")])


def is_nfkc(text: str) -> bool:
    """Whether text is in Unicode NFKC."""
    if text.isascii():
        return True
    return all([unicodedata.is_normalized("NFKC", line) for line in text.split("\n")])


def urls(text: str) -> str:
    """Web addresses to `<url>`."""
    return _URL.sub(" <url> ", text) if "." in text or "://" in text else text


def emails(text: str) -> str:
    """Mail addresses to `<email>`."""
    return _EMAIL.sub(" <email> ", text) if "@" in text else text


def users(text: str) -> str:
    """Mentions to `<user>`."""
    return _user().sub(" <user> ", text) if "@" in text else text


def hashtags(text: str) -> str:
    """Hashtags to their words."""
    if "#" not in text:
        return text
    return _hashtag().sub(lambda match: " " + match[1].replace("_", " "), text)


def split_digits(text: str) -> str:
    """A space between Arabic letters and digits."""
    return _ARABIC_DIGIT.sub(" ", text)


def numbers(text: str) -> str:
    """Numbers to `<num>`."""
    return _number().sub(" <num> ", text)


def _cap_letters(match: re.Match[str]) -> str:
    # The class also takes numerals such as the Ethiopic ones: those are never cut.
    return match[1] * 2 if match[1].isalpha() else match[0]


def elongation(text: str) -> str:
    """At most two of a letter in a row."""
    return _ELONGATION.sub(_cap_letters, text)


def _cap_marks(match: re.Match[str]) -> str:
    # Stacked accents belong to the word below them.
    return match[0] if unicodedata.category(match[1])[0] == "M" else match[1] * 3


def punctuation(text: str) -> str:
    """At most three of a punctuation mark, symbol or emoji in a row."""
    return _PUNCTUATION.sub(_cap_marks, text)


def spaces(text: str) -> str:
    """White space to single spaces, none at the ends."""
    return " ".join(text.split())


@dataclass(frozen=True)
class Rule:
    """A character map, a function or both; docs/text.md says why, with an example."""

    name: str
    profiles: tuple[str, ...]
    characters: Mapping[int, str | None] = field(default_factory=dict)
    function: Callable[[str], str] | None = None


INVISIBLE: dict[int, str | None] = {
    **dict.fromkeys(characters.INVISIBLE, None),
    **dict.fromkeys(characters.BLANKS, " "),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),  # lone surrogates cannot be saved as UTF-8
}


RULES: tuple[Rule, ...] = (
    Rule("skin_tones", (), characters=dict.fromkeys(characters.SKIN_TONES, None)),
    Rule("invisible", _EVERY, characters=INVISIBLE, function=join_emoji_only),
    Rule("nfkc", _EVERY, function=nfkc),
    Rule("lower", _EVERY, function=str.lower),
    Rule(
        "quotes",
        _EVERY,
        characters={
            **dict.fromkeys(map(ord, "‘’‛ʼʻ"), "'"),
            **dict.fromkeys(map(ord, "“”„‟"), '"'),
        },
    ),
    Rule(
        "digits",
        _EVERY,
        characters={
            **{0x0660 + value: str(value) for value in range(10)},
            **{0x06F0 + value: str(value) for value in range(10)},
            **{ord("٪"): "%", ord("٫"): ".", ord("٬"): ","},
        },
    ),
    Rule("tatweel", ("arabic",), characters={0x0640: None}),
    Rule(
        "diacritics", ("arabic",), characters=dict.fromkeys((*range(0x064B, 0x0653), 0x0670), None)
    ),
    Rule(
        "alef",
        ("arabic",),
        characters={
            **dict.fromkeys(map(ord, "أإآٱ"), "ا"),
            # NFKC composes a hamza with the plain alef again: left behind, it would come back.
            **dict.fromkeys((0x0653, 0x0654, 0x0655), None),
        },
    ),
    Rule("alef_maksura", ("arabic",), characters=dict.fromkeys(map(ord, "ىی"), "ي")),
    Rule("ta_marbuta", (), characters={ord("ة"): "ه"}),
    Rule("urls", _EVERY, function=urls),
    Rule("emails", _EVERY, function=emails),
    Rule("users", _EVERY, function=users),
    Rule("hashtags", _EVERY, function=hashtags),
    Rule("split_digits", (), function=split_digits),
    Rule("numbers", ("arabic", "arabizi"), function=numbers),
    Rule("elongation", _EVERY, function=elongation),
    Rule("punctuation", _EVERY, function=punctuation),
    Rule("spaces", _EVERY, function=spaces),
)

RULE_NAMES = tuple(rule.name for rule in RULES)
