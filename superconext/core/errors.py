"""Errors by kind: data, configuration, vectors, runs, training, missing extras.

Each error is caught both as the project's own (`SuperConTextError`) and as the builtin
a library user would expect. A message has three parts: what was found, what was
expected, what to do next.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import Any

#: What the extra `train` brings, by the names that Python imports.
TRAINING = (
    "torch", "gensim", "sklearn", "scipy", "joblib", "safetensors", "threadpoolctl", "jinja2",
)  # fmt: skip


class SuperConTextError(Exception):
    """Base of every error this project raises on purpose."""


class DataError(SuperConTextError, ValueError):
    """A labelled file, or the rows in it, cannot be used."""


class LineError(DataError):
    """A line or row of a file cannot be read; whoever reads it may leave it out."""


class RowsError(DataError):
    """The columns, rows or labels of a file that can be read are not as they have to be."""


class ColumnError(RowsError):
    """Which columns have the texts and the labels cannot be told."""


class ConfigError(SuperConTextError, ValueError):
    """A parameter has an unknown name or an impossible value."""


class UnregisteredError(ConfigError):
    """A name is in no registry, or what is registered under it cannot be used.

    kind, name: what is looked for, "" for the latter. variable: the environment variable that may
    name its file.
    """

    kind = name = variable = ""


class OptionError(ConfigError):
    """An option of the objective or of the encoder is unknown, or its value cannot be used."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class VectorsError(SuperConTextError, ValueError):
    """A word vector file cannot be read."""


class RunError(SuperConTextError, ValueError):
    """A run folder is missing, incomplete or damaged, or stands in the way."""


class TrainingError(SuperConTextError, RuntimeError):
    """Training cannot continue, such as a loss that is not finite."""


class MissingExtraError(SuperConTextError, ImportError):
    """A feature needs a package that is not installed, or that cannot be imported.

    Raised while an ImportError is handled, it says which of the two that tells.
    """

    def __init__(self, feature: str, extra: str, package: str = "a package that") -> None:
        cause, lacking, update = sys.exception(), "is not installed", ""
        if isinstance(cause, ImportError) and not isinstance(cause, ModuleNotFoundError):
            lacking = f"cannot be imported ({' '.join(str(cause).split())})"
            update = "--upgrade "
        super().__init__(
            f"{feature} needs {package} {lacking}: pip install {update}'superconext[{extra}]', "
            f"or in a checkout pip install -c constraints.txt -e '.[{extra}]'"
        )
        self.extra = extra


@contextmanager
def needs_training(feature: str, extra: str = "train") -> Iterator[None]:
    """Inside the block the lack of a package of the extra `train` is a MissingExtraError, which
    names that extra or another that the feature needs too."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in TRAINING:
            raise
        raise MissingExtraError(feature, extra, f"{package}, which") from None


class StoppedEarly(SuperConTextError):
    """Work was interrupted, and what it has done so far is kept."""


def suggestion(name: object, known: Iterable[str], otherwise: str = "take one of these") -> str:
    """Advice at the end of a message on an unknown name: the nearest known one, if any is near."""
    close = nearest(name, known)
    return f"did you mean {close!r}?" if close else otherwise


def nearest(name: object, known: Iterable[str]) -> str:
    """The known name most like an unknown one, "" where none is near."""
    import difflib

    return next(iter(difflib.get_close_matches(str(name), list(known), n=1)), "")


#: What a terminal obeys in place of showing it, or what turns the order of other characters round.
_OBEYED = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def for_terminal(text: str) -> str:
    r"""The text with what a terminal would obey written as in JSON, such as \u001b for Escape.

    >>> for_terminal("zwin\x1b[2J")
    'zwin\\u001b[2J'
    """
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def plural(number: float, what: str) -> str:
    """A number and what it counts: "1 row", "2 rows", "2 classes", "2 copies", "0.5 minutes".

    >>> plural(1, "row"), plural(2, "class"), plural(0, "copy"), plural(1.0, "minute")
    ('1 row', '2 classes', '0 copies', '1 minute')
    """
    if isinstance(number, float):
        return plural(int(number), what) if number.is_integer() else f"{number:g} {what}s"
    if number == 1:
        return f"{number} {what}"
    if what.endswith("py"):
        return f"{number} {what[:-1]}ies"
    return f"{number} {what}{'es' if what.endswith(('s', 'tch')) else 's'}"


def duration(minutes: float) -> str:
    """Minutes in words; in seconds where they are a few and no whole number.

    >>> duration(10 / 60), duration(1.5), duration(5.0), duration(0.0)
    ('10 seconds', '90 seconds', '5 minutes', '0 minutes')
    """
    if minutes < 2 and not float(minutes).is_integer():
        return plural(round(60.0 * minutes, 2), "second")
    return plural(round(float(minutes), 2), "minute")


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first few names, and how many more there are.

    >>> listed(["a", "b", "c"], 3), listed(["a", "b", "c", "d", "e"], 3)
    ('a, b, c', 'a, b, c and 2 more')
    """
    more = f" and {len(names) - most} more" * (len(names) > most)
    return ", ".join(names[:most]) + more


def check_texts(texts: Iterable[str], some: bool = True) -> list[str]:
    """The texts as a list of str: of a list, a Series, an array `[N]`, any iterable of str.

    some: whether there must be one at least. Raises DataError where there is none then, for a bare
    string, for what has columns or no order, and for bytes, None and numbers among the rows.
    """
    if isinstance(texts, (str, bytes)):  # it would be read letter by letter
        raise DataError("found one string; expected a list of texts: put it in a list")
    dimensions = getattr(texts, "ndim", 1)
    if dimensions != 1:
        raise DataError(
            f"found texts of shape {getattr(texts, 'shape', dimensions)}; expected one dimension: "
            "take the column of texts, such as frame['text']"
        )
    if isinstance(texts, (Mapping, AbstractSet)) or not isinstance(texts, Iterable):
        raise DataError(f"found {type(texts).__name__}; expected a list of texts: pass one")
    rows: list[Any] = list(texts)
    for position, text in enumerate(rows):
        if isinstance(text, float) and text != text:
            raise DataError(f"text {position} is missing (NaN): drop the row")
        if not isinstance(text, str):
            raise DataError(
                f"text {position} is {type(text).__name__}; expected str: convert or drop it"
            )
    if some and not rows:
        raise DataError("found no texts; expected at least one")
    return [str(text) for text in rows]
