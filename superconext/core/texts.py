"""The check of what a caller passes as texts. An export brings it along, so it needs no package."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from superconext.core.errors import DataError


def check_texts(texts: Iterable[str], some: bool = True) -> list[str]:
    """The texts as a list of str: of a list, a Series, an array `[N]`, any iterable of str.

    some: whether there must be one at least. Raises DataError where there is none then, for a bare
    string, for what has columns or no order, and for bytes, None and numbers among the rows.
    """
    if isinstance(texts, (str, bytes)):  # it would be read letter by letter
        raise DataError("found one string; expected a list of texts: put it in a list")
    dimensions = getattr(texts, "ndim", 1)
    if dimensions != 1:
        raise DataError(
            f"found texts of shape {getattr(texts, 'shape', dimensions)}; expected one dimension: "
            "take the column of texts, such as frame['text']"
        )
    if isinstance(texts, (Mapping, AbstractSet)) or not isinstance(texts, Iterable):
        raise DataError(
            f"found a {type(texts).__name__}; expected texts in an order: pass a list of them"
        )
    rows: list[Any] = list(texts)
    for position, text in enumerate(rows):
        if not isinstance(text, str):
            raise DataError(
                f"text {position} is {type(text).__name__}; expected str: convert or drop it"
            )
    if some and not rows:
        raise DataError("found no texts; expected at least one")
    return [str(text) for text in rows]
