"""Labelled rows as one object, `Dataset`, and the check that they can be trained on."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from superconext.core.errors import DataError
from superconext.data.duplicates import leaks
from superconext.data.lines import shown

if TYPE_CHECKING:
    from superconext.data.file_rows import TrainingRows
    from superconext.data.labels import Annotated


@dataclass(frozen=True)
class Dataset:
    """Labelled examples in the order of the file, in memory or on disk.

    Args:
        texts, labels: `[N]`; of a file larger than memory those of a sample of its rows.
        lines: 1-based line (Parquet: row) each example starts on.
        source: file name as given.
        sha256: of the file's bytes as they lie on disk.
        notes: what the reader decided.
        columns: `text`, `label` (names, or numbers from 1 without a header) and `header`.
        on_disk: all rows, tokenised and memory-mapped, where the file is larger than memory.
        annotated: what each annotator of the file said, where it tells.
        shares: of each row the share of each label among its annotators; empty where each has one
            label.
        ties: texts and such shares of what has no most frequent label, to train on softly.
        separator: between the cells of a .csv.
    """

    texts: list[str]
    labels: list[str]
    lines: Sequence[int] = ()
    source: str = ""
    sha256: str = ""
    notes: list[str] = dataclasses.field(default_factory=list)
    on_disk: TrainingRows | None = None
    columns: dict[str, Any] | None = None
    annotated: Annotated | None = None
    shares: Sequence[Mapping[str, float]] = ()
    ties: Sequence[tuple[str, Mapping[str, float]]] = ()
    separator: str = ","

    def __len__(self) -> int:
        """All rows, also those on disk alone."""
        return len(self.texts) if self.on_disk is None else len(self.on_disk)

    def class_counts(self) -> dict[str, int]:
        """Examples in each class, sorted by label."""
        if self.on_disk is None:
            return dict(sorted(Counter(self.labels).items()))
        return self.on_disk.class_counts()

    def repeats_of(self, texts: Sequence[str]) -> int:
        """How many of the texts are in this data set word for word."""
        if self.on_disk is None:
            return len(leaks(self.texts, texts))
        return self.on_disk.source.has(texts, self.on_disk.rows)

    def select(self, rows: Iterable[int]) -> Dataset:
        """The examples at the 0-based `rows`, in that order, from the same file; without ties."""
        picked = [int(row) for row in rows]
        return dataclasses.replace(
            self,
            texts=[self.texts[row] for row in picked],
            labels=[self.labels[row] for row in picked],
            lines=[self.lines[row] for row in picked],
            shares=[self.shares[row] for row in picked] if self.shares else (),
            ties=(),
        )


@dataclass(frozen=True)
class Texts:
    """Sentences without labels, in the order of the file; both lists have N items."""

    texts: list[str]
    lines: list[int]  # 1-based line (Parquet: row) each text starts on
    source: str
    notes: list[str]
    separator: str = ","

    def __len__(self) -> int:
        return len(self.texts)


def check_training(dataset: Dataset) -> list[str]:
    """Refuse a data set that no classifier can be trained on.

    Returns warnings of classes with a single row. Raises DataError where there are no examples or
    one class only.
    """
    return check_counts(
        dataset.class_counts(),
        dataset.source,
        lambda label: dataset.lines[dataset.labels.index(label)],
    )


def check_counts(
    counts: Mapping[str, int], source: str, line_of: Callable[[str], int]
) -> list[str]:
    """The same from the rows in each class; `line_of` tells a line on which a label stands."""
    if not counts:
        raise DataError(f"{source}: found no examples, expected two classes or more")
    if len(counts) == 1:
        (label, count) = next(iter(counts.items()))
        raise DataError(
            f"{source}: found one class only ({shown(label)}, {count} rows), expected two "
            "or more: add examples of another class, or check --label-column"
        )
    single = [label for label, count in counts.items() if count == 1]
    if not single:
        return []
    total = sum(counts.values())
    if 2 * len(single) > total >= 20:
        raise DataError(
            f"{source}: found {len(counts)} different labels in {total} rows, expected labels that "
            "repeat: check --label-column, or make ranges of numbers classes"
        )
    named = ", ".join(f"{shown(label)} (line {line_of(label)})" for label in single[:5])
    more = f" and {len(single) - 5} more" if len(single) > 5 else ""
    plural = "es" * (len(single) > 1)
    return [
        f"{source}: found {len(single)} class{plural} with a single row: {named}{more}; it is "
        "trained on and cannot be held out, so no score shows how well the model knows such a class"
    ]
