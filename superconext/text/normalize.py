"""Normalising text: the rules of a profile, applied in the order of their table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from superconext.core.errors import ConfigError, suggestion
from superconext.text.characters import class_body
from superconext.text.rules import PROFILES, RULE_NAMES, RULES, Rule, is_nfkc, spaces

# `choose_profile`: share of Arabic letters, and share of Latin words that are spelt with an
# Arabizi digit, from which text counts as such. Measured on some twenty corpora: Latin-script
# dialect has 2% to 24% of such words, English 0.2% at most, biochemistry (PI3K) 0.6%.
ARABIC_SHARE = 0.05
ARABIZI_SHARE = 0.01

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
        if profile not in PROFILES:
            raise ConfigError(
                f"normalize: found profile {profile!r}, expected one of {', '.join(PROFILES)}; "
                f"{suggestion(profile, PROFILES)}"
            )
        for option, names in (("enable", enable), ("disable", disable)):
            _check_names(option, names)
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
    _check_names("enable", enable)
    _check_names("disable", disable)
    return profile.strip(), enable, disable


def choose_profile(texts: Iterable[str]) -> str:
    """The profile that `auto` stands for, from the script mix of the training text.

    Letters are counted outside web addresses, mentions and hashtags:

    - `arabic` if at least 5% of the Arabic and Latin letters are Arabic: its rules for Arabic
      touch no other script, and the rest are those of `arabizi`, so it serves mixed text;
    - else `arabizi` if at least 1% of the Latin words hold an Arabizi digit (`ma3arfach`,
      `9alb`; not `2nd`, `3d`, `mp3`);
    - else `latin`, also for other scripts and for no letters at all.

    The same texts give the same answer, in any order.

    Example:
        >>> choose_profile(["3jebni had lfilm bzaf"])
        'arabizi'
    """
    arabic = latin = words = arabizi = 0
    for text in texts:
        if "@" in text or "#" in text or "://" in text or "www." in text:
            text = _WEB.sub(" ", text)
        arabic += sum(map(len, _ARABIC_RUN.findall(text)))
        latin += sum(map(len, _LATIN_RUN.findall(text)))
        for word in _LATIN_WORD.findall(text):
            if word.isdigit():
                continue
            words += 1
            if not word.isalpha() and _ARABIZI_WORD.fullmatch(word):
                arabizi += not _ORDINAL.fullmatch(word)
    if arabic and arabic >= ARABIC_SHARE * (arabic + latin):
        return "arabic"
    if arabizi and arabizi >= ARABIZI_SHARE * words:
        return "arabizi"
    return "latin"


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
            if is_nfkc(text):
                return text

    return [characters, *tail]


def _translator(table: dict[int, str | None]) -> Step:
    present = re.compile(f"[{class_body((code, code) for code in sorted(table))}]").search
    return lambda text: text.translate(table) if present(text) else text
