"""The default of `superconext train` beside TF-IDF + logistic regression, a table of several sets.

Each set is trained on as `superconext train TRAIN --test TEST` does it, with no option but those
after `--` (word vectors, a pretrained encoder); the rival is fitted on all rows of TRAIN, its C by
cross-validation within them, and adjusted for rare classes as the default is. A set of one file is
parted 80/20 at random after its repeated texts are removed; training rows whose text is in the test
file are left out. The interval of the difference is that of a bootstrap over test rows, one seed.

    python scripts/default_sets.py results.csv --set trec=train.tsv,test.tsv --set cr=all.tsv -- \
        --vectors vectors.txt

With `--shots 16,64 --draws 2` it is fitted on so many rows of each class, drawn that often, and
tested on 2,000 rows at most (results/default_automatic.csv).

What results.csv has already is left as it is. `--doc docs/results.md` prints an existing file into
the page instead.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np
from doc_tables import write_table
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from superconext import load
from superconext.baselines.baseline import fit_baseline
from superconext.config.parameters import resolve
from superconext.core.files import file_sha256
from superconext.data.dataset import Dataset
from superconext.data.duplicates import deduplicate, leaks
from superconext.data.reading import read_labelled
from superconext.experiments.paired_tests import hierarchical_bootstrap, holm
from superconext.report.table import Grid

#: Test rows where many small fits are tested.
MOST_TESTED = 2000

NAME = "default_sets"
HEAD = [
    *("set", "given", "shots", "draw", "train_rows", "test_rows", "classes", "recipe", "why"),
    *("default", "tfidf", "difference", "low", "high", "p", "seconds", "tfidf_seconds"),
]


def parts(paths: list[str]) -> tuple[Dataset, Dataset]:
    """Training and test rows of two files, or of one that is parted."""
    if len(paths) == 2:
        train, test = (read_labelled(path) for path in paths)
        leaking = leaks(test.texts, train.texts)
        return train.select(np.setdiff1d(np.arange(len(train)), leaking)), test
    rows = read_labelled(paths[0])
    rows = rows.select(deduplicate(rows.texts))
    known, asked = train_test_split(
        np.arange(len(rows)), test_size=0.2, random_state=0, stratify=rows.labels
    )
    return rows.select(np.sort(known)), rows.select(np.sort(asked))


def few(train: Dataset, test: Dataset, shots: int, draw: int) -> tuple[Dataset, Dataset]:
    """So many training rows of each class, and no more than `MOST_TESTED` to test on."""
    rng = np.random.default_rng(draw)
    order, labels = rng.permutation(len(train)), np.array(train.labels)
    rows = [
        row for name in sorted(set(train.labels)) for row in order[labels[order] == name][:shots]
    ]
    asked = np.sort(rng.permutation(len(test))[:MOST_TESTED])
    return train.select(np.sort(rows)), test.select(asked)


def write_rows(path: Path, rows: Dataset) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["text", "label"])
        writer.writerows(zip(rows.texts, rows.labels, strict=True))


def measure(
    name: str, paths: list[str], words: list[str], shots: int | None, draw: int
) -> list[object]:
    """One row of the table, in the order of `HEAD`."""
    train, test = parts(paths)
    if shots:
        train, test = few(train, test, shots, draw)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "train.csv", Path(folder) / "test.csv"]
        for file, rows in zip(files, (train, test), strict=True):
            write_rows(file, rows)
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "superconext", "train", str(files[0])]
        began = time.perf_counter()
        subprocess.run([*command, "--test", str(files[1]), "--out", str(run), *words], check=True)
        seconds = time.perf_counter() - began
        choice = json.loads((run / "manifest.json").read_text(encoding="utf-8"))["recipes"]
        ours = load(run).predict(test.texts)
    like_ours = resolve({"preset": "auto"})
    baseline = fit_baseline("tfidf_logreg", (train.texts, train.labels), None, config=like_ours)
    theirs = baseline.predict(test.texts)
    places = {label: at for at, label in enumerate(sorted({*train.labels, *test.labels}))}
    truth, first, second = (
        np.array([places[str(label)] for label in of]) for of in (test.labels, ours, theirs)
    )
    found = hierarchical_bootstrap(truth, first[None], second[None], seeds=False)
    scores = [f1_score(truth, one, average="weighted") for one in (first, second)]
    recipe = choice["recipes"][choice["chosen"]]["title"]
    return [
        *(name, shown_all(words), shots or "all", draw, len(train), len(test), len(places)),
        *(recipe, choice["why"]),
        *(f"{x:.4f}" for x in (*scores, found.difference, found.low, found.high, found.p)),
        *(f"{seconds:.0f}", f"{baseline.seconds:.0f}"),
    ]


def grid(rows: list[dict[str, str]]) -> Grid:
    """The table: points of weighted F1; bold: p below 0.05 after Holm's correction."""
    corrected = holm([float(row["p"]) for row in rows])
    cells: list[list[str]] = []
    bold = set()
    for row, p in zip(rows, corrected, strict=True):
        points = {k: 100 * float(row[k]) for k in ("default", "difference", "low", "high")}
        minus = f"{points['difference']:+.1f} [{points['low']:+.1f}, {points['high']:+.1f}]"
        if p < 0.05:
            bold.add((len(cells), 2))
        cells.append([row["set"], f"{points['default']:.1f}", minus])
    head = ["set", "default", "minus TF-IDF + LR"]
    return Grid(head, cells, bold, right=[1])


def shown(word: str) -> str:
    """An option or its value; of a file or folder the hash of its contents, 12 digits."""
    if not word or word.startswith("--"):
        return word
    files = sorted(Path(word).rglob("*")) if Path(word).is_dir() else [Path(word)]
    hashes = [file_sha256(file) for file in files if file.is_file()]
    return hashlib.sha256(" ".join(hashes).encode()).hexdigest()[:12] if hashes else word


def shown_all(words: list[str]) -> str:
    """Options with their values, as stored; rows from before values were stored have options."""
    return " ".join(map(shown, words))


def main() -> None:
    words = sys.argv[1:]
    rest: list[str] = []
    if "--" in words:
        words, rest = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=TRAIN[,TEST]")
    parser.add_argument("--shots", help="such as 16,64; default: all rows")
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--doc", type=Path)
    options = parser.parse_args(words)
    if options.doc:
        with options.results.open(encoding="utf-8", newline="") as stream:
            write_table(options.doc, NAME, grid(list(csv.DictReader(stream))))
        return
    sizes = [int(size) for size in options.shots.split(",")] if options.shots else [None]
    given = shown_all(rest)
    new = not options.results.exists()
    with options.results.open("a+", encoding="utf-8", newline="") as stream:
        stream.seek(0)
        keys = ("set", "given", "shots", "draw")
        there = {tuple(row[key] for key in keys) for row in csv.DictReader(stream)}
        writer = csv.writer(stream, lineterminator="\n")
        if new:
            writer.writerow(HEAD)
        for draw, size, one in product(range(options.draws), sizes, options.set):
            name, paths = one.split("=", 1)
            if (name, given, str(size or "all"), str(draw)) not in there:
                writer.writerow(measure(name, paths.split(","), rest, size, draw))
                stream.flush()


if __name__ == "__main__":
    main()
