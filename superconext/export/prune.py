"""A smaller model for export: without vectors that serve no word, or without rare words.

A model holds no sentence of its training text, but every word of it that was seen
`min_count` times, once by default. `without_rare_words` takes such words, names among them, out
of a finished model; it then reads them as it reads other words it has never seen, composed of
n-grams where it can.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from superconext.core.errors import ConfigError
from superconext.fitting.model import Model


@dataclass(frozen=True)
class PruneReport:
    """What was left out, and what that costs.

    words, buckets: rows (before, after). accuracy_before, accuracy_after: on the labelled `rows`;
    accuracy_loss: a fraction, below 0 where the smaller model does better. labels_changed: how
    many of their labels are another now.
    """

    rows: int
    words: tuple[int, int]
    buckets: tuple[int, int]
    accuracy_before: float
    accuracy_after: float
    accuracy_loss: float
    labels_changed: int


def prune(
    model: Model,
    texts: Sequence[str],
    labels: Sequence[str],
    expected: Sequence[str] | None = None,
    whole: Model | None = None,
) -> tuple[Model, PruneReport]:
    """A model with the rows that serve, and what it lost on the labelled rows `[N]` that are given.

    expected: texts such as the model will read; of words outside the training text only theirs are
    kept. None keeps all. whole: what the small model is compared with, where that is not `model`.
    """
    small = replace(model, indexer=model.indexer.pruned(expected))
    compared = (whole or model, small)
    sizes = [one.indexer.sizes() for one in compared]
    before, after = (np.array(one.predict(texts)) for one in compared)
    truth = np.array(labels)
    scores = [float((predicted == truth).mean()) for predicted in (before, after)]
    report = PruneReport(
        rows=len(truth),
        words=(sizes[0].get("words", 0), sizes[1].get("words", 0)),
        buckets=(sizes[0].get("buckets", 0), sizes[1].get("buckets", 0)),
        accuracy_before=scores[0],
        accuracy_after=scores[1],
        accuracy_loss=scores[0] - scores[1],
        labels_changed=int((before != after).sum()),
    )
    return small, report


def without_rare_words(model: Model, min_count: int) -> tuple[Model, int]:
    """A model without the words seen fewer times in training, and how many those were.

    Left out are their rows, the rows of n-grams that no other word has and, where the word
    vectors were trained by the run, all words beside the training text: how often those were
    seen is not known. What is kept are hashed n-grams, which spell no word.

    Raises ConfigError for a model that predicts with TF-IDF, which is made of pairs of words.
    """
    if model.ensemble is not None:
        raise ConfigError(
            "found a run with TF-IDF, whose pairs of words cannot be left out; expected one of "
            "the encoder alone for --vocabulary-min-count: train with --probe-features encoder"
        )
    public = model.config.vectors is not None
    indexer, rows, dropped = model.indexer.without_rare_words(min_count, public)
    encoders = [encoder.with_rows(rows) for encoder in model.encoders]
    return replace(model, indexer=indexer, encoders=encoders), dropped


def without_examples(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest without the words that it shows of each split, and without the command."""
    text = manifest.get("text")
    shown = {key: value for key, value in manifest.items() if key != "command"}
    if isinstance(text, Mapping):
        shown["text"] = _without_words(text)
    return shown


def _without_words(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {k: _without_words(v) for k, v in value.items() if k != "frequent_oov"}
