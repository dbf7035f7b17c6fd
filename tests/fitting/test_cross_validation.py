"""Cross-validation of a run: what is out of fold, and that no label of a fold leaks into it."""

from dataclasses import replace

import numpy as np
import pytest

from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.fitting.checks import check_config
from superconext.fitting.cross_validation import (
    ENCODER,
    NGRAMS,
    TFIDF,
    VECTORS,
    CrossValidation,
    OutOfFold,
    cross_validate,
    deal,
    lacks_folds,
    repeats,
)
from superconext.probe.ensemble import Fold, Settings
from superconext.runs.splits import TrainRequest
from superconext.runs.train import train_run
from tests.runs.test_splits import Said

TINY = {
    "epochs": 1,
    "steps_per_epoch": 2,
    "batch_size": 12,
    "hidden_size": 4,
    "vector_dimension": 8,
    "vector_method": "random",
    "subwords": False,
}
WORDS = {"good": ["zwin", "top", "hayla"], "bad": ["khayb", "walo", "3iyan"], "so": ["fin", "wach"]}


def dataset(rows=30, seed=0):
    draw = np.random.default_rng(seed)
    labels = [list(WORDS)[row % len(WORDS)] for row in range(rows)]
    texts = [
        f"{draw.choice(WORDS[label])} had {draw.choice(['film', 'tram'])} n{row}"
        for row, label in enumerate(labels)
    ]
    return Dataset(texts, labels, range(1, rows + 1), "rows.tsv")


def test_what_reads_dev_scores_cannot_be_cross_validated():
    lacks = {name: lacks_folds(resolve({"objective": name})) for name in ("css_lm", "css_lm_st")}
    assert lacks == {"css_lm": "objective = 'css_lm'", "css_lm_st": ""}
    assert lacks_folds(resolve({"keep": "best"})) == "keep = 'best'"


def test_few_rows_are_dealt_oftener():
    assert [repeats(rows, 5) for rows in (30, 100, 200, 2_000)] == [4, 4, 2, 1]
    trained = resolve(TINY)
    assert repeats(30, 5, trained) == 1, "what is slow is not done twenty times unasked"
    asked = (resolve({**TINY, "cv": 5}), resolve({"preset": "auto"}))
    assert [repeats(30, 5, config) for config in asked] == [4, 4]
    folds = deal(dataset(), 5, 0, 4)
    assert len(folds) == 20 and [fold.repeat for fold in folds] == sorted([0, 1, 2, 3] * 5)
    assert not np.array_equal(folds[0].held, folds[5].held)


def test_few_rows_of_a_frozen_encoder_are_dealt_oftener_without_being_asked():
    trained = resolve(TINY)
    assert trained.cv is None and repeats(30, 5, trained) == 1
    assert repeats(30, 5, replace(trained, freeze=True)) == repeats(30, 5) == 4


def test_copies_are_held_out_together_and_a_class_with_one_text_never_is():
    rows = dataset(30)
    texts = [*rows.texts, *rows.texts[:5], "alone"]
    labels = [*rows.labels, *rows.labels[:5], "rare"]
    data = Dataset(texts, labels, range(len(texts)))
    for fold in deal(data, 5, 1, 4):
        held, fitted = ({texts[row] for row in part} for part in (fold.held, fold.fitted))
        assert not held & fitted
        assert {labels[row] for row in fold.fitted} == set(labels)
        assert "alone" in fitted


def test_the_labels_of_a_fold_have_no_part_in_what_its_models_predict():
    names, found = (TFIDF, NGRAMS, VECTORS, ENCODER), []
    for changed in (False, True):
        cv = CrossValidation(dataset(), resolve(TINY), 5, Progress())
        cv.keep(2)
        if changed:
            cv.labels[cv.folds[0].held] = (cv.labels[cv.folds[0].held] + 1) % 3
            cv.prepared.labels[:] = cv.labels
        cv.add(names[:3])
        cv.add_encoder()
        found.append(cv.models)
    for name in names:
        before, after = (models[name] for models in found)
        for place in range(len(before.grid)):
            np.testing.assert_array_equal(before.shares(0, place), after.shares(0, place))
        assert not np.array_equal(before.shares(1, 0), after.shares(1, 0))


