"""How does one labelled file become train, dev and test without a text on two sides?"""

from __future__ import annotations

from typing import Any

from superconext.core.errors import DataError
from superconext.data.dataset import Dataset
from superconext.data.folder import Row
from superconext.data.near_duplicates import THRESHOLD, near_duplicates
from superconext.data.same_text import first_copies, text_keys
from superconext.data.splits import stratified_three_way


def split_corpus(
    corpus: Dataset,
    dev: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    *,
    profile: str = "auto",
    deduplicate: bool = False,
    near: bool = False,
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """Rows (label, text) of train, dev and test in the order of the file, and how they were made.

    Stratified by class and decided by the seed alone. Copies of a text, as `same_text` tells
    them under `profile`, always go to one side; with `near` near-duplicates do too. With
    `deduplicate` only the first copy of each text is kept, under the label most copies have. A
    part of fraction 0 is left out.

    Raises ConfigError for impossible fractions or an unknown profile, DataError where there are
    too few texts to give each part one.
    """
    keys_of, profile = text_keys({"all": corpus.texts}, profile)
    keys, labels, rows = keys_of["all"], list(corpus.labels), list(range(len(corpus)))
    if deduplicate:
        kept, labels = first_copies(keys, labels)
        rows = kept.tolist()
        keys = [keys[row] for row in rows]
    sides = _grouped(keys) if near else keys
    drawn = stratified_three_way(sides, labels, seed, dev, test)
    names = {"train": 1.0, "dev": dev, "test": test}
    parts: dict[str, list[Row]] = {}
    for (name, fraction), places in zip(names.items(), drawn, strict=True):
        if not len(places) and fraction > 0:
            raise DataError(
                f"{corpus.source}: found {len(set(sides))} distinct texts, too few to keep two of "
                f"each class in train and give {name} one, expected more: set {name} to 0, or "
                "add rows"
            )
        if len(places):
            parts[name] = [(labels[p], corpus.texts[rows[p]]) for p in places.tolist()]
    made = {
        "source": {"file": corpus.source, "sha256": corpus.sha256, "rows": len(corpus)},
        "seed": seed,
        "fractions": {"dev": dev, "test": test},
        "normalize": profile,
        "deduplicated": len(corpus) - len(rows) if deduplicate else None,
        "near_duplicates_together": near,
    }
    return parts, made


def _grouped(keys: list[str]) -> list[str]:
    """Each key replaced by that of the first member of its group of near-duplicates."""
    distinct = list(dict.fromkeys(keys))
    first = {
        distinct[place]: distinct[group[0]]
        for group in near_duplicates(distinct, THRESHOLD).groups
        for place in group
    }
    return [first.get(key, key) for key in keys]
