"""Figures: the registry of them, what they are drawn from, and the drawing of all of a kind.

A figure says by its `context` what it is drawn from: the results of a run (`RunContext`), a
comparison of systems (`ComparisonContext`) or curves over a parameter (`BandsContext`). Every
run and every experiment draws all registered figures of its kind, as PNG and what else is asked.

Figures need the extra `plots`; matplotlib is imported when the first one is drawn.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import unicodedata
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from superconext.core.errors import MissingExtraError, RunError, plural
from superconext.core.files import atomic_write
from superconext.core.progress import Progress
from superconext.core.registry import Entry, Registry
from superconext.report.table import clean, clip, isolated

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

    from superconext.report.run_figures import Layout

#: Comes with matplotlib and has Arabic, Latin, Tifinagh, Greek and Cyrillic letters. Letters that
#: it lacks are drawn in an installed font that has them.
FONT = "DejaVu Sans"
#: Comes with matplotlib and has a box for every letter.
_BOXES = "Last Resort"

_SHAPES_FROM = (3, 11)
_NEEDED = f"matplotlib {'.'.join(map(str, _SHAPES_FROM))} or newer, which"
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


def new_figure(width: float, height: float) -> Sheet:
    """An empty white figure of `width` by `height` inches on its own Agg canvas.

    Raises MissingExtraError without matplotlib.
    """
    if not available():
        raise MissingExtraError("drawing figures", "plots", _NEEDED)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Sheet

    figure = Sheet(figsize=(width, height), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


class LettersMissing(UserWarning):
    """No installed font has the letters of a label."""

    def __init__(self, label: str) -> None:
        super().__init__(f"no installed font has the letters of {label}: install Noto fonts")
        self.label = label


def label_text(
    label: str, note: str = "", number: int | None = None, among: Collection[str] = ()
) -> str:
    """A user's label for a figure: one line, shortened, then `note`, no formulas.

    Where no installed font has its letters it is "class" and its `number`, or has question marks
    for them, with a `LettersMissing`. It has its number also where one of the labels `among` which
    it stands is the same when shortened.
    """
    shown = clip(clean(label), _LABEL_CELLS)
    if any(label != other and clip(clean(other), _LABEL_CELLS) == shown for other in among):
        shown = f"{clip(shown, _LABEL_CELLS - 4)} #{number}"
    if missing := _letters(shown) - _fonts(_letters(shown)).keys():
        warnings.warn(LettersMissing(shown), stacklevel=2)
        marked = "".join("?" if letter in missing else letter for letter in shown)
        shown = marked if number is None else f"class {number}"
    # matplotlib reads text between two dollar signs as a formula and may fail on it.
    return ((isolated(shown) if note else shown) + note).replace("$", r"\$")


def _letters(text: str) -> frozenset[str]:
    """The characters of a text that are seen."""
    unseen = ("Cc", "Cf", "Cs", "Zs", "Zl", "Zp")
    kinds = ((one, unicodedata.category(one)) for one in text if not "\ufe00" <= one <= "\ufe0f")
    return frozenset(one for one, kind in kinds if kind not in unseen)


@lru_cache(maxsize=256)
def _fonts(letters: frozenset[str]) -> dict[str, str]:
    """The font that each of the letters is drawn in; without those that no installed font has."""
    from matplotlib.font_manager import findfont, fontManager

    has = {letter: FONT for letter in letters if ord(letter) in _codes(findfont(FONT))}
    if len(has) == len(letters):
        return has
    plain = {
        (entry.name, entry.fname)
        for entry in fontManager.ttflist
        if entry.name != FONT
        and entry.style == "normal"
        and entry.weight in (400, "normal", "regular")
    }
    for name, path in sorted(plain, key=lambda one: (not one[0].startswith("Noto Sans"), one)):
        if not name.startswith(_BOXES):
            new = {one for one in letters - has.keys() if ord(one) in _codes(path)}
            has |= dict.fromkeys(new, name)
    return has


@cache
def _codes(path: str) -> frozenset[int]:
    """The characters that a font file has."""
    from matplotlib.font_manager import get_font

    try:
        return frozenset(get_font(path).get_charmap())
    except (OSError, RuntimeError):  # what is removed or damaged has none
        return frozenset()


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


def save(figure: Sheet, path: str | os.PathLike[str]) -> Path:
    """Write `figure` in the format of the path's ending, and return the path.

    The formats are `FORMATS`; a PNG has 150 dots an inch. No date is written, so the same figure
    is the same file. Raises RunError when the file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.text import Text

    # The caller's own matplotlib settings may name a font without Arabic letters.
    for text in figure.findobj(Text):
        fonts = _fonts(_letters(text.get_text())).values()
        text.set_fontfamily([FONT, *sorted({*fonts} - {FONT})])
    # Without a salt the names of an SVG's parts are drawn at random.
    with replacing(path) as temporary, rc_context({"svg.hashsalt": "superconext"}):
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


#: Said once where figures are left out.
UNAVAILABLE = f"figures left out: {MissingExtraError('drawing', 'plots', _NEEDED)}"


