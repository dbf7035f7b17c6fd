"""The estimators against scikit-learn's contract; its own checks skip text input."""

import copy
import enum
import inspect
import pickle
import re
import shutil
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

import superconext
from superconext import SuperConTextClassifier, SuperConTextEncoder
from superconext.core.errors import ConfigError, DataError, RunError
from superconext.core.progress import Progress
from superconext.estimator.loading import check_labels
from superconext.training.callbacks import Callback, EarlyStopping
from superconext.training.pretraining.language_model import Settings
from superconext.training.pretraining.make import PretrainRequest, pretrain
from tests.cli.conftest import call_main

GOOD = ["zwin bzaf", "3jebni had", "مزيان بزاف", "mzyan hada", "bnin w zwin", "واعر عجبني"]
BAD = ["khayb bzaf", "ma3jebnich had", "خايب بزاف", "khayb hada", "ghali w khayb", "ماعجبنيش"]
TEXTS = (GOOD + BAD) * 2
LABELS = (["good"] * 6 + ["bad"] * 6) * 2
NEW = ["zwwwin bzzaf", "khayyyb", "", "zzqqxx", "👍", "مزيان"]
TINY = {
    "epochs": 3,
    "hidden_size": 4,
    "batch_size": 8,
    "vector_dimension": 4,
    "learning_rate": 0.03,
}
BOTH = pytest.mark.parametrize("kind", [SuperConTextClassifier, SuperConTextEncoder])


@pytest.fixture(scope="module")
def fitted():
    return SuperConTextClassifier(**TINY).fit(TEXTS, LABELS)


# Parameters


@BOTH
@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_estimator_repr",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_mixin_order",
        "check_do_not_raise_errors_in_init_or_set_param",
        "check_estimator_get_tags_default_keys",
    ],
)
def test_scikit_learns_own_checks_that_need_no_numbers(kind, check):
    found = getattr(estimator_checks, check, None)
    if found is None:
        pytest.skip(f"this scikit-learn has no {check}")
    found(kind.__name__, kind())


@BOTH
def test_check_estimator_where_it_applies(kind):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it skips what needs numbers
        estimator_checks.check_estimator(kind(**TINY))


@BOTH
def test_init_stores_what_it_is_given_and_nothing_else(kind):
    marks = {name: object() for name in inspect.signature(kind.__init__).parameters}
    del marks["self"]
    estimator = kind(**marks)
    assert vars(estimator) == marks


def test_fit_leaves_the_parameters_alone(fitted):
    before = SuperConTextClassifier(**TINY).get_params()
    assert fitted.get_params() == before and before["layers"] is None


def test_fitted_attributes_end_in_an_underscore(fitted):
    grown = set(vars(fitted)) - set(fitted.get_params())
    assert grown and all(name.endswith("_") and not name.startswith("_") for name in grown)


def test_a_clone_is_unfitted_and_fits_to_the_same(fitted):
    other = clone(fitted)
    with pytest.raises(NotFittedError):
        other.predict(TEXTS)
    assert np.array_equal(other.fit(TEXTS, LABELS).transform(NEW), fitted.transform(NEW))


# fit


@BOTH
def test_fit_returns_self_and_what_comes_before_it_says_so(kind):
    estimator = kind(**TINY)
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(estimator, method):
            with pytest.raises(NotFittedError, match="call fit"):
                getattr(estimator, method)(TEXTS)
    with pytest.raises(NotFittedError):
        estimator.get_feature_names_out()
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    assert estimator.fit(TEXTS, LABELS) is estimator
    check_is_fitted(estimator)


def test_fit_twice_is_fit_once_on_the_last_data(fitted):
    again = SuperConTextClassifier(**TINY)
    again.fit(TEXTS[:12], ["x", "y"] * 6).fit(TEXTS, LABELS)
    assert again.classes_.tolist() == ["bad", "good"]
    assert np.array_equal(again.predict_proba(NEW), fitted.predict_proba(NEW))


def test_a_fit_that_fails_leaves_the_earlier_one(fitted):
    model = copy.deepcopy(fitted)
    with pytest.raises(DataError):
        model.fit(TEXTS, ["one"] * len(TEXTS))
    assert np.array_equal(model.predict_proba(NEW), fitted.predict_proba(NEW))


