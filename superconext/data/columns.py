"""The text column and the label column of a table.

They are found by name (`text` and `label`, else the only usual name such as `tweet` and
`sentiment`), by 1-based number, or, in a table of two columns without a header, by looking: labels
repeat, sentences do not.

A first row is a header when a column is asked for by name (digits may be one), when one of its
cells is `text` or `label`, when the cell in a column asked for by number is a usual column name,
when all of its cells are, when of more than two cells one is a usual name of the text and one of
the label, or when it is unlike all others (`_header_by_shape`). Anything else is an example.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from superconext.core.errors import ColumnError, RowsError
from superconext.core.progress import WARNING
from superconext.data.lines import shown, some_shown

ColumnSpec = str | int | None  # a name, a 1-based number ("2" or 2), or the default

TEXT_NAMES = frozenset(
    {"text", "texts", "texte", "sentence", "sentences", "phrase", "tweet", "review", "comment"}
    | {"commentaire", "avis", "content", "message", "document", "post", "body", "utterance"}
    | {"full_text", "tweet_text", "comment_text", "review_text", "comment text"}
    | {"النص", "نص", "الجملة", "جملة", "التغريدة", "تغريدة", "التعليق", "تعليق"}
)
LABEL_NAMES = frozenset(
    {"label", "labels", "class", "classe", "category", "sentiment", "polarity", "target", "tag"}
    | {"étiquette", "etiquette", "catégorie", "categorie", "polarité"}
    | {"annotation", "emotion", "stance", "topic", "intent", "score", "rating", "gold"}
    | {"التصنيف", "تصنيف", "الفئة", "فئة", "المشاعر"}
)
_USUAL = {"text": TEXT_NAMES, "label": LABEL_NAMES}
#: What a file without labels is good for.
WITHOUT_LABELS = (
    "a file without labels is for train --unlabelled, predict, or suggest, which chooses the rows "
    "to label first"
)
#: Names of a column that tells whose label a row has, and of columns with one annotator's labels.
ANNOTATOR_NAMES = frozenset(
    {"annotator", "annotator_id", "annotateur", "worker", "worker_id", "rater", "coder", "المعلق"}
)
#: Names of a column that tells where a row is from.
SOURCE_NAMES = ("source", "platform", "corpus", "domain")
_ANNOTATOR = re.compile(r"(?:annotator|annotateur|rater|coder|votant|المعلق)[ _-]?\w{1,8}")
#: Names of columns that tell rows apart, or when and by whom each was written: never labels unless
#: they are asked for.
_ROW_NAMES = frozenset(
    {"", "id", "idx", "index", "no", "uuid", "user", "username", "user_id", "userid", "author"}
    | {"tweet_id", "text_id", "post_id", "comment_id", "date", "datetime", "time", "timestamp"}
    | {"created_at", "created", "url", "link"}
)
#: Names of columns whose cells are numbers that tell rows apart, as row names do.
_ID_NAMES = frozenset(
    {"", "id", "idx", "index", "no", "nr", "num", "number", "n", "n°", "#", "row", "line", "key"}
    | {"numéro", "numero", "ligne", "rang", "unnamed", "unnamed: 0", "tweet_id", "text_id"}
    | {"post_id", "comment_id", "رقم", "الرقم"}
)
_OTHER_NAMES = _ROW_NAMES | {"source", "split", "lang"}
_MOST_LABELS = 1000  # beyond this, a column of a headerless file is not taken for labels
_MOST_TITLES = 20  # rows above a header
_REMARK = re.compile(r"#+(?!\w|#)")  # opens a remark; before a word it opens a hashtag
_COLUMN_NAME = re.compile(r"#|[^\W\d]\S*(?: \S+){0,2}|")
#: Rows from which on it says something that the cells of a column repeat; the shape of the cells
#: decides of fewer.
TELLING_ROWS = 20
_DISTINCT = 0.9  # of the cells of a column, where it is no label unless it is asked for
_MOSTLY = 0.9  # of the labels under a header, where the others are misspelt or new to the run


@dataclass(frozen=True)
class Columns:
    """Where text and label stand (0-based), and whether the first row is a header.

    aside: the label column where it was recognised and is not wanted.
    joined: whether the cells are parts of one sentence that has commas.
    voters: the columns of labels, where each is an annotator's.
    """

    text: int
    label: int | None
    header: bool
    notes: list[str]
    aside: int | None = None
    joined: bool = False
    voters: tuple[int, ...] = ()


@dataclass(frozen=True)
class Known:
    """What a run knows of files like those it was trained on.

    classes: its labels. text, label: names of the columns in its training file, None where that
    had no header. is_word: whether a cell is made of words it was trained on. fold: whether its
    labels were folded (`labels.folded`).
    """

    classes: frozenset[str] = frozenset()
    text: str | None = None
    label: str | None = None
    is_word: Callable[[str], bool] = lambda cell: False
    fold: bool = False

    @classmethod
    def of_model(cls, model: Any) -> Known:
        """What a run, or an export of one, knows: also which cells are made of its words."""
        indexer = model.indexer

        def is_word(text: str) -> bool:
            found = None if indexer is None else indexer.unfamiliar([indexer.tokenizer(text)])
            return found is not None and bool(found[0, 0] == 0)

        return replace(cls.of(model.classes, model.columns), is_word=is_word)

    @classmethod
    def of(cls, classes: Iterable[str], columns: object) -> Known:
        """columns: `Dataset.columns` of the training rows, or what a stranger put in its place."""
        fold = isinstance(columns, Mapping) and columns.get("fold_label_case") is True
        if not isinstance(columns, Mapping) or columns.get("header") is not True:
            columns = {}
        names = [columns.get(key) for key in ("text", "label")]
        text, label = (name if isinstance(name, str) else None for name in names)
        return cls(frozenset(classes), text, label, fold=fold)

    def headings(self, *others: str) -> tuple[str, str]:
        """What to call the columns of labels and texts in a file to write: as in the training file,
        `label` and `text` where that names none, or as one of the others there."""
        label, text = self.label or "label", self.text or "text"
        return ("label", "text") if label == text or {label, text} & {*others} else (label, text)

    def heads(self, line: str, alone: bool = False) -> bool:
        """Whether a line of what may be plain text is the header of a table like the run's own.

        It is where it has the names of both columns, or that of the text among others of one word.
        Of a run whose file had no names it is `text`.

        alone: whether the text column's name by itself is a header too.
        """
        named = self.text is not None and number_of(self.text) is None
        names = _folded(filter(None, (self.text, self.label))) if named else ["text"]
        for mark in "\t,;|":
            cells = _folded(line.split(mark))
            words = len(cells) > 1 and not any(re.search(r"\s", cell) for cell in cells)
            if len(names) == 2 and set(names) <= set(cells):
                return True
            if named and alone and cells == names[:1]:
                return True
            if words and names[0] in cells:
                return True
        return False

    def column(
        self, found: Sequence[str], spec: ColumnSpec, default: str, header: bool | None = True
    ) -> ColumnSpec:
        """The column to ask for among those `found`: the one of the training file, if there."""
        name = self._own(default)
        if spec is not None or name is None or header is False:
            return spec
        return name if name.strip().casefold() in _folded(found) else None

    def called(self, default: str) -> str:
        """The names by which a column is found, for messages."""
        return " or ".join(map(shown, dict.fromkeys(filter(None, (self._own(default), default)))))

    def _own(self, default: str) -> str | None:
        """The name of the column in the training file; None for one that may be a number."""
        name = self.text if default == "text" else self.label
        return None if name is None or number_of(name) is not None else name


def find_columns(
    rows: Sequence[Sequence[str]],
    text_column: ColumnSpec,
    label_column: ColumnSpec,
    source: str,
    labelled: bool = True,
    header: bool | None = None,
    known: Known | None = None,
    inside: str = "",
) -> Columns:
    """Decide for a table of cells; without `labelled` only the text is looked for.

    Args:
        header: whether the first row is one; None to decide.
        known: what a run knows: the names of its training file are taken before usual ones, and
            its labels tell a header.
        inside: the separator's name, where it may be part of the sentences.

    Raises RowsError where a column is not there, or cannot be told from the others.
    """
    first = rows[0]
    if header is not False:
        _refuse_other_separator(first, source)
    wanted = (text_column, label_column)
    return _with_known(rows, wanted, source, labelled, header, known or Known(), inside)


def resolve(
    found: Sequence[str],
    spec: ColumnSpec,
    default: str,
    flag: str,
    source: str,
    known: Known | None = None,
) -> int:
    """0-based place of a column asked for by name or 1-based number among those `found`; `known`:
    what a run knows, for messages.

    Names are compared exactly first, then without regard to case and stray spaces; digits that are
    no name in `found` are a number.
    """
    number = None if spec is None or spec in found else number_of(spec)
    if number is not None:
        if 1 <= number <= len(found):
            return number - 1
        raise ColumnError(
            f"{source}: no column number {number}, found {len(found)} "
            f"({_listed(found)}), counted from 1: change {flag}"
        )
    name = default if spec is None else str(spec)
    folded = _folded(found)
    wanted = name.strip().casefold()
    places = [place for place, cell in enumerate(found) if cell == name]
    places = places or [place for place, cell in enumerate(folded) if cell == wanted]
    if len(places) > 1:
        raise ColumnError(
            f"{source}: column {shown(name)} occurs {len(places)} times, as columns "
            f"{' and '.join(str(place + 1) for place in places)}, expected it once: give its "
            f"number with {flag}, or rename the others"
        )
    if places:
        return places[0]
    several = [cell for cell, low in zip(found, folded, strict=True) if low in _USUAL[default]]
    if spec is None and len(several) > 1:
        raise ColumnError(
            f"{source}: each of {_listed(several)} could be the {default} column, expected one: "
            f"name it with {flag}"
        )
    mend = f"give one of these with {flag}, or rename a column"
    if (spec, default) == (None, "label"):
        mend = f"name the column of labels with {flag}; {WITHOUT_LABELS}"
    none = shown(name) if spec is not None or known is None else known.called(default)
    raise ColumnError(
        f"{source}: no column {none}, found {_listed(found)}"
        f"{_hint(wanted, default, found, folded)}: {mend}"
    )


def class_columns(first: Sequence[str], classes: Sequence[str], source: str) -> tuple[int, ...]:
    """Places of the columns named as the classes. Raises RowsError unless each is there once."""
    names = [cell.strip() for cell in first]
    wanted = [own_name(names, name) for name in classes]
    for name, own in zip(classes, wanted, strict=True):
        if names.count(own) != 1:
            raise RowsError(
                f"{source}: found {names.count(own)} columns {shown(name, 24)} among "
                f"{_listed(first)}, expected one: name a column for each class"
            )
    return tuple(map(names.index, wanted))


def own_name(names: Collection[str], name: str) -> str:
    """A name as it stands among others: itself, or where one alone is the same in another Unicode
    form, that one."""
    if name in names:
        return name
    form = unicodedata.normalize("NFC", name)
    same = [other for other in names if unicodedata.normalize("NFC", other) == form]
    return same[0] if len(same) == 1 else name


def given_names(
    names: Collection[str], taken: Collection[str], label: str | None = None
) -> dict[str, str]:
    """What columns of a file are called in a table that has others beside them, no two alike: one
    whose name is taken has `given_` before it, and so has `label`, which had those of training."""
    found: dict[str, str] = {}
    for name in names:
        new = "given_label" if name == label else name
        while new in taken or new in found.values() or (new != name and new in names):
            new = f"given_{new}"
        found[name] = new
    return found


def voter_columns(
    first: Sequence[str], label_column: ColumnSpec, source: str, preferred: bool
) -> tuple[int, ...]:
    """Places of the columns that hold one annotator's labels each; none where one column has all.

    They are those that `label_column` lists with commas between; without one those named
    annotator_1, annotator_2, ... where no column is named as labels are, or they are `preferred`.
    Raises RowsError for a listed column that is not there.
    """
    if isinstance(label_column, str) and "," in label_column and label_column not in first:
        parts = [part.strip() for part in label_column.split(",")]
        numbered = [number_of(part) or part for part in parts]
        return tuple(resolve(first, part, "label", "--label-column", source) for part in numbered)
    names = _folded(first)
    if label_column is not None or not (preferred or LABEL_NAMES.isdisjoint(names)):
        return ()
    wide = tuple(place for place, name in enumerate(names) if is_annotator(name))
    wide = wide if len(wide) > 1 else ()
    return tuple(resolve(first, first[p], "label", "--label-column", source) for p in wide)


def is_annotator(name: str) -> bool:
    """Whether a column of this name has the labels of one annotator."""
    name = name.strip().casefold()
    return bool(_ANNOTATOR.fullmatch(name)) and name not in ANNOTATOR_NAMES


def titles_above(
    rows: Sequence[Sequence[str]],
    text_column: ColumnSpec,
    label_column: ColumnSpec,
    source: str,
    labelled: bool = True,
    known: Known | None = None,
) -> int:
    """How many of the first rows stand above a header, see `header_place`.

    Raises RowsError where one of them is as full as the header, and so may be a row; remarks behind
    a `#` are none.
    """
    at = header_place(rows, text_column, label_column, labelled, known)
    above = [[cell for cell in row if cell.strip()] for row in rows[:at]]
    if not any(above):
        return 0
    filled = sum(map(bool, map(str.strip, rows[at])))
    if any(len(row) >= filled and not _REMARK.match(row[0]) for row in above):
        raise RowsError(
            f"{source}: found the header {_listed(rows[at])} in row {at + 1}, expected it in the "
            "first: remove the rows above, or the header; --no-header if it is a row"
        )
    return at


def header_place(
    rows: Sequence[Sequence[str]],
    text_column: ColumnSpec = None,
    label_column: ColumnSpec = None,
    labelled: bool = False,
    known: Known | None = None,
) -> int:
    """Which of the first rows is a header with names of text and label, or, where labels are not
    wanted, of the text and of columns that the rows below have; 0 where none is."""
    known = known or Known()
    asked = (text_column, known.text), (label_column, known.label)
    texts, labels = (
        {*usual, *_folded(s for s in specs if isinstance(s, str) and number_of(s) is None)}
        for usual, specs in zip((TEXT_NAMES, LABEL_NAMES), asked, strict=True)
    )
    for at, row in enumerate(rows[: _MOST_TITLES + 1]):
        names = set(_folded(row))
        if not names & texts:
            continue
        if names & labels or sum(map(is_annotator, row)) > 1:
            return at
        if not labelled and ((not at and len(row) > 1) or _names_columns(rows, at)):
            return at
    return 0


def _names_columns(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Whether the cells of a row are short names, rows below mostly have as many, and none of them
    stands in another row of its column. A name alone is one below remarks."""
    names = [cell.strip() for cell in rows[at]]
    if len(names) == 1:
        above = [row[0] for row in rows[:at] if any(map(str.strip, row))]
        return bool(above) and len(rows) > at + 1 and all(map(_REMARK.match, above))
    below = [row for row in rows[at + 1 : at + 1 + TELLING_ROWS] if any(map(str.strip, row))]
    alike = sum(len(row) == len(names) for row in below)
    if not alike or alike < (_MOSTLY if len(names) == 2 else 0.5) * len(below):
        return False
    if (
        not all(map(_COLUMN_NAME.fullmatch, names))
        or max(Counter(filter(None, names)).values()) > 1
    ):
        return False
    others = [row for row in (*rows[:at], *rows[at + 1 : _MOST_LABELS]) if len(row) == len(names)]
    return not any(
        name and name == cell.strip()
        for row in others
        for name, cell in zip(names, row, strict=True)
    )


