"""What results are made with."""

from __future__ import annotations

import os
import platform

import numpy

from superconext._version import __version__
from superconext.core.environment import made_with


def test_versions_and_the_processors_this_process_may_use(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert made_with(("superconext", "numpy", "no-such-package")) == {
        "cpus": 1,
        "versions": {
            "python": platform.python_version(),
            "superconext": __version__,
            "numpy": numpy.__version__,
            "no-such-package": None,
        },
    }