@pytest.mark.parametrize(
    ("labels", "dtype", "classes"),
    [
        (LABELS, "<U4", ["bad", "good"]),
        (np.array(LABELS, dtype=object), "O", ["bad", "good"]),
        ([{"good": 10, "bad": 9}[label] for label in LABELS], "int64", [9, 10]),
        (np.array([label == "good" for label in LABELS], dtype=np.int8), "int8", [0, 1]),
        ([label == "good" for label in LABELS], "bool", [False, True]),
        (np.array([label == "good" for label in LABELS]) * 2.0 - 1, "float64", [-1.0, 1.0]),
        (np.array([[label] for label in LABELS]), "<U4", ["bad", "good"]),
    ],
    ids=["str", "object", "int", "int8", "bool", "float", "column"],
)
def test_labels_keep_their_type_through_fit_save_and_load(labels, dtype, classes, tmp_path):
    model = SuperConTextClassifier(**TINY).fit(TEXTS, labels)
    model.save(tmp_path / "run")
    for one in (model, superconext.load(tmp_path / "run")):
        assert one.classes_.tolist() == classes and one.classes_.dtype == np.dtype(dtype)
        predicted = one.predict(list(filter(None, NEW)))
        assert predicted.dtype == np.dtype(dtype) and set(predicted.tolist()) <= set(classes)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "requires y to be passed, but the target y is None"),
        (["a", None] * 12, "label 1 is NoneType"),
        ([1, "a"] * 12, "label 0 is int and label 1 is str"),
        ([0.5, 1.0] * 12, "Unknown label type: continuous"),
        ([float("nan"), 1.0] * 12, r"label 0 is missing \(NaN\): label the row or drop it"),
        (["a", float("nan")] * 12, r"label 1 is missing \(NaN\): label the row or drop it"),
        (["a", " "] * 12, "label 1 is empty: label the row or drop it"),
        ([["a", "b"]] * 24, "y should be a 1d array"),
        ("ab" * 12, "expected a list of labels"),
        (np.array([b"a", b"b"] * 12), "labels are of type"),
        (LABELS[:-1], "24 texts and 23 labels"),
        (7, "expected a list of labels"),
    ],
)
def test_labels_that_are_none_are_named(labels, message):
    with pytest.raises(DataError, match=message):
        SuperConTextClassifier(**TINY).fit(TEXTS, labels)


def test_labels_that_may_be_one_class_are_told():
    labels = ["Good " if row in (0, 12) else label for row, label in enumerate(LABELS)]
    told = r"classes that differ in case, .*'good' \(.*'Good ' \(2 rows, positions 0, 12\)"
    with pytest.warns(UserWarning, match=told):
        model = SuperConTextClassifier(**{**TINY, "epochs": 1}).fit(TEXTS, labels)
    assert "Good " in model.classes_


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({0: "nan", 3: "nan"},
         r"^y: the label 'nan' \(2 rows, positions 0, 3\) is how a missing one is written: leave "
         "these rows out, if it is$"),
        ({5: "rare"}, r"^y: found 1 class with a single row: 'rare' \(position 5\)"),
        ({23: "gold"}, "^y: 1 text has several labels, as at positions 1 and 23$"),
        ({}, None),
    ],
)  # fmt: skip
def test_doubtful_labels_are_told_once_as_on_the_command_line(recwarn, changes, message):
    texts = [f"{text} w{row}" for row, text in enumerate(TEXTS)]
    texts[23] = texts[1] if changes.get(23) else texts[23]
    labels = [changes.get(row, label) for row, label in enumerate(LABELS)]
    labels[2] = labels[4] = "gold" if 23 in changes else labels[2]
    SuperConTextClassifier(**{**TINY, "epochs": 1}).fit(texts, labels)
    said = [str(one.message) for one in recwarn if str(one.message).startswith("y: ")]
    assert len(said) == (message is not None)
    assert all(re.search(message, line) for line in said)


def test_blank_texts_do_not_look_swapped():
    with pytest.raises(DataError, match="text 0 is blank"):
        SuperConTextClassifier(**TINY).fit([""] * 4, ["a", "b"] * 2)


def test_sample_weight_is_refused_and_nobody_believes_otherwise():
    model = SuperConTextClassifier(**TINY)
    assert not has_fit_parameter(model, "sample_weight")
    with pytest.raises(TypeError, match="does not support"):
        model.fit(TEXTS, LABELS, sample_weight=np.ones(24))
    with pytest.raises(TypeError, match="unknown"):
        model.fit(TEXTS, LABELS, unknown=1)
    with sklearn.config_context(enable_metadata_routing=True):
        assert not hasattr(model, "set_fit_request")
        with pytest.raises((TypeError, ValueError), match="sample_weight"):
            make_pipeline(SuperConTextEncoder(**TINY), LogisticRegression()).fit(
                TEXTS, LABELS, sample_weight=np.ones(24)
            )


# Texts


