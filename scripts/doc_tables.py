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

import numpy as np
from scipy.stats import sem, t

from superconext.report.table import Grid


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a file of figures, by the names of its columns."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows, whose keys are those of the first, in the place of the file; cells that a row
    lacks are empty. Raises SystemExit, and leaves the file, where there are none."""
    if not rows:
        raise SystemExit(f"error: found nothing to write to {path}; expected results: run them")
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n", restval="")
            writer.writeheader()
            writer.writerows(rows)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def mean_over_sets(values: Mapping[str, Sequence[float]]) -> str:
    """The mean of differences by set, and half its 95% interval by Student's t over the sets."""
    means = [float(np.mean(of)) for of in values.values()]
    half = float(t.ppf(0.975, len(means) - 1) * sem(means)) if len(means) > 1 else float("nan")
    return f"{np.mean(means):+.1f} ± {half:.1f} ({len(means)} sets)"


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
