"""Tables of the docs that are generated: each stands between two comments that name it.

<!-- table NAME -->
...
<!-- end NAME -->
"""

from __future__ import annotations

import re
from pathlib import Path

from superconext.report.table import Grid


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
