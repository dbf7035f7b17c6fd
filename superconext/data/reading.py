"""Readers of labelled files and of texts: in memory, or in blocks and bounded memory.

`read_labelled` and `read_texts` collect what a `RowStream` gives. What a reader decides on its
own is in `notes`. Rows are never dropped without a word: an empty text or label is an error that
names the line; only lines with nothing on them are left out, and counted in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from superconext.core.errors import DataError
from superconext.core.progress import WARNING
from superconext.data.columns import SOURCE_NAMES, ColumnSpec, Known
from superconext.data.dataset import Dataset, Texts
from superconext.data.file_format import PREVIEWED, Block, RowFile, Wanted, open_rows
from superconext.data.labels import Annotated, LabelReader, Places
from superconext.data.lines import OpenFile, open_file
from superconext.text.mojibake import garbled_rows, mended

#: Characters of text in a block of `RowStream.large_blocks`, about: enough that handing it to a
#: process costs little.
BLOCK = 1 << 20

#: Characters that a stream keeps back at most, to tell columns or the end of a quoted cell, and
#: lines that such a cell may go over; after these, its quote counts as never closed.
LOOK_AHEAD, CELL_LINES = 1 << 20, 1000

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
        on_error: "fail" raises DataError at the first bad row, "skip" leaves it out. What is
            wrong with the file as a whole (no such column, no UTF-8 text at all) always raises.
        every_row: gives a row without a text too, with an empty one, where it is otherwise left
            out or an error: blank lines of plain text and of one-column tables, empty cells, null.
        header: whether the first row of a table, or line of plain text, is one; None to decide.
        known: what a run knows of its files, to recognise columns and headers by.
        votes: takes columns of annotators before a column of labels.
        classes: names of columns that each hold a vote, such as a share, in place of labels.
        encoding: that of a file that is not UTF-8, such as "windows-1256".
        drop_unlabelled: leaves out rows without a label, and those of a word for a missing one.
        fold_label_case: labels that differ in case and spaces alone become one.
        fix_text: repairs mojibake, with the extra `ftfy`.
        advance: called with the share of the file's bytes that is read, where that is known.

    Attributes, all growing while one iterates:
        name: the file's, for messages.
        notes: what the reader decided and left out; whole after the last block. Those that begin
            with `core.progress.WARNING` must not be missed.
        read, skipped: rows given out, bad rows left out.
        problems: what was wrong with the first of these.
        columns: `text`, `label` (names, or numbers from 1) and `header`; None without columns.
        preview: label (None where none was seen) and text of the first rows.
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
        fold_label_case: bool = False,
        fix_text: bool = False,
        advance: Callable[[float], None] | None = None,
    ) -> None:
        self.path, self.on_error, self.encoding = path, on_error, encoding
        self.fix_text, self.advance = fix_text, advance
        labels = known.classes if known is not None else ()
        self._labels = LabelReader(drop_unlabelled, fold_label_case, labels)
        label_column = label_column if labelled else None
        self.wanted = Wanted(
            text_column, label_column, labelled, every_row, header, known, votes, classes
        )
        self.columns: dict[str, Any] | None = None
        self.preview: list[tuple[str | None, str]] = []
        self.name = ""
        self.notes: list[str] = []
        self.problems: list[str] = []
        self.read = self.skipped = 0

    def __iter__(self) -> Iterator[Block]:
        skip = self._leave_out if self.on_error == "skip" else None
        opened = open_file(self.path, encoding=self.encoding)
        self._follow(opened)
        file = RowFile(opened, self.wanted, skip, LOOK_AHEAD, CELL_LINES)
        for block in map(self._of_one_vote, self._blocks(file)):
            good = block if self.wanted.every_row else self._filled(file, block)
            if good:
                self.read += len(good)
                yield good
        if "annotator" in (self.columns or {}):
            self.notes.append(
                f"{WARNING}read in a stream: each label of an annotator is a row of its own"
            )
        if not self.read:
            first = self.problems[0] if self.problems else "no row has a label"
            raise DataError(
                f"{self.name}: none of {self.skipped} lines can be used, expected texts; the "
                f"first: {first}"
            )

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

    def collect(self) -> tuple[Block, str]:
        """All rows in one block, and the SHA-256 of the file as it lies on disk.

        Raises DataError for a row that cannot be read, or that has no text or label.
        """
        opened = open_file(self.path, limited=True, hashed=True, encoding=self.encoding)
        self._follow(opened)
        file = RowFile(opened, self.wanted)
        lines: list[int] = []
        rows = Block(lines=lines)
        blocks = list(self._blocks(file))
        voted = any(block.votes for block in blocks)
        for block in blocks:
            rows.texts += block.texts
            rows.labels += [] if voted else block.labels
            rows.votes += block.all_votes() if voted else []
            lines += block.lines
        empty = [n for text, n in zip(rows.texts, lines, strict=True) if not text.strip()]
        if empty and not self.wanted.every_row:
            raise self._empty(empty)
        self.check_labels(rows)
        for _ in opened.chunks:  # binary formats may have read the file in their own way
            pass
        return rows, opened.digest.hexdigest()

    def check_labels(self, rows: Block) -> None:
        """Raise DataError for a row without a label."""
        labels = rows.labels or ["" if ("", "") in votes else "some" for votes in rows.votes]
        empty = [line for label, line in zip(labels, rows.lines, strict=False) if not label]
        if empty:
            raise self._unlabelled(empty)

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
        rows = open_rows(file)
        count = 0
        garbled, headers = Places(), Places()
        for block in rows.blocks() if rows is not None else ():
            count += len(block)
            if not self.preview:
                self.columns, self.preview = file.columns, file.preview or _first_rows(block)
            for row in garbled_rows(block.texts):
                garbled.add(block.lines[row])
                if self.fix_text:
                    block.texts[row] = mended(block.texts[row])
            name = str((file.columns or {}).get("text"))
            if not (block.labels or block.votes) and name in block.texts:
                headers.add_rows(name, block.texts.count(name), block.texts, block.lines)
            labelled = block.labels or block.votes
            yield self._labels.read(block, file.columns) if labelled else block
        if not count + file.skipped:
            raise DataError(f"{self.name} is empty, expected one example a line: check the file")
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

    def _filled(self, file: RowFile, block: Block) -> Block:
        """The rows of a block that have a text and, where wanted, a label."""
        if all(
            "" not in values and not any(map(str.isspace, values))
            for values in (block.texts, block.labels)
        ):
            return block
        lines: list[int] = []
        kept = Block(lines=lines)
        for place, (text, line) in enumerate(zip(block.texts, block.lines, strict=True)):
            if not text.strip():
                file.bad(self._empty([line]))
            elif block.labels and not block.labels[place]:
                file.bad(self._unlabelled([line]))
            else:
                kept.texts.append(text)
                kept.labels += block.labels[place : place + 1]
                lines.append(line)
        return kept

    def _empty(self, lines: Sequence[int]) -> DataError:
        return DataError(
            f"{self.name}, line {lines[0]}: found an empty text ({_in_all(lines)}), expected a "
            "text in every row: remove them"
        )

    def _unlabelled(self, lines: Sequence[int]) -> DataError:
        found, expected, mend = "an empty label", "a label in every row", "label or remove them"
        if lines[0] in self._labels.headers.lines:
            found, expected, mend = (
                "the header again",
                "it on the first line only",
                "remove it",
            )
        return DataError(
            f"{self.name}, line {lines[0]}: found {found} ({_in_all(lines)}), expected {expected}: "
            f"{mend}, or leave such rows out with --drop-unlabelled"
        )


def _followed(
    chunks: Iterator[bytes], size: int, advance: Callable[[float], None]
) -> Iterator[bytes]:
    done = 0
    for chunk in chunks:
        done += len(chunk)
        advance(done / max(size, 1))
        yield chunk


def _in_all(lines: Sequence[int]) -> str:
    return f"{len(lines)} row{'s' * (len(lines) > 1)} in all"


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
    `"2"`; digits are always a number). Stray spaces around labels are stripped.
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
        if by_text and not several:
            rows = Block(rows.texts, [votes[0][1] for votes in rows.votes], rows.lines)
            stream.check_labels(rows)
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
        columns=stream.columns,
        annotated=annotated,
        shares=annotated.shares(annotated.decided) if annotated and several else (),
        ties=annotated.tied() if annotated and several else (),
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
    `text_column` is given or the first line opens with `__label__`. Blank lines of
    plain text are left out with a note; an empty text in a column is a DataError. `header`,
    `known`, `every_row` and, as `reading`, `encoding`, `fix_text` and `advance` are those of
    `RowStream`.
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
    return Texts(rows.texts, list(rows.lines), stream.name, stream.notes)


def read_beside(
    rows: Dataset, text_column: ColumnSpec = None, encoding: str | None = None
) -> tuple[Sequence[Mapping[str, float]], list[str]]:
    """What other columns of the file of `rows` say of each: shares of the labels that annotators
    gave it (where columns of theirs stand beside a column of labels), and where it is from, a cell
    of a column named as in `SOURCE_NAMES`. Each is empty where the file has none, has no header, or
    cannot be read again."""
    shares, sources = rows.shares, list[str]()
    if not (rows.columns or {}).get("header") or not Path(rows.source).is_file():
        return shares, sources
    with suppress(DataError):
        votes = read_labelled(rows.source, text_column, votes=True, encoding=encoding).annotated
        if not shares and votes is not None and votes.several:
            given = dict(zip(votes.lines, votes.shares(range(len(votes.texts))), strict=True))
            shares = [given.get(line, {}) for line in rows.lines]
    for name in SOURCE_NAMES:
        with suppress(DataError):
            cells = read_texts(rows.source, name, every_row=True, encoding=encoding)
            named = dict(zip(cells.lines, cells.texts, strict=True))
            return shares, [named.get(line, "").strip() for line in rows.lines]
    return shares, sources
