"""Figures: the registry of them, what they are drawn from, and the drawing of all of a kind.

A figure says by its `context` what it is drawn from: the results of a run (`RunContext`), a
comparison of systems (`ComparisonContext`) or curves over a parameter (`BandsContext`). Every
run and every experiment draws all registered figures of its kind, as PNG and what else is asked.

Figures need the extra `plots`; matplotlib is imported when the first one is drawn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from superconext.core.errors import RunError
from superconext.core.progress import Progress
from superconext.core.registry import Entry, Registry
from superconext.report.canvas import available

if TYPE_CHECKING:
    import numpy as np

    from superconext.report.run_figures import Layout

__all__ = [
    "FIGURES",
    "UNAVAILABLE",
    "BandsContext",
    "Chosen",
    "ComparisonContext",
    "Figure",
    "Level",
    "RunContext",
    "available",
    "draw_figures",
    "register",
]

#: Said once where figures are left out.
UNAVAILABLE = (
    "figures left out: drawing needs a package that is not installed: "
    "pip install 'superconext[plots]'"
)


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

    @abstractmethod
    def draw(self, context: Any, path: Path) -> None:
        """Write the figure to `path`, whose ending is the format (`canvas.save` reads it).

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
)

#: Adds a figure: see `Registry.register`.
register = FIGURES.register


def draw_figures(
    contexts: Mapping[Path, Any], progress: Progress, formats: Sequence[str] = ("png",)
) -> list[Path]:
    """Draw every registered figure of each context into its folder; returns the files.

    Without the extra `plots` nothing is drawn, which is reported once. A figure that fails is
    left out with a warning.

    Args:
        contexts: by the folder to draw into, which is made.
        formats: endings of the files, of `canvas.FORMATS`.

    Raises RunError where a file cannot be written.
    """
    if not available():
        progress.say(f"note: {UNAVAILABLE}")
        return []
    drawn = []
    with progress.bar("drawing figures"):
        for folder, context in contexts.items():
            for name in FIGURES:
                try:
                    figure = FIGURES.get(name)()
                    if not isinstance(context, figure.context):
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
