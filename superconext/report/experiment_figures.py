"""The figures of experiments: a comparison of systems, and scores over a parameter."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.report.figures import (
    BandsContext,
    Chosen,
    ComparisonContext,
    Figure,
    label_text,
    mark,
    new_figure,
    note,
    save,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES = ("-", "--", "-.", ":")

#: Values of which the largest is this many times the smallest are laid on a log scale.
_WIDE = 8
#: Curves whose deviations are drawn as bands; those of more are bars, this share of the axis apart.
_BANDS, _APART = 2, 0.01

_SPREAD = 0.2  # of a line's height, over which the dots of a system are laid

#: A system so many times further below the next one than all others are apart is written at the
#: edge: drawn to scale it would press the others together.
_FAR = 2.0


class Comparison(Figure):
    """A panel for each data set, a line for each system, the same in every panel.

    Fits are open grey circles; their mean is a black diamond with a bar of one standard
    deviation (n - 1) to each side; the reference's mean is a dashed line, and a star marks
    systems significantly better than it. A system far below all others is a number at the edge.
    """

    context = ComparisonContext

    def file_name(self, name: str, context: ComparisonContext) -> str:
        return context.file_name

    def draw(self, context: ComparisonContext, path: Path) -> None:
        reference, starred = context.reference, context.significant
        drawn = {panel: _percent(values) for panel, values in context.panels.items()}
        names = list(dict.fromkeys(name for values in drawn.values() for name in values))
        width = 7.0 if len(drawn) < 2 else 3.0 + 2.6 * len(drawn)
        figure = new_figure(width, 1.2 + 0.42 * max(len(names), 2))
        if not names:
            note(figure.add_subplot(), "no fits to draw")
            save(figure, path)
            return
        row = figure.subplots(1, len(drawn), sharey=True, squeeze=False)[0]
        alone = len(drawn) == 1
        for axes, (panel, values) in zip(row, drawn.items(), strict=True):
            stars = starred.get(panel, ())
            _draw_panel(axes, values, names, reference, () if alone else stars)
            if panel:
                axes.set_title(label_text(panel), fontsize=9)
        marked = starred.get(next(iter(drawn)), ()) if alone else ()
        labels = [label_text(name, " *" if name in marked else "") for name in names]
        row[0].set_yticks(range(len(names)), labels)
        row[0].set_ylim(len(names) - 0.5, -0.5)
        shown = reference if any(reference in values for values in drawn.values()) else None
        # Below the whole figure: below an axis that long names push aside it would be cut off.
        figure.supxlabel(_axis(context.metric, shown, any(starred.values())), fontsize=9)
        save(figure, path)


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
            arrow, where = f"\u2190 {scores.mean():.1f}", axes.get_yaxis_transform()
            axes.text(0.02, place, arrow, transform=where, va="center", fontsize=8)
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
    label = f"{metric}, percent; circles: fits, diamond: mean ± standard deviation"
    if reference is not None:
        label += f"\ndashed: mean of {label_text(reference)}"
        if starred:
            label += "; *: significantly better than it"
    return label


class Bands(Figure):
    """A curve for each name: means over fits, with a band of one standard deviation (n - 1).

    Levels are dotted lines. The chosen value is ringed; its scores on test are a star with a
    bar, and the only ones of test.
    """

    context = BandsContext

    def file_name(self, name: str, context: BandsContext) -> str:
        return context.file_name

    def draw(self, context: BandsContext, path: Path) -> None:
        figure = new_figure(7.0, 4.4)
        axes = figure.add_subplot()
        drawn = {
            name: kept
            for name, curve in context.curves.items()
            if (kept := {x: ys for x, ys in curve.items() if len(ys)})
        }
        if not drawn:
            note(axes, "no fits to draw")
            save(figure, path)
            return
        places = _places(axes, drawn)
        spans = _spans(places, len(drawn), axes.get_xscale() == "log")
        for index, (name, curve) in enumerate(drawn.items()):
            _draw_curve(axes, index, name, curve, spans[index], len(drawn) <= _BANDS)
        for index, level in enumerate(level for level in context.levels if len(level.values)):
            mean = 100 * float(np.mean(level.values))
            axes.axhline(
                mean, color="0.45", linewidth=1.0, linestyle=(0, (1, 1 + index)), zorder=1,
                label=label_text(level.name),
            )  # fmt: skip
        chosen = context.chosen
        if chosen is not None and chosen.value in drawn.get(chosen.curve, {}):
            _draw_chosen(axes, chosen, drawn[chosen.curve][chosen.value], places)
        axes.set_xlabel(context.xlabel)
        axes.set_ylabel(f"{context.ylabel}\nmean ± standard deviation", fontsize=9)
        axes.grid(color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        # Beside the curves, which it would hide, in the order of their ends.
        handles, texts = axes.get_legend_handles_labels()
        lines: list[Any] = [one[0] if isinstance(one, tuple) else one for one in handles]
        ends = [float(np.ravel(line.get_ydata())[-1]) for line in lines]
        order = np.argsort(ends, kind="stable")[::-1]
        figure.legend(
            [handles[at] for at in order], [texts[at] for at in order],
            fontsize=8, frameon=False, loc="outside right upper",
        )  # fmt: skip
        save(figure, path)


def _places(axes: Axes, curves: Mapping[str, Mapping[Any, Any]]) -> dict[Any, float]:
    """Where each value stands on the axis, which is given its scale and ticks."""
    values = list(dict.fromkeys(value for curve in curves.values() for value in curve))
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    if not numbers:
        axes.set_xticks(range(len(values)), [label_text(_label(value)) for value in values])
        axes.set_xlim(-0.5, len(values) - 0.5)
        return {value: float(at) for at, value in enumerate(values)}
    if min(values) > 0 and max(values) >= _WIDE * min(values):
        axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)
    return {value: float(value) for value in values}


def _spans(places: Mapping[Any, float], curves: int, log: bool) -> list[dict[Any, float]]:
    """Where each curve stands at each value: many, whose bars would hide each other, side by
    side."""
    if curves <= _BANDS or len(places) < 2:
        return [dict(places)] * curves
    ends = min(places.values()), max(places.values())
    shifts = _APART * (np.arange(curves) - (curves - 1) / 2)
    if log:
        factors = (ends[1] / ends[0]) ** shifts
        return [{value: at * factor for value, at in places.items()} for factor in factors]
    steps = (ends[1] - ends[0]) * shifts
    return [{value: at + step for value, at in places.items()} for step in steps]


def _draw_curve(
    axes: Axes,
    index: int,
    name: str,
    curve: Mapping[Any, Sequence[float]],
    places: Mapping[Any, float],
    banded: bool,
) -> None:
    order = sorted(curve, key=lambda value: places[value])
    xs = [places[value] for value in order]
    ys = [100 * np.asarray(curve[value], dtype=np.float64) for value in order]
    means = np.array([values.mean() for values in ys])
    spreads = np.array([values.std(ddof=1) if len(values) > 1 else 0.0 for values in ys])
    marker, colour = mark(index)
    if banded:
        edges = means - spreads, means + spreads
        axes.fill_between(xs, *edges, color=colour, alpha=0.15, linewidth=0)
    else:
        axes.errorbar(xs, means, spreads, fmt="none", ecolor=colour, elinewidth=1.2, alpha=0.6)
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


def _label(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
