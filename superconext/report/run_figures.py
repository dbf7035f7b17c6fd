"""The figures of a run: a map of its sentence vectors, a confusion matrix, training curves."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.core.errors import DataError
from superconext.report.figures import (
    BLUE,
    ORANGE,
    Figure,
    RunContext,
    class_marks,
    label_text,
    new_figure,
    note,
    save,
)
from superconext.report.table import display_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet


class SentenceMap(Figure):
    """The sentence vectors in two dimensions, see `draw_map`."""

    context = RunContext

    def draw(self, context: RunContext, path: Path) -> None:
        draw_map(
            context.layout,
            context.labels,
            path,
            predicted=context.predicted,
            split=context.split,
            classes=context.classes,
        )


class Confusion(Figure):
    """The confusion matrix, see `draw_confusion`."""

    context = RunContext

    def draw(self, context: RunContext, path: Path) -> None:
        labels, predicted = context.labels, context.predicted
        draw_confusion(labels, predicted, context.classes, path, split=context.split)


class Curves(Figure):
    """The training curves of the first member's first stage, see `draw_curves`."""

    context = RunContext

    def shows(self, context: object) -> bool:
        return isinstance(context, RunContext) and bool(first_stage(context.history))

    def draw(self, context: RunContext, path: Path) -> None:
        history = first_stage(context.history)
        staged = any("stage" in record for record in history[:1])
        draw_curves(history, path, chance=None if staged else context.chance)


#: Above this t-SNE takes longer than training; below `_FEWEST` it has no neighbourhoods.
_MOST = 3000
_FEWEST = 10
_PERPLEXITY = 30.0
_PCA_FIRST = 50
_LEGEND_COLUMN = 25
#: Up to so many entries are in rows below the map, which is then as wide as the sheet.
_LEGEND_BELOW = 8
_LEGEND_MOST = 75


def draw_map(
    layout: Layout,
    labels: Sequence[str],
    path: str | os.PathLike[str],
    *,
    predicted: Sequence[str] | None = None,
    split: str = "",
    classes: Sequence[str] = (),
) -> Path:
    """Draw sentence vectors in two dimensions, classes apart by shape and colour.

    Args:
        layout: of N vectors, as `lay_out` makes it. Rows without a place are left out, and the
            title says how many.
        labels: N true classes.
        path: PNG to write.
        predicted: N predicted classes; where they differ from `labels` the point is
            ringed.
        split: what the rows are called, for the title.
        classes: their order, by which those are numbered whose letters no font has.

    Raises:
        DataError: when shapes do not agree.
        MissingExtraError: without the extra `plots`.
        RunError: when the file cannot be written.
    """
    if len(layout.points) != len(labels):
        raise DataError(
            f"map: found {len(layout.points)} vectors for {len(labels)} labels: expected "
            "[N, d] and N labels; give one vector for each label"
        )
    if predicted is not None and len(predicted) != len(labels):
        raise DataError(
            f"map: found {len(predicted)} predictions for {len(labels)} labels: expected as "
            "many; give one prediction for each label"
        )
    finite = np.isfinite(layout.points).all(axis=1)
    truth = np.array([str(label) for label in labels], dtype=object)
    wrong = np.zeros(len(truth), dtype=bool)
    if predicted is not None:
        wrong = truth != np.array([str(label) for label in predicted], dtype=object)
    title = f"{split}: {layout.title}" if split else layout.title
    if not finite.all():
        title += f"; {int((~finite).sum())} rows that are not finite left out"
    order = [*map(str, classes), *sorted({*truth} - {*map(str, classes)})]
    numbers = {name: number for number, name in enumerate(order, 1)}
    shown = layout.points[finite], truth[finite], wrong[finite]
    sheet = _draw(*shown, title, layout.axes, numbers)
    return save(sheet, path)


@dataclass(frozen=True)
class Layout:
    """Where N rows stand on a map.

    points: float64 `[N, 2]`, NaN for rows whose vector is not finite.
    title: the method, in words. axes: what the axes are, or "".
    """

    points: np.ndarray
    title: str
    axes: tuple[str, str]


