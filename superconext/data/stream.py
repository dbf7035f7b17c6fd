"""The texts of a file of any size, in its order and in constant memory: for prediction.

The formats, columns and rules are those of `corpus.read_texts`, read a block at a time.
What a block holds can be wrong in a line: `on_error` says whether that ends the reading
("fail") or the line is left out and counted ("skip"). What is wrong with the file as a
whole (no such column, no UTF-8 text at all) always ends it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from superconext.core.errors import DataError, MissingExtraError
from superconext.data.columns import ColumnSpec, resolve
from superconext.data.formats import Wanted, format_of, parquet_text
from superconext.data.lines import LineStream, decode_lines, open_lines
from superconext.data.source import STDIN, Source
from superconext.data.stream_parsers import PARSERS, Numbered, Parser

#: Bad lines that are told of one by one.
_TOLD = 5


class TextStream:
    """Iterates over blocks (lists) of texts.

    Args:
        path: a file as `read_texts` takes it, or "-" for standard input.
        text_column: as there.
        on_error: "fail" raises DataError at the first bad line, "skip" leaves it out.

    Attributes, all growing while one iterates:
        notes: what the reader decided and left out, for the user to read.
        read, skipped: texts given out, bad lines left out.
        problems: what was wrong with the first of these.
    """

    def __init__(
        self, path: str | Path, text_column: ColumnSpec = None, on_error: str = "fail"
    ) -> None:
        self.path, self.on_error = path, on_error
        self.wanted = Wanted(text_column, labelled=False)
        self.name = ""
        self.notes: list[str] = []
        self.problems: list[str] = []
        self.read = self.skipped = 0
        self._blank = self._pending_blank = 0

    def __iter__(self) -> Iterator[list[str]]:
        for block in self._blocks():
            if block:
                self.read += len(block)
                yield block
        if self._blank:
            self.notes.append(f"{self._blank} blank line{'s' * (self._blank > 1)} left out")
        if not self.read:
            raise DataError(
                f"{self.name}: none of {self.skipped} lines can be used, expected texts; the "
                f"first: {self.problems[0]}"
                if self.problems
                else f"{self.name} is empty, expected one example a line: check the file name"
            )

    def _blocks(self) -> Iterator[list[str]]:
        stream = open_lines(self.path)
        self.name = stream.name
        if stream.suffix in (".parquet", ".pq") or stream.first.startswith(b"PAR1"):
            yield from self._parquet(stream)
            return
        parser: Parser | None = None
        number = 1
        for lines in stream.blocks:
            good: list[Numbered] = []
            for at, line in decode_lines(lines, number, self.name):
                if isinstance(line, str):
                    good.append((at, line))
                else:
                    self.bad(line)
            number += len(lines)
            if parser is None:
                parser = self._parser(stream, good)
            if parser is not None:
                yield list(parser.feed(good))
        if parser is not None:
            yield list(parser.finish())
            self.notes += parser.last_notes()

    def _parser(self, stream: LineStream, lines: list[Numbered]) -> Parser | None:
        """What reads this format, decided by the first line that is not blank."""
        # A line of tabs is a row of empty cells: `format_of` too strips no tabs.
        first = next((line for _, line in lines if line.strip("\r\n ")), None)
        if first is None:
            self._pending_blank += len(lines)
            return None
        source = Source(stream.name, stream.suffix, b"", "")
        kind = format_of(source, first + "\n", self.wanted)
        return PARSERS[kind](self)

    def bad(self, error: DataError) -> None:
        """A line that cannot be used."""
        if self.on_error != "skip":
            raise error
        self.skipped += 1
        if len(self.problems) < _TOLD:
            self.problems.append(str(error))

    def is_blank(self, line: str, tabs_count: bool = False) -> bool:
        """Whether nothing stands on a line; those at the very end of a file go uncounted."""
        if not line or (line.isspace() and not (tabs_count and "\t" in line)):
            self._pending_blank += 1
            return True
        self._blank += self._pending_blank
        self._pending_blank = 0
        return False

    def example(self, text: str, label: str | None, number: int) -> str:
        """The text of a row. Raises DataError where nothing stands in it."""
        if not text.strip():
            raise DataError(
                f"{self.name}, line {number}: found an empty text, expected a text in every row: "
                "remove it"
            )
        return text

    def _parquet(self, stream: LineStream) -> Iterator[list[str]]:
        try:
            import pyarrow as arrow
            import pyarrow.parquet as parquet
        except ImportError:
            raise MissingExtraError("Reading Parquet files", "parquet") from None
        name = self.name
        whole: Any = self.path
        if str(self.path) == STDIN:  # its end must be read first
            whole = io.BytesIO(stream.first + sys.stdin.buffer.read())
        number = 0
        try:
            table = parquet.ParquetFile(whole)
            found = list(table.schema_arrow.names)
            wanted = self.wanted
            columns = [found[resolve(found, wanted.text_column, "text", "--text-column", name)]]
            if wanted.labelled:
                spec = wanted.label_column
                columns.append(found[resolve(found, spec, "label", "--label-column", name)])
            for batch in table.iter_batches(4096, columns=list(dict.fromkeys(columns))):
                texts = []
                for values in zip(*(batch.column(c).to_pylist() for c in columns), strict=True):
                    number += 1
                    try:
                        cells = [
                            parquet_text(value, column, name, number)
                            for value, column in zip(values, columns, strict=True)
                        ]
                        label = cells[1] if wanted.labelled else None
                        texts.append(self.example(cells[0], label, number))
                    except DataError as error:
                        self.bad(error)
                yield texts
        except (arrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(
                f"{name}: not a readable Parquet file ({reason}): write or copy it again"
            ) from None
