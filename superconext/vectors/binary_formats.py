"""Readers of the binary tables of word2vec, fastText and gensim.

No length written in a file is believed before it is compared with the file's size.
"""

from __future__ import annotations

import mmap
import pickle
import re
import struct
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import numpy.typing as npt

from superconext.core.errors import VectorsError
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import RowCollector, WordVectors, collect_rows, open_floats

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


FASTTEXT_MAGIC = struct.pack("<i", 793712314)
_MAX_WORD = 4_096  # bytes
_MAX_DIMENSION = 100_000
_READ = 1 << 18
_COMPOSE_ROWS = 4_096
_CUT = "the file is cut off or damaged; copy it again"


def read_word2vec_binary(
    stream: BinaryIO,
    source: str,
    keep: Container[str] | None = None,
    limit: int | None = None,
    size: int | None = None,
) -> WordVectors:
    """Read word2vec's binary form: `V d`, then for each word its bytes, a space, `d` float32.

    stream: at the first byte of the file; `size` is its length, None inside an archive. Raises
    VectorsError: another content, or a file shorter than its first line promises.
    """
    first = stream.readline(64)
    header = re.fullmatch(rb"(\d{1,18})[ \t](\d{1,9})\s*\n", first)
    rows, dimension = (int(header[1]), int(header[2])) if header else (0, 0)
    if not rows or not 1 <= dimension <= _MAX_DIMENSION:
        raise VectorsError(
            f"{source}: the first line is {first[:40]!r}; expected `words dimension` of a "
            "word2vec binary; name another file or convert it"
        )
    width = 4 * dimension
    if size is not None and rows * (width + 1) > size - len(first):
        raise VectorsError(
            f"{source}: the first line promises {rows} rows of {dimension} numbers, at least "
            f"{rows * (width + 1)} bytes, and {size - len(first)} follow; {_CUT}"
        )
    collector = RowCollector(source, dimension, keep, limit, unit="row")
    records = _records(stream, width)
    for number in range(1, rows + 1):
        if collector.ended:
            break
        record = next(records, (b"", b""))
        if not record[1]:
            raise VectorsError(
                f"{source}: the first line promises {rows} rows and row {number} is not whole; "
                f"{_CUT}"
            )
        word = collector.decode(record[0])
        if collector.wants(word, number):
            collector.add(word, np.frombuffer(record[1], dtype="<f4"), number)
    if not collector.ended and next(records, None) is not None:
        raise VectorsError(
            f"{source}: the first line promises {rows} rows of {dimension} numbers and more "
            "follow; expected none behind them: correct the first line, or download it again"
        )
    return collector.finish()


def _records(stream: BinaryIO, width: int) -> Iterator[tuple[bytes, bytes]]:
    """Word and number bytes of each whole row, and where it ends otherwise, what is left."""
    buffer, start = b"", 0
    while True:
        space = buffer.find(b" ", start)
        while space < 0 or len(buffer) < space + 1 + width:
            more = b"" if space < 0 and len(buffer) - start > _MAX_WORD else stream.read(_READ)
            if not more:
                if rest := buffer[start:].strip():
                    yield rest, b""
                return
            buffer, start = buffer[start:] + more, 0
            space = buffer.find(b" ")
        end = space + 1 + width
        # The original tool ends each row with a line feed, others do not.
        yield buffer[start:space].lstrip(b"\n"), buffer[space + 1 : end]
        start = end


def read_fasttext_binary(
    path: Path, keep: Container[str] | None = None, limit: int | None = None
) -> WordVectors:
    """Read a fastText `.bin` model: whole words, and n-grams for every other spelling.

    As in fastText, the vector of a word is the mean of its own and its n-grams' vectors. The
    n-gram table stays in the file, memory-mapped. Raises VectorsError: a compressed (`.ftz`) or
    unknown model, or a damaged file.
    """
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            words, settings, at = _fasttext_words(data, path)
        except struct.error as error:
            raise VectorsError(f"{path}: a fastText model that ends early; {_CUT}") from error
        left = len(data) - at
    dimension, buckets, min_n, max_n, rows = settings
    if 4 * rows * dimension > left:
        raise VectorsError(
            f"{path}: {rows} fastText rows of {dimension} numbers need {4 * rows * dimension} "
            f"bytes and {left} follow; {_CUT}"
        )
    table = np.memmap(path, dtype="<f4", mode="r", offset=at, shape=(rows, dimension))
    subwords = None
    # A largest length below the smallest switches n-grams off.
    if buckets and max_n >= max(min_n, 1):
        subwords = SubwordTable(table[rows - buckets :], max(min_n, 1), max_n)
    # The end-of-sentence mark is one symbol to fastText, not a word of four characters.
    return _composed(words, table, subwords, str(path), keep, limit, whole="</s>")


