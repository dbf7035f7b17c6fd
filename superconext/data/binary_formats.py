"""Tables that another library reads: Parquet, Arrow files and folders, Excel workbooks.

Extras `parquet` and `xlsx`.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from superconext.core.errors import DataError, MissingExtraError
from superconext.data.file_format import Block, FileFormat, Votes, parsed_rows
from superconext.data.formats import Records, TableFormat
from superconext.data.lines import ARROW_FOLDER, LONGEST, most_unpacked, shard_paths, shown

_ROWS = 4096  # read at a time
#: Types of columns of text or bytes, as Arrow names them.
_TEXTS = (
    "string", "binary", "large_string", "large_binary", "string_view", "binary_view",
)  # fmt: skip
#: How a file begins; `datasets` writes streams, which do not.
_ARROW_FILE = b"ARROW1\0\0"


class Parquet(FileFormat):
    """Columns of a Parquet file, read in batches."""

    suffixes: tuple[str, ...] = (".parquet", ".pq")
    magic: bytes | tuple[bytes, ...] = b"PAR1"
    kind = "a Parquet file"

    def blocks(self) -> Iterator[Block]:
        file, name = self.file, self.file.name
        try:
            import pyarrow as arrow
        except ImportError:
            raise MissingExtraError(f"Reading {self.kind}", "parquet") from None
        number = 1
        try:
            schema, batches, size = self._opened()
            columns = [*file.named(list(schema.names)), *file.voters]
            width = len(columns) - len(file.voters)
            classes = _class_names(schema.metadata)
            others = [c for c in schema.names if file.wanted.beside and c not in columns]

            def parse(values: Sequence[object], number: int) -> tuple[str, str | Votes]:
                cells = [
                    _text(value, column, f"{name}, row {number}", classes)
                    for value, column in zip(values, columns, strict=False)
                ]
                if file.wanted.beside:
                    every = zip([*columns, *others], values, strict=True)
                    file.cells = {
                        name: "" if value is None else str(value) for name, value in every
                    }
                if file.voters:
                    return cells[0], file.votes(dict(zip(file.voters, cells[width:], strict=True)))
                return cells[0], cells[1] if len(cells) > 1 else ""

            room = _Room(name, size)
            for batch in batches:
                if not batch.num_rows:
                    continue
                cells = (room.take(batch.column(c), c, number) for c in [*columns, *others])
                rows = list(zip(*(column.to_pylist() for column in cells), strict=True))
                numbers = range(number, number + len(rows))
                number += len(rows)
                yield parsed_rows(file, numbers, rows, parse, file.wanted.labelled)
        except (arrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(
                f"{name}: not readable as {self.kind} ({reason}): write or copy it again"
            ) from None

    def _opened(self) -> tuple[Any, Iterable[Any], int]:
        """The schema, the batches of rows, and the bytes that all are packed into."""
        import pyarrow.parquet as parquet

        source = self.file.file.binary()
        found = parquet.read_schema(source)
        # A text that many rows share takes room once.
        texts = [one.name for one in found if str(one.type) in _TEXTS]
        table = parquet.ParquetFile(source, read_dictionary=texts)
        return found, table.iter_batches(_ROWS), _size_of([source])


class Arrow(Parquet):
    """An Arrow or Feather file, or a folder as `save_to_disk` of Hugging Face `datasets` writes."""

    suffixes = (".arrow", ".feather")
    magic = (ARROW_FOLDER, _ARROW_FILE)
    kind = "an Arrow file"

    def _opened(self) -> tuple[Any, Iterable[Any], int]:
        import pyarrow.ipc as ipc

        source = self.file.file.binary()
        shards = [source]
        if isinstance(source, str | Path) and Path(source).is_dir():
            shards = list(shard_paths(Path(source)))
        size = _size_of(shards)
        if len(shards) == 1 and self.file.file.first.startswith(_ARROW_FILE):
            whole = ipc.open_file(source)
            return whole.schema, map(whole.get_batch, range(whole.num_record_batches)), size
        first = ipc.open_stream(shards[0])

        def batches() -> Iterator[Any]:
            for shard in shards:
                with ipc.open_stream(shard) as reader:
                    yield from reader

        return first.schema, batches(), size


def _size_of(sources: Iterable[Any]) -> int:
    """Bytes of files, or of streams that are in memory."""
    return sum(
        Path(one).stat().st_size if isinstance(one, str | Path) else one.getbuffer().nbytes
        for one in sources
    )


def _lengths(values: Any) -> np.ndarray:
    """Bytes of each text of a column `[N]`, int64; of null 0, as writers leave it."""
    import pyarrow.compute as compute

    if str(values.type).endswith("view"):  # its views of 16 bytes begin with the length
        views = np.frombuffer(values.buffers()[1], dtype=np.int32).reshape(-1, 4)
        return views[values.offset : values.offset + len(values), 0].astype(np.int64)
    return compute.binary_length(values).cast("int64").fill_null(0).to_numpy(zero_copy_only=False)


class _Room:
    """How much the texts of a file of `size` bytes may take once they are unpacked."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size, self.taken = name, size, 0

    def take(self, given: Any, column: str, number: int) -> Any:
        """A column of a batch that begins at a row, with each text of its own. Raises DataError for
        too much."""
        import pyarrow as arrow

        shared = arrow.types.is_dictionary(given.type)
        values = given.dictionary if shared else given
        if str(values.type) not in _TEXTS:
            return given
        lengths = _lengths(values)
        if shared:
            lengths = lengths[given.indices.drop_null().to_numpy(zero_copy_only=False)]
        if lengths.max(initial=0) > LONGEST:
            raise DataError(
                f"{self.name}: from row {number} on {shown(column)} has a text longer than "
                f"{LONGEST >> 20} MiB, expected a sentence: break it up"
            )
        self.taken += int(lengths.sum())
        if self.taken > most_unpacked(self.size):
            raise DataError(
                f"{self.name}: {self.size} bytes that unpack to more than "
                f"{most_unpacked(self.size)}, expected sentences, which no packing makes so much "
                "shorter: do not trust the file"
            )
        return given.dictionary_decode() if shared else given


