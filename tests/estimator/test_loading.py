"""`load` gives a plain classifier that predicts by itself and that scikit-learn's tools take."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

import superconext
from superconext import SuperConTextClassifier
from superconext.core.errors import DataError
from superconext.estimator.loading import LoadedClassifier
from tests.estimator.test_contract import LABELS, NEW, TEXTS, TINY


@pytest.fixture(scope="module")
def fitted():
    return SuperConTextClassifier(**TINY).fit(TEXTS, LABELS)


@pytest.fixture
def loaded(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    return superconext.load(str(tmp_path / "run"))


def test_it_answers_as_the_estimator_does(loaded, fitted):
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        assert np.array_equal(getattr(loaded, method)(NEW), getattr(fitted, method)(NEW))
    assert np.array_equal(loaded.classes_, fitted.classes_)
    assert loaded.score(TEXTS, LABELS) == fitted.score(TEXTS, LABELS)


def test_what_predict_does_not_take_is_answered_with_how_to_abstain(loaded, fitted):
    message = r"predict\(\) found the argument 'abstain_below'; expected texts alone.*predict_proba"
    for model in (loaded, fitted, make_pipeline(fitted)):
        with pytest.raises(TypeError, match=message):
            model.predict(NEW, abstain_below=0.9)


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.get_params(),
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
def test_it_stays_what_it_is_whatever_is_asked(loaded, ask):
    kind = type(loaded)
    assert ask(loaded) is not False
    assert type(loaded) is kind is LoadedClassifier and loaded.__class__ is kind


def test_what_is_not_there_is_an_attribute_error(loaded):
    with pytest.raises(AttributeError, match=r"'LoadedClassifier' object has no attribute"):
        _ = loaded.nothing


def test_notebooks_show_the_parameters_of_the_run(loaded, fitted):
    assert "SuperConTextClassifier" in loaded._repr_html_()
    assert str(fitted.hidden_size) in loaded._repr_html_()


def test_copies_answer_alike_and_a_clone_is_an_estimator_to_fit(loaded, fitted):
    for other in (pickle.loads(pickle.dumps(loaded)), copy.deepcopy(loaded)):
        assert np.array_equal(other.transform(NEW), fitted.transform(NEW))
    again = clone(loaded)
    assert type(again) is SuperConTextClassifier and not hasattr(again, "model_")
    assert np.array_equal(again.fit(TEXTS, LABELS).transform(NEW), fitted.transform(NEW))
    assert np.array_equal(loaded.fit(TEXTS, LABELS).transform(NEW), fitted.transform(NEW))


@pytest.mark.parametrize(
    "estimator_of",
    [
        lambda folder: superconext.load(folder).estimator(),
        SuperConTextClassifier.load,
    ],
)
def test_the_estimator_of_a_run(fitted, tmp_path, estimator_of):
    fitted.save(tmp_path / "run")
    model = estimator_of(str(tmp_path / "run"))
    assert type(model) is SuperConTextClassifier and vars(model).keys() == vars(fitted).keys()
    assert np.array_equal(model.predict_proba(NEW), fitted.predict_proba(NEW))
    # What was left open, to be chosen by the preset, is what it was chosen to be.
    asked = model.get_params()
    assert asked["callbacks"] is None and asked["layers"] == 1
    assert {name: asked[name] for name in TINY} == TINY


def test_scores_are_of_one_label_of_the_same_type_for_each_text(loaded, fitted):
    column = np.array(LABELS)[:, None]
    assert loaded.score(TEXTS, column) == loaded.score(TEXTS, LABELS) == fitted.score(TEXTS, LABELS)
    for wrong in (LABELS[:1], LABELS[0], [0] * len(TEXTS), None):
        with pytest.raises(DataError):
            loaded.score(TEXTS, wrong)
    with pytest.raises(DataError, match="found no texts"):
        loaded.score([], [])


def test_in_the_hands_of_scikit_learn(loaded):
    frozen = pytest.importorskip("sklearn.frozen")
    calibrated = CalibratedClassifierCV(frozen.FrozenEstimator(loaded)).fit(TEXTS, LABELS)
    assert calibrated.predict(NEW).shape == (6,)


def test_saved_again_it_says_the_same(loaded, tmp_path):
    loaded.save(tmp_path / "again")
    again = superconext.load(tmp_path / "again")
    assert np.array_equal(again.predict_proba(NEW), loaded.predict_proba(NEW))
