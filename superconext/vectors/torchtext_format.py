"""Files and objects of torch and torchtext, read without importing torchtext or running a pickle.

torchtext is archived and cannot be imported beside a current torch. Its `.vector_cache/*.pt` files
hold plain lists and a tensor, its vocabularies are pickles of its own classes. A file of
`torch.save` is a pickle of plain objects in which each tensor is a call with the name of a
storage, and the storages' bytes: members of a zip archive, or, before torch 1.6, one after the
other behind the pickle. `torch.load` with `weights_only=True` runs none of a file either, but
it makes tensors as large as the pickle says, and hashes whatever is a key in it.

Objects of a running torchtext are known by what they carry: `torchtext.vocab.Vectors` (and
`GloVe`, `FastText`, ...) has `itos` and `vectors`, so has a vocabulary of before torchtext 0.10; a
later one has `get_itos()` alone.
"""

from __future__ import annotations

import zipfile
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from superconext.core.errors import VectorsError
from superconext.vectors.binary_formats import AGAIN, Inert, load_inert, readable
from superconext.vectors.table import WordVectors, collect_rows

LEGACY_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # torch.save before torch 1.6

_FLOATS = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2"}
# What a file of tensors of floats may name.
_TENSORS: dict[tuple[str, str], type] = {
    ("torch._utils", "_rebuild_tensor_v2"): Inert,
    **{("torch", kind): Inert for kind in _FLOATS},
}
_VOCAB_GLOBALS: dict[tuple[str, str], type] = {
    ("torchtext.vocab.vocab", "Vocab"): Inert,
    ("torchtext._torchtext", "Vocab"): Inert,
    ("torchtext.vocab", "Vocab"): Inert,
    ("torchtext.vocab", "_default_unk_index"): Inert,
    ("torchtext.legacy.vocab", "Vocab"): Inert,
    ("torchtext.legacy.vocab", "_default_unk_index"): Inert,
    # A vocabulary of the old kind may carry vectors: its tensor becomes a stand-in too.
    **_TENSORS,
}

#: Characters of a word. A pickle can name one long text over and over in a few bytes.
_MAX_WORD = 4_096


def read_torchtext_vocab(source: Any) -> list[str]:
    """The words of a torchtext vocabulary, in the order of their ids.

    source: a file that `torch.save` or `pickle.dump` made of a `torchtext.vocab.Vocab`, before or
    after torchtext 0.10, or the `Vocab` itself. Raises VectorsError: it holds something else, or
    is damaged.
    """
    if is_torchtext(source):
        return object_words(source)
    with readable(source, "a torchtext vocabulary"):
        words = _vocab_words(_TorchFile(Path(source), _VOCAB_GLOBALS, tensors=False).value)
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
    path: Path, keep: Container[str] | None = None, limit: int | None = None
) -> WordVectors:
    """Read the tuple `(itos, stoi, vectors, dim)` of a torchtext vector cache.

    Raises VectorsError: another content, parts that do not fit, or a damaged file.
    """
    with readable(path, "a torchtext vector cache"):
        file = _TorchFile(path, _TENSORS)
        loaded = file.value
        matrix = file.floats(loaded[2]) if isinstance(loaded, tuple | list) else None
    if not isinstance(loaded, tuple | list) or len(loaded) != 4:
        raise VectorsError(
            f"{path}: holds a {type(loaded).__name__}; expected torchtext's tuple (words, ids, "
            "vectors, dimension); name a file of a .vector_cache folder"
        )
    words, _, _, dimension = loaded
    if not _are_words(words) or matrix is None:
        raise VectorsError(
            f"{path}: its parts are {', '.join(type(part).__name__ for part in loaded)}; expected "
            f"a list of words, ids, a float tensor and a number; {AGAIN}"
        )
    if matrix.shape != (len(words), dimension):
        raise VectorsError(
            f"{path}: {len(words)} words and dimension {dimension} beside vectors of shape "
            f"{list(matrix.shape)}; expected [words, dimension]; {AGAIN}"
        )
    return collect_rows(words, matrix, str(path), keep, limit)


def is_torchtext(source: object) -> bool:
    """Whether an object looks like `Vectors` or `Vocab`."""
    return hasattr(source, "itos") or hasattr(source, "get_itos")


