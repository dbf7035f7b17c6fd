"""Triplet loss against loops over all triplets, and its limits."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import ConfigError
from superconext.objectives.triplet import Options, Triplet
from tests.objectives.batches import COMPOSITIONS, build, make_batch, random_vectors
from tests.objectives.oracles import triplet as oracle

FORMS = ("hard", "all", "semi_hard", "soft")


def triplet(form, margin=0.3):
    return Triplet(Options(margin, form))


@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("margin", [0.0, 0.3, 2.0])
def test_equals_the_definition(labels, form, margin):
    if len(labels) > 50:
        labels = labels[:30]
    vectors = random_vectors(len(labels))
    loss, _ = triplet(form, margin)(make_batch(vectors, labels))
    expected = oracle(vectors.numpy(), labels, range(len(labels)), margin, form)
    assert float(loss) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=10),
    form=st.sampled_from(FORMS),
    data=st.data(),
    seed=st.integers(0, 1000),
)
def test_equals_the_definition_with_rows_drawn_twice(labels, form, data, seed):
    rows = data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, max_size=14))
    vectors = random_vectors(len(labels), seed=seed)[rows]
    drawn = [labels[row] for row in rows]
    loss, _ = triplet(form)(make_batch(vectors, drawn, rows))
    expected = oracle(vectors.numpy(), drawn, rows, 0.3, form)
    assert float(loss) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("form", FORMS)
def test_gradcheck(form):
    vectors = random_vectors(7, 3, seed=3).requires_grad_()

    def loss(x):
        return triplet(form)(make_batch(x, [0, 0, 0, 1, 1, 2, 2]))[0]

    assert torch.autograd.gradcheck(loss, (vectors,))


@pytest.mark.parametrize("form", FORMS)
def test_chance_level_is_the_loss_at_collapse(form):
    objective = triplet(form, 0.4)
    loss, _ = objective(make_batch(torch.ones(6, 4).double(), [0, 0, 1, 1, 2, 2]))
    assert objective.chance_level == (math.log(2) if form == "soft" else 0.4)
    assert float(loss) == pytest.approx(objective.chance_level, rel=1e-9)


@pytest.mark.parametrize("form", ["hard", "semi_hard", "all"])
def test_separated_classes_have_no_loss_and_no_active_term(form):
    vectors = torch.tensor([[1.0, 0], [1, 0], [-1, 0], [-1, 0]], requires_grad=True)
    loss, scalars = triplet(form)(make_batch(vectors, [0, 0, 1, 1]))
    loss.backward()
    assert loss.item() == 0.0 and scalars["active"] == 0.0
    assert torch.equal(vectors.grad, torch.zeros_like(vectors))


def test_active_is_the_share_of_violated_triplets():
    # Anchors at 0, 90, 180 degrees: distances 2**0.5 and 2.
    vectors = torch.tensor([[1.0, 0], [0, 1], [-1, 0]]).double()
    _, scalars = triplet("all")(make_batch(vectors, [0, 0, 1]))
    assert scalars["active"] == 0.5  # of (0, 1, 2) and (1, 0, 2) only the second
    assert triplet("hard")(make_batch(vectors, [0, 0, 1]))[1]["active"] == 0.5


def test_a_semi_hard_negative_is_strictly_farther_than_the_positive():
    vectors = torch.tensor([[1.0, 0], [0, 1], [0, -1], [-1, 0]]).double()
    loss, _ = triplet("semi_hard")(make_batch(vectors, [0, 0, 1, 1]))
    # Each row: positive at 2**0.5, negatives at 2**0.5 and 2: the tie is passed over.
    assert float(loss) == 0.0


def test_batch_hard_bounds_the_other_forms():
    vectors, labels = random_vectors(12), [0, 1, 2] * 4
    hard = float(triplet("hard", 2.0)(make_batch(vectors, labels))[0])
    assert hard >= float(triplet("semi_hard", 2.0)(make_batch(vectors, labels))[0])
    assert hard >= float(triplet("all", 2.0)(make_batch(vectors, labels))[0])


def test_options_reach_the_loss():
    assert build("triplet").options == Options(0.3, "hard")
    assert build("triplet", "margin=0.5,form=semi_hard").options == Options(0.5, "semi_hard")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("form=batch", "form = 'batch': expected one of hard, all, semi_hard, soft"),
        ("margin=5", "margin = 5.0: expected a value of at least 0 and of at most 2"),
        ("margin=-0.1", "expected a value of at least 0"),
        ("marign=1", "did you mean 'margin'"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        build("triplet", options)
