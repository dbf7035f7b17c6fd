"""How are torchtext's files read without torchtext, and pickles without running them?

torchtext is archived and cannot be imported beside a current torch, so nothing here imports
it. Its `.vector_cache/*.pt` files hold plain lists and a tensor, which `torch.load` reads with
`weights_only=True`. Its vocabularies are pickles of its own classes: `load_inert` rebuilds such
a file out of empty stand-ins, and refuses every global it was not told of.
"""

from __future__ import annotations

import pickle
import warnings
import zipfile
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from superconext.errors import VectorsError
from superconext.vectors.table import WordVectors
from superconext.vectors.text_format import collect_rows

LEGACY_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # torch.save before torch 1.6
_AGAIN = "copy the file again, or write the vectors as text and read that"


def first_line(error: Exception) -> str:
    """Kind and first line of an error of another library, for a message of one line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"


class Inert:
    """Stands in for a class or function named by a pickle: remembers, and does nothing."""

    args: tuple[Any, ...]
    state: Any = None

    def __new__(cls, *args: Any, **_: Any) -> Inert:
        made = super().__new__(cls)
        made.args = args
        return made

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state


class InertDict(dict[Any, Any]):
    """Stands in for the dictionary classes: holds items, ignores factories and arguments."""

    def __new__(cls, *_: Any, **__: Any) -> InertDict:
        return super().__new__(cls)

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        pass


class InertBytes(bytes):
    """Stands in for the call by which old protocols write bytes: text to its Latin-1 bytes."""

    def __new__(cls, text: str = "", *_: Any, **__: Any) -> bytes:  # type: ignore[misc]
        return text.encode("latin-1")


class _Bounded:
    """A stream that refuses to read past its end, so no length in a file is ever believed."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, count: int) -> bytes:
        if not 0 <= count <= self._left:
            raise EOFError("it ends early")
        self._left -= count
        return self._stream.read(count)

    def readline(self) -> bytes:
        line = self._stream.readline(self._left)
        self._left -= len(line)
        return line


