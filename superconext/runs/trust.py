"""What of a run folder is believed? It may come from a stranger.

Nothing of it is code, so what is left to fear is a file that is another one, and a few bytes
that ask for all memory: deep JSON, sizes in the configuration that the arrays do not have,
links that lead elsewhere. All of that is looked at before anything is made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from superconext.core.errors import RunError

#: Bytes of a JSON document; two million words have a quarter of it.
MOST_JSON = 1 << 28


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
