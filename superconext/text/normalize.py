"""Normalising text: the rules, the table of where each is on, and profiles.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from superconext.core import blank
from superconext.core.errors import ConfigError, suggestion
from superconext.text import characters
from superconext.text.characters import class_body

PROFILES = ("arabic", "arabizi", "latin", "none")
PLACEHOLDERS = ("<url>", "<email>", "<user>", "<num>")

_EVERY = ("arabic", "arabizi", "latin")

# Inside a word: C'est, aujourd’hui, est-elle, 3'ir (the apostrophe is a letter in Arabizi).
# Also Catalan col·lecció and the marks of Hebrew abbreviations, צה״ל and ג׳ירפה.
CONNECTORS = "'’·״׳_-"
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
_PUNCTUATION = re.compile(r"([^\w\s]|_)\1{2,}")
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
# Tifinagh ⵯ makes ⴳⵯ and ⴽⵯ letters of their own; NFKC has the letter ⵡ for it.
_TIFINAGH_W = "\u2d6f"


#: Marks in a row that are kept of more.
_MOST_MARKS = 500


@lru_cache(maxsize=1)
def _marks() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What finds one, and what finds more than are kept."""
    one = f"[{characters.marks()}]"
    return re.compile(one), re.compile(f"({one}{{{_MOST_MARKS}}}){one}+")


def _has_many_marks(line: str) -> bool:
    if len(line) <= _MOST_MARKS:
        return False
    one, many = _marks()  # so many in a row have one at a multiple of their number
    return bool(one.search(line[::_MOST_MARKS]) and many.search(line))


def _is_line_nfkc(line: str) -> bool:
    return not _has_many_marks(line) and unicodedata.is_normalized("NFKC", line)


def _line_nfkc(line: str) -> str:
    if _has_many_marks(line):  # a run of marks is put in order in quadratic time
        line = _marks()[1].sub(r"\1", line)
    return unicodedata.normalize("NFKC", line)


def nfkc(text: str) -> str:
    """Unicode NFKC, without the spaces it would put before spacing accents, and with ⵯ kept."""
    if text.isascii():
        return text
    if _TIFINAGH_W in text:
        return _TIFINAGH_W.join(map(nfkc, text.split(_TIFINAGH_W)))
    if not _SPACING_CHARACTERS.isdisjoint(text):
        text = text.translate(_SPACING_FORMS)
    # A line end composes with nothing. Most lines are seen to be in NFKC as they are, where one
    # mark anywhere would have the whole text taken apart and put together again.
    return "\n".join(map(_line_nfkc, text.split("\n")))


def is_nfkc(text: str) -> bool:
    """Whether `nfkc` leaves text as it is, but for spacing accents."""
    if text.isascii():
        return True
    if _TIFINAGH_W in text:
        return all(map(is_nfkc, text.split(_TIFINAGH_W)))
    return all([_is_line_nfkc(line) for line in text.split("\n")])


def lower(text: str) -> str:
    """Lower case; Turkish İ is i, where Unicode has i and a dot above."""
    text = text.lower()
    while "i\u0307" in text:
        text = text.replace("i\u0307", "i")
    return text


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
    # Vowel signs are lengthened as letters are.
    return match[0][: 2 if unicodedata.category(match[1])[0] == "M" else 3]


def punctuation(text: str) -> str:
    """At most three of a punctuation mark, symbol or emoji in a row, two of a combining mark."""
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
    **dict.fromkeys(blank.INVISIBLE, None),
    **dict.fromkeys(blank.BLANKS, " "),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),  # lone surrogates cannot be saved as UTF-8
}


