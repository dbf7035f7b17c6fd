"""What a result was made with: processors, and versions of Python and of packages."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from superconext._version import __version__
from superconext.core.process import processors


def made_with(packages: Iterable[str]) -> dict[str, Any]:
    """`cpus`, the processors that this process may use, and `versions` of Python and of packages by
    the names they are installed under, None for one that is not."""
    versions = {name: _version(name) for name in packages}
    return {
        "cpus": processors(),
        "versions": {"python": platform.python_version(), **versions},
    }


def _version(package: str) -> str | None:
    if package == "superconext":  # a checkout may be installed under another
        return __version__
    try:
        return version(package)
    except PackageNotFoundError:
        return None
