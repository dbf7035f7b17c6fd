"""The scikit-learn face."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import superconext
from superconext import SuperConTextClassifier, SuperConTextEncoder
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, DataError, RunError
from superconext.training.callbacks import Callback

GOOD = ["مزيان بزاف", "3jebni bzaf", "zwin mzyan", "واعر عجبني", "mzian hada", "bnin w zwin"]
BAD = ["خايب بزاف", "ma3jebnich", "khayb walo", "ماعجبنيش", "hada khayb", "ghali w khayb"]
TEXTS = (GOOD + BAD) * 2 + [f"{a} {b}" for a, b in zip(GOOD, GOOD[::-1], strict=True)]
LABELS = (["good"] * 6 + ["bad"] * 6) * 2 + ["good"] * 6
SMALL = {
    "epochs": 8,
    "hidden_size": 8,
    "batch_size": 12,
    "vector_dimension": 8,
    "learning_rate": 0.02,
}


@pytest.fixture(scope="module")
def fitted():
    return SuperConTextClassifier(**SMALL).fit(TEXTS, LABELS)


def test_predicts_what_it_was_taught(fitted):
    assert fitted.classes_.tolist() == ["bad", "good"]
    assert fitted.score(TEXTS, LABELS) > 0.8
    shares = fitted.predict_proba(TEXTS)
    assert shares.shape == (30, 2) and np.allclose(shares.sum(axis=1), 1)
    assert np.array_equal(fitted.predict(TEXTS), fitted.classes_[shares.argmax(axis=1)])
    assert np.array_equal(fitted.decision_function(TEXTS) > 0, shares[:, 1] > 0.5)
    assert len(fitted.history_) == 8


def test_vectors_do_not_depend_on_order_or_company(fitted):
    vectors = fitted.transform(TEXTS)
    assert vectors.dtype == np.float32 and vectors.shape == (30, 16)
    order = np.random.default_rng(0).permutation(30)
    assert np.allclose(fitted.transform([TEXTS[i] for i in order]), vectors[order], atol=1e-6)
    assert np.allclose(fitted.transform(TEXTS[7:8]), vectors[7:8], atol=1e-6)


def test_fit_twice_is_fit_once(fitted):
    again = clone(fitted).fit(LABELS, LABELS).fit(TEXTS, LABELS)
    assert np.array_equal(again.transform(TEXTS), fitted.transform(TEXTS))
    assert again.get_params() == fitted.get_params()


def test_whole_number_labels_keep_their_order_and_type():
    numbers = [{"good": 10, "bad": 2}[label] for label in LABELS]
    model = SuperConTextClassifier(**SMALL).fit(TEXTS, numbers)
    assert model.classes_.tolist() == [2, 10]
    assert model.score(TEXTS, numbers) > 0.8 and model.predict(TEXTS).dtype == np.int64


def test_saved_and_loaded_it_answers_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    loaded = superconext.load(tmp_path / "run")
    assert np.array_equal(loaded.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    assert loaded.predict(["مزيان"]).tolist() == fitted.predict(["مزيان"]).tolist()
    with pytest.raises(RunError, match="exists already"):
        fitted.save(tmp_path / "run")


def test_as_a_step_of_a_pipeline():
    model = make_pipeline(SuperConTextEncoder(**SMALL), LogisticRegression())
    assert model.fit(TEXTS, LABELS).score(TEXTS, LABELS) > 0.8
    names = model[0].get_feature_names_out()
    assert len(names) == 16 and names[0] == "supercontextencoder0"


def test_a_spelling_never_seen_has_a_vector_of_its_own(fitted):
    first, second = fitted.transform(["mzyaaan", "zzqqxx"])
    assert not np.allclose(first, second)


@pytest.mark.parametrize(
    ("texts", "labels", "message"),
    [
        ("one text", ["a"], "one string"),
        (["a", None], ["a", "b"], "text 1 is NoneType"),
        (["a", b"b"], ["a", "b"], "text 1 is bytes"),
        (["a", float("nan")], ["a", "b"], r"text 1 is missing \(NaN\): drop the row"),
        (["a", " "], ["a", "b"], "text 1 is blank: drop the row"),
        (["a", "\u200b"], ["a", "b"], "text 1 is blank: drop the row"),
        ([], [], "no texts"),
        (["a", "b"], ["x"], "2 texts and 1 label"),
        (["a", "b", "c"], ["x", "x", "x"], "at least two"),
    ],
)
def test_bad_input_is_named(texts, labels, message):
    with pytest.raises(DataError, match=message):
        SuperConTextClassifier(**SMALL).fit(texts, labels)


@pytest.mark.parametrize("labels", [LABELS, [label == "good" for label in LABELS]])
def test_labels_in_place_of_texts_are_named(labels):
    texts = [f"{text} {number}" for number, text in enumerate(TEXTS)]
    with pytest.raises(DataError, match="swapped: pass the texts first, then the labels"):
        SuperConTextClassifier(**SMALL).fit(labels, texts)


@pytest.mark.parametrize(
    "texts",
    [
        ["good film", float("nan"), "bad film", "meh"],
        iter(["good film", None, "bad film", "meh"]),
        "good film",
        np.array([["good film"], ["bad film"], ["so so"], ["meh"]]),
    ],
)
def test_right_rows_with_one_that_is_wrong_are_not_called_swapped(texts):
    with pytest.raises(DataError) as caught:
        SuperConTextClassifier(**SMALL).fit(texts, ["very good", "very bad", "very bad", "so so"])
    assert "swapped" not in str(caught.value)


def test_more_labels_than_texts_are_quoted_as_they_are():
    with pytest.raises(DataError, match="such as 'a' for 'x'; the two look swapped"):
        SuperConTextClassifier(**SMALL).fit(["x", "x", "y"], np.array(["a", "b", "c"]))


def test_unfitted_and_misconfigured():
    with pytest.raises(NotFittedError, match="not fitted; call fit"):
        SuperConTextClassifier().predict(["a"])
    with pytest.raises(ConfigError, match="epochs = 0"):
        SuperConTextClassifier(epochs=0).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        *(("random_state", "seed"), ("n_jobs", "threads"), ("lr", "learning_rate")),
        *(("max_iter", "epochs"), ("n_epochs", "epochs"), ("num_epochs", "epochs")),
        ("class_weight", "logit_adjustment"),
    ],
)
def test_a_name_of_other_tools_leads_to_ours(name, ours):
    with pytest.raises(TypeError, match=f"unknown parameter '{name}'; did you mean '{ours}'"):
        SuperConTextClassifier(**{name: 1})
    with pytest.raises(ConfigError, match=f"unknown parameter '{name}'; did you mean '{ours}'"):
        resolve({name: 1})


@pytest.mark.parametrize("kind", [SuperConTextClassifier, SuperConTextEncoder])
def test_an_unknown_parameter_is_told_with_the_one_that_it_resembles(kind):
    with pytest.raises(TypeError, match=f"^{kind.__name__}: unknown parameter 'epoch'; did you"):
        kind(epoch=3)
    with pytest.raises(TypeError, match=r"parameter 'zzzz'; known: objective, .*, verbose$"):
        kind(epochs=3, zzzz=1)
    with pytest.raises(TypeError, match="multiple values"):
        kind("superloss", objective="superloss")
    assert clone(kind(epochs=3)).get_params()["epochs"] == 3


def test_ctrl_c_ends_a_fit_and_what_is_saved_says_so(tmp_path):
    class Stop(Callback):
        def on_step_begin(self, trainer, step):
            if trainer.history:
                raise KeyboardInterrupt

    estimator = SuperConTextClassifier(**{**SMALL, "epochs": 3}, callbacks=[Stop()])
    with pytest.raises(KeyboardInterrupt, match="interrupted after 1 of 3 epochs"):
        estimator.fit(TEXTS, LABELS)
    assert len(estimator.predict(TEXTS)) == 30
    estimator.save(tmp_path / "run")
    with pytest.warns(UserWarning, match="interrupted after 1 of 3 epochs: expect less"):
        loaded = superconext.load(tmp_path / "run")
    loaded.save(tmp_path / "copy")
    manifest = json.loads((tmp_path / "copy" / "manifest.json").read_text())
    assert [manifest[key] for key in ("status", "epochs", "planned_epochs")] == [
        "interrupted",
        1,
        3,
    ]
    fitted = estimator.set_params(callbacks=None).fit(TEXTS, LABELS)
    fitted.save(tmp_path / "whole")
    assert json.loads((tmp_path / "whole" / "manifest.json").read_text())["status"] == "complete"