def _class_names(metadata: Mapping[bytes, bytes] | None) -> dict[str, list[str]]:
    """The names of classes by column, as `datasets` writes them into a schema."""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        features = json.loads((metadata or {})[b"huggingface"])["info"]["features"]
        return {
            column: feature["names"]
            for column, feature in features.items()
            if isinstance(feature, dict) and isinstance(feature.get("names"), list)
        }
    return {}


def _text(value: object, column: str, where: str, classes: Mapping[str, Sequence[str]]) -> str:
    """The text, number or truth in one cell, as text; the name of a class for its number; "" for
    null."""
    if value is None or value != value:
        return ""
    if not isinstance(value, str | int | float):
        whole = isinstance(value, list | dict)
        mend = "name another column, or save an annotation tool's as JSON" if whole else "remove it"
        raise DataError(
            f"{where}: {shown(column)} holds {type(value).__name__}, expected a string or a "
            f"number: {mend}"
        )
    names = classes.get(column, ())
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(names):
        return str(names[value])
    return "" if names and value == -1 else str(value)


_RUN = 1024  # rows given out at once
_MOST_ROWS = 1 << 20  # a sheet has no more


class Spreadsheet(TableFormat):
    """The first sheet of a workbook in which something stands; formulas as last computed."""

    suffixes = (".xlsx", ".xlsm")
    magic = b"PK\x03\x04"
    separator, separator_name = "", "cell"

    def records(self) -> Records:
        name, every_row = self.file.name, self.file.wanted.every_row
        try:
            source = self.file.file.binary()
            _check_archive(source, name)
            try:
                import openpyxl
            except ImportError:
                found = f"{name} is an Excel workbook: save it as CSV UTF-8; reading it as it is"
                raise MissingExtraError(found, "xlsx") from None
            book = openpyxl.load_workbook(source, read_only=True, data_only=True)
            numbers: list[int] = []
            rows: list[list[str]] = []
            for number, row in self._filled(book):
                if not self.file.count_blank(not row) or every_row:
                    numbers.append(number)
                    rows.append(row or [""])
                if len(rows) == _RUN:
                    yield numbers, rows
                    numbers, rows = [], []
            if rows:
                yield numbers, rows
        except (DataError, MemoryError, MissingExtraError):
            raise
        except Exception as error:  # a damaged workbook makes its reader fail in many ways
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise DataError(
                f"{name}: not a readable workbook ({reason}), expected .xlsx: save it again, or "
                "as CSV"
            ) from None

    def _filled(self, book: Any) -> Iterator[tuple[int, list[str]]]:
        """Number and cells of every row, as wide as those above at least."""
        sheets = list(book.worksheets)
        for sheet in sheets:
            sheet.reset_dimensions()  # what a file says of them is not relied on
            width = 0
            for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
                if number > _MOST_ROWS:
                    raise DataError(
                        f"{self.file.name}: found a sheet of more than {_MOST_ROWS} rows, expected "
                        "no more than Excel has: do not trust the file"
                    )
                row = [_cell_text(cell) for cell in cells]
                while row and not row[-1]:
                    row.pop()
                if row and not width:
                    others = [shown(s.title, 24) for s in sheets if s is not sheet]
                    self.file.notes += [
                        f"sheet {shown(sheet.title, 24)} read, not {', '.join(others)}"
                    ] * bool(others)
                width = max(width, len(row))
                yield number, row + [""] * (width - len(row)) * bool(row)
            if width:
                return


def _cell_text(value: object) -> str:
    """A cell as Excel would write it into a CSV, about."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _check_archive(source: Any, name: str) -> None:
    """Raise DataError for a zip archive that is no workbook, or that unpacks to too much."""
    with zipfile.ZipFile(source) as archive:
        members = archive.infolist()
        size, packed = (
            sum(getattr(m, key) for m in members) for key in ("file_size", "compress_size")
        )
        if not any(member.filename == "xl/workbook.xml" for member in members):
            raise DataError(
                f"{name}: found a zip archive or another kind of document, expected text or an "
                ".xlsx workbook: unpack it, or save the sheet as .xlsx or CSV"
            )
    limit = most_unpacked(packed)
    if size > limit:
        raise DataError(
            f"{name}: found a workbook that unpacks to {size} bytes, expected at most {limit}: do "
            "not trust the file"
        )
