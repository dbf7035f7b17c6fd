"""Packed tokens: where they stand, how they are turned, padded and surrounded; dropout; pooling."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.encoders.base import token_groups
from superconext.encoders.layers import POOLING, Dropout, drop
from superconext.encoders.packed_inference import PACKED_POOLING
from superconext.encoders.packed_lstm import Packing, align, surround

torch.set_num_threads(1)

LENGTHS = st.lists(st.integers(1, 9), min_size=1, max_size=12).map(np.array)


def places(lengths):
    """By hand: (sentence, token) of each packed token."""
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    return [(i, t) for t in range(max(lengths)) for i in order if t < lengths[i]]


@settings(max_examples=50, deadline=None)
@given(LENGTHS)
def test_every_token_has_its_place(lengths):
    packing, expected = Packing(lengths), places(lengths)
    found = list(zip(packing.order[packing.row].tolist(), packing.time.tolist(), strict=True))
    assert found == expected and len(packing) == lengths.sum()
    assert packing.steps == [int((lengths > t).sum()) for t in range(lengths.max())]
    assert [expected[p] for p in packing.reversed.tolist()] == [
        (i, lengths[i] - 1 - t) for i, t in expected
    ]
    last = packing.last[packing.back].tolist()
    assert [expected[p] for p in last] == [(i, n - 1) for i, n in enumerate(lengths)]


@settings(max_examples=30, deadline=None)
@given(LENGTHS)
def test_padding_puts_every_token_in_its_sentence(lengths):
    packing, states = Packing(lengths), torch.arange(2.0 * lengths.sum()).view(-1, 2) + 1
    padded = packing.pad(states)
    expected = torch.zeros(len(lengths), int(lengths.max()), 2)
    for p, (i, t) in enumerate(places(lengths)):
        expected[i, t] = states[p]
    assert torch.equal(padded, expected)
    turned, half = align(states, packing), packing.reversed
    assert torch.equal(turned[:, 0], states[:, 0]) and torch.equal(turned[:, 1], states[half, 1])


@settings(max_examples=30, deadline=None)
@given(LENGTHS, st.integers(1, 3), st.randoms())
def test_surrounding_mirrors_the_extra_tokens(lengths, count, random):
    packing = Packing(lengths)
    extra = np.array([random.sample(range(count), count) for _ in lengths])
    outer, source = surround(packing, extra)
    assert (outer.order == packing.order).all()
    names = [f"{i}.{t}" for i, t in places(lengths)] + [f"extra {k}" for k in range(count)]
    read = {(i, t): names[s] for (i, t), s in zip(places(lengths + 2 * count), source, strict=True)}
    for row, i in enumerate(packing.order):
        front = [f"extra {k}" for k in extra[row]]
        words = [f"{i}.{t}" for t in range(lengths[i])]
        expected = front + words + front[::-1]
        assert [read[i, t] for t in range(len(expected))] == expected


@pytest.mark.parametrize("pooling", list(POOLING))
def test_pooling_is_that_of_padded_states(pooling):
    lengths = np.array([3, 1, 6, 6, 2])
    packing = Packing(lengths)
    torch.manual_seed(0)
    packed = torch.randn(len(packing), 4, dtype=torch.float64)
    packed[3] = packed[0]  # a tie, whose gradient is shared
    one, other = packed.clone().requires_grad_(), packed.clone().requires_grad_()
    found = PACKED_POOLING[pooling](one, packing)
    mask = torch.arange(6)[None, :] < torch.from_numpy(lengths)[:, None]
    expected = POOLING[pooling](packing.pad(align(other, packing)), mask)
    weights = torch.randn_like(found)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert torch.allclose(found, expected) and torch.allclose(one.grad, other.grad)


def test_token_groups_hold_every_position_once_and_bound_the_tokens():
    lengths = np.random.default_rng(0).integers(1, 50, 200)
    groups = token_groups(lengths, 300)
    assert sorted(np.concatenate(groups)) == list(range(200))
    assert all(lengths[group].sum() <= 300 + 49 for group in groups) and len(groups) > 10
    assert [len(group) for group in token_groups(lengths)] == [200]
    assert len(token_groups(np.array([40, 40]), 5)) == 2


def test_dropout_keeps_the_mean_and_the_share():
    torch.manual_seed(3)
    layer, x = Dropout(0.3), torch.ones(400, 500)
    result = layer(x)
    kept = result != 0
    assert float((~kept).float().mean()) == pytest.approx(0.3, abs=0.005)
    assert float(result.mean()) == pytest.approx(1.0, abs=0.01)
    assert len(result[kept].unique()) == 1
    # Independent from element to element: a row's share scatters as a binomial one.
    spread = kept.float().mean(dim=1).std()
    assert float(spread) == pytest.approx((0.3 * 0.7 / 500) ** 0.5, rel=0.15)
    assert torch.equal(layer.eval()(x), x) and torch.equal(Dropout(0.0)(x), x)
    assert Dropout(0.999995)(x).isfinite().all()


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 5), (7, 1, 3)])
def test_dropout_follows_from_torchs_random_state(shape):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    x = torch.ones(shape, dtype=torch.float64)
    first, second = drop(x, 0.5), drop(x, 0.5)
    torch.set_rng_state(state)
    again = drop(x, 0.5)
    assert torch.equal(first, again) and first.shape == shape and first.dtype == torch.float64
    assert first.numel() < 10 or not torch.equal(first, second)


@pytest.mark.parametrize("pooling", list(POOLING))
def test_dropout_on_the_way_to_the_pool_is_dropout_of_the_states(pooling):
    """The random bits are known from torch's state, so the dropped states can be made by hand."""
    packing = Packing(np.array([4, 1, 7, 7, 2]))
    torch.manual_seed(0)
    packed = torch.randn(len(packing), 6, dtype=torch.float64)
    one, other = packed.clone().requires_grad_(), packed.clone().requires_grad_()
    torch.manual_seed(1)
    found = PACKED_POOLING[pooling](one, packing, 0.4)
    torch.manual_seed(1)
    if pooling == "last":
        expected = drop(PACKED_POOLING[pooling](other, packing, 0.0), 0.4)
    else:
        expected = PACKED_POOLING[pooling](drop(other, 0.4), packing, 0.0)
    weights = torch.randn_like(found)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert torch.allclose(found, expected)
    assert float((found != PACKED_POOLING[pooling](packed, packing, 0.0)).float().mean()) > 0.3
    assert torch.allclose(one.grad, other.grad)