RULES: tuple[Rule, ...] = (
    Rule("skin_tones", (), characters=dict.fromkeys(characters.SKIN_TONES, None)),
    Rule("invisible", _EVERY, characters=INVISIBLE, function=join_emoji_only),
    Rule("nfkc", _EVERY, function=nfkc),
    Rule("lower", _EVERY, function=lower),
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
            **{zero + value: str(value) for zero in characters.ZEROS for value in range(10)},
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
    Rule("kaf", ("arabic",), characters={ord("ک"): "ك"}),
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


# `choose_profile`: share of Arabic letters, and share of Latin words that are spelt with an
# Arabizi digit, from which text counts as such. Measured on some twenty corpora: Latin-script
# dialect has 2% to 24% of such words, English 0.2% at most, biochemistry (PI3K) 0.6%.
ARABIC_SHARE = 0.05
ARABIZI_SHARE = 0.01
#: Share of ې and ۍ among Arabic letters from which yehs are letters of their own.
SEVERAL_YEHS = 0.002
_MOST_COUNTED = 500  # characters of a text

_ARABIC_RUN = re.compile("[\u0620-\u065f\u066e-\u06d3\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc]+")
_LATIN_RUN = re.compile("[A-Za-z\u00c0-\u024f]+")
_LATIN_WORD = re.compile("[0-9A-Za-z\u00c0-\u024f]+")
_WEB = re.compile(r"(?:https?://|www\.|[@#])\S+")
# Arabizi digits between letters, or before two letters: ma3arfach, 9alb; not 2nd, 3d, mp3 or 80s.
_ARABIZI_WORD = re.compile("(?:[A-Za-z]+[2-9]+[A-Za-z]+|[2-9][A-Za-z]{2,})[0-9A-Za-z]*")
_ORDINAL = re.compile("[0-9](?:nd|rd|th|ers?|emes?|km|mm|cm|pm|am|dh|da|mo|go)", re.IGNORECASE)


class Normalizer:
    """Text to text: the rules of a profile, with some switched on or off by name.

    The result is stable: normalising it again changes nothing. Any `str` is accepted, lone
    surrogates and NUL included, in time linear in its length. The profile `none` has no
    rule on and returns the text itself.

    Rules are switched by the arguments or, as on the command line, behind the profile:
    `arabic+skin_tones-lower`.

    Raises `ConfigError` for an unknown profile or rule.

    Example:
        >>> Normalizer("arabizi")("@amal ZWIN bzaaaaf!!!!! 2019")
        '<user> zwin bzaaf!!! <num>'
    """

    def __init__(
        self,
        profile: str = "arabic",
        enable: Sequence[str] = (),
        disable: Sequence[str] = (),
    ) -> None:
        profile, *more = parse_normalize(profile)
        if profile not in PROFILES:
            raise ConfigError(
                f"normalize: found profile {profile!r}, expected one of {', '.join(PROFILES)}; "
                f"{suggestion(profile, PROFILES)}"
            )
        for option, names in (("enable", enable), ("disable", disable)):
            _check_names(option, names)
        enable, disable = [*enable, *more[0]], [*disable, *more[1]]
        both = sorted(set(enable) & set(disable))
        if both:
            raise ConfigError(
                f"normalize: found rule {both[0]!r} both in enable and in disable, expected one "
                "of the two; take it out of the other"
            )
        self.profile = profile
        self.rules: tuple[str, ...] = tuple(
            rule.name
            for rule in RULES
            if rule.name in enable or (profile in rule.profiles and rule.name not in disable)
        )
        self._steps = _plan([rule for rule in RULES if rule.name in self.rules])

    @property
    def named(self) -> str:
        """The profile and how its rules differ, such as `arabic+skin_tones-lower`."""
        own = {rule.name: self.profile in rule.profiles for rule in RULES}
        changed = [name for name in RULE_NAMES if own[name] != (name in self.rules)]
        return self.profile + "".join("-+"[name in self.rules] + name for name in changed)

    def __call__(self, text: str) -> str:
        for step in self._steps:
            text = step(text)
        return text

    def lines(self, text: str) -> str:
        """Every line normalised, in one pass over all of them; white space is left as it is.

        No rule reaches over the end of a line, so there are as many lines as before.
        """
        for step in self._steps:
            if step is not spaces:
                text = step(text)
        return text

    def __reduce__(self) -> tuple[Any, ...]:
        # The steps are closures; worker processes rebuild them from the names.
        return Normalizer.from_dict, (self.to_dict(),)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a run folder: the profile and every rule that is on.

        The rules are spelt out so that a saved run keeps its own even if a profile changes.
        """
        return {"profile": self.profile, "rules": list(self.rules)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Normalizer:
        """Rebuild from `to_dict`. Raises `ConfigError` if something is missing or unknown."""
        if not isinstance(data, Mapping) or not {"profile", "rules"} <= set(data):
            raise ConfigError(
                f"normalize: found {data!r}, expected the keys 'profile' and 'rules'; "
                "save the run again"
            )
        rules = data["rules"]
        _check_names("rules", rules)
        return cls(
            data["profile"],
            enable=rules,
            disable=[name for name in RULE_NAMES if name not in rules],
        )


def parse_normalize(text: str) -> tuple[str, list[str], list[str]]:
    """Profile, rules to switch on and rules to switch off of "auto+skin_tones-lower".

    Raises ConfigError for a rule that is unknown.
    """
    profile, *rules = re.split("(?=[+-])", text)
    enable, disable = (
        [rule[1:].strip() for rule in rules if rule[0] == sign] for sign in ("+", "-")
    )
    _check_names("normalize", [*enable, *disable])
    return profile.strip(), enable, disable


def choose_profile(texts: Iterable[str]) -> str:
    """The profile that `auto` stands for, from the script mix of the training text.

    Letters are counted outside web addresses, mentions and hashtags, in the first 500 characters of
    each text, so that no text outweighs all others:

    - `arabic` if at least 5% of the Arabic and Latin letters are Arabic: its rules for Arabic
      touch no other script, and the rest are those of `arabizi`, so it serves mixed text;
      `arabic-alef_maksura` if ې and ۍ are 0.2% of the Arabic letters, as in Pashto and Uyghur,
      where ى, ی and ي are letters of their own;
    - else `arabizi` if at least 1% of the Latin words hold an Arabizi digit (`ma3arfach`,
      `9alb`; not `2nd`, `3d`, `mp3`);
    - else `latin`, also for other scripts and for no letters at all.

    The same texts give the same answer, in any order.

    Example:
        >>> choose_profile(["3jebni had lfilm bzaf"])
        'arabizi'
    """
    arabic = latin = words = arabizi = yehs = 0
    for text in texts:
        text = text[:_MOST_COUNTED]
        if "@" in text or "#" in text or "://" in text or "www." in text:
            text = _WEB.sub(" ", text)
        arabic += sum(map(len, _ARABIC_RUN.findall(text)))
        yehs += text.count("ې") + text.count("ۍ")
        latin += sum(map(len, _LATIN_RUN.findall(text)))
        for word in _LATIN_WORD.findall(text):
            if word.isdigit():
                continue
            words += 1
            if not word.isalpha() and _ARABIZI_WORD.fullmatch(word):
                arabizi += not _ORDINAL.fullmatch(word)
    if arabic and arabic >= ARABIC_SHARE * (arabic + latin):
        return "arabic-alef_maksura" if yehs >= SEVERAL_YEHS * arabic else "arabic"
    if arabizi and arabizi >= ARABIZI_SHARE * words:
        return "arabizi"
    return "latin"


def normalizer_of(named: str, texts: Iterable[str]) -> Normalizer:
    """The normaliser of a profile and rules, see `parse_normalize`; for the profile `auto` that
    which `choose_profile` finds for the texts. Raises ConfigError for unknown ones."""
    profile, enable, disable = parse_normalize(named)
    if profile == "auto":
        profile, _, off = parse_normalize(choose_profile(texts))
        disable = [*disable, *(rule for rule in off if rule not in enable)]
    return Normalizer(profile, enable, disable)


def _check_names(option: str, names: object) -> None:
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise ConfigError(
            f"normalize: found {names!r} for {option}, expected a list of rule names; "
            f"write {option}=[...]"
        )
    for name in names:
        if name not in RULE_NAMES:
            raise ConfigError(
                f"normalize: found rule {name!r} in {option}, expected one of "
                f"{', '.join(RULE_NAMES)}; {suggestion(name, RULE_NAMES)}"
            )


Step = Callable[[str], str]


def _plan(rules: list[Rule]) -> list[Step]:
    """Steps for the rules that are on; the rules on characters become one step.

    Deleting or changing a character can let its neighbours compose (`e`, tatweel, accent),
    so the step ends only when the text is in NFKC. It takes at most a few rounds: no rule on
    characters writes anything that another one rewrites, once compatibility forms are gone.
    """
    last = max((i for i, rule in enumerate(rules) if rule.characters), default=-1)
    head: list[Step] = []
    composes = False
    i = 0
    names = [rule.name for rule in rules]
    for name in ("nfkc", "lower"):
        if name in names:
            last = max(last, names.index(name))
    while i <= last:
        # Neighbouring character maps are merged into one pass over the text.
        merged: dict[int, str | None] = {}
        functions: list[Step] = []
        while i <= last and not functions:
            merged.update(rules[i].characters)
            function = rules[i].function
            if function is not None:
                functions.append(function)
                composes = composes or rules[i].name == "nfkc"
            i += 1
        if merged:
            head.append(_translator(merged))
        head.extend(functions)
    tail = [rule.function for rule in rules[last + 1 :] if rule.function is not None]
    if not composes:
        return head + tail

    def characters(text: str) -> str:
        while True:
            for step in head:
                text = step(text)
            # A dot may have come beside its i when what stood between them left.
            if is_nfkc(text) and not ("lower" in names and "i\u0307" in text):
                return text

    return [characters, *tail]


def _translator(table: dict[int, str | None]) -> Step:
    present = re.compile(f"[{class_body((code, code) for code in sorted(table))}]").search
    return lambda text: text.translate(table) if present(text) else text
