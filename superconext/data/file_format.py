"""File formats: the base class of every layout of rows in a file, and their registry.

A format turns an open file into blocks of rows. It is chosen by the file's suffix (behind a
closing `.gz`), else by its first line. A package adds one under the entry-point group
`superconext.file_formats`, a program by `FILE_FORMATS.register("name", MyFormat)`, a user of the
command line by the environment variable `SUPERCONEXT_FILE_FORMATS=name=path/to/file.py:MyFormat`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

from superconext.core.errors import DataError, LineError, plural
from superconext.core.registry import Entry, Registry, own_fault
from superconext.data.columns import (
    ANNOTATOR_NAMES,
    ColumnSpec,
    Known,
    refuse_predicted,
    resolve,
    usual,
    voter_columns,
)
from superconext.data.lines import (
    RUN_LINES,
    STDIN_NAME,
    OpenFile,
    Run,
    refuse_other,
    shown,
)

#: Characters at the head of a file that tell how it is written.
HEAD = 1 << 16

#: Rows that are shown as they were understood.
PREVIEWED = 3


@dataclass(frozen=True)
class Wanted:
    """What to take from a file: the two columns, and whether labels are needed at all.

    every_row: whether rows without a text are taken too: blank lines of plain text and of tables
        of one column, empty cells, null.
    header: whether a table's first row is one; None to decide.
    known: what a run knows of its files, to recognise the columns by.
    votes: whether columns of annotators are taken before a column of labels.
    classes: names of columns that each hold a vote, in place of one with labels.
    beside: whether all columns of each row are kept, as `Block.beside`.
    """

    text_column: ColumnSpec = None
    label_column: ColumnSpec = None
    labelled: bool = True
    every_row: bool = False
    header: bool | None = None
    known: Known | None = None
    votes: bool = False
    classes: Sequence[str] = ()
    beside: bool = False

    def heads(self, line: str, alone: bool) -> bool:
        """Whether a first line is the header of a table, as the run knows it."""
        known = self.known if self.header is not False else None
        return known is not None and known.heads(line, alone)

    def place(self, names: Sequence[str], default: str, source: str, labels: int = -1) -> int:
        """0-based place of the `default` ("text" or "label") among named columns.

        labels: the only column of labels, where the format knows one. Raises DataError.
        """
        spec = self.text_column if default == "text" else self.label_column
        known = self.known or Known()
        spec = known.column(names, spec, default)
        if spec is None and default == "label" and labels >= 0:
            return labels  # not a field of the task with a usual name, such as a former label
        spec = usual(names, spec, default)
        return resolve(names, spec, default, f"--{default}-column", source, known)


class Votes(list[tuple[str, str]]):
    """What annotators answered for one text: annotator and label of each."""

    def given(self) -> Votes:
        """Those with a label."""
        return Votes(vote for vote in self if vote[1])


@dataclass
class Block:
    """Some rows; the lists have the same length, but `labels` is empty where none are wanted.

    lines: 1-based line (in binary formats: row) that each row starts on.
    votes: in place of the labels, where annotators gave them.
    beside: every cell by the name of its column, where that is wanted and columns have names.
    """

    texts: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    lines: Sequence[int] = field(default_factory=list)
    votes: list[Votes] = field(default_factory=list)
    beside: list[Mapping[str, str]] = field(default_factory=list)

    def all_votes(self) -> list[Votes]:
        """The votes; a label without an annotator is one of nobody's."""
        return self.votes or [Votes([("", label)]) for label in self.labels]

    def at(self, places: Sequence[int]) -> Block:
        """The rows at these 0-based places."""
        every: list[Any] = [self.texts, self.labels, self.lines, self.votes, self.beside]
        return Block(*([values[place] for place in places if values] for values in every))

    def __len__(self) -> int:
        return len(self.texts)