@pytest.mark.parametrize("form", ["tuple", "array", "object", "generator", "series"])
def test_texts_come_in_any_container(fitted, form):
    if form == "series":
        pandas = pytest.importorskip("pandas")
        given, labels = pandas.Series(TEXTS, index=range(5, 29)), pandas.Series(LABELS)
        model = SuperConTextClassifier(**TINY).fit(given, labels)
        assert np.array_equal(model.transform(NEW), fitted.transform(NEW))
    else:
        make = {
            "tuple": tuple,
            "array": np.array,
            "object": lambda texts: np.array(texts, dtype=object),
            "generator": iter,
        }[form]
        given = make(TEXTS)
    assert np.array_equal(fitted.transform(given), fitted.transform(TEXTS))


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("one", "found one string"),
        (b"one", "found one string"),
        ([b"one"], "text 0 is bytes"),
        (["one", np.nan], "text 1 is missing"),
        (["one", None], "text 1 is NoneType"),
        ([["one"]], "text 0 is list"),
        (np.array([["one"], ["two"]]), r"shape \(2, 1\)"),
        ({"one": 1}, "found dict"),
        ({"one", "two"}, "found set"),
        (3, "found int"),
    ],
)
def test_texts_that_are_none_are_named(fitted, texts, message):
    for method in (fitted.predict, fitted.transform, fitted.decision_function):
        with pytest.raises(DataError, match=message):
            method(texts)


def test_no_texts_have_no_answers_and_are_nothing_to_learn_from(fitted):
    assert fitted.predict([]).shape == fitted.decision_function([]).shape == (0,)
    assert fitted.predict_proba([]).shape == (0, 2) and len(fitted.transform([])) == 0
    with pytest.raises(DataError, match="found no texts; expected at least one"):
        SuperConTextClassifier(**TINY).fit([], [])


def test_a_frame_is_not_taken_for_its_column_names(fitted):
    frame = pytest.importorskip("pandas").DataFrame({"text": TEXTS, "label": LABELS})
    with pytest.raises(DataError, match=r"frame\['text'\]"):
        fitted.predict(frame)
    assert len(fitted.predict(frame["text"])) == 24


# Answers


def test_answers_agree_with_each_other(fitted):
    texts = [*TEXTS, *filter(None, NEW)]
    shares = fitted.predict_proba(texts)
    assert shares.shape == (29, 2) and np.allclose(shares.sum(axis=1), 1) and (shares >= 0).all()
    assert np.array_equal(fitted.predict(texts), fitted.classes_[shares.argmax(axis=1)])
    scores = fitted.decision_function(texts)
    assert scores.shape == (29,)
    assert np.allclose(1 / (1 + np.exp(-scores)), shares[:, 1])
    assert fitted.score(TEXTS, LABELS) == np.mean(fitted.predict(TEXTS) == np.array(LABELS))
    weights = np.arange(24.0)
    right = fitted.predict(TEXTS) == np.array(LABELS)
    expected = np.average(right, weights=weights)
    assert fitted.score(TEXTS, LABELS, sample_weight=weights) == pytest.approx(expected)


