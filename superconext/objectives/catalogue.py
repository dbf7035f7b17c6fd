"""The objectives by name: where each lives and what it is, in one line.

This table imports nothing, so the command line can list objectives without torch.
"""

from __future__ import annotations

import difflib
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from superconext.errors import ConfigError

if TYPE_CHECKING:
    from superconext.objectives.base import Objective


@dataclass(frozen=True)
class Entry:
    """Module and class of an objective, and a line of help."""

    module: str
    cls: str
    summary: str


CATALOGUE: dict[str, Entry] = {
    "superloss": Entry(
        "superconext.objectives.superloss", "SuperLoss", "fully supervised contrastive loss"
    ),
    "cross_entropy": Entry(
        "superconext.objectives.cross_entropy", "CrossEntropy", "linear softmax classifier"
    ),
}


def check_objective(name: str) -> None:
    """Raise ConfigError unless `name` is in the catalogue."""
    if name not in CATALOGUE:
        near = difflib.get_close_matches(name, CATALOGUE, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"objective = {name!r}: expected one of {', '.join(CATALOGUE)}{hint}")


def objective_class(name: str) -> type[Objective]:
    """The class behind a name. Imports torch."""
    check_objective(name)
    entry = CATALOGUE[name]
    cls: type[Objective] = getattr(importlib.import_module(entry.module), entry.cls)
    return cls
