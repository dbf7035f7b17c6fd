"""Near-duplicates against every pair compared in a plain loop."""

from __future__ import annotations

import functools
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import ConfigError
from superconext.data.duplicates import near_duplicate_groups, near_duplicates

WORDS = [
    *("had", "lfilm", "zwin", "bzaf", "walakin", "khayb", "chwiya", "ana", "kanbghi"),
    *("الفيلم", "زوين", "بزاف", "والو", "هاد", "مزيان"),
]


@functools.cache
def grams(text):
    text = f" {text} "
    text += " " * (4 - len(text))
    return {text[i : i + 4] for i in range(len(text) - 3)}


def similarity(a, b):
    """Jaccard similarity of the sets of 4-grams, a blank at both ends."""
    return len(grams(a) & grams(b)) / len(grams(a) | grams(b))


def groups_by_hand(texts, threshold):
    """Components of the graph of similar pairs."""
    group = list(range(len(texts)))
    for i in range(len(texts)):
        for j in range(i):
            if similarity(texts[i], texts[j]) >= threshold:
                old, new = group[i], group[j]
                group = [new if g == old else g for g in group]
    members = [[i for i, g in enumerate(group) if g == name] for name in set(group)]
    return sorted((of for of in members if len(of) > 1), key=lambda of: (-len(of), of))


def corpus(count, seed):
    """Sentences, and for some of them one with a word more or a letter changed."""
    draw = random.Random(seed)
    texts = []
    while len(texts) < count:
        words = draw.choices(WORDS, k=draw.randint(4, 25))
        texts.append(" ".join(words))
        if draw.random() < 0.4:
            at = draw.randrange(len(words))
            words[at] = draw.choice(WORDS)
            texts.append(" ".join(words))
    draw.shuffle(texts)
    return list(dict.fromkeys(texts))


@pytest.mark.parametrize("threshold", [0.8, 0.9, 1.0])
def test_the_groups_are_those_of_all_pairs(threshold):
    texts = corpus(250, seed=int(threshold * 10))
    found = near_duplicates(texts, threshold)
    assert found.groups == groups_by_hand(texts, threshold)
    assert found.groups or threshold == 1.0
    for i, j, value in found.pairs:
        assert i < j and value == pytest.approx(similarity(texts[i], texts[j]))
    assert [value for *_, value in found.pairs] == sorted((p[2] for p in found.pairs), reverse=True)


@given(st.lists(st.text(max_size=12), max_size=12))
@settings(deadline=None, max_examples=60)
def test_there_is_never_a_false_alarm(texts):
    found = near_duplicates(texts)
    for i, j, value in found.pairs:
        assert value >= 0.8 and value == pytest.approx(similarity(texts[i], texts[j]))
    joined = {place for pair in found.pairs for place in pair[:2]}
    assert joined == {place for group in found.groups for place in group}


def test_copies_short_texts_and_lone_surrogates():
    assert near_duplicates(["a", "b", "a", ""]).groups == [[0, 2]]
    assert near_duplicates([]).groups == near_duplicates(["x"]).groups == []
    assert near_duplicates(["\ud800 salam", "\ud800 salam"]).groups == [[0, 1]]


def test_texts_have_the_number_of_their_group_and_copies_are_one():
    long, other = "had lfilm zwin bzaf walakin khayb chwiya", "الفيلم زوين بزاف والو هاد مزيان"
    keys = ["x", other, long, "y", f"{other}!", f"{long} a", "x", "z", f"{long} b", "w", "w"]
    assert near_duplicate_groups(keys).tolist() == [2, 1, 0, -1, 1, 0, 2, -1, 0, 3, 3]
    assert near_duplicate_groups(["y", "z"]).tolist() == [-1, -1]


@pytest.mark.parametrize("threshold", [0.5, 0, 1.01, -1])
def test_impossible_thresholds(threshold):
    with pytest.raises(ConfigError, match=r"expected more than 0.5 and at most 1"):
        near_duplicates(["a", "b"], threshold)


def test_the_same_texts_give_the_same_answer_and_progress_ends_at_one():
    texts, shares = corpus(100, seed=3), []
    assert near_duplicates(texts, progress=shares.append) == near_duplicates(texts)
    assert shares[-1] == 1.0 and shares == sorted(shares)


def test_a_crowd_of_equal_beginnings_takes_no_square_time():
    """Six thousand texts that all are near-duplicates: every pair would take hours."""
    texts = [f"{'zwin bzaf had lfilm ' * 6}{number}" for number in range(6_000)]
    began = time.process_time()
    found = near_duplicates(texts)
    assert time.process_time() - began < 15
    assert len(found.groups) == 1 and len(found.groups[0]) == len(texts)


def template(count):
    """Texts of one template, so that each is 0.6 alike to all and 0.8 to some."""
    draw = random.Random(1)
    towns = ["".join(draw.choice("abcdefghijklmnop") for _ in range(6)) for _ in range(20)]
    return list(
        dict.fromkeys(
            f"your order number {draw.randrange(10**4)} has been shipped to {draw.choice(towns)} "
            f"and will arrive on day {draw.randrange(30)} of the month"
            for _ in range(count)
        )
    )


def test_few_of_many_texts_of_one_template_are_missed():
    texts = template(700)
    expected = groups_by_hand(texts, 0.8)
    found = near_duplicates(texts, 0.8).groups
    alike = sum(map(len, expected))
    assert alike > 600 and sum(map(len, found)) >= 0.98 * alike
    assert len(found[0]) >= 0.9 * len(max(expected, key=len))
