"""Which sentences of an unlabelled text say what a labelled text says?

What is learned from the texts a model is judged on flatters it, labels or not, and collections of
unlabelled text often hold them with another mark or quote at the end. So two texts are one here
if their words are: punctuation, emoji and placeholders count for nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from superconext.data.reading import read_texts
from superconext.text.rules import PLACEHOLDERS
from superconext.text.tokenize import Tokenizer


def wording(tokens: Iterable[str]) -> str:
    """The words among the tokens of a text, with blanks between."""
    return " ".join(
        token for token in tokens if token not in PLACEHOLDERS and any(map(str.isalnum, token))
    )


class LeftOut:
    """The wordings of labelled texts.

    Attributes:
        digest: a hash that stands for them.
        passed: how often `holds` said yes.
    """

    def __init__(self, texts: Iterable[str], tokenizer: Tokenizer) -> None:
        self._wordings = {wording(tokenizer(text)) for text in texts} - {""}
        listed = "\n".join(sorted(self._wordings)).encode("utf-8", "surrogatepass")
        self.digest = hashlib.sha256(listed).hexdigest() if self._wordings else ""
        self.passed = 0

    @classmethod
    def of_files(cls, paths: Sequence[str | Path], tokenizer: Tokenizer) -> LeftOut:
        """Those of all texts of labelled files. Raises DataError for one that cannot be read."""
        return cls((text for path in paths for text in read_texts(path).texts), tokenizer)

    def __len__(self) -> int:
        return len(self._wordings)

    def holds(self, tokens: Iterable[str]) -> bool:
        """Do these tokens say what one of the texts says?"""
        found = bool(self._wordings) and wording(tokens) in self._wordings
        self.passed += found
        return found
