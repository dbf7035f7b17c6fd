"""Tables of the docs that are generated: each stands between two comments that name it.

<!-- table NAME -->
...
<!-- end NAME -->
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from superconext.report.table import Grid


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file of figures, by the names of its columns."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows, which have the same keys, in the place of the file."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_table(page: Path, name: str, grid: Grid) -> None:
    """Put the grid in the place of the table of this name. Raises ValueError without it."""
    text = page.read_text(encoding="utf-8")
    page.write_text(with_table(text, name, grid), encoding="utf-8")


def with_table(text: str, name: str, grid: Grid) -> str:
    """The text of a page with the grid as its table of this name."""
    begin, end = f"<!-- table {name} -->", f"<!-- end {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"expected one {begin} with {end} after it")
    return pattern.sub(lambda _: f"{begin}\n{grid.markdown()}\n{end}", text)
