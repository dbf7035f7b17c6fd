"""Common parts of figures: an empty sheet, text from users in any script, marks, the file.

Figures are built with matplotlib's object API on the Agg canvas. Nothing here touches
pyplot, so drawing is safe without a display and from several threads.

Arabic letters are joined and right-to-left text is ordered by matplotlib itself, from 3.11 on
(HarfBuzz and SheenBidi through libraqm; release notes of 3.11).
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superconext.core.errors import MissingExtraError, RunError
from superconext.core.files import atomic_write
from superconext.report.table import clean, clip

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Comes with matplotlib and has Arabic, Latin, Tifinagh, Greek and Cyrillic letters.
FONT = "DejaVu Sans"

_SHAPES_FROM = (3, 11)
DPI = 150
#: What figures are written as, and what of its metadata is left out.
FORMATS: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
_LABEL_CELLS = 28

#: Right and wrong, apart for every kind of colour vision (Okabe and Ito, 2008).
BLUE, ORANGE = "#0072b2", "#d55e00"

#: Of classes, in this order; `--c0` to `--c7` of `template/page.css` are the same on paper.
COLOURS = (
    BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5cc0", "#85827a",
)  # fmt: skip
#: What classes of such names are drawn in: good is blue, bad orange, what is neither grey.
_MEANING = {"pos": 0, "posit": 0, "neg": 1, "negat": 1, "neu": 7, "neutr": 7}

#: Filled shapes that stay apart at the size of a point. Their number and that of the colours
#: have no common divisor, so 88 classes get 88 different marks.
_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "<", "p", ">", "*")


def available() -> bool:
    """Whether matplotlib is there in a version that shapes Arabic. Does not import it."""
    if importlib.util.find_spec("matplotlib") is None:
        return False
    numbers = tuple(map(int, version("matplotlib").split(".")[:2]))
    return numbers >= _SHAPES_FROM


def new_figure(width: float, height: float) -> Figure:
    """An empty white figure of `width` by `height` inches on its own Agg canvas.

    Raises MissingExtraError without matplotlib.
    """
    if not available():
        raise MissingExtraError("drawing figures", "plots")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def label_text(label: str, note: str = "") -> str:
    """A user's label for a figure: one line, shortened, then `note`, no formulas."""
    # matplotlib reads text between two dollar signs as a formula and may fail on it.
    return (clip(clean(label), _LABEL_CELLS) + note).replace("$", r"\$")


def class_colours(names: Sequence[str]) -> list[int]:
    """The place in `COLOURS` of each class: what its name means, or the next that is free."""
    meant = [_MEANING.get(name.strip().lower()[:5]) for name in names]
    free = [at for at in range(len(COLOURS)) if at not in meant] or list(range(len(COLOURS)))
    others = itertools.cycle(free)
    return [next(others) if at is None else at for at in meant]


def class_marks(names: Sequence[str]) -> list[tuple[str, str]]:
    """Marker and colour of each class; the shapes alone tell eleven apart."""
    return [(mark(at)[0], COLOURS[colour]) for at, colour in enumerate(class_colours(names))]


def mark(index: int) -> tuple[str, str]:
    """Marker and colour of the curve `index`; both change each step."""
    return _MARKERS[index % len(_MARKERS)], COLOURS[index % len(COLOURS)]


def note(axes: Axes, text: str) -> None:
    """Leave the axes empty but for a sentence that says why."""
    axes.set_xticks([])
    axes.set_yticks([])
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write `figure` in the format of the path's ending, and return the path.

    The formats are `FORMATS`; a PNG has 150 dots an inch. No date is written, so the same figure
    is the same file. Raises RunError when the file cannot be written.
    """
    from matplotlib.text import Text

    # The caller's own matplotlib settings may name a font without Arabic letters.
    for text in figure.findobj(Text):
        text.set_fontfamily(FONT)
    with replacing(path) as temporary:
        kind = Path(path).suffix[1:] or "png"
        figure.savefig(temporary, format=kind, dpi=DPI, metadata=FORMATS[kind])
    return Path(path)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A path beside `path` to write to; it takes the place of `path` if all went well.

    A reader sees the old file or the new one, never half of one. Missing folders are
    made. Raises RunError when the system refuses.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(target) as temporary:
            yield temporary
    except OSError as error:
        raise RunError(
            f"{target}: cannot be written ({error.strerror or error}): expected a folder with "
            "room and leave to write; choose another place"
        ) from error
