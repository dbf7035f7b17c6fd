"""What of a run folder is believed? It may come from a stranger.

Nothing of it is code, so what is left to fear is a file that is another one, and a few bytes
that ask for all memory: deep JSON, sizes in the configuration that the arrays do not have,
links that lead elsewhere. All of that is looked at before anything is made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from superconext.core.errors import RunError

#: Bytes of a JSON document; two million words have a quarter of it.
MOST_JSON = 1 << 28

#: Numbers of a table of n-grams once the rows of zeros that a file leaves out are back. They
#: take no memory until they are written to, so this bounds addresses alone.
MOST_NUMBERS = 1 << 31

#: Numbers a model may have beside those of its file: what need not be saved.
_SLACK = 1 << 20


def plain_file(folder: Path, name: str) -> Path:
    """The file of that name. Raises RunError if it is not there, or a link out of the folder."""
    path = folder / name
    if not path.is_file():
        raise RunError(f"{path}: missing; expected a whole run folder: copy it again")
    if path.is_symlink() and not path.resolve().is_relative_to(folder.resolve()):
        raise RunError(
            f"{path}: a link that leads out of the folder; expected a file: copy the run with its "
            "files (cp -rL) if you trust where it leads"
        )
    return path


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises RunError for anything else."""
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > MOST_JSON:
                raise ValueError(f"longer than {MOST_JSON >> 20} MiB")
            value = json.loads(stream.read(size).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: not a JSON document ({error}); copy the run again") from None
    except RecursionError:
        raise RunError(
            f"{path}: not a JSON document (nested too deep); copy the run again"
        ) from None
    if not isinstance(value, dict):
        raise RunError(f"{path}: found a JSON {type(value).__name__}, expected an object")
    return value


def texts(value: Any, what: str) -> list[str]:
    """A list of texts. Raises ValueError for anything else."""
    if not isinstance(value, list) or not set(map(type, value)) <= {str}:
        raise ValueError(f"{what} is no list of texts")
    return value


def members_of(tensors: Mapping[str, Tensor]) -> int:
    """How many members the names `encoder.0.x`, `objective.0.y` tell of. Raises ValueError."""
    numbers = {int(name.split(".")[1]) for name in tensors}
    if not numbers or numbers != set(range(len(numbers))):
        raise ValueError("the members of encoder.safetensors are not numbered 0, 1, ...")
    return len(numbers)


def check_affordable(modules: Sequence[nn.Module], tensors: Sequence[Tensor]) -> None:
    """Raise ValueError if modules (on torch's meta device) have more numbers than a file."""
    asked = sum(
        part.numel() for module in modules for part in (*module.parameters(), *module.buffers())
    )
    there = sum(tensor.numel() for tensor in tensors)
    if asked > there + _SLACK:
        raise ValueError(
            f"config.toml asks for {asked} numbers, encoder.safetensors has {there} of them"
        )


def check_table(table: Tensor, words: int) -> None:
    """Raise ValueError unless a member's word vectors are float32 `[words, e]`, e at least 1."""
    if table.ndim != 2 or table.shape[0] != words or table.shape[1] < 1:
        raise ValueError(f"{words} words and word vectors of shape {list(table.shape)}")
    if str(table.dtype) != "torch.float32":
        raise ValueError(f"word vectors of type {table.dtype}")


def spread_rows(buckets: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """`[count, e]` with the given rows where `rows` says and zeros elsewhere."""
    if buckets.ndim != 2 or rows.shape != (len(buckets),) or rows.dtype.kind not in "iu":
        raise ValueError(f"{list(rows.shape)} places of n-gram rows {list(buckets.shape)}")
    if not 0 < count * buckets.shape[1] <= MOST_NUMBERS:
        raise ValueError(f"a table of {count} n-gram rows, more than {MOST_NUMBERS} numbers")
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < count:
        raise ValueError(f"n-gram rows outside the {count} there are")
    table = np.zeros((count, buckets.shape[1]), buckets.dtype)
    table[rows] = buckets
    return table
