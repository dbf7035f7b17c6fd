"""What the benches print: quartiles, and results one by one or as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return {"median": float(middle), "low": float(low), "high": float(high)}


def give_out(results: Iterable[Any], show: Callable[[Any], object], as_json: bool) -> None:
    """Show each result as soon as it is there, or print them at the end as one JSON document."""
    done = []
    for result in results:
        done.append(result)
        if not as_json:
            show(result)
    if as_json:
        print(json.dumps(done))
