"""Splitting a corpus: nothing crosses, nothing is lost, the seed decides."""

from __future__ import annotations

import random

import pytest

from superconext.core.errors import ConfigError, DataError
from superconext.data.dataset import Dataset
from superconext.data.duplicates import text_keys
from superconext.data.splits import split_dataset


def make(count=200, seed=0):
    """Half of the texts have a copy that differs in case or length of a letter only."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        label = draw.choice(["neg", "neg", "pos"])
        text = f"{draw.choice(['zwin', 'khayb'])} bzaf {'x' * (number % 7)}w{chr(97 + number % 26)}"
        rows.append((label, f"{text} {chr(97 + number // 26)}"))
        if draw.random() < 0.5:
            rows.append((label, rows[-1][1].upper()))
    draw.shuffle(rows)
    labels, texts = [label for label, _ in rows], [text for _, text in rows]
    return Dataset(texts, labels, list(range(1, len(rows) + 1)), "all.tsv", "ab", [])


def keys(parts):
    texts = {name: [text for _, text in rows] for name, rows in parts.items()}
    return {name: set(of) for name, of in text_keys(texts, "latin")[0].items()}


def crossing(sides):
    names = list(sides)
    return [(a, b) for a in names for b in names if a < b and sides[a] & sides[b]]


def test_copies_never_cross_and_nothing_is_lost():
    corpus = make()
    parts, made = split_dataset(corpus, 0.1, 0.2, 3)
    assert list(parts) == ["train", "dev", "test"] and crossing(keys(parts)) == []
    together = [row for rows in parts.values() for row in rows]
    assert sorted(together) == sorted(zip(corpus.labels, corpus.texts, strict=True))
    # To the letter the copies are other texts, and some of them cross.
    assert crossing(keys(split_dataset(corpus, 0.1, 0.2, 3, profile="none")[0]))
    assert made["source"] == {"file": "all.tsv", "sha256": "ab", "rows": len(corpus)}
    assert (made["seed"], made["fractions"], made["normalize"]) == (
        3,
        {"dev": 0.1, "test": 0.2},
        "latin",
    )


def test_stratified_and_decided_by_the_seed():
    corpus = make()
    parts, _ = split_dataset(corpus, 0.2, 0.2, 1)
    shares = [sum(label == "pos" for label, _ in rows) / len(rows) for rows in parts.values()]
    assert max(shares) - min(shares) < 0.1
    assert split_dataset(corpus, 0.2, 0.2, 1)[0] == parts
    assert split_dataset(corpus, 0.2, 0.2, 2)[0] != parts


def test_deduplicate_keeps_one_of_each():
    corpus = make()
    parts, made = split_dataset(corpus, deduplicate=True)
    rows = [text for rows in parts.values() for _, text in rows]
    assert len(rows) == len(set().union(*keys(parts).values()))
    assert made["deduplicated"] == len(corpus) - len(rows) > 0


def test_near_duplicates_go_together_when_asked():
    draw = random.Random(5)
    words = ["".join(draw.choices("abdhiklmnrstwz", k=5)) for _ in range(300)]
    texts = [" ".join(draw.choices(words, k=20)) for _ in range(20)]
    texts += [text + " hh" for text in texts]
    corpus = Dataset(texts, ["x", "y"] * 20, list(range(40)), "all.tsv", "", [])
    parts, made = split_dataset(corpus, 0.2, 0.2, near=True)
    sides = {name: {t.removesuffix(" hh") for _, t in rows} for name, rows in parts.items()}
    assert made["near_duplicates_together"] and crossing(sides) == []
    alone, _ = split_dataset(corpus, 0.2, 0.2)
    sides = {name: {t.removesuffix(" hh") for _, t in rows} for name, rows in alone.items()}
    assert crossing(sides)


def test_a_fraction_of_nothing_leaves_the_part_out():
    assert list(split_dataset(make(), 0, 0.1)[0]) == ["train", "test"]
    assert list(split_dataset(make(), 0, 0)[0]) == ["train"]


def test_what_cannot_be_split():
    few = Dataset(["a", "b", "c"], ["x", "x", "y"], [1, 2, 3], "few.tsv", "", [])
    with pytest.raises(DataError, match=r"few.tsv: found 3 distinct texts, too few"):
        split_dataset(few)
    with pytest.raises(ConfigError, match="fractions that leave rows"):
        split_dataset(make(), 0.6, 0.6)
    with pytest.raises(ConfigError):
        split_dataset(make(), profile="greek")
