"""Labels: suspicious ones, several annotators' and how far they agree, merging of two sets.

One `LabelReader` follows the labels of a file from row to row. Rows without a text or label, and
those in which a file put together of several has its header again, are errors of the reader; words
for a missing label (`NaN`) and labels that differ in case or spaces alone are told with their
lines. Both are repaired on request.

Krippendorff's alpha for nominal labels (Krippendorff, 2004, chapter 11) counts, over all pairs of
labels that two annotators gave one text, how often they differ, against how often any two labels
would: alpha = 1 - observed / expected. The macro F1 of each annotator against each other, averaged,
is the score that a model of one of them could hope for: the human ceiling.

In merging, texts are the same by `duplicates.text_keys`, and where they are but for white space,
which files without quoting lose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, permutations
from typing import Any

import numpy as np

from superconext.core.blank import MARKS, bare
from superconext.core.errors import DataError, listed, plural
from superconext.core.progress import WARNING
from superconext.data.columns import is_annotator
from superconext.data.dataset import ALIKE, Dataset, folded
from superconext.data.duplicates import text_keys
from superconext.data.file_format import Block, Votes
from superconext.data.lines import shown
from superconext.text.mojibake import damage_of, is_garbled

#: How programs write that a value is missing, in lower case.
MISSING = frozenset(
    {"nan", "null", "none", "nil", "na", "n/a", "nat", "<na>", "#n/a", "#na", "?", "??"}
    | {"unlabelled", "unlabeled", "no label", "todo", "to do", "tbd"}
)

#: Signs that may stand for a missing label, where there is no class of `_SIGNS`.
_DASHES = ("-", "--", "\u2013", "\u2014", "_", ".", "..", "...", "\u2026")
_SIGNS = frozenset("+,!")

#: Numbers that stand for a missing one beside small whole numbers, and -1 beside 1 and 2.
_CODES = frozenset({"-9", "99", "-99", "999", "-999", "9999", "-9999"})
_SMALL = re.compile(r"-?\d")

#: Marks that are taken out of a label; those that join letters may be part of its spelling.
_INSIDE = dict.fromkeys(map(ord, {*MARKS} - {"\u200c", "\u200d"}))

#: A number with a decimal comma, which may stand where others have a point.
_DECIMAL = re.compile(r"[+-]?\d+,\d+")

#: What a line is called, by whether there is a file.
_WORDS = ("position", "line")

#: Distinct labels that are followed, and lines that a message names.
_MOST, _NAMED = 10_000, 3


@dataclass
class Places:
    """How many rows, and the lines of the first of them; `word` is what a line is called."""

    count: int = 0
    lines: list[int] = field(default_factory=list)
    word: str = "line"

    def add(self, line: int) -> None:
        self.count += 1
        if len(self.lines) < _NAMED:
            self.lines.append(line)

    def __str__(self) -> str:
        more = f" and {self.count - len(self.lines)} more" * (self.count > len(self.lines))
        word = self.word + "s" * (self.count != 1)
        return f"{word} {', '.join(map(str, self.lines))}{more}"


class LabelReader:
    """Strips, folds and follows labels.

    Args:
        drop: whether rows without a text or label are left out, and with them those of `MISSING`
            which `classes` does not have.
        fold: whether labels that differ in case and spaces alone become one: that of `classes`, or
            the one in lower case.
        classes: labels that are known.
        as_trained: whether labels are folded because those of a run were.
        of_file: whether they are of a file: else they stay as they are, and notes name no options
            and call a line a position.

    Attributes:
        headers: rows in which the names of the columns stand again.
        unlabelled: texts of the rows that were left out because they have no label, where somebody
            has put a list there; of a stream they would fill the memory.
    """

    def __init__(
        self,
        drop: bool,
        fold: bool,
        classes: Iterable[str] = (),
        as_trained: bool = False,
        of_file: bool = True,
    ) -> None:
        self.drop, self.fold, self.as_trained, self.of_file = drop, fold, as_trained, of_file
        self.headers = Places()
        self.unlabelled: list[str] | None = None
        self._trained = frozenset(classes)
        self._classes = {folded(name): name for name in self._trained}
        self._places: dict[str, Places] = {}
        self._stray = self._marked = self._folded = self._dropped = self._textless = 0
        self._respelt: dict[str, str] = {}

    def read(self, block: Block, columns: Mapping[str, Any] | None) -> Block:
        """The rows with their labels corrected; "" is that of a row without one."""
        if block.votes:
            three = zip(block.texts, block.votes, block.lines, strict=True)
            flat = [(text, label, line) for text, given, line in three for _, label in given]
            right = iter(self._put_right(Block(*map(list, zip(*flat, strict=True))), columns))
            votes = [Votes([(who, next(right)) for who, _ in given]) for given in block.votes]
            kept = [v.given() if self.drop else v for v in votes]
            found = Block(block.texts, [], block.lines, kept)
            labelled = [bool(left or not given) for left, given in zip(kept, votes, strict=True)]
        else:
            found = Block(block.texts, self._put_right(block, columns), block.lines)
            labelled = list(map(bool, found.labels))
        if not self.drop:
            return found
        rows = [row for row, there in enumerate(labelled) if there and found.texts[row].strip()]
        if self.unlabelled is not None:
            name = heading(columns)
            self.unlabelled += [
                text
                for text, there in zip(found.texts, labelled, strict=True)
                if not there and bare(text).casefold() not in ("", name)
            ]
        self._dropped += labelled.count(False)
        self._textless += labelled.count(True) - len(rows)
        return found if len(rows) == len(found) else found.at(rows)

    def _put_right(self, block: Block, columns: Mapping[str, Any] | None) -> list[str]:
        """The label of each row; "" is that of a row without one."""
        labels = list(block.labels)
        names = _names(columns)
        heads = {label for label in set(labels) if names and bare(label).casefold() == names[1]}
        if names is not None and heads:
            for row, line in enumerate(block.lines):
                if labels[row] in heads and bare(block.texts[row]).casefold() == names[0]:
                    self.headers.add(line)
                    labels[row] = ""
        # Once for each distinct label: a file has many rows and few labels.
        put_right = {}
        rare: dict[str, Places] = {}  # by label, those with too few lines as yet
        for label, count in Counter(labels).items():
            around = label.strip().strip(MARKS).strip() if self.of_file else label
            name = around.translate(_INSIDE).strip() if self.of_file else label
            self._stray += count * (around != label)
            self._marked += count * (name != around)
            if name in self._places or len(self._places) < _MOST:
                places = self._places.setdefault(name, Places(word=_WORDS[self.of_file]))
                places.count += count
                if len(places.lines) < _NAMED:
                    rare[label] = places
            if self.drop and self._is_missing(name):
                name = ""
            one = self._classes.get(folded(name), folded(name)) if self.fold else name
            self._folded += count * (one != name)
            if one != name and len(self._respelt) < _NAMED:
                self._respelt[name] = one
            put_right[label] = one
        for label, line in zip(labels, block.lines, strict=True) if rare else ():
            if label in rare and len(rare[label].lines) < _NAMED:
                rare[label].lines.append(line)
        return [put_right[label] for label in labels]

    def _is_missing(self, label: str) -> bool:
        """Whether a label is a word for none, and not a class that is known."""
        known = label in self._trained or (self.fold and folded(label) in self._classes)
        return label.casefold() in MISSING and not known

    def notes(self) -> list[str]:
        """What was done, and what a user must not miss; whole after the last row."""
        notes = []
        leave = "leave these rows out"
        if self._stray:
            notes.append(f"stray spaces stripped from {plural(self._stray, 'label')}")
        if self._marked:
            notes.append(f"invisible marks removed from inside {plural(self._marked, 'label')}")
        if self._folded:
            such = ", ".join(f"{shown(a, 24)} to {shown(b, 24)}" for a, b in self._respelt.items())
            told = f"{plural(self._folded, 'label')} put in one spelling ({such})"
            notes.append(told + ", as those of the run were" * self.as_trained)
        if self._dropped:
            notes.append(f"{plural(self._dropped, 'row')} without a label left out")
        if self._textless:
            notes.append(f"{plural(self._textless, 'row')} without a text left out")
        if not self.drop:
            notes += [
                f"{WARNING}the label {self._told(label)} is how a missing one is written: {leave}"
                f"{' with --drop-incomplete' * self.of_file}, if it is"
                for label in self._places
                if self._is_missing(label)
            ]
        quoted = [name for name in self._places if len(name) > 2 and name[0] == name[-1] == '"']
        if quoted and len(quoted) == len(self._places):
            notes.append(
                f"{WARNING}the quotes around {self._told(quoted[0])} and all other labels are part "
                "of them: save the file as .csv, without spaces around cells, if they should not be"
            )
        dashes = _DASHES if _SIGNS.isdisjoint(self._places) else ()
        notes += [
            f"{WARNING}the label {self._told(label)} is a class; if it stands for a missing "
            f"one, {'empty its cells and use --drop-incomplete' if self.of_file else leave}"
            for label in (*filter(self._places.__contains__, dashes), *self._codes())
        ]
        if garbled := [*filter(_is_damaged, self._places)]:
            verb = "label {} is" if len(garbled) == 1 else "labels {} are"
            named = " and ".join(map(self._told, garbled[:_NAMED]))
            named += f" and {len(garbled) - _NAMED} more" * (len(garbled) > _NAMED)
            notes.append(
                f"{WARNING}the {verb.format(named)} garbled by a wrong encoding: "
                f"{'save the file again' if self.of_file else 'read the labels'} as UTF-8"
            )
        alike: dict[str, list[str]] = {}
        for label in filter(None, self._places):
            alike.setdefault(folded(label), []).append(label)
        for labels in alike.values():
            if len(labels) > 1 and not self.fold:
                labels.sort(key=lambda label: -self._places[label].count)
                notes.append(
                    f"{WARNING}{ALIKE}: {', '.join(map(self._told, labels))}: make them one"
                    + (" with --fold-label-case" if self.of_file else ", if they are")
                )
        ratings = self._ratings()
        notes += [
            f"{WARNING}the rating {self._told(label)} is another class than "
            f"{shown(_parts(label)[0], 24)}: write them alike if they are one"
            for label in ratings
            if _parts(label)[0] in self._places
        ]
        joined = [label for label in self._places if label not in ratings and self._joins(label)]
        if several := self._compound() or joined[: len(joined) if len(joined) > 2 else 0]:
            return [
                *notes,
                f"{WARNING}labels such as {' and '.join(map(self._told, several[:2]))} are classes "
                "of their own, and not several labels of a text: keep one label for a text",
            ]
        for label in joined:
            names = [shown(part, 24) for part in dict.fromkeys(_parts(label))]
            mend = f"and not {' and '.join(names)}: keep one label for a text"
            if len(names) == 1:
                mend = f"and not {names[0]}: write it once"
            notes.append(f"{WARNING}the label {self._told(label)} is a class of its own, {mend}")
        return notes

    def _joins(self, label: str) -> bool:
        """Whether a label seems to be several in one: one of its parts is a class by itself, or all
        are the same; between blanks, all are classes."""
        parts = _parts(label)
        if (
            len(parts) < 2
            or not all(parts)
            or _DECIMAL.fullmatch(label)
            or label.casefold() in MISSING
        ):
            return False
        known = self._places.keys() & {*parts}
        if " ".join(parts) == label:
            return len({*parts}) > 1 and len(known) == len({*parts})
        return bool(known) or (len({*parts}) == 1 and not parts[0].isdigit())

    def _compound(self) -> list[str]:
        """Labels that seem to be several of fewer ones, with a bar, semicolon or comma between."""
        for mark in "|;,":
            found = [one for one in self._places if mark in one and not _DECIMAL.fullmatch(one)]
            parts = [part.strip() for label in found for part in set(label.split(mark))]
            counts = Counter(parts)
            if len(found) > 2 and len(counts) <= len(found) and min(counts.values()) > 1:
                return found
        return []

    def _ratings(self) -> list[str]:
        """Labels such as 1/5 and 2/5: a number, a slash and one same number for all."""
        ratings = [re.fullmatch(r"\d+(?:[.,]\d+)?\s*/\s*(\d+)", name) for name in self._places]
        found = {match[0]: match[1] for match in ratings if match}
        return [*found] if len(found) > 1 and len({*found.values()}) == 1 else []

    def _codes(self) -> list[str]:
        """Numbers by which a missing label is coded, where all others are single digits."""
        codes = [label for label in self._places if label in _CODES]
        digits = self._places.keys() - {*codes}
        if "-1" in digits and {"1", "2"} <= digits and "-2" not in digits:
            codes.append("-1")
        return codes if len(digits) > 1 and all(map(_SMALL.fullmatch, digits)) else []

    def _told(self, label: str) -> str:
        places = self._places[label]
        return f"{shown(label, 24)} ({plural(places.count, 'row')}, {places})"


def _parts(label: str) -> list[str]:
    """What may be several labels in one: what marks part (doccano: #), or blanks where there are
    none; of a list in brackets (Label Studio: as its choices), without quotes."""
    listed = re.fullmatch(r'(?:\{"choices":\s*)?[\[({](.*?)[\])}]\}?', label)
    parts = re.split("[;,|/#]", listed[1] if listed else label)
    if len(parts) == 1 and not listed:
        words = label.split()
        return words if 1 < len(words) < 4 else parts
    return [part.strip().strip("'\"").strip() for part in parts]


def _is_damaged(label: str) -> bool:
    """Whether a label has letters of another encoding, or question marks in place of all."""
    return is_garbled(label) or bool(damage_of(label) or re.fullmatch(r"(?=.{3})[? ]+", label))


def heading(columns: Mapping[str, Any] | None, which: str = "text") -> str:
    """The name of a column, as a header that stands again may have it: stripped, in lower case."""
    return bare(str((columns or {}).get(which))).casefold()


def _names(columns: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """The names of text and label column; None where they have none."""
    if columns is None or not columns["header"] or columns["label"] is None:
        return None
    return heading(columns), heading(columns, "label")


@dataclass(frozen=True)
class Annotated:
    """Texts and the labels that annotators gave them; "" where one gave none.

    texts: `[N]`. votes: `[N]` rows of one label for each of `annotators`. lines: `[N]`, the first
    one that each text stands on. replaced: labels that their annotator changed further on.
    doubts: warnings of them.
    """

    texts: list[str]
    votes: list[list[str]]
    annotators: list[str]
    lines: Sequence[int] = ()
    replaced: int = 0
    doubts: list[str] = field(default_factory=list)

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

    def refuse_class_columns(self, source: str) -> None:
        """Warn of votes that are 0 and 1 alone, as columns of one class each have them. Raises
        DataError where each of ten texts or more has a 1 in one column."""
        marks = [[*map(str.strip, given)] for given in self.votes]
        if any(map(is_annotator, self.annotators)) or {*chain(*marks)} != {"0", "1"}:
            return
        found = f"columns {listed(self.annotators)} have 0 and 1 alone"
        if len(marks) > 9 and all(given.count("1") == 1 for given in marks):
            raise DataError(
                f"{source}: {found}, and one 1 in each row: they are classes, not annotators' "
                "labels; expected one column with the name of the class: make one"
            )
        self.doubts.append(
            f"{WARNING}{found}: if they are classes, not annotators' labels, train on one of them "
            "(--label-column NAME)"
        )

    def notes(self) -> list[str]:
        """How rows were made of the votes, for the user."""
        ties, none = Places(), Places()
        for line, label in zip(self.lines, self.labels, strict=True):
            if not label:
                (none if label == "" else ties).add(line)
        count = len(self.decided)
        get = f"{plural(count, 'text')} {'gets' if count == 1 else 'get'}"
        told = [
            f"labels of {len(self.annotators)} annotators: {get} the label that most of them gave"
        ]
        if ties.count:
            told.append(
                f"{plural(ties.count, 'text')} with a tie ({ties}), not evaluated on; train "
                "without cross-validation learns from the shares of their labels, audit lists "
                "them, other commands leave them out"
            )
        classes = {self.labels[row] for row in self.decided}
        counts = Counter(filter(None, chain.from_iterable(self.votes)))
        if lost := {label: n for label, n in counts.items() if label not in classes}:
            with_it = sum(
                not classes.issuperset(filter(None, self.votes[row])) for row in self.ties
            )
            names = listed([f"{shown(label, 24)} ({n})" for label, n in sorted(lost.items())], 8)
            them = "it" if len(lost) == 1 else "them"
            left = f", and {plural(with_it, 'tie')} with {them} left out" * bool(with_it)
            told.append(
                f"{WARNING}no text has a majority for {names}: found no class of {them}{left}; "
                "expected one in some text: label more, or leave these labels out"
            )
        if none.count:
            told.append(f"{plural(none.count, 'text')} that nobody labelled left out ({none})")
        if self.replaced:
            dropped = plural(self.replaced, "label")
            told.append(f"{dropped} left out, for which their annotator gave another further on")
        return told + self.doubts


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
    sources: of each row the places (set, line) of its text, that which it was taken from first.
    conflicts: of each text with several labels its `text` and, for each label, where it stands
        (`old:line`, `new:line`) under `labels`.
    repeated: rows left out because their text stands before with the same label.
    replaced: rows left out because the other set decides.
    notes: what was done to labels of the new set.
    """

    rows: list[tuple[str, str]] = field(default_factory=list)
    sources: list[list[tuple[str, int]]] = field(default_factory=list)
    conflicts: list[dict[str, Any]] = field(default_factory=list)
    repeated: int = 0
    replaced: int = 0
    notes: list[str] = field(default_factory=list)


def merge(old: Dataset, new: Dataset, keep: str = "both", fold: bool = True) -> Merged:
    """One set of two.

    keep: which label a text has that is labelled otherwise in the other set: those of "both" (it
        stands once with each), of "old" or of "new".
    fold: whether labels of the new set are spelt as those of the old one that `folded` makes the
        same, unless it has two spellings of one.
    """
    known = {folded(label): label for label in old.class_counts()}
    respelt: Counter[tuple[str, str]] = Counter()
    if fold and len(known) == len(old.class_counts()):
        own = [known.get(folded(label), label) for label in new.labels]
        pairs = zip(new.labels, own, strict=True)
        respelt = Counter((label, name) for label, name in pairs if label != name)
        new = replace(new, labels=own)
    labels: dict[str, dict[str, list[str]]] = {}
    places: dict[str, list[tuple[str, int]]] = {}
    rows = list(_rows_of(old, new))
    for name, label, _, key, line in rows:
        labels.setdefault(key, {}).setdefault(label, []).append(f"{name}:{line}")
        places.setdefault(key, []).append((name, line))
    merged = Merged()
    if respelt:
        such = [f"{shown(label, 24)} to {shown(name, 24)}" for label, name in [*respelt][:_NAMED]]
        count = plural(respelt.total(), "label")
        merged.notes.append(f"{count} put in the spelling of {old.source} ({', '.join(such)})")
    told: set[str] = set()
    written: set[tuple[str, str]] = set()
    for name, label, text, key, line in rows:
        torn = len(labels[key]) > 1
        if torn and key not in told:
            told.add(key)
            merged.conflicts.append({"text": text, "labels": labels[key]})
        if torn and name != keep and keep in {place[0] for place in places[key]}:
            merged.replaced += 1
        elif (key, label) in written:
            merged.repeated += 1
        else:
            written.add((key, label))
            merged.rows.append((label, text))
            merged.sources.append([(name, line), *places[key]])
    return merged


def _rows_of(old: Dataset, new: Dataset) -> Iterator[tuple[str, str, str, str, int]]:
    """(set, label, text, key, line) of each row; texts of one key are the same."""
    parts = {"old": old, "new": new}
    spaced = {name: [" ".join(text.split()) for text in part.texts] for name, part in parts.items()}
    keys, _ = text_keys(spaced)
    for name, part in parts.items():
        rows = zip(part.labels, part.texts, keys[name], part.lines, strict=True)
        yield from ((name, *row) for row in rows)
