"""TF-IDF and logistic regression as plain arrays: a model of words and character n-grams.

It is a baseline, and part of the ensembles with an encoder (`superconext.probe.ensemble`).

The analysis is that of scikit-learn's TfidfVectorizer, on the text as it was given and not
as the encoder's normalisation leaves it. Fitting uses scikit-learn; a fitted model needs
NumPy alone.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from superconext.core.errors import DataError
from superconext.core.files import atomic_write, write_json
from superconext.probe.base import FEWEST_DEV_ROWS, dev_score, scores_of_both, softmax
from superconext.probe.cross_validation import Choice, Loss, best_c, columns_of, warm_loss
from superconext.probe.logistic_regression import GRID

#: Rows of TF-IDF have unit length and want less regularisation than standardised features.
TFIDF_GRID: tuple[float, ...] = (*(c for c in GRID if c >= 0.1), 300.0, 1000.0)

#: C where there are too few dev rows to choose it on.
DEFAULT_C = 1.0

#: Words in a row, and characters within a word, that are counted together.
WORDS, CHARACTERS = (1, 2), (2, 5)

#: The same as options of scikit-learn's vectorisers.
WORD_OPTIONS: dict[str, Any] = {"ngram_range": WORDS, "token_pattern": r"(?u)\S+"}
CHARACTER_OPTIONS: dict[str, Any] = {"ngram_range": CHARACTERS, "analyzer": "char_wb"}

#: What a fitted model is saved as: its n-grams, and its numbers in the same order.
FILES = ("tfidf.json", "tfidf.safetensors")

#: Texts analysed at once; bounds the memory.
_AT_ONCE = 512


@dataclass(frozen=True, eq=False)
class TfidfModel:
    """Sublinear TF-IDF of word 1-2-grams beside that of character 2-5-grams, and its weights.

    words, characters: the n-grams of the training texts, V together; words come first.
    idf: float64 `[V]`, ln((1 + N) / (1 + texts that have the n-gram)) + 1.
    coef: float64 `[C, V]` (`[1, V]` for two classes), intercept `[C]` (`[1]`).
    c: the inverse regularisation strength chosen.
    """

    words: list[str]
    characters: list[str]
    idf: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    c: float

    def decision(self, texts: Sequence[str]) -> np.ndarray:
        """Scores `[N, C]` of N texts (for two classes: minus and plus half the one score)."""
        return scores_of_both(by_blocks(texts, self._scores))

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Class probabilities float64 `[N, C]` of N texts."""
        return softmax(self.decision(texts))

    def save(self, folder: Path) -> None:
        """Write `FILES` into an existing folder; nothing is pickled."""
        from safetensors.numpy import save_file

        write_json(folder / FILES[0], {"words": self.words, "characters": self.characters})
        arrays = {
            "idf": self.idf,
            "coef": np.ascontiguousarray(self.coef),
            "intercept": self.intercept,
            "c": np.array([self.c]),
        }
        with atomic_write(folder / FILES[1]) as temporary:
            save_file(arrays, temporary)

    @classmethod
    def load(cls, folder: Path) -> TfidfModel:
        """What `save` wrote. Raises ValueError where the two files are not of one model."""
        from safetensors.numpy import load_file

        try:
            ngrams = json.loads((folder / FILES[0]).read_text(encoding="utf-8"))
        except RecursionError:
            raise ValueError(f"{FILES[0]} is nested too deep") from None
        arrays = load_file(folder / FILES[1])
        words, characters = list(ngrams["words"]), list(ngrams["characters"])
        idf, coef, intercept = (arrays[name] for name in ("idf", "coef", "intercept"))
        if not all(isinstance(ngram, str) for ngram in (*words, *characters)):
            raise ValueError(f"{FILES[0]} holds what is no text")
        if idf.dtype.kind != "f" or not np.isfinite(idf).all():
            raise ValueError(f"{FILES[1]} has weights of n-grams that are no finite numbers")
        count = len(words) + len(characters)
        if idf.shape != (count,) or coef.shape != (len(intercept), count):
            raise ValueError(
                f"{FILES[0]} has {count} n-grams, {FILES[1]} numbers for {idf.shape[0]}"
            )
        return cls(words, characters, idf, coef, intercept, float(arrays["c"][0]))

    @cached_property
    def _columns(self) -> tuple[dict[str, int], dict[str, int]]:
        """The places of words and of characters in the arrays."""
        first = len(self.words)
        return (
            {ngram: at for at, ngram in enumerate(self.words)},
            {ngram: at for at, ngram in enumerate(self.characters, first)},
        )

    def _scores(self, texts: Sequence[str]) -> np.ndarray:
        scores = np.tile(self.intercept, (len(texts), 1))
        for places, analyse in zip(self._columns, (word_ngrams, character_ngrams), strict=True):
            rows, columns, counts = ngram_counts(texts, places, analyse, len(self.idf))
            values = (1 + np.log(counts)) * self.idf[columns]
            squares = np.bincount(rows, np.square(values), minlength=len(texts))
            values /= np.sqrt(squares)[rows]
            for k, weights in enumerate(self.coef):
                scores[:, k] += np.bincount(rows, values * weights[columns], minlength=len(texts))
        return scores


def by_blocks(texts: Sequence[str], scores: Callable[[Sequence[str]], np.ndarray]) -> np.ndarray:
    """Scores of N texts, analysed some hundred at once, one below the other."""
    starts = range(0, max(len(texts), 1), _AT_ONCE)
    return np.concatenate([scores(texts[start : start + _AT_ONCE]) for start in starts])


