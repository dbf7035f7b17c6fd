"""The script a text is written in, and groups of texts by it."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np

MIXED = "mixed"
NONE = "no letters"

#: The group of texts in no single script.
OTHER = "mixed or other"

#: Texts of a group from which on figures are given for it alone.
FEWEST_OF_SCRIPT = 50

_MAIN = 0.9  # share of the letters from which one script counts as the text's own


def script_of(text: str) -> str:
    """`Arabic`, `Latin` and so on if nine in ten letters are, else `mixed` or `no letters`.

    Addresses, mentions and hashtags count like everything else.
    """
    counts = letters_of(text)
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


@lru_cache(maxsize=1 << 14)
def _script(character: str) -> str:
    """Script of a letter by the first word of its Unicode name, "" for all else.

    `re` and `unicodedata` do not know the property Script; the names tell it for every letter
    but a few symbols.
    """
    if not character.isalpha():
        return ""
    return unicodedata.name(character, "OTHER").split()[0].capitalize()
