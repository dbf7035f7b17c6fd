"""How are rare words, such as names, kept out of a model that is given away?

A run folder holds no sentence of its training text, but every word of it that was seen
`min_count` times, once by default. Here such words are taken out of a finished model; it
then reads them as it reads other words it has never seen, composed of n-grams where it can.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.core.errors import ConfigError
from superconext.text.ngrams import NgramVocabulary
from superconext.text.vocabulary import Vocabulary
from superconext.vectors.table import WordVectors

if TYPE_CHECKING:
    from superconext.encoders.base import Encoder
    from superconext.fitting.model import Model


def without_rare_words(model: Model, min_count: int) -> tuple[Model, int]:
    """A model without the words seen fewer times in training, and how many those were.

    Left out are their rows, the rows of n-grams that no other word has and, where the word
    vectors were trained on the spot, all words beside the training text: how often those were
    seen is not known. What is kept are hashed n-grams, which spell no word.

    Raises ConfigError for a model with TF-IDF beside it, which is made of pairs of words.
    """
    if model.ensemble is not None:
        raise ConfigError(
            "found a run with TF-IDF, whose pairs of words cannot be left out; expected one of "
            "the encoder alone for --vocabulary-min-count: train with --probe-features encoder"
        )
    words, counts = model.vocabulary.words, np.array(model.vocabulary.counts)
    kept = np.flatnonzero(counts >= min_count)
    kept = np.concatenate([[0, 1], kept[kept > 1]])  # padding and the unknown word stay
    dropped = len(words) - len(kept)
    unknown = int(counts.sum() - counts[kept[2:]].sum())
    vocabulary = Vocabulary(
        [words[row] for row in kept[2:]], [int(counts[row]) for row in kept[2:]], unknown
    )
    ngrams, rows = model.ngrams, None
    if ngrams is not None:
        common = set(
            NgramVocabulary.build(vocabulary.words[2:], ngrams.shortest, ngrams.longest).ngrams
        )
        rows = np.array([i for i, ngram in enumerate(ngrams.ngrams) if ngram in common], dtype=int)
        ngrams = NgramVocabulary(
            [ngrams.ngrams[row] for row in rows], ngrams.shortest, ngrams.longest
        )
    reserve = model.reserve
    if model.config.vectors is None:
        reserve = WordVectors(
            [], reserve.matrix[:0], reserve.subwords, name=reserve.name, sha256=reserve.sha256
        )
    encoders = [_with_rows(encoder, kept, rows) for encoder in model.encoders]
    small = replace(model, vocabulary=vocabulary, ngrams=ngrams, reserve=reserve, encoders=encoders)
    return small, dropped


def without_examples(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest without the words that it shows of each split, and without the command."""
    text = manifest.get("text")
    told = {key: value for key, value in manifest.items() if key != "command"}
    if isinstance(text, Mapping):
        told["text"] = _without_words(text)
    return told


def _without_words(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    return {k: _without_words(v) for k, v in value.items() if k != "frequent_oov"}


def _with_rows(encoder: Encoder, words: np.ndarray, ngrams: np.ndarray | None) -> Encoder:
    """A copy of the encoder with some rows of its tables."""
    import torch
    from torch import nn

    made = copy.deepcopy(encoder)
    embedding: Any = made.embedding
    for name, rows in (("words", words), ("ngrams", ngrams)):
        if rows is not None:
            whole = getattr(embedding, name)
            part = whole.detach()[torch.from_numpy(rows)]
            setattr(embedding, name, nn.Parameter(part, requires_grad=whole.requires_grad))
    return made
