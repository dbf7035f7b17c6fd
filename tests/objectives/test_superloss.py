"""SuperLoss against loops in float64, and the identities it must satisfy."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.objectives.base import Batch, Shape
from superconext.objectives.catalogue import objective_class
from superconext.objectives.superloss import Miner, Options, SuperLoss
from tests.objectives.oracles import superloss as oracle

torch.set_num_threads(1)


def batch(vectors, labels, ids=None, epoch=0, epochs=1):
    labels = torch.as_tensor(labels)
    ids = torch.arange(len(labels)) if ids is None else torch.as_tensor(ids)
    return Batch(vectors, vectors, labels, ids, epoch, epochs)


def random_vectors(n, d=5, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)))


COMPOSITIONS = {
    "balanced": [0, 0, 0, 1, 1, 1],
    "unbalanced": [0, 0, 0, 0, 0, 1, 1],
    "one class": [0, 0, 0],
    "a single row of a class": [0, 0, 0, 1],
    "every row its own class": [0, 1, 2, 3],
    "one row": [0],
    "fifty classes": [k // 2 for k in range(100)],
}


@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
@pytest.mark.parametrize("reduction", ["macro", "micro"])
@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.1, 0.05])
def test_equals_the_equation(labels, reduction, include_self, temperature):
    vectors = random_vectors(len(labels))
    loss, _ = SuperLoss(temperature, Options(reduction=reduction, include_self=include_self))(
        batch(vectors, labels)
    )
    expected = oracle(
        vectors.numpy(), labels, range(len(labels)), temperature, reduction, include_self
    )
    assert float(loss) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=14),
    data=st.data(),
    seed=st.integers(0, 1000),
)
def test_equals_the_equation_with_rows_drawn_twice(labels, data, seed):
    rows = data.draw(
        st.lists(st.integers(0, len(labels) - 1), min_size=1, max_size=18), label="rows"
    )
    vectors = random_vectors(len(labels), seed=seed)[rows]
    drawn = [labels[row] for row in rows]
    loss, _ = SuperLoss(0.2)(batch(vectors, drawn, rows))
    expected = oracle(vectors.numpy(), drawn, rows, 0.2)
    assert float(loss) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("labels", [[0, 0, 1, 1], [0, 0, 0, 1, 1, 2, 2], [0, 0, 0, 1]])
@pytest.mark.parametrize("miner", [Miner(), Miner("topk", 1, 0.0), Miner("threshold", 0.1, 0.0)])
def test_gradcheck(labels, miner):
    vectors = random_vectors(len(labels), 3, seed=3).requires_grad_()

    def loss(x):
        return SuperLoss(0.3, miner=miner)(batch(x, labels))[0]

    assert torch.autograd.gradcheck(loss, (vectors,))


@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("classes", [2, 3, 10])
@pytest.mark.parametrize("per_class", [2, 7])
def test_log_two_at_collapse(temperature, classes, per_class):
    labels = [k for k in range(classes) for _ in range(per_class)]
    vectors = torch.ones(len(labels), 4, dtype=torch.float64)
    loss, scalars = SuperLoss(temperature)(batch(vectors, labels))
    assert float(loss) == pytest.approx(math.log(2), rel=1e-12)
    assert SuperLoss.chance_level == pytest.approx(math.log(2))
    assert scalars["positive_similarity"] == pytest.approx(1.0)


def test_two_separated_classes_give_softplus_of_minus_two_over_temperature():
    vectors = torch.tensor([[1.0, 0], [1, 0], [-1, 0], [-1, 0]], dtype=torch.float64)
    loss, _ = SuperLoss(0.5)(batch(vectors, [0, 0, 1, 1]))
    assert float(loss) == pytest.approx(math.log1p(math.exp(-2 / 0.5)), rel=1e-12)


def test_row_order_and_label_names_do_not_matter():
    labels = [0, 0, 1, 1, 1, 2, 2]
    vectors = random_vectors(len(labels))
    loss = float(SuperLoss(0.1)(batch(vectors, labels))[0])
    order = [3, 6, 0, 5, 1, 4, 2]
    shuffled = batch(vectors[order], [labels[i] for i in order])
    assert float(SuperLoss(0.1)(shuffled)[0]) == pytest.approx(loss, rel=1e-12)
    renamed = [{0: 2, 1: 0, 2: 1}[k] for k in labels]
    assert float(SuperLoss(0.1)(batch(vectors, renamed))[0]) == pytest.approx(loss, rel=1e-12)


def test_macro_equals_micro_at_equal_class_sizes():
    vectors = random_vectors(9)
    labels = [0, 0, 0, 1, 1, 1, 2, 2, 2]
    macro = SuperLoss(0.1, Options(reduction="macro"))(batch(vectors, labels))[0]
    micro = SuperLoss(0.1, Options(reduction="micro"))(batch(vectors, labels))[0]
    assert float(macro) == pytest.approx(float(micro), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_finite_at_low_temperature(dtype):
    vectors = random_vectors(40).to(dtype).requires_grad_()
    loss, _ = SuperLoss(0.01)(batch(vectors, [i % 4 for i in range(40)]))
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(vectors.grad).all()


@pytest.mark.parametrize("labels", [[0, 0, 0], [0], [0, 1, 2]])
def test_nothing_to_contrast_gives_zero_with_a_gradient(labels):
    vectors = random_vectors(len(labels)).requires_grad_()
    loss, _ = SuperLoss(0.1)(batch(vectors, labels))
    loss.backward()
    assert loss.item() == 0.0 and torch.equal(vectors.grad, torch.zeros_like(vectors))


def test_a_repeated_row_is_not_its_own_positive():
    vectors = random_vectors(4)
    twice = torch.cat([vectors, vectors])
    labels, ids = [0, 0, 1, 1] * 2, [0, 1, 2, 3] * 2
    # Every pair stands twice, so the means are those of the rows drawn once.
    once = SuperLoss(0.1)(batch(vectors, [0, 0, 1, 1]))[0]
    assert float(SuperLoss(0.1)(batch(twice, labels, ids))[0]) == pytest.approx(float(once))
    # Without ids the repeats stand in for the diagonal and hide the loss.
    assert float(SuperLoss(0.1)(batch(twice, labels))[0]) < 0.1 * float(once)


def test_mined_negatives_replace_the_mean_over_all():
    labels = [0, 0, 0, 1, 1, 1, 2, 2]
    vectors = random_vectors(len(labels), seed=5)
    z = vectors / vectors.norm(dim=1, keepdim=True)
    cosine = (z @ z.T).numpy()
    kept = [[labels[i] != labels[j] and cosine[i][j] > 0.2 for j in range(8)] for i in range(8)]
    for i in range(8):
        if not any(kept[i]):  # the fallback: the hardest negative
            others = [j for j in range(8) if labels[j] != labels[i]]
            kept[i][max(others, key=lambda j: cosine[i][j])] = True
    loss, scalars = SuperLoss(0.1, miner=Miner("threshold", 0.2, 0.0))(batch(vectors, labels))
    expected = oracle(vectors.numpy(), labels, range(8), 0.1, kept=kept)
    assert float(loss) == pytest.approx(expected, rel=1e-9)
    total = sum(labels[i] != labels[j] for i in range(8) for j in range(8))
    assert scalars["kept"] == pytest.approx(sum(map(sum, kept)) / total)


def test_from_config_passes_every_setting():
    config = resolve(
        {
            "temperature": 0.25,
            "options": {
                "reduction": "micro",
                "mining": "topk",
                "mining_threshold": 7.0,
                "mining_warmup": 0.5,
                "mining_max_similarity": 0.9,
                "mining_fallback": "skip",
            },
        }
    )
    loss = objective_class("superloss").from_config(config, Shape(2, 8, 4))
    assert (loss.temperature, loss.options.reduction, loss.options.include_self) == (
        0.25,
        "micro",
        False,
    )
    assert loss.miner == Miner("topk", 7.0, 0.5, 0.9, "skip")


def test_refuses_a_temperature_of_zero():
    with pytest.raises(ConfigError, match=r"temperature = 0\.0: expected a value above 0"):
        resolve({"temperature": 0.0})
