"""CE+SCL: the mixture of two known losses, and its ends."""

import pytest
import torch

from superconext.core.errors import ConfigError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.cross_entropy import CESCLOptions
from tests.objectives.batches import COMPOSITIONS, build, classifier, make_batch, random_vectors
from tests.objectives.oracles import cross_entropy, supcon


@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("weight", [0.1, 0.9])
def test_equals_the_definition(labels, reduction, weight):
    vectors = random_vectors(len(labels))
    objective = build(
        "ce_scl", f"weight={weight},scl_reduction={reduction}", classes=50, temperature=0.3
    )
    loss, scalars = objective(make_batch(vectors, labels))
    weights, bias = classifier(objective)
    first = cross_entropy(vectors.numpy() @ weights.T + bias, labels)
    second = supcon(vectors.numpy(), labels, range(len(labels)), 0.3, "out", reduction)
    assert float(loss.detach()) == pytest.approx((1 - weight) * first + weight * second, rel=1e-9)
    assert scalars["cross_entropy"] == pytest.approx(first)
    assert scalars["scl"] == pytest.approx(second, abs=1e-12)


def test_weight_zero_is_cross_entropy():
    vectors, labels = random_vectors(6).float(), [0, 1, 2, 0, 1, 2]
    plain = build("cross_entropy").float()
    mixed = build("ce_scl", "weight=0").float()
    mixed.load_state_dict(plain.state_dict())
    results = [objective(make_batch(vectors, labels)) for objective in (plain, mixed)]
    assert float(results[0][0].detach()) == float(results[1][0].detach())
    assert results[0][1]["batch_accuracy"] == results[1][1]["batch_accuracy"]
    output = EncoderOutput.of_sentences(vectors)
    assert torch.equal(plain.class_scores(output), mixed.class_scores(output))


def test_gradcheck():
    objective = build("ce_scl", temperature=0.3, d=3)
    vectors = random_vectors(6, 3).requires_grad_()
    weights = (vectors, objective.classifier.weight, objective.classifier.bias)
    assert torch.autograd.gradcheck(
        lambda x, *_: objective(make_batch(x, [0, 0, 0, 1, 1, 2]))[0], weights
    )


def test_declares_what_the_paper_trains_on():
    objective = build("ce_scl", temperature=0.3)
    assert (objective.batches, objective.uses_projection) == ("shuffled", False)
    assert objective.temperature == 0.3 and objective.options == CESCLOptions(0.9, "mean")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("weight=1", "weight = 1.0: .* without a classifier there is the objective supcon"),
        ("weight=-0.5", "expected a value of at least 0 and below 1"),
        ("scl_reduction=max", "scl_reduction = 'max': expected one of mean, sum"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        build("ce_scl", options)