class RowFile:
    """An open file as a format sees it.

    Args:
        file: the bytes.
        wanted: what to take from it.
        on_bad: called with each row that cannot be read; it may raise the error.
        look_ahead: characters that may be kept back to decide on columns, or to find the end of
            a quoted cell.
        cell_lines: lines that a quoted cell may go over.

    Attributes:
        name, suffix: of the file, for messages and for choosing a format.
        notes: what was decided, for the user to read; formats add to it.
        skipped: rows and lines given to `bad`.
        head: the first lines, once `first_line` was asked for: those of `HEAD` characters, on
            standard input as many as one read brought.
        columns: `text`, `label` (names, or numbers from 1 where there are none) and `header`, once
            a format with columns has found them; `annotators`, the names of one's labels each, or
            `annotator`, that of whose labels they are.
        voters: names of the columns that `votes` reads; empty where a text has one label.
        preview: label and text of the first rows, where a label was recognised that is not wanted.
        cells: those of the row parsed last by the names of their columns, if `Wanted.beside`.
        separator: between the cells of a .csv, as a written one is to have it.
    """

    def __init__(
        self,
        file: OpenFile,
        wanted: Wanted,
        on_bad: Callable[[DataError], None] | None = None,
        look_ahead: float = float("inf"),
        cell_lines: float = float("inf"),
    ) -> None:
        self.file, self.wanted = file, wanted
        self.name, self.suffix = file.name, file.suffix
        self.look_ahead, self.cell_lines = look_ahead, cell_lines
        self.notes = [*file.notes, *([f"read as {file.encoding}"] if file.encoding else [])]
        self.skipped = 0
        self.head: list[str] = []
        self.columns: dict[str, Any] | None = None
        self.names: list[str] = []
        self.voters: list[str] = []
        self.preview: list[tuple[str | None, str]] = []
        self.cells: Mapping[str, str] = {}
        self.separator = ","
        self._on_bad = on_bad
        self._runs: Iterator[Run] | None = None
        self._blank = self._pending_blank = 0

    def bad(self, error: DataError) -> None:
        """Report a row that cannot be read. Raises LineError unless bad rows are left out."""
        self._undecoded(LineError(str(error)) if type(error) is DataError else error)

    def _undecoded(self, error: DataError) -> None:
        """Report a line that is no text, mostly as all others are none. Raises the error unless bad
        rows are left out."""
        if self._on_bad is None:
            raise error
        self._on_bad(error)
        self.skipped += 1

    def named(self, names: Sequence[str], labels: Sequence[str] = ()) -> list[str]:
        """The names of the text column and, where wanted, the label column, which are noted; that
        of the text alone where annotators have columns of their own.

        labels: the columns that hold labels, where the format knows. Raises DataError.
        """
        self.names = list(names)
        only = list(names).index(labels[0]) if len(labels) == 1 else -1
        wide = () if labels else self.annotators(names)
        wanted = ["text", "label"] if self.wanted.labelled and not wide else ["text"]
        chosen = [names[self.wanted.place(names, name, self.name, only)] for name in wanted]
        self.columns = {"text": chosen[0], "label": (*chosen, None)[1], "header": True}
        asked = self.wanted.text_column, self.wanted.label_column
        if len(chosen) > 1 and asked[1] is None:
            refuse_predicted(names, chosen[1], self.name)
        unasked = [
            f"{shown(column, 24)} read as {name}"
            for name, column, spec in zip(wanted, chosen, asked, strict=False)
            if spec is None and column.strip().casefold() != name
        ]
        self.notes += ["column " + ", ".join(unasked)] if unasked else []
        self.find_voters(names, wide)
        return chosen

    def annotators(self, names: Sequence[str]) -> tuple[int, ...]:
        """Places of the columns with one annotator's labels each. Raises DataError."""
        if not self.wanted.labelled:
            return ()
        spec = (self.wanted.known or Known()).column(names, self.wanted.label_column, "label")
        return voter_columns(names, spec, self.name, self.wanted.votes)

    def find_voters(self, names: Sequence[str], wide: Sequence[int]) -> None:
        """Keep which columns hold labels of annotators; `wide`: places of one annotator's each."""
        assert self.columns is not None
        whose = [name for name in names if name.strip().casefold() in ANNOTATOR_NAMES]
        taken = self.columns["text"], self.columns["label"]
        if wide:
            self.columns["annotators"] = self.voters = [names[place] for place in wide]
            self.notes.append(f"columns {', '.join(self.voters)} read as annotators' labels")
        elif taken[1] and self.columns["header"] and len(whose) == 1 and whose[0] not in taken:
            self.columns["annotator"] = whose[0]
            self.voters = [taken[1], whose[0]]

    def votes(self, cells: Mapping[str, str]) -> Votes:
        """What annotators answered in a row, from the cells of `voters`."""
        assert self.columns is not None
        if "annotator" in self.columns:
            label, who = (cells[name].strip() for name in self.voters)
            return Votes([(who, label)])
        return Votes((name, cell.strip()) for name, cell in cells.items()).given()

    def runs(self) -> Iterator[Run]:
        """All lines, blank ones too, in runs: (number of the first, lines)."""
        if self._runs is None:
            self._runs = self.file.runs(self._undecoded)
        return self._runs

    def drop_first(self) -> bool:
        """Leave out the first line, which is no row; False where it cannot be told from others."""
        runs = self.runs()
        first, lines = next(runs)
        known = first == 1 and lines[:1] == self.head[:1]
        self._runs = chain([(first + known, lines[known:])], runs)
        self.head = self.head[known:]
        return known

    def filled(
        self, keep_tabs: bool = False, keep_blank: bool = False
    ) -> Iterator[tuple[Sequence[int], list[str]]]:
        """The lines on which something stands, as they arrive: (their numbers, lines).

        keep_tabs: a line of tabs is not blank, for it is a row of empty cells.
        keep_blank: blank lines are given too.
        """
        for first, lines in self.runs():
            numbers, kept = self.without_blank(first, lines, keep_tabs, keep_blank)
            if kept:
                yield numbers, kept

    def without_blank(
        self, first: int, lines: list[str], keep_tabs: bool = False, keep_blank: bool = False
    ) -> tuple[Sequence[int], list[str]]:
        """Numbers and lines of a run without its blank ones, which are counted."""
        if keep_blank:
            return range(first, first + len(lines)), lines
        if "" not in lines and not any(map(str.isspace, lines)):
            if lines:
                self._filled()
            return range(first, first + len(lines)), lines
        numbers, kept = [], []
        for number, line in enumerate(lines, first):
            if not self.count_blank(
                not line or (line.isspace() and not (keep_tabs and "\t" in line))
            ):
                numbers.append(number)
                kept.append(line)
        return numbers, kept

    def count_blank(self, blank: bool) -> bool:
        """Count a line if it is blank; returns whether it is."""
        if blank:
            self._pending_blank += 1
        else:
            self._filled()
        return blank

    def _filled(self) -> None:
        """Count the blank lines so far; those at the very end of a file go uncounted."""
        self._blank += self._pending_blank
        self._pending_blank = 0

    def blank_note(self) -> list[str]:
        """How many blank lines were left out."""
        return [f"{plural(self._blank, 'blank line')} left out"] * bool(self._blank)

    def first_line(self) -> str | None:
        """The first line on which something stands, or None; it is read again by `runs`."""
        runs = self.runs()
        held: list[Run] = []
        leading = 0  # blank lines at the head, which may be many
        for first, lines in runs:
            # A line of tabs is a row of empty cells, unless nothing else is in the file.
            if held or any(line.strip("\r\n ") for line in lines):
                held.append((first, lines))
            elif self.wanted.every_row:
                leading = first + len(lines) - 1
            else:
                self._pending_blank += len(lines)
            if any(map(str.strip, lines)):
                size = sum(map(len, lines))
                while self.name != STDIN_NAME and size < HEAD and (run := next(runs, None)):
                    held.append(run)
                    size += sum(map(len, run[1]))
                self.head = [line for _, lines in held for line in lines]
                self._runs = chain(_blank_runs(leading), held, runs)
                every = chain.from_iterable(lines for _, lines in held)
                return next(filter(None, (line.lstrip("\r\n ") for line in every)))
        return None


