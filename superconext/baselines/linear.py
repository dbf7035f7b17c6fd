"""Linear models of text that a user would pick instead: TF-IDF, NB-SVM, n-grams, fastText."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from superconext.baselines.baseline import (
    Baseline,
    ProbabilisticBaseline,
    Split,
    class_indices,
)
from superconext.core.errors import MissingExtraError, TrainingError
from superconext.probe.base import FEWEST_DEV_ROWS, log_softmax
from superconext.probe.ensemble import fit_weights, pooled
from superconext.probe.logistic_regression import Predictor, choose_c
from superconext.probe.ngrams import (
    WORD_OPTIONS,
    NgramCounts,
    TfidfFeatures,
    columns_of,
    decisions,
    fit_both,
    fit_tfidf_model,
    log_count_ratio,
    ngram_tokenizer,
    spaced,
)
from superconext.text.tokenize import Tokenizer

#: C of the SVM on TF-IDF; beyond 10 it fits every training row.
SVM_GRID: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
#: C of NB-SVM.
NBSVM_GRID: tuple[float, ...] = (*SVM_GRID, 30.0)
#: C of both where there are too few rows to choose it on.
SVM_DEFAULT_C = 1.0

#: Weight of the SVM in NB-SVM; the rest goes to naive Bayes, that is to weights all of one size.
BETA = 0.25


def tokenizer_of(baseline: Baseline, texts: Sequence[str]) -> Tokenizer:
    """Cuts texts as the run does that a baseline is compared with; `auto` looks at `texts`."""
    config = baseline.config
    read = () if config is None else (config.normalize, config.bridge)
    return ngram_tokenizer(texts, *read)


class TfidfLogisticRegression(ProbabilisticBaseline):
    """TF-IDF and logistic regression."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> TfidfLogisticRegression:
        self.names, labels, dev_labels = class_indices(train, dev)
        cut = tokenizer_of(self, train[0])
        self.model = fit_tfidf_model(train[0], labels, dev and dev[0], dev_labels, cut)
        self.settings = {"C": self.model.c}
        return self

    def decision(self, texts: Sequence[str]) -> np.ndarray:
        return self.model.decision(texts)


class NgramPool(ProbabilisticBaseline):
    """The n-gram models of `encoder+ngrams` alone: TF-IDF and log-count ratios in a log-linear
    pool. Its weights are fitted on the training rows, each predicted by the fold of the
    cross-validation that left it out; they are equal where there are no folds."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> NgramPool:
        self.names, labels, dev_labels = class_indices(train, dev)
        rows = train[0], labels, dev and dev[0], dev_labels
        first, second, held_out = fit_both(*rows, True, tokenizer_of(self, train[0]))
        self.models = first, second
        self.weights = np.full(2, 1 / 2)
        if held_out is not None:
            logs = [np.log(np.maximum(one, np.finfo(np.float64).tiny)) for one in held_out]
            self.weights = fit_weights(logs, labels)
        self.settings = {
            "tfidf_C": first.c,
            "ngrams_C": second.c,
            "pool_weights": self.weights.tolist(),
        }
        return self

    def decision(self, texts: Sequence[str]) -> np.ndarray:
        return pooled([log_softmax(one) for one in decisions(self.models, texts)], self.weights)


class TfidfSvm(Baseline):
    """A linear support vector machine on TF-IDF."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> TfidfSvm:
        self.names, labels, dev_labels = class_indices(train, dev)
        self.counts = NgramCounts(train[0], tokenizer_of(self, train[0]))
        self.features = TfidfFeatures(self.counts.counts, labels)
        (rows,) = self.features.rows(self.counts.counts)

        def of_fold(fitted: np.ndarray, held: np.ndarray) -> Predictor:
            own, others = self.counts.fold(fitted, held)
            features = TfidfFeatures(own, labels[fitted])
            (own_rows,), (held_rows,) = features.rows(own), features.rows(others)
            return lambda c: _svm(own_rows, labels[fitted], c).predict(held_rows)

        def of_dev() -> Predictor:
            assert dev is not None
            (others,) = self.features.rows(self.counts.of(dev[0]))
            return lambda c: _svm(rows, labels, c).predict(others)

        split = labels, dev_labels, of_fold, of_dev
        whole: dict[str, Any] = {"whole_grid": True, "texts": train[0]}
        c = choose_c(SVM_GRID, SVM_DEFAULT_C, *split, error_rate, **whole).c
        self.model = _svm(rows, labels, c)
        self.settings = {"C": c}
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        (rows,) = self.features.rows(self.counts.of(texts))
        return [self.names[k] for k in self.model.predict(rows)]


