"""CE+CE against the definition."""

import numpy as np
import pytest
import torch

from superconext.core.errors import ConfigError
from superconext.objectives.cross_entropy import CECEOptions
from tests.objectives.batches import build, classifier, make_batch, random_vectors
from tests.objectives.oracles import cross_entropy, unit

LABELS = [0, 2, 1, 1, 0, 2, 0]


@pytest.mark.parametrize("weight", [0.0, 0.4, 0.9])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 0.3, 0.05])
def test_equals_the_definition(weight, normalise, temperature):
    objective = build(
        "ce_ce", f"weight={weight},normalise_weights={normalise}", temperature=temperature
    )
    vectors = random_vectors(len(LABELS))
    loss, scalars = objective(make_batch(vectors, LABELS))
    weights, bias = classifier(objective)
    first = cross_entropy(vectors.numpy() @ weights.T + bias, LABELS)
    rows = np.array(unit(weights)) if normalise else weights
    second = cross_entropy(np.array(unit(vectors)) @ rows.T / temperature, LABELS)
    assert float(loss.detach()) == pytest.approx((1 - weight) * first + weight * second, rel=1e-9)
    assert scalars["cross_entropy"] == pytest.approx(first)
    assert scalars["scaled_cross_entropy"] == pytest.approx(second)


@pytest.mark.parametrize("options", [None, "normalise_weights=yes"])
def test_gradcheck(options):
    objective = build("ce_ce", options, temperature=0.3, d=3)
    vectors = random_vectors(len(LABELS), 3).requires_grad_()
    weights = (vectors, objective.classifier.weight, objective.classifier.bias)
    assert torch.autograd.gradcheck(lambda x, *_: objective(make_batch(x, LABELS))[0], weights)


def test_scaled_term_does_not_see_the_length():
    objective, vectors = build("ce_ce"), random_vectors(len(LABELS))
    one = objective(make_batch(vectors, LABELS))[1]
    two = objective(make_batch(7 * vectors, LABELS))[1]
    assert one["scaled_cross_entropy"] == pytest.approx(two["scaled_cross_entropy"])
    assert one["cross_entropy"] != pytest.approx(two["cross_entropy"])


def test_options():
    objective = build("ce_ce", "weight=0.5,normalise_weights=true")
    assert objective.options == CECEOptions(0.5, True)
    assert (objective.batches, objective.uses_projection) == ("shuffled", False)
    with pytest.raises(ConfigError, match=r"weight = 1.0: .* bias gets no gradient"):
        build("ce_ce", "weight=1")
