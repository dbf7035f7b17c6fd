"""The probe on shares of classes, against rows that are repeated."""

from __future__ import annotations

import numpy as np
import pytest

from superconext import SuperConTextClassifier
from superconext.probe.base import log_odds
from superconext.probe.logistic_regression import (
    LogisticRegressionProbe,
    adjusted,
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


def test_the_shares_of_soft_rows_are_counted(rows):
    features, labels, votes = rows
    classes = votes.shape[1]
    whole = np.eye(classes)[labels[:59]]  # of unequal classes
    probe = fit_probe(features[:59], whole, grid=(1.0,))
    one, other = (adjusted(probe, of, 0.7) for of in (whole, labels[:59]))
    assert one.intercept == pytest.approx(other.intercept)
    mean = votes.mean(axis=0) / votes.sum(axis=1)[0]
    expected = np.log(mean) if classes > 2 else np.log(mean[1:] / mean[0])
    assert log_odds(votes / votes.sum(axis=1, keepdims=True), classes) == pytest.approx(expected)


@pytest.mark.parametrize("features", ["encoder", "encoder+tfidf"])
def test_the_adjustment_counts_all_rows_the_probe_has_learned_from(tmp_path, features):
    """Classes of equal size in the file, and soft rows nearly all of one class."""
    words = {"x": "zwin", "y": "khayb"}
    labels = ["x", "y"] * 20
    texts = [f"{words[label]} {k}" for k, label in enumerate(labels)]
    soft = tmp_path / "soft.csv"
    lines = [f"{words['x']} soft {k},0.9,0.1" for k in range(60)]
    soft.write_text("\n".join(["text,x,y", *lines, ""]), encoding="utf-8")
    given = {"epochs": 1, "steps_per_epoch": 2, "hidden_size": 4, "vector_dimension": 8}
    given |= {"vector_method": "random", "soft_labels": str(soft), "probe_features": features}
    plain, less = (
        SuperConTextClassifier(**given, logit_adjustment=strength).fit(texts, labels).model_
        for strength in (0.0, 1.0)
    )
    shift = less.probe.intercept - plain.probe.intercept
    # 74 of 100 rows are of x; a tenth of the file's may be held back.
    assert shift[0] == pytest.approx(np.log(74 / 26), abs=0.1)
