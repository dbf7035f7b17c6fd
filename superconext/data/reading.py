"""Readers of labelled files and of texts: in memory, or in blocks and bounded memory.

`read_labelled` and `read_texts` collect what a `RowStream` gives. What a reader decides on its
own is in `notes`. Rows are never dropped without a word: in labelled files an empty text or label
is an error that names the line; lines with nothing on them, and where labels are not wanted rows
without a text, are left out and counted in a note.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from superconext.core.blank import bare, is_blank
from superconext.core.errors import DataError, RowsError, plural
from superconext.core.progress import WARNING
from superconext.data.columns import (
    SOURCE_NAMES,
    WITHOUT_LABELS,
    ColumnSpec,
    Known,
    given_names,
    resolve,
)
from superconext.data.dataset import Dataset, Texts, letterless, told_letterless
from superconext.data.file_format import PREVIEWED, Block, RowFile, Wanted, open_rows
from superconext.data.labels import MISSING, Annotated, LabelReader, Places, heading
from superconext.data.lines import OpenFile, open_file
from superconext.text.mojibake import DAMAGE, damage_of, garbled_rows, mended
from superconext.text.tokenize import word_count

#: Characters of text in a block of `RowStream.large_blocks`, about: enough that handing it to a
#: process costs little.
BLOCK = 1 << 20

#: Characters that a stream keeps back at most, to tell columns or the end of a quoted cell, and
#: lines that such a cell may go over; after these, its quote counts as never closed.
LOOK_AHEAD, CELL_LINES = 1 << 20, 1000

#: So many texts, and this share of all, without a letter are likely of a wrong column.
_NUMBERS, _MOSTLY = 5, 0.9
#: Letters of a text without a space from which it is hardly a word.
_LONG_WORD = 25

#: Bad rows that are reported one by one.
_REPORTED = 5


class RowStream:
    """Iterates over the rows of a file of any size in blocks (`file_format.Block`).

    Args:
        path: a file of a registered format, or "-" for standard input.
        text_column, label_column: names or 1-based numbers; `text` and `label` by default.
        labelled: whether labels are wanted. Without, a `.txt` file and standard input are plain
            text, one sentence a line, unless `text_column` is given or the first line opens with
            `__label__`.
        on_error: "fail" raises DataError at the first bad row, "skip" leaves it out; `collect` then
            warns of it. What is wrong with the file as a whole (no such column, no UTF-8 text at
            all) always raises.
        every_row: gives a row without a text too, with an empty one, where it is otherwise left
            out or an error: blank lines of plain text and of one-column tables, empty cells, null.
        header: whether the first row of a table, or line of plain text, is one; None to decide.
        known: what a run knows of its files, to recognise columns and headers by.
        votes: takes columns of annotators before a column of labels.
        classes: names of columns that each hold a vote, such as a share, in place of labels.
        encoding: that of a file that is not UTF-8, such as "windows-1256"; `lines.UNNAMED` where
            nobody can name one.
        drop_unlabelled: leaves out rows without a text or label, and those of a word for a missing
            label.
        fold_label_case: labels that differ in case and spaces alone become one.
        fix_text: repairs mojibake, with the extra `ftfy`.
        advance: called with the share of the file's bytes that is read, where that is known.
        beside: keeps all columns of each row, as `Block.beside`.

    Attributes, all growing while one iterates:
        name: the file's, for messages.
        notes: what the reader decided and left out; whole after the last block. Those that begin
            with `core.progress.WARNING` must not be missed.
        read, skipped: rows given out, bad rows left out.
        problems: what was wrong with the first of these.
        columns: `text`, `label` (names, or numbers from 1) and `header`; None without columns.
        names: of all columns, or numbers from 1.
        preview: label (None where none was seen) and text of the first rows.
        separator: between the cells of a .csv.
    """

    def __init__(
        self,
        path: str | Path,
        text_column: ColumnSpec = None,
        label_column: ColumnSpec = None,
        labelled: bool = True,
        on_error: str = "fail",
        every_row: bool = False,
        header: bool | None = None,
        known: Known | None = None,
        votes: bool = False,
        classes: Sequence[str] = (),
        encoding: str | None = None,
        drop_unlabelled: bool = False,
        fold_label_case: bool | None = None,
        fix_text: bool = False,
        advance: Callable[[float], None] | None = None,
        beside: bool = False,
    ) -> None:
        self.path, self.on_error, self.encoding = path, on_error, encoding
        self.fix_text, self.advance = fix_text, advance
        known = known or Known()
        as_trained = known.fold and not fold_label_case
        fold = bool(fold_label_case or known.fold)
        self._labels = LabelReader(drop_unlabelled, fold, known.classes, as_trained)
        label_column = label_column if labelled else None
        self.wanted = Wanted(
            text_column, label_column, labelled, every_row, header, known, votes, classes, beside
        )
        self.columns: dict[str, Any] | None = None
        self.names: list[str] = []
        self.preview: list[tuple[str | None, str]] = []
        self.name, self.separator = "", ","
        self.notes: list[str] = []
        self.problems: list[str] = []
        self._textless = Places()
        self.read = self.skipped = 0

    def __iter__(self) -> Iterator[Block]:
        skip = self._leave_out if self.on_error == "skip" else None
        with open_file(self.path, encoding=self.encoding) as opened:
            self._follow(opened)
            file = RowFile(opened, self.wanted, skip, LOOK_AHEAD, CELL_LINES)
            for block in map(self._of_one_vote, self._blocks(file)):
                good = self._complete(block, file)
                if good:
                    self.read += len(good)
                    yield good
        if self._textless.count:
            self.notes.append(f"found an empty text ({self._textless}), left out")
        if "annotator" in (self.columns or {}):
            self.notes.append(
                f"{WARNING}read in a stream: each label of an annotator is a row of its own"
            )
        if not self.read:
            raise self._nothing()

    def large_blocks(self) -> Iterator[Block]:
        """The same rows, about `BLOCK` characters of text at a time."""
        texts: list[str] = []
        labels: list[str] = []
        lines: list[int] = []
        size = 0
        for block in self:
            begin = 0
            for end, text in enumerate(block.texts, 1):
                size += len(text)
                if size >= BLOCK or end == len(block):
                    texts += block.texts[begin:end]
                    labels += block.labels[begin:end]
                    lines += block.lines[begin:end]
                    begin = end
                if size >= BLOCK:
                    yield Block(texts, labels, lines)
                    texts, labels, lines, size = [], [], [], 0
        if texts:
            yield Block(texts, labels, lines)

    @property
    def unlabelled(self) -> list[str]:
        """Texts that `collect` left out because they have no label."""
        return self._labels.unlabelled or []

    @property
    def recorded(self) -> dict[str, Any] | None:
        """What a run keeps of how its file was read: `columns`, and whether labels were folded."""
        return (
            (self.columns or {}) | {"fold_label_case": True} if self._labels.fold else self.columns
        )

    def collect(self) -> tuple[Block, str]:
        """All rows in one block, and the SHA-256 of the file as it lies on disk.

        Raises DataError for a row that cannot be read, or that has no text or label, unless bad
        rows are left out.
        """
        self._labels.unlabelled = []
        with open_file(self.path, limited=True, hashed=True, encoding=self.encoding) as opened:
            return self._collected(opened), opened.digest.hexdigest()

    def _collected(self, opened: OpenFile) -> Block:
        self._follow(opened)
        file = RowFile(opened, self.wanted, self._leave_out if self.on_error == "skip" else None)
        lines: list[int] = []
        rows = Block(lines=lines)
        blocks = list(self._blocks(file))
        voted = any(block.votes for block in blocks)
        for block in blocks:
            rows.texts += block.texts
            rows.labels += [] if voted else block.labels
            rows.votes += block.all_votes() if voted else []
            lines += block.lines
        rows = self.complete(rows)
        for _ in opened.chunks:  # binary formats may have read the file in their own way
            pass
        return rows

    def complete(self, rows: Block) -> Block:
        """The rows that have a text and, where wanted, a label; of others a note tells.

        Raises DataError for one without, where labels are wanted and bad rows are not left out.
        """
        lacking = self._lacking(rows)
        stops = self.wanted.labelled
        if lacking and stops and self.on_error != "skip":
            raise self._incomplete(rows, lacking)
        told = [problem.removeprefix(f"{self.name}, ") for problem in self.problems]
        if self.skipped > len(told):
            told.append(f"{plural(self.skipped - len(told), 'more line')} cannot be read")
        if lacking and stops:
            mend = f"train needs --drop-incomplete{_merged(rows)}"
            told.append(f"found {self._told(rows, lacking)}; {mend}")
        elif lacking:
            self.notes.append(f"found {self._told(rows, lacking)}, left out")
        self.notes += [f"{WARNING}{line}; not counted here" for line in told]
        without = set(chain.from_iterable(lacking.values()))
        kept = rows.at([at for at in range(len(rows)) if at not in without]) if without else rows
        if not kept:
            raise self._nothing()
        return kept

    def _follow(self, opened: OpenFile) -> None:
        path = Path(self.path)
        if self.advance is not None and not opened.packed and path.is_file():
            opened.chunks = _followed(opened.chunks, path.stat().st_size, self.advance)

    def _leave_out(self, error: DataError) -> None:
        self.skipped += 1
        if len(self.problems) < _REPORTED:
            self.problems.append(str(error))

    def _blocks(self, file: RowFile) -> Iterator[Block]:
        """Blocks with labels stripped; texts and labels may be empty."""
        self.name, self.notes = file.name, file.notes
        count = 0
        garbled, headers, whole = Places(), Places(), Places()
        damaged = {kind: Places() for kind in DAMAGE}
        mute: list[str] = []
        empty = numbers = 0
        for block in self._whole_rows(file):
            count += len(block)
            if not self.preview:
                self.columns, self.names = file.columns, file.names
                self.preview = file.preview or _first_rows(block)
            for row in garbled_rows(block.texts):
                garbled.add(block.lines[row])
                if self.fix_text:
                    block.texts[row] = mended(block.texts[row])
            for row, (text, line) in enumerate(zip(block.texts, block.lines, strict=True)):
                if kind := damage_of(text):
                    damaged[kind].add(line)
                elif is_blank(text):
                    empty += 1
                    block.texts[row] = ""
                elif letterless(text):
                    numbers += 1
                    mute += [text] * (len(mute) < 2)
                elif len(text) >= _LONG_WORD and word_count(text) == 1:
                    whole.add(line)
            labelled = block.labels or block.votes
            if not labelled and (file.columns or {}).get("header"):
                name = heading(file.columns)
                for text, line in zip(block.texts, block.lines, strict=True):
                    if bare(text).casefold() == name:
                        headers.add(line)
            yield self._labels.read(block, file.columns) if labelled else block
        if not count + file.skipped:
            raise DataError(
                f"{self.name} is empty or blank, expected one example a line: check the file"
            )
        self.notes += file.blank_note()
        self.notes += self._labels.notes()
        if headers.count:
            self.notes.append(
                f"{WARNING}the name of the column occurs again among the texts ({headers}), as "
                "where files were concatenated"
            )
        if garbled.count:
            found = f"{garbled.count} of {count} texts are garbled by a wrong encoding ({garbled})"
            mend = f"{WARNING}{found}: fix them with --fix-text, or save the file again"
            self.notes.append(f"{found}, and fixed" if self.fix_text else mend)
        self.notes += [
            f"{WARNING}{damaged[kind].count} of {count} texts {does} ({damaged[kind]}): {mend}"
            for kind, (does, mend) in DAMAGE.items()
            if damaged[kind].count > max(1, count / 100)
        ]
        if whole.count >= max(_NUMBERS, (count - empty) / 2):
            self.notes.append(
                f"{WARNING}{whole.count} of {count} texts are one word of {_LONG_WORD} letters or "
                f"more ({whole}); expected spaces between words: part them with a segmenter of the "
                "language, or check what took the spaces out"
            )
        # Who trains on labelled rows refuses such texts.
        known = self.wanted.known
        judged = not self.wanted.labelled or (known is not None and bool(known.classes))
        if judged and numbers >= max(_NUMBERS, _MOSTLY * (count - empty)):
            told = told_letterless(mute, numbers, count - empty, self.names)
            self.notes.append(f"{WARNING}{told}")

    def _whole_rows(self, file: RowFile) -> Iterator[Block]:
        """What the format reads. Raises DataError: where no column can be found and lines above
        are no text, it is about these, for the header is likely among them."""
        try:
            rows = open_rows(file)
            self.separator = file.separator
            yield from rows.blocks() if rows is not None else ()
        except DataError:
            if not self.preview and "UTF-8" in "".join(self.problems[:1]):
                raise DataError(self.problems[0]) from None
            raise

    def _of_one_vote(self, block: Block) -> Block:
        """A block whose texts have one label each, where annotators might have given more."""
        if not block.votes:
            return block
        several = [n for n, votes in zip(block.lines, block.votes, strict=True) if len(votes) > 1]
        if several:
            raise DataError(
                f"{self.name}, line {several[0]}: found labels of several annotators in a file "
                "read in a stream, expected one label: take the one most gave (superconext data "
                "agreement --out)"
            )
        return Block(block.texts, [v[0][1] if v else "" for v in block.votes], block.lines)

    def _complete(self, block: Block, file: RowFile) -> Block:
        """The same of a block of a stream."""
        values = (block.texts, block.labels)
        if all("" not in some and not any(map(str.isspace, some)) for some in values):
            return block
        lacking = self._lacking(block)
        if lacking and self.wanted.labelled and self.on_error != "skip":
            raise self._incomplete(block, lacking)
        without = set(chain.from_iterable(lacking.values()))
        for at in sorted(without):
            if self.wanted.labelled:
                file.bad(self._incomplete(block, {w: [at] for w in lacking if at in lacking[w]}))
            else:
                self._textless.add(block.lines[at])
        return block.at([at for at in range(len(block)) if at not in without])

    def _lacking(self, rows: Block) -> dict[str, list[int]]:
        """Places of the rows without a text or a label, by what stands there."""
        labels = rows.labels or ["" if ("", "") in votes else "some" for votes in rows.votes]
        name = heading(self.columns)
        found: dict[str, list[int]] = {}
        for at, text in enumerate(rows.texts):
            if not (self.wanted.every_row or text.strip()):
                found.setdefault("an empty text", []).append(at)
            if labels and not labels[at]:
                again = self._labels.headers.count and text.strip().casefold() == name
                what = "the header again" if again else "an empty label"
                found.setdefault(what, []).append(at)
        return found

    def _told(self, rows: Block, lacking: Mapping[str, Sequence[int]]) -> str:
        found = []
        for what, some in lacking.items():
            places = Places(len(some), [rows.lines[at] for at in some[:3]])
            found.append(f"{what} ({plural(len(some), 'row')}, {places})")
        return " and ".join(found)

    def _incomplete(self, rows: Block, lacking: Mapping[str, Sequence[int]]) -> RowsError:
        first = min(rows.lines[some[0]] for some in lacking.values())
        mend = "complete such rows, or leave them out with --drop-incomplete" + _merged(rows)
        if len(lacking.get("an empty label", ())) == len(rows) > 1:
            mend = f"label them; {WITHOUT_LABELS}"
        return RowsError(
            f"{self.name}, line {first}: found {self._told(rows, lacking)}, expected a text and a "
            f"label in every row: {mend}"
        )

    def _nothing(self) -> DataError:
        if self.skipped == 1 and self.problems:
            return DataError(self.problems[0])
        if self.problems:
            return DataError(
                f"{self.name}: none of {self.skipped} lines can be used, expected texts; "
                + self.problems[0].removeprefix(f"{self.name}, ")
            )
        wanted = "a text and a label" if self.wanted.labelled else "a text"
        return DataError(
            f"{self.name}: found no row with {wanted}, expected some: check the column"
            + f"; {WITHOUT_LABELS}" * self.wanted.labelled
        )


def _merged(rows: Block) -> str:
    """More advice where the labels look like merged cells, whose first one alone is filled."""
    first, *others = rows.labels[:2] or [""]
    above = first and not any(others) and rows.labels.count("") * 2 > len(rows)
    return "; if cells were merged in a spreadsheet, fill each label down first" if above else ""


def _followed(
    chunks: Iterator[bytes], size: int, advance: Callable[[float], None]
) -> Iterator[bytes]:
    done = 0
    for chunk in chunks:
        done += len(chunk)
        advance(done / max(size, 1))
        yield chunk


def _first_rows(block: Block) -> list[tuple[str | None, str]]:
    labels: Sequence[str | None] = block.labels or [None] * PREVIEWED
    return list(zip(labels[:PREVIEWED], block.texts[:PREVIEWED], strict=False))


def read_labelled(
    path: str | Path,
    text_column: ColumnSpec = None,
    label_column: ColumnSpec = None,
    header: bool | None = None,
    known: Known | None = None,
    **reading: Any,
) -> Dataset:
    """Read a labelled file of a registered format: CSV, TSV, JSON, fastText lines (also `.gz`),
    `.xlsx`, Parquet, a folder of Hugging Face `datasets`.

    Columns are `text` and `label`, or those given by name or 1-based number (`2` or
    `"2"`, unless a column has this name). Stray spaces around labels are stripped.
    `"-"` reads standard input. `header` and `known` are those of `RowStream`, and so is `reading`:
    `votes`, `encoding`, `drop_unlabelled`, `fold_label_case`, `fix_text`, `advance`.

    Where several annotators labelled a text, its label is the one most of them gave, and its
    `shares` are theirs; texts with a tie are no rows, but `ties`.

    Raises DataError, one line with file and line number, for anything that cannot be
    read as examples; MissingExtraError for a format whose reader is not installed.

    Example:
        >>> _ = Path("avis.csv").write_text("texte;avis\\nfilm zwin;bon\\nfilm khayb;mauvais\\n")
        >>> rows = read_labelled("avis.csv", label_column="avis")
        >>> rows.texts, rows.labels
        (['film zwin', 'film khayb'], ['bon', 'mauvais'])
    """
    stream = RowStream(path, text_column, label_column, header=header, known=known, **reading)
    rows, sha256 = stream.collect()
    annotated, several = None, False
    if rows.votes:
        by_text = "annotator" in (stream.columns or {})
        annotated = Annotated.of(rows.texts, rows.votes, rows.lines, by_text)
        several = annotated.several
        if not by_text:
            annotated.refuse_class_columns(stream.name)
        if by_text and not several:
            rows = Block(rows.texts, [votes[0][1] for votes in rows.votes], rows.lines)
            rows = stream.complete(rows)
        else:
            rows = annotated.block()
            stream.notes += annotated.notes() if several else annotated.notes()[1:]
    return Dataset(
        rows.texts,
        rows.labels,
        list(rows.lines),
        stream.name,
        sha256,
        stream.notes,
        columns=stream.recorded,
        names=stream.names,
        separator=stream.separator,
        annotated=annotated,
        shares=annotated.shares(annotated.decided) if annotated and several else (),
        ties=annotated.tied() if annotated and several else (),
        unlabelled=stream.unlabelled,
    )


def read_texts(
    path: str | Path,
    text_column: ColumnSpec = None,
    header: bool | None = None,
    known: Known | None = None,
    every_row: bool = False,
    **reading: Any,
) -> Texts:
    """Read the same files as `read_labelled`, labels ignored, or plain text.

    A `.txt` file and standard input (`"-"`) are plain text, one sentence a line, unless
    `text_column` is given or the first line opens with `__label__`. Blank lines of plain text and
    rows without a text are left out with a note. `header`, `known`, `every_row` and, as `reading`,
    `encoding`, `fix_text` and `advance` are those of `RowStream`.
    """
    stream = RowStream(
        path,
        text_column,
        labelled=False,
        every_row=every_row,
        header=header,
        known=known,
        **reading,
    )
    rows, _ = stream.collect()
    return Texts(rows.texts, list(rows.lines), stream.name, stream.notes, stream.separator)


def labelled_texts(
    path: str | Path,
    label: str,
    text_column: ColumnSpec = None,
    known: Known | None = None,
    **reading: Any,
) -> list[str]:
    """Texts of a table, read as `read_texts` takes it, whose cell in the column `label` has a
    label: a class that is known, whatever its name, or no word for none. None of a file without
    such a column, or that cannot be read again."""
    found: list[str] = []
    classes = {name.casefold() for name in known.classes} if known else set()
    without = {"", *MISSING} - classes
    if not Path(path).is_file():
        return found
    with suppress(DataError):
        stream = RowStream(path, text_column, labelled=False, known=known, beside=True, **reading)
        for block in stream:
            for text, cells in zip(block.texts, block.beside, strict=False):
                named = {name.strip().casefold(): cell for name, cell in cells.items()}
                if named.get(label.strip().casefold(), "").strip().casefold() not in without:
                    found.append(text)
    return found


def kept_columns(
    texts: RowStream,
    cells: Sequence[Mapping[str, str]],
    keep: Sequence[str],
    heading: Sequence[str],
    trained: object,
) -> dict[str, str]:
    """Columns of a file that are written beside predictions, by the names they have there: what had
    the labels of training is not to be missed beside `label`, which says what is predicted.

    cells: of the first rows, see `Block.beside`. keep: names, or "all" for every column beside the
    text. heading: names that are taken. trained: the columns of training, see `Dataset.columns`.

    Raises DataError for columns that are not there.
    """
    found = list(dict.fromkeys(name for row in cells for name in row))  # records may differ
    others = [name for name in found if name != (texts.columns or {}).get("text")]
    if not others:
        raise DataError(
            f"{texts.name}: found no named column beside the text, expected one to keep: give a "
            "table with a header, or leave out --keep"
        )
    wanted = others
    if "all" in found or "all" not in keep:
        for name in keep:
            parts = [part.strip() for part in name.split(",")]
            if name not in found and len(parts) > 1 and {*found} >= {*parts}:
                raise DataError(
                    f"{texts.name}: found --keep {shlex.quote(name)}, expected one column each "
                    f"time: repeat it: {' '.join(f'--keep {shlex.quote(part)}' for part in parts)}"
                )
        places = [resolve(found, name, "text", "--keep", texts.name) for name in keep]
        wanted = [found[place] for place in dict.fromkeys(places) if found[place] in others]
    label = trained.get("label") if isinstance(trained, Mapping) else None
    return {new: name for name, new in given_names(wanted, heading, label).items()}


class LateColumns:
    """Columns of records that the first rows lack, which are not written beside predictions."""

    def __init__(self, first: Iterable[Mapping[str, str]]) -> None:
        """first: the cells of the first rows, see `Block.beside`."""
        self._first = {name for row in first for name in row}
        self._found: dict[str, int] = {}

    def add(self, block: Block) -> None:
        """Later rows."""
        for line, row in zip(block.lines, block.beside, strict=True):
            known = {*self._first, *self._found}
            self._found.update((name, line) for name in row if name not in known)

    def told(self) -> str:
        """A warning of them with the line where each begins; "" where there are none."""
        names = ", ".join(f"{name} (line {line})" for name, line in self._found.items())
        return names and (
            f"found columns that the first rows lack, left out: {names}; expected every column "
            "there: move a row that has them to the top"
        )


def read_beside(
    rows: Dataset, text_column: ColumnSpec = None, encoding: str | None = None
) -> tuple[Sequence[Mapping[str, float]], list[str], dict[int, dict[str, str]]]:
    """What other columns of the file of `rows` say of each: shares of the labels that annotators
    gave it (where columns of theirs stand beside a column of labels); where it is from, a cell of
    a column named as in `SOURCE_NAMES`; and by line the cells of those that are neither text,
    label nor an annotator's. Each is empty where the file has none, has no header, or cannot be
    read again."""
    columns, shares = rows.columns or {}, rows.shares
    cells: dict[int, dict[str, str]] = {}
    if not columns.get("header") or not Path(rows.source).is_file():
        return shares, [], cells
    with suppress(DataError):
        votes = read_labelled(rows.source, text_column, votes=True, encoding=encoding).annotated
        if not shares and votes is not None and votes.several:
            given = dict(zip(votes.lines, votes.shares(range(len(votes.texts))), strict=True))
            shares = [given.get(line, {}) for line in rows.lines]
    taken = {columns[name] for name in ("text", "label", "annotator") if name in columns}
    taken |= {*columns.get("annotators", ())}
    with suppress(DataError):
        named = text_column or columns["text"]
        for block in RowStream(
            rows.source, named, labelled=False, every_row=True, encoding=encoding, beside=True
        ):
            for line, row in zip(block.lines, block.beside, strict=False):
                cells[line] = {name: row[name] for name in row if name not in taken}
    names = {name.strip().casefold(): name for name in next(iter(cells.values()), {})}
    for name in SOURCE_NAMES:
        if name in names:
            of_row = (cells.get(line, {}) for line in rows.lines)
            return shares, [row.get(names[name], "").strip() for row in of_row], cells
    return shares, [], cells
