"""Train, dev and test rows of every fit of a set: the protocol of `dialect_results.py`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from superconext.baselines.baseline import Split
from superconext.data.duplicates import deduplicate
from superconext.data.reading import read_labelled

Parts = tuple[int, Split, Split, Split]


def splits(folder: Path, drop_leaked: bool = False) -> Iterator[Parts]:
    """(seed, train, dev, test) of every fit of the set in a folder."""
    if (folder / "all.tsv").exists():
        yield from random_splits(folder)
        return
    train, test = (read_labelled(folder / f"{part}.tsv") for part in ("train", "test"))
    for seed in range(5):
        if (folder / "dev.tsv").exists():
            own, dev = train, read_labelled(folder / "dev.tsv")
        else:
            kept, held = halves(train.labels, np.arange(len(train)), 0.1, seed)
            own, dev = train.select(kept), train.select(held)
        if drop_leaked:
            held_back = {*dev.texts, *test.texts}
            own = own.select(np.flatnonzero([text not in held_back for text in own.texts]))
        yield seed, *((part.texts, part.labels) for part in (own, dev, test))


def random_splits(folder: Path) -> Iterator[Parts]:
    corpus = read_labelled(folder / "all.tsv")
    corpus = corpus.select(deduplicate(corpus.texts))
    for seed in range(10 if folder.name == "msac" else 5):
        train, rest = halves(corpus.labels, np.arange(len(corpus)), 0.2, seed)
        dev, test = halves(corpus.labels, rest, 0.5, seed)
        parts = [corpus.select(rows) for rows in (train, dev, test)]
        yield seed, *((part.texts, part.labels) for part in parts)


def halves(labels: list[str], rows: np.ndarray, share: float, seed: int) -> list[np.ndarray]:
    """Rows split in two, stratified, as published figures on these sets were made."""
    splitter = StratifiedShuffleSplit(1, test_size=share, random_state=seed)
    return [rows[part] for part in next(splitter.split(rows, [labels[i] for i in rows]))]
