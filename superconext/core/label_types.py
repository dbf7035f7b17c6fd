"""Labels in the type that they were given in: models know them as text."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from superconext.core.blank import is_blank
from superconext.core.errors import plural

#: Blank texts that a warning names.
_NAMED = 5


def typed_labels(classes: Sequence[str], name: Any) -> np.ndarray:
    """Labels `[C]` as they were before they became text; `name` is the dtype's.

    Raises ValueError where the two do not fit.
    """
    try:
        kind = np.dtype(name if not str(name).startswith("str") else "str")
        if kind.kind == "b":
            return np.array([label == "True" for label in classes])
        if kind.kind in "iu":
            return np.array([int(label) for label in classes], dtype=kind)
        if kind.kind == "f":
            return np.array([float(label) for label in classes], dtype=kind)
        if kind.kind in "OU":
            return np.array(classes, dtype=kind)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"label_type {name!r} does not fit the labels {list(classes)[:5]}")


def best_labels(texts: Sequence[str], shares: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The most probable label of each text, `[N]`, in the dtype of `classes` `[C]`.

    shares: probabilities `[N, C]`, of a blank text all alike.

    A blank text gets the label "". Where labels are numbers or bool there is no such label: it
    gets the first class, and a warning tells which rows these are.
    """
    best: np.ndarray = classes[shares.argmax(axis=1)]
    blank = [row for row, text in enumerate(texts) if is_blank(text)]
    if classes.dtype.kind in "OU":
        best[blank] = ""
    elif blank:
        more = f" and {len(blank) - _NAMED} more" * (len(blank) > _NAMED)
        warnings.warn(
            f"found {len(blank)} blank of {plural(len(texts), 'text')} (at "
            f"{', '.join(map(str, blank[:_NAMED]))}{more}), labelled {classes[0]} as no "
            "label is more probable; expected words: leave these rows out",
            stacklevel=3,  # of who calls `predict`
        )
    return best


def share_columns(classes: Sequence[str], others: Collection[str]) -> list[str]:
    """Names of columns with the probability of each class, beside columns that are named `others`:
    those of the classes, but that no two columns are to be taken for each other.

    >>> share_columns(["pos", "Text", "proba_Text"], ["label", "text"])
    ['pos', 'proba_proba_Text', 'proba_Text']
    """
    names = []
    for name in classes:
        new = name
        while new.strip().casefold() in others or (new != name and new in classes):
            new = f"proba_{new}"
        names.append(new)
    return names
