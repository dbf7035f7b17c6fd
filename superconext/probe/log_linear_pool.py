"""One answer out of several models' probabilities: a logarithmic opinion pool.

p(c) is proportional to the product of p_m(c) ** w_m over the models m (Genest and Zidek, 1986,
"Combining probability distributions"; Heskes, 1998, "Selecting weighting factors in logarithmic
opinion pools"). The weights are those under which dev rows are likeliest. A weight is a
temperature as well, so a model that is too sure of itself, as one that knows its training rows by
heart, is brought back before it is heard, and one that adds nothing gets 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superconext.probe.logistic_regression import FEWEST_DEV_ROWS, softmax

#: How many dev rows the belief that all weights are alike is worth, about.
PRIOR = 1.0


def log_probabilities(scores: np.ndarray) -> np.ndarray:
    """Row-wise log softmax of `[N, C]`."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logs


def pooled(logs: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """Scores `[N, C]`, up to a constant a row, of the pool of M models' log probabilities."""
    scores: np.ndarray = np.tensordot(weights, np.stack(logs), axes=1)
    return scores


def fit_weights(logs: Sequence[np.ndarray], labels: np.ndarray) -> np.ndarray:
    """The weights `[M]`, none below 0, under which the labels are likeliest.

    What is minimised is the summed log loss plus `PRIOR` times the squared distance to
    weights of 1 / M, which are also the answer where there are fewer than `FEWEST_DEV_ROWS`
    rows. It is convex, so there is one minimum.

    Args:
        logs: of each model, log probabilities `[N, C]`.
        labels: class indices `[N]`; rows with -1, a class training never saw, are left out.
    """
    from scipy.optimize import minimize

    known = labels >= 0
    each, truth = np.stack([one[known] for one in logs]), labels[known]
    equal = np.full(len(logs), 1 / len(logs))
    if len(truth) < FEWEST_DEV_ROWS:
        return equal
    rows = np.arange(len(truth))

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        scores = np.tensordot(weights, each, axes=1)
        away = weights - equal
        value = PRIOR * (away @ away) - log_probabilities(scores)[rows, truth].sum()
        wrong = softmax(scores)
        wrong[rows, truth] -= 1
        return float(value), 2 * PRIOR * away + (each * wrong).sum(axis=(1, 2))

    bounds = [(0.0, None)] * len(logs)
    found: np.ndarray = minimize(loss, equal, jac=True, method="L-BFGS-B", bounds=bounds).x
    return found