def lay_out(features: np.ndarray, seed: int = 0, tsne: bool = True) -> Layout:
    """Places of sentence vectors `[N, d]` on a map.

    From 10 to 3000 rows by t-SNE (van der Maaten and Hinton, 2008) after PCA to 50 dimensions, as
    the SuperConText papers show their vectors; other numbers of rows, rows all equal, and all rows
    unless `tsne`, by plain PCA. Distances between far groups of a t-SNE map mean nothing; the title
    names the method. Raises DataError for features of another shape.
    """
    features = np.asarray(features, dtype=np.float64)
    if not features.size:
        features = features.reshape(len(features), 0)
    if features.ndim != 2:
        raise DataError(
            f"map: found features of shape {features.shape}: expected [N, d]; give one vector for "
            "each row"
        )
    finite = np.isfinite(features).all(axis=1)
    points = np.full((len(features), 2), np.nan)
    points[finite], title, axes = place(features[finite], seed, tsne)
    return Layout(points, title, axes)


def place(
    features: np.ndarray, seed: int = 0, tsne: bool = True
) -> tuple[np.ndarray, str, tuple[str, str]]:
    """Coordinates `[N, 2]` of finite features `[N, d]`, the method in words, axis names."""
    rows = len(features)
    reduced, shares = _principal(features, seed)
    axes = tuple(
        f"component {i + 1} ({share:.0%} of the variance)" for i, share in enumerate(shares[:2])
    )
    flat = not shares.any()
    if flat or not tsne or not _FEWEST <= rows <= _MOST:
        why = " (all vectors are equal)" if flat and rows > 1 else ""
        return reduced[:, :2], f"Sentence vectors, PCA{why}", (axes[0], axes[1])
    from sklearn.manifold import TSNE

    # Perplexity counts neighbours, so it must stay well below the number of rows.
    perplexity = min(_PERPLEXITY, (rows - 1) / 3)
    start = (reduced[:, :2] / reduced[:, 0].std() * 1e-4).astype(np.float32)
    model = TSNE(perplexity=perplexity, init=start, learning_rate="auto", random_state=seed)
    points = model.fit_transform(reduced.astype(np.float32))
    title = f"Sentence vectors, t-SNE (perplexity {perplexity:.3g})"
    # Turning a map changes no distance: the longer side lies flat, as pages are wide.
    points = points.astype(np.float64) - points.mean(axis=0)
    _, _, axes_of = np.linalg.svd(points, full_matrices=False)
    return points @ (axes_of * np.sign(axes_of[:, :1] + 1e-12)).T, title, ("", "")


