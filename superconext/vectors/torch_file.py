"""What does a file of `torch.save` hold, read without torch and without running it?

Such a file is a pickle of plain objects in which each tensor is a call with the name of a
storage, and the storages' bytes: members of a zip archive, or, before torch 1.6, one after the
other behind the pickle. `torch.load` with `weights_only=True` runs none of a file either, but
it makes tensors as large as the pickle says, and hashes whatever is a key in it.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from superconext.vectors.inert_pickle import Inert, load_inert

LEGACY_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # torch.save before torch 1.6

_FLOATS = {"FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2"}
#: What a file of tensors of floats may name.
TENSORS: dict[tuple[str, str], type] = {
    ("torch._utils", "_rebuild_tensor_v2"): Inert,
    **{("torch", kind): Inert for kind in _FLOATS},
}


class TorchFile:
    """An open file.

    Attributes:
        value: its object, with stand-ins for tensors; `floats` makes arrays of them.

    Raises:
        VectorsError: as `load_inert`.
        ValueError, OSError, BadZipFile: the file is damaged.
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
