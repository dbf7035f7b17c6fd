"""Draw the README's picture: the map of the sample's test sentences, from a run of `make demo`.

    python scripts/readme_figure.py runs/demo docs/figures/sample_map.png

The background is transparent and every colour has contrast on white and on black, so that one
file serves light and dark pages.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from superconext import load
from superconext.data.reading import read_labelled
from superconext.report.figures import FONT, label_text
from superconext.report.run_figures import place

INK = "#757d85"
MARKS = {"negative": ("v", "#d64a22"), "neutral": ("s", "#7c6bd0"), "positive": ("o", "#0f8a70")}
#: How many sentences of each class are written beside their points.
WRITTEN = 2
LONGEST = 18
SIZE, DPI = (8.4, 4.2), 130


def roomiest(points: np.ndarray, candidates: np.ndarray, taken: list[int]) -> int:
    """The candidate with the most room above it, away from sentences written already."""
    span = np.ptp(points, axis=0)
    scaled = points / span * [1.0, 2.5]
    middles = scaled[candidates] + [0.0, 0.12]
    along = np.concatenate([middles[:, None] + [[x, 0.0]] for x in np.linspace(-0.12, 0.12, 7)], 1)
    room = np.linalg.norm(along[:, :, None] - scaled, axis=3).min(axis=(1, 2))
    if taken:
        gaps = (scaled[candidates][:, None] - scaled[taken]) * [0.6, 1.0]
        room = np.where(np.linalg.norm(gaps, axis=2).min(axis=1) < 0.3, -1.0, room)
    return int(candidates[room.argmax()])


def draw(run: Path, test: Path, out: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.text import Text

    rows = read_labelled(test)
    model = load(run)
    points, _, _ = place(model.transform(rows.texts))
    truth = np.array(rows.labels)
    wrong = truth != model.predict(rows.texts)

    short = np.array([len(text) <= LONGEST for text in rows.texts])

    figure = Figure(figsize=SIZE, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    taken: list[int] = []
    for name, (marker, colour) in MARKS.items():
        own = truth == name
        axes.scatter(
            *points[own].T, s=34, marker=marker, color=colour, linewidths=0,
            label=f"{name} ({own.sum()})",
        )  # fmt: skip
        for _ in range(WRITTEN):
            taken.append(roomiest(points, np.flatnonzero(own & ~wrong & short), taken))
            axes.annotate(
                label_text(rows.texts[taken[-1]]), points[taken[-1]], (0, 6), ha="center",
                textcoords="offset points", fontsize=9, color=colour,
            )  # fmt: skip
    axes.scatter(
        *points[wrong].T, s=110, facecolors="none", edgecolors=INK, linewidths=1.2,
        label=f"misclassified ({wrong.sum()})",
    )  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
    axes.margins(0.1)
    for spine in axes.spines.values():
        spine.set_color(INK)
    figure.legend(loc="outside upper center", ncols=4, frameon=False, labelcolor=INK, fontsize=10)
    for text in figure.findobj(Text):
        text.set_fontfamily(FONT)
    figure.savefig(out, dpi=DPI, transparent=True, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, help="run folder of `make demo`")
    parser.add_argument("out", type=Path, help="PNG to write")
    parser.add_argument("--test", type=Path, default=Path("data/sample/test.tsv"))
    arguments = parser.parse_args()
    draw(arguments.run, arguments.test, arguments.out)


if __name__ == "__main__":
    main()
