"""Text to tokens: one regular expression, for any script.

Every character that is not white space ends up in exactly one token, so under the profile
`none` the tokens written one after the other are the text without its white space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from superconext.errors import ConfigError
from superconext.text import characters
from superconext.text.bridge import Bridge
from superconext.text.normalize import Normalizer
from superconext.text.patterns import CONNECTORS, number_pattern

# A run of one of these is one token (`!!!`, `...`); any other symbol stands alone.
_RUNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~،؛؟٪…“”«»‘’•·–—¡¿°。、！？।॥።፣፤፧"


@lru_cache(maxsize=1)
def _find() -> Callable[[str], list[str]]:
    word, marks, emoji = characters.word(), characters.marks(), characters.EMOJI
    tones = characters.class_body([(characters.SKIN_TONES[0], characters.SKIN_TONES[-1])])
    picture = f"[{emoji}](?:[\ufe0e\ufe0f\u20e3{tones}]|[\U000e0020-\U000e007f])*"
    alternatives = [
        "[0-9#*]\ufe0f?\u20e3",  # keycap
        number_pattern(),
        f"[{word}]+(?:[{CONNECTORS}][{word}]+)*",
        "</?[A-Za-z][A-Za-z0-9_]{0,15}>",  # <url>, <num>, <asp>
        "[\U0001f1e6-\U0001f1ff]{2}",  # flag
        f"{picture}(?:\u200d{picture})*",
        f"[{characters.UNSPACED}][{marks}]*",
        f"[#@](?=_*[{characters.letters()}{characters.UNSPACED}])[_{word}{characters.UNSPACED}]+",
        *(re.escape(mark) + "+" for mark in _RUNS),
        "\\S[\ufe0e\ufe0f]*",
    ]
    return re.compile("|".join(alternatives)).findall


def tokenize(text: str) -> list[str]:
    """Split text into tokens; none is empty or holds white space. Nothing is normalised.

    A word takes digits, combining marks and inner apostrophes, hyphens and underscores along
    (`3la`, `ma3arfach`, `l'argent`, `est-elle`). One token each: a number (`3.5`, `23/12`,
    `10%`), a tag in angle brackets (`<url>`), an emoji with its tone and what is joined to it,
    a flag, a keycap, a hashtag or mention that was not normalised away, a run of one
    punctuation mark. Scripts without spaces (Han, kana, Thai, Lao, Khmer, Myanmar) go by
    character. Time is linear in the length of the text.
    """
    return _find()(text)


class Tokenizer:
    """Normalise, split and, if asked, map each token to its bridge key.

    Args:
        normalizer: text to text; without one the text is taken as it is (profile `none`).
        bridge: dialect of `superconext.text.bridge`, or None (the default) to leave
            Arabizi and Arabic script apart.

    Raises `ConfigError` for an unknown dialect.
    """

    def __init__(self, normalizer: Normalizer | None = None, bridge: str | None = None) -> None:
        self.normalizer = Normalizer("none") if normalizer is None else normalizer
        self.bridge = None if bridge is None else Bridge(bridge)

    def __call__(self, text: str) -> list[str]:
        tokens = _find()(self.normalizer(text))
        return tokens if self.bridge is None else [self.bridge(token) for token in tokens]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a run folder."""
        return {
            "normalizer": self.normalizer.to_dict(),
            "bridge": None if self.bridge is None else self.bridge.dialect,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tokenizer:
        """Rebuild from `to_dict`. Raises `ConfigError` if something is missing or unknown."""
        if not isinstance(data, Mapping) or not {"normalizer", "bridge"} <= set(data):
            raise ConfigError(
                f"tokenize: found {data!r}, expected the keys 'normalizer' and 'bridge'; "
                "save the run again"
            )
        return cls(Normalizer.from_dict(data["normalizer"]), data["bridge"])
