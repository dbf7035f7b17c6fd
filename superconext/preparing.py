"""Everything before training: text to token ids, words to vectors, labels to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.config import Config
from superconext.data.token_store import TokenStore, build_store
from superconext.errors import DataError
from superconext.initial import initial_vectors
from superconext.model import store_with_newcomers
from superconext.text.ngrams import NgramVocabulary, WordNgrams
from superconext.text.normalize import Normalizer, choose_profile
from superconext.text.tokenize import Tokenizer
from superconext.text.vocabulary import Vocabulary
from superconext.training.progress import Progress
from superconext.vectors.table import WordVectors

Rows = tuple[Sequence[str], Sequence[str]]


@dataclass(frozen=True)
class Prepared:
    """What all members of a run share.

    table: initial vectors of the vocabulary float32 `[V, e]`; reserve: of other words.
    train, labels: token ids and class indices of the training rows.
    dev, dev_labels: the same of the dev rows with a known label, or None.
    facts: profile, vocabulary size, vector source, dev words unknown to the vocabulary.
    """

    classes: list[str]
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    ngrams: NgramVocabulary | None
    word_ngrams: WordNgrams | None
    table: np.ndarray
    reserve: WordVectors
    train: TokenStore
    labels: np.ndarray
    dev: TokenStore | None
    dev_labels: np.ndarray | None
    facts: dict[str, Any]


def prepare(
    train: Rows, dev: Rows | None, classes: Sequence[str], config: Config, progress: Progress
) -> Prepared:
    """Build vocabulary, vectors and stores from (texts, labels).

    Raises DataError for fewer than two classes and for dev rows without a known label.
    """
    texts, labels = train
    if len(classes) < 2:
        raise DataError(
            f"found {len(classes)} class in {len(labels)} training rows; expected at least two: "
            "add rows with another label"
        )
    tokenizer = make_tokenizer(config, texts)
    tokens = [tokenizer(text) for text in texts]
    vocabulary = Vocabulary.build(tokens, min_count=config.min_count)
    ngrams = NgramVocabulary.build(vocabulary.words[2:]) if config.subwords else None
    initial = initial_vectors(config, vocabulary, tokens, tokenizer, progress)

    index = {name: k for k, name in enumerate(classes)}
    assert tokenizer.normalizer is not None
    facts: dict[str, Any] = {
        "profile": tokenizer.normalizer.profile,
        "words": len(vocabulary),
        **initial.facts,
    }
    dev_store, dev_labels = None, None
    if dev is not None and len(dev[0]):
        # Rows of a class that training never sees cannot help to choose anything.
        rows = [i for i, label in enumerate(dev[1]) if label in index]
        if not rows:
            raise DataError(
                f"no dev row has a label of the training data; found {sorted(set(dev[1]))[:5]}, "
                f"expected some of {list(classes)[:5]}"
            )
        dev_tokens = [tokenizer(dev[0][i]) for i in rows]
        dev_store = store_with_newcomers(
            dev_tokens, vocabulary, initial.reserve, ngrams, config.max_length
        )
        dev_labels = np.array([index[dev[1][i]] for i in rows])
        facts["dev_unknown"] = vocabulary.oov_report(dev_tokens)
        progress.say(_unknown_words(facts))
    return Prepared(
        classes=list(classes),
        tokenizer=tokenizer,
        vocabulary=vocabulary,
        ngrams=ngrams,
        word_ngrams=ngrams.encode(vocabulary.words) if ngrams else None,
        table=initial.table,
        reserve=initial.reserve,
        train=build_store([vocabulary.encode(row) for row in tokens], config.max_length),
        labels=np.array([index[label] for label in labels]),
        dev=dev_store,
        dev_labels=dev_labels,
        facts=facts,
    )


def make_tokenizer(config: Config, texts: Sequence[str]) -> Tokenizer:
    """The tokenizer of a configuration; profile `auto` is decided on the training texts."""
    profile = choose_profile(texts) if config.normalize == "auto" else config.normalize
    return Tokenizer(
        Normalizer(profile, _names(config.enable_rules), _names(config.disable_rules)),
        config.bridge,
    )


def _names(listed: str | None) -> list[str]:
    return [name.strip() for name in (listed or "").split(",") if name.strip()]


def _unknown_words(facts: dict[str, Any]) -> str:
    """A line on how much of dev the training vocabulary and the vectors lack."""
    report, vectors = facts["dev_unknown"], facts["vectors"]
    return (
        f"text: profile {facts['profile']}, {facts['words']} words; "
        f"{report['oov_token_share']:.1%} of dev tokens ({report['oov_type_share']:.1%} of its "
        f"words) are not among them\n"
        f"vectors: {vectors['name']}, {vectors['dimension']} dimensions, for "
        f"{vectors['coverage']:.1%} of the words"
    )