def _principal(features: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Up to 50 principal components `[N, >=2]` and their shares of the variance `[>=2]`."""
    rows = len(features)
    # Scaling keeps squares within range and changes no picture.
    scale = np.abs(features).max(initial=0.0)
    centred = features / scale if scale > 0 else features
    if rows:
        centred = centred - centred.mean(axis=0)
    if rows < 2 or np.abs(centred).max(initial=0.0) < 1e-9:
        return np.zeros((rows, 2)), np.zeros(2)
    from sklearn.decomposition import PCA

    # Subnormal spread would divide by zero inside PCA; the largest entry becomes 1.
    centred = centred / np.abs(centred).max()
    model = PCA(n_components=min(_PCA_FIRST, *centred.shape), random_state=seed)
    reduced = model.fit_transform(centred)
    shares = np.asarray(model.explained_variance_ratio_)
    if reduced.shape[1] < 2:
        reduced = np.hstack([reduced, np.zeros((rows, 1))])
        shares = np.append(shares, 0.0)
    return reduced, shares


def _draw(
    points: np.ndarray,
    truth: np.ndarray,
    wrong: np.ndarray,
    title: str,
    names: tuple[str, str],
    numbers: Mapping[str, int],
) -> Sheet:
    counts = dict(sorted(Counter(truth).items()))
    classes = list(counts)
    columns = min(-(-len(classes) // _LEGEND_COLUMN), _LEGEND_MOST // _LEGEND_COLUMN)
    figure = new_figure(7.5, 5.5)
    axes = figure.add_subplot()
    axes.set_title(f"{title}; N = {len(truth)}", fontsize=10, wrap=True)
    if not len(truth):
        note(axes, "no rows to draw")
        return figure
    size = float(np.clip(3000 / np.sqrt(len(truth)) / 4, 12, 60))
    handles, texts = [], []
    marks = class_marks(classes)
    for name, (marker, colour) in zip(classes, marks, strict=True):
        chosen = points[truth == name]
        handle = axes.scatter(
            chosen[:, 0], chosen[:, 1], s=size, marker=marker, color=[colour],
            edgecolors="white", linewidths=0.4,
            # The largest class lies lowest, so that it does not cover the others.
            zorder=2 + 1 / (1 + counts[name]),
        )  # fmt: skip
        handles.append(handle)
        texts.append(label_text(name, f" ({counts[name]})", numbers[name], classes))
    if len(handles) > _LEGEND_MOST:
        hidden = len(handles) - (_LEGEND_MOST - 1)
        handles, texts = handles[: _LEGEND_MOST - 1], texts[: _LEGEND_MOST - 1]
        handles.append(axes.scatter([], [], s=0))
        texts.append(f"and {hidden} more classes")
    if wrong.any():
        ring = axes.scatter(
            points[wrong, 0], points[wrong, 1], s=size * 2.6, facecolors="none",
            edgecolors="black", linewidths=0.8, zorder=4,
        )  # fmt: skip
        handles.append(ring)
        texts.append(f"ringed: wrongly classified ({int(wrong.sum())})")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel(names[0])
    axes.set_ylabel(names[1])
    axes.margins(0.03)
    axes.spines[:].set_color("0.8")
    # Texts are set afterwards: matplotlib hides a label that begins with "_".
    below = len(handles) <= _LEGEND_BELOW
    if not below:
        longest = max(map(display_width, texts))
        figure.set_figwidth(5.5 + columns * (0.5 + 0.065 * longest))
    legend = figure.legend(
        handles, ["x"] * len(handles), fontsize=8, frameon=False,
        loc="outside lower center" if below else "outside right upper",
        ncols=4 if below else max(columns, 1),
    )  # fmt: skip
    for entry, text in zip(legend.get_texts(), texts, strict=True):
        entry.set_text(text)
    if not any(names):  # distances in both directions are of one kind
        # Once the axes have their size: each step of the layout would widen the limits.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        axes.set_aspect("equal", adjustable="datalim")
    return figure


#: Up to this many classes a cell has room for share and count, and for zeros.
_ROOMY = 10
#: Up to this many classes a cell has room for text at all.
_READABLE = 60
_LARGEST_SIDE = 26.0
#: Label cells that fit below a roomy column side by side.
_UPRIGHT = 10


def draw_confusion(
    truth: Sequence[str],
    predicted: Sequence[str],
    classes: Sequence[str],
    path: str | os.PathLike[str],
    *,
    split: str = "",
) -> Path:
    """Draw the confusion matrix: rows are true classes, cells shares of the row.

    Right predictions are blue, wrong ones orange, the darker the larger the share. Each cell
    shows its share in per cent and its count (without zeros above 10 classes, shading alone
    above 60). A class without a true row is left white.

    Args:
        truth: N true classes.
        predicted: N predicted classes.
        classes: their order. Classes that appear only in the data follow, sorted.
        path: PNG to write.
        split: what the rows are called, for the title.

    Raises:
        DataError: when the numbers of true and predicted classes differ.
        MissingExtraError: without the extra `plots`.
        RunError: when the file cannot be written.
    """
    names, counts = count_pairs(truth, predicted, classes)
    side = len(names)
    cell = 0.85 if side <= _ROOMY else 0.45 if side <= _READABLE else 0.2
    extent = min(max(side * cell, 2.0), _LARGEST_SIDE)
    figure = new_figure(extent + 2.4, extent + 2.0)
    axes = figure.add_subplot()
    total = int(counts.sum())
    if not side:
        note(axes, "no classes to draw")
        return save(figure, path)
    rows = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, rows, out=np.zeros(counts.shape), where=rows > 0)
    # From white towards the full colour, so that a share reads the same in both.
    hues = np.where(np.eye(side, dtype=bool)[:, :, None], _rgb(BLUE), _rgb(ORANGE))
    colours = 1 - shares[:, :, None] * (1 - hues)
    axes.imshow(colours, interpolation="nearest")
    axes.set_xticks(np.arange(side - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(side - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5 if side <= _READABLE else 0.3)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_color("0.8")
    texts = [label_text(name, number=number, among=names) for number, name in enumerate(names, 1)]
    turned = side > _ROOMY or any(display_width(text) > _UPRIGHT for text in texts)
    small = min(9.0, max(2.0, 60 * extent / side))
    axes.set_xticks(range(side), labels=texts, rotation=90 if turned else 0, fontsize=small)
    axes.set_yticks(range(side), labels=texts, fontsize=small)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    accuracy = f", accuracy {np.trace(counts) / total:.3f}" if total else ""
    rows_of = f"{split}, " if split else ""
    axes.set_title(f"Share of each true class\n{rows_of}N = {total}{accuracy}", fontsize=10)
    if side > _READABLE:
        return save(figure, path)
    for i, j in np.argwhere(counts > 0 if side > _ROOMY else rows.repeat(side, axis=1) > 0):
        share = shares[i, j]
        axes.text(
            j, i, f"{share:.0%}\n{counts[i, j]}", ha="center", va="center",
            fontsize=10 if side <= _ROOMY else 6.5, color=text_colour(colours[i, j]),
        )  # fmt: skip
    return save(figure, path)


def count_pairs(
    truth: Sequence[str], predicted: Sequence[str], classes: Sequence[str]
) -> tuple[list[str], np.ndarray]:
    """Class names in order and counts `[C, C]`: row true, column predicted."""
    if len(truth) != len(predicted):
        raise DataError(
            f"confusion matrix: found {len(truth)} true and {len(predicted)} predicted classes: "
            "expected as many of both; give one prediction for each row"
        )
    true, guessed = [str(label) for label in truth], [str(label) for label in predicted]
    given = dict.fromkeys(str(name) for name in classes)
    names = [*given, *sorted({*true, *guessed} - given.keys())]
    place = {name: at for at, name in enumerate(names)}
    counts = np.zeros((len(names), len(names)), dtype=np.int64)
    np.add.at(counts, ([place[x] for x in true], [place[x] for x in guessed]), 1)
    return names, counts


def _rgb(colour: str) -> np.ndarray:
    return np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])


def text_colour(background: Sequence[float]) -> str:
    """Black or white, whichever stands out more on an RGB background (WCAG 2, 1.4.3)."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in background[:3])
    luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b
    return "white" if (1.05 / (luminance + 0.05)) > ((luminance + 0.05) / 0.05) else "black"


@dataclass(frozen=True)
class _Line:
    key: str
    name: str
    style: str
    colour: str
    marker: str


@dataclass(frozen=True)
class _Panel:
    name: str
    lines: tuple[_Line, ...]


#: The keys are those of the trainer's history.
_PANELS = (
    _Panel("loss", (_Line("loss", "training loss", "-", BLUE, "o"),)),
    _Panel("dev score", (_Line("dev_score", "dev probe score", "-", BLUE, "o"),)),
    _Panel(
        "cosine, share",
        (
            _Line("positive_similarity", "mean cosine of positives", "-", BLUE, "o"),
            _Line("negative_similarity", "mean cosine of negatives", "--", ORANGE, "s"),
            _Line("kept", "share of negatives kept", ":", "0.45", "^"),
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
            `negative_similarity`, `kept`. Keys that are missing, empty or not finite leave
            gaps; a panel without any value is left out.
        path: PNG to write.
        chance: loss of an encoder that knows nothing (log 2 for SuperLoss), a dashed line.

    Raises:
        MissingExtraError: without the extra `plots`.
        RunError: when the file cannot be written.
    """
    epochs, drawn = curve_panels(history)
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
            _draw_chance(axes, _value(chance))
        axes.set_ylabel(panel.name)
        axes.grid(color="0.9", linewidth=0.6)
        axes.legend(fontsize=8, loc="best")
    _whole_epochs(stack[-1], epochs)
    return save(figure, path)


def first_stage(history: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Epochs of the first member's first stage: losses of two stages have no scale in common."""
    first = (1, "1")  # as history.csv has it
    return [
        row for row in history if row.get("member", 1) in first and row.get("stage", 1) in first
    ]


def curve_panels(
    history: Sequence[Mapping[str, Any]],
) -> tuple[list[float], list[tuple[_Panel, list[tuple[_Line, list[float]]]]]]:
    """The epochs, and each panel with its lines and their values, NaN for gaps.

    Left out are lines without a value, panels without a line, and a share of negatives that
    stays at 1: nothing was mined.
    """
    epochs = [_value(row.get("epoch"), at + 1.0) for at, row in enumerate(history)]
    panels = []
    for panel in _PANELS:
        lines = [(line, ys) for line in panel.lines if (ys := _series(history, line.key))]
        mined = [(line, ys) for line, ys in lines if "kept" not in line.key or min(ys) < 1]
        if len(mined) < len(lines):
            panel = replace(panel, name=panel.name.removesuffix(", share"))
        if mined:
            panels.append((panel, mined))
    return epochs, panels


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


def _series(history: Sequence[Mapping[str, Any]], key: str) -> list[float]:
    """The values of a key with NaN for gaps; empty when it has none."""
    values = [_value(row.get(key)) for row in history]
    return values if any(map(math.isfinite, values)) else []


def _value(given: Any, default: float = math.nan) -> float:
    try:
        value = float(given)
    except (TypeError, ValueError):
        return default
    return value if math.isfinite(value) else default
