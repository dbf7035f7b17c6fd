"""Which fits make up an experiment, and which rows is each made on?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.data.splits import stratified_holdout, stratified_three_way
from superconext.errors import ConfigError, DataError
from superconext.experiments.shots import draw_shots, shots_of, split_name
from superconext.experiments.systems import BASELINES, System, plain

HELD_OUT = 0.1

Labelled = tuple[list[str], list[str]]
Key = tuple[str, int, str]


@dataclass(frozen=True)
class Fit:
    """One fit: a system, the seed, the name of the split, and the data set's ("" for one).

    The seed of a baseline that is not random is that of the split.
    """

    system: System
    seed: int
    split: str
    dataset: str = ""

    @property
    def key(self) -> Key:
        return self.system.name, self.seed, place(self.dataset, self.split)

    @property
    def is_baseline(self) -> bool:
        return self.system.is_baseline

    def __str__(self) -> str:
        where = f"{self.dataset}, " if self.dataset else ""
        return f"{where}{self.system.name}, seed {self.seed}, split {self.split}"


def place(dataset: str, split: str) -> str:
    """The split, with its data set before it where there are several."""
    return f"{dataset}/{split}" if dataset else split


def key_of(line: Mapping[str, Any]) -> Key:
    """The key of the fit that a line of results.jsonl tells of."""
    return name_of(line), line["seed"], place(line.get("dataset", ""), line["split"])


def name_of(line: Mapping[str, Any]) -> str:
    """The name of a line's system; lines of the first format have the objective's alone."""
    name: str = line["system"] if "system" in line else line["objective"]
    return name


def make_plan(
    systems: Sequence[System],
    seeds: int,
    scheme: str,
    dataset: str = "",
    shots: Sequence[int] = (),
) -> list[Fit]:
    """Every fit on one data set: the baselines on each split, then each system's seeds.

    A baseline that is random has every seed too.

    Seeds run from 0. Raises ConfigError for fewer than one seed.
    """
    if seeds < 1:
        raise ConfigError(f"seeds = {seeds}: expected one or more")
    splits = [(seed, scheme if scheme == "given" else f"{scheme}-{seed}") for seed in range(seeds)]
    if scheme == "shots":
        splits = [(seed, split_name(k, seed)) for k in shots for seed in range(seeds)]
    distinct = splits[:1] if scheme == "given" else splits
    baselines = [plain(name) for name in BASELINES] + [s for s in systems if s.is_baseline]
    plan = [
        Fit(system, seed, split, dataset)
        for system in baselines
        for seed, split in (splits if system.is_seeded else distinct)
    ]
    # Neighbours differ in their split wherever splits differ, so that processes working side
    # by side seldom train the same word vectors twice.
    plan += [
        Fit(system, seed, split, dataset)
        for system in systems
        if not system.is_baseline
        for seed, split in splits
    ]
    return plan


def cut(pools: Mapping[str, Labelled], fit: Fit) -> dict[str, Labelled]:
    """The rows of a fit: `{"train": (texts, labels), "dev": .., "test": ..}`.

    Args:
        pools: "train", "dev" and "test" for split "given", "train" and "test" where dev is
            held out by the seed, "all" where everything is drawn by the seed; "train" and
            "test", and "dev" where it is not drawn, for draws of a few rows.

    Raises DataError where there are too few rows to fill every part.
    """
    if fit.split == "given":
        return dict(pools)
    shots = shots_of(fit.split)
    train = pools.get("train", ([], []))
    if "all" in pools:
        rows = stratified_three_way(*pools["all"], fit.seed, HELD_OUT, HELD_OUT)
        names = ("train", "dev", "test")
        parts = {name: _pick(pools["all"], part) for name, part in zip(names, rows, strict=True)}
    elif shots is not None:
        drawn, chosen_on = draw_shots(*train, shots, fit.seed, dev="dev" not in pools)
        parts = {"train": _pick(train, drawn), "dev": _pick(train, chosen_on), **_held(pools)}
    else:
        kept, held = stratified_holdout(*train, HELD_OUT, fit.seed)
        parts = {"train": _pick(train, kept), "dev": _pick(train, held), "test": pools["test"]}
    empty = [name for name, (texts, _) in parts.items() if not texts]
    if empty:
        raise DataError(
            f"split {fit.split}: no row is left for {empty[0]}; expected more rows, or files of "
            "your own with --dev and --test"
        )
    return parts


def _held(pools: Mapping[str, Labelled]) -> dict[str, Labelled]:
    return {name: rows for name, rows in pools.items() if name != "train"}


def _pick(pool: Labelled, rows: np.ndarray) -> Labelled:
    texts, labels = pool
    return [texts[row] for row in rows], [labels[row] for row in rows]
