"""Validation of the texts and labels that users pass to the estimators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from superconext.core.errors import DataError, RunError


def check_texts(texts: Iterable[str]) -> list[str]:
    """The texts as a list of str: of a list, a Series, an array `[N]`, any iterable of str.

    Raises DataError for a bare string, for what has columns or no order, for bytes, None
    and numbers among the rows, and for no rows at all.
    """
    if isinstance(texts, (str, bytes)):
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
    if not rows:
        raise DataError("found no texts; expected at least one")
    return [str(text) for text in rows]


def check_labels(labels: Any, count: int, estimator: str) -> np.ndarray:
    """Labels `[N]` as an array of str, whole numbers or bool, in the dtype they came in.

    labels: a list, a Series, an array `[N]`, any iterable of them. count: how many there must be.
    estimator: name for the message.

    Raises DataError for None, for several labels a row, for kinds that are mixed, for missing
    labels and for numbers that are measured and not counted.
    """
    if labels is None:
        raise DataError(
            f"{estimator} requires y to be passed, but the target y is None; expected a label "
            "for each text: pass them as the second argument"
        )
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise DataError(f"found y = {labels!r}; expected a list of labels, one for each text")
    given = labels if hasattr(labels, "dtype") else list(labels)
    if isinstance(given, list):
        _refuse_mixture(given)
    array = np.asarray(given)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(
            f"found y of shape {array.shape}; y should be a 1d array with one label for each "
            "text: pass one column"
        )
    if len(array) != count:
        raise DataError(f"found {count} texts and {len(array)} labels; expected as many")
    if array.dtype.kind == "O":
        _refuse_mixture(array.tolist())
        if not isinstance(array[0], str):
            array = np.array(array.tolist())
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            raise DataError(f"label {int(np.isnan(array).argmax())} is NaN; expected a label")
        if (array != np.floor(array)).any():
            raise DataError(
                "Unknown label type: continuous; found labels such as "
                f"{array[array != np.floor(array)][0]}, expected classes: bin them first"
            )
    if array.dtype.kind == "T":
        array = array.astype(str)
    if array.dtype.kind not in "OUiufb":
        raise DataError(
            f"labels are of type {array.dtype}; expected text, whole numbers or bool: convert them"
        )
    return array


def _refuse_mixture(labels: list[Any]) -> None:
    """Raise DataError unless all are text, or all are numbers or bool."""
    for position, label in enumerate(labels):
        if not isinstance(label, (str, int, float, np.generic, list, tuple, np.ndarray)):
            raise DataError(
                f"label {position} is {type(label).__name__}; expected text or a whole number: "
                "label the row or drop it"
            )
        if isinstance(label, str) != isinstance(labels[0], str):
            raise DataError(
                f"label 0 is {type(labels[0]).__name__} and label {position} is "
                f"{type(label).__name__}; expected one kind: convert them, such as with str"
            )


def typed_labels(classes: Sequence[str], name: Any) -> np.ndarray:
    """Labels as they were before they became text; `name` is the dtype's.

    Raises RunError where the two do not fit.
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
    except (TypeError, ValueError):
        pass
    raise RunError(
        f"manifest.json: label_type {name!r} does not fit the labels {list(classes)[:5]}; "
        "expected the manifest as it was written: copy the run again"
    )


def refuse_arguments(name: str, arguments: dict[str, Any]) -> None:
    """Raise TypeError for arguments that `fit` has no use for; None means not given."""
    given = [argument for argument, value in arguments.items() if value is not None]
    if "sample_weight" in given:
        raise TypeError(
            f"{name}.fit() found sample_weight, which it cannot honour: batches give every class "
            "the same share and rows count alike in them; expected X and y alone: repeat or drop "
            "rows instead"
        )
    if given:
        raise TypeError(
            f"{name}.fit() found the argument {given[0]!r}; expected X and y alone: parameters go "
            "to the constructor or set_params"
        )