class NbSvm(Baseline):
    """Presence of words and pairs of words, times their log-count ratio; a linear SVM."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> NbSvm:
        from sklearn.feature_extraction.text import CountVectorizer

        self.tokenizer = tokenizer_of(self, train[0])
        self.features = CountVectorizer(**WORD_OPTIONS, binary=True, dtype=np.float64)
        rows = self.features.fit_transform(spaced(train[0], self.tokenizer))
        self.names, labels, dev_labels = class_indices(train, dev)
        machines = _Machines(rows, labels)

        def of_fold(fitted: np.ndarray, held: np.ndarray) -> Predictor:
            columns = columns_of(rows[fitted])
            machines = _Machines(rows[fitted][:, columns], labels[fitted])
            return lambda c: _predicted(rows[held][:, columns], *machines.fit(c))

        def of_dev() -> Predictor:
            assert dev is not None
            others = self.features.transform(spaced(dev[0], self.tokenizer))
            return lambda c: _predicted(others, *machines.fit(c))

        split = labels, dev_labels, of_fold, of_dev
        whole: dict[str, Any] = {"whole_grid": True, "texts": train[0]}
        c = choose_c(NBSVM_GRID, SVM_DEFAULT_C, *split, error_rate, **whole).c
        self.weights, self.bias = machines.fit(c)
        self.settings = {"C": c}
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        rows = self.features.transform(spaced(texts, self.tokenizer))
        return [self.names[k] for k in _predicted(rows, self.weights, self.bias)]


class _Machines:
    """One NB-SVM for each class against the rest; two classes need one only.

    Args:
        rows: presence of words and pairs, sparse `[N, V]`.
        labels: class indices `[N]`.
    """

    def __init__(self, rows: Any, labels: np.ndarray) -> None:
        count = int(labels.max()) + 1
        self.masks = [labels == k for k in range(1 if count == 2 else 0, count)]
        self.ratios = [log_count_ratio(rows, mask) for mask in self.masks]
        self.scaled = [rows.multiply(ratio).tocsr() for ratio in self.ratios]

    def fit(self, c: float) -> tuple[np.ndarray, np.ndarray]:
        """Interpolated weights `[K, V]` of the presences, and biases `[K]`."""
        weights, biases = [], []
        for rows, mask, ratio in zip(self.scaled, self.masks, self.ratios, strict=True):
            svm = _svm(rows, mask, c)
            own = svm.coef_[0]
            weights.append(ratio * ((1 - BETA) * np.abs(own).mean() + BETA * own))
            biases.append(BETA * float(svm.intercept_[0]))
        return np.array(weights), np.array(biases)


def _svm(rows: Any, labels: np.ndarray, c: float) -> Any:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LinearSVC(C=c, dual="auto", random_state=0).fit(rows, labels)


def _predicted(rows: Any, weights: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """Class indices `[N]` predicted for rows `[N, V]`."""
    scores = rows @ weights.T + bias
    predicted: np.ndarray = scores[:, 0] > 0 if len(bias) == 1 else scores.argmax(axis=1)
    return predicted.astype(np.int64)


def error_rate(predicted: np.ndarray, labels: np.ndarray) -> float:
    """Share of rows predicted wrongly; those with the label -1 always are."""
    return float(np.mean(predicted != labels))


#: Epochs and lengths of character n-grams (none, 2 to 5) tried on dev, in this order.
EPOCHS: tuple[int, ...] = (5, 15, 50)
SUBWORDS: tuple[tuple[int, int], ...] = ((0, 0), (2, 5))

#: Settings that are not chosen. fastText's default of two million buckets would take 800 MB.
FIXED: dict[str, Any] = {"lr": 0.5, "dim": 100, "wordNgrams": 2, "bucket": 200_000}

#: Begins a label in fastText's file; a private character that is taken out of the texts.
_PREFIX = "\ue000"


class FastText(Baseline):
    """A linear classifier on the mean of word, word 2-gram and character n-gram vectors.

    Epochs and character n-grams are those with the highest dev accuracy, the first of
    equals in the order above; with fewer than `FEWEST_DEV_ROWS` dev rows the last of both.
    """

    seeded = True

    @classmethod
    def check(cls) -> None:
        _module()

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> FastText:
        """Raises MissingExtraError without the package, TrainingError where it gives up."""
        fasttext = _module()
        self.names = sorted(set(train[1]))
        self.tokenizer = tokenizer_of(self, train[0])
        grid = [(epochs, lengths) for epochs in EPOCHS for lengths in SUBWORDS]
        chosen = dev is not None and len(dev[1]) >= FEWEST_DEV_ROWS
        best = -1.0
        with tempfile.TemporaryDirectory(prefix="superconext-") as folder:
            file = Path(folder) / "train.txt"
            lines = [
                f"{_PREFIX}{self.names.index(label)} {_line(text)}\n"
                for text, label in zip(spaced(train[0], self.tokenizer), train[1], strict=True)
            ]
            file.write_text("".join(lines), encoding="utf-8", newline="\n")
            for epochs, lengths in grid if chosen else grid[-1:]:
                model = _train(fasttext, file, epochs, lengths, seed)
                accuracy = 0.0
                if dev is not None and chosen:
                    labels = _labels(model, spaced(dev[0], self.tokenizer), self.names)
                    accuracy = sum(map(str.__eq__, labels, dev[1])) / len(labels)
                if accuracy > best:
                    best, self.model = accuracy, model
                    self.settings = {"epochs": epochs, "minn": lengths[0], "maxn": lengths[1]}
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return _labels(self.model, spaced(texts, self.tokenizer), self.names)

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        lines = list(map(_line, spaced(texts, self.tokenizer)))
        labels, shares = self.model.predict(lines, k=len(self.names))
        found = np.zeros((len(texts), len(self.names)))
        for row, (own, values) in enumerate(zip(labels, shares, strict=True)):
            found[row, [int(label.removeprefix(_PREFIX)) for label in own]] = values
        found += np.finfo(np.float32).tiny  # a text without words, or a share that rounds to 0
        return found / found.sum(axis=1, keepdims=True)


def _module() -> Any:
    """The package fasttext, or MissingExtraError."""
    try:
        import fasttext
    except ImportError:
        raise MissingExtraError("The baseline fasttext", "fasttext") from None
    return fasttext


def _train(fasttext: Any, file: Path, epochs: int, lengths: tuple[int, int], seed: int) -> Any:
    """A model, tried three times: now and then a fit meets NaN that ends well when repeated."""
    for _ in range(3):
        try:
            return fasttext.train_supervised(
                str(file),
                epoch=epochs,
                minn=lengths[0],
                maxn=lengths[1],
                label=_PREFIX,
                thread=1,
                seed=seed,
                verbose=0,
                **FIXED,
            )
        except (RuntimeError, ValueError) as error:
            reason = str(error)
    raise TrainingError(
        f"fastText with {epochs} epochs gave up three times ({reason}); expected it to end: leave "
        "the baseline fasttext out"
    )


def _line(text: str) -> str:
    """A text as fastText may read it: on one line, in lower case as for other baselines."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace(_PREFIX, " ")
    # This word is the line's end to fastText.
    return " ".join(word for word in text.lower().split() if word != "</s>")


def _labels(model: Any, texts: Sequence[str], names: Sequence[str]) -> list[str]:
    # A list at a time: for a single text some releases do not work with NumPy 2.
    predicted, _ = model.predict([_line(text) for text in texts])
    return [
        names[int(labels[0].removeprefix(_PREFIX))] if labels else names[0] for labels in predicted
    ]