def _composed(
    words: Iterable[str | bytes],
    word_rows: npt.NDArray[Any],
    subwords: SubwordTable | None,
    source: str,
    keep: Container[str] | None,
    limit: int | None,
    whole: str | None = None,
) -> WordVectors:
    """The wanted rows, each the mean of the word's own vector and those of its n-grams."""
    collector = RowCollector(source, int(word_rows.shape[1]), keep, limit, unit="word")
    wanted: list[tuple[int, str]] = []
    for row, raw in enumerate(words):
        if collector.ended:
            break
        word = collector.decode(raw) if isinstance(raw, bytes) else raw
        if collector.wants(word, row + 1):
            wanted.append((row, word))
    for start in range(0, len(wanted), _COMPOSE_ROWS):
        part = wanted[start : start + _COMPOSE_ROWS]
        rows = word_rows[[row for row, _ in part]].astype(np.float32)
        if subwords is not None:
            spelled = [i for i, (_, word) in enumerate(part) if word != whole]
            # What is not finite afterwards is counted as a malformed row.
            with np.errstate(over="ignore", invalid="ignore"):
                composed = subwords.compose_many([part[i][1] for i in spelled], rows[spelled])
            rows[spelled] = composed[0]
        for (row, word), vector in zip(part, rows, strict=True):
            collector.add(word, vector, row + 1)
    return collector.finish(subwords)


def _fasttext_words(
    data: mmap.mmap, path: Path
) -> tuple[list[bytes], tuple[int, int, int, int, int], int]:
    """Words, (dimension, buckets, min_n, max_n, rows) and where the numbers begin.

    Layout: `FastText::saveModel` of the reference implementation, version 12.
    """
    arguments = struct.unpack_from("<2i12id", data, 0)
    version, dimension, buckets, min_n, max_n = (arguments[i] for i in (1, 2, 10, 11, 12))
    size, count, labels, _, pruned = struct.unpack_from("<3i2q", data, 64)
    at = 92
    if version not in (11, 12) or not 1 <= dimension <= _MAX_DIMENSION:
        raise VectorsError(
            f"{path}: a fastText model of version {version}, dimension {dimension}; expected "
            "version 11 or 12; write its vectors as text (.vec) and read those"
        )
    if (
        min(buckets, min_n, max_n, size, count, labels) < 0
        or size != count + labels
        or 10 * size > len(data)
        or max_n > 100
    ):
        raise VectorsError(f"{path}: a fastText model whose counts do not add up; {_CUT}")
    words = []
    for _ in range(size):
        end = data.find(b"\0", at, at + _MAX_WORD)
        if end < 0:
            raise VectorsError(f"{path}: the fastText vocabulary is not whole; {_CUT}")
        if struct.unpack_from("<qb", data, end + 1)[1] == 0:
            words.append(data[at:end])
        at = end + 10
    compressed, rows, columns = struct.unpack_from("<?2q", data, at)
    if compressed or pruned > 0:
        raise VectorsError(
            f"{path}: a compressed fastText model; expected a plain .bin; train without "
            "`quantize`, or write its vectors as text (.vec) and read those"
        )
    if len(words) != count or columns != dimension or rows != count + buckets:
        raise VectorsError(
            f"{path}: {len(words)} fastText words and {buckets} n-gram rows beside a table of "
            f"{rows} rows of {columns}; {_CUT}"
        )
    return words, (dimension, buckets, min_n, max_n, rows), at + 17


_KEYED = ("KeyedVectors", "Word2VecKeyedVectors", "FastTextKeyedVectors")
_GENSIM_GLOBALS: dict[tuple[str, str], type] = {
    **{("gensim.models.keyedvectors", kind): Inert for kind in (*_KEYED, "Vocab", "CompatVocab")},
    ("gensim.models.fasttext", "FastTextKeyedVectors"): Inert,
    ("numpy", "ndarray"): Inert,
    ("numpy", "dtype"): Inert,
}
for _module in ("numpy.core", "numpy._core"):
    _GENSIM_GLOBALS[(f"{_module}.multiarray", "_reconstruct")] = Inert
    _GENSIM_GLOBALS[(f"{_module}.multiarray", "scalar")] = Inert
    _GENSIM_GLOBALS[(f"{_module}.numeric", "_frombuffer")] = Inert


