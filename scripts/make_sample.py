"""Write the sample data: short made-up reviews in Maghrebi Arabic, in three classes.

    python scripts/make_sample.py [FOLDER]        # data/sample unless told otherwise

Rows are drawn from the words and templates of `sample_words.py`, in Moroccan or Algerian,
in Arabic script or Arabizi, with the spellings people use: several for one word,
elongation, dropped vowels, digits for letters. What makes rows hard on purpose: negation
of a good or a bad word, a first clause that says the opposite of the verdict, questions
and hearsay that hold a strong word and judge nothing, and spellings and words kept out
of train. No two labelled rows, in whichever split, say the same thing in the same words;
no unlabelled text stands in a labelled file.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import sample_words as words

SEED = 7
SIZES = {  # rows of each class in each split
    "train": {"positive": 160, "negative": 143, "neutral": 117},
    "dev": {"positive": 34, "negative": 31, "neutral": 25},
    "test": {"positive": 46, "negative": 41, "neutral": 33},
}
FEW = 30  # first rows of each class of train in few.tsv
UNLABELLED = 4000  # lines of text without a label
HARD_SHARE = 0.15  # of the rows of a class
FRESH_SHARE = 0.5  # of the rows of dev and test
AR, LATIN = 0, 1
T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """One thing to say, and how it is spelt."""

    name: str
    variety: str  # "ma", "dz", or "xx" for both
    fields: tuple[str, ...]  # those it fits; all, where empty
    gender: str  # of an aspect: "m" or "f"
    fresh: bool  # kept out of train
    forms: dict[str, tuple[list[str], list[str]]]  # gender -> (Arabic, Arabizi) spellings

    def fits(self, variety: str, field: str, fresh: bool) -> bool:
        return (
            self.variety in ("xx", variety)
            and (not self.fields or field in self.fields)
            and (fresh or not self.fresh)
        )


class Dice:
    """Choices made from `random()` alone, whose stream Python promises to keep."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self._random.random() * len(items))]

    def shuffle(self, items: list[T]) -> None:
        for last in range(len(items) - 1, 0, -1):
            other = int(self._random.random() * (last + 1))
            items[last], items[other] = items[other], items[last]


def parse(block: str, field: str = "") -> list[Entry]:
    """Read the entries of one block of words."""
    entries = []
    for line in block.strip().splitlines():
        tag, body = line.strip().split(" ", 1)
        variety, _, only = tag.partition(".")
        gender = variety if variety in "mf" else ""
        halves = [half.strip() for half in body.split(";")]
        forms = {}
        for key, half in zip("mf", [halves[0], halves[-1]], strict=True):
            arabic, latin = half.lstrip("*").split("/")
            forms[key] = (arabic.strip().split("|"), latin.strip().split("|"))
        fields = (field,) if field else tuple(only.split(",") if only else ())
        entries.append(
            Entry(body, "xx" if gender else variety, fields, gender, body.startswith("*"), forms)
        )
    return entries


BLOCKS = {
    "aspect": [e for field, block in words.ASPECTS.items() for e in parse(block, field)],
    "good": parse(words.GOOD),
    "bad": parse(words.BAD),
    "love": parse(words.LOVE),
    "hate": parse(words.HATE),
    "no_fault": parse(words.NO_FAULT),
    "no_good": parse(words.NO_GOOD),
    "fact": parse(words.FACT),
} | {slot: parse(block) for slot, block in words.WORDS.items()}


def respell(dice: Dice, word: str) -> str:
    """One of the liberties people take with the spelling of a word."""
    if word.isascii():
        if len(word) > 4 and dice.chance(0.06):  # drop a vowel inside the word
            inner = [i for i in range(1, len(word) - 1) if word[i] in "aeiou"]
            if inner:
                at = dice.pick(inner)
                word = word[:at] + word[at + 1 :]
        if dice.chance(0.08):  # letters for digits, or digits for letters
            old, new = dice.pick([("9", "q"), ("7", "h"), ("kh", "5"), ("gh", "8"), ("ou", "o")])
            word = word.replace(old, new)
    elif dice.chance(0.15):
        old, new = dice.pick([("ة", "ه"), ("إ", "ا"), ("ى", "ي"), ("ث", "ت"), ("ؤ", "و")])
        word = word.replace(old, new)
    if len(word) > 3 and dice.chance(0.05):  # elongation
        stretch = [i for i in range(1, len(word)) if word[i] in "aeiouاوي"]
        if stretch:
            at = dice.pick(stretch)
            word = word[:at] + word[at] * dice.pick([2, 3, 4]) + word[at + 1 :]
    return word


