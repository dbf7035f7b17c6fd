"""Curves over the values of a parameter, each with a band of one standard deviation."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.report.canvas import label_text, mark, new_figure, note, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES = ("-", "--", "-.", ":")

#: Values of which the largest is this many times the smallest are laid on a log scale.
_WIDE = 8


@dataclass(frozen=True)
class Level:
    """Figures that do not depend on the parameter: a dotted line at their mean."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True)
class Chosen:
    """The value that was chosen, on which curve, and the figures of it on test."""

    curve: str
    value: Any
    test: Sequence[float]


def draw_bands(
    curves: Mapping[str, Mapping[Any, Sequence[float]]],
    path: str | os.PathLike[str],
    *,
    xlabel: str,
    ylabel: str,
    levels: Sequence[Level] = (),
    chosen: Chosen | None = None,
) -> Path:
    """Draw a curve for each name: means over fits, a band of one standard deviation (n - 1).

    Args:
        curves: the figures of each fit, fractions in [0, 1], by the parameter's value, by
            the curve's name. Values that are no numbers stand side by side in the order in
            which they come.
        path: PNG to write.
        levels: horizontal lines.
        chosen: ringed; its test figures are a star with a bar, and the only ones of test.

    Raises:
        MissingExtraError: without the extra `plots`.
        RunError: when the file cannot be written.
    """
    figure = new_figure(7.0, 4.4)
    axes = figure.add_subplot()
    drawn = {name: {x: ys for x, ys in curve.items() if len(ys)} for name, curve in curves.items()}
    drawn = {name: curve for name, curve in drawn.items() if curve}
    if not drawn:
        note(axes, "no fits to draw")
        return save(figure, path)
    places = _places(axes, drawn)
    for index, (name, curve) in enumerate(drawn.items()):
        _draw_curve(axes, index, name, curve, places)
    for index, level in enumerate(level for level in levels if len(level.values)):
        mean = 100 * float(np.mean(level.values))
        axes.axhline(
            mean, color="0.45", linewidth=1.0, linestyle=(0, (1, 1 + index)), zorder=1,
            label=label_text(level.name),
        )  # fmt: skip
    if chosen is not None and chosen.value in drawn.get(chosen.curve, {}):
        _draw_chosen(axes, chosen, drawn[chosen.curve][chosen.value], places)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(f"{ylabel}\nband: mean ± standard deviation", fontsize=9)
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.legend(fontsize=8, loc="best")
    return save(figure, path)


def _places(axes: Axes, curves: Mapping[str, Mapping[Any, Any]]) -> dict[Any, float]:
    """Where each value stands on the axis, which is given its scale and ticks."""
    values = list(dict.fromkeys(value for curve in curves.values() for value in curve))
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    if not numbers:
        axes.set_xticks(range(len(values)), [label_text(_words(value)) for value in values])
        axes.set_xlim(-0.5, len(values) - 0.5)
        return {value: float(at) for at, value in enumerate(values)}
    if min(values) > 0 and max(values) >= _WIDE * min(values):
        axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)
    return {value: float(value) for value in values}


def _draw_curve(
    axes: Axes,
    index: int,
    name: str,
    curve: Mapping[Any, Sequence[float]],
    places: Mapping[Any, float],
) -> None:
    order = sorted(curve, key=lambda value: places[value])
    xs = [places[value] for value in order]
    ys = [100 * np.asarray(curve[value], dtype=np.float64) for value in order]
    means = np.array([values.mean() for values in ys])
    spreads = np.array([values.std(ddof=1) if len(values) > 1 else 0.0 for values in ys])
    marker, colour = mark(index)
    axes.fill_between(xs, means - spreads, means + spreads, color=colour, alpha=0.15, linewidth=0)
    axes.plot(
        xs, means, marker=marker, color=colour, linestyle=_STYLES[index % len(_STYLES)],
        markersize=5, markeredgecolor="black", markeredgewidth=0.6, label=label_text(name),
        zorder=3,
    )  # fmt: skip


def _draw_chosen(
    axes: Axes, chosen: Chosen, dev: Sequence[float], places: Mapping[Any, float]
) -> None:
    at = places[chosen.value]
    axes.plot(
        at, 100 * float(np.mean(dev)), linestyle="", marker="o", markersize=13,
        markerfacecolor="none", markeredgecolor="black", zorder=4, label="chosen on dev",
    )  # fmt: skip
    test = 100 * np.asarray(chosen.test, dtype=np.float64)
    axes.errorbar(
        at, float(test.mean()), yerr=float(test.std(ddof=1)) if len(test) > 1 else None,
        color="black", marker="*", markersize=11, capsize=3, linestyle="", zorder=5,
        label="the chosen one on test",
    )  # fmt: skip


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