def object_words(source: Any) -> list[str]:
    """The words of a `Vectors` or `Vocab`, in the order of their ids.

    Raises VectorsError: they are no list of strings.
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

    Raises VectorsError: it carries none, or they do not fit its words.
    """
    words, vectors = object_words(source), getattr(source, "vectors", None)
    if vectors is None:
        raise VectorsError(
            f"{_kind(source)} holds words and no vectors; expected an object with both; give its "
            "Vectors instead, read_torchtext_vocab takes the words alone"
        )
    if hasattr(vectors, "detach"):  # a tensor, maybe on a device and in half precision
        vectors = vectors.detach().cpu().float().numpy()
    matrix = np.asarray(vectors)
    if matrix.ndim != 2 or len(matrix) != len(words) or matrix.dtype.kind != "f":
        raise VectorsError(
            f"{_kind(source)} holds {len(words)} words beside vectors of shape "
            f"{list(matrix.shape)} and type {matrix.dtype}; expected floats [words, dimension]; "
            "load it again"
        )
    part = collect_rows(words, matrix, f"torchtext {_kind(source)}", keep, limit)
    # As for a file, the hash is of all that could be read and not of what was wanted.
    part.sha256 = WordVectors(words, matrix).content_sha256()
    return part


def _kind(source: object) -> str:
    return type(source).__name__


class _TorchFile:
    """An open file: its `value`, with stand-ins for tensors, of which `floats` makes arrays.

    Raises VectorsError as `load_inert`; ValueError, OSError, BadZipFile: the file is damaged.
    """

    def __init__(
        self, path: Path, allowed: Mapping[tuple[str, str], type], tensors: bool = True
    ) -> None:
        self._storages: dict[str, bytes] = {}
        source = str(path)
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                self._read_zip(archive, source, allowed, tensors)
            return
        size = path.stat().st_size
        with path.open("rb") as stream:
            if stream.read(len(LEGACY_TORCH)) != LEGACY_TORCH:
                stream.seek(0)
                self.value = load_inert(stream, size, source, allowed)
                return
            for _ in range(2):  # protocol number and machine, each a pickle of its own
                load_inert(stream, size - stream.tell(), source, allowed)
            self.value = load_inert(stream, size - stream.tell(), source, allowed)
            if tensors:
                self._read_storages(stream, size, source)

    def _read_zip(
        self,
        archive: zipfile.ZipFile,
        source: str,
        allowed: Mapping[tuple[str, str], type],
        tensors: bool,
    ) -> None:
        members = {info.filename: info for info in archive.infolist()}
        pickles = [name for name in members if name.split("/")[-1] == "data.pkl"]
        if not pickles:
            raise ValueError("an archive without data.pkl")
        info = members[pickles[0]]
        if info.compress_type != zipfile.ZIP_STORED and info.file_size > 1000 * info.compress_size:
            raise ValueError("data.pkl unpacks to more than a thousand times its size")
        with archive.open(info) as member:
            self.value = load_inert(member, info.file_size, source, allowed)  # type: ignore[arg-type]
        if not tensors:
            return
        folder = pickles[0].removesuffix("data.pkl")
        order = members.get(folder + "byteorder")
        if order is not None and archive.read(order)[:8] != b"little":
            raise ValueError("numbers of another byte order")
        for name, info in members.items():
            if name.startswith(folder + "data/"):
                # torch stores them as they are; what is packed could unpack to anything.
                if info.compress_type != zipfile.ZIP_STORED:
                    raise ValueError(f"the storage {name[:99]!r} is compressed")
                self._storages[name.removeprefix(folder + "data/")] = archive.read(info)

    def _read_storages(self, stream: BinaryIO, size: int, source: str) -> None:
        keys = load_inert(stream, size - stream.tell(), source, {})
        if not isinstance(keys, list) or len(keys) != 1 or not isinstance(keys[0], str):
            raise ValueError("no list of one storage behind the pickle")
        # First how many numbers follow; how wide they are only the tensor knows, see `floats`.
        self._storages[keys[0]] = stream.read()[8:]

    def floats(self, value: Any) -> npt.NDArray[Any] | None:
        """The floats `[rows, d]` of a tensor's stand-in, or None for what is none.

        Raises ValueError for one that does not lie within its storage.
        """
        if not isinstance(value, Inert) or type(value).__name__ != "_rebuild_tensor_v2":
            return None
        storage, offset, shape, strides = value.args[:4]
        place = storage.args[0]
        kind, key = getattr(place[1], "__name__", ""), place[2]
        raw = self._storages.get(key if isinstance(key, str) else "")
        if kind not in _FLOATS or raw is None:
            return None
        dtype = np.dtype(_FLOATS[kind])
        numbers = np.frombuffer(raw[: len(raw) - len(raw) % dtype.itemsize], dtype)
        sizes = (offset, *shape, *strides)
        if (
            len(shape) != 2
            or len(strides) != 2
            or not all(type(n) is int and 0 <= n < 1 << 40 for n in sizes)
        ):
            raise ValueError("a tensor of other than two dimensions")
        if 0 in shape:
            return np.empty(shape, dtype)
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
        if last >= len(numbers) or (0 in strides and shape[0] * shape[1] > len(numbers)):
            raise ValueError(f"a tensor of shape {list(shape)} over {len(numbers)} numbers")
        return np.lib.stride_tricks.as_strided(
            numbers[offset:], shape, [step * dtype.itemsize for step in strides], writeable=False
        )
