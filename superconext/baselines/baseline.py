"""What every baseline takes and gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Split = tuple[Sequence[str], Sequence[str]]


@dataclass(frozen=True)
class Baseline:
    """A fitted baseline: `predict` maps texts `[N]` to labels `[N]`."""

    name: str
    predict: Callable[[Sequence[str]], list[str]]
    settings: dict[str, float]
    seconds: float
