"""The parameters of a run: one table, the presets, TOML files."""

from __future__ import annotations

from typing import Any

_HOMES = {
    "Config": "superconext.config.parameters",
    "PARAMETERS": "superconext.config.parameters",
    "resolve": "superconext.config.parameters",
}

__all__ = ["PARAMETERS", "Config", "resolve"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