def test_a_blank_text_has_no_label_in_python_and_of_the_command(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    blank = ["", " \t ", "\u200b", "\u202b \ufeff", "\u2800\u3164", "zwin"]
    for model in (fitted, superconext.load(tmp_path / "run")):
        labels = model.predict(blank)
        assert labels.tolist()[:5] == [""] * 5 and labels[5] in LABELS
        shares = model.predict_proba(blank)
        assert (shares[:5] == 0.5).all() and shares[5].max() > 0.5
        scores = model.decision_function(blank)
        assert (scores[:5] == 0).all() and scores[5] != 0
    lines = "\n \n\u200b\n\u202b \ufeff\n\u2800\u3164\nzwin\n".encode()
    said = call_main("predict", tmp_path / "run", stdin=lines).out.splitlines()
    assert [line.split("\t")[0] for line in said] == labels.tolist()


@pytest.mark.parametrize("kind", [int, bool])
def test_a_blank_text_of_labels_without_an_empty_one_gets_the_first_and_is_named(kind, tmp_path):
    labels = [kind(label == "good") for label in LABELS]
    fitted = SuperConTextClassifier(**TINY).fit(TEXTS, labels)
    fitted.save(tmp_path / "run")
    told = re.escape(f"found 2 blank of 4 texts (at 0, 2), labelled {kind(0)} as no label is more")
    for model in (fitted, superconext.load(tmp_path / "run")):
        with pytest.warns(UserWarning, match=told):
            found = model.predict(["", "zwin", "\u2800", "zwin"])
        assert found.dtype == fitted.classes_.dtype
        assert not found[0] and not found[2] and found[1] == model.predict(["zwin"])[0]
    with pytest.warns(UserWarning, match=re.escape("(at 0, 1, 2, 3, 4 and 4 more)")):
        fitted.predict([""] * 9)


def test_answers_agree_for_three_classes():
    texts, labels = [*TEXTS, *["ch7al taman", "فين جا", "wach kayn"] * 4], [*LABELS, *["ask"] * 12]
    model = SuperConTextClassifier(**TINY).fit(texts, labels)
    assert model.classes_.tolist() == ["ask", "bad", "good"]
    scores, shares = model.decision_function(texts), model.predict_proba(texts)
    assert scores.shape == shares.shape == (36, 3)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert np.allclose(powers / powers.sum(axis=1, keepdims=True), shares)
    assert np.array_equal(model.predict(texts), model.classes_[scores.argmax(axis=1)])


def test_a_vector_depends_on_its_text_alone(fitted):
    texts = [*TEXTS, *NEW, "zwin " * 300]
    vectors = fitted.transform(texts)
    assert vectors.dtype == np.float32 and np.isfinite(vectors).all()
    turned = fitted.transform(texts[::-1])[::-1]
    alone = np.vstack([fitted.transform([text]) for text in texts])
    pairs = np.vstack([fitted.transform(texts[i : i + 2]) for i in range(0, len(texts), 2)])
    for other in (turned, alone, pairs):
        assert np.allclose(vectors, other, atol=1e-6)


def test_texts_alike_are_read_once_and_answered_each(fitted, monkeypatch):
    texts = ["zwin", "khayb hada", "zwin", "ZWIIIIN", "ziiwn", "zwin", "zwiin"]
    expected = np.vstack([fitted.transform([text]) for text in texts])
    assert np.allclose(fitted.transform(texts), expected, atol=1e-6)
    vectors = fitted.transform(texts)
    assert np.array_equal(vectors[0], vectors[2]) and np.array_equal(vectors[0], vectors[5])
    seen = []
    encoder = fitted.model_.encoders[0]
    read = encoder.forward_ragged
    monkeypatch.setattr(
        encoder, "forward_ragged", lambda *given: seen.append(len(given[1])) or read(*given)
    )
    fitted.predict(texts)
    distinct = {tuple(tokens) for tokens in fitted.model_.tokens(texts)}
    assert sum(seen) == len(distinct) < len(texts)


def test_columns_are_named_and_become_those_of_a_frame(fitted):
    names = fitted.get_feature_names_out()
    assert names.tolist() == [f"supercontextclassifier{i}" for i in range(8)]
    pandas = pytest.importorskip("pandas")
    framed = clone(fitted).set_output(transform="pandas").fit(TEXTS, LABELS)
    frame = framed.transform(pandas.Series(NEW, index=list("uvwxyz")))
    assert frame.columns.tolist() == names.tolist() and frame.index.tolist() == list("uvwxyz")
    assert np.array_equal(frame.to_numpy(), fitted.transform(NEW))
    assert isinstance(framed.fit_transform(TEXTS, LABELS), pandas.DataFrame)
    assert framed.transform(TEXTS).shape == (24, 8)


# Company


def test_tags_say_what_it_is():
    tags = SuperConTextClassifier().__sklearn_tags__()
    assert tags.input_tags.string and not tags.input_tags.two_d_array
    assert tags.target_tags.required and is_classifier(SuperConTextClassifier())
    assert not is_classifier(SuperConTextEncoder())
    assert SuperConTextEncoder().__sklearn_tags__().transformer_tags is not None


def test_in_a_pipeline_and_a_column_transformer():
    chain = make_pipeline(SuperConTextEncoder(**{**TINY, "epochs": 20}), LogisticRegression())
    assert chain.fit(TEXTS, LABELS).score(TEXTS, LABELS) > 0.8
    assert chain[:-1].get_feature_names_out()[0] == "supercontextencoder0"
    frame = pytest.importorskip("pandas").DataFrame({"text": TEXTS, "n": range(24)})
    columns = ColumnTransformer(
        [("text", SuperConTextEncoder(**TINY), "text"), ("rest", "passthrough", ["n"])]
    )
    assert columns.fit_transform(frame, LABELS).shape == (24, 9)
    assert columns.get_feature_names_out()[0] == "text__supercontextencoder0"


@pytest.mark.long
def test_cross_validated_and_searched_in_processes():
    model = SuperConTextClassifier(**{**TINY, "epochs": 2})
    scores = cross_val_score(model, TEXTS, LABELS, cv=2)
    assert scores.shape == (2,) and 0 <= scores.min() <= scores.max() <= 1
    grid = {"temperature": [0.1, 0.3]}
    search = GridSearchCV(model, grid, cv=2, n_jobs=2, error_score="raise").fit(TEXTS, LABELS)
    assert search.best_params_ in ({"temperature": 0.1}, {"temperature": 0.3})
    here = GridSearchCV(model, grid, cv=2, error_score="raise").fit(TEXTS, LABELS)
    # A worker and this process give the same scores: nothing hangs on where it runs.
    assert np.array_equal(
        search.cv_results_["mean_test_score"], here.cv_results_["mean_test_score"]
    )
    assert search.predict(NEW).tolist() == here.predict(NEW).tolist()


@BOTH
def test_a_pickled_estimator_answers_the_same(kind):
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        model = kind(**TINY).fit(TEXTS, LABELS)
        other = pickle.loads(pickle.dumps(model, protocol=protocol))
        assert np.array_equal(other.transform(NEW), model.transform(NEW))
        assert other.get_params() == model.get_params()


# An encoder pretrained elsewhere


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A folder as `superconext pretrain` makes it."""
    folder = tmp_path_factory.mktemp("pretrained")
    lines = [" ".join(TEXTS[i % 12 : i % 12 + 3]) for i in range(120)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = Settings(hidden_size=4, epochs=1, batch_size=20)
    files, out = [str(folder / "text.txt")], folder / "encoder"
    pretrain(PretrainRequest(files, out, settings, vector_dimension=4), Progress())
    return out


@BOTH
def test_init_is_a_path_that_nothing_fitted_needs(kind, pretrained, fitted, tmp_path):
    place = tmp_path / "encoder"
    shutil.copytree(pretrained, place)
    given = {**TINY, "init": str(place)}
    model = clone(kind(**given)).fit(TEXTS, LABELS)
    assert model.init == str(place)
    # It began elsewhere than at random, and so does a clone, to the same end.
    assert not np.array_equal(model.transform(NEW), fitted.transform(NEW))
    expected = model.transform(NEW)
    assert np.array_equal(clone(model).fit(TEXTS, LABELS).transform(NEW), expected)
    model.save(tmp_path / "run")
    shutil.rmtree(place)
    loaded = superconext.load(tmp_path / "run")
    for other in (loaded, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(other.transform(NEW), expected)
        assert other.get_params()["init"] == str(place)
        with pytest.raises((ConfigError, RunError), match=re.escape(str(place))):
            clone(other).fit(TEXTS, LABELS)
        assert np.array_equal(other.transform(NEW), expected)


def test_init_is_searched_in_processes(pretrained):
    model = SuperConTextClassifier(**{**TINY, "epochs": 1}, init=str(pretrained))
    grid = {"init": [None, str(pretrained)]}
    search = GridSearchCV(model, grid, cv=2, n_jobs=2, error_score="raise").fit(TEXTS, LABELS)
    assert search.best_params_["init"] in grid["init"]


# Callbacks


class Counter(Callback):
    def __init__(self):
        self.seen = {}

    def count(self, name):
        self.seen[name] = self.seen.get(name, 0) + 1

    def on_train_begin(self, trainer):
        self.count("train begin")

    def on_epoch_begin(self, trainer, epoch):
        self.count("epoch begin")

    def on_step_end(self, trainer, step, loss):
        self.count("step end")
        assert np.isfinite(loss)

    def on_epoch_end(self, trainer, record):
        self.count("epoch end")
        record["extra"] = record["epoch"] * 10

    def on_train_end(self, trainer):
        self.count("train end")


def test_callbacks_see_every_epoch_and_step_and_change_nothing(fitted):
    counter = Counter()
    model = SuperConTextClassifier(**TINY, callbacks=[counter]).fit(TEXTS, LABELS)
    steps = counter.seen.pop("step end")
    assert steps >= 3 and steps % 3 == 0
    assert counter.seen == {"train begin": 1, "epoch begin": 3, "epoch end": 3, "train end": 1}
    assert [record["extra"] for record in model.history_] == [10, 20, 30]
    assert np.array_equal(model.transform(NEW), fitted.transform(NEW))


def test_each_member_is_a_training_of_its_own():
    counter = Counter()
    model = SuperConTextClassifier(**TINY, members=2, callbacks=[counter]).fit(TEXTS, LABELS)
    assert counter.seen["train begin"] == counter.seen["train end"] == 2
    assert [record["member"] for record in model.history_] == [1, 1, 1, 2, 2, 2]


def test_callbacks_survive_clone_and_are_checked_when_fitting():
    model = clone(SuperConTextClassifier(**TINY, callbacks=[Counter()]))
    assert isinstance(model.callbacks[0], Counter)
    with pytest.raises(ConfigError, match="expected instances of"):
        model.set_params(callbacks=[print]).fit(TEXTS, LABELS)


# Folders


def test_an_encoder_is_saved_too_and_loading_tells_damage(tmp_path):
    encoder = SuperConTextEncoder(**TINY).fit(TEXTS, LABELS)
    encoder.save(tmp_path / "run")
    assert np.array_equal(superconext.load(tmp_path / "run").transform(NEW), encoder.transform(NEW))
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"str', '"complex64", "x": "'))
    with pytest.raises(RunError, match="label_type"):
        superconext.load(tmp_path / "run")
    with pytest.raises(NotFittedError):
        SuperConTextEncoder().save(tmp_path / "none")


def test_nothing_saved_is_a_pickle_or_needs_one(fitted, tmp_path, monkeypatch):
    fitted.save(tmp_path / "run")

    def refuse(*_, **__):
        raise AssertionError("unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    loaded = superconext.load(tmp_path / "run")
    assert np.array_equal(loaded.predict_proba(NEW), fitted.predict_proba(NEW))
    suffixes = {path.suffix for path in (tmp_path / "run").iterdir()}
    assert suffixes <= {".json", ".toml", ".safetensors"}


@pytest.mark.parametrize("verbose", [False, True])
def test_only_verbose_says_what_fit_does(capsys, verbose):
    model = clone(SuperConTextClassifier(**TINY, verbose=verbose))
    assert ("verbose=True" in repr(model)) == verbose and "verbose" in model._repr_html_()
    model.fit(TEXTS, LABELS).predict(TEXTS)
    said = capsys.readouterr()
    assert not said.out and bool(said.err) == verbose
    assert "vectors: " in said.err or not verbose


class Mood(str, enum.Enum):  # noqa: UP042 - whose str() is not its value
    POSITIVE = "positive"
    NEGATIVE = "negative"
    NEUTRAL = "neutral"


@pytest.mark.parametrize("kind", [list, lambda given: np.array(given, dtype=object)])
def test_labels_of_an_enum_are_its_values(kind, tmp_path):
    labels = [[*Mood][k % 3] for k in range(24)]
    model = SuperConTextClassifier(**TINY).fit(TEXTS, kind(labels))
    assert sorted(model.classes_) == ["negative", "neutral", "positive"]
    model.save(tmp_path / "run")
    loaded = superconext.load(tmp_path / "run")
    score = model.score(TEXTS, kind(labels))
    assert loaded.score(TEXTS, kind(labels)) == score > 0


def test_text_of_numpys_own_kind_is_a_label_and_a_number_beyond_64_bits_none():
    text = np.array(LABELS, dtype=np.dtypes.StringDType())
    assert SuperConTextClassifier(**TINY).fit(TEXTS, text).classes_.tolist() == ["bad", "good"]
    for huge in (np.array([2**70, 3] * 12, dtype=object), [1e22, 3.0] * 12, [np.inf, 3.0] * 12):
        with pytest.raises(DataError, match="beyond 64 bits"):
            SuperConTextClassifier(**TINY).fit(TEXTS, huge)
    with pytest.raises(DataError, match=f"found the label {2**70}, a number beyond"):
        check_labels([1, 2**70, 2], 3, "x")


def test_a_label_that_ends_in_nul_is_another():
    for kind in (list, lambda labels: np.array(labels, dtype=object)):
        assert check_labels(kind(["a", "a\0", "b"]), 3, "x").tolist() == ["a", "a\0", "b"]


@pytest.mark.parametrize(
    "labels",
    [
        [2**60, 2**60 + 1, 5.0],
        [np.uint64(2**60), np.uint64(2**60 + 1), np.int64(5)],
        np.array([2**53 + 1, 2.0**53, 1], dtype=object),
    ],
)
def test_whole_numbers_that_become_equal_as_floats_are_refused(labels):
    with pytest.raises(DataError, match="become equal as floats; expected one type"):
        check_labels(labels, 3, "x")
    alike = [2.0**60, 2**60, 3]
    assert len(set(check_labels(alike, 3, "x").tolist())) == 2
    assert len(set(check_labels([2**60, 2**60 + 1, 5], 3, "x").tolist())) == 3


def test_zero_is_one_class_whatever_its_sign():
    model = SuperConTextClassifier(**TINY).fit(TEXTS, [0.0, -0.0, 1.0, 1.0] * 6)
    assert list(map(str, model.classes_.tolist())) == ["0.0", "1.0"]


def test_labels_to_score_by_are_of_the_kind_of_the_classes(fitted):
    with pytest.raises(DataError, match="labels that are numbers, such as 0; expected text"):
        fitted.score(TEXTS, [0, 1] * 12)
    for none in ([], np.array([], dtype=object)):
        with pytest.raises(DataError, match="found no texts"):
            fitted.score([], none)


def test_numbers_of_numpy_are_parameters():
    given = {"seed": np.int64(3), "learning_rate": np.float32(0.03), "calibrate": np.bool_(False)}
    model = SuperConTextClassifier(**{**TINY, **given}).fit(TEXTS, LABELS)
    plain = SuperConTextClassifier(**{**TINY, "seed": 3}).fit(TEXTS, LABELS)
    np.testing.assert_allclose(model.predict_proba(NEW), plain.predict_proba(NEW), atol=1e-5)


def test_fits_in_threads_are_those_of_their_seeds():
    def fit(seed):
        return SuperConTextClassifier(**TINY, seed=seed).fit(TEXTS, LABELS).predict_proba(NEW)

    alone = [fit(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(alone, pool.map(fit, range(4)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_blank_text_is_not_explained_and_a_callback_without_a_list_told(fitted):
    with pytest.raises(DataError, match="text 1 is blank"):
        fitted.explain(["zwin", "\u200b"])
    with pytest.raises(ConfigError, match="expected instances of"):
        SuperConTextClassifier(**TINY, callbacks=print).fit(TEXTS, LABELS)


@pytest.mark.long
def test_a_fit_that_fails_leaves_what_the_cross_validation_before_showed():
    model = SuperConTextClassifier(**TINY, cv=2).fit(TEXTS, LABELS)
    shown = model.cv_
    with pytest.raises(DataError):
        model.fit(TEXTS, ["good"] * len(TEXTS))
    assert model.cv_ is shown


@pytest.mark.parametrize("given", [{"cv": 2}, {"preset": "auto"}])
def test_stopping_by_rows_held_out_is_refused_before_folds_are_fitted(given, monkeypatch):
    """A cross-validated model is fitted on all rows: nobody is held out in the end."""
    sizes = {} if "preset" in given else TINY
    model = SuperConTextClassifier(**sizes, **given, callbacks=[EarlyStopping(patience=2)])

    def begun(*args, **more):
        raise AssertionError("a cross-validation has begun")

    monkeypatch.setattr("superconext.fitting.recipes.CrossValidation", begun)
    with pytest.raises(ConfigError, match="watches 'dev_score', and after a cross-validation"):
        model.fit(TEXTS, LABELS)
    model.callbacks = [EarlyStopping(monitor="loss", mode="min")]
    with pytest.raises(AssertionError):
        model.fit(TEXTS, LABELS)


def test_labels_of_a_frame_are_its_only_column(fitted):
    frame = pytest.importorskip("pandas").DataFrame({"label": LABELS})
    assert fitted.score(TEXTS, frame) == fitted.score(TEXTS, LABELS)
    assert fitted.score(TEXTS[:1], frame[:1]) == fitted.score(TEXTS[:1], LABELS[:1])
    with pytest.raises(DataError, match=r"y of shape \(24, 2\)"):
        SuperConTextClassifier(**TINY).fit(TEXTS, frame.assign(other=1))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (set(LABELS), "found y of type set; expected a list"),
        (dict.fromkeys(TEXTS, "good"), "found y of type dict; expected a list"),
        ([["a"], ["b", "c"]] * 12, "lists of labels of different lengths.*one class for a text"),
    ],
)
def test_what_is_no_list_of_labels_is_named(labels, message):
    with pytest.raises(DataError, match=message):
        SuperConTextClassifier(**TINY).fit(TEXTS, labels)


@pytest.mark.parametrize("name", ["seed", "normalize", "max_length", "threads", "freeze"])
def test_none_is_not_a_default_without_a_word(name):
    default = SuperConTextClassifier().get_params()[name]
    with pytest.raises(ConfigError, match=f"^{name}: found None; .* leave it out for {default!r}"):
        SuperConTextClassifier(**{**TINY, name: None}).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"count": -1}, ConfigError, "count: found -1; expected a whole number"),
        ({"count": 2.5}, ConfigError, "count: found 2.5"),
        ({"balance": "classes"}, ConfigError, "balance: found 'classes'; expected None, 'class'"),
        ({"labelled": "zwin had"}, DataError, "one string; expected a list of texts"),
        ({"labelled": ["zwin", None]}, DataError, "text 1 is NoneType"),
    ],
)
def test_what_suggest_cannot_use_is_named(fitted, given, error, message):
    with pytest.raises(error, match=message):
        fitted.suggest([*TEXTS, "zwin had chi"], **given)


def test_suggest_takes_labelled_texts_in_any_container(fitted):
    done = ["sir l dar", "wach kayn", "chno hada"]
    texts = [*done, "had chi jdid", "mat3erfch", "ghir hakak"]
    expected = [one.text for one in fitted.suggest(texts, 9, labelled=done)]
    assert len(expected) == 3 and not set(expected) & set(done)
    for labelled in (iter(done), np.array(done), tuple(done)):
        assert [one.text for one in fitted.suggest(texts, 9, labelled=labelled)] == expected


@pytest.mark.long
@pytest.mark.parametrize("changes", [{}, {"cv": 2}, {"init": "a folder", "freeze": True}])
@pytest.mark.parametrize("state", ["no_grad", "inference_mode", "float64", "meta", "autocast"])
def test_a_fit_is_the_same_whatever_torch_is_set_to(state, changes, request):
    torch = pytest.importorskip("torch")
    if "init" in changes:
        changes = {**changes, "init": str(request.getfixturevalue("pretrained"))}
    parameters = {**TINY, "epochs": 1, **changes}
    if "init" in changes:
        parameters = {name: parameters[name] for name in ("epochs", "init", "freeze")}
    expected = SuperConTextClassifier(**parameters).fit(TEXTS, LABELS).predict_proba(NEW)
    before = torch.get_default_dtype()
    try:
        if state == "float64":
            torch.set_default_dtype(torch.float64)
            fitted = SuperConTextClassifier(**parameters).fit(TEXTS, LABELS)
            assert torch.get_default_dtype() == torch.float64
        else:
            states = {
                "meta": lambda: torch.device("meta"),  # stands for cuda
                "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
            }
            with states.get(state, getattr(torch, state, None))():
                fitted = SuperConTextClassifier(**parameters).fit(TEXTS, LABELS)
        assert np.array_equal(fitted.predict_proba(NEW), expected)
    finally:
        torch.set_default_dtype(before)


def test_loading_draws_none_of_the_callers_random_numbers(fitted, tmp_path):
    torch = pytest.importorskip("torch")
    fitted.save(tmp_path / "run")
    before = torch.random.get_rng_state()
    superconext.load(tmp_path / "run")
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("names", [(2, 10), (False, True), (-1.0, 1.0)])
def test_explanations_and_suggestions_name_classes_as_predictions_do(names):
    labels = [names[label == "good"] for label in LABELS]
    model = SuperConTextClassifier(**TINY).fit(TEXTS, labels)
    texts = ["ahsan film", "khayb bzaf", "zwin had chi"]
    predicted = model.predict(texts).tolist()
    assert [repr(one.label) for one in model.explain(texts)] == [*map(repr, predicted)]
    found = {one.text: one.prediction for one in model.suggest(texts, 3)}
    assert len(found) == len({*texts} - {*TEXTS})  # what it was trained on has a label
    named = dict(zip(texts, predicted, strict=True))
    assert {text: repr(of) for text, of in found.items()} == {t: repr(named[t]) for t in found}


def test_labels_under_a_mask_are_missing(fitted):
    hidden = np.ma.masked_array([0, 1] * 12, mask=[0] * 5 + [1] * 19)
    with pytest.raises(DataError, match="label 5 is missing"):
        SuperConTextClassifier(**TINY).fit(TEXTS, hidden)
    shown = np.ma.masked_array(LABELS, mask=[0] * 24)
    assert fitted.score(TEXTS, shown) == fitted.score(TEXTS, LABELS)


def test_labels_of_which_the_model_knows_none_are_told(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    for model in (fitted, superconext.load(tmp_path / "run")):
        with pytest.warns(UserWarning, match="no label that the model knows, such as GOOD"):
            assert model.score(TEXTS, [label.upper() for label in LABELS]) == 0


def test_a_fit_is_the_same_whatever_numpy_raises(tmp_path):
    # Half precision, in which vectors are kept, has no smaller number than 6e-8.
    (file := tmp_path / "vectors.txt").write_text("film 1 1 0.5 -1\nunseen 0.1 0.3 1e-9 1\n")
    parameters = {**TINY, "vectors": str(file)}
    expected = SuperConTextClassifier(**parameters).fit(TEXTS, LABELS).predict_proba(NEW)
    with np.errstate(all="raise"):
        fitted = SuperConTextClassifier(**parameters).fit(TEXTS, LABELS)
        assert np.array_equal(fitted.predict_proba(NEW), expected)


def test_more_folds_than_texts_are_told():
    texts = [f"{word} {number}" for number in range(4) for word in ("zwin", "khayb")]
    with pytest.warns(UserWarning, match="cv: found texts for 8 folds, expected 30: 8 are used"):
        SuperConTextClassifier(**{**TINY, "epochs": 1}, cv=30).fit(texts, ["good", "bad"] * 4)


def test_a_folder_that_cannot_be_made_is_named(fitted, tmp_path):
    (tmp_path / "file").write_text("x")
    for name in ("file/run", "x" * 300, "run\0"):
        with pytest.raises(RunError, match="expected a new folder: choose another"):
            fitted.save(tmp_path / name)