def word_ngrams(text: str) -> list[str]:
    """Words and pairs of neighbouring words, in lower case; a word has no white space."""
    words = text.lower().split()
    return words + [f"{one} {other}" for one, other in pairwise(words)]


def character_ngrams(text: str) -> Iterator[str]:
    """Runs of 2 to 5 characters in each word, a space before and after it; lower case."""
    low, high = CHARACTERS
    for word in text.lower().split():
        padded = f" {word} "
        for n in range(low, min(high, len(padded)) + 1):
            for start in range(len(padded) - n + 1):
                yield padded[start : start + n]


def ngram_counts(
    texts: Sequence[str],
    places: dict[str, int],
    analyse: Callable[[str], Any],
    width: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, column and count of every known n-gram that a text has, sorted by row, column."""
    cells: list[int] = []
    for row, text in enumerate(texts):
        start = row * width
        cells += [start + places[ngram] for ngram in analyse(text) if ngram in places]
    cell, counts = np.unique(np.array(cells, dtype=np.int64), return_counts=True)
    rows, columns = np.divmod(cell, max(width, 1))
    return rows, columns, counts


def tfidf() -> Any:
    """Both vectorisers of scikit-learn side by side, not fitted; word n-grams come first."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union

    return make_union(
        TfidfVectorizer(**WORD_OPTIONS, sublinear_tf=True),
        TfidfVectorizer(**CHARACTER_OPTIONS, sublinear_tf=True),
    )


class FoldRows:
    """TF-IDF rows of folds of N texts, with the vocabulary and the idf of each fold's own rows.

    The texts are analysed once: a fold's vocabulary is the n-grams its rows have.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts

    @cached_property
    def counts(self) -> list[Any]:
        """Counts of word and of character n-grams, sparse `[N, V]`."""
        from sklearn.feature_extraction.text import CountVectorizer

        return [
            CountVectorizer(**options, dtype=np.float64).fit_transform(self.texts)
            for options in (WORD_OPTIONS, CHARACTER_OPTIONS)
        ]

    def __call__(self, fitted: np.ndarray, held: np.ndarray) -> tuple[Any, Any]:
        """Sparse rows of the row numbers that are fitted on and of those held out."""
        from scipy.sparse import hstack
        from sklearn.feature_extraction.text import TfidfTransformer

        rows: tuple[list[Any], list[Any]] = [], []
        for counts in self.counts:
            own = counts[fitted]
            columns = columns_of(own)
            transformer = TfidfTransformer(sublinear_tf=True)
            rows[0].append(transformer.fit_transform(own[:, columns]))
            rows[1].append(transformer.transform(counts[held][:, columns]))
        return hstack(rows[0]).tocsr(), hstack(rows[1]).tocsr()


def regression_probabilities(rows: Any, labels: np.ndarray, held: Any, c: float) -> np.ndarray:
    """Class probabilities `[M, C]` of held-out rows `[M, V]` by a regression of rows `[N, V]`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(C=c, max_iter=1000).fit(rows, labels)
    shares: np.ndarray = model.predict_proba(held)
    return shares


def fit_tfidf_model(
    texts: Sequence[str],
    labels: np.ndarray,
    dev_texts: Sequence[str] | None = None,
    dev_labels: np.ndarray | None = None,
    choice: Choice = "dev_accuracy",
) -> TfidfModel:
    """Fit on texts `[N]` and class indices `[N]`.

    The C with the highest dev accuracy wins; ties go to the lower dev log loss, then to the
    smaller C. With fewer than `FEWEST_DEV_ROWS` dev rows it is `DEFAULT_C`.

    Args:
        labels: 0 to C - 1, each there.
        dev_labels: alike; -1 for a class that training never saw.
        choice: "log_loss" chooses C as in `cross_validation.best_c` instead, and by the rule
            above only where train has no folds.

    Raises DataError where no text has a word.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits

    if not any(map(str.split, texts)):
        raise DataError(
            f"found no word in {len(texts)} training texts; expected some to make n-grams of: "
            "check the text column"
        )
    features = tfidf()
    rows = features.fit_transform(texts)
    grid: Sequence[float] = TFIDF_GRID
    if dev_texts is None or dev_labels is None or len(dev_labels) < FEWEST_DEV_ROWS:
        grid = (DEFAULT_C,)
    # The rows are sparse, which no BLAS works on; left to it are sums of long vectors, which
    # memory bounds. More threads only wait for each other there, and long beside a busy neighbour.
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        if choice == "log_loss":
            fold_rows = FoldRows(texts)

            def of_fold(fitted: np.ndarray, held: np.ndarray) -> Loss:
                own, others = fold_rows(fitted, held)
                return warm_loss(own, labels[fitted], others, labels[held])

            def of_dev() -> Loss:
                assert dev_texts is not None and dev_labels is not None
                return warm_loss(rows, labels, features.transform(dev_texts), dev_labels)

            c = best_c(TFIDF_GRID, labels, dev_labels, of_fold, of_dev)
            grid = grid if c is None else (c,)
        models = [LogisticRegression(C=c, max_iter=1000).fit(rows, labels) for c in grid]
    best = models[0]
    if len(models) > 1:
        assert dev_texts is not None and dev_labels is not None
        dev_rows, dev_truth = features.transform(dev_texts), dev_labels
        # The first of equals, that is the strongest regularisation, wins.
        best = max(models, key=lambda model: dev_score(model.predict_proba(dev_rows), dev_truth))
    words, characters = (
        part.get_feature_names_out().tolist() for _, part in features.transformer_list
    )
    idf = np.concatenate([part.idf_ for _, part in features.transformer_list])
    return TfidfModel(words, characters, idf, best.coef_, best.intercept_, float(best.C))
