"""How is a `.npy` file opened without believing the sizes in its header?"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

_MOST_HEADER = 4096
_HEADER = re.compile(
    rb"\{'descr': ?'([<>|=]?f[248])', ?'fortran_order': ?(True|False), "
    rb"?'shape': ?\((\d{1,18}), ?(\d{1,18}),?\),? ?\}\s*"
)


def open_floats(path: Path) -> npt.NDArray[Any]:
    """The floats `[rows, d]` of a file, memory-mapped, so that nothing is read but what is used.

    Raises:
        OSError: no such file.
        ValueError: another type or number of dimensions, or a file shorter than it says.
    """
    with path.open("rb") as stream:
        start = stream.read(12)
        wide = start[6:7] == b"\x02"
        size = int.from_bytes(start[8 : 12 if wide else 10], "little")
        stream.seek(at := 12 if wide else 10)
        # NumPy evaluates the header as Python's literals, which a few bytes can make slow.
        header = _HEADER.fullmatch(stream.read(size)) if size <= _MOST_HEADER else None
        left = os.fstat(stream.fileno()).st_size - at - size
    if header is None or start[:6] != b"\x93NUMPY":
        raise ValueError(f"{path.name} has no header of an array of floats in two dimensions")
    dtype = np.dtype(header[1].decode())
    shape = int(header[3]), int(header[4])
    if math.prod(shape) * dtype.itemsize > left:
        raise ValueError(f"{path.name} is shorter than the shape {shape} in its header")
    if 0 in shape:  # nothing to map
        return np.empty(shape, dtype)
    return np.memmap(path, dtype, "r", at + size, shape, "F" if header[2] == b"True" else "C")
