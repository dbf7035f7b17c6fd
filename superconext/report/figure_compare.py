"""A comparison at a glance: every fit a dot, every system a mean and its spread."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from superconext.report.canvas import label_text, new_figure, note, save

_SPREAD = 0.2  # of a line's height, over which the dots of a system are laid


def draw_comparison(
    values: Mapping[str, Sequence[float]],
    path: str | os.PathLike[str],
    *,
    metric: str = "weighted F1",
    reference: str | None = None,
    significant: Collection[str] = (),
) -> Path:
    """Draw one line for each system, best readable in black and white.

    Args:
        values: the figure of each fit, fractions in [0, 1], by system from top to bottom.
        path: PNG to write.
        metric: what the values are, for the axis.
        reference: the system whose mean is drawn through all lines, dashed.
        significant: systems to mark with a star.

    Dots are open circles, grey; the mean is a black diamond with a bar of one standard
    deviation (n - 1) to each side.

    Raises:
        MissingExtraError: without the extra `plots`.
        RunError: when the file cannot be written.
    """
    drawn = {name: 100 * np.asarray(given, dtype=np.float64) for name, given in values.items()}
    drawn = {name: given for name, given in drawn.items() if len(given)}
    figure = new_figure(7.0, 1.2 + 0.42 * max(len(drawn), 2))
    axes = figure.add_subplot()
    if not drawn:
        note(axes, "no fits to draw")
        return save(figure, path)
    if reference in drawn:
        mean = float(drawn[reference].mean())
        axes.axvline(mean, color="0.45", linestyle="--", linewidth=1.0, zorder=1)
    for place, scores in enumerate(drawn.values()):
        count = len(scores)
        heights = place + (np.linspace(-_SPREAD, _SPREAD, count) if count > 1 else np.zeros(1))
        axes.plot(
            scores, heights, linestyle="", marker="o", markersize=4.5, markerfacecolor="white",
            markeredgecolor="0.5", zorder=2,
        )  # fmt: skip
        axes.errorbar(
            float(scores.mean()), place, xerr=float(scores.std(ddof=1)) if count > 1 else None,
            color="black", marker="D", markersize=4.5, capsize=3.5, linewidth=1.4, zorder=3,
        )  # fmt: skip
    names = [label_text(name, " *" if name in significant else "") for name in drawn]
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel(_axis(metric, reference if reference in drawn else None, bool(significant)))
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    return save(figure, path)


def _axis(metric: str, reference: str | None, starred: bool) -> str:
    told = f"{metric}, percent; circles: fits, diamond: mean ± standard deviation"
    if reference is not None:
        told += f"\ndashed: mean of {label_text(reference)}"
        if starred:
            told += "; *: significantly better than it"
    return told
