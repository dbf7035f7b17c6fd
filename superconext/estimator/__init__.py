"""The scikit-learn estimators and `load`."""

from __future__ import annotations

from typing import Any

_HOMES = {
    "SuperConTextClassifier": "superconext.estimator.classifier",
    "SuperConTextEncoder": "superconext.estimator.classifier",
    "load": "superconext.estimator.loading",
}

__all__ = ["SuperConTextClassifier", "SuperConTextEncoder", "load"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