def spell(dice: Dice, entry: Entry, gender: str, script: int, fresh: bool) -> str:
    """One spelling of an entry; the last of three or more only in a fresh row."""
    spellings = entry.forms[gender][script]
    known = spellings[:-1] if len(spellings) > 2 and not fresh else spellings
    return " ".join(respell(dice, word) for word in dice.pick(known).split(" "))


def draw_row(dice: Dice, label: str, fresh: bool) -> tuple[str, tuple[str, ...]] | None:
    """One text and what it says: the template and its entries, whatever the spelling.

    A fresh row may hold words and spellings that are kept out of train.
    None where a template does not fit the field, such as the price of a film.
    """
    variety = "ma" if dice.chance(0.55) else "dz"
    script = AR if dice.chance(0.55) else LATIN
    field = dice.pick(list(words.ASPECTS))
    templates = (words.HARD if dice.chance(HARD_SHARE) else words.PLAIN)[label]
    weighted = [t[2:] for t in templates for _ in range(int(t[0]))]
    slots = dice.pick(weighted).split(" ")
    if dice.chance(0.3):
        slots.insert(0, "start")
    if dice.chance(0.3) and slots[-1] != "?":
        slots.append("end")

    aspects: dict[str, Entry] = {}
    parts: list[str] = []
    said = [label]
    for slot in slots:
        if slot == "?":
            mark = dice.pick(["؟" if script == AR else "?", ""])
            parts[-1] += mark
            continue
        kind, second = slot.rstrip("2"), slot[-1] == "2"
        of = "2" if second else ""
        if of not in aspects:
            choice = [e for e in BLOCKS["aspect"] if e.fits(variety, field, fresh)]
            aspects[of] = dice.pick([e for e in choice if e not in aspects.values()])
        if kind == "aspect":
            entry = aspects[of]
        else:
            fitting = [e for e in BLOCKS[kind] if e.fits(variety, field, fresh)]
            if not fitting:
                return None
            entry = dice.pick(fitting)
        if kind not in ("start", "end", "very"):
            said.append(f"{slot} {entry.name}")
        written = script if dice.chance(0.96) else 1 - script
        parts.append(spell(dice, entry, aspects[of].gender, written, fresh))
    if label != "neutral" and dice.chance(0.15):
        parts[-1] += dice.pick(["!", "!!", " 😂", "..."])
    return " ".join(parts), tuple(said)


def build() -> dict[str, str]:
    """File name -> contents, the same bytes every time."""
    dice = Dice(SEED)
    seen: set[object] = set()
    files = {}
    for split, sizes in SIZES.items():
        rows: list[str] = []
        for label, size in sizes.items():
            wanted = len(rows) + size
            while len(rows) < wanted:
                row = draw_row(dice, label, split != "train" and dice.chance(FRESH_SHARE))
                if row is None:
                    continue
                text, said = row
                if text not in seen and said not in seen:
                    seen.update((text, said))
                    rows.append(f"{label}\t{text}\n")
        dice.shuffle(rows)
        files[f"{split}.tsv"] = "".join(rows)
        if split == "train":
            of_class = {label: [r for r in rows if r.startswith(f"{label}\t")] for label in sizes}
            few = {row for some in of_class.values() for row in some[:FEW]}
            files["few.tsv"] = "".join(row for row in rows if row in few)
    files["unlabelled.txt"] = "".join(f"{text}\n" for text in draw_unlabelled(dice, seen))
    return files


def draw_unlabelled(dice: Dice, seen: set[object]) -> list[str]:
    """Texts of every kind, none of which stands in a labelled file or twice."""
    texts: list[str] = []
    while len(texts) < UNLABELLED:
        row = draw_row(dice, dice.pick(list(words.PLAIN)), fresh=True)
        if row is not None and row[0] not in seen:
            seen.add(row[0])
            texts.append(row[0])
    return texts


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, contents in build().items():
        (folder / name).write_bytes(contents.encode("utf-8"))


if __name__ == "__main__":
    here = Path(__file__).resolve().parent.parent / "data" / "sample"
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else here)