@pytest.mark.parametrize("features", ["encoder", "encoder+ngrams", "encoder+tfidf"])
def test_every_row_is_predicted_and_the_same_again(features):
    data = dataset()
    config = resolve({**TINY, "probe_features": features, "logit_adjustment": 0.5, "cv": 3})
    first, second = (cross_validate(CrossValidation(data, config, 3, Progress())) for _ in "ab")
    rows, shares = first.recipe.mean(3)
    assert rows.tolist() == list(range(30))
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(shares, second.recipe.mean(3)[1])
    metrics = first.recipe.metrics(data, sorted(WORDS))
    assert metrics["n"] == 30 and metrics["folds"]["count"] == 18
    assert 0 <= metrics["folds"]["accuracy"]["sd"] < metrics["folds"]["accuracy"]["mean"] <= 1
    assert set(first.baselines) == {"majority", "tfidf_logreg", "tfidf_logreg_adjusted"}
    assert (first.encoder_alone is None) == (features == "encoder")


def test_the_classifier_is_fitted_on_all_rows_with_what_the_folds_chose():
    data = dataset()
    model = SuperConTextClassifier(**TINY, cv=3, probe_features="encoder+ngrams")
    model.fit(data.texts, data.labels)
    assert model.cv_["probabilities"].shape == (30, 3) and model.cv_["n"] == 30
    words = model.model_.indexer.vocabulary
    assert all(f"n{row}" in words for row in range(30)), "no row was held back"
    weights = model.model_.ensemble.settings["pool_weights"]
    assert min(weights.values()) >= 0 and sum(weights.values()) > 0
    assert not hasattr(model.set_params(cv=0).fit(data.texts, data.labels), "cv_")


def test_what_needs_dev_rows_is_refused_beside_folds():
    with pytest.raises(ConfigError, match="cv = 5 with keep"):
        check_config(resolve({"cv": 5, "keep": "best"}))
    with pytest.raises(ConfigError, match="at least 2 folds"):
        check_config(resolve({"cv": 1}))


def test_folds_of_train_read_neither_dev_nor_test_texts(tmp_path, monkeypatch):
    """Few dev rows decide nothing, but what is chosen is judged on them all the same."""
    rows = dataset(90)
    names = ("train", 0, 60), ("dev", 60, 72), ("test", 72, 90)
    files = {}
    for name, first, last in names:
        lines = [f"{rows.labels[k]}\t{rows.texts[k]}" for k in range(first, last)]
        files[name] = tmp_path / f"{name}.tsv"
        files[name].write_text("\n".join(["label\ttext", *lines]) + "\n", encoding="utf-8")
    text = tmp_path / "text.txt"
    text.write_text("\n".join(rows.texts[60:]) + "\n", encoding="utf-8")
    seen = []
    made = CrossValidation.__init__

    def watched(self, *given, **named):
        made(self, *given, **named)
        seen.append(self)
        raise KeyError("enough")

    monkeypatch.setattr(CrossValidation, "__init__", watched)
    paths = {name: str(path) for name, path in files.items()}
    given = {"preset": "auto", "vector_dimension": 8, "unlabelled": str(text), "baselines": False}
    request = TrainRequest(**paths, out=str(tmp_path / "run"), given=given)
    with pytest.raises(KeyError, match="enough"):
        train_run(request, Said())
    seen[0].progress.lines.clear()
    assert seen[0].prepared
    assert any("30 of 30 unlabelled lines" in line for line in seen[0].progress.lines)


@pytest.mark.parametrize(
    ("count", "kept"), [(1, 1), (3, 3), (4, 4), (5, 4), (7, 4), (8, 8), (11, 8), (12, 12)]
)
def test_a_repeat_that_time_cuts_in_two_is_left_out_as_a_whole(count, kept):
    cv = CrossValidation(dataset(24), resolve(TINY), 4, Progress(), times=3)
    before = list(cv.folds)
    assert [fold.repeat for fold in before] == [0] * 4 + [1] * 4 + [2] * 4
    cv.keep(count)
    assert len(cv.folds) == kept and all(a is b for a, b in zip(cv.folds, before, strict=False))


def test_a_row_has_the_mean_of_what_all_repeats_predict_of_it():
    folds = [Fold(k // 2, np.array([1 - k % 2]), np.array([2 * (k % 2)])) for k in range(4)]
    shares = [np.array([[share, 1 - share]]) for share in (0.9, 0.4, 0.7, 0.2)]
    found = OutOfFold(folds, shares, Settings({}, {}))
    rows, mean = found.mean(2)
    assert rows.tolist() == [0, 2]
    np.testing.assert_allclose(mean, [[0.8, 0.2], [0.3, 0.7]])
    metrics = found.metrics(Dataset(["un a", "un b", "un c"], ["a", "b", "a"]), ["a", "b"])
    assert metrics["accuracy"] == 0.5 and metrics["n"] == 2
    accuracy = metrics["folds"]["accuracy"]
    assert (accuracy["mean"], accuracy["sd"]) == (0.5, pytest.approx(np.sqrt(1 / 3)))
