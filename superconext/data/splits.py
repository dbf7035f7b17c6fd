"""Splits into train, dev and test rows, stratified by class, and their folders.

Splits are made over distinct texts: every copy of a text (`duplicates.text_keys`) goes to the same
side, so that none ever crosses. They are stratified by class and decided by the seed alone.

The project does not use scikit-learn's StratifiedShuffleSplit here, because it refuses
classes of a few rows and knows nothing of copies. The legacy NumPy generator is used on
purpose: its stream is frozen, so a seed gives the same split under every NumPy.

A folder holds `train`, `dev`, `test` (or fewer) and `dataset.json`, which records where the rows
come from. It is made beside its place and renamed at the end.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from superconext._version import __version__
from superconext.core.errors import ConfigError, DataError
from superconext.core.files import (
    csv_lines,
    file_sha256,
    free_folder,
    replace_folder,
    staging_folder,
    write_json,
)
from superconext.core.random_streams import FOLD_ORDER, random_stream
from superconext.data.dataset import Dataset
from superconext.data.duplicates import (
    Rows,
    copies,
    first_copies,
    keys_of,
    near_duplicate_groups,
    text_keys,
)
from superconext.data.file_format import HEAD
from superconext.data.formats import table_lines, tabs_are_quoted

RECORD = "dataset.json"

#: Share of the training rows held back where no dev rows are given.
HELD_BACK = 0.1

Row = tuple[str, str]  # label, text


def check_folder(
    out: str | Path, force: bool = False, reads: Iterable[str | Path | None] = ()
) -> Path:
    """The folder to write. Raises DataError unless it is new, or a data set without one of the
    files that are read and `force` is set."""
    return free_folder(out, force, RECORD, "folder of a data set", DataError, reads)


def write_folder(
    out: str | Path,
    parts: Mapping[str, Iterable[Row]],
    record: Mapping[str, Any],
    form: str = "tsv",
    force: bool = False,
) -> dict[str, Any]:
    """Write each part as `NAME.FORM` with the columns `label` and `text`, and the record.

    TSV has no quoting, but where it would be taken to have some: tabs and line ends inside a text
    become spaces.

    parts: rows by name, each iterated once. record: what `dataset.json` says besides the files and
    this package's version. form: one of `data.FORMS`. force: replace an earlier data set.

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
        replace_folder(made, folder, hidden / "old", new=not force)
    return document


def _write(path: Path, rows: Iterable[Row], form: str) -> Counter[str]:
    classes: Counter[str] = Counter()
    heading = ("label", "text")

    def counted() -> Iterator[Row]:
        for row in rows:
            classes[row[0]] += 1
            yield row

    with path.open("w", encoding="utf-8", newline="") as stream:
        if form == "jsonl":
            documents = (dict(zip(heading, row, strict=True)) for row in counted())
            stream.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in documents)
        else:
            stream.writelines(_table(heading, counted(), "," if form == "csv" else ""))
    return classes


def _table(heading: Row, rows: Iterator[Row], separator: str) -> Iterator[str]:
    """The lines of a table: TSV without a separator, with quoted cells where readers would take it
    to have them."""
    head: list[Row] = []
    size = 0
    for row in () if separator else rows:
        head.append(row)
        size += sum(map(len, row))
        if size > HEAD:
            break
    if not separator and tabs_are_quoted([line[:-1] for line in table_lines([heading, *head])]):
        yield "\t".join(f'"{name}"' for name in heading) + "\n"  # which says so
        yield from csv_lines(chain(head, rows), "\t")
        return
    yield from table_lines(chain([heading], head, rows), separator)


FLOOR = 2  # distinct texts of a class that are never held back


