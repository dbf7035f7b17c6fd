"""The probe on shares of classes, against rows that are repeated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.data.dataset import Dataset
from superconext.data.reading import read_labelled
from superconext.fitting.fit import fit_model
from superconext.probe.base import log_odds
from superconext.probe.ensemble import PoolWithNgrams
from superconext.probe.logistic_regression import (
    LogisticRegressionProbe,
    adjusted,
    fit_probe,
)
from superconext.training.trainer import decided


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


@pytest.mark.parametrize("features", ["encoder", "encoder+tfidf", "encoder+ngrams"])
def test_annotators_are_adjusted_as_the_same_shares_of_a_file(tmp_path, features):
    """Rows of one label, and as many that two annotators part between two others."""
    sure = [f"zwin {k} a{k % 7}" for k in range(40)] + [f"khayb {k} a{k % 5}" for k in range(20)]
    labels, ties = ["x"] * 40 + ["y"] * 20, [f"khayb wla 3adi {k}" for k in range(30)]
    fourth = [f"3adi {k}" for k in range(6)]
    rows = [f"{t}\t{y}\t{y}" for t, y in zip(sure + fourth, labels + ["z"] * 6, strict=True)]
    rows += [f"{text}\ty\tz" for text in ties]
    votes = tmp_path / "votes.tsv"
    votes.write_text("\n".join(["text\tannotator_1\tannotator_2", *rows, ""]), encoding="utf-8")
    soft = tmp_path / "soft.csv"
    soft.write_text("\n".join(["text,x,y,z", *[f"{t},0,0.5,0.5" for t in ties], ""]), "utf-8")
    given = {"epochs": 1, "steps_per_epoch": 2, "hidden_size": 4, "vector_dimension": 8}
    given |= {"vector_method": "random", "probe_features": features, "objective": "cross_entropy"}
    dev = Dataset(["zwin", "khayb", "3adi"] * 9, ["x", "y", "z"] * 9, range(27))
    asked = ["zwin bzaf", "khayb wla 3adi", "3adi", "a3 a4"]
    for strength in (0.0, 1.0):
        config = {**given, "logit_adjustment": strength}
        annotated = fit_model(read_labelled(votes), decided(resolve(config), 96), dev)
        hard = Dataset(sure + fourth, labels + ["z"] * 6, range(66))
        config["soft_labels"] = str(soft)
        shared = fit_model(hard, decided(resolve(config), 96), dev)
        both = [one.model.probabilities(asked) for one in (annotated, shared)]
        np.testing.assert_allclose(*both, atol=1e-6)
        if strength and features == "encoder+ngrams":
            pool = replace(annotated.model.ensemble, weights=np.array([1.0, 0.0, 0.0]))
            alone = annotated.model.probe.probabilities(annotated.model.features(asked))
            np.testing.assert_allclose(pool.combined(asked, alone), alone)
            assert not np.allclose(pool.whole_shift, pool.shift, atol=0.1)
            none = replace(pool, weights=np.zeros(3))
            np.testing.assert_array_equal(none.whole_shift, pool.shift)
            pool.save(tmp_path)
            again = PoolWithNgrams.load(tmp_path)
            np.testing.assert_allclose(again.combined(asked, alone), alone)
