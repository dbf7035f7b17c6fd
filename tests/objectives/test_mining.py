"""Hard negatives: the three readings of the paper, their agreement and their fallbacks."""

import math

import numpy as np
import pytest
import torch

from superconext.core.errors import ConfigError
from superconext.objectives.superloss import Miner, Tally


def similarities(n=12, classes=3, seed=0):
    vectors = torch.from_numpy(np.random.default_rng(seed).standard_normal((n, 4)))
    vectors = vectors / vectors.norm(dim=1, keepdim=True)
    labels = torch.arange(n) % classes
    return vectors @ vectors.T, labels[:, None] != labels[None, :]


EVERYTHING = [Miner("none"), Miner("threshold", -1.0), Miner("quantile", 1.0), Miner("topk", 999)]


@pytest.mark.parametrize("miner", EVERYTHING, ids=lambda m: m.mode)
def test_modes_agree_where_everything_is_kept(miner):
    cosine, negative = similarities()
    cosine[0, 1] = -1.0000001  # what rounding makes of opposite vectors
    kept, report = miner.select(cosine, negative)
    assert torch.equal(kept, negative)
    assert report == {"kept": 1.0, "kept_per_anchor": 8.0, "fallback": 0.0}


@pytest.mark.parametrize("level", [-0.5, 0.0, 0.3])
def test_threshold_keeps_what_exceeds_it(level):
    cosine, negative = similarities()
    kept, _ = Miner("threshold", level, fallback="skip").select(cosine, negative)
    for i in range(12):
        for j in range(12):
            assert bool(kept[i, j]) == (bool(negative[i, j]) and float(cosine[i, j]) > level)


@pytest.mark.parametrize(
    ("miner", "count"),
    [
        (Miner("topk", 3), 3),
        (Miner("topk", 1), 1),
        (Miner("quantile", 0.25), 2),
        (Miner("quantile", 0.1), 1),
        (Miner("quantile", 0.3), 3),  # ceil(8 * 0.3)
    ],
)
def test_topk_and_quantile_keep_the_most_similar(miner, count):
    cosine, negative = similarities()
    kept, report = miner.select(cosine, negative)
    for i in range(12):
        others = sorted((j for j in range(12) if negative[i, j]), key=lambda j: -cosine[i, j])
        assert set(np.flatnonzero(kept[i])) == set(others[:count])
    assert report["kept_per_anchor"] == count


@pytest.mark.parametrize(("fallback", "count"), [("hardest", 1), ("all", 8), ("skip", 0)])
def test_fallback_when_nothing_passes(fallback, count):
    cosine, negative = similarities()
    kept, report = Miner("threshold", 2.0, fallback=fallback).select(cosine, negative)
    assert kept.sum(dim=1).tolist() == [count] * 12
    assert not (kept & ~negative).any()
    assert report["fallback"] == 1.0


def test_upper_cut_drops_the_suspiciously_similar():
    cosine, negative = similarities()
    kept, _ = Miner("threshold", -1.0, max_similarity=0.2, fallback="skip").select(cosine, negative)
    assert torch.equal(kept, negative & (cosine <= 0.2))


def test_a_batch_of_one_class_has_nothing_to_mine():
    cosine, _ = similarities()
    none = torch.zeros_like(cosine, dtype=torch.bool)
    for miner in (Miner("threshold", 0.5), Miner("topk", 3), Miner("quantile", 0.5)):
        kept, report = miner.select(cosine, none)
        assert not kept.any() and report["fallback"] == 0.0


def test_uneven_numbers_of_negatives():
    labels = torch.tensor([0, 0, 0, 0, 0, 1])
    negative = labels[:, None] != labels[None, :]
    cosine, _ = similarities(6)
    kept, _ = Miner("topk", 3).select(cosine, negative)
    assert kept.sum(dim=1).tolist() == [1, 1, 1, 1, 1, 3]


@pytest.mark.parametrize(("mode", "level"), [("topk", 1), ("quantile", 0.3), ("threshold", 0.6)])
def test_no_fallback_takes_what_is_too_similar(mode, level):
    cosine = torch.tensor([[1.0, 0.97, 0.5, 0.3], [1.0, 0.97, 0.99, 0.96]])
    negative = torch.tensor([[False, True, True, True]] * 2)
    expected = {"hardest": [2], "all": [2, 3], "skip": []}
    for fallback, columns in expected.items():
        for mask in (negative, None):
            kept, _ = Miner(mode, level, 0.0, 0.95, fallback).select(cosine, negative)
            if mask is None:  # as where every row of a chunk is a negative
                miner = Miner(mode, level, 0.0, 0.95, fallback)
                kept = miner.choose(cosine[:, 1:], None, Tally())
                kept = torch.cat([torch.zeros(2, 1, dtype=torch.bool), kept], dim=1)
            assert kept[0].nonzero()[:, 0].tolist() == columns
            assert not kept[1].any()


@pytest.mark.parametrize("warmup", [0.0, 1 / 3, 0.5, 1.0])
def test_warmup_is_a_share_of_the_epochs(warmup):
    miner = Miner("topk", 1, warmup)
    active = [miner.active(epoch, 15) for epoch in range(15)]
    assert active == [epoch >= math.ceil(15 * warmup) for epoch in range(15)]
    assert not Miner("none", warmup=0.0).active(14, 15)


@pytest.mark.parametrize("miner", [("topk", 0.5), ("quantile", 0.0), ("quantile", 1.5)])
def test_impossible_levels_are_refused(miner):
    with pytest.raises(ConfigError, match=r"mining_threshold = .* expected"):
        Miner(*miner)


@pytest.mark.parametrize("columns", [16, 333, 1200])  # from 16 on, blocks are looked at first
@pytest.mark.parametrize("distinct", [3, 40, 10_000])  # values: few make ties
@pytest.mark.parametrize("masked", [False, True])
def test_the_most_similar_of_many(columns, distinct, masked):
    draw = torch.Generator().manual_seed(columns + distinct)
    cosine = torch.randint(distinct, (5, columns), generator=draw).float() / distinct * 2 - 1
    negative = torch.rand(5, columns, generator=draw) < 0.7 if masked else None
    kept = Miner("topk", 4.0, 0.0).choose(cosine, negative, Tally())
    for i in range(5):
        among = [j for j in range(columns) if negative is None or negative[i, j]]
        hardest = sorted(among, key=lambda j: (-float(cosine[i, j]), j))[:4]
        assert torch.nonzero(kept[i])[:, 0].tolist() == sorted(hardest)
