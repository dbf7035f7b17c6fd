"""N-gram models of the text itself, as plain arrays: TF-IDF, and log-count ratios.

Both are logistic regressions. `TfidfModel` reads sublinear TF-IDF of word 1-2-grams and character
2-5-grams, each part of unit length; the analysis is that of scikit-learn's TfidfVectorizer.
`LogCountRatios` reads the naive Bayes features of Wang and Manning (2012), "Baselines and
bigrams: simple, good sentiment and topic classification" (section 2.3), of characters instead of
words: presence times log-count ratio, rows of unit length, each class against all others (for two
classes one classifier). They are baselines, and part of the ensembles with an encoder
(`superconext.probe.ensemble`). Texts are normalised and split into words and marks as for the
encoder; only models of run formats up to 6 read them as they stand, split at white space. Fitting
uses scikit-learn; a fitted model needs NumPy alone.

Columns of n-grams that occur equally often in the same training texts are fitted as one, which
gives the same model (`equal_columns`) in about a quarter of the time.
"""

from __future__ import annotations

import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from superconext.core.arrays import read_arrays, write_arrays
from superconext.core.errors import DataError
from superconext.core.files import write_json
from superconext.core.random_streams import COLUMNS, random_stream
from superconext.probe.base import scores_of_both, softmax
from superconext.probe.logistic_regression import GRID, Predictor, choose_c
from superconext.text.normalize import normalizer_of
from superconext.text.tokenize import Tokenizer

#: Rows of TF-IDF have unit length and want less regularisation than standardised features.
TFIDF_GRID: tuple[float, ...] = (*(c for c in GRID if c >= 0.1), 300.0, 1000.0)
#: The same of log-count ratios.
RATIO_GRID: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)

#: C where there are too few rows to choose it on.
TFIDF_DEFAULT_C, RATIO_DEFAULT_C = 1.0, 3.0

#: Added to every n-gram's count in a log-count ratio.
ALPHA = 1.0

#: Words in a row, and characters within a word, that are counted together.
WORDS, CHARACTERS = (1, 2), (2, 5)

#: The same as options of scikit-learn's vectorisers.
WORD_OPTIONS: dict[str, Any] = {"ngram_range": WORDS, "token_pattern": r"(?u)\S+"}
CHARACTER_OPTIONS: dict[str, Any] = {"ngram_range": CHARACTERS, "analyzer": "char_wb"}

#: What a fitted TF-IDF model is saved as: its n-grams, and its numbers in the same order.
FILES = ("tfidf.json", "tfidf.safetensors")

#: Texts analysed at once; bounds the memory.
_AT_ONCE = 512

#: Row, column and count of every n-gram that a text has.
Cells = tuple[np.ndarray, np.ndarray, np.ndarray]