def _blank_runs(count: int) -> Iterator[Run]:
    """As many blank lines, from the first line on."""
    for first in range(1, count + 1, RUN_LINES):
        yield first, [""] * min(RUN_LINES, count + 1 - first)


class FileFormat:
    """A layout of rows in a file; one object reads one file.

    A subclass sets `suffixes`, or `recognises` a first line, and gives the rows by `blocks`.
    Where a row is a line, extend `LineFormat`; where cells are separated, `formats.TableFormat`.

    Attributes:
        suffixes: lower-case endings of file names of this format, such as (".psv",).
        magic: the bytes with which every file of a binary format begins, or several such.
        within: suffixes of other formats under which files of this one are recognised too.
    """

    #: What a class has to define.
    required: ClassVar[tuple[str, ...]] = ("blocks",)
    suffixes: tuple[str, ...] = ()
    magic: bytes | tuple[bytes, ...] = b""
    within: tuple[str, ...] = ()

    @classmethod
    def fault(cls) -> None:
        """Raise ConfigError where the class names suffixes that no file has."""
        if isinstance(cls.suffixes, str):
            raise own_fault(cls, f"suffixes = {cls.suffixes!r}", f"a tuple: ({cls.suffixes!r},)")
        if wrong := [one for one in cls.suffixes if not one.startswith(".") or one != one.lower()]:
            raise own_fault(cls, f"the suffix {wrong[0]!r}", "small letters behind a dot")

    def __init__(self, file: RowFile) -> None:
        self.file = file

    @classmethod
    def recognises(cls, first_line: str, file: RowFile) -> bool:
        """Whether a file of an unknown suffix is of this format, by its first line."""
        del first_line, file
        return False

    def blocks(self) -> Iterator[Block]:
        """The rows in the order of the file, a block for what one read brought.

        Rows with an empty text or label are given too. Raises DataError for what is wrong with
        the whole file; a row that cannot be read goes to `self.file.bad`.
        """
        raise NotImplementedError


