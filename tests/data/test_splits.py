"""Splits: nothing lost, no copy across, every class trained on, the seed decides."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import ConfigError, DataError
from superconext.data.dataset import Dataset
from superconext.data.duplicates import conflicting, deduplicate, leaks, text_keys
from superconext.data.reading import read_labelled
from superconext.data.splits import (
    quotas,
    split_dataset,
    stratified_folds,
    stratified_holdout,
    stratified_three_way,
    write_folder,
)

# Few texts and labels, so that copies, conflicts and tiny classes all turn up.
corpora = st.lists(
    st.tuples(st.integers(0, 25).map(str), st.sampled_from("abcd")), min_size=1, max_size=60
)


def distinct_by_class(texts, labels, rows):
    found = {}
    for row in rows:
        found.setdefault(labels[row], set()).add(texts[row])
    return {label: len(of) for label, of in found.items()}


@given(corpora, st.floats(0, 0.95), st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=200)
def test_holdout_invariants(pairs, fraction, seed):
    texts, labels = [t for t, _ in pairs], [y for _, y in pairs]
    kept, held = stratified_holdout(texts, labels, fraction, seed)
    assert sorted([*kept, *held]) == list(range(len(texts)))
    assert list(kept) == sorted(kept) and list(held) == sorted(held)
    assert kept.dtype.kind == held.dtype.kind == "i"
    assert not {texts[r] for r in kept} & {texts[r] for r in held}
    before = distinct_by_class(texts, labels, range(len(texts)))
    after = distinct_by_class(texts, labels, kept)
    for label, count in before.items():
        assert after[label] >= min(2, count)
    again = stratified_holdout(texts, labels, fraction, seed)
    assert np.array_equal(kept, again[0]) and np.array_equal(held, again[1])


@given(corpora, st.integers(0, 1000))
@settings(deadline=None)
def test_three_way_invariants(pairs, seed):
    texts, labels = [t for t, _ in pairs], [y for _, y in pairs]
    parts = stratified_three_way(texts, labels, seed, dev=0.2, test=0.3)
    assert sorted(row for part in parts for row in part) == list(range(len(texts)))
    seen = [{texts[row] for row in part} for part in parts]
    assert not (seen[0] & seen[1] or seen[0] & seen[2] or seen[1] & seen[2])
    assert all(list(part) == sorted(part) for part in parts)
    assert {labels[row] for row in parts[0]} == set(labels)


def test_holdout_is_stratified_and_of_the_size_asked_for():
    labels = ["a"] * 600 + ["b"] * 300 + ["c"] * 105
    texts = [str(i) for i in range(len(labels))]
    _, held = stratified_holdout(texts, labels, 0.1, seed=3)
    counts = Counter(labels[row] for row in held)
    assert (counts["a"], counts["b"]) == (60, 30) and counts["c"] in (10, 11)
    assert len(held) in (100, 101)
    other = stratified_holdout(texts, labels, 0.1, seed=4)[1]
    assert not np.array_equal(held, other)
    assert len(set(held) & set(other)) < 40  # about a tenth of a hundred by chance


def test_three_way_fractions_are_of_the_whole():
    labels = ["a", "b"] * 500
    texts = [str(i) for i in range(1000)]
    train, dev, test = stratified_three_way(texts, labels, seed=0)
    assert (len(train), len(dev), len(test)) == (800, 100, 100)
    for part in (train, dev, test):
        assert sum(labels[row] == "a" for row in part) * 2 == len(part)
    train, dev, test = stratified_three_way(texts, labels, seed=0, dev=0.0, test=0.25)
    assert (len(train), len(dev), len(test)) == (750, 0, 250)


def test_every_row_is_as_likely_to_be_held():
    texts, labels = [str(i) for i in range(20)], ["a", "b"] * 10
    times = np.zeros(20)
    for seed in range(400):
        times[stratified_holdout(texts, labels, 0.2, seed)[1]] += 1
    assert abs(times / 400 - 0.2).max() < 0.08  # four standard deviations


def test_copies_follow_and_count_once():
    texts = ["x"] * 50 + [str(i) for i in range(9)] + ["q"] * 2
    labels = ["a"] * 59 + ["b"] * 2
    sides = set()
    for seed in range(40):
        _, held = stratified_holdout(texts, labels, 0.2, seed)
        copies = sum(texts[row] == "x" for row in held)
        assert copies in (0, 50) and len(held) - copies in (1, 2)
        sides.add(copies)
    assert sides == {0, 50}


def test_copies_are_told_by_their_keys():
    words = [a + b for a in "abcdefgh" for b in "mnopqr"]
    texts = [*words, *map(str.upper, words)]
    labels = ["a", "b"] * len(words)
    for seed in range(5):
        for kept, *others in (
            stratified_holdout(texts, labels, 0.2, seed),
            stratified_three_way(texts, labels, seed, dev=0.2, test=0.2),
        ):
            sides = [{texts[row].lower() for row in rows} for rows in (kept, *others)]
            assert sum(map(len, sides)) == len(words) and all(sides)
    numbered = [f"zwin {row}" if row % 2 else f"khayb {row}" for row in range(40)]
    assert all(map(len, stratified_holdout(numbered, ["a", "b"] * 20, 0.1, 0)))
    assert all(map(len, stratified_three_way(numbered, ["a", "b"] * 20, 0, dev=0.1, test=0.1)))
    exact, _ = split_dataset(Dataset(texts, labels, range(len(texts))), profile="none")
    sides = [{text.lower() for _, text in rows} for rows in exact.values()]
    assert sum(map(len, sides)) > len(words), "as they are asked to be compared"


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 3), (2, 40), (2, 2, 2, 2, 5)])
def test_tiny_sets(sizes):
    labels = [str(c) for c, size in enumerate(sizes) for _ in range(size)]
    texts = [str(i) for i in range(len(labels))]
    for seed in range(10):
        kept, held = stratified_holdout(texts, labels, 0.1, seed)
        counts = Counter(labels[row] for row in kept)
        assert all(counts[str(c)] >= 2 for c in range(len(sizes)))
        # Something is held back as soon as a class has a text to spare.
        assert (len(held) > 0) == (max(sizes) > 2)


def test_a_class_that_lives_in_conflicts_only_is_kept():
    texts = [str(i) for i in range(20)] + ["0", "1"]
    labels = ["a"] * 20 + ["b", "b"]
    for seed in range(30):
        kept, _ = stratified_holdout(texts, labels, 0.8, seed)
        assert {"0", "1"} <= {texts[row] for row in kept}


def test_texts_with_two_labels_count_for_the_floor_of_each():
    texts = [f"only {k}" for k in range(4)] + [f"both {k}" for k in range(4) for _ in "aab"]
    labels = [*"aaaa", *"aab" * 4]
    for seed in range(8):
        kept, held = stratified_holdout(texts, labels, 0.7, seed)
        assert len(held) and len({texts[row] for row in kept if labels[row] == "b"}) >= 2


@pytest.mark.parametrize("fraction", [-0.1, 1, 1.5, float("nan")])
def test_impossible_fractions(fraction):
    with pytest.raises(ConfigError):
        stratified_holdout(["a"], ["x"], fraction, 0)
    with pytest.raises(ConfigError):
        stratified_three_way(["a"], ["x"], 0, dev=fraction, test=0.1)


def test_other_bad_input():
    with pytest.raises(ConfigError):
        stratified_three_way(["a"], ["x"], 0, dev=0.5, test=0.5)
    with pytest.raises(ConfigError):
        stratified_holdout(["a"], ["x"], 0.1, -1)
    with pytest.raises(DataError):
        stratified_holdout(["a"], ["x", "y"], 0.1, 0)


@given(st.lists(st.sampled_from("abcdef")), st.lists(st.sampled_from("abcdef")))
def test_deduplicate_and_leaks(texts, others):
    assert list(deduplicate(texts)) == [i for i, t in enumerate(texts) if t not in texts[:i]]
    assert list(leaks(texts, others)) == [i for i, t in enumerate(others) if t in texts]
    assert deduplicate(texts).dtype.kind == leaks(texts, others).dtype.kind == "i"


@given(corpora)
@settings(deadline=None)
def test_conflicting(pairs):
    texts, labels = [t for t, _ in pairs], [y for _, y in pairs]
    expected = 0
    for text in set(texts):
        expected += len({y for t, y in pairs if t == text}) > 1
    found = conflicting(texts, labels)
    assert len(found) == expected and all(len({texts[r] for r in rows}) == 1 for rows in found)


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


def test_rows_without_line_numbers_are_numbered_and_selected():
    rows = Dataset(["a", "b", "c"], ["x", "y", "x"])
    assert [*rows.lines] == [1, 2, 3]
    assert [*rows.select([2, 0]).lines] == [3, 1]


def test_another_repeat_is_another_deal():
    texts = [f"{word} number {k}" for k in range(20) for word in ("zwin", "khayb")]
    labels = ["good", "bad"] * 20
    deals = [stratified_folds(texts, labels, 5, seed=3, repeat=repeat) for repeat in range(3)]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        pairs = zip(deals[one], deals[other], strict=True)
        assert not any(np.array_equal(*pair) for pair in pairs)


def test_copies_with_two_labels_are_held_out_together_or_not_at_all():
    # The one text of class c is a text of class a too: held out, it would leave no row of c.
    texts = ["the same text", "the same text", *(f"text number {k} zwin" for k in range(12))]
    labels = ["a", "c", *(["a", "b"] * 6)]
    for seed in range(5):
        folds = stratified_folds(texts, labels, 4, seed)
        assert sorted(np.concatenate(folds)) == list(range(2, 14))


@pytest.mark.parametrize("seed", range(3))
def test_the_largest_remainders_get_what_is_left(seed):
    sizes, fraction = [18, 12, 13], 0.1  # 1.8, 1.2 and 1.3 texts, 4 in all
    assert quotas(sizes, fraction, np.random.RandomState(seed)) == [2, 1, 1]
    labels = [name for name, size in zip("abc", sizes, strict=True) for _ in range(size)]
    texts = [f"text number {k} zwin" for k in range(sum(sizes))]
    _, held = stratified_holdout(texts, labels, fraction, seed)
    assert sorted(labels[row] for row in held) == ["a", "a", "b", "c"]


def test_what_is_left_goes_to_classes_that_have_texts_to_spare():
    counts = quotas([2, 10, 10], 0.3, np.random.RandomState(0))
    assert counts[0] == 0 and sum(counts) == 7


def test_folds_are_stratified_by_class():
    labels = [*"ab" * 10, *"a" * 30]
    for held in stratified_folds([f"un {k}" for k in range(50)], labels, 5, 0):
        assert Counter(labels[row] for row in held) == {"a": 8, "b": 2}


def test_deduplicate_keeps_the_label_that_most_copies_have():
    words = [a + b for a in "bdhkl" for b in "aiou"]
    meant = {word: "pos" if n % 2 else "neg" for n, word in enumerate(words)}
    other = {"pos": "neg", "neg": "pos"}
    rows = [(label, word) for word, of in meant.items() for label in (other[of], of, of)]
    corpus = Dataset([word for _, word in rows], [label for label, _ in rows])
    parts, _ = split_dataset(corpus, 0.2, 0.2, deduplicate=True)
    assert {word: label for part in parts.values() for label, word in part} == meant


def test_a_text_counts_for_the_label_that_most_of_its_copies_have():
    # Each has a first copy of class c: by it all would be one class.
    texts = [f"text number {chr(97 + k)} zwin" for k in range(20) for _ in range(3)]
    labels = [label for k in range(20) for label in ("c", *("ab"[k % 2] * 2))]
    for seed in range(4):
        for held in stratified_folds(texts, labels, 5, seed):
            assert Counter(labels[row] for row in held) == {"a": 4, "b": 4, "c": 4}
        _, held = stratified_holdout(texts, labels, 0.2, seed)
        assert Counter(labels[row] for row in held) == {"a": 4, "b": 4, "c": 4}


def test_another_seed_deals_other_folds():
    texts, labels = [f"text number {chr(97 + k)} zwin" for k in range(20)], ["a", "b"] * 10
    deals = [stratified_folds(texts, labels, 5, seed) for seed in (0, 1)]
    assert not any(np.array_equal(*pair) for pair in zip(*deals, strict=True))


def test_the_seed_decides_which_of_equal_classes_gets_what_is_left():
    counts = [quotas([8, 8], 0.1, np.random.RandomState(seed)) for seed in range(20)]
    assert all(sum(of) == 2 for of in counts) and counts[0] == [1, 1]
    counts = [quotas([6, 6, 6], 0.1, np.random.RandomState(seed)) for seed in range(20)]
    assert {tuple(of) for of in counts} == {(1, 1, 0), (1, 0, 1), (0, 1, 1)}


def test_a_seed_that_is_too_large_is_told_as_one():
    with pytest.raises(ConfigError, match="seed is 4294967296"):
        stratified_holdout(["a"], ["x"], 0.1, 2**32)


def test_near_duplicates_are_those_of_the_keys():
    """Copies in capitals share no letters with their text as they stand."""
    draw = random.Random(5)
    words = ["".join(draw.choices("abdhiklmnrstwz", k=5)) for _ in range(300)]
    texts = [" ".join(draw.choices(words, k=20)) for _ in range(20)]
    texts += [text.upper() + " HH" for text in texts]
    parts, _ = split_dataset(Dataset(texts, ["x", "y"] * 20), 0.2, 0.2, near=True)
    sides = {name: {t.lower().removesuffix(" hh") for _, t in rows} for name, rows in parts.items()}
    assert crossing(sides) == []


def test_the_part_that_gets_no_text_is_named():
    few = Dataset(["a", "b", "c"], ["x", "x", "y"], [1, 2, 3], "few.tsv", "", [])
    with pytest.raises(DataError, match=r"in train and give test one, .*: set test to 0"):
        split_dataset(few, 0, 0.3)


def test_without_deduplication_none_is_recorded():
    assert split_dataset(make())[1]["deduplicated"] is None


@pytest.mark.parametrize("more", [[], ["zwin bzaf", "zwin kbir"]])
def test_texts_are_distinct_as_they_stand_where_a_part_would_be_empty(more):
    # All mentions are one: class b has three keys or one, and class a one.
    texts = [f"@u{row} zwin" if row % 2 else f"@u{row} khayb" for row in range(40)] + more
    labels = [*"ab" * 20, *"b" * len(more)]
    assert len(set(text_keys({"": texts})[0][""])) == 2 + len(more)
    for seed in range(4):
        assert all(map(len, stratified_holdout(texts, labels, 0.1, seed)))
        assert all(map(len, stratified_three_way(texts, labels, seed, dev=0.1, test=0.1)))


def test_in_place_of_a_text_that_must_be_kept_another_of_its_class_is_held():
    # Class b is in four texts of class a alone, and two of these stay.
    texts = [f"both {k}" for k in "abcd" for _ in "aab"] + [f"only {k}" for k in "abcdef"]
    labels = [*"aab" * 4, *"a" * 6]
    for seed in range(8):
        _, held = stratified_holdout(texts, labels, 0.5, seed)
        assert len({texts[row] for row in held}) == 5


def test_folds_that_would_hold_out_nothing_are_left_out():
    folds = stratified_folds([f"text number {k} zwin" for k in "abcd"], [*"aabb"], 10, 0)
    assert [len(held) for held in folds] == [1] * 4


@pytest.mark.parametrize("many", [1, 30_000])
def test_what_is_written_is_read_again_where_texts_begin_with_quotes(tmp_path, many):
    """As TSV these would be taken for quoted cells."""
    texts = ['"Elle a dit ""non"" hier soir"', '""', '"zwin" bzaf', "plain"]
    rows = [(f"c{k % 2}", text if k < 4 else f"{text} {k}") for k, text in enumerate(texts * many)]
    for number, kept in enumerate((rows[:1] + rows[3:], rows, rows[2:])):
        for form in ("tsv", "csv"):
            folder = tmp_path / f"{form}{number}"
            write_folder(folder, {"train": kept}, {}, form)
            read = read_labelled(folder / f"train.{form}")
            assert read.texts == [text for _, text in kept], (number, form)
