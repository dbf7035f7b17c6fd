"""How are rare words, such as names, kept out of a model that is given away?

A run folder holds no sentence of its training text, but every word of it that was seen
`min_count` times, once by default. Here such words are taken out of a finished model; it
then reads them as it reads other words it has never seen, composed of n-grams where it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from superconext.core.errors import ConfigError

if TYPE_CHECKING:
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
    public = model.config.vectors is not None
    indexer, rows, dropped = model.indexer.without_rare_words(min_count, public)
    encoders = [encoder.with_rows(rows) for encoder in model.encoders]
    return replace(model, indexer=indexer, encoders=encoders), dropped


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