class LineFormat(FileFormat):
    """A format in which every line that is not blank is a row."""

    required: ClassVar[tuple[str, ...]] = ("row",)

    def row(self, line: str, number: int) -> tuple[str, str | Votes]:
        """Text and label ("" where none is wanted), or votes, of one line. Raises DataError."""
        raise NotImplementedError

    def blocks(self) -> Iterator[Block]:
        labelled = self.file.wanted.labelled
        for numbers, lines in self.file.filled():
            yield parsed_rows(self.file, numbers, lines, self.row, labelled)


def parsed_rows(
    file: RowFile,
    numbers: Iterable[int],
    items: Iterable[object],
    parse: Callable[..., tuple[str, str | Votes]],
    labelled: bool,
) -> Block:
    """The rows `parse(item, number)` of each item; bad ones are reported to the file."""
    lines: list[int] = []
    block = Block(lines=lines)
    votes: list[Votes] = []
    for number, item in zip(numbers, items, strict=True):
        try:
            text, label = parse(item, number)
        except DataError as error:
            file.bad(error)
            continue
        block.texts.append(text)
        lines.append(number)
        if file.cells:
            block.beside.append(file.cells)
        if isinstance(label, Votes):
            votes = votes or block.all_votes()
            votes.append(label)
        elif votes:
            votes.append(Votes([("", label)]))
        elif labelled:
            block.labels.append(label)
    if votes:
        block.votes, block.labels = votes, []
    return block


_BUILT_IN = "superconext.data.formats:"

#: The formats in the order in which they are asked for an unknown suffix.
FILE_FORMATS: Registry[type[FileFormat]] = Registry(
    "file format",
    "superconext.data.file_format:FileFormat",
    {
        "whatsapp": Entry("superconext.data.text_formats:WhatsApp", "a WhatsApp chat"),
        "telegram": Entry("superconext.data.text_formats:Telegram", "a Telegram chat"),
        "subtitles": Entry("superconext.data.text_formats:Subtitles", "SubRip and WebVTT"),
        "mediawiki": Entry("superconext.data.text_formats:MediaWiki", "a MediaWiki dump"),
        "fasttext": Entry(_BUILT_IN + "FastText", "__label__ and the label, then the text"),
        "plain": Entry(_BUILT_IN + "PlainText", "one sentence a line, without labels"),
        "jsonl": Entry(
            "superconext.data.json_formats:JsonLines", "JSON objects, a line each or in an array"
        ),
        "tsv": Entry(_BUILT_IN + "Tsv", "columns separated by tabs"),
        "csv": Entry(_BUILT_IN + "Csv", "columns separated by commas, semicolons or tabs"),
        "parquet": Entry("superconext.data.binary_formats:Parquet", "columns of a Parquet file"),
        "arrow": Entry(
            "superconext.data.binary_formats:Arrow", "columns of a folder of Hugging Face datasets"
        ),
        "xlsx": Entry("superconext.data.binary_formats:Spreadsheet", "columns of an Excel sheet"),
    },
    "SUPERCONEXT_FILE_FORMATS",
    home=__name__,
)


def open_rows(file: RowFile) -> FileFormat | None:
    """The file in the format it is in; None for an empty one.

    Raises DataError where the format is not recognised, and for what is no text: an image, a web
    page, a Git LFS pointer and the like.
    """
    built_in = [FILE_FORMATS.get(name) for name in FILE_FORMATS.built_in]
    known = next((k for k in built_in if k.magic and file.file.first.startswith(k.magic)), None)
    known = known or format_of_suffix(file.suffix)
    if known is None or known in built_in:
        refuse_other(file.file)
    if known is not None and known.magic:
        return known(file)
    line = file.first_line()
    if line is None:
        return None
    for kind in built_in:
        if file.suffix in kind.within and kind.recognises(line, file):
            return kind(file)
    if known is not None:
        return known(file)
    for kind in (*_added(), *built_in):
        if kind.recognises(line, file):
            return kind(file)
    raise DataError(
        f"{file.name}: format not recognised, first line is {shown(line)}, expected columns, "
        "JSON lines or __label__ lines: name the file .csv, .tsv or .jsonl for what it is; if it "
        "is plain text, it has no columns and no labels"
    )


def format_of_suffix(suffix: str) -> type[FileFormat] | None:
    """The format of files named so (".tsv"), built-in ones first; None where no name tells."""
    if not suffix:
        return None
    for name in FILE_FORMATS.built_in:
        if suffix in (kind := FILE_FORMATS.get(name)).suffixes:
            return kind
    return next((kind for kind in _added() if suffix in kind.suffixes), None)


def _added() -> list[type[FileFormat]]:
    """The formats of users and of installed packages."""
    return [FILE_FORMATS.get(name) for name in FILE_FORMATS.names()[len(FILE_FORMATS.built_in) :]]


def is_plain_source(file: RowFile) -> bool:
    """Whether a file's name says that it holds plain text, as far as a name can."""
    return file.suffix == ".txt" or file.name == STDIN_NAME