def read_gensim_vectors(
    path: Path, keep: Container[str] | None = None, limit: int | None = None
) -> WordVectors:
    """Read a gensim `.kv` file (a pickle) and the `.npy` files beside it, running none of it.

    Raises VectorsError: a whole gensim model, any other pickle, or a damaged file.
    """
    with path.open("rb") as stream:
        saved = load_inert(stream, path.stat().st_size, str(path), _GENSIM_GLOBALS)
    state = saved.state if isinstance(saved, Inert) and type(saved).__name__ in _KEYED else None
    if not isinstance(state, dict):
        raise VectorsError(
            f"{path}: a pickle, but not of gensim KeyedVectors; expected a file of "
            "model.wv.save(...); save the vectors so, or as text"
        )
    words = next(
        (state[key] for key in ("index_to_key", "index2word", "index2entity") if key in state), None
    )
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise VectorsError(f"{path}: gensim vectors without a list of words; save them as text")
    subwords = None
    matrix = _gensim_array(state, path, "vectors")
    word_rows, grams = (
        _gensim_array(state, path, f"vectors_{part}", empty=part == "ngrams")
        for part in ("vocab", "ngrams")
    )
    lengths: list[Any] = [state.get(key) for key in ("min_n", "max_n", "bucket")]
    if word_rows is not None and grams is not None and all(type(n) is int for n in lengths):
        # Before gensim 3.8 the hash differed and the rows were packed: words only. So it is with
        # a largest length below the smallest, by which n-grams are switched off.
        least, most = max(lengths[0], 1), lengths[1]
        if state.get("compatible_hash") is True and len(grams) == lengths[2] > 0 <= most - least:
            subwords = SubwordTable(grams, least, most)
        if matrix is None and len(word_rows) == len(words) and word_rows.shape[1] == grams.shape[1]:
            return _composed(words, word_rows, subwords, str(path), keep, limit)
    if matrix is None or len(matrix) != len(words):
        raise VectorsError(
            f"{path}: {len(words)} words and {'no' if matrix is None else len(matrix)} vectors; "
            "expected one for each word; copy the .npy files beside it too, or save it as text"
        )
    return collect_rows(words, matrix, str(path), keep, limit, subwords)


def _gensim_array(
    state: dict[str, Any], path: Path, attribute: str, empty: bool = False
) -> npt.NDArray[Any] | None:
    """The float array `[rows, d]` a stand-in or a companion file holds, or None; empty: whether it
    may have no rows."""
    value: Any = state.get(attribute)
    apart = state.get("__numpys")
    try:
        if isinstance(apart, list) and attribute in apart:
            beside = path.with_name(f"{path.name}.{attribute}.npy")
            array = open_floats(beside)
        elif isinstance(value, Inert):
            array = _rebuild(value)
        else:
            return None
        few = 0 in (array.shape[1:] if empty else array.shape)
        if array.ndim != 2 or array.dtype.kind != "f" or few:
            raise ValueError(f"shape {array.shape} and type {array.dtype}")
    except (OSError, EOFError, AttributeError, IndexError, TypeError, ValueError) as error:
        raise VectorsError(
            f"{path}: cannot read the array {attribute!r} of these gensim vectors ({error}); "
            "expected floats, in the file or in the .npy beside it; copy all of its files again"
        ) from error
    return array


def _rebuild(value: Inert) -> npt.NDArray[Any]:
    """A numpy array out of the stand-ins of its pickle."""
    if type(value).__name__ == "_frombuffer":
        raw, kind, shape, order = value.args
    else:
        _, shape, kind, by_column, raw = value.state
        order = "F" if by_column else "C"
    # Written out, nested tuples of a few bytes can be longer than any memory.
    if not isinstance(kind.state[1], str) or not isinstance(kind.args[0], str):
        raise ValueError("a type of numbers that is no text")
    dtype = np.dtype(kind.state[1].strip("|") + kind.args[0])
    if dtype.kind != "f" or not isinstance(raw, bytes | bytearray):
        raise ValueError(f"numbers of type {dtype}")
    return np.frombuffer(raw, dtype=dtype).reshape(shape, order=order)
