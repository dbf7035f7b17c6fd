"""How often a bootstrap rejects a true null hypothesis at 0.05, with and without seed noise.

Worlds are drawn in which both systems are equally good: each text has a difficulty that both share
in part, and each seed of a system a rate of right answers of its own. In every world the difference
in weighted F1 is tested twice, by resampling test rows alone and by resampling test rows and seeds
(`superconext.experiments.paired_tests.hierarchical_bootstrap`), with seeds paired as comparisons
pair them. A test that keeps its promise rejects 5 percent.

    python scripts/bootstrap_false_positives.py scripts/results/bootstrap_false_positives.csv
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from scipy.stats import norm

from superconext.experiments.paired_tests import FEWEST_PAIRED, hierarchical_bootstrap

#: Test rows, seeds of either system (1: a system without randomness, or one seed of one that has
#: some), and the standard deviation of a seed's rate of right answers.
DESIGNS = [
    *(
        (1000, ours, theirs, sd)
        for ours, theirs in ((5, 1), (3, 1), (5, 5))
        for sd in (0, 0.01, 0.02)
    ),
    (2961, 5, 1, 0.015),
    (1000, 5, 5, 0.05),
    (1000, 10, 10, 0.05),
    (3000, 5, 5, 0.05),
    (3000, 3, 3, 0.02),
    (3000, 2, 2, 0.02),
    (1000, 2, 2, 0.05),
    (500, 2, 2, 0.03),
    (1000, 1, 1, 0.01),
]
CLASSES, RIGHT = 3, 0.6

#: Shares of the variance of a text's difficulty: common to both systems, to the seeds of one, to
#: one seed.
COMMON, SYSTEM, SEED = 0.6, 0.25, 0.15


def world(
    generator: np.random.Generator, rows: int, ours: int, theirs: int, sd: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels `[N]` and the predictions `[S, N]`, `[T, N]` of two systems that are equally good.

    A system of one seed has noise of seeds only where the other has one seed too.
    """
    truth = generator.integers(0, CLASSES, rows)
    common = generator.standard_normal(rows)

    def predicted(seeds: int, sd: float) -> np.ndarray:
        own = generator.standard_normal(rows)
        of = []
        for _ in range(seeds):
            noise = generator.standard_normal(rows)
            difficulty = COMMON**0.5 * common + SYSTEM**0.5 * own + SEED**0.5 * noise
            right = difficulty < norm.ppf(
                np.clip(RIGHT + sd * generator.standard_normal(), 0.01, 0.99)
            )
            other = (truth + generator.integers(1, CLASSES, rows)) % CLASSES
            of.append(np.where(right, truth, other))
        return np.array(of)

    return truth, predicted(ours, sd), predicted(theirs, sd if ours == theirs else 0.0)


def rejections(
    design: tuple[int, int, int, float], worlds: int, resamples: int
) -> dict[str, float]:
    """The share of worlds in which each bootstrap has p < 0.05."""
    rows, ours, theirs, sd = design
    generator = np.random.default_rng([rows, ours, theirs, round(1000 * sd)])
    rejected = {"rows": 0, "rows_and_seeds": 0}
    for number in range(worlds):
        truth, first, second = world(generator, rows, ours, theirs, sd)
        for name, seeds in (("rows", False), ("rows_and_seeds", True)):
            result = hierarchical_bootstrap(
                truth,
                first,
                second,
                paired=ours == theirs >= FEWEST_PAIRED,
                resamples=resamples,
                seed=number,
                seeds=seeds,
            )
            rejected[name] += result.p < 0.05
    return {name: count / worlds for name, count in rejected.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="CSV of the results")
    parser.add_argument("--worlds", type=int, default=1000)
    parser.add_argument("--resamples", type=int, default=500)
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", encoding="utf-8", newline="") as stream:
        head = ("test_rows", "seeds", "rival_seeds", "seed_sd", "worlds", "resamples")
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([*head, "rows", "rows_and_seeds"])
        for design in DESIGNS:
            found = rejections(design, options.worlds, options.resamples)
            writer.writerow([*design, options.worlds, options.resamples, *found.values()])
            stream.flush()
            print(design, found, flush=True)


if __name__ == "__main__":
    main()