def stratified_holdout(
    texts: Sequence[str], labels: Sequence[str], fraction: float, seed: int
) -> tuple[Rows, Rows]:
    """Hold back about `fraction` of the distinct texts of each class.

    Returns the sorted rows kept and the sorted rows held back; together they are all N.
    Texts are distinct that have distinct keys (`duplicates.text_keys`), or are distinct as they
    stand where so few keys are that nothing could be held back.
    Each class keeps two distinct texts wherever it has them, so the held side may miss a
    tiny class, and is empty where every class has two texts or fewer. A text labelled in
    several ways counts for the label it has most often, and for the floor of each.

    Raises ConfigError for a fraction outside [0, 1) or a seed outside [0, 2**32), DataError
    for unequal lengths.
    """
    kept, held = _holdout(keys_of(texts), labels, fraction, seed)
    return (kept, held) if len(held) else _holdout(texts, labels, fraction, seed)


def _holdout(
    keys: Sequence[str], labels: Sequence[str], fraction: float, seed: int
) -> tuple[Rows, Rows]:
    """`stratified_holdout` of texts by their keys."""
    if not 0 <= fraction < 1:
        raise ConfigError(f"held-back fraction is {fraction}, expected 0 <= fraction < 1: lower it")
    if not 0 <= seed < 2**32:
        raise ConfigError(f"seed is {seed}, expected 0 <= seed < 2**32: choose another")
    groups = copies(keys, labels)
    held = _held_groups(groups, labels, fraction, seed)
    is_held = np.zeros(len(keys), dtype=bool)
    for group in held:
        is_held[groups[group]] = True
    return np.flatnonzero(~is_held), np.flatnonzero(is_held)


def stratified_three_way(
    texts: Sequence[str], labels: Sequence[str], seed: int, dev: float = 0.1, test: float = 0.1
) -> tuple[Rows, Rows, Rows]:
    """Sorted rows of train, dev and test; fractions of all distinct texts, as in holdout.

    Raises ConfigError unless dev, test >= 0 and dev + test < 1.
    """
    found = _three_way(keys_of(texts), labels, seed, dev, test)
    held = len(found[1]) or not dev, len(found[2]) or not test
    return found if all(held) else _three_way(texts, labels, seed, dev, test)


def _three_way(
    keys: Sequence[str], labels: Sequence[str], seed: int, dev: float, test: float
) -> tuple[Rows, Rows, Rows]:
    """`stratified_three_way` of texts by their keys."""
    if dev < 0 or test < 0 or dev + test >= 1:
        raise ConfigError(
            f"dev is {dev} and test is {test}, expected fractions that leave rows to train on: "
            "lower them"
        )
    rest, test_rows = _holdout(keys, labels, test, seed)
    train, dev_rows = _holdout(
        [keys[row] for row in rest], [labels[row] for row in rest], dev / (1 - test), seed
    )
    return rest[train], rest[dev_rows], test_rows


