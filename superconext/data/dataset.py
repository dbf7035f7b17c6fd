"""Labelled rows as one object, `Dataset`, and the check that they can be trained on."""

from __future__ import annotations

import dataclasses
import difflib
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from superconext.core.blank import MARKS
from superconext.core.errors import DataError, RowsError, plural
from superconext.data.duplicates import leaks, text_keys
from superconext.data.lines import shown, some_shown

if TYPE_CHECKING:
    from superconext.data.file_rows import TrainingRows
    from superconext.data.labels import Annotated


_ARABIC = str.maketrans(
    {
        **dict.fromkeys("أإآٱ", "ا"),
        **dict.fromkeys("ىی", "ي"),
        "ک": "ك",
        **dict.fromkeys(map(chr, [0x640, *range(0x64B, 0x653)])),
    }
)


@dataclass(frozen=True)
class Dataset:
    """Labelled examples in the order of the file, in memory or on disk.

    Args:
        texts, labels: `[N]`; of a file larger than memory those of a sample of its rows.
        lines: 1-based line (Parquet: row) each example starts on; by default one after the other.
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
        names: of all columns of the file, or numbers from 1.
        unlabelled: texts of rows without a label, which were left out.
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
    names: Sequence[str] = ()
    unlabelled: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not len(self.lines) and self.on_disk is None:
            object.__setattr__(self, "lines", range(1, len(self.texts) + 1))

    def __len__(self) -> int:
        """All rows, also those on disk alone."""
        return len(self.texts) if self.on_disk is None else len(self.on_disk)

    def class_counts(self) -> dict[str, int]:
        """Examples in each class, sorted by label."""
        if self.on_disk is None:
            return dict(sorted(Counter(self.labels).items()))
        return self.on_disk.class_counts()

    def repeats_of(self, texts: Sequence[str]) -> int:
        """How many of the texts are in this data set: by `duplicates.text_keys`, of rows on disk by
        the words of these."""
        if self.on_disk is not None:
            return self.on_disk.has(texts)
        keys, _ = text_keys({"own": self.texts, "other": texts})
        return len(leaks(keys["own"], keys["other"]))

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


#: Rows of a class that a label with a single row may be a misspelling of.
_FREQUENT = 5

#: So many classes with digits in their names, of fewer rows each than the second number on
#: average, may be dates or numbers.
_MANY, _FEW_EACH = 10, 20

#: How a note, and the error of training, tells of labels that `folded` makes one.
ALIKE = "classes that differ in case, spaces, .0 or Arabic spelling alone"


def folded(label: str) -> str:
    """A label in lower case and compatible characters, with single spaces and the digits 0 to 9;
    1.0 as 1; in Arabic without hamza on alif, short vowels and tatweel, with one yeh and kaf."""
    plain = unicodedata.normalize("NFKC", label).casefold().replace("i\u0307", "i")
    if not plain.isascii():
        plain = re.sub(r"\d", lambda digit: str(int(digit[0])), plain.translate(_ARABIC))
    plain = " ".join(plain.split())
    return re.sub(r"^(-?\d+)\.0+$", r"\1", plain)


def check_training(dataset: Dataset, alike: bool = True) -> list[str]:
    """Refuse a data set that no classifier can be trained on.

    Returns warnings of classes with a single row, and of labels like dates. Raises RowsError where
    there are no examples or one class only, where most texts are numbers and, unless `alike`, where
    classes differ in case or spelling alone.
    """
    check_letters(dataset.texts, dataset.source, dataset.names)
    return check_counts(
        dataset.class_counts(),
        dataset.source,
        lambda label: dataset.lines[dataset.labels.index(label)],
        alike,
    )


def check_held(dataset: Dataset) -> None:
    """Raise DataError where no score can be told from rows that are held out."""
    texts = Counter(label for _, label in set(zip(dataset.texts, dataset.labels, strict=True)))
    several = sum(count > 1 for count in texts.values())
    if several < 2:
        raise DataError(
            f"{dataset.source}: found {several} class{'es' * (several != 1)} with two different "
            f"texts or more in {len(dataset)} rows, expected two such classes for a score: "
            "label more rows, or give a dev file with --dev"
        )


def check_letters(texts: Sequence[str], source: str, names: Sequence[str]) -> None:
    """Raise RowsError where most texts are `letterless`."""
    bare = [text for text in texts if letterless(text)]
    if 2 * len(bare) > len(texts):
        raise RowsError(f"{source}: {told_letterless(bare[:2], len(bare), len(texts), names)}")


def letterless(text: str) -> bool:
    """Whether a text holds neither a letter nor a symbol such as an emoji."""
    return not any(map(_says, text))


def told_letterless(some: Sequence[str], count: int, total: int, names: Sequence[str]) -> str:
    """What is wrong with `count` of `total` texts, `some` of them, and with which column to mend
    it among those with these names."""
    listed = ", ".join(shown(name, 24) for name in names[:12])
    return (
        f"found no letter in {count} of {plural(total, 'text')}, such as "
        f"{' and '.join(map(shown, some))}, expected sentences: name their column with "
        "--text-column" + f"; the columns are {listed}" * bool(names)
    )


def _says(character: str) -> bool:
    return character.isalpha() or unicodedata.category(character) == "So"


def check_counts(
    counts: Mapping[str, int], source: str, line_of: Callable[[str], int], alike: bool = True
) -> list[str]:
    """The checks of `check_training` that need the number of rows in each class alone; it returns
    and raises the same. line_of: tells a line on which a label stands."""
    if not counts:
        raise RowsError(f"{source}: found no examples, expected two classes or more")
    if len(counts) == 1:
        (label, count) = next(iter(counts.items()))
        raise RowsError(
            f"{source}: found one class only ({shown(label)}, {plural(count, 'row')}), "
            "expected two or more: add examples of another class, or check --label-column"
        )
    if several := [] if alike else spelt_alike(counts):
        raise RowsError(
            f"{source}: found {ALIKE}: {'; '.join(several[:5])}, expected one spelling of a "
            "class: make them one with --fold-label-case, or keep them apart with "
            "--no-fold-label-case"
        )
    check_repeated(counts, source)
    total = sum(counts.values())
    told = []
    numbered = [label for label in counts if re.search(r"\d", label)]
    if len(numbered) >= max(_MANY, 0.8 * len(counts)) and total < _FEW_EACH * len(counts):
        told.append(
            f"{source}: found {len(counts)} classes in {total} rows, such as {shown(numbered[0])}: "
            "check --label-column, if these are dates or numbers"
        )
    return told + doubtful_counts(counts, source, lambda label: f"line {line_of(label)}")


def doubtful_counts(
    counts: Mapping[str, int], source: str, place_of: Callable[[str], str]
) -> list[str]:
    """Warnings of classes with a single row, whose place `place_of` tells, and of those that may be
    another one, misspelt."""
    told = _alike_but_accents(counts, source)
    total, single = sum(counts.values()), [label for label in counts if counts[label] == 1]
    rare = [label for label, count in counts.items() if 1 < count <= min(3, total / 40)]
    told += [
        f"{source}: found {shown(label)} in {counts[label]} rows alone{meant}"
        for label in rare
        if (meant := _meant(label, counts))
    ]
    if not single:
        return told
    named = ", ".join(
        f"{shown(label)} ({place_of(label)}{_meant(label, counts)})" for label in single[:5]
    )
    more = f" and {len(single) - 5} more" if len(single) > 5 else ""
    return [
        *told,
        f"{source}: found {plural(len(single), 'class')} with a single row: {named}{more}; it "
        "is trained on and cannot be held out, so no score shows how well the model knows such a "
        "class",
    ]


def spelt_alike(counts: Mapping[str, int]) -> list[str]:
    """Classes that differ as `ALIKE` says, with their rows; each entry names those of one."""
    spelt: dict[str, list[str]] = {}
    for label, count in counts.items():
        spelt.setdefault(folded(label), []).append(f"{shown(label, 24)} ({plural(count, 'row')})")
    return [" and ".join(names) for names in spelt.values() if len(names) > 1]


def classes_apart(one: Dataset, other: Dataset) -> list[str]:
    """A warning where two sets of two classes or more share none."""
    sides = [part.class_counts() for part in (one, other)]
    first, second = ({*map(folded, side)} for side in sides)
    if first & second or min(len(first), len(second)) < 2:
        return []
    told = (
        f"{some_shown(side)} in {part.source}"
        for side, part in zip(sides, (one, other), strict=True)
    )
    return [f"the files share no class: {'; '.join(told)}: name a class alike in both files"]


def check_repeated(counts: Mapping[str, int], source: str) -> None:
    """Raise RowsError where most of 20 rows or more have a label of their own."""
    single = [label for label, count in counts.items() if count == 1]
    total = sum(counts.values())
    if 2 * len(single) > total >= 20:
        mend = "check --label-column, or make ranges of numbers classes"
        if 2 * sum(len(label.split()) > 1 for label in single) > len(single):
            mend = "they look like texts: --text-column and --label-column name the columns"
        raise RowsError(
            f"{source}: found {len(counts)} different labels in {total} rows, expected labels that "
            f"repeat: {mend}"
        )


def check_sides(dataset: Dataset) -> None:
    """Raise RowsError where the labels look like texts, of few rows too: more of them differ than
    of the texts, and most have several words."""
    counts, texts = dataset.class_counts(), set(dataset.texts)
    check_repeated(counts, dataset.source)
    if len(counts) > len(texts) and 2 * sum(" " in label for label in counts) > len(counts):
        raise RowsError(
            f"{dataset.source}: found {len(counts)} different labels of "
            f"{plural(len(texts), 'different text')}, such as {shown(next(iter(counts)))} for "
            f"{shown(dataset.texts[0])}, expected labels that repeat: the columns look swapped: "
            "--text-column and --label-column name them"
        )


#: Cyrillic and Greek letters, each before the Latin one that it looks like; marks are nothing.
_LOOKS = "АAВBЕEІIЈJКKМMНHОOРPСCТTУYХXЅSаaеeіiјjкkоoрpсcуyхxѕsһhԁdԛqԝw"
_LOOKS += "ΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXαaιiκkνvοoρpυuχx"
_ALIKE = str.maketrans(
    {
        **dict(zip(_LOOKS[::2], _LOOKS[1::2], strict=True)),
        "ı": "i",
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        "\u2019": "'",
        **dict.fromkeys(MARKS + "\ufe0e\ufe0f", ""),
    }
)

#: Stops and quotes, which say nothing around a label.
_AROUND = " .,;:!?'\"`´…«»‹›،؛؟" + "".join(map(chr, range(0x2018, 0x2020)))


def _stripped(label: str) -> str:
    """`folded`, also without accents on Latin letters, marks around and invisible marks, with
    look-alikes of Latin letters as these, and with numbers in one way: 01 and 1,0 as 1, 1,5 as
    1.5."""
    plain = unicodedata.normalize("NFD", folded(label.translate(_ALIKE)))
    plain = re.sub("(?<=[a-z])[\u0300-\u036f]+", "", plain)
    plain = plain.strip(_AROUND) or plain
    number = re.fullmatch(r"\+?(-?)0*(\d+?)(?:[.,](?:0+|(\d+)))?", plain)
    if number is None or re.search(r",\d{3}$", plain):  # of thousands
        return plain
    return f"{number[1]}{number[2]}" + f".{number[3]}" * bool(number[3])


#: What `_stripped` leaves out.
_SPELLING = "accents, marks, look-alike letters or ways to write a number"


def unknown_labels(
    labels: Iterable[str], known: Collection[str], source: str
) -> tuple[list[str], str]:
    """The labels of a test file that training never sees, and how to mend some, "" where nothing
    tells. Raises DataError where they are all unknown."""
    given = set(labels)
    unknown = sorted(given - set(known))
    mend = respelt(unknown, known) if unknown else ""
    if unknown and len(unknown) == len(given):
        raise DataError(
            f"{source}: found the labels {some_shown(unknown)}, of which training sees none; "
            f"expected some of {some_shown(sorted(known))}"
            + (mend or ": rename them, or check the label column")
        )
    return unknown, mend


def respelt(labels: Iterable[str], known: Iterable[str], folding: bool = True) -> str:
    """A clause on those of the labels that differ from known ones in spelling alone; "" for none.

    folding: whether --fold-label-case can make them one.
    """
    names = [*known]
    same, cased = ({of(name): name for name in names} for of in (_stripped, folded))
    told: dict[str, list[str]] = {}
    for label in labels:
        name = cased.get(folded(label)) or same.get(_stripped(label))
        if name is None:
            continue
        how, mend = _SPELLING, "write them alike if they are one"
        if folded(name) == folded(label):
            how, mend = "case or spelling", "add --fold-label-case" if folding else mend
            if unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", label):
                how = "Unicode form"
        pair = f"{shown(label, 24)} and {shown(name, 24)}"
        told.setdefault(f"in {how} alone: {mend}", []).append(pair)
    return "".join(f"; {', '.join(pairs[:3])} differ {how}" for how, pairs in told.items())


def _alike_but_accents(counts: Mapping[str, int], source: str) -> list[str]:
    """Warnings of classes whose names differ in what `_stripped` leaves out alone."""
    spelt: dict[str, list[str]] = {}
    for label in counts:
        spelt.setdefault(_stripped(label), []).append(label)
    return [
        f"{source}: found classes that differ in {_SPELLING} alone: "
        + " and ".join(f"{shown(name, 24)} ({plural(counts[name], 'row')})" for name in names)
        + ": write them alike if they are one"
        for names in spelt.values()
        if len({unicodedata.normalize("NFC", folded(name)) for name in names}) > 1
    ]


def _meant(label: str, counts: Mapping[str, int]) -> str:
    """The frequent class whose name a label misspells, if any does.

    Such a name has 4 letters or more, about as many as the label, and the same digits: names that
    are short, numbered (class 1, class 2) or told apart by a syllable (legal, illegal) are others.
    """
    own = folded(label)
    digits = re.findall(r"\d", own)
    names = {
        name: other
        for other, count in counts.items()
        if count >= _FREQUENT
        and min(len(name := folded(other)), len(own)) >= 4
        and abs(len(name) - len(own)) <= 1
        and name != own
        and re.findall(r"\d", name) == digits
    }
    near = difflib.get_close_matches(own, names, 1, 0.85)
    return f", did you mean {shown(names[near[0]])}?" if near else ""
