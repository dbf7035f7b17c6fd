"""Blank texts: white space and characters that do not show alone. They get no label."""

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

# Zero width space is a word boundary by definition, and the zero width joiner makes emoji.
_BOUNDARY, _JOINER = 0x200B, 0x200D

#: Code points that are nothing to the eye, inside a word too.
INVISIBLE = frozenset(
    ({*map(ord, MARKS)} - {_BOUNDARY, _JOINER})
    | {0x034F, 0xE0001}
    | {0xFE0E, 0xFE0F}  # text or picture style of the same emoji
    | {0xFFF9, 0xFFFA, 0xFFFB}
    # Controls that are not white space, NUL among them.
    | {c for c in (*range(0x20), *range(0x7F, 0xA0)) if not chr(c).isspace()}
)

#: Code points that are a blank to the eye, though no white space: the braille one, Hangul fillers.
BLANKS = frozenset({_BOUNDARY, 0x2800, 0x3164, 0xFFA0})

_SPACES = "".join(c for c in map(chr, range(0x3001)) if c.isspace())
_NOTHING = _SPACES + "".join(map(chr, {_JOINER} | INVISIBLE | BLANKS))


def bare(text: str) -> str:
    """The text without spaces, marks and other signs around it that do not show."""
    return text.strip(_NOTHING)


def is_blank(text: str) -> bool:
    """Whether a text has neither a word nor any other sign that shows."""
    return not text.strip(_NOTHING)


def uniform_for_blank(texts: Sequence[str], scores: np.ndarray) -> np.ndarray:
    """Probabilities or decision scores `[N, C]` of texts `[N]`, with those of each blank text
    replaced by 1 / C for every class: none of them is preferred."""
    if blank := [row for row, text in enumerate(texts) if is_blank(text)]:
        scores = scores.copy()
        scores[blank] = 1 / scores.shape[1]
    return scores


def zeros_for_blank(texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
    """Vectors `[N, d]` of texts `[N]`, with zeros in place of that of each blank text."""
    if blank := [row for row, text in enumerate(texts) if is_blank(text)]:
        vectors = vectors.copy()
        vectors[blank] = 0
    return vectors
