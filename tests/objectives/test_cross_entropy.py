"""Cross-entropy against the definition, and its native prediction."""

import math

import numpy as np
import pytest
import torch

from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.base import Batch, Shape
from superconext.objectives.catalogue import OBJECTIVES, objective_class


def test_equals_the_definition():
    torch.manual_seed(0)
    objective = objective_class("cross_entropy").from_config(resolve({}), Shape(3, 4, 2)).double()
    vectors = torch.randn(5, 4, dtype=torch.float64)
    labels = torch.tensor([0, 2, 1, 1, 0])
    weights = objective.classifier.weight.detach().numpy()
    bias = objective.classifier.bias.detach().numpy()
    expected = 0.0
    for row, label in zip(vectors.numpy(), labels.tolist(), strict=True):
        scores = [float(weights[k] @ row + bias[k]) for k in range(3)]
        expected -= scores[label] - math.log(sum(math.exp(s) for s in scores))
    objective.float()
    batch = Batch(vectors.float(), vectors.float(), labels, torch.arange(5), 0, 1)
    loss, scalars = objective(batch)
    assert loss.item() == pytest.approx(expected / 5, rel=1e-5)
    best = objective.class_scores(EncoderOutput.of_sentences(vectors.float())).argmax(dim=1)
    assert scalars["batch_accuracy"] == pytest.approx(float((best == labels).float().mean()))
    assert np.array_equal(best.numpy(), (vectors.numpy() @ weights.T + bias).argmax(axis=1))


def test_every_name_in_the_catalogue_can_be_built():
    for name in OBJECTIVES:
        objective = objective_class(name).from_config(resolve({}), Shape(3, 8, 4))
        assert objective.batches in ("balanced", "shuffled")


def test_unknown_objective_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'superloss'"):
        objective_class("superlos")
