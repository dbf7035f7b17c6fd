"""Cross-fitted probe: each member's probe is fitted on rows its encoder has not seen.

An encoder trained on a few thousand rows memorises them: their features are perfectly separable,
noisy labels among them too, and a probe fitted on them learns that. Here each of several
encoders leaves out another part of the rows, and its logistic regression is fitted on that part,
whose features look like those of any new text. Predictions are made by the mean of their scores.

It is the cross-fitting of stacked generalisation (Wolpert, 1992), with the folds' models kept
as an ensemble instead of one model trained again on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superconext.core.random_streams import FOLDS, random_stream
from superconext.data.token_store import TokenStore
from superconext.probe.base import FEWEST_DEV_ROWS, dev_score
from superconext.probe.logistic_regression import GRID, LogisticRegressionProbe, fit_probe

#: Rows of each class that every part must have; with fewer its probe cannot learn the class.
FEWEST_ROWS = 4


def cross_fitting_parts(
    store: TokenStore, labels: np.ndarray, members: int, seed: int
) -> list[np.ndarray] | None:
    """Which rows each of the members leaves out: disjoint parts of all N rows, sorted.

    Every part has its share of each class, rounded; sentences of the very same words stand in
    one part. None where a part would have fewer than `FEWEST_ROWS` rows of some class.

    Args:
        store: token ids of the rows.
        labels: class indices `[N]`.
        members: number of parts, at least 2.
    """
    copies: dict[bytes, list[int]] = {}
    for row in range(len(labels)):
        words = store.tokens[store.offsets[row] : store.offsets[row + 1]].tobytes()
        copies.setdefault(words, []).append(row)
    groups = list(copies.values())
    classes = labels[[group[0] for group in groups]]
    shuffled = random_stream(seed, FOLDS).permutation(len(groups))
    # Dealt out class by class, each going on where the last one stopped.
    dealt = shuffled[np.argsort(classes[shuffled], kind="stable")]
    parts = [
        np.sort(
            np.array(
                [row for group in dealt[part::members] for row in groups[group]], dtype=np.int64
            )
        )
        for part in range(members)
    ]
    count = int(labels.max()) + 1
    least = min(np.bincount(labels[part], minlength=count).min() for part in parts)
    return parts if least >= FEWEST_ROWS else None


def fit_cross_fitted(
    features: Sequence[np.ndarray],
    labels: Sequence[np.ndarray],
    dev_features: np.ndarray | None = None,
    dev_labels: np.ndarray | None = None,
    grid: Sequence[float] = GRID,
) -> LogisticRegressionProbe:
    """One probe for the members' vectors side by side, each fitted on the rows it left out.

    C is the same for all and chosen on dev by what they predict together, as in `fit_probe`.

    Args:
        features: of each member the vectors float32 `[n, d]` of the n rows it left out.
        labels: of each member the class indices `[n]` of those rows; every class is there.
        dev_features: vectors of the dev rows, members side by side.
    """
    if dev_features is None or dev_labels is None or len(dev_labels) < FEWEST_DEV_ROWS:
        return _with_c(features, labels, grid[len(grid) // 2])
    best: tuple[tuple[float, float], LogisticRegressionProbe] | None = None
    for c in grid:
        probe = _with_c(features, labels, c)
        score = dev_score(probe.probabilities(dev_features), dev_labels)
        if best is None or score > best[0]:
            best = (score, probe)
    assert best is not None
    return best[1]


def _with_c(
    features: Sequence[np.ndarray], labels: Sequence[np.ndarray], c: float
) -> LogisticRegressionProbe:
    probes = [
        fit_probe(vectors, truth, grid=(c,))
        for vectors, truth in zip(features, labels, strict=True)
    ]
    return LogisticRegressionProbe(
        mean=np.concatenate([probe.mean for probe in probes]),
        scale=np.concatenate([probe.scale for probe in probes]),
        coef=np.hstack([probe.coef for probe in probes]) / len(probes),
        intercept=np.mean([probe.intercept for probe in probes], axis=0),
        c=c,
    )