def split_dataset(
    dataset: Dataset,
    dev: float = 0.1,
    test: float = 0.1,
    seed: int = 0,
    *,
    profile: str = "auto",
    deduplicate: bool = False,
    near: bool = False,
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """Rows (label, text) of train, dev and test in the order of the file, and how they were made.

    Stratified by class and decided by the seed alone. Copies of a text, as `duplicates.text_keys`
    tells them under `profile`, always go to one side; with `near` near-duplicates do too. With
    `deduplicate` only the first copy of each text is kept, under the label most copies have. A
    part of fraction 0 is left out.

    Raises ConfigError for impossible fractions or an unknown profile, DataError where there are
    too few texts to give each part one.
    """
    found, profile = text_keys({"all": dataset.texts}, profile)
    keys, labels, rows = found["all"], list(dataset.labels), list(range(len(dataset)))
    if deduplicate:
        kept, labels = first_copies(keys, labels)
        rows = kept.tolist()
        keys = [keys[row] for row in rows]
    sides = keys
    if near:
        groups = near_duplicate_groups(keys).tolist()
        first = {group: keys[row] for row, group in reversed(list(enumerate(groups)))}
        sides = [
            key if group < 0 else first[group] for key, group in zip(keys, groups, strict=True)
        ]
    drawn = _three_way(sides, labels, seed, dev, test)
    names = {"train": 1.0, "dev": dev, "test": test}
    parts: dict[str, list[Row]] = {}
    for (name, fraction), places in zip(names.items(), drawn, strict=True):
        if not len(places) and fraction > 0:
            raise DataError(
                f"{dataset.source}: found {len(set(sides))} distinct texts, too few to keep two of "
                f"each class in train and give {name} one, expected more: set {name} to 0, or "
                "add rows"
            )
        if len(places):
            parts[name] = [(labels[p], dataset.texts[rows[p]]) for p in places.tolist()]
    made = {
        "source": {"file": dataset.source, "sha256": dataset.sha256, "rows": len(dataset)},
        "seed": seed,
        "fractions": {"dev": dev, "test": test},
        "normalize": profile,
        "deduplicated": len(dataset) - len(rows) if deduplicate else None,
        "near_duplicates_together": near,
    }
    return parts, made


def stratified_folds(
    texts: Sequence[str], labels: Sequence[str], count: int, seed: int, repeat: int = 0
) -> list[Rows]:
    """The sorted rows that each of up to `count` folds holds out: disjoint, stratified by class,
    copies of a text (`duplicates.text_keys`) in one fold. Another repeat is another deal.

    Each fold leaves a row of every class to train on, so rows of a class with one text are held
    out by none. Folds that would hold out nothing are left out.

    Raises DataError where no row can be held out.
    """
    keys = keys_of(texts)
    groups = copies(keys, labels)
    classes = [Counter(labels[row] for row in group).most_common(1)[0][0] for group in groups]
    shuffled = random_stream(seed, FOLD_ORDER, repeat + 1).permutation(len(groups))
    # Dealt out class by class, each going on where the last one stopped.
    dealt = sorted(shuffled.tolist(), key=lambda group: classes[group])
    found = []
    for fold in range(count):
        left = Counter(labels)
        left.subtract(labels[row] for group in dealt[fold::count] for row in groups[group])
        held = [
            row
            for group in dealt[fold::count]
            for row in groups[group]
            if all(left[labels[other]] > 0 for other in groups[group])
        ]
        if held:
            found.append(np.sort(np.array(held, dtype=np.int64)))
    return found


def _held_groups(
    groups: list[list[int]], labels: Sequence[str], fraction: float, seed: int
) -> list[int]:
    """Which groups of copies are held back."""
    tallies = [Counter(labels[row] for row in group) for group in groups]
    remaining = Counter(label for tally in tallies for label in tally)
    floors = {label: min(FLOOR, count) for label, count in remaining.items()}
    members: dict[str, list[int]] = {label: [] for label in sorted(remaining)}
    for index, tally in enumerate(tallies):
        members[tally.most_common(1)[0][0]].append(index)

    draw = np.random.RandomState(seed)
    sizes = [len(group) for group in members.values()]
    counts = quotas(sizes, fraction, draw)
    held: list[int] = []
    for (_, indices), quota in zip(members.items(), counts, strict=True):
        taken = 0
        for position in draw.permutation(len(indices)):
            index = indices[position]
            if taken == quota:
                break
            if all(remaining[label] > floors[label] for label in tallies[index]):
                remaining.subtract(tallies[index].keys())
                held.append(index)
                taken += 1
    return held


def quotas(sizes: Sequence[int], fraction: float, draw: np.random.RandomState) -> list[int]:
    """How many texts of each class, of so many each, to hold back: largest remainders, within the
    floors; `draw` decides among equal ones."""
    caps = [max(0, size - FLOOR) for size in sizes]
    total = round(fraction * sum(sizes))
    if fraction > 0:
        total = max(1, total)  # an empty dev set helps nobody
    counts = [min(cap, int(fraction * size)) for cap, size in zip(caps, sizes, strict=True)]
    ties = draw.permutation(len(sizes))
    by_remainder = sorted(
        range(len(sizes)), key=lambda c: (counts[c] - fraction * sizes[c], ties[c])
    )
    for index in by_remainder:
        if sum(counts) < total and counts[index] < caps[index]:
            counts[index] += 1
    return counts
