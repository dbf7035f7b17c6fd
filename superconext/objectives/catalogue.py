"""The objectives by name: where each lives and what it is, in one line.

This table imports nothing, so the command line can list objectives without torch.

Objectives of a user's own join it by `register`, or by the environment variable
`SUPERCONEXT_OBJECTIVES`, "name=path/to/file.py:Class" (several after commas), which the
command line and its worker processes see too. A run folder holds the name alone and never
says which file to run: whoever opens it says so, and what it holds cannot start any code.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
import warnings
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

from superconext.core.errors import ConfigError

if TYPE_CHECKING:
    from superconext.objectives.base import Objective


@dataclass(frozen=True)
class Entry:
    """Module (by its dotted name, or a .py file) and class of an objective, and a line of help."""

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
    "lacon": Entry(
        "superconext.objectives.lacon", "LaCon", "sentences and label embeddings contrasted"
    ),
    "leam": Entry(
        "superconext.objectives.leam", "LEAM", "classifier on tokens weighted by label embeddings"
    ),
    "lsan": Entry(
        "superconext.objectives.lsan", "LSAN", "a sentence vector for each class, by attention"
    ),
    "css_lm": Entry(
        "superconext.objectives.css_lm", "CSSLM", "semi-supervised, with retrieved unlabelled text"
    ),
    "scf": Entry(
        "superconext.objectives.scf", "SCF", "CSS-LM's classifier and contrast, labelled text alone"
    ),
    "css_lm_st": Entry(
        "superconext.objectives.css_lm_st", "CSSLMST", "CSS-LM's retrieval with pseudo labels"
    ),
    "dualcl": Entry(
        "superconext.objectives.dualcl", "DualCL", "texts and the classifiers written for them"
    ),
    "dualcl_no_dual": Entry(
        "superconext.objectives.dualcl", "DualCLNoDual", "cross-entropy of classifiers so written"
    ),
}


BUILT_IN = frozenset(CATALOGUE)

#: Names an environment can add: "name=path/to/file.py:Class,name=...".
VARIABLE = "SUPERCONEXT_OBJECTIVES"


def register(name: str, module: str, cls: str, summary: str) -> None:
    """Add an objective of your own to the catalogue, for this process.

    Args:
        name: what `objective` will call it; a registered name may be registered anew.
        module: where the class is: a module's dotted name (`__name__` in its own file), or
            the path of a .py file. It is imported when the objective is first used.
        cls: name of the class, a subclass of `objectives.base.Objective`.
        summary: a line of help.

    Raises ConfigError for a name that is no identifier or belongs to a built-in objective.
    """
    if not name.isidentifier():
        raise ConfigError(
            f"objective name {name!r} found; expected letters, digits and underscores: rename it"
        )
    if name in BUILT_IN:
        raise ConfigError(f"objective name {name!r} is a built-in one's; choose another")
    module = os.path.abspath(module) if module.endswith(".py") else module
    CATALOGUE[name] = Entry(module, cls, summary)


def _register_named(text: str) -> None:
    """Register what the environment variable lists; what it cannot be is told and left out."""
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, _, place = part.partition("=")
        path, _, cls = place.rpartition(":")
        try:
            if not path.endswith(".py") or not cls.isidentifier():
                raise ConfigError(f"found {part!r}, expected name=path/to/file.py:Class")
            register(name.strip(), path, cls, f"{cls} of {os.path.basename(path)}")
        except ConfigError as error:
            warnings.warn(f"{VARIABLE}: {error}; it is left out", stacklevel=2)


_register_named(os.environ.get(VARIABLE, ""))


def check_objective(name: str) -> None:
    """Raise ConfigError unless `name` is in the catalogue."""
    if name not in CATALOGUE:
        near = difflib.get_close_matches(name, CATALOGUE, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(
            f"objective = {name!r}: expected one of {', '.join(CATALOGUE)}{hint}; one of your "
            f"own has to be named in {VARIABLE}={name}=path/to/file.py:Class, or registered"
        )


def objective_class(name: str) -> type[Objective]:
    """The class behind a name. Imports torch.

    Raises ConfigError for an unknown name, and for a registered one without its class.
    """
    check_objective(name)
    entry = CATALOGUE[name]
    if name in BUILT_IN:
        cls: type[Objective] = getattr(importlib.import_module(entry.module), entry.cls)
        return cls
    return _own_class(name, entry)


def _own_class(name: str, entry: Entry) -> type[Objective]:
    from superconext.objectives.base import Objective

    try:
        if entry.module.endswith(".py"):
            module = _module_of_file(name, entry.module)
        else:
            module = importlib.import_module(entry.module)
    except Exception as error:  # whatever a user's own file does when it is run
        raise ConfigError(
            f"objective = {name!r}: {entry.module} cannot be imported ({type(error).__name__}: "
            f"{error}); expected the module of class {entry.cls}: put it right"
        ) from error
    found = getattr(module, entry.cls, None)
    if not isinstance(found, type) or not issubclass(found, Objective):
        raise ConfigError(
            f"objective = {name!r}: {entry.module} has no class {entry.cls} that extends "
            "superconext.objectives.base.Objective; expected one: register the right name"
        )
    return found


def _module_of_file(name: str, path: str) -> ModuleType:
    """The module of a file, run once in a process."""
    known = sys.modules.get(f"superconext_own_{name}")
    if known is not None and known.__file__ == path:
        return known
    spec = importlib.util.spec_from_file_location(f"superconext_own_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module
