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
    "ce_ce": Entry(
        "superconext.objectives.ce_ce",
        "CECE",
        "cross-entropy, and again on unit vectors with temperature",
    ),
    "triplet": Entry(
        "superconext.objectives.triplet", "Triplet", "triplet margin loss, batch-hard by default"
    ),
    "n_pair": Entry(
        "superconext.objectives.n_pair", "NPair", "a positive against one row of each other class"
    ),
    "supcon": Entry(
        "superconext.objectives.supcon", "SupCon", "supervised contrastive loss of Khosla et al."
    ),
    "ce_scl": Entry(
        "superconext.objectives.ce_scl", "CESCL", "cross-entropy + supervised contrastive loss"
    ),
    "ce_cl": Entry(
        "superconext.objectives.ce_cl", "CECL", "cross-entropy + contrast of two dropout views"
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
