"""A loaded classifier answers by itself and is a whole estimator when more is asked of it."""

import copy
import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

import superconext
from superconext import SuperConTextClassifier
from superconext.estimator.loading import LoadedClassifier
from tests.estimator.test_contract import LABELS, NEW, TEXTS, TINY


@pytest.fixture(scope="module")
def fitted():
    return SuperConTextClassifier(**TINY).fit(TEXTS, LABELS)


@pytest.fixture
def loaded(fitted):
    """As `load` gives it where scikit-learn has not been imported."""
    return LoadedClassifier(fitted.model_, fitted.classes_)


def test_it_answers_as_it_stands(loaded, fitted):
    assert type(loaded) is LoadedClassifier
    for method in ("predict", "predict_proba", "decision_function"):
        assert np.array_equal(getattr(loaded, method)(NEW), getattr(fitted, method)(NEW))
    assert loaded.classes_ is fitted.classes_ and loaded.model_ is fitted.model_
    assert loaded.history_ == [] and loaded.epochs == TINY["epochs"]
    assert type(loaded) is LoadedClassifier
    assert np.array_equal(loaded.transform(NEW), fitted.transform(NEW))


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.score(TEXTS, LABELS),
        lambda model: model.get_params(),
        lambda model: model.get_feature_names_out(),
        lambda model: model.fit,
        lambda model: isinstance(model, SuperConTextClassifier),
        is_classifier,
        check_is_fitted,
        clone,
        repr,
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        lambda model: make_pipeline(model).predict(NEW),
    ],
)
def test_asked_for_more_it_becomes_the_estimator(loaded, fitted, ask):
    ask(loaded)
    assert type(loaded) is SuperConTextClassifier
    assert vars(loaded).keys() == vars(fitted).keys()
    assert loaded.score(TEXTS, LABELS) == fitted.score(TEXTS, LABELS)
    assert np.array_equal(loaded.predict_proba(NEW), fitted.predict_proba(NEW))


def test_what_is_not_there_is_told_as_of_the_estimator(loaded):
    with pytest.raises(AttributeError, match=r"'SuperConTextClassifier' object has no attribute"):
        _ = loaded.nothing


def test_copies_and_clones_are_estimators(loaded, fitted):
    for other in (pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)):
        assert type(other) is SuperConTextClassifier
        assert np.array_equal(other.transform(NEW), fitted.transform(NEW))
    again = clone(LoadedClassifier(fitted.model_, fitted.classes_))
    assert type(again) is SuperConTextClassifier and not hasattr(again, "model_")
    assert np.array_equal(again.fit(TEXTS, LABELS).transform(NEW), fitted.transform(NEW))


def test_frames_are_given_where_they_are_asked_for(loaded):
    pandas = pytest.importorskip("pandas")
    with sklearn.config_context(transform_output="pandas"):
        assert isinstance(loaded.transform(NEW), pandas.DataFrame)


def test_in_the_hands_of_scikit_learn(loaded):
    frozen = pytest.importorskip("sklearn.frozen")
    calibrated = CalibratedClassifierCV(frozen.FrozenEstimator(loaded)).fit(TEXTS, LABELS)
    assert calibrated.predict(NEW).shape == (6,)


def test_where_the_estimator_is_known_it_is_given_at_once(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    model = superconext.load(str(tmp_path / "run"))
    assert type(model) is SuperConTextClassifier
    # What was left open, to be chosen by the preset, is what it was chosen to be.
    asked = model.get_params()
    assert asked["callbacks"] is None and asked["layers"] == 1
    assert {name: asked[name] for name in TINY} == TINY
