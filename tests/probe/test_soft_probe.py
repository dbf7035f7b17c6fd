"""The probe on shares of classes, against rows that are repeated."""

from __future__ import annotations

import numpy as np
import pytest

from superconext.probe.logistic_regression import (
    LogisticRegressionProbe,
    fit_probe,
)


@pytest.fixture(params=[2, 3])
def rows(request):
    draw = np.random.default_rng(0)
    classes = request.param
    labels = np.arange(60) % classes
    features = draw.normal(size=(60, 5)) + np.eye(classes, 5)[labels]
    leaning = np.eye(classes)[labels] * 0.6 + 0.4 / classes
    votes = np.stack([draw.multinomial(3, one) for one in leaning]).astype(float)
    return features.astype(np.float32), labels, votes


def same(one, other, tolerance=0.0):
    assert one.arrays().keys() == other.arrays().keys()
    for name, value in one.arrays().items():
        if name != "c":
            assert value == pytest.approx(other.arrays()[name], abs=tolerance, rel=0)


def test_shares_of_one_class_are_its_label(rows):
    features, labels, _ = rows
    shares, dev = np.eye(labels.max() + 1)[labels], (features[:30], labels[:30])
    same(fit_probe(features, shares, *dev), fit_probe(features, labels, *dev))


def test_two_votes_to_one_are_three_rows(rows):
    """A row of three votes weighs 1 where three rows weigh 3, hence a third of C."""
    features, _, votes = rows
    assert {1.0, 2.0, 3.0} <= set(votes.ravel())
    soft = LogisticRegressionProbe.fit(features, votes / 3)
    where, classes = np.nonzero(votes)
    repeated = np.repeat(where, votes[where, classes].astype(int))
    labels = np.repeat(classes, votes[where, classes].astype(int))
    same(soft, fit_probe(features[repeated], labels, grid=(soft.c / 3,)), tolerance=1e-3)
    other = fit_probe(features, votes.argmax(axis=1), grid=(soft.c,))
    assert np.abs(soft.coef - other.coef).max() > 0.01
