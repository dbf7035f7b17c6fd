"""Training curves: what each epoch did to the loss, the dev score and the similarities."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superconext.report.canvas import new_figure, note, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class _Line:
    keys: tuple[str, ...]
    name: str
    style: str
    colour: str
    marker: str


@dataclass(frozen=True)
class _Panel:
    name: str
    lines: tuple[_Line, ...]


#: The names are those of the trainer's history; the first key present is drawn.
_PANELS = (
    _Panel(
        "loss",
        (
            _Line(("loss", "train_loss"), "training loss", "-", "black", "o"),
            _Line(("dev_loss",), "dev loss", "-.", "0.55", "^"),
        ),
    ),
    _Panel("dev score", (_Line(("dev_score",), "dev probe score", "-", "black", "o"),)),
    _Panel(
        "cosine, share",
        (
            _Line(("positive_similarity",), "mean cosine of positives", "-", "black", "o"),
            _Line(("negative_similarity",), "mean cosine of negatives", "--", "0.35", "s"),
            _Line(("kept",), "share of negatives kept", ":", "0.6", "^"),
        ),
    ),
)
_MARKED_EPOCHS = 40


def draw_curves(
    history: Sequence[Mapping[str, Any]],
    path: str | os.PathLike[str],
    *,
    chance: float | None = None,
) -> Path:
    """Draw a run's history in up to three panels above each other.

    Args:
        history: one mapping for each epoch, numbers or their text as in history.csv:
            `epoch` (else counted from 1), `loss`, `dev_score`, `positive_similarity`,
            `negative_similarity`, `kept`, `chance`. Keys that are missing, empty or not
            finite leave gaps; a panel without any value is left out.
        path: PNG to write.
        chance: loss of an encoder that knows nothing (log 2 for SuperLoss), a dashed
            line; else the last `chance` found in the history.

    Raises:
        MissingExtraError: without the extra `plots`.
        RunError: when the file cannot be written.
    """
    epochs = [_value(row.get("epoch"), at + 1.0) for at, row in enumerate(history)]
    drawn = [
        (panel, [(line, ys) for line in panel.lines if (ys := _series(history, line.keys))])
        for panel in _PANELS
    ]
    drawn = [(panel, lines) for panel, lines in drawn if lines]
    figure = new_figure(7.0, 1.2 + 2.0 * max(len(drawn), 1))
    if not drawn:
        note(figure.add_subplot(), "no epochs to draw")
        return save(figure, path)
    stack = figure.subplots(len(drawn), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (panel, lines) in zip(stack, drawn, strict=True):
        for line, ys in lines:
            axes.plot(
                epochs, ys, linestyle=line.style, color=line.colour, label=line.name,
                marker=line.marker if len(epochs) <= _MARKED_EPOCHS else "", markersize=3.5,
            )  # fmt: skip
        if panel.name == "loss":
            _draw_chance(axes, _chance(history, chance))
        axes.set_ylabel(panel.name)
        axes.grid(color="0.9", linewidth=0.6)
        axes.legend(fontsize=8, loc="best")
    _whole_epochs(stack[-1], epochs)
    return save(figure, path)


def _draw_chance(axes: Axes, level: float) -> None:
    if math.isfinite(level):
        name = "log 2" if math.isclose(level, math.log(2), abs_tol=1e-6) else f"{level:.4g}"
        axes.axhline(level, linestyle="--", color="0.4", linewidth=1.0, label=f"chance, {name}")


def _whole_epochs(axes: Axes, epochs: list[float]) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    if min(epochs) == max(epochs):
        axes.set_xlim(epochs[0] - 0.5, epochs[0] + 0.5)


def _chance(history: Sequence[Mapping[str, Any]], given: float | None) -> float:
    if given is not None:
        return _value(given)
    values = [_value(row.get("chance")) for row in history]
    return next((value for value in reversed(values) if math.isfinite(value)), math.nan)


def _series(history: Sequence[Mapping[str, Any]], keys: tuple[str, ...]) -> list[float]:
    """The first key's values with NaN for gaps; empty when no key has any."""
    for key in keys:
        values = [_value(row.get(key)) for row in history]
        if any(math.isfinite(value) for value in values):
            return values
    return []


def _value(given: Any, default: float = math.nan) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError):
        return default
    return value if math.isfinite(value) else default
