"""Is one system better than another, or was it luck?

A test for each design: scores on resampled splits, predictions of several fits on one test
set, predictions of one fit each; and Holm's correction for asking more than once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


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
        drawn = _mean_f1(truth, ours, weights, classes) - _mean_f1(truth, theirs, weights, classes)
        turned += drawn * difference <= 0
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
