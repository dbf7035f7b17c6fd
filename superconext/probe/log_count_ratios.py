"""Log-count ratios of character n-grams (naive Bayes features) and logistic regression.

The features of Wang and Manning (2012), "Baselines and bigrams: simple, good sentiment and topic
classification" (section 2.3), of characters instead of words: presence times log-count ratio.
Rows are scaled to unit length, since texts have many n-grams and differ in length, and the
classifier is a logistic regression, so that its probabilities can be pooled with other models'.
Each class is learned against all others; for two classes one classifier suffices.

Fitting uses scikit-learn; a fitted model needs NumPy alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from superconext.probe.base import FEWEST_DEV_ROWS, dev_score, scores_of_both, softmax
from superconext.probe.tfidf import CHARACTERS, by_blocks, character_ngrams, ngram_counts

#: Added to every n-gram's count.
ALPHA = 1.0

#: Inverse regularisation strengths tried on dev, for rows of unit length.
RATIO_GRID: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

#: C where there are too few dev rows to choose it on.
DEFAULT_C = 3.0


@dataclass(frozen=True, eq=False)
class LogCountRatios:
    """Log-count ratios of character 2-5-grams, and the weights of rows made of them.

    characters: the n-grams of the training texts, V.
    ratio: float32 `[K, V]`, log-count ratio of each machine's class; K = C, or 1 for C = 2.
    coef: float32 `[K, V]`, intercept float64 `[K]`.
    c: the inverse regularisation strength chosen.
    """

    characters: list[str]
    ratio: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    c: float

    def decision(self, texts: Sequence[str]) -> np.ndarray:
        """Scores `[N, C]` of N texts (for two classes: minus and plus half the one score)."""
        return scores_of_both(by_blocks(texts, self._scores))

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {ngram: at for at, ngram in enumerate(self.characters)}

    def _scores(self, texts: Sequence[str]) -> np.ndarray:
        scores = np.tile(self.intercept, (len(texts), 1))
        rows, columns, _ = ngram_counts(
            texts, self._columns, character_ngrams, len(self.characters)
        )
        for k, (ratio, weights) in enumerate(zip(self.ratio, self.coef, strict=True)):
            values = ratio[columns].astype(np.float64)
            length = np.sqrt(np.bincount(rows, np.square(values), minlength=len(texts)))
            summed = np.bincount(rows, values * weights[columns], minlength=len(texts))
            scores[:, k] += summed / np.where(length > 0, length, 1.0)
        return scores


def fit_log_count_ratios(
    texts: Sequence[str],
    labels: np.ndarray,
    dev_texts: Sequence[str] | None = None,
    dev_labels: np.ndarray | None = None,
) -> LogCountRatios:
    """Fit on texts `[N]` and class indices `[N]`, one C for all classes chosen on dev.

    Choice of C, labels and what they may be are those of `tfidf.fit_tfidf_model`; so are the
    n-grams and their order, which are its `characters`.

    Raises ValueError where no text has a word.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    features = CountVectorizer(
        analyzer="char_wb", ngram_range=CHARACTERS, binary=True, dtype=np.float64
    )
    present = features.fit_transform(texts)
    machines = np.arange(int(labels.max()) + 1)
    if len(machines) == 2:
        machines = machines[1:]
    ratio = np.array([log_count_ratio(present, labels == k) for k in machines], dtype=np.float32)
    rows = [weighted(present, one) for one in ratio]
    dev_rows: list[Any] = []
    grid: Sequence[float] = (DEFAULT_C,)
    if dev_texts is not None and dev_labels is not None and len(dev_labels) >= FEWEST_DEV_ROWS:
        grid = RATIO_GRID
        dev_present = features.transform(dev_texts)
        dev_rows = [weighted(dev_present, one) for one in ratio]
    names = features.get_feature_names_out().tolist()
    best: tuple[tuple[float, float], LogCountRatios] | None = None
    # Each C starts where the one before it ended.
    fitted = [LogisticRegression(max_iter=1000, warm_start=True) for _ in machines]
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for c in grid:
            for machine, x, k in zip(fitted, rows, machines, strict=True):
                machine.set_params(C=c).fit(x, labels == k)
            coef = np.vstack([machine.coef_ for machine in fitted]).astype(np.float32)
            intercept = np.concatenate([machine.intercept_ for machine in fitted])
            model = LogCountRatios(names, ratio, coef, intercept, c)
            if not dev_rows:
                return model
            assert dev_labels is not None
            scores = (
                np.stack([x @ w for x, w in zip(dev_rows, coef, strict=True)], axis=1) + intercept
            )
            score = dev_score(softmax(scores_of_both(scores)), dev_labels)
            if best is None or score > best[0]:
                best = score, model
    assert best is not None
    return best[1]


def log_count_ratio(present: Any, inside: np.ndarray, alpha: float = ALPHA) -> np.ndarray:
    """r = log((p / |p|) / (q / |q|)) `[V]`; p and q are alpha and the counts of the n-grams.

    Args:
        present: of n-grams in texts, 0 or 1, sparse `[N, V]`.
        inside: of the class, bool `[N]`: its rows count for p, the others for q.
    """
    p, q = (alpha + np.asarray(present[part].sum(axis=0)).ravel() for part in (inside, ~inside))
    ratio: np.ndarray = np.log(p / p.sum()) - np.log(q / q.sum())
    return ratio


def weighted(present: Any, ratio: np.ndarray) -> Any:
    """Sparse rows `[N, V]` of presence times ratio, each of unit length."""
    from sklearn.preprocessing import normalize

    return normalize(present.multiply(ratio).tocsr(), copy=False)
