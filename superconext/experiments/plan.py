"""Which fits make up a comparison, and which rows is each made on?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.data.splits import stratified_holdout, stratified_three_way
from superconext.errors import ConfigError, DataError
from superconext.objectives.catalogue import check_objective

#: Fitted beside the objectives on every split, in this order.
BASELINES = ("majority", "tfidf_logreg", "tfidf_svm")

#: What the row of an objective's native prediction is called, after the objective's name.
OWN_RULE = " (own rule)"

#: How the rows are split: all files as given; a tenth of train held out for dev by the seed;
#: all three parts drawn by the seed.
SCHEMES = ("given", "dev", "resampled")

HELD_OUT = 0.1

Labelled = tuple[list[str], list[str]]
Key = tuple[str, int, str]


@dataclass(frozen=True)
class Fit:
    """One fit: an objective's or a baseline's name, the seed, and the name of the split.

    The seed of a baseline is that of the split, for baselines have no randomness.
    """

    objective: str
    seed: int
    split: str

    @property
    def key(self) -> Key:
        return self.objective, self.seed, self.split

    @property
    def is_baseline(self) -> bool:
        return self.objective in BASELINES

    def __str__(self) -> str:
        return f"{self.objective}, seed {self.seed}, split {self.split}"


def key_of(line: Mapping[str, Any]) -> Key:
    """The key of the fit that a line of results.jsonl tells of."""
    return line["objective"], line["seed"], line["split"]


def choose_scheme(dev: bool, test: bool, wanted: str | None) -> str:
    """One of SCHEMES, from which files are given and `--splits` ("given", "resample", None).

    Raises ConfigError for files and a wish that do not go together.
    """
    if wanted == "resample":
        return "resampled"
    if test:
        return "given" if dev else "dev"
    if wanted == "given":
        raise ConfigError(
            "splits = 'given' without a test file; expected one: add --test, or leave --splits out "
            "to draw the splits from the training file"
        )
    if dev:
        raise ConfigError(
            "found a dev file without a test file; expected both or neither: add --test, or "
            "--splits resample to draw the splits from both files' rows"
        )
    return "resampled"


def make_plan(objectives: Sequence[str], seeds: int, scheme: str) -> list[Fit]:
    """Every fit of the comparison: the baselines on each split, then each objective's seeds.

    Seeds run from 0. Raises ConfigError for no or unknown or repeated objectives and for
    fewer than one seed.
    """
    if seeds < 1:
        raise ConfigError(f"seeds = {seeds}: expected one or more")
    if not objectives:
        raise ConfigError("found no objective; expected one or more: name them with --objectives")
    for name in objectives:
        check_objective(name)
    repeated = sorted({name for name in objectives if objectives.count(name) > 1})
    if repeated:
        raise ConfigError(f"objective {repeated[0]!r} is named twice; expected each once")
    splits = [(seed, scheme if scheme == "given" else f"{scheme}-{seed}") for seed in range(seeds)]
    distinct = splits[:1] if scheme == "given" else splits
    plan = [Fit(name, seed, split) for name in BASELINES for seed, split in distinct]
    # Neighbours differ in their split wherever splits differ, so that processes working side
    # by side seldom train the same word vectors twice.
    plan += [Fit(name, seed, split) for name in objectives for seed, split in splits]
    return plan


def check_reference(reference: str, objectives: Iterable[str]) -> None:
    """Raise ConfigError unless the reference will have a row in the table."""
    known = [*BASELINES, *objectives]
    if reference.removesuffix(OWN_RULE) not in known or reference in {
        name + OWN_RULE for name in BASELINES
    }:
        raise ConfigError(
            f"reference = {reference!r}: expected a system of the comparison: {', '.join(known)}, "
            f"or an objective's name followed by {OWN_RULE.strip()!r}"
        )


def cut(pools: Mapping[str, Labelled], fit: Fit) -> dict[str, Labelled]:
    """The rows of a fit: `{"train": (texts, labels), "dev": .., "test": ..}`.

    Args:
        pools: "train", "dev" and "test" for split "given", "train" and "test" where dev is
            held out by the seed, "all" where everything is drawn by the seed.

    Raises DataError where there are too few rows to fill every part.
    """
    if fit.split == "given":
        return dict(pools)
    if "all" in pools:
        texts, labels = pools["all"]
        names: tuple[str, ...] = ("train", "dev", "test")
        rows = stratified_three_way(texts, labels, fit.seed, HELD_OUT, HELD_OUT)
        parts = {name: _pick(pools["all"], part) for name, part in zip(names, rows, strict=True)}
    else:
        kept, held = stratified_holdout(*pools["train"], HELD_OUT, fit.seed)
        train = pools["train"]
        parts = {"train": _pick(train, kept), "dev": _pick(train, held), "test": pools["test"]}
    empty = [name for name, (texts, _) in parts.items() if not texts]
    if empty:
        raise DataError(
            f"split {fit.split}: no row is left for {empty[0]}; expected more rows, or files of "
            "your own with --dev and --test"
        )
    return parts


def _pick(pool: Labelled, rows: np.ndarray) -> Labelled:
    texts, labels = pool
    return [texts[row] for row in rows], [labels[row] for row in rows]
