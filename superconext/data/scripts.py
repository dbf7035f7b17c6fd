"""In which script is a text written?"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

MIXED = "mixed"
NONE = "no letters"

_MAIN = 0.9  # share of the letters from which one script counts as the text's own


def script_of(text: str) -> str:
    """`Arabic`, `Latin` and so on if nine in ten letters are, else `mixed` or `no letters`.

    Addresses, mentions and hashtags count like everything else.
    """
    counts = Counter(map(_script, text))
    counts.pop("", None)
    if not counts:
        return NONE
    script, count = counts.most_common(1)[0]
    return script if count >= _MAIN * counts.total() else MIXED


def script_counts(texts: Iterable[str]) -> dict[str, int]:
    """How many texts are in each script, the most frequent first."""
    return dict(Counter(map(script_of, texts)).most_common())


@lru_cache(maxsize=1 << 14)
def _script(character: str) -> str:
    """Script of a letter by the first word of its Unicode name, "" for all else.

    `re` and `unicodedata` do not know the property Script; the names tell it for every letter
    but a few symbols.
    """
    if not character.isalpha():
        return ""
    return unicodedata.name(character, "OTHER").split()[0].capitalize()
