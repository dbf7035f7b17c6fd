"""The arrays of a safetensors file, read with NumPy alone, for runtimes without the library; and
written in the order that the format has, which the library takes for granted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from superconext.core.files import atomic_write

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}

#: Bytes of a header.
_MOST_HEADER = 1 << 24


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Arrays by name, read-only.

    Raises OSError, or ValueError where the file is not what its header says.
    """
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    start = 8 + size
    try:
        if len(data) < 8 or size > _MOST_HEADER or start > len(data):
            raise ValueError("its header is cut off")
        header = json.loads(data[8:start])
        header.pop("__metadata__", None)
        arrays = {}
        for name, about in header.items():
            dtype, shape = np.dtype(_TYPES[about["dtype"]]), tuple(map(int, about["shape"]))
            begin, end = map(int, about["data_offsets"])
            whole = 0 <= begin <= end <= len(data) - start
            if not whole or min(shape, default=0) < 0:
                raise ValueError(f"{name} lies outside it")
            if end - begin != math.prod(shape) * dtype.itemsize:
                raise ValueError(f"{name} is not of shape {list(shape)}")
            numbers = np.frombuffer(data, dtype, math.prod(shape), start + begin)
            arrays[name] = numbers.reshape(shape)
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{path.name} is no whole safetensors file ({error})") from None
    return arrays


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays by name, whatever their order in memory, all or nothing."""
    from safetensors.numpy import save_file

    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    with atomic_write(path) as temporary:
        save_file(ordered, temporary)
