"""What do word vectors, and unlabelled text, already hold of labelled texts?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from superconext.data.duplicates import wording
from superconext.text.normalize import Normalizer, choose_profile
from superconext.text.tokenize import Tokenizer
from superconext.vectors.coverage import count_words, coverage
from superconext.vectors.readers import read_vectors
from superconext.vectors.text_corpus import Lines, recorded_tokenizer

Texts = Mapping[str, Sequence[str]]


def coverage_of(parts: Texts, source: str, profile: str) -> tuple[list[dict[str, Any]], list[str]]:
    """How much of each part the vectors know, spelt as the vectors' own tokenizer does.

    Also gives notes on the vectors. Raises VectorsError where they cannot be read.
    """
    tokenizer = recorded_tokenizer(source) or _tokenizer(parts, profile)
    counts = {name: count_words(map(tokenizer, texts)) for name, texts in parts.items()}
    held = read_vectors(source, keep=set(chain.from_iterable(counts.values())))
    found = [
        {"file": name, "profile": tokenizer.normalizer.profile, **coverage(held, words)}
        for name, words in counts.items()
    ]
    return found, held.notes


def said_in(parts: Texts, unlabelled: str, profile: str) -> list[dict[str, Any]]:
    """Of each part how many texts a line of the unlabelled text says too, in the same words.

    Only texts with a word count. Raises DataError where the file cannot be read.
    """
    tokenizer = _tokenizer(parts, profile)
    words = {name: [wording(tokenizer(text)) for text in texts] for name, texts in parts.items()}
    ours = set(chain.from_iterable(words.values())) - {""}
    said = ours.intersection(wording(tokenizer(line)) for line in Lines([unlabelled]))
    return [
        {"part": name, "texts": len(own), "said": sum(one in said for one in own)}
        for name, own in words.items()
    ]


def _tokenizer(parts: Texts, profile: str) -> Tokenizer:
    if profile == "auto":
        profile = choose_profile(chain.from_iterable(parts.values()))
    return Tokenizer(Normalizer(profile))
