"""A comparison at a glance: every fit a dot, every system a mean and its spread."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from superconext.report.canvas import label_text, new_figure, note, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SPREAD = 0.2  # of a line's height, over which the dots of a system are laid

#: A system so many times further below the next one than all others are apart is written at the
#: edge: drawn to scale it would press the others together.
_FAR = 2.0


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
    deviation (n - 1) to each side. A system far below all others is a number at the edge.

    Raises:
        MissingExtraError: without the extra `plots`.
        RunError: when the file cannot be written.
    """
    return draw_comparisons(
        {"": values}, path, metric=metric, reference=reference, significant={"": significant}
    )


def draw_comparisons(
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    path: str | os.PathLike[str],
    *,
    metric: str = "weighted F1",
    reference: str | None = None,
    significant: Mapping[str, Collection[str]] | None = None,
) -> Path:
    """Draw a panel like `draw_comparison`'s for each data set, side by side.

    Args:
        panels: values by data set. A system has the same line in every panel.
        significant: systems to mark with a star, by data set.

    Raises as `draw_comparison` does.
    """
    drawn = {panel: _percent(values) for panel, values in panels.items()}
    names = list(dict.fromkeys(name for values in drawn.values() for name in values))
    starred = significant or {}
    width = 7.0 if len(drawn) < 2 else 3.0 + 2.6 * len(drawn)
    figure = new_figure(width, 1.2 + 0.42 * max(len(names), 2))
    if not names:
        note(figure.add_subplot(), "no fits to draw")
        return save(figure, path)
    row = figure.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
    alone = len(drawn) == 1
    for axes, (panel, values) in zip(row, drawn.items(), strict=True):
        stars = starred.get(panel, ())
        _draw_panel(axes, values, names, reference, () if alone else stars)
        if panel:
            axes.set_title(label_text(panel), fontsize=9)
    labels = [
        label_text(n, " *" if alone and n in next(iter(starred.values()), ()) else "")
        for n in names
    ]
    row[0].set_yticks(range(len(names)), labels)
    row[0].set_ylim(len(names) - 0.5, -0.5)
    shown = reference if any(reference in values for values in drawn.values()) else None
    # Below the whole figure: below an axis that long names push aside it would be cut off.
    figure.supxlabel(_axis(metric, shown, any(starred.values())), fontsize=9)
    return save(figure, path)


def _percent(values: Mapping[str, Sequence[float]]) -> dict[str, np.ndarray]:
    drawn = {name: 100 * np.asarray(given, dtype=np.float64) for name, given in values.items()}
    return {name: given for name, given in drawn.items() if len(given)}


def _draw_panel(
    axes: Axes,
    values: Mapping[str, np.ndarray],
    names: Sequence[str],
    reference: str | None,
    stars: Collection[str],
) -> None:
    if reference is not None and reference in values:
        mean = float(values[reference].mean())
        axes.axvline(mean, color="0.45", linestyle="--", linewidth=1.0, zorder=1)
    below = _far_below(values)
    for name, scores in values.items():
        place, count = names.index(name), len(scores)
        if name == below:
            told, where = f"\u2190 {scores.mean():.1f}", axes.get_yaxis_transform()
            axes.text(0.02, place, told, transform=where, va="center", fontsize=8)
            continue
        heights = place + (np.linspace(-_SPREAD, _SPREAD, count) if count > 1 else np.zeros(1))
        axes.plot(
            scores, heights, linestyle="", marker="o", markersize=4.5, markerfacecolor="white",
            markeredgecolor="0.5", zorder=2,
        )  # fmt: skip
        axes.errorbar(
            float(scores.mean()), place, xerr=float(scores.std(ddof=1)) if count > 1 else None,
            color="black", marker="D", markersize=4.5, capsize=3.5, linewidth=1.4, zorder=3,
        )  # fmt: skip
        if name in stars:
            axes.annotate(
                "*", (float(scores.max()), place), xytext=(6, 4), textcoords="offset points"
            )
    axes.grid(axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def _far_below(values: Mapping[str, np.ndarray]) -> str | None:
    """The system that is `_FAR` below all others, as the majority class often is."""
    if len(values) < 3:
        return None
    lowest = min(values, key=lambda name: float(values[name].mean()))
    rest = np.concatenate([scores for name, scores in values.items() if name != lowest])
    gap = float(rest.min() - values[lowest].max())
    return lowest if gap > _FAR * max(float(np.ptp(rest)), 1.0) else None


def _axis(metric: str, reference: str | None, starred: bool) -> str:
    told = f"{metric}, percent; circles: fits, diamond: mean ± standard deviation"
    if reference is not None:
        told += f"\ndashed: mean of {label_text(reference)}"
        if starred:
            told += "; *: significantly better than it"
    return told
