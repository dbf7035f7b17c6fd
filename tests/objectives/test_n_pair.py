"""N-pair loss: the tuple sets it makes of a batch, and the loss against loops."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import ConfigError
from superconext.objectives.supcon import NPair, NPairOptions, tuple_sets
from tests.objectives.batches import COMPOSITIONS, build, make_batch, random_vectors
from tests.objectives.oracles import n_pair as oracle


def sets(labels, ids=None):
    """The tuple sets as lists of (anchor, positive), in order."""
    ids = range(len(labels)) if ids is None else ids
    anchor, positive, number = tuple_sets(torch.tensor(labels), torch.tensor(list(ids)))
    found = {}
    for a, p, t in zip(anchor.tolist(), positive.tolist(), number.tolist(), strict=True):
        found.setdefault(t, []).append((a, p))
    return [found[t] for t in sorted(found)]


@settings(max_examples=100, deadline=None)
@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    data=st.data(),
)
def test_every_possible_pair_is_made_once(labels, data):
    ids = data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, max_size=25))
    drawn = [labels[row] for row in ids]
    found = sets(drawn, ids)
    used = [row for tuples in found for pair in tuples for row in pair]
    assert len(used) == len(set(used))
    for tuples in found:
        assert all(drawn[a] == drawn[p] and ids[a] != ids[p] for a, p in tuples)
        classes = [drawn[a] for a, _ in tuples]
        assert len(set(classes)) == len(classes) >= 2
    # A class gives as many pairs as its size and its most repeated row allow.
    possible = {}
    for k in set(drawn):
        members = [row for row, label in zip(ids, drawn, strict=True) if label == k]
        most = max(Counter(members).values())
        possible[k] = min(len(members) // 2, len(members) - most)
    sizes = [sum(count > t for count in possible.values()) for t in range(25)]
    assert [len(tuples) for tuples in found] == [size for size in sizes if size >= 2]


def test_the_whole_batch_is_used():
    labels = [0] * 10 + [1] * 10
    vectors = random_vectors(20).requires_grad_()
    assert [len(tuples) for tuples in sets(labels)] == [2] * 5
    NPair()(make_batch(vectors, labels))[0].backward()
    assert bool((vectors.grad.abs().sum(dim=1) > 0).all())


@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_equals_the_definition(labels, temperature):
    vectors = random_vectors(len(labels))
    loss, _ = NPair(temperature)(make_batch(vectors, labels))
    expected = oracle(vectors.numpy(), sets(labels), temperature)
    assert float(loss) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_inner_products_without_temperature_and_with_a_norm_penalty():
    vectors = random_vectors(4)
    loss, _ = NPair(0.1, NPairOptions(normalise=False, l2=0.5))(make_batch(vectors, [0, 0, 1, 1]))
    (((a, p), (b, q)),) = sets([0, 0, 1, 1])
    dot = (vectors @ vectors.T).tolist()
    expected = (
        math.log(1 + math.exp(dot[a][q] - dot[a][p]))
        + math.log(1 + math.exp(dot[b][p] - dot[b][q]))
    ) / 2 + 0.5 * sum(dot[i][i] for i in range(4)) / 4
    assert float(loss) == pytest.approx(expected, rel=1e-9)


def test_every_tuple_set_counts_the_same():
    labels = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
    assert [len(tuples) for tuples in sets(labels)] == [3, 2]
    vectors = random_vectors(10)
    loss, _ = NPair(0.2)(make_batch(vectors, labels))
    assert float(loss) == pytest.approx(oracle(vectors.numpy(), sets(labels), 0.2), rel=1e-9)


@pytest.mark.parametrize("options", [NPairOptions(), NPairOptions(normalise=False)])
def test_gradcheck(options):
    vectors = random_vectors(9, 3, seed=3).requires_grad_()

    def loss(x):
        return NPair(0.3, options)(make_batch(x, [0, 0, 0, 0, 1, 1, 1, 2, 2]))[0]

    assert torch.autograd.gradcheck(loss, (vectors,))


@pytest.mark.parametrize("classes", [2, 5, 50])
def test_log_of_the_number_of_classes_at_collapse(classes):
    labels = [k for k in range(classes) for _ in range(4)]
    vectors = torch.ones(len(labels), 3, dtype=torch.float64)
    loss, _ = NPair()(make_batch(vectors, labels))
    assert float(loss) == pytest.approx(math.log(classes), rel=1e-12)


def test_options():
    assert build("n_pair", temperature=0.2).temperature == 0.2
    assert build("n_pair", "normalise=no,l2=0.1").options == NPairOptions(False, 0.1)
    with pytest.raises(ConfigError, match=r"l2 = -1.0: expected a value of at least 0"):
        build("n_pair", "l2=-1")