class NgramModel:
    """A logistic regression over n-grams of texts, of `characters` at least.

    tokenizer: cuts texts; None where they are read as they stand.
    """

    tokenizer: Tokenizer | None
    characters: list[str]
    intercept: np.ndarray

    def decision(self, texts: Sequence[str]) -> np.ndarray:
        """Scores `[N, C]` of N texts (for two classes: minus and plus half the one score)."""
        return decisions([self], texts)[0]

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Class probabilities float64 `[N, C]` of N texts."""
        return softmax(self.decision(texts))

    @cached_property
    def _places(self) -> dict[str, int]:
        return {ngram: at for at, ngram in enumerate(self.characters)}

    def _scores(self, texts: Sequence[str], cells: Cells) -> np.ndarray:
        """Of texts, with the cells of their character n-grams."""
        raise NotImplementedError


def decisions(models: Sequence[NgramModel], texts: Sequence[str]) -> list[np.ndarray]:
    """What `decision` gives, of models of the same `characters` and `tokenizer`: n-grams are
    counted once."""
    places, parts = models[0]._places, []
    texts = spaced(texts, models[0].tokenizer)
    for start in range(0, max(len(texts), 1), _AT_ONCE):
        block = texts[start : start + _AT_ONCE]
        cells = ngram_counts(block, places, character_ngrams, len(places))
        parts.append([model._scores(block, cells) for model in models])
    return [scores_of_both(np.concatenate(part)) for part in zip(*parts, strict=True)]


@dataclass(frozen=True, eq=False)
class TfidfModel(NgramModel):
    """Sublinear TF-IDF of word 1-2-grams beside that of character 2-5-grams, and its weights.

    tokenizer: of `NgramModel`.
    words, characters: the n-grams of the training texts, V together; words come first.
    idf: float64 `[V]`, ln((1 + N) / (1 + texts that have the n-gram)) + 1.
    coef: float64 `[C, V]` (`[1, V]` for two classes), intercept `[C]` (`[1]`).
    c: the inverse regularisation strength chosen.
    """

    tokenizer: Tokenizer | None
    words: list[str]
    characters: list[str]
    idf: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    c: float

    def save(self, folder: Path) -> None:
        """Write `FILES` into an existing folder; nothing is pickled."""
        text = {} if self.tokenizer is None else {"text": self.tokenizer.to_dict()}
        ngrams = {"words": self.words, "characters": self.characters}
        write_json(folder / FILES[0], {**text, **ngrams})
        arrays = {
            "idf": self.idf,
            "coef": self.coef,
            "intercept": self.intercept,
            "c": np.array([self.c]),
        }
        write_arrays(folder / FILES[1], arrays)

    @classmethod
    def load(cls, folder: Path) -> TfidfModel:
        """What `save` wrote. Raises ValueError where the two files are not of one model."""
        try:
            ngrams = json.loads((folder / FILES[0]).read_text(encoding="utf-8"))
        except RecursionError:
            raise ValueError(f"{FILES[0]} is nested too deep") from None
        arrays = read_arrays(folder / FILES[1])
        words, characters = list(ngrams["words"]), list(ngrams["characters"])
        idf, coef, intercept = (arrays[name] for name in ("idf", "coef", "intercept"))
        text = ngrams.get("text")
        tokenizer = None if text is None else Tokenizer.from_dict(text)
        if not all(isinstance(ngram, str) for ngram in (*words, *characters)):
            raise ValueError(f"{FILES[0]} holds what is no text")
        if idf.dtype.kind != "f" or not np.isfinite(idf).all():
            raise ValueError(f"{FILES[1]} has weights of n-grams that are no finite numbers")
        count = len(words) + len(characters)
        if idf.shape != (count,) or coef.shape != (len(intercept), count):
            raise ValueError(
                f"{FILES[0]} has {count} n-grams, {FILES[1]} numbers for {idf.shape[0]}"
            )
        return cls(tokenizer, words, characters, idf, coef, intercept, float(arrays["c"][0]))

    @cached_property
    def _words(self) -> dict[str, int]:
        return {ngram: at for at, ngram in enumerate(self.words)}

    def _scores(self, texts: Sequence[str], cells: Cells) -> np.ndarray:
        scores = np.tile(self.intercept, (len(texts), 1))
        words = ngram_counts(texts, self._words, word_ngrams, len(self.words))
        for first, (rows, columns, counts) in ((0, words), (len(self.words), cells)):
            columns = columns + first
            values = (1 + np.log(counts)) * self.idf[columns]
            _add_scores(scores, rows, columns, [values] * len(self.coef), self.coef)
        return scores


@dataclass(frozen=True, eq=False)
class LogCountRatios(NgramModel):
    """Log-count ratios of character 2-5-grams, and the weights of rows made of them.

    tokenizer: of `NgramModel`.
    characters: the n-grams of the training texts, V.
    ratio: float32 `[K, V]`, log-count ratio of each machine's class; K = C, or 1 for C = 2.
    coef: float32 `[K, V]`, intercept float64 `[K]`.
    c: the inverse regularisation strength chosen.
    """

    tokenizer: Tokenizer | None
    characters: list[str]
    ratio: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    c: float

    def _scores(self, texts: Sequence[str], cells: Cells) -> np.ndarray:
        scores = np.tile(self.intercept, (len(texts), 1))
        rows, columns, _ = cells
        values = self.ratio[:, columns].astype(np.float64)
        _add_scores(scores, rows, columns, values, self.coef)
        return scores


def _add_scores(
    scores: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    values: Sequence[np.ndarray] | np.ndarray,
    coef: np.ndarray,
) -> None:
    """Add to scores `[N, K]` the rows of each of K machines, scaled to unit length, times its
    weights `[V]`. The cells of the rows are at `rows`, `columns`; each machine has its values."""
    for k, (cells, weights) in enumerate(zip(values, coef, strict=True)):
        length = np.sqrt(np.bincount(rows, np.square(cells), minlength=len(scores)))
        summed = np.bincount(rows, cells * weights[columns], minlength=len(scores))
        scores[:, k] += summed / np.where(length > 0, length, 1.0)


def ngram_tokenizer(
    texts: Sequence[str], normalize: str = "auto", bridge: str | None = None
) -> Tokenizer:
    """How n-gram models cut texts; `auto` is decided on those they are trained on.

    Raises ConfigError for an unknown profile, rule or dialect.
    """
    return Tokenizer(normalizer_of(normalize, texts), bridge)


def spaced(texts: Sequence[str], tokenizer: Tokenizer | None) -> Sequence[str]:
    """Texts with a space between tokens; as they stand without a tokenizer."""
    return texts if tokenizer is None else [" ".join(words) for words in tokenizer.many(texts)]


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
) -> Cells:
    """Row, column and count of every known n-gram that a text has, sorted by row, column."""
    cells: list[int] = []
    for row, text in enumerate(texts):
        start = row * width
        cells += [start + places[ngram] for ngram in analyse(text) if ngram in places]
    cell, counts = np.unique(np.array(cells, dtype=np.int64), return_counts=True)
    rows, columns = np.divmod(cell, max(width, 1))
    return rows, columns, counts


class NgramCounts:
    """Counts of word and of character n-grams in N texts, made once for all that is fitted.

    tokenizer: cuts the texts; by default the `ngram_tokenizer` for them.
    texts: those counted.
    names: the n-grams of both, words first.
    counts: of both, sparse float64 `[N, V]`.

    Raises DataError where no text has a word.
    """

    def __init__(self, texts: Sequence[str], tokenizer: Tokenizer | None = None) -> None:
        from sklearn.feature_extraction.text import CountVectorizer

        self.texts = texts
        self.tokenizer = ngram_tokenizer(texts) if tokenizer is None else tokenizer
        texts = spaced(texts, self.tokenizer)
        if not any(texts):
            raise DataError(
                f"found no word in {len(texts)} training texts; expected some to make n-grams of: "
                "check the text column"
            )
        options = (WORD_OPTIONS, CHARACTER_OPTIONS)
        self._vectorizers = [CountVectorizer(**one, dtype=np.float64) for one in options]
        self.counts = [one.fit_transform(texts) for one in self._vectorizers]

    @property
    def names(self) -> list[list[str]]:
        return [one.get_feature_names_out().tolist() for one in self._vectorizers]

    def of(self, texts: Sequence[str]) -> list[Any]:
        """The counts of the same n-grams in other texts."""
        texts = spaced(texts, self.tokenizer)
        return [one.transform(texts) for one in self._vectorizers]

    def fold(self, fitted: np.ndarray, held: np.ndarray) -> tuple[list[Any], list[Any]]:
        """Counts of the n-grams that the rows `fitted` have, in those and in the rows `held`."""
        parts = [(counts[fitted], counts[held]) for counts in self.counts]
        columns = [columns_of(own) for own, _ in parts]
        own, others = (
            [one[:, at] for one, at in zip(side, columns, strict=True)]
            for side in zip(*parts, strict=True)
        )
        return own, others


class Features(ABC):
    """Features made of n-gram counts, fitted on those of the training rows `[N, V]`.

    grid, default: C that are tried, and C where there are too few rows to choose it on.
    targets: what each machine learns `[N]`, class indices or whether a row is of its class.
    merge: sparse `[V, U]` of `equal_columns`.
    """

    grid: ClassVar[Sequence[float]]
    default: ClassVar[float]
    targets: list[np.ndarray]
    merge: Any

    @abstractmethod
    def __init__(self, counts: list[Any], labels: np.ndarray) -> None: ...

    @abstractmethod
    def rows(self, counts: list[Any]) -> list[Any]:
        """Sparse rows `[M, V]` for each machine."""

    @abstractmethod
    def model(
        self, counts: NgramCounts, coef: np.ndarray, intercept: np.ndarray, c: float
    ) -> NgramModel:
        """The fitted model of these n-grams, `coef` `[K, V]` and `intercept` `[K]`."""

    def merged(self, counts: list[Any]) -> list[Any]:
        """The same with equal columns merged, `[M, U]`."""
        return [x @ self.merge for x in self.rows(counts)]

    def along_c(self, counts: list[Any], others: list[Any]) -> Predictor:
        """Class probabilities of other rows `[M]`, each C starting where the last one ended."""
        machines = self._machines()
        own, held = self.merged(counts), self.merged(others)

        def predict(c: float) -> np.ndarray:
            for machine, x, target in zip(machines, own, self.targets, strict=True):
                machine.set_params(C=c).fit(x, target)
            pairs = zip(machines, held, strict=True)
            scores = np.column_stack([machine.decision_function(x) for machine, x in pairs])
            return softmax(scores_of_both(scores))

        return predict

    def fitted(self, counts: NgramCounts, c: float) -> NgramModel:
        """The model of this C."""
        machines = self._machines()
        own = self.merged(counts.counts)
        for machine, x, target in zip(machines, own, self.targets, strict=True):
            machine.set_params(C=c).fit(x, target)
        coef = (self.merge @ np.vstack([machine.coef_ for machine in machines]).T).T
        intercept = np.concatenate([machine.intercept_ for machine in machines])
        return self.model(counts, np.ascontiguousarray(coef), intercept, c)

    def _machines(self) -> list[Any]:
        from sklearn.linear_model import LogisticRegression

        return [LogisticRegression(max_iter=1000, warm_start=True) for _ in self.targets]


class TfidfFeatures(Features):
    """Sublinear TF-IDF of words beside that of characters, for one machine of all classes."""

    grid, default = TFIDF_GRID, TFIDF_DEFAULT_C

    def __init__(self, counts: list[Any], labels: np.ndarray) -> None:
        from scipy.sparse import block_diag
        from sklearn.feature_extraction.text import TfidfTransformer

        self.parts = [TfidfTransformer(sublinear_tf=True).fit(part) for part in counts]
        self.targets = [labels]
        # Words and characters apart: each part of a row is scaled by its own length.
        self.merge = block_diag([equal_columns(part) for part in counts], format="csr")

    def rows(self, counts: list[Any]) -> list[Any]:
        from scipy.sparse import hstack

        pairs = zip(self.parts, counts, strict=True)
        return [hstack([part.transform(one) for part, one in pairs]).tocsr()]

    def model(
        self, counts: NgramCounts, coef: np.ndarray, intercept: np.ndarray, c: float
    ) -> TfidfModel:
        idf = np.concatenate([part.idf_ for part in self.parts])
        words, characters = counts.names
        return TfidfModel(counts.tokenizer, words, characters, idf, coef, intercept, c)


class RatioFeatures(Features):
    """Presence of characters times log-count ratio, of unit length; a machine for each class."""

    grid, default = RATIO_GRID, RATIO_DEFAULT_C

    def __init__(self, counts: list[Any], labels: np.ndarray) -> None:
        present = _presence(counts)
        classes = np.arange(int(labels.max()) + 1)
        self.targets = [labels == k for k in (classes if len(classes) > 2 else classes[1:])]
        self.ratio = np.array([log_count_ratio(present, one) for one in self.targets], np.float32)
        self.merge = equal_columns(present)

    def rows(self, counts: list[Any]) -> list[Any]:
        from sklearn.preprocessing import normalize

        present = _presence(counts)
        return [normalize(present.multiply(one).tocsr(), copy=False) for one in self.ratio]

    def model(
        self, counts: NgramCounts, coef: np.ndarray, intercept: np.ndarray, c: float
    ) -> LogCountRatios:
        weights = self.ratio, coef.astype(np.float32), intercept, c
        return LogCountRatios(counts.tokenizer, counts.names[1], *weights)


def fit_tfidf_model(
    texts: Sequence[str],
    labels: np.ndarray,
    dev_texts: Sequence[str] | None = None,
    dev_labels: np.ndarray | None = None,
    tokenizer: Tokenizer | None = None,
) -> TfidfModel:
    """Fit on texts `[N]` and class indices `[N]`; C as `choose_c` has it.

    Args:
        labels: 0 to C - 1, each there.
        dev_labels: alike `[M]`; -1 for a class that training never saw.
        tokenizer: as in `NgramCounts`.

    Raises DataError where no text has a word.
    """
    counts = NgramCounts(texts, tokenizer)
    model, _ = fit_ngrams(TfidfFeatures, counts, labels, dev_texts, dev_labels)
    assert isinstance(model, TfidfModel)
    return model


def fit_both(
    texts: Sequence[str],
    labels: np.ndarray,
    dev_texts: Sequence[str] | None = None,
    dev_labels: np.ndarray | None = None,
    held_out: bool = False,
    tokenizer: Tokenizer | None = None,
) -> tuple[TfidfModel, LogCountRatios, list[np.ndarray] | None]:
    """TF-IDF and log-count ratios of the same n-grams, each with its C, and of both the
    probabilities that `fit_ngrams` returns.

    Arguments and errors are those of `fit_tfidf_model`.
    """
    counts = NgramCounts(texts, tokenizer)
    rows = counts, labels, dev_texts, dev_labels, held_out
    (tfidf, first), (ratios, second) = (
        fit_ngrams(kind, *rows) for kind in (TfidfFeatures, RatioFeatures)
    )
    assert isinstance(tfidf, TfidfModel) and isinstance(ratios, LogCountRatios)
    return tfidf, ratios, None if first is None or second is None else [first, second]


def fit_ngrams(
    kind: type[Features],
    counts: NgramCounts,
    labels: np.ndarray,
    dev_texts: Sequence[str] | None = None,
    dev_labels: np.ndarray | None = None,
    held_out: bool = False,
) -> tuple[NgramModel, np.ndarray | None]:
    """A fitted model, and class probabilities `[N, C]` of every training row by the fold that
    left it out. The latter are None where train has no folds, or dev chose C and `held_out` does
    not ask for them."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    def of_fold(fitted: np.ndarray, held: np.ndarray) -> Predictor:
        own, others = counts.fold(fitted, held)
        return kind(own, labels[fitted]).along_c(own, others)

    def of_dev() -> Predictor:
        assert dev_texts is not None
        return features.along_c(counts.counts, counts.of(dev_texts))

    # The rows are sparse, which no BLAS works on; left to it are sums of long vectors, which
    # memory bounds. More threads only wait for each other there, and long beside a busy neighbour.
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        features = kind(counts.counts, labels)
        choose = partial(choose_c, of_fold=of_fold, of_dev=of_dev, texts=counts.texts)
        c, held, _ = choose(kind.grid, kind.default, labels, dev_labels)
        if held_out and held is None:
            held = choose((c,), c, labels, None).held_out
        return features.fitted(counts, c), held


