"""The labelled rows of a file of any size, in blocks and in constant memory: for training.

Formats, columns and rules are those of `corpus.read_labelled`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from superconext.core.errors import DataError
from superconext.data.columns import ColumnSpec
from superconext.data.formats import Wanted
from superconext.data.stream import TextStream

#: Characters of text in a block, about: enough that handing it to a process costs little.
BLOCK = 1 << 20


@dataclass(frozen=True)
class Block:
    """Some rows; the lists have the same length. lines: 1-based line each row starts on."""

    texts: list[str]
    labels: list[str]
    lines: list[int]


class LabelledStream(TextStream):
    """Iterate over `blocks()`; `notes` is whole after the last one.

    Args: as `read_labelled`.

    Raises DataError, one line with file and line number, at the first row that cannot be read.
    """

    def __init__(
        self, path: str | Path, text_column: ColumnSpec = None, label_column: ColumnSpec = None
    ) -> None:
        super().__init__(path, text_column)
        self.wanted = Wanted(text_column, label_column)
        self._labels: list[str] = []
        self._lines: list[int] = []
        self._stray = 0

    def blocks(self) -> Iterator[Block]:
        """The rows in the order of the file, about `BLOCK` characters at a time."""
        texts: list[str] = []
        size = 0
        for text in chain.from_iterable(self):
            texts.append(text)
            size += len(text)
            if size >= BLOCK:
                yield self._block(texts)
                texts, size = [], 0
        if texts:
            yield self._block(texts)
        if self._stray:
            plural = "s" if self._stray > 1 else ""
            self.notes.append(f"stray spaces stripped from {self._stray} label{plural}")

    def _block(self, texts: list[str]) -> Block:
        # Rows come out in the order in which `example` saw them.
        count = len(texts)
        block = Block(texts, self._labels[:count], self._lines[:count])
        del self._labels[:count], self._lines[:count]
        return block

    def example(self, text: str, label: str | None, number: int) -> str:
        """The text of a row, its label kept aside. Raises DataError where either is empty."""
        text = super().example(text, label, number)
        kept = (label or "").strip()
        if not kept:
            raise DataError(
                f"{self.name}, line {number}: found an empty label, expected a label in every "
                "row: label it or remove it"
            )
        self._stray += kept != label
        self._labels.append(kept)
        self._lines.append(number)
        return text