_PLAIN: dict[tuple[str, str], type] = {
    ("collections", "OrderedDict"): InertDict,
    ("collections", "Counter"): InertDict,
    ("collections", "defaultdict"): InertDict,
    ("builtins", "set"): set,
    ("__builtin__", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("__builtin__", "frozenset"): frozenset,
    ("builtins", "bytes"): InertBytes,
    ("__builtin__", "bytes"): InertBytes,
    ("_codecs", "encode"): InertBytes,
}


# The Python unpickler and not the one in C: that one sizes its memo by a number in the file.
class _InertUnpickler(pickle._Unpickler):
    def __init__(
        self, stream: _Bounded, source: str, allowed: Mapping[tuple[str, str], type]
    ) -> None:
        super().__init__(stream, encoding="utf-8", errors="replace")  # type: ignore[arg-type]
        self._source = source
        # Fresh classes for each file: a pickle may set attributes on what it names.
        self._allowed = {
            key: kind if kind in (set, frozenset) else type(key[1], (kind,), {})
            for key, kind in {**_PLAIN, **allowed}.items()
        }

    def find_class(self, module: str, name: str) -> Any:
        found = self._allowed.get((module, name))
        if found is None:
            raise VectorsError(
                f"{self._source}: the pickle names {f'{module}.{name}'[:99]!r}, which is not read "
                "for safety; expected plain words and numbers; write the vectors as text with "
                "the program that made the file (gensim: model.wv.save_word2vec_format) and read "
                "that"
            )
        return found

    def persistent_load(self, pid: Any) -> Any:
        # Old torch files name a module's class so; anything else is a tensor's storage.
        module = isinstance(pid, tuple) and len(pid) > 1 and pid[0] == "module"
        return pid[1] if module and isinstance(pid[1], type) else Inert(pid)


def load_inert(
    stream: BinaryIO, size: int, source: str, allowed: Mapping[tuple[str, str], type]
) -> Any:
    """Unpickle out of stand-ins only; no code of the file or of a library runs.

    Args:
        stream: at the first byte of the pickle.
        size: bytes left in the stream; no read goes beyond them.
        source: the file, as messages name it.
        allowed: for each permitted (module, name) the kind of stand-in: `Inert`, `InertDict`
            or `InertBytes`. Plain sets, bytes and dictionaries are permitted always.

    Raises:
        VectorsError: the pickle names anything else, or is damaged.
    """
    try:
        return _InertUnpickler(_Bounded(stream, size), source, allowed).load()
    except VectorsError:
        raise
    except Exception as error:  # whatever a random byte makes an unpickler do
        raise VectorsError(
            f"{source}: not a whole pickle ({first_line(error)}); expected the file as it was "
            f"saved; {_AGAIN}"
        ) from error


_VOCAB_GLOBALS: dict[tuple[str, str], type] = {
    ("torchtext.vocab.vocab", "Vocab"): Inert,
    ("torchtext._torchtext", "Vocab"): Inert,
    ("torchtext.vocab", "Vocab"): Inert,
    ("torchtext.vocab", "_default_unk_index"): Inert,
    ("torchtext.legacy.vocab", "Vocab"): Inert,
    ("torchtext.legacy.vocab", "_default_unk_index"): Inert,
    # A vocabulary of the old kind may carry vectors: its tensor becomes a stand-in too.
    ("torch._utils", "_rebuild_tensor_v2"): Inert,
    ("torch", "FloatStorage"): Inert,
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
        words = _vocab_words(_load_vocab(Path(path), source))
    except VectorsError:
        raise
    except Exception as error:  # a damaged archive can make its reader fail in many ways
        raise VectorsError(
            f"{source}: cannot be read ({first_line(error)}); expected a torchtext vocabulary; "
            "copy it again"
        ) from error
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise VectorsError(
            f"{source}: holds no list of words; expected a torchtext Vocab; save the words with "
            "`vocab.get_itos()` as JSON instead"
        )
    return words


def _load_vocab(path: Path, source: str) -> Any:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith("data.pkl")]
            if not names:
                raise VectorsError(
                    f"{source}: an archive without data.pkl; expected a file of torch.save; "
                    "name the vocabulary's own file"
                )
            info = archive.getinfo(names[0])
            with archive.open(info) as member:
                return load_inert(member, info.file_size, source, _VOCAB_GLOBALS)  # type: ignore[arg-type]
    size = path.stat().st_size
    with path.open("rb") as stream:
        if stream.read(len(LEGACY_TORCH)) == LEGACY_TORCH:
            for _ in range(2):  # protocol number and machine, each a pickle of its own
                load_inert(stream, size - stream.tell(), source, _VOCAB_GLOBALS)
        else:
            stream.seek(0)
        return load_inert(stream, size - stream.tell(), source, _VOCAB_GLOBALS)


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
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of what is then an error here
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise VectorsError(
            f"{path}: holds more than lists and tensors, which is not read for safety; expected "
            "torchtext's (words, ids, vectors, dimension); a vocabulary alone is read by "
            "read_torchtext_vocab, anything else save as text"
        ) from error
    except Exception as error:
        raise VectorsError(
            f"{path}: torch cannot read it ({first_line(error)}); expected a torchtext vector "
            f"cache; {_AGAIN}"
        ) from error
    if not isinstance(loaded, tuple | list) or len(loaded) != 4:
        raise VectorsError(
            f"{path}: holds a {type(loaded).__name__}; expected torchtext's tuple (words, ids, "
            "vectors, dimension); name a file of a .vector_cache folder"
        )
    words, _, vectors, dimension = loaded
    plain = isinstance(words, list) and all(isinstance(word, str) for word in words)
    numbers = isinstance(vectors, torch.Tensor) and vectors.layout == torch.strided
    if not plain or not numbers or not vectors.is_floating_point():
        raise VectorsError(
            f"{path}: its parts are {', '.join(type(part).__name__ for part in loaded)}; expected "
            f"a list of words, ids, a float tensor and a number; {_AGAIN}"
        )
    if tuple(vectors.shape) != (len(words), dimension):
        raise VectorsError(
            f"{path}: {len(words)} words and dimension {dimension} beside vectors of shape "
            f"{list(vectors.shape)}; expected [words, dimension]; {_AGAIN}"
        )
    matrix = vectors.detach().float().numpy()
    return collect_rows(words, matrix, str(path), name, keep, limit)
