"""The confusion matrix: which class is taken for which."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from superconext.core.errors import DataError
from superconext.report.canvas import label_text, new_figure, note, save
from superconext.report.table import display_width

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
) -> Path:
    """Draw the confusion matrix: rows are true classes, cells shares of the row.

    Each cell shows its share in per cent and its count (without zeros above 10 classes,
    shading alone above 60). A class without a true row is left white.

    Args:
        truth: N true classes.
        predicted: N predicted classes.
        classes: their order. Classes that appear only in the data follow, sorted.
        path: PNG to write.

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
    centres = np.arange(side)
    cells = axes.pcolormesh(
        centres, centres, shares, cmap="Greys", vmin=0.0, vmax=1.0,
        shading="nearest", edgecolors="0.8", linewidth=0.5,
    )  # fmt: skip
    axes.set_aspect("equal")
    axes.invert_yaxis()
    texts = [label_text(name) for name in names]
    turned = side > _ROOMY or any(display_width(text) > _UPRIGHT for text in texts)
    small = min(9.0, max(2.0, 60 * extent / side))
    axes.set_xticks(range(side), labels=texts, rotation=90 if turned else 0, fontsize=small)
    axes.set_yticks(range(side), labels=texts, fontsize=small)
    axes.set_xlabel("predicted class")
    axes.set_ylabel("true class")
    accuracy = f", accuracy {np.trace(counts) / total:.3f}" if total else ""
    axes.set_title(f"Share of each true class\nN = {total}{accuracy}", fontsize=10)
    if side > _READABLE:
        figure.colorbar(cells, ax=axes, shrink=0.3, aspect=40, label="share of the true class")
        return save(figure, path)
    for i, j in np.argwhere(counts > 0 if side > _ROOMY else rows.repeat(side, axis=1) > 0):
        share = shares[i, j]
        axes.text(
            j, i, f"{share:.0%}\n{counts[i, j]}", ha="center", va="center",
            fontsize=10 if side <= _ROOMY else 6.5, color=text_colour(cells.cmap(share)),
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


def text_colour(background: Sequence[float]) -> str:
    """Black or white, whichever stands out more on an RGB background (WCAG 2, 1.4.3)."""
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in background[:3])
    luminance = 0.2126 * r + 0.7152 * g + 0.0722 * b
    return "white" if (1.05 / (luminance + 0.05)) > ((luminance + 0.05) / 0.05) else "black"
