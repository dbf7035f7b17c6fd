"""Linear classifiers of TF-IDF: logistic regression, SVM, and the pool of n-gram models.

Their features are sublinear TF-IDF of word 1-2-grams and character 2-5-grams. C is chosen as in
`superconext.probe.cross_validation.best_c`; where train has a class of one row, on dev, and with
fewer than `FEWEST_DEV_ROWS` dev rows it is a default.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from superconext.baselines.baseline import Baseline, Split, class_indices
from superconext.probe.base import FEWEST_DEV_ROWS, log_softmax, softmax
from superconext.probe.cross_validation import Loss, best_c, error_rate
from superconext.probe.ensemble import fit_weights, pooled
from superconext.probe.group_priors import out_of_fold
from superconext.probe.log_count_ratios import fit_log_count_ratios
from superconext.probe.tfidf import FoldRows, fit_tfidf_model, regression_probabilities, tfidf

#: C of the linear SVM; beyond 10 it fits every training row.
SVM_GRID: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


class TfidfLogisticRegression(Baseline):
    """Logistic regression; C has the lowest log loss in cross-validation within train, or on a
    large dev set."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> TfidfLogisticRegression:
        self.names, labels, dev_labels = class_indices(train, dev)
        self.model = fit_tfidf_model(train[0], labels, dev and dev[0], dev_labels, "log_loss")
        self.settings = {"C": self.model.c}
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [self.names[k] for k in self.model.decision(texts).argmax(axis=1)]

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        return self.model.probabilities(texts)

    def out_of_fold(self, train: Split, dev: Split | None, seed: int = 0) -> np.ndarray | None:
        """With the C that was chosen."""
        labels, fold_rows = class_indices(train, None)[1], FoldRows(train[0])

        def predict(fitted: np.ndarray, held: np.ndarray) -> np.ndarray:
            own, others = fold_rows(fitted, held)
            return regression_probabilities(own, labels[fitted], others, self.model.c)

        return out_of_fold(labels, predict)


class TfidfSvm(Baseline):
    """A linear support vector machine; C has the highest accuracy in cross-validation within
    train, or on a large dev set (it has no probabilities to take a log loss of)."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> TfidfSvm:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        self.features = tfidf()
        rows = self.features.fit_transform(train[0])
        _, labels, dev_labels = class_indices(train, dev)
        fold_rows = FoldRows(train[0])

        def errors(own: Any, own_labels: np.ndarray, held: Any, held_labels: np.ndarray) -> Loss:
            def loss(c: float) -> float:
                model = LinearSVC(C=c, dual="auto", random_state=0).fit(own, own_labels)
                return error_rate(model.predict(held), held_labels)

            return loss

        def of_fold(fitted: np.ndarray, held: np.ndarray) -> Loss:
            own, others = fold_rows(fitted, held)
            return errors(own, labels[fitted], others, labels[held])

        def of_dev() -> Loss:
            assert dev is not None and dev_labels is not None
            return errors(rows, labels, self.features.transform(dev[0]), dev_labels)

        few = dev is None or len(dev[1]) < FEWEST_DEV_ROWS
        chosen = best_c(SVM_GRID, labels, dev_labels, of_fold, of_dev, whole_grid=True)
        grid = (1.0,) if few else SVM_GRID
        models = [
            LinearSVC(C=c, dual="auto", random_state=0)
            for c in (grid if chosen is None else (chosen,))
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            for model in models:
                model.fit(rows, train[1])
        self.model = models[0]
        if dev is not None and len(models) > 1:
            dev_rows, truth = self.features.transform(dev[0]), np.array(dev[1])
            # The first of equals, that is the smallest C.
            self.model = max(models, key=lambda m: float((m.predict(dev_rows) == truth).mean()))
        self.settings = {"C": float(self.model.C)}
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [str(label) for label in self.model.predict(self.features.transform(texts))]


class NgramPool(Baseline):
    """The n-gram models of `encoder+ngrams` alone: TF-IDF and log-count ratios in a log-linear
    pool with weights fitted on dev."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> NgramPool:
        self.names, labels, dev_labels = class_indices(train, dev)
        rows = train[0], labels, dev and dev[0], dev_labels
        first, second = (
            fit(*rows, choice="log_loss") for fit in (fit_tfidf_model, fit_log_count_ratios)
        )
        self.models = first, second
        self.weights = np.full(2, 1 / 2)
        if dev is not None and dev_labels is not None:
            self.weights = fit_weights(self._logs(dev[0]), dev_labels)
        self.settings = {
            "tfidf_C": first.c,
            "ngrams_C": second.c,
            "pool_weights": self.weights.tolist(),
        }
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        scores = pooled(self._logs(texts), self.weights)
        return [self.names[k] for k in scores.argmax(axis=1)]

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        return softmax(pooled(self._logs(texts), self.weights))

    def _logs(self, texts: Sequence[str]) -> list[np.ndarray]:
        return [log_softmax(model.decision(texts)) for model in self.models]
