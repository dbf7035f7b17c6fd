"""What does a random split of SST-2's phrases leak, beside one that keeps sentences whole?

    python scripts/phrase_leak.py TRAIN [MORE...] --test TEST [--seeds 3]

TRAIN and MORE are labelled phrases (GLUE's train and dev rows: phrases of the treebank without the
sentence each is from), TEST whole sentences that none of them is from. Two splits are reported:

random    60,000 / 3,500 / 3,500 of the phrases, shuffled, as SuperConText's Table 1 has them;
          fewer of each in proportion where there are fewer.
sentence  all phrases to train on, and the sentences of TEST.

For each: test rows whose text stands in train, those that are part of a longer training phrase,
those that have a training phrase of four words or more as a part, and any of these. A row that is
part of a training phrase has been seen word for word: of those, and the copies, `same label` says
how many have its label.
Then the accuracy of TF-IDF + logistic regression on all test rows, on those that leak, and on the
others. They go to scripts/results/phrase_leak.csv.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from doc_tables import write_rows

from superconext.data.reading import read_labelled

STORED = Path(__file__).parents[1] / "scripts" / "results" / "phrase_leak.csv"
SIZES = (60_000, 3_500, 3_500)
PART = 4  # words of a training phrase that a test row holds
LONGEST = 12  # words of a test row that is still looked for inside training phrases

Rows = tuple[list[str], list[str]]


def words_of(text: str) -> list[str]:
    """Words as they are compared."""
    return text.casefold().split()


def leaks(train: Rows, test: Rows) -> dict[str, Any]:
    """Shares of test rows by how they stand in the training phrases, and the rows that do."""
    wanted = {tuple(words_of(text)) for text in test[0]}
    label_of: dict[tuple[str, ...], str] = {}
    whole: set[tuple[str, ...]] = set()
    inside: dict[tuple[str, ...], str] = {}
    for text, label in zip(*train, strict=True):
        words = tuple(words_of(text))
        label_of.setdefault(words, label)
        whole.add(words)
        for size in range(1, min(LONGEST, len(words) - 1) + 1):
            for start in range(len(words) - size + 1):
                part = words[start : start + size]
                if part in wanted:
                    inside.setdefault(part, label)
    kinds: dict[str, list[int]] = {"copy": [], "part of": [], "holds": [], "any": []}
    same = found = 0
    for row, (text, label) in enumerate(zip(*test, strict=True)):
        words = tuple(words_of(text))
        copy, part = words in whole, words in inside
        holds = any(
            words[start : start + size] in whole
            for size in range(PART, len(words))
            for start in range(len(words) - size + 1)
        )
        for name, is_so in (("copy", copy), ("part of", part), ("holds", holds)):
            if is_so:
                kinds[name].append(row)
        if copy or part or holds:
            kinds["any"].append(row)
        seen = label_of.get(words) or inside.get(words)
        if seen is not None:
            found += 1
            same += seen == label
    return {
        "rows": len(test[0]),
        **{name: len(rows) / len(test[0]) for name, rows in kinds.items()},
        "same label": same / found if found else None,
        "leaking": kinds["any"],
    }


def accuracies(train: Rows, dev: Rows, test: Rows, leaking: Sequence[int]) -> dict[str, Any]:
    """Of TF-IDF + logistic regression: on all test rows, those that leak, and the others."""
    from superconext.baselines.baseline import fit_baseline

    answers = fit_baseline("tfidf_logreg", train, dev).predict(test[0])
    right = [said == label for said, label in zip(answers, test[1], strict=True)]
    chosen = set(leaking)
    parts = {
        "accuracy": right,
        "accuracy, leaking": [ok for row, ok in enumerate(right) if row in chosen],
        "accuracy, others": [ok for row, ok in enumerate(right) if row not in chosen],
    }
    return {name: sum(of) / len(of) if of else None for name, of in parts.items()}


def random_split(rows: Rows, seed: int) -> tuple[Rows, Rows, Rows]:
    """The phrases shuffled into the sizes of the paper, or in proportion."""
    order = list(range(len(rows[0])))
    random.Random(seed).shuffle(order)
    scale = min(1.0, len(order) / sum(SIZES))
    sizes = [int(scale * size) for size in SIZES]
    ends = [sum(sizes[: k + 1]) for k in range(3)]
    parts = [order[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    train, dev, test = (([rows[0][k] for k in of], [rows[1][k] for k in of]) for of in parts)
    return train, dev, test


def report(train: Rows, test: Rows, seeds: int, at_most: int | None) -> list[dict[str, Any]]:
    """A row for each random split, and one for the sentences."""
    found = []
    for seed in range(seeds):
        parts = random_split(train, seed)
        found.append({"split": f"random {seed}", **_measured(*parts, at_most)})
    order = random_split(train, 0)
    rest = ([*order[0][0], *order[2][0]], [*order[0][1], *order[2][1]])
    found.append({"split": "sentence", **_measured(rest, order[1], test, at_most)})
    return found


def _measured(train: Rows, dev: Rows, test: Rows, at_most: int | None) -> dict[str, Any]:
    facts = leaks(train, test)
    few = (train[0][:at_most], train[1][:at_most])
    return facts | accuracies(few, dev, test, facts.pop("leaking"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", nargs="+", help="labelled phrases")
    parser.add_argument("--test", required=True, help="labelled sentences")
    parser.add_argument("--seeds", type=int, default=3, help="random splits")
    parser.add_argument("--at-most", type=int, help="training rows of TF-IDF")
    given = parser.parse_args()
    pool: Rows = ([], [])
    for path in given.train:
        corpus = read_labelled(path, None, None)
        pool[0].extend(corpus.texts)
        pool[1].extend(corpus.labels)
    corpus = read_labelled(given.test, None, None)
    rows = report(pool, (corpus.texts, corpus.labels), given.seeds, given.at_most)
    lines = [{k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    write_rows(STORED, lines)


if __name__ == "__main__":
    main()
