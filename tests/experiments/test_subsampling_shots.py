"""Draws of a few rows of each class: as many as asked for, nested, never twice a text."""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import DataError
from superconext.experiments.plan import Fit, cut
from superconext.experiments.subsampling import (
    Draw,
    draw_of,
    draw_rows,
    expected_overlap,
)
from superconext.experiments.systems import plain


def draw_shots(texts, labels, shots, seed, *, dev):
    return draw_rows((texts, labels), Draw("shots", shots), seed, dev=dev)


def pool(sizes, copies=0):
    rows = [(f"{label} {k}", label) for label, size in sizes.items() for k in range(size)]
    rows += rows[:copies]
    return [text for text, _ in rows], [label for _, label in rows]


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(12, 40), min_size=2, max_size=4),
    shots=st.integers(2, 6),
    seed=st.integers(0, 1000),
    copies=st.integers(0, 10),
)
def test_every_class_gives_its_shots_and_no_text_comes_twice(sizes, shots, seed, copies):
    texts, labels = pool(dict(zip("abcd", sizes, strict=False)), copies)
    train, dev = draw_shots(texts, labels, shots, seed, dev=True)
    for rows in (train, dev):
        assert Counter(labels[row] for row in rows) == dict.fromkeys(set(labels), shots)
    drawn = [texts[row] for row in [*train, *dev]]
    assert len(set(drawn)) == len(drawn)
    assert train.tolist() == sorted(train) and dev.tolist() == sorted(dev)
    fewer, fewer_dev = draw_shots(texts, labels, shots - 1, seed, dev=True)
    assert set(fewer) < set(train) and set(fewer_dev) < set(dev)
    alone, none = draw_shots(texts, labels, shots, seed, dev=False)
    assert set(alone) == set(train) and len(none) == 0


def test_seeds_draw_other_rows_and_the_same_ones_again():
    texts, labels = pool({"a": 30, "b": 30})
    draws = [tuple(draw_shots(texts, labels, 4, seed, dev=False)[0]) for seed in range(5)]
    assert len(set(draws)) == 5
    assert draws[3] == tuple(draw_shots(texts, labels, 4, 3, dev=False)[0])


def test_the_rows_of_a_seed_never_change():
    texts, labels = pool({"a": 10, "b": 10})
    train, dev = draw_shots(texts, labels, 2, 0, dev=True)
    order = [np.random.RandomState([0, k]).permutation(10) + 10 * k for k in (0, 1)]
    assert set(train) == {*order[0][:2], *order[1][:2]}
    assert set(dev) == {*order[0][-2:], *order[1][-2:]}


def test_a_text_with_two_labels_is_never_drawn():
    texts, labels = pool({"a": 5, "b": 5})
    texts, labels = ["both", *texts, "both"], ["a", *labels, "b"]
    train, _ = draw_shots(texts, labels, 5, 0, dev=False)
    assert "both" not in {texts[row] for row in train} and len(train) == 10
    with pytest.raises(DataError, match="class 'a' has 5 distinct texts"):
        draw_shots(texts, labels, 6, 0, dev=False)


def test_too_few_rows_say_what_would_help():
    texts, labels = pool({"a": 20, "b": 7})
    with pytest.raises(DataError, match=r"'b' has 7 .*expected 8 for 4 shots and as many.*--dev"):
        draw_shots(texts, labels, 4, 0, dev=True)
    draw_shots(texts, labels, 4, 0, dev=False)
    # Dev rows of their own leave 15 for the first class, and 7 are too few for the second.
    with pytest.raises(DataError, match=r"'a' has 20 .*expected 30 .*: draw fewer$"):
        draw_shots(texts, labels, 15, 0, dev=True)


def test_overlap_is_what_draws_share_on_average():
    texts, labels = pool({"a": 20, "b": 10})
    expected = expected_overlap((texts, labels), Draw("shots", 5))
    assert expected == pytest.approx((5 / 20 + 5 / 10) / 2)
    draws = [set(draw_shots(texts, labels, 5, seed, dev=False)[0]) for seed in range(300)]
    shared = [len(x & y) / 10 for x, y in itertools.pairwise(draws)]
    assert np.mean(shared) == pytest.approx(expected, abs=0.03)


def test_cut_draws_dev_only_where_there_is_none():
    train, test = pool({"a": 20, "b": 20}), (["t1", "t2"], ["a", "b"])
    fit = Fit(plain("superloss"), 3, "shots4-3")
    parts = cut({"train": train, "test": test}, fit)
    assert {name: len(texts) for name, (texts, _) in parts.items()} == {
        "train": 8, "dev": 8, "test": 2
    }  # fmt: skip
    given = cut({"train": train, "dev": (["d"], ["a"]), "test": test}, fit)
    assert given["dev"] == (["d"], ["a"]) and given["train"] == parts["train"]


def test_split_names():
    assert draw_of("shots16-2") == Draw("shots", 16)
    assert all(draw_of(name) is None for name in ("given", "dev-3", "resampled-1"))