def lacks_row_names(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the header is one cell short, as R leaves it above row names: every row below has one
    more, and begins with a number of its own.

    A comma in every sentence looks alike, so the numbers must be no ids: a column named so has
    its own. Of a few rows they count from 1, or the first column is of texts.
    """
    header, *below = rows or [[]]
    numbers = [row[0] for row in below if row[0].isdecimal() and len(row) == len(header) + 1]
    if not below or len({*numbers}) != len(below) or not _is_header(header, None, None):
        return False
    names = _folded(header)
    counted = numbers == [str(number) for number in range(1, len(numbers) + 1)]
    if not (counted or len(below) >= TELLING_ROWS or names[0] in TEXT_NAMES):
        return False
    for name, *cells in zip(names, *(row[1:] for row in below), strict=True):
        ids = all(any(map(str.isdigit, cell)) and len(cell.split()) == 1 for cell in cells)
        if name in _ID_NAMES and not (ids and len({*cells}) == len(cells)):
            return False
    return True


def distinct(names: Sequence[str]) -> list[str]:
    """Names of columns, those that occur again as `id_2`, `id_3` and so on."""
    found: dict[str, None] = {}
    for name in names:
        new, count = name, 1
        while new in found or (count > 1 and new in names):
            count += 1
            new = f"{name}_{count}"
        found[new] = None
    return [*found]


def number_of(spec: str | int) -> int | None:
    """The number in `2` or `"2"`; None for a name."""
    if isinstance(spec, int):
        return spec
    return int(spec) if spec.isascii() and spec.isdigit() and len(spec) < 10 else None


def usual(found: Sequence[str], spec: ColumnSpec, default: str) -> ColumnSpec:
    """The only one of the columns `found` with a usual name, where `default` is not there."""
    folded = _folded(found)
    places = [place for place, cell in enumerate(folded) if cell in _USUAL[default]]
    if spec is not None or default in folded or len(places) != 1:
        return spec
    return places[0] + 1


def refuse_predicted(found: Sequence[str], label: str, source: str) -> None:
    """Raise ColumnError where nobody asked for the column `label`, and a program has written it."""
    given = f"given_{label.strip()}"
    if given.casefold() in _folded(found):
        raise ColumnError(
            f"{source}: found the columns {shown(label)} and {shown(given)}, as superconext "
            "predict writes them; expected to be told which has the labels: add --label-column "
            f"{given}"
        )


def _folded(cells: Iterable[str]) -> list[str]:
    return [cell.strip().casefold() for cell in cells]


def _with_known(
    rows: Sequence[Sequence[str]],
    wanted: tuple[ColumnSpec, ColumnSpec],
    source: str,
    labelled: bool,
    header: bool | None,
    known: Known,
    inside: str,
) -> Columns:
    first = rows[0]
    text_column = known.column(first, wanted[0], "text", header)
    label_column = known.column(first, wanted[1], "label", header)
    specs = (text_column, label_column)
    guessed = unsure = False
    told = header is False
    if header is None:
        by_name = any(s is not None and number_of(s) is None for s in specs) or known.text in first
        header = by_name or _is_header(first, *specs) or _named_by_digits(rows, specs)
        header = header or _header_by_shape(rows, known)
        if not (header or labelled) and specs == (None, None):
            texts = [cell for cell in _folded(first) if cell in TEXT_NAMES]
            header = _words_above_numbers(rows) or (len(texts) == 1 and _names_columns(rows, 0))
        if not header and labelled and specs == (None, None):
            header = _text_name_above(rows, known.classes)
        columns: tuple[ColumnSpec, ColumnSpec] = specs
        if specs == (None, None) and len(first) == 2 and len(rows) > TELLING_ROWS:
            with suppress(RowsError):
                place = _label_of_two(rows[1:], source, True, told, known)
                columns = str(2 - place), str(place + 1)
        above = not header and _header_above_columns(rows, *columns, known.classes)
        guessed, unsure = above is True, above is None
        header = header or guessed
    if header:
        found = _under_header(
            rows, text_column, label_column, source, labelled, known, bool(inside), guessed
        )
        if len(first) == 1 and wanted[0] is None and text_column is not None:
            found.notes.append(f"first row, {shown(first[0])}, read as the header")
        if found.label is not None and wanted[1] is None:
            refuse_predicted(first, first[found.label], source)
        return found
    if specs == (None, None):
        if inside and not labelled and _one_sentence(rows, known.classes):
            note = "no header and no label column found: each line read as one text"
            notes = [f"{note}, {inside}s included" if len(first) > 1 else note]
            return Columns(0, None, False, notes, joined=True)
        if len(first) == 2:
            label = _label_by_classes(rows, known.classes)
            label = _label_of_two(rows, source, labelled, told, known) if label is None else label
            note = f"no header found: column {label + 1} read as label, column {2 - label} as text"
            if _tells_apart(rows, label):
                note = f"no header found: column {2 - label} read as text"
                return Columns(1 - label, None, False, [note])
            notes = [note, *([_unlike_others(first[label])] if unsure and labelled else ())]
            return Columns(1 - label, label if labelled else None, False, notes, label)
    found = _no_header(first, text_column, label_column, source, labelled, told, known)
    if unsure and found.label is not None:
        found.notes.append(_unlike_others(first[found.label]))
    return found


def _unlike_others(label: str) -> str:
    return (
        f"{WARNING}the label of the first row, {shown(label, 24)}, is that of no other row: give "
        "--header if it names the column, --no-header if it is a label"
    )


def _not_named(
    first: Sequence[str], source: str, labelled: bool, told: bool, known: Known
) -> RowsError:
    """told: whether a user has said that there is no header."""
    wanted, flags = f"a column named {known.called('text')}", "--text-column"
    number = "the number of the text column"
    if labelled:
        wanted = f"columns named {known.called('text')} and {known.called('label')}"
        flags, number = "--text-column and --label-column", "the numbers of text and label column"
    if told:
        return RowsError(
            f"{source}: found the columns {_listed(first)} without a header, expected {number}: "
            f"give {'them' if labelled else 'it'} with {flags}"
        )
    return RowsError(
        f"{source}: found the columns {_listed(first)}, expected {wanted}: name them "
        f"with {flags} (or give their numbers, if this is no header), or rename them"
    )


def _no_header(
    first: Sequence[str],
    text_column: ColumnSpec,
    label_column: ColumnSpec,
    source: str,
    labelled: bool,
    told: bool,
    known: Known,
) -> Columns:
    if len(first) == 1 and not labelled and (text_column, label_column) == (None, None):
        return Columns(0, None, False, ["no header found: the only column read as text"])
    for spec, default in ((text_column, "text"), (label_column, "label")):
        if spec is not None and number_of(spec) is None:
            resolve((), spec, default, f"--{default}-column", source)
    if (text_column, label_column) == (None, None):
        raise _not_named(first, source, labelled, told, known)
    return _numbered(first, text_column, label_column, source, labelled)


def _under_header(
    rows: Sequence[Sequence[str]],
    text_column: ColumnSpec,
    label_column: ColumnSpec,
    source: str,
    labelled: bool,
    known: Known,
    commas: bool,
    guessed: bool,
) -> Columns:
    """The columns under a header whose names may be unknown."""
    first, folded = rows[0], _folded(rows[0])
    places: list[int | None] = []
    for spec, default in ((text_column, "text"), (label_column, "label")):
        spec = usual(first, spec, default)
        asked = spec is not None or default in folded
        flag = f"--{default}-column"
        needed = asked and (default == "text" or labelled or spec != label_column)
        places.append(resolve(first, spec, default, flag, source, known) if needed else None)
    text, label = places
    if len(first) == 1 and text is None:
        text = 0
    joined = commas and not labelled and len(first) == 1
    if len(first) == 2 and text is None and label is None and len(rows) > 1:
        label = _label_by_classes(rows[1:], known.classes)
        label = _label_of_two(rows[1:], source, labelled, False, known) if label is None else label
        if label is not None and not labelled and folded[1 - label] in _ROW_NAMES:
            label = None  # names, links and dates are no texts unless they are asked for
    if len(first) == 2:
        text = 1 - label if text is None and label is not None else text
        named = text is not None and (
            label_column
            or (folded[1 - text] not in _ROW_NAMES and not _tells_apart(rows, 1 - text))
        )
        label = 1 - text if label is None and text is not None and named else label
    if text is None:
        try:
            text = resolve(first, text_column, "text", "--text-column", source, known)
        except ColumnError as error:
            if not labelled or label is not None or text_column is not None:
                raise
            raise ColumnError(f"{error}, and that of the labels with --label-column") from None
    if labelled and label is None:
        label = resolve(first, label_column, "label", "--label-column", source, known)
    _refuse_same(text, label if labelled else None, source)
    notes = []
    if (guessed or (text_column is None and folded[text] != "text")) or (
        labelled and label is not None and label_column is None and folded[label] != "label"
    ):
        read = f"column {shown(first[text], 24)} read as text"
        read += "" if label is None else f", {shown(first[label], 24)} as label"
        notes = [f"first row read as a header: {read} (--no-header if it is a row)"]
    elif text_column is None and label_column is None:
        names = TEXT_NAMES | LABEL_NAMES if labelled else TEXT_NAMES
        others = [cell for at, cell in enumerate(first) if at not in (text, label)]
        if others := [cell for cell in others if cell.strip().casefold() in names]:
            read = shown(first[text], 24)
            read += f" and {shown(first[label], 24)}" if labelled and label is not None else ""
            verb = "is" if len(others) == 1 else "are"
            notes = [f"read: {read}; {_listed(others)} {verb} not (--text-column, --label-column)"]
    return Columns(text, label if labelled else None, True, notes, label, joined)


def _tells_apart(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Whether nearly every row under a header has another cell in a column."""
    cells = [row[place].strip() for row in rows[1:] if len(row) > place]
    return len(cells) >= TELLING_ROWS and len(set(cells)) > _DISTINCT * len(cells)


def _header_by_shape(rows: Sequence[Sequence[str]], known: Known) -> bool:
    """Whether the first row is unlike all others: no label stands where these have theirs.

    That is so where all other cells of a column are classes, or most of those of two columns that
    are not empty are and a single word stands above the sentences. Where they are not, each must
    repeat, below such a word; above a single column it must also be new to the run.
    """
    first = rows[0]
    if len(first) == 1:
        texts = [",".join(row).strip() for row in rows[1:]]
        return _above_sentences(first[0].strip(), texts) and not known.is_word(first[0])
    whole = [row for row in rows[1:] if len(row) == len(first)]
    if not whole:
        return False
    for place, cell in enumerate(first):
        name = cell.strip()
        cells = [row[place].strip() for row in whole]
        others = Counter(filter(None, cells))
        if not others or name in others or name in known.classes or not any(map(str.isalpha, name)):
            continue
        if all(cell in known.classes for cell in cells):
            return True
        words = [row[1 - place].strip() for row in whole] if len(first) == 2 else []
        of_classes = sum(count for other, count in others.items() if other in known.classes)
        repeat = min(others.values()) > 1 and len(others) <= min(_MOST_LABELS, len(words) / 4)
        if (repeat or of_classes >= _MOSTLY * others.total()) and _above_sentences(
            first[1 - place].strip() if words else "", words
        ):
            return True
    return False


def _text_name_above(rows: Sequence[Sequence[str]], classes: frozenset[str]) -> bool:
    """Whether a usual name of a text column stands above texts, and beside it a word that is no
    label of the other rows, some of which share theirs."""
    whole = [row for row in rows[1:] if len(row) == 2]
    if len(rows[0]) != 2 or not whole:
        return False
    for place in (0, 1):
        name, word = rows[0][place].strip().casefold(), rows[0][1 - place].strip()
        labels = {row[1 - place].strip() for row in whole}
        texts = {row[place].strip().casefold() for row in whole}
        spaced = any(" " in text for text in texts)
        if (
            name in TEXT_NAMES - texts
            and re.fullmatch(r"[^\W\d]\w*", word)
            and word not in labels | classes
            and len(labels) < min(len(whole), len(texts))
            and spaced
        ):
            return True
    return False


def _words_above_numbers(rows: Sequence[Sequence[str]]) -> bool:
    """Whether two single words stand above a column of numbers and one of text."""
    first, below = rows[0], [row for row in rows[1:] if len(row) == 2]
    if len(first) != 2 or len(below) < 2 or any(re.search(r"\s", c.strip()) for c in first):
        return False
    for place in (0, 1):
        numbers = all(row[place].strip().isdigit() for row in below)
        words = all(any(map(str.isalpha, row[1 - place])) for row in below)
        if numbers and words and first[place].strip().isidentifier():
            return True
    return False


def _header_above_columns(
    rows: Sequence[Sequence[str]],
    text_column: ColumnSpec,
    label_column: ColumnSpec,
    classes: frozenset[str] = frozenset(),
) -> bool | None:
    """Whether the first row is unlike all others in columns asked for by number: its label is
    none of the others, and either these all repeat and its text is shorter than nearly all, or a
    column has digits in every row but this one. None where the label alone is unlike the others,
    most of which repeat, so that it cannot be told."""
    numbers = [number_of(spec) for spec in (text_column, label_column) if spec is not None]
    places = [number - 1 for number in numbers if number is not None]
    whole = [row for row in rows[1:] if len(row) == len(rows[0])]
    if len(places) < 2 or not 0 <= min(places) <= max(places) < len(rows[0]):
        return False
    name, text = (rows[0][place].strip() for place in reversed(places))
    labels = Counter(row[places[1]].strip() for row in whole)
    repeated = sum(count for count in labels.values() if count > 1)
    if (
        len(whole) < TELLING_ROWS / 4
        or name in labels
        or name in classes
        or not any(map(str.isalpha, name))
        or repeated * 4 < len(whole) * 3
    ):
        return False
    shorter = sum(len(text) < len(row[places[0]].strip()) for row in whole)
    alike = (
        len(whole) >= TELLING_ROWS and min(labels.values()) > 1 and len(labels) <= len(whole) / 4
    )
    if alike and shorter >= 0.9 * len(whole):
        return True
    for cell, *below in zip(rows[0], *whole, strict=True):
        digits = [any(map(str.isdigit, one)) for one in (cell, *below)]
        if cell.strip() and not digits[0] and all(digits[1:]):
            return True
    return None


def _named_by_digits(rows: Sequence[Sequence[str]], specs: tuple[ColumnSpec, ColumnSpec]) -> bool:
    """Whether digits that were asked for are names in the first row: each is a cell of it that no
    row below repeats, and above texts stand words."""
    for at, spec in enumerate(specs):
        if spec is None:
            continue
        if len(rows) < 2 or not isinstance(spec, str) or rows[0].count(spec) != 1:
            return False
        place = rows[0].index(spec)
        below = [row[place].strip() for row in rows[1:] if len(row) > place]
        words = sum(any(map(str.isalpha, cell)) for cell in below)
        if spec in below or (at == 0 and 2 * words <= len(below)):
            return False
    return specs != (None, None)


def _above_sentences(name: str, texts: Sequence[str]) -> bool:
    """Whether a cell is a single word that no text below repeats, and these are sentences."""
    return (
        len(texts) >= TELLING_ROWS
        and " " not in name
        and not name.startswith(("#", "@"))
        and any(map(str.isalpha, name))
        and name not in texts
        and sum(" " in text for text in texts) >= 0.9 * len(texts)
    )


def _label_by_classes(rows: Sequence[Sequence[str]], classes: frozenset[str]) -> int | None:
    """Which of two columns holds the classes of a run, in most rows; None if neither does."""
    pairs = [row for row in rows if len(row) >= 2]
    hits = [sum(row[place].strip() in classes for row in pairs) for place in (0, 1)]
    if max(hits) * 2 <= len(pairs) or hits[0] == hits[1]:
        return None
    return int(hits[1] > hits[0])


def _one_sentence(rows: Sequence[Sequence[str]], classes: frozenset[str]) -> bool:
    """Whether the cells of each row are parts of one sentence.

    They are where the first row has one cell, and where no column can be that of the labels:
    none holds classes of the run, signs and numbers alone, or a few single words repeated. Of
    more than two columns the rows must differ in how many they have.
    """
    width = len(rows[0])
    if width == 1:
        return True
    if width > 2 and len(set(map(len, rows))) == 1:
        return False
    for place in range(width):
        cells = [row[place].strip() for row in rows if len(row) > place]
        distinct = set(cells)
        if sum(cell in classes for cell in cells) * 2 > len(cells):
            return False
        if not any(any(map(str.isalpha, cell)) for cell in distinct):
            return False
        repeated = len(cells) >= TELLING_ROWS and len(distinct) * 4 <= len(cells)
        if repeated and not any(" " in row[place] for row in rows if len(row) > place):
            return False
    return True


def _is_header(first: Sequence[str], text_column: ColumnSpec, label_column: ColumnSpec) -> bool:
    folded = _folded(first)
    for spec, names in ((text_column, TEXT_NAMES), (label_column, LABEL_NAMES)):
        number = None if spec is None else number_of(spec)
        if number is not None and 1 <= number <= len(first) and folded[number - 1] in names:
            return True
    if "text" in folded or "label" in folded:
        return True
    usual = TEXT_NAMES | LABEL_NAMES | _OTHER_NAMES if len(folded) > 1 else TEXT_NAMES
    if any(folded) and all(cell in usual for cell in folded):
        return True
    # Of more columns one usual name of each kind is enough among names: such as user_id, tweet,
    # sentiment.
    named = bool(TEXT_NAMES & set(folded)) and bool(LABEL_NAMES & set(folded))
    plain = re.compile(r"[^\W\d][\w .°'()/-]*|")
    return len(folded) > 2 and named and all(plain.fullmatch(cell) for cell in folded)


def _numbered(
    first: Sequence[str],
    text_column: ColumnSpec,
    label_column: ColumnSpec,
    source: str,
    labelled: bool,
) -> Columns:
    """Columns by number in a table without a header; of two columns, one number is enough."""
    text = label = None
    text_column, label_column = (s and number_of(s) for s in (text_column, label_column))
    if text_column is not None:
        text = resolve(first, text_column, "text", "--text-column", source)
    if label_column is not None and (labelled or text is None):
        label = resolve(first, label_column, "label", "--label-column", source)
    if len(first) == 2:
        text = 1 - label if text is None and label is not None else text
        label = 1 - text if label is None and text is not None else label
    if text is None or (labelled and label is None):
        missing = "text" if text is None else "label"
        raise RowsError(
            f"{source}: {missing} column not given and no header found, first row holds "
            f"{_listed(first)}: give --{missing}-column too"
        )
    label = label if labelled else None
    _refuse_same(text, label, source)
    read = f"column {text + 1} read as text"
    read += "" if label is None else f", column {label + 1} as label"
    return Columns(text, label, False, [f"no header found: {read}"])


def _label_of_two(
    rows: Sequence[Sequence[str]], source: str, labelled: bool, told: bool, known: Known
) -> int:
    """Which of two columns holds few distinct values; where labels are not wanted, also which is
    no text because it has no letter."""
    pairs = [row for row in rows if len(row) >= 2]
    distinct = [len({row[i].strip() for row in pairs}) for i in (0, 1)]
    repeats = [d <= min(_MOST_LABELS, len(pairs) / 2) for d in distinct]
    spaced = [sum(" " in row[i].strip() for row in pairs) for i in (0, 1)]
    if any(repeats) and distinct[0] != distinct[1]:
        return int(distinct[1] < distinct[0])
    if (any(repeats) or len(pairs) < TELLING_ROWS) and spaced[0] != spaced[1]:
        return int(spaced[1] < spaced[0])
    if not labelled:
        letters = [any(any(map(str.isalpha, row[i])) for row in pairs) for i in (0, 1)]
        if letters[0] != letters[1]:
            return int(letters[0])
        raise _not_named(rows[0], source, labelled, told, known)
    raise RowsError(
        f"{source}: no header in {_listed(rows[0])}, and neither column is clearly the label "
        f"({distinct[0]} and {distinct[1]} distinct values in {len(pairs)} rows), expected one "
        "with few distinct values: give --text-column and --label-column by number; "
        + WITHOUT_LABELS
    )


def _refuse_other_separator(first: Sequence[str], source: str) -> None:
    """A header in one piece means that the columns are separated by something else."""
    if len(first) == 1:
        cell = first[0].strip().casefold()
        for separator in "\t;,|،؛":
            if (TEXT_NAMES | LABEL_NAMES) & set(cell.split(separator)) and separator in cell:
                raise RowsError(
                    f"{source}: found {shown(first[0])} as the only column, expected columns "
                    f"separated by commas (.csv) or tabs (.tsv), not {shown(separator)}: save it "
                    "as one of these, and name it for what it is"
                )


def _refuse_same(text: int, label: int | None, source: str) -> None:
    if text == label:
        raise RowsError(
            f"{source}: column {text + 1} asked for as both text and label, expected two "
            "columns: change --text-column or --label-column"
        )


def _hint(wanted: str, default: str, found: Sequence[str], folded: list[str]) -> str:
    near = difflib.get_close_matches(wanted, folded, n=1, cutoff=0.6)
    if wanted == default:
        near = near or [cell for cell in folded if cell in _USUAL[default]]
    return f" (did you mean {shown(found[folded.index(near[0])])}?)" if near else ""


def _listed(found: Sequence[str]) -> str:
    return some_shown(found, 8) or "none"
