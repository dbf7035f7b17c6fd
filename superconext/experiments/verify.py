"""Do the lines of a comparison come out again? `superconext compare --verify`."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superconext._version import __version__
from superconext.errors import RunError
from superconext.experiments.compare import run_fits
from superconext.experiments.plan import Fit, key_of
from superconext.experiments.pools import read_pools
from superconext.experiments.record import make_record, read_record, saved_request
from superconext.experiments.results import FILE, read_results
from superconext.training.progress import Progress

_SAME = ("predictions", "truth", "native", "dev", "test", "probe_C", "C")


@dataclass(frozen=True)
class Check:
    """differing: test rows predicted otherwise; changed: keys of the line that differ."""

    fit: Fit
    rows: int
    differing: int
    changed: tuple[str, ...]

    @property
    def same(self) -> bool:
        return not self.changed

    def __str__(self) -> str:
        if self.same:
            return f"{self.fit}: match ({self.rows} predictions)"
        return (
            f"{self.fit}: DIFFERS ({self.differing} of {self.rows} predictions; "
            f"differing: {', '.join(self.changed)})"
        )


def verify(folder: Path, number: int, progress: Progress, *, jobs: int = 1) -> list[Check]:
    """Re-run `number` lines of a comparison, drawn at random, from the files it names.

    A line matches if every prediction, figure and chosen C is exactly the one written.

    Raises RunError if the folder is no comparison, was made by another version, or if its
    data have changed since.
    """
    record = read_record(folder)
    lines = read_results(folder / FILE)
    if not lines:
        raise RunError(f"{folder / FILE}: found no fit to verify; expected one or more lines")
    if record["identity"].get("version") != __version__:
        raise RunError(
            f"{folder}: made by version {record['identity'].get('version')}, this is "
            f"{__version__}; expected the same: install that version to verify it"
        )
    chosen = random.sample(sorted(lines), min(number, len(lines)))
    fits = {key: Fit(*key) for key in chosen}
    request = saved_request(record)
    pools = read_pools(
        request.files(),
        record["identity"]["splits"],
        text_column=request.text_column,
        label_column=request.label_column,
        remove_copies=request.deduplicate,
        progress=progress,
    )
    example = [Fit(request.objectives[0], 0, "")]
    now = make_record(request, record["identity"]["splits"], pools, example)
    if now["identity"] != record["identity"] or pools.labels != record["labels"]:
        raise RunError(
            f"{folder}: the data or vectors it was made from have changed since; expected the "
            "files as they were: put them back"
        )
    if now["versions"] != record["versions"]:
        changed = [k for k, v in now["versions"].items() if record["versions"].get(k) != v]
        progress.say(
            f"note: made with other versions of {', '.join(changed)}; figures may differ for that"
        )
    checks = []
    with progress.bar("verifying") as advance:
        for again in run_fits(list(fits.values()), pools, request.given, jobs):
            key = key_of(again)
            checks.append(_checked(fits[key], lines[key], again))
            advance(len(checks) / len(fits))
    return checks


def _checked(fit: Fit, before: Mapping[str, Any], again: Mapping[str, Any]) -> Check:
    old = before.get("predictions", [])
    new = again.get("predictions", [])
    differing = sum(a != b for a, b in zip(old, new, strict=False)) + abs(len(old) - len(new))
    changed = tuple(name for name in _SAME if before.get(name) != again.get(name))
    return Check(fit, len(old), differing, changed)
