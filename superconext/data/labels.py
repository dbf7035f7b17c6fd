"""Suspicious labels: missing ones, spelling variants of one label, a repeated header.

One `LabelReader` follows the labels of a file from row to row. Rows without a label, and those in
which a file put together of several has its header again, are errors of the reader; words for a
missing label (`NaN`) and labels that differ in case or spaces alone are told with their lines. Both
are mended when asked.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from superconext.core.progress import WARNING
from superconext.data.file_format import Block, Votes
from superconext.data.lines import shown

#: How programs write that a value is missing, in lower case.
MISSING = frozenset(["nan", "null", "none", "nil", "na", "n/a", "nat", "<na>", "#n/a", "#na"])

#: Marks without a width that editors and keyboards leave around a word; two labels look alike then.
_MARKS = "".join(map(chr, (0xFEFF, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F))))

_ARABIC = str.maketrans(
    {
        **dict.fromkeys("أإآ", "ا"),
        "ى": "ي",
        **dict.fromkeys(map(chr, [0x640, *range(0x64B, 0x653)])),
    }
    | {chr(0x660 + digit): str(digit) for digit in range(10)}
)

#: Distinct labels that are followed, and lines that a message names.
_MOST, _NAMED = 10_000, 3


@dataclass
class Places:
    """How many rows, and the lines of the first of them."""

    count: int = 0
    lines: list[int] = field(default_factory=list)

    def add(self, line: int) -> None:
        self.count += 1
        if len(self.lines) < _NAMED:
            self.lines.append(line)

    def add_rows(self, label: str, count: int, labels: Sequence[str], lines: Sequence[int]) -> None:
        """Add the `count` rows that have the label."""
        if len(self.lines) < _NAMED:
            rows = (line for one, line in zip(labels, lines, strict=True) if one == label)
            self.lines += islice(rows, _NAMED - len(self.lines))
        self.count += count

    def __str__(self) -> str:
        more = f" and {self.count - len(self.lines)} more" * (self.count > len(self.lines))
        return f"line {', '.join(map(str, self.lines))}{more}"


class LabelReader:
    """Strips, folds and follows labels.

    Args:
        drop: whether rows without a label are left out, and with them those of `MISSING`.
        fold: whether labels that differ in case and spaces alone become one: that of `classes`, or
            the one in lower case.
        classes: labels that are known.

    Attributes:
        headers: rows in which the names of the columns stand again.
    """

    def __init__(self, drop: bool, fold: bool, classes: Iterable[str] = ()) -> None:
        self.drop, self.fold = drop, fold
        self.headers = Places()
        self._classes = {folded(name): name for name in classes}
        self._places: dict[str, Places] = {}
        self._stray = self._folded = self._dropped = 0

    def read(self, block: Block, columns: Mapping[str, Any] | None) -> Block:
        """The rows with their labels put right; "" is that of a row without one."""
        if block.votes:
            rows = zip(block.texts, block.votes, block.lines, strict=True)
            flat = [(text, label, line) for text, given, line in rows for _, label in given]
            right = iter(self._put_right(Block(*map(list, zip(*flat, strict=True))), columns))
            votes = [Votes([(who, next(right)) for who, _ in given]) for given in block.votes]
            if not self.drop:
                return Block(block.texts, [], block.lines, votes)
            found = Block(block.texts, [], block.lines, [v.given() for v in votes])
            kept = [row for row, given in enumerate(found.votes) if given or not votes[row]]
        else:
            found = Block(block.texts, self._put_right(block, columns), block.lines)
            if not self.drop or all(found.labels):
                return found
            kept = [row for row, label in enumerate(found.labels) if label]
        self._dropped += len(found) - len(kept)
        return Block(
            [found.texts[row] for row in kept],
            [found.labels[row] for row in kept if found.labels],
            [found.lines[row] for row in kept],
            [found.votes[row] for row in kept if found.votes],
        )

    def _put_right(self, block: Block, columns: Mapping[str, Any] | None) -> list[str]:
        """The label of each row; "" is that of a row without one."""
        labels = list(block.labels)
        names = _names(columns)
        if names is not None and any(label.strip() == names[1] for label in set(labels)):
            for row, line in enumerate(block.lines):
                if labels[row].strip() == names[1] and block.texts[row].strip() == names[0]:
                    self.headers.add(line)
                    labels[row] = ""
        # Once for each distinct label: a file has many rows and few labels.
        put_right = {}
        for label, count in Counter(labels).items():
            name = label.strip().strip(_MARKS).strip()
            self._stray += count * (name != label)
            if name in self._places or len(self._places) < _MOST:
                self._places.setdefault(name, Places()).add_rows(label, count, labels, block.lines)
            if self.drop and name.casefold() in MISSING:
                name = ""
            one = self._classes.get(folded(name), folded(name)) if self.fold else name
            self._folded += count * (one != name)
            put_right[label] = one
        return [put_right[label] for label in labels]

    def notes(self) -> list[str]:
        """What was done, and what a user must not miss; whole after the last row."""
        notes = []
        if self._stray:
            notes.append(f"stray spaces stripped from {_count(self._stray, 'label')}")
        if self._folded:
            notes.append(f"{_count(self._folded, 'label')} put in lower case and single spaces")
        if self._dropped:
            notes.append(f"{_count(self._dropped, 'row')} without a label left out")
        if not self.drop:
            notes += [
                f"{WARNING}the label {self._told(label)} is how a missing one is written: leave "
                "these rows out with --drop-unlabelled, if it is"
                for label in self._places
                if label.casefold() in MISSING
            ]
        alike: dict[str, list[str]] = {}
        for label in filter(None, self._places):
            alike.setdefault(folded(label), []).append(label)
        for labels in alike.values():
            if len(labels) > 1 and not self.fold:
                labels.sort(key=lambda label: -self._places[label].count)
                notes.append(
                    f"{WARNING}classes that differ in case, spaces, .0 or Arabic spelling alone: "
                    f"{', '.join(map(self._told, labels))}: make them one with --fold-label-case"
                )
        for label in self._places:
            parts = [part.strip() for part in re.split("[;,|/]", label)]
            if len(set(parts)) > 1 and self._places.keys() >= set(parts):
                notes.append(
                    f"{WARNING}the label {self._told(label)} is a class of its own, and not "
                    f"{' and '.join(shown(part, 24) for part in parts)}: keep one label for a text"
                )
        return notes

    def _told(self, label: str) -> str:
        places = self._places[label]
        return f"{shown(label, 24)} ({_count(places.count, 'row')}, {places})"


def folded(label: str) -> str:
    """A label in lower case and compatible characters, with single spaces; 1.0 as 1; in Arabic
    without hamza on alif, short vowels and tatweel, and with the digits 0 to 9."""
    plain = " ".join(unicodedata.normalize("NFKC", label).casefold().translate(_ARABIC).split())
    return re.sub(r"^(-?\d+)\.0+$", r"\1", plain)


def _names(columns: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """The names of text and label column, stripped; None where they have none."""
    if columns is None or not columns["header"] or columns["label"] is None:
        return None
    return str(columns["text"]).strip(), str(columns["label"]).strip()


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"
