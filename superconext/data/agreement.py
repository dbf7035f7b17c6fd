"""Several annotators and several files: agreement, the label most gave, merging of two sets.

Krippendorff's alpha for nominal labels (Krippendorff, 2004, chapter 11) counts, over all pairs of
labels that two annotators gave one text, how often they differ, against how often any two labels
would: alpha = 1 - observed / expected. The macro F1 of each annotator against each other, averaged,
is the score that a model of one of them could hope for: the human ceiling.

In merging, texts are the same where they are but for white space, which files without quoting lose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, permutations
from typing import Any

import numpy as np

from superconext.data.dataset import Dataset
from superconext.data.file_format import Block, Votes
from superconext.data.labels import Places


@dataclass(frozen=True)
class Annotated:
    """Texts and the labels that annotators gave them; "" where one gave none.

    texts: `[N]`. votes: `[N]` rows of one label for each of `annotators`. lines: `[N]`, the first
    one that each text stands on. replaced: labels that their annotator gave anew further on.
    """

    texts: list[str]
    votes: list[list[str]]
    annotators: list[str]
    lines: Sequence[int] = ()
    replaced: int = 0

    @classmethod
    def of(
        cls, texts: Sequence[str], votes: Sequence[Votes], lines: Sequence[int], by_text: bool
    ) -> Annotated:
        """From the votes on each row; with `by_text` rows of one text belong together."""
        places: dict[object, int] = {}
        given: list[dict[str, str]] = []
        firsts: list[int] = []
        replaced = 0
        for row, (text, some) in enumerate(zip(texts, votes, strict=True)):
            at = places.setdefault(text if by_text else row, len(given))
            if at == len(given):
                given.append({})
                firsts.append(row)
            for who, label in some.given():
                replaced += who in given[at]
                given[at][who] = label
        people = list(dict.fromkeys(chain.from_iterable(given)))
        return cls(
            [texts[row] for row in firsts],
            [[labels.get(who, "") for who in people] for labels in given],
            people,
            [lines[row] for row in firsts],
            replaced,
        )

    @cached_property
    def labels(self) -> list[str | None]:
        """The most frequent label of each text `[N]`; None for a tie, "" where nobody gave one."""
        labels: list[str | None] = []
        for given in self.votes:
            first, second = [*Counter(filter(None, given)).most_common(2), ("", 0), ("", 0)][:2]
            labels.append(None if first[1] and first[1] == second[1] else first[0])
        return labels

    @property
    def several(self) -> bool:
        """Whether any text has labels of two annotators."""
        return any(sum(map(bool, given)) > 1 for given in self.votes)

    @property
    def decided(self) -> list[int]:
        """The texts with one most frequent label."""
        return [row for row, label in enumerate(self.labels) if label]

    @property
    def ties(self) -> list[int]:
        return [row for row, label in enumerate(self.labels) if label is None]

    def block(self) -> Block:
        """The texts with a most frequent label, as rows."""
        rows = self.decided
        return Block(
            [self.texts[row] for row in rows],
            [str(self.labels[row]) for row in rows],
            [self.lines[row] for row in rows],
        )

    def shares(self, rows: Sequence[int]) -> list[Mapping[str, float]]:
        """The share of each label among those that a text was given."""
        counts = [Counter(filter(None, self.votes[row])) for row in rows]
        return [{k: n / one.total() for k, n in sorted(one.items())} for one in counts]

    def tied(self) -> list[tuple[str, Mapping[str, float]]]:
        """The texts with a tie and the shares of their labels."""
        return [
            (self.texts[row], shares)
            for row, shares in zip(self.ties, self.shares(self.ties), strict=True)
        ]

    def notes(self) -> list[str]:
        """How rows were made of the votes, for the user."""
        ties, none = Places(), Places()
        for line, label in zip(self.lines, self.labels, strict=True):
            if not label:
                (none if label == "" else ties).add(line)
        told = [
            f"labels of {len(self.annotators)} annotators: {len(self.decided)} texts get the one "
            "that most gave"
        ]
        if ties.count:
            told.append(
                f"{ties.count} texts with a tie ({ties}) are not evaluated on; train learns "
                "from the shares of their labels, audit lists them, other commands leave them out"
            )
        if none.count:
            told.append(f"{none.count} texts that nobody labelled left out ({none})")
        if self.replaced:
            told.append(f"{self.replaced} labels that their annotator gave anew further on dropped")
        return told


def agreement_report(annotated: Annotated) -> dict[str, Any]:
    """Alpha, the macro F1 of each pair of annotators and their mean (None where no text has two
    labels), and how many texts have a most frequent label or a tie."""
    alpha, pairs = krippendorff_alpha(annotated.votes), pairwise_f1(annotated)
    columns = ("one", "other", "texts", "macro F1")
    return {
        "texts": len(annotated.texts),
        "annotators": len(annotated.annotators),
        "alpha": None if alpha != alpha else alpha,
        "pairs": [dict(zip(columns, pair, strict=True)) for pair in pairs],
        "human_ceiling": float(np.mean([pair[3] for pair in pairs])) if pairs else None,
        "majority": len(annotated.decided),
        "ties": len(annotated.ties),
    }


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


@dataclass
class Merged:
    """The rows of both sets, those of the old one first.

    rows: (label, text).
    conflicts: of each text with several labels its `text` and, for each label, where it stands
        (`old:line`, `new:line`) under `labels`.
    repeated: rows left out because their text stands before with the same label.
    replaced: rows left out because the other set decides.
    """

    rows: list[tuple[str, str]] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    repeated: int = 0
    replaced: int = 0


def merge(old: Dataset, new: Dataset, keep: str = "both") -> Merged:
    """One set of two.

    keep: which label a text has that is labelled otherwise in the other set: those of "both" (it
        stands once with each), of "old" or of "new".
    """
    labels: dict[str, dict[str, list[str]]] = {}
    sets: dict[str, set[str]] = {}
    for name, label, _, key, line in _rows_of(old, new):
        labels.setdefault(key, {}).setdefault(label, []).append(f"{name}:{line}")
        sets.setdefault(key, set()).add(name)
    merged = Merged()
    shown: set[str] = set()
    written: set[tuple[str, str]] = set()
    for name, label, text, key, _ in _rows_of(old, new):
        torn = len(labels[key]) > 1
        if torn and key not in shown:
            shown.add(key)
            merged.conflicts.append({"text": text, "labels": labels[key]})
        if torn and keep in sets[key] and name != keep:
            merged.replaced += 1
        elif (key, label) in written:
            merged.repeated += 1
        else:
            written.add((key, label))
            merged.rows.append((label, text))
    return merged


def _rows_of(old: Dataset, new: Dataset) -> Iterator[tuple[str, str, str, str, int]]:
    for name, part in (("old", old), ("new", new)):
        for row, (label, text) in enumerate(zip(part.labels, part.texts, strict=True)):
            line = part.lines[row] if len(part.lines) else row + 1
            yield name, label, text, " ".join(text.split()), line
