"""Data sets written as folders: `train`, `dev`, `test` (or fewer) and `dataset.json`.

`dataset.json` records where the rows come from. A folder is made beside its place and renamed at
the end, so that nobody ever meets half of one.
"""

from __future__ import annotations

import csv
import json
import shutil
import sysconfig
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from superconext._version import __version__
from superconext.core.errors import DataError
from superconext.core.files import (
    file_sha256,
    free_folder,
    replace_folder,
    staging_folder,
    tsv_cell,
    write_json,
)

RECORD = "dataset.json"

#: Formats a folder can be written in.
FORMS = ("tsv", "csv", "jsonl")

Row = tuple[str, str]  # label, text


def check_folder(out: str | Path, force: bool = False) -> Path:
    """The folder to write. Raises DataError unless it is new, or a data set and `force` is set."""
    return free_folder(out, force, RECORD, "folder of a data set", DataError)


def write_folder(
    out: str | Path,
    parts: Mapping[str, Iterable[Row]],
    record: Mapping[str, Any],
    form: str = "tsv",
    force: bool = False,
) -> dict[str, Any]:
    """Write each part as `NAME.FORM` with the columns `label` and `text`, and the record.

    TSV has no quoting: tabs and line ends inside a text become spaces.

    parts: rows by name, each iterated once. record: what `dataset.json` says besides the files and
    this package's version. form: `tsv`, `csv` or `jsonl`. force: replace an earlier data set.

    Returns the document of `dataset.json`; its `files` have `rows`, `classes` and `sha256`. Raises
    DataError where the folder may not be written or a part has no rows, OSError as the system does.
    """
    folder = check_folder(out, force)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with staging_folder(folder) as hidden:
        made = hidden / "new"
        made.mkdir()
        files: dict[str, Any] = {}
        for name, rows in parts.items():
            path = made / f"{name}.{form}"
            classes = _write(path, rows, form)
            if not classes:
                raise DataError(f"{folder / path.name}: found no rows for it, expected some")
            files[path.name] = {
                "rows": sum(classes.values()),
                "classes": dict(sorted(classes.items())),
                "sha256": file_sha256(path),
            }
        document = {**record, "files": files, "superconext": __version__}
        write_json(made / RECORD, document)
        replace_folder(made, folder, hidden / "old")
    return document


def _write(path: Path, rows: Iterable[Row], form: str) -> Counter[str]:
    classes: Counter[str] = Counter()
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        if form == "csv":
            table.writerow(("label", "text"))
        if form == "tsv":
            stream.write("label\ttext\n")
        for label, text in rows:
            classes[label] += 1
            if form == "csv":
                table.writerow((label, text))
            elif form == "tsv":
                stream.write(f"{tsv_cell(label)}\t{tsv_cell(text)}\n")
            else:
                document = {"label": label, "text": text}
                stream.write(json.dumps(document, ensure_ascii=False) + "\n")
    return classes


SAMPLE_FILES = ("train.tsv", "dev.tsv", "test.tsv", "unlabelled.txt")

#: Where the files may be: of a checkout, of an installed wheel.
PLACES = (
    Path(__file__).parents[2] / "data" / "sample",
    Path(sysconfig.get_path("data")) / "share" / "superconext" / "sample",
)


def write_sample(folder: Path, force: bool = False) -> list[Path]:
    """Copy the sample's files into a folder, which is made; returns their paths.

    Raises DataError where a file of that name is there and `force` is not given, or where the
    installation lacks the sample.
    """
    source = next((place for place in PLACES if (place / SAMPLE_FILES[0]).is_file()), None)
    if source is None:
        raise DataError(
            f"{PLACES[-1]}: the sample is not there; expected what the wheel installs: install "
            "superconext again, or take data/sample from its source"
        )
    paths = [folder / name for name in SAMPLE_FILES]
    there = next((path for path in paths if path.exists()), None)
    if there is not None and not force:
        raise DataError(f"{there} exists already; expected none: choose another or add --force")
    folder.mkdir(parents=True, exist_ok=True)
    for path in paths:
        shutil.copyfile(source / path.name, path)
    return paths
