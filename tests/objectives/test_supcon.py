"""SupCon against loops over its equations, and the identities between its two forms."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import ConfigError
from superconext.objectives.supcon import Options, SupCon
from tests.objectives.batches import COMPOSITIONS, build, make_batch, random_vectors
from tests.objectives.oracles import supcon as oracle

FORMS = ("out", "in")


@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("temperature", [1.0, 0.1, 0.05])
def test_equals_the_equation(labels, form, temperature):
    vectors = random_vectors(len(labels))
    loss, _ = SupCon(temperature, Options(form))(make_batch(vectors, labels))
    expected = oracle(vectors.numpy(), labels, range(len(labels)), temperature, form)
    assert float(loss) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    labels=st.lists(st.integers(0, 3), min_size=1, max_size=10),
    form=st.sampled_from(FORMS),
    data=st.data(),
    seed=st.integers(0, 1000),
)
def test_equals_the_equation_with_rows_drawn_twice(labels, form, data, seed):
    rows = data.draw(st.lists(st.integers(0, len(labels) - 1), min_size=1, max_size=14))
    vectors = random_vectors(len(labels), seed=seed)[rows]
    drawn = [labels[row] for row in rows]
    loss, _ = SupCon(0.2, Options(form))(make_batch(vectors, drawn, rows))
    expected = oracle(vectors.numpy(), drawn, rows, 0.2, form)
    assert float(loss) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 1, 2], [0, 0, 0]])
def test_gradcheck(form, labels):
    vectors = random_vectors(len(labels), 3, seed=3).requires_grad_()

    def loss(x):
        return SupCon(0.3, Options(form))(make_batch(x, labels))[0]

    assert torch.autograd.gradcheck(loss, (vectors,))


@settings(max_examples=40, deadline=None)
@given(
    labels=st.lists(st.integers(0, 3), min_size=2, max_size=15),
    temperature=st.sampled_from([0.05, 0.1, 1.0]),
    seed=st.integers(0, 1000),
)
def test_in_is_at_most_out(labels, temperature, seed):
    batch = make_batch(random_vectors(len(labels), seed=seed), labels)
    inside = float(SupCon(temperature, Options("in"))(batch)[0])
    assert inside <= float(SupCon(temperature, Options("out"))(batch)[0]) + 1e-12


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("temperature", [0.01, 1.0])
@pytest.mark.parametrize("labels", [[0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 2], [0, 0, 0]])
def test_collapse_gives_the_log_of_the_other_rows(form, temperature, labels):
    vectors = torch.ones(len(labels), 4, dtype=torch.float64)
    loss, scalars = SupCon(temperature, Options(form))(make_batch(vectors, labels))
    assert float(loss) == pytest.approx(math.log(len(labels) - 1), rel=1e-12)
    assert scalars["positive_similarity"] == pytest.approx(1.0)


def test_out_form_ends_at_the_log_of_the_positives():
    vectors = torch.tensor([[1.0, 0]] * 4 + [[-1.0, 0]] * 4, dtype=torch.float64)
    loss, _ = SupCon(0.1)(make_batch(vectors, [0] * 4 + [1] * 4))
    assert float(loss) == pytest.approx(math.log(3), abs=1e-6)


def test_a_repeated_row_is_neither_positive_nor_candidate():
    vectors = random_vectors(4)
    twice = make_batch(torch.cat([vectors, vectors]), [0, 0, 1, 1] * 2, [0, 1, 2, 3] * 2)
    once = float(SupCon(0.1)(make_batch(vectors, [0, 0, 1, 1]))[0])
    # Every other row stands twice: each positive against twice the sum.
    assert float(SupCon(0.1)(twice)[0]) == pytest.approx(once + math.log(2), rel=1e-9)


def test_options():
    assert build("supcon", temperature=0.2).temperature == 0.2
    assert build("supcon", "form=in").options == Options("in")
    with pytest.raises(ConfigError, match="form = 'inside': expected one of out, in"):
        build("supcon", "form=inside")
