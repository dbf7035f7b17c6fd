"""The probe of vectors that were learned from no label: where its C comes from."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.fitting import cross_validation
from superconext.fitting.fit import fit_model
from superconext.probe.logistic_regression import (
    DEFAULT_C,
    FEWEST_FOLDED,
    FROZEN_C,
    LogisticRegressionProbe,
    along_c,
    fit_probe,
    of_unit_length,
)
from superconext.runs.folder import load_model, save_run

FROZEN = {"vector_method": "random", "vector_dimension": 8, "hidden_size": 4, "freeze": True}
TRAINED = {**FROZEN, "freeze": False, "epochs": 1}

pytestmark = pytest.mark.filterwarnings("ignore:all sentences lie")


def rows(count, seed):
    """Texts of which one word says the label of nine in ten."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, count)
    said = np.where(draw.random(count) < 0.1, 1 - labels, labels)
    noise = draw.integers(0, 20, (count, 3))
    texts = [
        f"{['khayb', 'zwin'][k]} {' '.join(f'w{n}' for n in row)} {i}"
        for i, (k, row) in enumerate(zip(said, noise, strict=True))
    ]
    return Dataset(texts, [["neg", "pos"][k] for k in labels])


@pytest.mark.parametrize("encoder", ["mean", "bilstm"])
def test_folds_of_train_choose_it_and_few_dev_rows_do_not(encoder):
    train = rows(FEWEST_FOLDED, 0)
    labels = np.array([label == "pos" for label in train.labels]).astype(int)
    config = resolve({**FROZEN, "encoder": encoder})
    upside_down = rows(40, 1)
    upside_down.labels[:] = [{"neg": "pos", "pos": "neg"}[label] for label in upside_down.labels]
    fitted = fit_model(train, config, upside_down)
    expected = fit_probe(fitted.features, labels, learned=False, unit_length=True).c
    assert fitted.model.probe.c == expected > 0.001
    learned = fit_model(train, resolve({**FROZEN, "freeze": False, "epochs": 1}), upside_down)
    assert fitted.model.probe.unit_length and not learned.model.probe.unit_length
    assert learned.chosen_on_dev and not fitted.chosen_on_dev
    assert not fit_model(train, config).chosen_on_dev
    for more in ({"calibrate": True}, {"probe_features": "encoder+tfidf"}):
        assert fit_model(train, resolve({**FROZEN, **more}), upside_down).chosen_on_dev
    assert learned.model.probe.c == 0.001, "of an encoder that has read the labels, dev's choice"


def test_few_rows_choose_nothing():
    train = rows(FEWEST_FOLDED - 1, 0)
    assert fit_model(train, resolve({**FROZEN, "encoder": "mean"})).model.probe.c == FROZEN_C
    learned = fit_model(train, resolve({**FROZEN, "freeze": False, "epochs": 1}))
    assert learned.model.probe.c == DEFAULT_C


def test_how_long_a_sentence_vector_is_says_nothing(tmp_path):
    """Also after a run folder and cross-validation have had it."""
    train, held = rows(FEWEST_FOLDED, 0), rows(30, 2)
    config = resolve({**FROZEN, "encoder": "mean"})
    model = fit_model(train, config, held).model
    probe, features = model.probe, model.features(held.texts).astype(np.float64)
    length = np.linspace(0.1, 9, len(features))[:, None]
    assert np.allclose(probe.decision(features * length), probe.decision(features))
    assert not np.allclose(features * length, features)

    unit = model.features(train.texts).astype(np.float64)
    unit /= np.sqrt((unit**2).sum(axis=1))[:, None]
    spread = np.sqrt(((unit - unit.mean(axis=0)) ** 2).mean())
    assert np.allclose(probe.mean, unit.mean(axis=0), atol=1e-6)
    assert np.allclose(probe.scale, spread, rtol=1e-5) and probe.scale.shape == probe.mean.shape

    save_run(model, tmp_path / "run")
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["format"] == 6
    loaded = load_model(tmp_path / "run")
    assert loaded.probe.unit_length
    assert np.array_equal(loaded.probabilities(held.texts), model.probabilities(held.texts))


def test_rows_of_zeros_stay_and_equal_rows_are_no_division_by_zero():
    zeros = np.zeros((2, 3), np.float32)
    assert not of_unit_length(zeros).any()
    same = np.ones((4, 3), np.float32)
    probe = fit_probe(same, np.array([0, 1, 0, 1]), grid=(1.0,), unit_length=True)
    assert np.allclose(probe.probabilities(np.vstack([same, zeros])), 0.5)


@pytest.mark.parametrize(("given", "expected"), [(FROZEN, {True}), (TRAINED, {False})])
def test_cross_validation_scales_as_the_final_probe_does(given, expected, monkeypatch):
    asked = set()

    def recorded(features, labels, held, unit_length=False, beside=None):
        asked.add(unit_length)
        return along_c(features, labels, held, unit_length)

    monkeypatch.setattr(cross_validation, "along_c", recorded)
    train = rows(90, 3)
    SuperConTextClassifier(**given, cv=3).fit(train.texts, train.labels)
    assert asked == expected


def test_the_frozen_recipe_has_unit_length(monkeypatch):
    asked = []

    def recorded(features, labels, held, unit_length=False, beside=None):
        asked.append(unit_length)
        return along_c(features, labels, held, unit_length)

    monkeypatch.setattr(cross_validation, "along_c", recorded)
    train = rows(90, 3)
    config = resolve({**TRAINED, "preset": "auto"})
    cv = cross_validation.CrossValidation(train, config, 3, Progress())
    cv.add([cross_validation.VECTORS])
    assert asked and all(asked)


def test_scores_beside_the_features_are_those_of_a_wider_regression():
    draw = np.random.default_rng(0)
    features, new = draw.normal(0.3, 1, (90, 6)), draw.normal(0.3, 1, (40, 6))
    labels, beside = np.arange(90) % 3, draw.normal(0, 2, (4, 6))
    features[np.arange(90), labels] += 1
    wide, asked = (
        np.hstack([rows, rows @ beside.T]) for rows in map(of_unit_length, (features, new))
    )
    scale = np.sqrt(wide.var(axis=0).mean())
    rival = LogisticRegression(C=0.3, max_iter=1000, tol=1e-8)
    rival.fit((wide - wide.mean(axis=0)) / scale, labels)
    expected = rival.predict_proba((asked - wide.mean(axis=0)) / scale)
    probe = fit_probe(features, labels, grid=(0.3,), unit_length=True, beside=beside)
    assert probe.coef.shape == (3, 6) and probe.mean.shape == (6,)
    assert np.abs(probe.probabilities(new) - expected).max() < 1e-3
    held = along_c(features, labels, new, True, beside)(0.3)
    assert np.abs(held - expected).max() < 1e-3
    plain = fit_probe(features, labels, grid=(0.3,), unit_length=True)
    assert np.abs(plain.probabilities(new) - expected).max() > 0.01
    saved = LogisticRegressionProbe.from_arrays(probe.arrays(), 3, 6)
    assert np.array_equal(saved.probabilities(new), probe.probabilities(new))
