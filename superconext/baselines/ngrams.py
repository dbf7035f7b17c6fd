"""What `encoder+ngrams` has beside the encoder, alone: two models of n-grams in one pool."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from superconext.baselines.baseline import Baseline, Split
from superconext.probe.log_count_ratios import fit_ratios
from superconext.probe.log_linear_pool import fit_weights, log_probabilities, pooled
from superconext.probe.tfidf import fit_lexical


def fit_ngrams(train: Split, dev: Split | None) -> Baseline:
    """TF-IDF and n-grams weighted by log-count ratios, pooled with weights chosen on dev."""
    started = time.perf_counter()
    names = sorted(set(train[1]))
    index = {name: k for k, name in enumerate(names)}
    labels = np.array([index[label] for label in train[1]])
    held = () if dev is None else (dev[0], np.array([index.get(label, -1) for label in dev[1]]))
    models = fit_lexical(train[0], labels, *held), fit_ratios(train[0], labels, *held)

    def logs(texts: Sequence[str]) -> list[np.ndarray]:
        return [log_probabilities(model.decision(texts)) for model in models]

    weights = np.full(len(models), 1 / len(models))
    if held:
        weights = fit_weights(logs(held[0]), held[1])

    def predict(texts: Sequence[str]) -> list[str]:
        return [names[k] for k in pooled(logs(texts), weights).argmax(axis=1)]

    chosen = {"tfidf_C": models[0].c, "ngrams_C": models[1].c, "pool_weights": weights.tolist()}
    return Baseline("ngrams", predict, chosen, time.perf_counter() - started)
