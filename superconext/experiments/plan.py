"""Which fits make up an experiment, and which rows is each made on?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.baselines import ALWAYS_FITTED
from superconext.core.errors import ConfigError, DataError
from superconext.data.splits import stratified_holdout, stratified_three_way
from superconext.experiments.draws import draw_of, drawn
from superconext.experiments.shots import split_name
from superconext.experiments.systems import System, plain

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
    draws: Sequence[str] = (),
) -> list[Fit]:
    """Every fit on one data set: the baselines on each split, then each system's seeds.

    A baseline that is random has every seed too. A system that is trained on another data
    set has no fit on that one.

    Args:
        draws: names of `draws.KINDS` and numbers; "" for all rows as they are.

    Seeds run from 0. Raises ConfigError for fewer than one seed.
    """
    if seeds < 1:
        raise ConfigError(f"seeds = {seeds}: expected one or more")
    splits = [
        (seed, f"{draw}-{seed}" if draw else whole_split(scheme, seed))
        for draw in draws or ("",)
        for seed in range(seeds)
    ]
    if scheme == "shots":
        splits = [(seed, split_name(k, seed)) for k in shots for seed in range(seeds)]
    distinct = [(seed, split) for seed, split in splits if split != "given" or seed == 0]
    baselines = [plain(name) for name in ALWAYS_FITTED] + [s for s in systems if s.is_baseline]
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
        if not system.is_baseline and (not system.source or system.source != dataset)
        for seed, split in splits
    ]
    return plan


def whole_split(scheme: str, seed: int) -> str:
    """The name of the split that takes all rows as they are."""
    return scheme if scheme == "given" else f"{scheme}-{seed}"


def scheme_of(pools: Mapping[str, Labelled]) -> str:
    """How rows in these pools are split, one of `datasets.SCHEMES` without "shots"."""
    if "all" in pools:
        return "resampled"
    return "given" if "dev" in pools else "dev"


def cut(pools: Mapping[str, Labelled], fit: Fit) -> dict[str, Labelled]:
    """The rows of a fit: `{"train": (texts, labels), "dev": .., "test": ..}`.

    Args:
        pools: "train", "dev" and "test" for split "given", "train" and "test" where dev is
            held out by the seed, "all" where everything is drawn by the seed; "train" and
            "test", and "dev" where it is not drawn, for draws of a few rows. A draw (see
            `draws`) is made from the training rows of any of these.

    Raises DataError where there are too few rows to fill every part.
    """
    if fit.split == "given":
        return dict(pools)
    draw = draw_of(fit.split)
    train = pools.get("train", ([], []))
    if "all" in pools:
        rows = stratified_three_way(*pools["all"], fit.seed, HELD_OUT, HELD_OUT)
        names = ("train", "dev", "test")
        parts = {name: _pick(pools["all"], part) for name, part in zip(names, rows, strict=True)}
    elif draw and ("dev" in pools or draw.kind == "shots"):
        parts = dict(pools)
    else:
        kept, held = stratified_holdout(*train, HELD_OUT, fit.seed)
        parts = {"train": _pick(train, kept), "dev": _pick(train, held), "test": pools["test"]}
    if draw:
        parts = drawn(parts, draw, fit.seed, own_dev="dev" in pools)
    empty = [name for name, (texts, _) in parts.items() if not texts]
    if empty:
        raise DataError(
            f"split {fit.split}: no row is left for {empty[0]}; expected more rows, or files of "
            "your own with --dev and --test"
        )
    return parts


def possible_fits(
    plan: Sequence[Fit],
    pools: Mapping[str, Mapping[str, Labelled]],
    draws: Sequence[str],
    warn: Callable[[str], None],
) -> list[Fit]:
    """The fits whose draws the data sets have rows for; says which draws are left out.

    Args:
        pools: of each data set, what `cut` splits.
    """
    impossible = set()
    for name, rows in pools.items():
        for draw in filter(None, draws):
            try:
                cut(rows, Fit(plain("majority"), 0, f"{draw}-0"))
            except DataError as error:
                warn(f"{name + ': ' if name else ''}{draw} is left out: {error}")
                impossible.add((name, draw))
    return [fit for fit in plan if (fit.dataset, str(draw_of(fit.split))) not in impossible]


def _pick(pool: Labelled, rows: np.ndarray) -> Labelled:
    texts, labels = pool
    return [texts[row] for row in rows], [labels[row] for row in rows]
