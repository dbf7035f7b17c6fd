"""How are the objects of a running torchtext taken where a path is, without importing it?

By what they carry: `torchtext.vocab.Vectors` (and `GloVe`, `FastText`, ...) has `itos` and
`vectors`, so has a vocabulary of before torchtext 0.10; a later one has `get_itos()` alone.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from superconext.core.errors import VectorsError
from superconext.vectors.table import WordVectors
from superconext.vectors.text_format import collect_rows


def is_torchtext(source: object) -> bool:
    """Does an object look like `Vectors` or `Vocab`?"""
    return hasattr(source, "itos") or hasattr(source, "get_itos")


def object_words(source: Any) -> list[str]:
    """The words of a `Vectors` or `Vocab`, in the order of their ids.

    Raises:
        VectorsError: they are no list of strings.
    """
    words = source.get_itos() if hasattr(source, "get_itos") else source.itos
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise VectorsError(
            f"{_kind(source)} whose words are a {type(words).__name__}; expected a list of "
            "strings as torchtext keeps it; save the vectors as a file and name that"
        )
    return words


def object_vectors(
    source: Any, keep: Container[str] | None = None, limit: int | None = None
) -> WordVectors:
    """The rows of a `Vectors`, or of a `Vocab` that carries vectors.

    Raises:
        VectorsError: it carries none, or they do not fit its words.
    """
    words, held = object_words(source), getattr(source, "vectors", None)
    if held is None:
        raise VectorsError(
            f"{_kind(source)} holds words and no vectors; expected an object with both; give its "
            "Vectors instead, read_torchtext_vocab takes the words alone"
        )
    if hasattr(held, "detach"):  # a tensor, maybe on a device and in half precision
        held = held.detach().cpu().float().numpy()
    matrix = np.asarray(held)
    if matrix.ndim != 2 or len(matrix) != len(words) or matrix.dtype.kind != "f":
        raise VectorsError(
            f"{_kind(source)} holds {len(words)} words beside vectors of shape "
            f"{list(matrix.shape)} and type {matrix.dtype}; expected floats [words, dimension]; "
            "load it again"
        )
    name = f"torchtext {_kind(source)}"
    part = collect_rows(words, matrix, name, name, keep, limit)
    # As for a file, the hash is of all that could be read and not of what was wanted.
    part.sha256 = WordVectors(words, matrix).content_sha256()
    return part


def _kind(source: object) -> str:
    return type(source).__name__
