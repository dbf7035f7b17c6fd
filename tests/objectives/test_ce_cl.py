"""CE+CL: the contrast of two views against loops, and what it asks of a run."""

import dataclasses
import math

import pytest
import torch

from superconext.core.errors import ConfigError, TrainingError
from superconext.objectives.cross_entropy import CECLOptions
from tests.objectives.batches import COMPOSITIONS, build, classifier, make_batch, random_vectors
from tests.objectives.oracles import cross_entropy, two_views

IDS = {"different": range(6), "with repeats": [0, 1, 0, 2, 0, 1], "one sentence": [3] * 6}


@pytest.mark.parametrize("ids", IDS.values(), ids=IDS.keys())
@pytest.mark.parametrize("form", ("nt_xent", "simcse"))
@pytest.mark.parametrize("temperature", [1.0, 0.05])
def test_equals_the_definition(ids, form, temperature):
    labels = [0, 1, 0, 2, 0, 1]
    first, second = random_vectors(6), random_vectors(6, seed=1)
    options = f"weight=0.7,form={form},temperature_cl={temperature}"
    objective = build("ce_cl", options, temperature=0.5)
    loss, scalars = objective(make_batch(first, labels, list(ids), second))
    weights, bias = classifier(objective)
    classification = cross_entropy(first.numpy() @ weights.T + bias, labels)
    contrast = two_views(first.numpy(), second.numpy(), ids, temperature, form)
    assert float(loss.detach()) == pytest.approx(classification + 0.7 * contrast, rel=1e-9)
    assert scalars["contrast"] == pytest.approx(contrast, abs=1e-12)
    cosine = torch.nn.functional.cosine_similarity(first, second)
    assert scalars["positive_similarity"] == pytest.approx(float(cosine.mean()))


@pytest.mark.parametrize("form", ("nt_xent", "simcse"))
@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
def test_collapse_gives_the_log_of_the_candidates(form, labels):
    vectors = torch.ones(len(labels), 5, dtype=torch.float64)
    _, scalars = build("ce_cl", f"form={form}", classes=50)(make_batch(vectors, labels))
    candidates = len(labels) if form == "simcse" else 2 * len(labels) - 1
    assert scalars["contrast"] == pytest.approx(math.log(candidates), abs=1e-12)


@pytest.mark.parametrize("form", ("nt_xent", "simcse"))
def test_gradient_flows_through_both_views(form):
    objective = build("ce_cl", f"form={form}", d=3)
    views = (random_vectors(5, 3).requires_grad_(), random_vectors(5, 3, 1).requires_grad_())

    def loss(first, second):
        return objective(make_batch(first, [0, 0, 1, 1, 2], [0, 1, 2, 2, 3], second))[0]

    assert torch.autograd.gradcheck(loss, views)
    loss(*views).backward()
    assert all(bool((view.grad.abs().sum(dim=1) > 0).all()) for view in views)


def test_weight_zero_is_cross_entropy():
    vectors, labels = random_vectors(4), [0, 1, 2, 0]
    loss, scalars = build("ce_cl", "weight=0")(make_batch(vectors, labels))
    assert float(loss.detach()) == scalars["cross_entropy"]


def test_options_and_declarations():
    objective = build("ce_cl")
    assert objective.options == CECLOptions(0.15, "nt_xent", 0.1)
    assert (objective.batches, objective.uses_projection) == ("shuffled", False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("weight=-1", "weight = -1.0: expected a value of at least 0"),
        ("form=moco", "form = 'moco': expected one of nt_xent, simcse"),
        ("temperature_cl=0", "temperature_cl = 0.0: expected a value above 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        build("ce_cl", options)


def test_two_equal_views_are_refused():
    with pytest.raises(ConfigError, match=r"dropout = 0: .* contrasts two dropout views"):
        build("ce_cl", dropout=0.0, word_dropout=0.0)
    build("ce_cl", dropout=0.0, word_dropout=0.1)
    with pytest.raises(ConfigError, match=r"encoder = 'mean': .*views, and this encoder has no"):
        build("ce_cl", encoder="mean")


def test_a_batch_without_second_view_is_refused():
    batch = dataclasses.replace(make_batch(random_vectors(2), [0, 1]), second_view=None)
    with pytest.raises(TrainingError, match="without a second view"):
        build("ce_cl")(batch)
