"""Copies: what the profile says is one text, which copy stays and under which label."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superconext.core.errors import ConfigError, DataError
from superconext.data.duplicates import (
    SeenTexts,
    first_copies,
    key_of_words,
    text_keys,
    told_conflicting,
    without_copies,
)
from superconext.text.normalize import Normalizer

pairs = st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("xyz")), max_size=30)


def test_keys_follow_the_profile():
    texts = ["Bravooooo", "bravoo", "شكرااا", "شكراا", "@ali salam", "@nour SALAM"]
    keys, profile = text_keys({"a": texts[:3], "b": texts[3:]})
    assert profile == "arabic"
    flat = [*keys["a"], *keys["b"]]
    assert flat == [Normalizer("arabic")(text) for text in texts]
    assert flat[0] == flat[1] and flat[2] == flat[3] and flat[4] == flat[5]
    exact, _ = text_keys({"a": texts}, "none")
    assert exact["a"] == texts
    with pytest.raises(ConfigError):
        text_keys({"a": texts}, "greek")


def test_a_text_of_which_nothing_is_left_is_its_own():
    marks = ["\u200f", "\u200e"]
    assert Normalizer("arabic")(marks[0]) == ""
    keys, _ = text_keys({"a": [*marks, marks[0]]}, "arabic")
    assert keys["a"] == [*marks, marks[0]]


def test_words_alone_are_a_key_and_a_text_of_placeholders_is_its_own():
    assert key_of_words("Zwin  @ali", ["zwin", "<user>"]) == "zwin <user>"
    assert key_of_words("@ali", ["<user>"]) == "@ali" and key_of_words("!", []) == "!"


@given(pairs)
def test_the_first_copy_stays_under_the_most_frequent_label(rows):
    keys, labels = [key for key, _ in rows], [label for _, label in rows]
    kept, voted = first_copies(keys, labels)
    seen = []
    for row, key in enumerate(keys):
        if key in keys[:row]:
            continue
        of = [label for other, label in rows if other == key]
        most = max(Counter(of).values())
        winner = next(label for label in of if of.count(label) == most)
        seen.append((row, winner))
    assert list(zip(kept.tolist(), voted, strict=True)) == seen


def test_unequal_lengths_are_refused():
    with pytest.raises(DataError, match="2 texts and 1 labels"):
        first_copies(["a", "b"], ["x"])


@given(pairs, pairs, pairs)
def test_every_text_stands_once_and_in_the_last_part_that_had_it(train, dev, test):
    parts = {"train": train, "dev": dev, "test": test}
    keys = {name: [key for key, _ in rows] for name, rows in parts.items()}
    labels = {name: [label for _, label in rows] for name, rows in parts.items()}
    kept = without_copies(keys, labels)
    assert list(kept) == ["train", "dev", "test"]
    left = [keys[name][row] for name, (rows, _) in kept.items() for row in rows]
    assert sorted(left) == sorted(set(left)) == sorted({key for of in keys.values() for key in of})
    assert {keys["test"][row] for row in kept["test"][0]} == set(keys["test"])
    assert not {keys["train"][row] for row in kept["train"][0]} & {*keys["dev"], *keys["test"]}
    assert all(len(rows) == len(voted) for rows, voted in kept.values())
    everywhere = [*train, *dev, *test]
    for name, (rows, voted) in kept.items():
        for row, label in zip(rows, voted, strict=True):
            counts = Counter(of for key, of in everywhere if key == keys[name][row])
            assert counts[label] == max(counts.values())


def test_of_labels_that_are_equally_frequent_that_of_the_last_part_stays():
    keys = {"train": ["a", "b", "b"], "test": ["a", "b"]}
    kept = without_copies(keys, {"train": ["x", "x", "x"], "test": ["y", "y"]})
    assert kept["test"][1] == ["y", "x"] and kept["train"][1] == []


def test_a_text_that_was_seen_is_told_with_its_first_split():
    seen = SeenTexts.of({"train": [["a"], ["b"]], "dev": [["b"], ["c", "d"], ["<url>"]]})
    asked = [["b"], ["c", "d"], ["a"], ["c"], ["<url>"], []]
    found = ["train", "dev", "train", None, None, None]
    assert seen.split_of(asked) == found
    assert SeenTexts.from_arrays(seen.arrays()).split_of(asked) == found


def test_texts_of_placeholders_alone_are_not_one():
    texts = ["@ali", "@nour", "https://a.example", "@ali https://b.example"]
    assert text_keys({"a": texts}, "arabic")[0]["a"] == texts


def test_texts_with_several_labels_are_told_with_the_lines_of_two_that_differ():
    texts = ["Zwin bzaf", "zwin bzaf", "khayb", "ZWIN BZAF", "mzyan"]
    told = told_conflicting(texts, [*"aacbc"], [2, 3, 5, 7, 8], "on lines")
    assert told == "1 text has several labels, as on lines 2 and 7"
    assert told_conflicting(texts, [*"aacac"], [2, 3, 5, 7, 8], "on lines") == ""


def test_no_hash_of_a_text_is_the_same_in_two_runs():
    """Else whoever has two runs would know which texts they share."""
    one, other = (SeenTexts.of({"train": [["a"], ["b"], [more]]}) for more in ("c", "d"))
    assert len(one.splits["train"]) == 3 and one.key != other.key
    assert not np.intersect1d(one.splits["train"], other.splits["train"]).size


@pytest.mark.parametrize(
    "wrong",
    [
        {"train": np.array([2, 2], np.uint64)},
        {"test": np.array([2, 3], np.uint64)},
        {"key": np.zeros(17, np.uint8)},
    ],
)
def test_arrays_that_are_no_hashes_are_refused(wrong):
    arrays = {"key": np.zeros(16, np.uint8), "train": np.array([2, 3], np.uint64)}
    assert list(SeenTexts.from_arrays(arrays).splits) == ["train"]
    with pytest.raises(ValueError, match="texts"):
        SeenTexts.from_arrays(arrays | wrong)
