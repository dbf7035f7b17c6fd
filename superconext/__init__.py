"""Sentence representations for text classification where labels are few.

    from superconext import SuperConTextClassifier, SuperConTextEncoder, load

`SuperConTextClassifier` is a scikit-learn classifier, `SuperConTextEncoder` a transformer of texts
to vectors, and `load` opens a saved run. Names are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from superconext._version import __version__
from superconext.core import moved

if TYPE_CHECKING:
    from superconext.estimator.classifier import SuperConTextClassifier, SuperConTextEncoder
    from superconext.estimator.loading import load

_HOMES = {
    "SuperConTextClassifier": "superconext.estimator.classifier",
    "SuperConTextEncoder": "superconext.estimator.classifier",
    "load": "superconext.estimator.loading",
}

__all__ = ["SuperConTextClassifier", "SuperConTextEncoder", "__version__", "load"]

moved.install()


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'superconext' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
