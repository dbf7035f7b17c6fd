"""Blank texts: white space and marks without a width alone. They get no label."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

#: Marks without a width that editors and keyboards leave around and inside a word: soft hyphens,
#: zero-width spaces, joiners, and those that turn the direction.
MARKS = "\xad\u061c\u180e\ufeff" + "".join(
    map(chr, (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)))
)

_NOTHING = MARKS + "".join(c for c in map(chr, range(0x3001)) if c.isspace())


def is_blank(text: str) -> bool:
    """Whether a text has neither a word nor any other sign that shows."""
    return not text.strip(_NOTHING)


def all_alike(texts: Sequence[str], shares: np.ndarray) -> np.ndarray:
    """Class probabilities `[N, C]` of texts `[N]`, of a blank one 1 / C for every class: it says
    nothing."""
    if blank := [row for row, text in enumerate(texts) if is_blank(text)]:
        shares = shares.copy()
        shares[blank] = 1 / shares.shape[1]
    return shares
