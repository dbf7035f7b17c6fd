"""The state of a training in one file: tensors, and JSON facts in its header, under one hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from superconext.core.files import atomic_write

#: What reading a damaged state, or putting another training's in place, may raise;
#: SafetensorError is an Exception alone and stands here by way of `read_state`.
DAMAGE = (OSError, ValueError, KeyError, TypeError, RuntimeError)


def write_state(path: Path, facts: dict[str, Any], tensors: Mapping[str, Tensor]) -> None:
    """Write facts and tensors as one file, so that a stop between two writes cannot part them."""
    from safetensors.torch import save_file

    contiguous = apart(tensors)
    text = json.dumps(facts)
    about = {"facts": text, "sha256": _sha256(text, contiguous)}
    with atomic_write(path) as temporary:
        save_file(contiguous, temporary, about)


def apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as safetensors takes them: in order, and none in the memory of another, as
    weights of a module that are shared have it."""
    found: dict[str, Tensor] = {}
    taken: set[int] = set()
    for name, value in tensors.items():
        value = value.detach().cpu().contiguous()
        place = value.untyped_storage().data_ptr()
        found[name] = value.clone() if place in taken else value
        taken.add(place)
    return found


def read_state(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The facts and tensors of a state; raises one of `DAMAGE` if any bit is wrong."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as saved:
            about = saved.metadata() or {}
            tensors = {name: saved.get_tensor(name) for name in saved.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ValueError(str(error)) from None
    if _sha256(about["facts"], tensors) != about["sha256"]:
        raise ValueError("its content is not what was written")
    facts: dict[str, Any] = json.loads(about["facts"])
    return facts, tensors


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {name[len(prefix) :]: t for name, t in tensors.items() if name.startswith(prefix)}


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """An optimiser's moments by name, `<parameter>.<moment>`."""
    return {
        f"{index}.{name}": torch.as_tensor(value)
        for index, moments in optimizer.state_dict()["state"].items()
        for name, value in moments.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_tensors` gave."""
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        index, key = name.split(".", 1)
        moments.setdefault(int(index), {})[key] = value
    state = optimizer.state_dict()
    state["state"] = moments
    optimizer.load_state_dict(state)


def _sha256(facts: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(facts.encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {list(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
