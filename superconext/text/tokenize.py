"""Text to tokens: one regular expression, for any script.

Every character that is not white space ends up in exactly one token, so under the profile
`none` the tokens written one after the other are the text without its white space.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

from superconext.errors import ConfigError
from superconext.text import characters
from superconext.text.bridge import Bridge
from superconext.text.normalize import Normalizer
from superconext.text.patterns import CONNECTORS, number_pattern

# A run of one of these is one token (`!!!`, `...`); any other symbol stands alone.
_RUNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~،؛؟٪…“”«»‘’•·–—¡¿°。、！？।॥።፣፤፧"

#: Pieces of text that a tokenizer remembers, and characters in the longest of them.
_REMEMBERED, _LONGEST_PIECE = 200_000, 64


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
        self._known: dict[str, list[str]] = {}

    def __call__(self, text: str) -> list[str]:
        return self._split(self.normalizer(text))

    def many(self, texts: Sequence[str]) -> list[list[str]]:
        """The tokens of each text: what a call for each gives, several times as fast.

        No rule and no token reaches over a space, so what stands between two spaces is worked
        out once, all new ones in one pass, and remembered for the next call.
        """
        if len(self._known) > _REMEMBERED:
            self._known = {}
        known = self._known
        pieces = [text.split(" ") for text in texts]
        fresh = list(set().union(*pieces).difference(known))
        short = [piece for piece in fresh if len(piece) <= _LONGEST_PIECE and "\n" not in piece]
        known.update(zip(short, map(self._split, self.normalizer.each(short)), strict=True))
        others = {piece: self(piece) for piece in fresh if piece not in known}

        def find(piece: str) -> list[str]:
            return others[piece] if piece in others else known[piece]

        get = find if others else known.__getitem__
        return [list(chain.from_iterable(map(get, row))) for row in pieces]

    def _split(self, text: str) -> list[str]:
        tokens = _find()(text)
        return tokens if self.bridge is None else [self.bridge(token) for token in tokens]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}  # what can be worked out again is not pickled

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
