"""Batches: the same number of every class, coverage, and nothing hidden in state."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import DataError
from superconext.data.sampler import BalancedBatches, ShuffledBatches

SIZES = st.lists(st.integers(1, 40), min_size=2, max_size=12)


def labels_of(sizes, seed=0):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    return np.random.default_rng(seed).permutation(labels)


@settings(max_examples=80, deadline=None)
@given(sizes=SIZES, batch_size=st.integers(4, 60), seed=st.integers(0, 9), epoch=st.integers(0, 3))
def test_every_batch_is_balanced_and_every_row_is_seen(sizes, batch_size, seed, epoch):
    labels = labels_of(sizes)
    sampler = BalancedBatches(labels, batch_size, seed=seed)
    batches = list(sampler.epoch(epoch))
    assert len(batches) == sampler.steps
    for rows in batches:
        present, counts = np.unique(labels[rows], return_counts=True)
        assert len(present) == min(len(sizes), max(2, batch_size // 2))
        assert set(counts) == {max(2, batch_size // len(present))}
        assert len(rows) <= max(batch_size, 4)
    assert set(np.concatenate(batches)) == set(range(len(labels)))


@settings(max_examples=40, deadline=None)
@given(sizes=SIZES, batch_size=st.integers(4, 30), seed=st.integers(0, 9))
def test_short_epochs_still_see_every_row_before_repeating(sizes, batch_size, seed):
    labels = labels_of(sizes)
    sampler = BalancedBatches(labels, batch_size, steps_per_epoch=1, seed=seed)
    drawn = {k: [] for k in range(len(sizes))}
    epochs = 4 * len(labels)
    for epoch in range(epochs):
        for rows in sampler.epoch(epoch):
            for row in rows:
                drawn[int(labels[row])].append(int(row))
    for k, size in enumerate(sizes):
        if size <= sampler.rows_per_class:
            continue  # each draw is a whole pass and more
        passes = [drawn[k][i : i + size] for i in range(0, len(drawn[k]) - size + 1, size)]
        assert passes and all(len(set(rows)) == size for rows in passes)


def test_epoch_length_covers_the_largest_class():
    sampler = BalancedBatches(labels_of([90, 30, 45]), 30)
    assert sampler.rows_per_class == 10 and sampler.steps == 9
    assert BalancedBatches(labels_of([151, 30]), 30).steps == math.ceil(151 / 15)
    assert BalancedBatches(labels_of([9, 4]), 30).steps == 8, "few rows still make eight batches"
    assert BalancedBatches(labels_of([91, 30]), 30, steps_per_epoch=4).steps == 4


def test_no_row_twice_in_a_batch_where_the_class_is_large_enough():
    sampler = BalancedBatches(labels_of([40, 60]), 40)
    for epoch in range(5):
        for number, rows in enumerate(sampler.epoch(epoch)):
            large = rows[np.isin(rows, sampler.members[1])]
            assert len(set(large)) == len(large), (epoch, number)


def test_more_classes_than_half_the_batch_rotate_evenly():
    labels = labels_of([5] * 50)
    sampler = BalancedBatches(labels, 20)
    visits = np.zeros(50)
    pairs = set()
    for epoch in range(10):
        for rows in sampler.epoch(epoch):
            classes = np.unique(labels[rows])
            visits[classes] += 1
            pairs |= {(a, b) for a in classes for b in classes}
    assert visits.max() - visits.min() <= 10
    assert len(pairs) > 2000, "classes should meet in changing company"


def test_same_seed_same_batches_in_any_order_of_asking():
    labels = labels_of([30, 7, 19])
    first = BalancedBatches(labels, 12, steps_per_epoch=3, seed=4)
    second = BalancedBatches(labels, 12, steps_per_epoch=3, seed=4)
    wanted = [np.concatenate(list(first.epoch(e))) for e in range(6)]
    for epoch in (5, 0, 3, 5):
        assert np.array_equal(np.concatenate(list(second.epoch(epoch))), wanted[epoch])
    other = BalancedBatches(labels, 12, steps_per_epoch=3, seed=5)
    assert not np.array_equal(np.concatenate(list(other.epoch(0))), wanted[0])
    assert not np.array_equal(wanted[0], wanted[1])


@pytest.mark.parametrize("labels", [[0, 0, 0], [0, 0, 2, 2]])
def test_refuses_what_cannot_be_balanced(labels):
    with pytest.raises(DataError, match="at least two"):
        BalancedBatches(np.array(labels), 8)


@pytest.mark.parametrize(("rows", "size"), [(10, 3), (9, 3), (2, 64), (1, 4)])
def test_shuffled_batches_see_every_row_once(rows, size):
    sampler = ShuffledBatches(rows, size, seed=1)
    batches = list(sampler.epoch(2))
    assert len(batches) == sampler.steps == math.ceil(rows / min(size, rows))
    assert sorted(np.concatenate(batches)) == list(range(rows))


def test_shuffled_batches_go_on_across_short_epochs():
    sampler = ShuffledBatches(10, 2, steps_per_epoch=2)
    seen = [row for epoch in range(5) for rows in sampler.epoch(epoch) for row in rows]
    assert sorted(seen[:10]) == sorted(seen[10:]) == list(range(10))


def test_order_is_that_of_numpys_permutation():
    # Runs of earlier versions are gone on with, so the order is part of the contract.
    expected = [np.random.default_rng([5, 3, k]).permutation(11) for k in range(2)]
    sampler = ShuffledBatches(11, 4, seed=5)
    for k, order in enumerate(expected):
        found = np.concatenate(list(sampler.epoch(k)))
        assert found.dtype == np.int64 and np.array_equal(found, order)
    labels = np.repeat([0, 1], [9, 7])
    batches = np.stack(list(BalancedBatches(labels, 2 * 7, 1, seed=5).epoch(0)))
    assert batches.dtype == np.int64
    assert np.array_equal(batches[0, :7], np.random.default_rng([5, 2, 0, 0]).permutation(9)[:7])
    assert np.array_equal(batches[0, 7:], 9 + np.random.default_rng([5, 2, 1, 0]).permutation(7))


@pytest.mark.parametrize("steps", [3, None])
def test_every_pass_over_a_class_has_an_order_of_its_own(steps):
    labels = np.repeat([0, 1], 30)
    # Three batches of ten rows a class are one pass; unset, eight batches are two and a part.
    sampler = BalancedBatches(labels, 20, steps, seed=5)
    for k in range(2):
        drawn = [
            np.concatenate([rows[labels[rows] == k] for rows in sampler.epoch(epoch)])
            for epoch in range(4)
        ]
        passes = [part[i : i + 30] for part in drawn for i in range(0, len(part) - 29, 30)]
        assert len(passes) == (4 if steps else 8)
        assert all(sorted(order) == list(range(30 * k, 30 * k + 30)) for order in passes)
        assert len({tuple(order) for order in passes}) == len(passes)
        # Runs of earlier versions are gone on with, so the orders are part of the contract.
        numbers = range(4) if steps else [0, 1, 3, 4, 6, 7, 9, 10]
        for number, order in zip(numbers, passes, strict=True):
            expected = np.random.default_rng([5, 2, k, number]).permutation(30)
            assert np.array_equal(order, 30 * k + expected)


def test_another_seed_brings_other_classes_together():
    labels = np.repeat(np.arange(50), 5)
    met = []
    for seed in (0, 1, 2):
        batches = BalancedBatches(labels, 20, seed=seed).epoch(0)
        met.append([frozenset(labels[rows].tolist()) for rows in batches])
    assert met[0] != met[1] and met[1] != met[2] and met[0] != met[2]
