"""Excel workbooks (`.xlsx`), a row at a time; extra `xlsx`."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any

from superconext.core.errors import DataError, MissingExtraError
from superconext.data.formats import Records, TableFormat
from superconext.data.lines import ALWAYS_UNPACKED, MOST_RATIO, shown

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
                raise MissingExtraError("Reading a spreadsheet", "xlsx") from None
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
        """Number and cells of every row, as wide as the first filled one at least."""
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
                row = [_text(cell) for cell in cells]
                while row and not row[-1]:
                    row.pop()
                if row and not width:
                    width = len(row)
                    others = [shown(s.title, 24) for s in sheets if s is not sheet]
                    self.file.notes += [
                        f"sheet {shown(sheet.title, 24)} read, not {', '.join(others)}"
                    ] * bool(others)
                yield number, row + [""] * (width - len(row)) * bool(row)
            if width:
                return


def _text(value: object) -> str:
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
    limit = max(ALWAYS_UNPACKED, MOST_RATIO * packed)
    if size > limit:
        raise DataError(
            f"{name}: found a workbook that unpacks to {size} bytes, expected at most {limit}: do "
            "not trust the file"
        )