def refit_ngrams(
    kinds: Sequence[type[Features]],
    texts: Sequence[str],
    labels: np.ndarray,
    cs: Sequence[float],
    tokenizer: Tokenizer | None = None,
) -> list[NgramModel]:
    """A model of each kind on the same n-grams, with the C that was chosen for it."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    counts = NgramCounts(texts, tokenizer)
    with warnings.catch_warnings(), threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        pairs = zip(kinds, cs, strict=True)
        return [kind(counts.counts, labels).fitted(counts, c) for kind, c in pairs]


def equal_columns(counts: Any) -> Any:
    """Sparse `[V, U]` that makes one column of those that are equal in counts `[N, V]`.

    With m of them each has the weight m ** -0.5, so that x @ M has the length of x in the training
    rows, and a penalised regression the same optimum: by symmetry equal columns have one weight,
    v * m ** -0.5 for the merged column's v. Columns are compared by a 64-bit hash.
    """
    from scipy.sparse import csr_matrix

    draw = random_stream(0, COLUMNS)
    keys = draw.integers(1, 2**64, size=counts.shape[0], dtype=np.uint64)
    _, group, sizes = np.unique(
        counts.astype(np.uint64).T @ keys, return_inverse=True, return_counts=True
    )
    cells = sizes[group] ** -0.5, (np.arange(len(group)), group)
    return csr_matrix(cells, shape=(len(group), len(sizes)))


def log_count_ratio(present: Any, inside: np.ndarray) -> np.ndarray:
    """r = log((p / |p|) / (q / |q|)) `[V]`; p and q are `ALPHA` and the counts of the n-grams.

    Args:
        present: of n-grams in texts, 0 or 1, sparse `[N, V]`.
        inside: of the class, bool `[N]`: its rows count for p, the others for q.
    """
    p, q = (ALPHA + np.asarray(present[part].sum(axis=0)).ravel() for part in (inside, ~inside))
    ratio: np.ndarray = np.log(p / p.sum()) - np.log(q / q.sum())
    return ratio


def columns_of(counts: Any) -> np.ndarray:
    """The columns that a sparse matrix `[N, V]` has an entry in; the first where it has none."""
    columns = np.flatnonzero(counts.getnnz(axis=0))
    return columns if len(columns) else np.zeros(1, dtype=np.int64)


def _presence(counts: list[Any]) -> Any:
    """Whether a row has each of the character n-grams, 0 or 1, sparse `[N, V]`."""
    present = counts[1].copy()
    present.data[:] = 1
    return present
