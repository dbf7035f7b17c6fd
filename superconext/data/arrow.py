"""Parquet files, Arrow files, and folders that Hugging Face `datasets` saved; extra `parquet`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from superconext.core.errors import DataError, MissingExtraError
from superconext.data.file_format import Block, FileFormat, Votes, parsed_rows
from superconext.data.lines import ARROW_FOLDER, shard_paths, shown

_ROWS = 4096  # read at a time


class Parquet(FileFormat):
    """Columns of a Parquet file, read in batches."""

    suffixes: tuple[str, ...] = (".parquet", ".pq")
    magic = b"PAR1"
    kind = "Parquet file"

    def blocks(self) -> Iterator[Block]:
        file, name = self.file, self.file.name
        try:
            import pyarrow as arrow
        except ImportError:
            raise MissingExtraError(f"Reading a {self.kind}", "parquet") from None
        number = 1
        try:
            schema, batches = self._opened()
            columns = [*file.named(list(schema.names)), *file.voters]
            width = len(columns) - len(file.voters)
            classes = _class_names(schema.metadata)
            empty = {*file.voters, *columns[: file.wanted.every_row]}

            def parse(values: Sequence[object], number: int) -> tuple[str, str | Votes]:
                cells = [
                    _text(value, column, f"{name}, row {number}", column in empty, classes)
                    for value, column in zip(values, columns, strict=True)
                ]
                if file.voters:
                    return cells[0], file.votes(dict(zip(file.voters, cells[width:], strict=True)))
                return cells[0], cells[1] if len(cells) > 1 else ""

            for batch in batches:
                if not batch.num_rows:
                    continue
                rows = list(zip(*(batch.column(c).to_pylist() for c in columns), strict=True))
                numbers = range(number, number + len(rows))
                number += len(rows)
                yield parsed_rows(file, numbers, rows, parse, file.wanted.labelled)
        except (arrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(
                f"{name}: not a readable {self.kind} ({reason}): write or copy it again"
            ) from None

    def _opened(self) -> tuple[Any, Iterable[Any]]:
        """The schema and the batches of rows."""
        import pyarrow.parquet as parquet

        table = parquet.ParquetFile(self.file.file.binary())
        return table.schema_arrow, table.iter_batches(_ROWS)


class Arrow(Parquet):
    """An Arrow file, or a folder of them as `save_to_disk` of Hugging Face `datasets` writes it."""

    suffixes = (".arrow",)
    magic = ARROW_FOLDER
    kind = "Arrow file"

    def _opened(self) -> tuple[Any, Iterable[Any]]:
        import pyarrow.ipc as ipc

        source = self.file.file.binary()
        shards = [source]
        if isinstance(source, str | Path) and Path(source).is_dir():
            shards = list(shard_paths(Path(source)))
        first = ipc.open_stream(shards[0])

        def batches() -> Iterator[Any]:
            for shard in shards:
                with ipc.open_stream(shard) as reader:
                    yield from reader

        return first.schema, batches()


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


def _text(
    value: object, column: str, where: str, empty: bool, classes: Mapping[str, Sequence[str]]
) -> str:
    """The text or number in one cell, as text; the name of a class for its number.

    empty: null may stand for an empty text.
    """
    if empty and (value is None or value != value):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(
            f"{where}: {shown(column)} holds {type(value).__name__}, expected a string or a "
            "number: complete the row or remove it"
        )
    names = classes.get(column, ())
    if isinstance(value, int) and 0 <= value < len(names):
        return str(names[value])
    return "" if names and value == -1 else str(value)
