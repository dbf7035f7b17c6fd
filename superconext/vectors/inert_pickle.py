"""Pickles read without running them, in memory and time that their size justifies.

A pickle is a program. Here it can build lists, tuples, dictionaries, texts and numbers, and
empty stand-ins for the classes it was allowed to name; every other name is refused.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, ClassVar

from superconext.core.errors import VectorsError

#: What to do about a damaged file of vectors.
AGAIN = "copy the file again, or write the vectors as text and read that"
#: What may be a key or a member of a set. Hashing a tuple that holds itself twice over, many
#: levels deep, would take for ever, and one that is nested a million deep end the process.
_KEYS = (str, bytes, int, float, bool, type(None))


@contextmanager
def readable(source: object, expected: str) -> Iterator[None]:
    """Turn whatever a damaged file makes a reader fail with into a VectorsError of one line."""
    try:
        yield
    except VectorsError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
        raise VectorsError(
            f"{source}: cannot be read ({reason}); expected {expected}; {AGAIN}"
        ) from error


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


class InertSet(set[Any]):
    """A set of texts and numbers."""

    def __new__(cls, *_: Any, **__: Any) -> InertSet:
        return super().__new__(cls)

    def __init__(self, items: Any = (), *_: Any, **__: Any) -> None:
        super().__init__(_hashable(items if isinstance(items, list | tuple) else ()))


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
    ("builtins", "set"): InertSet,
    ("__builtin__", "set"): InertSet,
    ("builtins", "frozenset"): InertSet,
    ("__builtin__", "frozenset"): InertSet,
    ("builtins", "bytes"): InertBytes,
    ("__builtin__", "bytes"): InertBytes,
    ("_codecs", "encode"): InertBytes,
}


def _hashable(keys: Iterable[Any]) -> Iterable[Any]:
    """The keys as they are. Raises UnpicklingError for one whose hash may take long."""
    keys = list(keys)
    for key in keys:
        if type(key) not in _KEYS:
            raise pickle.UnpicklingError(f"a {type(key).__name__} for a key")
    return keys


# The Python unpickler and not the one in C: that one sizes its memo by a number in the file.
class _InertUnpickler(pickle._Unpickler):
    def __init__(
        self, stream: _Bounded, source: str, allowed: Mapping[tuple[str, str], type]
    ) -> None:
        super().__init__(stream, encoding="utf-8", errors="replace")  # type: ignore[arg-type]
        self._source = source
        # Fresh classes for each file: a pickle may set attributes on what it names.
        self._allowed = {
            key: type(key[1], (kind,), {}) for key, kind in {**_PLAIN, **allowed}.items()
        }

    def find_class(self, module: str, name: str) -> Any:
        stand_in = self._allowed.get((module, name))
        if stand_in is None:
            raise VectorsError(
                f"{self._source}: the pickle names {f'{module}.{name}'[:99]!r}, which is not read "
                "for safety; expected plain words and numbers; write the vectors as text with "
                "the program that made the file (gensim: model.wv.save_word2vec_format) and read "
                "that"
            )
        return stand_in

    def _setitem(self) -> None:
        _hashable(self.stack[-2:-1])  # type: ignore[attr-defined]
        super().load_setitem()  # type: ignore[misc]

    def _setitems(self) -> None:
        _hashable(self.stack[::2])  # type: ignore[attr-defined]
        super().load_setitems()  # type: ignore[misc]

    def _dict(self) -> None:
        _hashable(self.stack[::2])  # type: ignore[attr-defined]
        super().load_dict()  # type: ignore[misc]

    def _additems(self) -> None:
        _hashable(self.stack)  # type: ignore[attr-defined]
        super().load_additems()  # type: ignore[misc]

    def _frozenset(self) -> None:
        _hashable(self.stack)  # type: ignore[attr-defined]
        super().load_frozenset()  # type: ignore[misc]

    def _bytearray(self) -> None:
        # The one opcode that asks for memory before it reads.
        size = int.from_bytes(self.read(8), "little")  # type: ignore[attr-defined]
        self.append(bytearray(self.read(size)))  # type: ignore[attr-defined]

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = {  # type: ignore[misc]
        **pickle._Unpickler.dispatch,  # type: ignore[attr-defined]
        pickle.SETITEM[0]: _setitem,
        pickle.SETITEMS[0]: _setitems,
        pickle.DICT[0]: _dict,
        pickle.ADDITEMS[0]: _additems,
        pickle.FROZENSET[0]: _frozenset,
        pickle.BYTEARRAY8[0]: _bytearray,
    }

    def persistent_load(self, pid: Any) -> Any:
        # Old torch files name a module's class so; anything else is a tensor's storage.
        module = isinstance(pid, tuple) and len(pid) > 1 and pid[0] == "module"
        return pid[1] if module and isinstance(pid[1], type) else Inert(pid)


def load_inert(
    stream: BinaryIO, size: int, source: str, allowed: Mapping[tuple[str, str], type]
) -> Any:
    """Unpickle out of stand-ins only; no code of the file or of a library runs.

    Args:
        stream: at the first byte of the pickle; no read goes beyond the `size` bytes left in it.
        source: the file, as messages name it.
        allowed: for each permitted (module, name) the kind of stand-in: `Inert`, `InertDict`
            or `InertBytes`. Plain sets, bytes and dictionaries are permitted always.

    Raises VectorsError: the pickle names anything else, or is damaged.
    """
    with readable(source, "a whole pickle, as it was saved"):
        return _InertUnpickler(_Bounded(stream, size), source, allowed).load()
