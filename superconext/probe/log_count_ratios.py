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
from superconext.probe.cross_validation import Choice, Loss, best_c, columns_of, log_loss
from superconext.probe.tfidf import CHARACTER_OPTIONS, by_blocks, character_ngrams, ngram_counts

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
    choice: Choice = "dev_accuracy",
) -> LogCountRatios:
    """Fit on texts `[N]` and class indices `[N]`, one C for all classes.

    Choice of C, labels and what they may be are those of `tfidf.fit_tfidf_model`; so are the
    n-grams and their order, which are its `characters`.

    Raises ValueError where no text has a word.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import CountVectorizer
    from threadpoolctl import threadpool_limits

    features = CountVectorizer(**CHARACTER_OPTIONS, binary=True, dtype=np.float64)
    present = features.fit_transform(texts)
    machines = _Machines(present, labels)
    dev_rows: list[Any] = []
    grid: Sequence[float] = (DEFAULT_C,)
    if dev_texts is not None and dev_labels is not None and len(dev_labels) >= FEWEST_DEV_ROWS:
        grid = RATIO_GRID
        dev_rows = machines.weighted(features.transform(dev_texts))
    names = features.get_feature_names_out().tolist()
    best: tuple[tuple[float, float], LogCountRatios] | None = None
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        if choice == "log_loss":

            def of_fold(fitted: np.ndarray, held: np.ndarray) -> Loss:
                own = present[fitted]
                columns = columns_of(own)
                machines = _Machines(own[:, columns], labels[fitted])
                return machines.loss(machines.weighted(present[held][:, columns]), labels[held])

            def of_dev() -> Loss:
                assert dev_labels is not None
                return _Machines(present, labels).loss(dev_rows, dev_labels)

            chosen = best_c(RATIO_GRID, labels, dev_labels, of_fold, of_dev)
            if chosen is not None:
                grid, dev_rows = (chosen,), []
        for c in grid:
            coef, intercept = machines.fit(c)
            model = LogCountRatios(names, machines.ratio, coef, intercept, c)
            if not dev_rows:
                return model
            assert dev_labels is not None
            score = dev_score(_probabilities(dev_rows, coef, intercept), dev_labels)
            if best is None or score > best[0]:
                best = score, model
    assert best is not None
    return best[1]


class _Machines:
    """One logistic regression for each class against the rest (for two classes: one).

    Args:
        present: of n-grams in texts, 0 or 1, sparse `[N, V]`.
        labels: class indices `[N]`.
    """

    def __init__(self, present: Any, labels: np.ndarray) -> None:
        from sklearn.linear_model import LogisticRegression

        classes = np.arange(int(labels.max()) + 1)
        if len(classes) == 2:
            classes = classes[1:]
        self.inside = [labels == k for k in classes]
        self.ratio = np.array([log_count_ratio(present, one) for one in self.inside], np.float32)
        self.rows = self.weighted(present)
        self.fitted = [LogisticRegression(max_iter=1000, warm_start=True) for _ in classes]

    def weighted(self, present: Any) -> list[Any]:
        """The rows of each machine, sparse `[N, V]`."""
        return [weighted(present, one) for one in self.ratio]

    def fit(self, c: float) -> tuple[np.ndarray, np.ndarray]:
        """coef float32 `[K, V]` and intercept `[K]`; each C starts where the last one ended."""
        for machine, x, inside in zip(self.fitted, self.rows, self.inside, strict=True):
            machine.set_params(C=c).fit(x, inside)
        coef = np.vstack([machine.coef_ for machine in self.fitted]).astype(np.float32)
        return coef, np.concatenate([machine.intercept_ for machine in self.fitted])

    def loss(self, held: Sequence[Any], labels: np.ndarray) -> Loss:
        """The log loss on held-out rows, one sparse `[M, V]` for each machine."""
        return lambda c: log_loss(_probabilities(held, *self.fit(c)), labels)


def _probabilities(rows: Sequence[Any], coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Class probabilities `[N, C]` of rows `[N, V]`, one matrix for each machine."""
    scores = np.stack([x @ w for x, w in zip(rows, coef, strict=True)], axis=1) + intercept
    return softmax(scores_of_both(scores))


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
