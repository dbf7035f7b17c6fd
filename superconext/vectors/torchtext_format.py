"""How are torchtext's files read without torchtext, and pickles without running them?

torchtext is archived and cannot be imported beside a current torch, so nothing here imports
it. Its `.vector_cache/*.pt` files hold plain lists and a tensor, its vocabularies are pickles of
its own classes: `torch_file` and `inert_pickle` rebuild such a file out of empty stand-ins, and
refuse every global they were not told of.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import Any

from superconext.core.errors import VectorsError
from superconext.vectors.inert_pickle import Inert, first_line
from superconext.vectors.table import WordVectors
from superconext.vectors.text_format import collect_rows
from superconext.vectors.torch_file import LEGACY_TORCH, TENSORS, TorchFile

__all__ = ["LEGACY_TORCH", "first_line", "read_torchtext_vectors", "read_torchtext_vocab"]

_AGAIN = "copy the file again, or write the vectors as text and read that"
#: Characters of a word. A pickle can name one long text over and over in a few bytes.
_MAX_WORD = 4_096


_VOCAB_GLOBALS: dict[tuple[str, str], type] = {
    ("torchtext.vocab.vocab", "Vocab"): Inert,
    ("torchtext._torchtext", "Vocab"): Inert,
    ("torchtext.vocab", "Vocab"): Inert,
    ("torchtext.vocab", "_default_unk_index"): Inert,
    ("torchtext.legacy.vocab", "Vocab"): Inert,
    ("torchtext.legacy.vocab", "_default_unk_index"): Inert,
    # A vocabulary of the old kind may carry vectors: its tensor becomes a stand-in too.
    **TENSORS,
}


def read_torchtext_vocab(path: str | Path) -> list[str]:
    """The words of a pickled torchtext vocabulary, in the order of their ids.

    Reads what `torch.save` or `pickle.dump` made of a `torchtext.vocab.Vocab`, before and after
    torchtext 0.10.

    Raises:
        VectorsError: the file holds something else, or is damaged.
    """
    source = str(path)
    try:
        words = _vocab_words(TorchFile(Path(path), _VOCAB_GLOBALS, tensors=False).value)
    except VectorsError:
        raise
    except Exception as error:  # a damaged archive can make its reader fail in many ways
        raise VectorsError(
            f"{source}: cannot be read ({first_line(error)}); expected a torchtext vocabulary; "
            "copy it again"
        ) from error
    if not _are_words(words):
        raise VectorsError(
            f"{source}: holds no list of words; expected a torchtext Vocab; save the words with "
            "`vocab.get_itos()` as JSON instead"
        )
    return words


def _are_words(words: Any) -> bool:
    return isinstance(words, list) and all(
        isinstance(word, str) and len(word) <= _MAX_WORD for word in words
    )


def _vocab_words(loaded: Any) -> Any:
    state = loaded.state if isinstance(loaded, Inert) else None
    if isinstance(state, dict) and isinstance(state.get("vocab"), Inert):
        state = state["vocab"].state  # the module around the C++ object
    if isinstance(state, tuple) and len(state) == 4:
        return state[2]  # (version, [default index], words, [])
    return state.get("itos") if isinstance(state, dict) else None


def read_torchtext_vectors(
    path: Path, name: str, keep: Container[str] | None = None, limit: int | None = None
) -> WordVectors:
    """Read the tuple `(itos, stoi, vectors, dim)` of a torchtext vector cache.

    Raises:
        VectorsError: another content, parts that do not fit, or a damaged file.
    """
    try:
        file = TorchFile(path, TENSORS)
        loaded = file.value
        matrix = file.floats(loaded[2]) if isinstance(loaded, tuple | list) else None
    except VectorsError:
        raise
    except Exception as error:  # a damaged archive can make its reader fail in many ways
        raise VectorsError(
            f"{path}: cannot be read ({first_line(error)}); expected a torchtext vector cache; "
            f"{_AGAIN}"
        ) from error
    if not isinstance(loaded, tuple | list) or len(loaded) != 4:
        raise VectorsError(
            f"{path}: holds a {type(loaded).__name__}; expected torchtext's tuple (words, ids, "
            "vectors, dimension); name a file of a .vector_cache folder"
        )
    words, _, _, dimension = loaded
    if not _are_words(words) or matrix is None:
        raise VectorsError(
            f"{path}: its parts are {', '.join(type(part).__name__ for part in loaded)}; expected "
            f"a list of words, ids, a float tensor and a number; {_AGAIN}"
        )
    if matrix.shape != (len(words), dimension):
        raise VectorsError(
            f"{path}: {len(words)} words and dimension {dimension} beside vectors of shape "
            f"{list(matrix.shape)}; expected [words, dimension]; {_AGAIN}"
        )
    return collect_rows(words, matrix, str(path), name, keep, limit)
