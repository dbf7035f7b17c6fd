"""Sentence representations for text classification where labels are few.

    from superconext import SuperConTextClassifier, SuperConTextEncoder, load

`SuperConTextClassifier` is a scikit-learn classifier of texts, `SuperConTextEncoder` turns texts
into vectors for scikit-learn's pipelines, and `load` opens a saved run or an export of one. Each
name is imported when it is first used, so that importing the package is cheap. Import paths of
earlier versions still work, with a warning that names the new one.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from superconext._version import __version__

if TYPE_CHECKING:
    from superconext.estimator.classifier import SuperConTextClassifier, SuperConTextEncoder
    from superconext.estimator.loading import load

__all__ = ["SuperConTextClassifier", "SuperConTextEncoder", "__version__", "load"]

#: Modules of a released version that have moved: old path, new path.
_MOVED = {
    "superconext.config.options": "superconext.config.parameters",
    "superconext.report.canvas": "superconext.report.figures",
    "superconext.text.vocabulary": "superconext.text.tokenize",
    "superconext.labelling": "superconext.report",
    "superconext.labelling.audit": "superconext.report.audit",
}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("superconext.estimator"), name)
    raise AttributeError(f"module 'superconext' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


class _MovedFinder:
    """Finder of moved modules; it is asked last, so it costs nothing while all is found."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None, target: Any = None) -> Any:
        return ModuleSpec(name, cls()) if name in _MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = _MOVED[spec.name]
        warnings.warn(f"{spec.name} has moved: import {new}", DeprecationWarning, stacklevel=2)
        # A module of its own, so that the import system does not rewrite the real one's spec.
        alias = ModuleType(spec.name)
        real = importlib.import_module(new)
        alias.__dict__.update({k: v for k, v in vars(real).items() if not k.startswith("__")})
        alias.__path__ = []  # so that modules that were in a folder are found under its old name
        return alias

    def exec_module(self, module: ModuleType) -> None:
        """Nothing: the names are there already."""


sys.meta_path.append(_MovedFinder)  # type: ignore[arg-type]
