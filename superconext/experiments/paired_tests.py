"""Paired significance tests: one system against another, by how the rows were drawn.

Where every seed draws its own split, systems are paired split by split, but the training
sets overlap, so the paired t-test is corrected for that. Where a few rows of each class are
drawn, they are paired draw by draw, and corrected by how much the draws overlap. Where all
systems predict the same given test rows, the rows are what could have been others, so they
are resampled. Holm's correction accounts for several tests.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.experiments.subsampling import parse_draw


@dataclass(frozen=True)
class Comparison:
    """difference: mean of ours minus theirs; p: two-sided probability under no difference."""

    difference: float
    p: float


def resampled_t_test(
    ours: Sequence[float], theirs: Sequence[float], test_share: float
) -> Comparison:
    """For scores on the same random train/test splits, one of each system for each split.

    The splits overlap, so the plain paired t-test is far too sure of itself; the variance
    is corrected by the ratio of test to training rows.

    Args:
        ours, theirs: scores `[S]`, split by split; at least two splits.
        test_share: test rows over training rows, such as 0.1 / 0.8.

    Source: Nadeau and Bengio (2003), "Inference for the generalization error".
    """
    from scipy.stats import t

    differences = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    count = len(differences)
    if count < 2:
        raise ValueError(f"found {count} splits; a t-test needs at least two")
    mean = float(differences.mean())
    variance = float(differences.var(ddof=1)) * (1 / count + test_share)
    if variance == 0:
        return Comparison(mean, 1.0 if mean == 0 else 0.0)
    return Comparison(mean, float(2 * t.sf(abs(mean) / math.sqrt(variance), count - 1)))


def paired_bootstrap(
    truth: np.ndarray,
    ours: np.ndarray,
    theirs: np.ndarray,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Comparison:
    """For predictions of both systems on one fixed test set: weighted F1, rows resampled.

    Args:
        truth: class indices `[N]`.
        ours, theirs: predicted class indices `[S, N]`, one row for each seed (of a system
            without randomness: one row). A system's score is the mean over its seeds.

    The p-value is twice the share of resamples in which the sign of the difference turns,
    with one added to both counts, so that it is never 0.
    """
    truth = np.asarray(truth)
    classes = int(max(truth.max(), np.max(ours), np.max(theirs))) + 1
    difference = _mean_f1(truth, ours, None, classes) - _mean_f1(truth, theirs, None, classes)
    generator = np.random.default_rng(seed)
    turned = 0
    for _ in range(resamples):
        rows = generator.integers(0, len(truth), len(truth))
        weights = np.bincount(rows, minlength=len(truth))
        resampled = _mean_f1(truth, ours, weights, classes) - _mean_f1(
            truth, theirs, weights, classes
        )
        turned += resampled * difference <= 0
    return Comparison(difference, min(1.0, 2 * (turned + 1) / (resamples + 1)))


def mcnemar_exact(truth: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> Comparison:
    """For one prediction of each system on one fixed test set: accuracy, rows counted.

    Args:
        truth, ours, theirs: class indices `[N]`.

    Of the rows that only one system gets right, each is as likely to be right as the other
    under no difference: an exact two-sided binomial test.

    Source: McNemar (1947); the exact form as in Dietterich (1998), section 3.1.
    """
    from scipy.stats import binomtest

    right, rival = np.asarray(ours) == truth, np.asarray(theirs) == truth
    gained, lost = int((right & ~rival).sum()), int((rival & ~right).sum())
    difference = (gained - lost) / len(right)
    if gained + lost == 0:
        return Comparison(difference, 1.0)
    return Comparison(difference, float(binomtest(gained, gained + lost).pvalue))


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values `[K]` in the order given: below 0.05 means significant among all K.

    The chance of even one false alarm among the K questions stays below the level, whatever
    the dependence between them.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda k: p_values[k])):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = highest
    return adjusted


def _mean_f1(
    truth: np.ndarray, predicted: np.ndarray, weights: np.ndarray | None, classes: int
) -> float:
    """Weighted F1 of each row of predictions `[S, N]`, averaged."""
    scores = []
    actual = np.bincount(truth, weights, minlength=classes).astype(np.float64)
    for row in np.atleast_2d(predicted):
        named = np.bincount(row, weights, minlength=classes)
        right = row == truth
        hits = np.bincount(
            truth[right], None if weights is None else weights[right], minlength=classes
        )
        f1 = 2 * hits / np.maximum(actual + named, 1e-12)
        scores.append(float((f1 * actual).sum() / actual.sum()))
    return float(np.mean(scores))


TESTED = "f1_weighted"
RESAMPLES = 2000

Lines = Sequence[Mapping[str, Any]]

#: The test by how the rows were drawn.
TESTS = {
    "given": "paired bootstrap",
    "resampled": "corrected resampled t-test",
    "shots": "corrected paired t-test",
}


@dataclass(frozen=True)
class Paired:
    """difference: of the tested figure; p, p_mcnemar: None where no such test can be made."""

    difference: float
    p: float | None = None
    p_mcnemar: float | None = None


def design_of(lines: Lines) -> str:
    """How the rows of these lines were drawn, a key of TESTS."""
    if any("overlap" in line or str(line["split"]).startswith("shots") for line in lines):
        return "shots"
    drawn = any(str(line.get("base", line["split"])).startswith("resampled") for line in lines)
    return "resampled" if drawn else "given"


def compare_lines(design: str, ours: Lines, theirs: Lines) -> Paired | None:
    """Ours against theirs; None where they have no split in common."""
    if design != "given":
        return _split_by_split(design, ours, theirs)
    truth = np.array(ours[0]["truth"])
    first, second = (np.array([line["predictions"] for line in of]) for of in (ours, theirs))
    result = paired_bootstrap(truth, first, second, resamples=RESAMPLES)
    alone = len(first) == len(second) == 1
    mcnemar = mcnemar_exact(truth, first[0], second[0]).p if alone else None
    return Paired(result.difference, result.p, mcnemar)


def about_rows(design: str, lines: Lines) -> str:
    """What the percentages are means over."""
    sizes = [line["rows"] for line in lines]
    mean = {name: round(float(np.mean([size[name] for size in sizes]))) for name in sizes[0]}
    splits = len({line["split"] for line in lines})
    about = f"{mean['train']} training, {mean['dev']} dev and {mean['test']} test rows"
    draws = sorted({str(line["draw"]) for line in lines if line.get("draw")})
    if draws and not all("shots" in line for line in lines):
        descriptions = "; ".join(f"{name}: {parse_draw(name).describe()}" for name in draws)
        where = "test rows drawn anew" if lines[0]["base"] == "resampled" else "the given test rows"
        return (
            f"Percent on {where}, mean ± standard deviation over {splits} draws ({about}). "
            f"{descriptions}."
        )
    if design == "resampled":
        return (
            f"Percent on test, mean ± standard deviation over {splits} random stratified split"
            f"{'s' if splits > 1 else ''} "
            f"(about {about}; copies of a text stay on one side)."
        )
    if design == "shots":
        shots = sorted({int(line["shots"]) for line in lines})
        return (
            f"Percent on the given test rows, mean ± standard deviation over draws of "
            f"{', '.join(map(str, shots))} rows of each class ({mean['test']} test rows; a seed's "
            "smaller draws are part of its larger ones)."
        )
    dev = "as given" if splits == 1 else "a tenth of the training rows, drawn by each seed"
    return (
        f"Percent on the given test rows, mean ± standard deviation over seeds ({about}; dev "
        f"{dev})."
    )


def about_test(design: str) -> str:
    """Which test the p-values come from, and why."""
    return {
        "resampled": (
            "corrected resampled t-test (Nadeau and Bengio 2003), paired by split, two-sided: the "
            "splits' training sets overlap, which a plain paired t-test takes for independent "
            "evidence, so the variance is multiplied by 1/splits + test rows/training rows"
        ),
        "shots": (
            "t-test paired by draw, two-sided, its variance multiplied by 1/draws + "
            "overlap/(1 - overlap), the overlap being the share of rows that two draws are "
            "expected to have in common; it speaks for other draws, not for other test rows"
        ),
        "given": (
            f"paired bootstrap over the test rows ({RESAMPLES} resamples), two-sided, of the "
            "difference in weighted F1 averaged over seeds: all systems answer the same rows, so "
            "seeds are no independent test sets; it speaks for other test rows, not for other "
            "training sets"
        ),
    }[design]


def _split_by_split(design: str, ours: Lines, theirs: Lines) -> Paired | None:
    """The test over the splits both have; the difference alone where that is one split."""
    rivals = {line["split"]: line for line in theirs}
    pairs = [(line, rivals[line["split"]]) for line in ours if line["split"] in rivals]
    if not pairs:
        return None
    first = [float(line["test"][TESTED]) for line, _ in pairs]
    second = [float(line["test"][TESTED]) for _, line in pairs]
    share = _overlap(design, [line for line, _ in pairs])
    if len(pairs) == 1 or share is None:
        return Paired(float(np.mean(first) - np.mean(second)))
    result = resampled_t_test(first, second, share)
    return Paired(result.difference, result.p)


def _overlap(design: str, lines: Lines) -> float | None:
    """What 1/splits is added to; None where every draw has the same rows."""
    if design == "shots":
        shared = float(np.mean([line["overlap"] for line in lines]))
        return shared / (1 - shared) if shared < 1 else None
    sizes = [line["rows"] for line in lines]
    return float(sum(size["test"] for size in sizes) / sum(size["train"] for size in sizes))
