"""The figures of a run: a map of the sentence vectors, a confusion matrix, curves.

Each function takes plain arrays and a path, writes a PNG and returns the path. They need
the extra `plots`; ask `available()` first, and say `UNAVAILABLE` once where it is False.
"""

from __future__ import annotations

from superconext.report.arabic import shape
from superconext.report.canvas import UNAVAILABLE, available
from superconext.report.figure_confusion import draw_confusion
from superconext.report.figure_curves import draw_curves
from superconext.report.figure_map import draw_map

__all__ = [
    "UNAVAILABLE",
    "available",
    "draw_confusion",
    "draw_curves",
    "draw_map",
    "shape",
]
