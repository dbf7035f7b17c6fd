"""The scikit-learn estimators and `load`, imported when they are first used."""

from __future__ import annotations

import importlib
from typing import Any

from superconext.core.errors import needs_training

__all__ = ["SuperConTextClassifier", "SuperConTextEncoder", "load"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        place = "loading" if name == "load" else "classifier"
        with needs_training(name):
            return getattr(importlib.import_module(f"{__name__}.{place}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
