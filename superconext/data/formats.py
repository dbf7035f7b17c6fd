"""What format is a file in, and what examples does it hold?

The suffix decides (behind a closing `.gz`); any other file is judged by its first line.

| format | suffix | columns |
|---|---|---|
| CSV, TSV | `.csv`, `.tsv` `.tab` | a header, or numbers, or two columns (see `columns`) |
| JSON lines | `.jsonl` `.ndjson` `.json` | keys; a number counts the keys of the first record |
| Parquet | `.parquet` `.pq` | columns by name or number; needs the `parquet` extra |
| fastText | first line opens with `__label__` | one `__label__x` before each text |
| plain text | `.txt`, standard input | the whole line; text only, never labelled |

Blank lines hold no example and are left out, with a note that counts them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from superconext.core.errors import DataError, MissingExtraError
from superconext.data.columns import Columns, ColumnSpec, find_columns, resolve
from superconext.data.delimited import Rows, parse_csv, parse_tsv
from superconext.data.json_lines import json_record, json_value
from superconext.data.source import STDIN_NAME, Source, decode, shown

FASTTEXT_PREFIX = "__label__"
_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


@dataclass(frozen=True)
class Wanted:
    """What to take from a file: the two columns, and whether labels are needed at all."""

    text_column: ColumnSpec = None
    label_column: ColumnSpec = None
    labelled: bool = True


@dataclass(frozen=True)
class Examples:
    """Texts, labels (empty where not wanted) and 1-based line or record numbers, as found."""

    texts: list[str]
    labels: list[str]
    lines: list[int]
    notes: list[str]


def read_examples(source: Source, wanted: Wanted) -> Examples:
    """Read any supported format. Raises DataError; MissingExtraError for Parquet."""
    if _FORMATS.get(source.suffix) == "parquet" or source.data.startswith(b"PAR1"):
        return read_parquet(source, wanted)
    text = decode(source)
    readers: dict[str, Callable[[str, str, Wanted], Examples]] = {
        "csv": read_csv,
        "tsv": read_tsv,
        "jsonl": read_jsonl,
        "fasttext": read_fasttext,
        "plain": read_plain,
    }
    return readers[format_of(source, text, wanted)](text, source.name, wanted)


def format_of(source: Source, text: str, wanted: Wanted) -> str:
    """`csv`, `tsv`, `jsonl`, `fasttext` or `plain`, from the suffix or else the first line."""
    known = _FORMATS.get(source.suffix)
    first = text.lstrip("\r\n ").split("\n", 1)[0]
    if first.startswith(FASTTEXT_PREFIX) and known in (None, "tsv"):
        return "fasttext"
    if known is not None:
        return known
    plain = source.suffix == ".txt" or source.name == STDIN_NAME
    if plain and not wanted.labelled and wanted.text_column is None:
        return "plain"
    if first.startswith("{"):
        return "jsonl"
    if "\t" in first:
        return "tsv"
    if not wanted.labelled and wanted.text_column is None:
        return "plain"
    if "," in first and not plain:
        return "csv"
    raise DataError(
        f"{source.name}: format not recognised, first line is {shown(first)}, expected columns, "
        "JSON lines or __label__ lines: name the file .csv, .tsv or .jsonl for what it is"
    )


def read_csv(text: str, source: str, wanted: Wanted) -> Examples:
    """CSV after RFC 4180: quoting, doubled quotes, newlines inside quotes."""
    return _from_rows(parse_csv(text, source), source, wanted)


def read_tsv(text: str, source: str, wanted: Wanted) -> Examples:
    """TSV without quoting."""
    return _from_rows(parse_tsv(text), source, wanted)


def _from_rows(rows: Rows, source: str, wanted: Wanted) -> Examples:
    columns = find_columns(
        rows.cells, wanted.text_column, wanted.label_column, source, wanted.labelled
    )
    first = 1 if columns.header else 0
    cells, lines = rows.cells[first:], rows.lines[first:]
    if not cells:
        raise DataError(f"{source}: found a header and no rows, expected examples under it")
    width = len(rows.cells[0])
    for record, line in zip(cells, lines, strict=True):
        check_record(record, columns, width, rows.separator, f"{source}, line {line}")
    notes = columns.notes + _blank_note(rows.blank)
    texts = [record[columns.text] for record in cells]
    labels = [] if columns.label is None else [record[columns.label] for record in cells]
    return Examples(texts, labels, lines, notes)


def check_record(
    record: Sequence[str], columns: Columns, width: int, separator: str, where: str
) -> None:
    """Raise DataError unless a row under a first row of `width` cells is whole.

    A short record is whole as long as the wanted cells are there; a long one is not, for
    the separator too many may stand before them. Empty cells at the end are harmless.
    """
    needed = max(columns.text, -1 if columns.label is None else columns.label) + 1
    count = len(record)
    if count >= needed and (count <= width or not any(record[width:])):
        return
    advice = "complete the row or remove it"
    if count >= needed:
        quote = " or quote the cell" if separator == "comma" else ""
        advice = f"remove the extra {separator}{quote}"
    raise DataError(
        f"{where}: found {count} {'column' if count == 1 else 'columns'} separated by "
        f"{separator}s, expected {needed if count < needed else width}: {advice}"
    )


def read_jsonl(text: str, source: str, wanted: Wanted) -> Examples:
    """One JSON object a line. Numbers are taken as they are spelt, so 1 and 1.0 differ."""
    texts, labels, lines = [], [], []
    keys: list[str] | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.strip()
        if not line:
            continue
        record = json_record(line, source, number)
        if keys is None:
            found = list(record)
            keys = [found[resolve(found, wanted.text_column, "text", "--text-column", source)]]
            if wanted.labelled:
                spec = wanted.label_column
                keys.append(found[resolve(found, spec, "label", "--label-column", source)])
        values = [json_value(record, key, source, number) for key in keys]
        texts.append(values[0])
        labels.extend(values[1:])
        lines.append(number)
    return Examples(texts, labels, lines, _blank_note(lines[-1] - len(lines)))


def read_fasttext(text: str, source: str, wanted: Wanted) -> Examples:
    """fastText's supervised format with one label a line, before the text."""
    texts, labels, lines = [], [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        label, text = fasttext_line(line, source, number)
        labels.append(label)
        texts.append(text)
        lines.append(number)
    labels = labels if wanted.labelled else []
    notes = ["read as fastText lines: __label__ and the label, then the text"]
    return Examples(texts, labels, lines, notes + _blank_note(lines[-1] - len(lines)))


def fasttext_line(line: str, source: str, number: int) -> tuple[str, str]:
    """Label and text of one line that is not blank."""
    head, rest = [*line.split(None, 1), ""][:2]
    if not head.startswith(FASTTEXT_PREFIX) or head == FASTTEXT_PREFIX:
        raise DataError(
            f"{source}, line {number}: begins with {shown(head)}, expected __label__ and "
            "the label's name, as in the first line: label the line or remove it"
        )
    if FASTTEXT_PREFIX in rest and any(token.startswith(FASTTEXT_PREFIX) for token in rest.split()):
        raise DataError(
            f"{source}, line {number}: found several __label__ on the line, expected one: "
            "classification here is single-label only, keep one label for each text"
        )
    return head[len(FASTTEXT_PREFIX) :], rest.rstrip()


def read_plain(text: str, source: str, wanted: Wanted) -> Examples:
    """One sentence a line, for prediction."""
    del wanted
    numbered = [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    notes = ["read as plain text, one sentence a line"]
    notes += _blank_note(numbered[-1][0] - len(numbered))
    tabs = sum("\t" in line for _, line in numbered)
    if tabs:
        where = "name the file .tsv or " if source != STDIN_NAME else ""
        notes.append(
            f"{tabs} of {len(numbered)} lines hold a tab, kept as part of the sentence: "
            f"{where}give --text-column if the tab separates columns"
        )
    return Examples([line for _, line in numbered], [], [n for n, _ in numbered], notes)


def read_parquet(source: Source, wanted: Wanted) -> Examples:
    """A Parquet table; rows are counted from 1. Raises MissingExtraError without pyarrow."""
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise MissingExtraError("Reading Parquet files", "parquet") from None
    name = source.name
    try:
        table = parquet.ParquetFile(io.BytesIO(source.data))
        found = list(table.schema_arrow.names)
        text = resolve(found, wanted.text_column, "text", "--text-column", name)
        picked = [found[text]]
        if wanted.labelled:
            label = resolve(found, wanted.label_column, "label", "--label-column", name)
            picked.append(found[label])
        read = table.read(columns=picked)
        columns = [read.column(column).to_pylist() for column in picked]
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise DataError(
            f"{name}: not a readable Parquet file ({reason}): write or copy it again"
        ) from None
    for column, values in zip(picked, columns, strict=True):
        values[:] = [
            parquet_text(value, column, name, number) for number, value in enumerate(values, 1)
        ]
    labels = columns[1] if wanted.labelled else []
    return Examples(columns[0], labels, list(range(1, len(columns[0]) + 1)), [])


def parquet_text(value: object, column: str, source: str, number: int) -> str:
    """The text or number in one cell, as text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise DataError(
            f"{source}, row {number}: {shown(column)} holds {type(value).__name__}, expected "
            "a string or a number: complete the row or remove it"
        )
    return str(value)


def _blank_note(count: int) -> list[str]:
    return [f"{count} blank line{'s' if count > 1 else ''} left out"] if count else []
