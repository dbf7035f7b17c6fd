"""Several annotators: how far they agree, and the label most of them gave.

Krippendorff's alpha for nominal labels (Krippendorff, 2004, chapter 11) counts, over all pairs of
labels that two annotators gave one text, how often they differ, against how often any two labels
would: alpha = 1 - observed / expected. The macro F1 of each annotator against each other, averaged,
is the score that a model of one of them could hope for: the human ceiling.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, permutations
from pathlib import Path

import numpy as np

from superconext.core.errors import DataError
from superconext.data.columns import resolve, usual
from superconext.data.file_format import RowFile, Wanted, open_rows
from superconext.data.formats import TableFormat
from superconext.data.lines import open_file

_ANNOTATOR = re.compile(r"(?:annotator|annotateur|rater|coder|votant|المعلق)[ _-]?\w{1,8}", re.I)


@dataclass(frozen=True)
class Annotated:
    """Texts and the labels that annotators gave them; "" where one gave none.

    texts: `[N]`. votes: `[N]` rows of one label for each of `annotators`.
    """

    texts: list[str]
    votes: list[list[str]]
    annotators: list[str]

    def majority(self) -> tuple[list[tuple[str, str]], list[int]]:
        """(label, text) of each text with one most frequent label, and the rows that have a tie.

        A text that nobody labelled is in neither.
        """
        rows, ties = [], []
        for row, (text, given) in enumerate(zip(self.texts, self.votes, strict=True)):
            counts = Counter(filter(None, given)).most_common(2)
            if len(counts) == 2 and counts[0][1] == counts[1][1]:
                ties.append(row)
            elif counts:
                rows.append((counts[0][0], text))
        return rows, ties


def read_annotated(path: str | Path, text_column: str | None = None) -> Annotated:
    """Read a table with a text column and either a column for each annotator (`annotator_1`, ...)
    or, a row for each label, the columns `annotator` and `label`.

    Raises DataError where there are no such columns, and for a row that is not whole.
    """
    file = RowFile(open_file(path, limited=True), Wanted())
    form = open_rows(file)
    if not isinstance(form, TableFormat):
        raise DataError(f"{file.name}: expected a table with a header: name it .csv or .tsv")
    records = [
        (line, cells)
        for lines, some in form.records()
        for line, cells in zip(lines, some, strict=True)
    ]
    _, header = records[0]
    spec = usual(header, text_column, "text")
    text = resolve(header, spec, "text", "--text-column", file.name)
    names = [cell.strip().casefold() for cell in header]
    for line, cells in records:
        if len(cells) != len(header):
            raise DataError(
                f"{file.name}, line {line}: found {len(cells)} columns, expected {len(header)}: "
                "complete the row or quote the cell"
            )
    wide = [place for place, name in enumerate(names) if _ANNOTATOR.fullmatch(name)]
    rows = [cells for _, cells in records[1:]]
    if len(wide) > 1:
        votes = [[cells[place].strip() for place in wide] for cells in rows]
        return Annotated([cells[text] for cells in rows], votes, [header[p] for p in wide])
    if "annotator" not in names:
        raise DataError(
            f"{file.name}: no columns of annotators, expected annotator_1 and annotator_2, or "
            "annotator and label: rename them"
        )
    who, label = names.index("annotator"), usual(header, None, "label")
    what = resolve(header, label, "label", "--label-column", file.name)
    people = list(dict.fromkeys(cells[who].strip() for cells in rows))
    texts: dict[str, list[str]] = {}
    for cells in rows:
        given = texts.setdefault(cells[text], [""] * len(people))
        given[people.index(cells[who].strip())] = cells[what].strip()
    return Annotated(list(texts), list(texts.values()), people)


def krippendorff_alpha(votes: Sequence[Sequence[str]]) -> float:
    """Alpha of nominal labels, "" for none; nan where no text has two, or all labels are one."""
    names = {name: k for k, name in enumerate(sorted(set(chain.from_iterable(votes)) - {""}))}
    pairs = np.zeros((len(names), len(names)))
    for given in votes:
        labels = [names[name] for name in given if name]
        for i, j in permutations(labels, 2):
            pairs[i, j] += 1 / (len(labels) - 1)
    totals, count = pairs.sum(axis=1), pairs.sum()
    expected = (count**2 - (totals**2).sum()) / (count - 1) if count > 1 else 0.0
    if not expected:
        return float("nan")
    return float(1 - (count - np.trace(pairs)) / expected)


def pairwise_f1(annotated: Annotated) -> list[tuple[str, str, int, float]]:
    """Two annotators, the texts both labelled, and the macro F1 of one against the other."""
    found = []
    for i, one in enumerate(annotated.annotators):
        for j in range(i + 1, len(annotated.annotators)):
            both = [(given[i], given[j]) for given in annotated.votes if given[i] and given[j]]
            if both:
                found.append((one, annotated.annotators[j], len(both), _macro_f1(both)))
    return found


def _macro_f1(pairs: Sequence[tuple[str, str]]) -> float:
    """Mean over the classes of 2 agreed / (given by one + given by the other); symmetric."""
    one, other = (Counter(side) for side in zip(*pairs, strict=True))
    agreed = Counter(a for a, b in pairs if a == b)
    return float(np.mean([2 * agreed[k] / (one[k] + other[k]) for k in sorted({*one, *other})]))
