"""Reading a run's recorded facts when any of them may be missing or of another type."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any

from superconext.report.table import escape_markdown

Facts = Mapping[str, Any]


def look(facts: Any, *keys: str) -> Any:
    """The value at a path of keys, or None where the path ends early."""
    for key in keys:
        if not isinstance(facts, Mapping):
            return None
        facts = facts.get(key)
    return facts


def number(given: Any) -> float | None:
    """A finite number as float, else None."""
    if isinstance(given, bool) or not isinstance(given, Real) or not math.isfinite(given):
        return None
    return float(given)


def text_of(given: Any) -> str:
    """Text as literal Markdown; "" for anything that is not text."""
    return escape_markdown(given) if isinstance(given, str) else ""


def reported_split(facts: Facts) -> str:
    """The split whose figures stand for the run: as recorded, else test, else dev."""
    recorded = look(facts, "reported_split")
    if isinstance(recorded, str) and isinstance(look(facts, recorded), Mapping):
        return recorded
    return next((s for s in ("test", "dev") if isinstance(look(facts, s), Mapping)), "test")


def rows_judged(facts: Facts, split: str) -> float | None:
    """How many rows a split's scores stand on: its `n`, else the sum of the supports."""
    n = number(look(facts, split, "n"))
    table = look(facts, split, "per_class")
    if n is None and isinstance(table, Mapping) and table:
        supports = [number(look(table, name, "support")) for name in table]
        known = [support for support in supports if support is not None]
        n = sum(known) if len(known) == len(supports) else None
    return n if n is not None and n > 0 else None


def wilson(share: float, n: float, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's score interval of a share of `n` trials, by default at 95%.

    Source: E. B. Wilson (1927); unlike share +- z * sd it stays within [0, 1] and holds
    for small `n` and shares near 0 or 1.
    """
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
