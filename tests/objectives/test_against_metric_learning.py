"""The same losses in pytorch-metric-learning, where it is installed."""

import pytest
import torch

from superconext.objectives.supcon import SupCon
from superconext.objectives.triplet import Options, Triplet
from tests.objectives.batches import make_batch, random_vectors

losses = pytest.importorskip("pytorch_metric_learning.losses")
miners = pytest.importorskip("pytorch_metric_learning.miners")
reducers = pytest.importorskip("pytorch_metric_learning.reducers")

COMPOSITIONS = [[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 2], [k // 2 for k in range(40)]]


@pytest.mark.parametrize("labels", COMPOSITIONS)
@pytest.mark.parametrize("temperature", [1.0, 0.1])
def test_supcon(labels, temperature):
    vectors = random_vectors(len(labels))
    theirs = losses.SupConLoss(temperature=temperature)(vectors, torch.tensor(labels))
    ours, _ = SupCon(temperature)(make_batch(vectors, labels))
    assert float(ours) == pytest.approx(float(theirs), rel=1e-6)


def test_supcon_differs_on_one_class():
    """Theirs is 0 without any negative; ours still spreads the positives evenly."""
    vectors = random_vectors(3)
    assert float(losses.SupConLoss()(vectors, torch.zeros(3, dtype=torch.long))) == 0.0
    assert float(SupCon()(make_batch(vectors, [0, 0, 0]))[0]) > 0.0


def test_supcon_differs_on_rows_drawn_twice():
    """Theirs has no row numbers, so a repeat is a positive with cosine 1."""
    vectors, labels = random_vectors(4).repeat(2, 1), [0, 0, 1, 1] * 2
    theirs = float(losses.SupConLoss(temperature=0.1)(vectors, torch.tensor(labels)))
    unaware = make_batch(vectors, labels)
    aware = make_batch(vectors, labels, [0, 1, 2, 3] * 2)
    assert float(SupCon(0.1)(unaware)[0]) == pytest.approx(theirs, rel=1e-6)
    assert float(SupCon(0.1)(aware)[0]) != pytest.approx(theirs, rel=0.01)


@pytest.mark.parametrize("labels", COMPOSITIONS)
@pytest.mark.parametrize("margin", [0.05, 0.3])
def test_batch_hard(labels, margin):
    """Ours averages over all anchors; theirs, unless told, over those with a loss."""
    vectors, target = random_vectors(len(labels), 20, seed=2), torch.tensor(labels)
    vectors = vectors + 2.5 * random_vectors(20, 20)[target]  # some anchors have no loss
    mined = miners.BatchHardMiner()(vectors, target)
    objective = Triplet(Options(margin, "hard"))
    ours, scalars = objective(make_batch(vectors, labels))
    over_all = losses.TripletMarginLoss(margin=margin, reducer=reducers.MeanReducer())
    assert float(ours) == pytest.approx(float(over_all(vectors, target, mined)), rel=1e-6)
    over_active = losses.TripletMarginLoss(margin=margin)(vectors, target, mined)
    assert float(ours) == pytest.approx(scalars["active"] * float(over_active), rel=1e-6)


@pytest.mark.parametrize("labels", COMPOSITIONS)
def test_batch_all(labels):
    vectors, target = random_vectors(len(labels)), torch.tensor(labels)
    theirs = losses.TripletMarginLoss(margin=0.3)(vectors, target)
    ours, _ = Triplet(Options(0.3, "all"))(make_batch(vectors, labels))
    assert float(ours) == pytest.approx(float(theirs), rel=1e-6)
