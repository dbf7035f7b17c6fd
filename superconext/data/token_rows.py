"""Tokenised training rows: one interface, in memory or read from the disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from superconext.data.token_store import TokenStore, build_store
from superconext.text.tokenize import Tokenizer
from superconext.text.vocabulary import Vocabulary


class TokenRows(Protocol):
    """The tokens of N training rows. `data.file_rows.TrainingRows` are those of a large file."""

    @property
    def tokenizer(self) -> Tokenizer:
        """What made the tokens."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Sequence[str]]:
        """The tokens of each row."""

    def vocabulary(self, min_count: int) -> Vocabulary:
        """The words seen `min_count` times or more."""

    def store(self, vocabulary: Vocabulary, min_count: int, max_length: int) -> TokenStore:
        """Token ids `[N]` under the vocabulary that these rows have at `min_count`."""


class MemoryRows(list[list[str]]):
    """Token rows in memory: a list of the tokens of each row."""

    def __init__(self, tokenizer: Tokenizer, tokens: Iterable[list[str]]) -> None:
        super().__init__(tokens)
        self.tokenizer = tokenizer

    def vocabulary(self, min_count: int) -> Vocabulary:
        return Vocabulary.build(self, min_count=min_count)

    def store(self, vocabulary: Vocabulary, min_count: int, max_length: int) -> TokenStore:
        return build_store([vocabulary.encode(row) for row in self], max_length)