@dataclass(frozen=True)
class RunContext:
    """What the figures of a run are drawn from: its results on the reported split.

    Attributes:
        features: frozen sentence vectors float32 `[N, d]`.
        labels: N true classes.
        predicted: N predicted classes.
        classes: the model's classes in order; `labels` may hold others.
        history: a mapping for each epoch, as the rows of history.csv.
        seed: of the run.
        chance: loss of an encoder that knows nothing; None where the objective has no such level.
        split: what the rows are called.
    """

    features: np.ndarray
    labels: Sequence[str]
    predicted: Sequence[str]
    classes: Sequence[str]
    history: Sequence[Mapping[str, Any]]
    seed: int = 0
    chance: float | None = None
    split: str = ""

    @cached_property
    def layout(self) -> Layout:
        """The places of the rows on a map, found once for all that draw it."""
        from superconext.report.run_figures import lay_out

        return lay_out(self.features, seed=self.seed)


@dataclass(frozen=True)
class ComparisonContext:
    """What the figures of a comparison are drawn from.

    Attributes:
        panels: by data set, the metric of each fit (fractions in [0, 1]) by system.
        file_name: of the built-in figure, without its ending.
        metric: what the values are, for the axis.
        reference: the system that the others are compared with.
        significant: systems significantly better than it, by data set.
    """

    panels: Mapping[str, Mapping[str, Sequence[float]]]
    file_name: str = "compare"
    metric: str = "weighted F1"
    reference: str | None = None
    significant: Mapping[str, Collection[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Level:
    """Scores that do not depend on the parameter: a horizontal line at their mean."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True)
class Chosen:
    """The value that was chosen, on which curve, and its scores on test."""

    curve: str
    value: Any
    test: Sequence[float]


@dataclass(frozen=True)
class BandsContext:
    """What figures of scores over a parameter are drawn from.

    Attributes:
        curves: the scores of each fit, fractions in [0, 1], by the parameter's value, by the
            curve's name. Values that are no numbers stand side by side in the order in which
            they come.
        xlabel, ylabel: of the axes.
        file_name: of the built-in figure, without its ending.
        levels: scores without the parameter.
        chosen: the value that was chosen on dev, the only one with scores on test.
    """

    curves: Mapping[str, Mapping[Any, Sequence[float]]]
    xlabel: str
    ylabel: str
    file_name: str = "bands"
    levels: Sequence[Level] = ()
    chosen: Chosen | None = None


class Figure(ABC):
    """Base of all figures.

    Attributes:
        context: the class it is drawn from: RunContext, ComparisonContext or BandsContext.
    """

    context: ClassVar[type]

    def shows(self, context: Any) -> bool:
        """Whether there is something to draw in this context, by default in any of its class."""
        return isinstance(context, self.context)

    @abstractmethod
    def draw(self, context: Any, path: Path) -> None:
        """Write the figure to `path`, whose ending is the format (`save` reads it).

        Raises RunError where the file cannot be written.
        """

    def file_name(self, name: str, context: Any) -> str:
        """The file's name without its ending; by default the figure's name in the registry."""
        return name


_HERE = "superconext.report"
FIGURES: Registry[type[Figure]] = Registry(
    "figure",
    f"{_HERE}.figures:Figure",
    {
        "map": Entry(f"{_HERE}.run_figures:SentenceMap", "sentence vectors in two dimensions"),
        "confusion": Entry(f"{_HERE}.run_figures:Confusion", "true and predicted classes"),
        "curves": Entry(f"{_HERE}.run_figures:Curves", "loss, dev score and similarities"),
        "compare": Entry(f"{_HERE}.experiment_figures:Comparison", "every fit of every system"),
        "bands": Entry(f"{_HERE}.experiment_figures:Bands", "scores over a parameter's values"),
    },
    variable="SUPERCONEXT_FIGURES",
    home=__name__,
)

#: Adds a figure: see `Registry.register`.
register = FIGURES.register


def draw_figures(
    contexts: Mapping[Path, Any], progress: Progress, formats: Sequence[str] = ("png",)
) -> list[Path]:
    """Draw what every registered figure shows of each context into its folder; returns the files.

    Without the extra `plots` nothing is drawn, which is reported once. A figure that fails is
    left out with a warning.

    Args:
        contexts: by the folder to draw into, which is made.
        formats: endings of the files, of `FORMATS`.

    Raises RunError where a file cannot be written.
    """
    if not available():
        progress.note(UNAVAILABLE)
        return []
    drawn = []
    with progress.bar("drawing figures"), _told_of_letters(progress):
        for folder, context in contexts.items():
            for name in FIGURES:
                try:
                    figure = FIGURES.get(name)()
                    if not figure.shows(context):
                        continue
                    folder.mkdir(parents=True, exist_ok=True)
                    for kind in formats:
                        path = folder / f"{figure.file_name(name, context)}.{kind}"
                        figure.draw(context, path)
                        drawn.append(path)
                except (RunError, OSError):
                    raise
                except Exception as error:  # a finished training must not be lost to a figure
                    progress.warn(f"figure {name} is left out ({type(error).__name__}: {error})")
    return drawn


@contextmanager
def _told_of_letters(progress: Progress) -> Iterator[None]:
    """One note of the labels whose letters no installed font has, and no warnings of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LettersMissing)
        yield
    labels: dict[str, None] = {}
    for one in caught:
        if isinstance(one.message, LettersMissing):
            labels[one.message.label] = None
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)
    if labels:
        more = f" and {plural(len(labels) - 1, 'other label')}" if len(labels) > 1 else ""
        progress.note(
            f"no installed font has the letters of {next(iter(labels))}{more}, so the "
            "figures have numbers or question marks for them: install Noto fonts"
        )
