"""Figures of an experiment, where they can be drawn; a note where they cannot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from superconext.core.progress import Progress


def draw(pictures: Mapping[Path, Callable[[Path], object]], progress: Progress) -> None:
    """Call each drawing with its path, unless the extra `plots` is missing, which is said."""
    from superconext.report import figures

    if not figures.available():
        progress.say(f"note: {figures.UNAVAILABLE}")
        return
    for path, drawing in pictures.items():
        path.parent.mkdir(exist_ok=True)
        drawing(path)
