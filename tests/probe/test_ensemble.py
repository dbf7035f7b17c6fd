"""Probe, TF-IDF and n-grams in one pool: what a run answers, saves, loads and tells of it."""

import copy
import json
import pickle

import numpy as np
import pytest
from sklearn.model_selection import KFold

import superconext
from superconext import SuperConTextClassifier
from superconext.core.errors import ConfigError, RunError
from superconext.core.files import file_sha256
from superconext.data.splits import HELD_BACK, stratified_holdout
from superconext.probe.base import FEWEST_DEV_ROWS, log_softmax
from superconext.probe.ensemble import PoolWithNgrams, fit_weights
from superconext.runs.folder import load_model, save_run
from tests.cli.conftest import call_main
from tests.companion_runs import command_line_run
from tests.estimator.test_contract import LABELS, TEXTS
from tests.estimator.test_contract import NEW as ANY
from tests.probe.test_tfidf import QUICK

#: A blank text has no probabilities of its own.
NEW = [*filter(None, ANY)]

#: Two classes of unequal size, some rows labelled wrong, and so many that dev, a tenth of them,
#: can choose weights.
ROWS = (
    [f"{text} {k}" for k in range(10) for text in TEXTS],
    [label if (k + i) % 9 else "bad" for k in range(10) for i, label in enumerate(LABELS)],
)


def fitted(**parameters):
    given = {**QUICK, "probe_features": "encoder+ngrams", **parameters}
    return SuperConTextClassifier(**given).fit(*ROWS)


@pytest.fixture(scope="module")
def pool():
    return fitted()


def normalised(logs):
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def test_it_answers_by_the_product_of_three_models(pool):
    companion, alone = pool.model_.ensemble, fitted(probe_features="encoder")
    assert np.array_equal(pool.transform(NEW), alone.transform(NEW))
    parts = [
        alone.predict_proba(NEW),
        companion.tfidf.probabilities(NEW),
        normalised(companion.ratios.decision(NEW)),
    ]
    expected = np.ones_like(parts[0])
    for weight, part in zip(companion.weights, parts, strict=True):
        expected *= part**weight
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose(pool.predict_proba(NEW), expected, atol=1e-6)
    likeliest = [pool.classes_[k] for k in expected.argmax(axis=1)]
    assert pool.predict(NEW).tolist() == likeliest
    assert np.allclose(pool.decision_function(NEW), np.log(expected[:, 1] / expected[:, 0]))
    answer = pool.model_.answer(NEW)
    assert np.allclose(answer.probabilities, expected, atol=1e-6)
    assert np.allclose(answer.probe, parts[0], atol=1e-6)
    assert pool.predict_proba(NEW[:1]) == pytest.approx(expected[:1], abs=1e-6)


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_the_class_shares_are_taken_off_once(pool, strength):
    adjusted = fitted(logit_adjustment=strength)
    kept, held = stratified_holdout(*ROWS, HELD_BACK, 0)
    assert len(held) >= FEWEST_DEV_ROWS
    labels = [ROWS[1][row] for row in kept]
    shares = np.array([labels.count(name) for name in pool.classes_]) / len(labels)
    expected = pool.predict_proba(NEW) * shares**-strength
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose(adjusted.predict_proba(NEW), expected, atol=1e-6)
    weights = pool.model_.ensemble.weights
    assert np.allclose(adjusted.model_.ensemble.weights, weights, atol=1e-4)
    assert np.ptp(weights) > 0.1


def test_it_is_saved_loaded_and_copied(pool, tmp_path):
    pool.save(tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["format"] == 7 and set(PoolWithNgrams.files) <= set(manifest["files"])
    for other in (
        superconext.load(tmp_path / "run").estimator(),
        copy.deepcopy(pool),
        pickle.loads(pickle.dumps(pool)),
    ):
        assert other.probe_features == "encoder+ngrams"
        assert np.allclose(other.predict_proba(NEW), pool.predict_proba(NEW), atol=1e-4)
    again = load_model(tmp_path / "run").ensemble
    assert np.array_equal(again.ratios.decision(NEW), pool.model_.ensemble.ratios.decision(NEW))
    assert np.array_equal(again.weights, pool.model_.ensemble.weights)


def damage(folder, how):
    name = PoolWithNgrams.files[-1]
    path, manifest = folder / name, json.loads((folder / "manifest.json").read_text("utf-8"))
    if how == "missing":
        path.unlink()
    elif how == "unlisted":
        del manifest["files"][name]
    else:
        from safetensors.numpy import load_file, save_file

        arrays = load_file(path)
        wrong = {
            "narrow": ("ratio", arrays["ratio"][:, 1:]),
            "odd": ("weights", np.append(arrays["weights"], 1.0)),
            "infinite": ("coef", arrays["coef"] * np.inf),
            "classes": ("shift", np.zeros(3)),
            "hot": ("temperature", np.array([0.0])),
            "whole": ("intercept", arrays["intercept"].astype(int)),
            "gone": ("c", None),
        }
        key, value = wrong[how]
        arrays = {k: v for k, v in {**arrays, key: value}.items() if v is not None}
        save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, path)
        manifest["files"][name] = file_sha256(path)
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("missing", r"ngrams\.safetensors: missing"),
        ("unlisted", r"the manifest lists no tfidf\.json and no .* and no ngrams\.safetensors"),
        ("narrow", r"ngrams\.safetensors is not of the model in tfidf\.json"),
        ("odd", r"ngrams\.safetensors is not of the model in tfidf\.json"),
        ("classes", r"ngrams\.safetensors is not of the model in tfidf\.json"),
        ("infinite", r"ngrams\.safetensors holds what are no finite numbers"),
        ("whole", r"ngrams\.safetensors holds what are no finite numbers"),
        ("hot", r"ngrams\.safetensors is not of the model in tfidf\.json"),
        ("gone", r"the files do not fit together"),
    ],
)
def test_a_damaged_run_is_refused(pool, tmp_path, how, message):
    save_run(pool.model_, tmp_path / "run")
    damage(tmp_path / "run", how)
    with pytest.raises(RunError, match=message):
        load_model(tmp_path / "run")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return command_line_run(tmp_path_factory.mktemp("run"), "encoder+ngrams", 8, (120, 160))


def test_the_encoder_alone_and_the_pool_are_told_apart(run):
    folder, test, said = run
    alone, pool = (line for line in said.out.splitlines() if "superconext, " in line)
    assert "superconext, trained encoder alone  " in alone and "trained encoder + n-grams " in pool
    assert alone.count(".") == 3 and pool.count(".") == 4, "the time is that of the whole run"
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["companion"] == "n-grams" and {"tfidf_C", "ngrams_C"} <= set(metrics)
    assert list(metrics["pool_weights"]) == ["encoder", "tfidf", "ngrams"]
    evaluated = call_main("evaluate", folder, test).out
    assert f"{folder} (trained encoder + n-grams) " in evaluated
    assert "its trained encoder alone " in evaluated
    told = json.loads(call_main("evaluate", folder, test, "--json").out)
    told.pop("overlap")
    # Not encoded in the same blocks, so alike but for rounding, as errors of calibration show.
    for found, expected in (
        (told.pop("encoder_alone"), metrics["encoder_alone"]["test"]),
        (told, metrics["test"]),
    ):
        name = "expected_calibration_error"
        assert found.pop(name) == pytest.approx(expected.pop(name), abs=1e-6)
        assert found == expected
    card = (folder / "README.md").read_text("utf-8")
    assert "three models" in card and "weights chosen on held-out rows" in card
    texts = [line.split("\t")[1] for line in test.read_text("utf-8").splitlines()[1:]]
    predicted = call_main("predict", folder, test).out.splitlines()
    assert [line.split("\t")[0] for line in predicted] == load_model(folder).predict(texts)


def test_the_weights_are_chosen_on_the_dev_rows(run):
    """The pool's dev log loss is no worse than the probe's or TF-IDF's alone."""
    folder, test, _ = run
    model = load_model(folder)
    rows = [x.split("\t") for x in test.with_name("dev.tsv").read_text("utf-8").splitlines()[1:]]
    truth = [model.classes.index(label) for label, _ in rows]
    texts = [text for _, text in rows]

    def log_loss(shares):
        return -np.log(shares[np.arange(len(truth)), truth]).mean()

    answer = model.answer(texts)
    alone = log_loss(answer.probe), log_loss(model.ensemble.tfidf.probabilities(texts))
    assert log_loss(answer.probabilities) <= min(alone) + 0.01
    assert np.ptp(model.ensemble.weights) > 0.01


def test_dev_is_scored_by_weights_that_other_dev_rows_were_fitted_on(run):
    """metrics.json against the folds made by hand; `evaluate` on the same rows is in-sample."""
    folder, test, _ = run
    model, dev = load_model(folder), test.with_name("dev.tsv")
    lines = [x.split("\t") for x in dev.read_text("utf-8").splitlines()[1:]]
    truth = np.array([model.classes.index(label) for label, _ in lines])
    texts = [text for _, text in lines]
    ensemble = model.ensemble
    logs = [
        np.log(model.answer(texts).probe),
        log_softmax(ensemble.tfidf.decision(texts)),
        log_softmax(ensemble.ratios.decision(texts)),
    ]
    predicted = np.empty_like(truth)
    for fitted, held in KFold(5, shuffle=True, random_state=0).split(truth):
        weights = fit_weights([one[fitted] for one in logs], truth[fitted])
        scores = sum(w * one[held] for w, one in zip(weights, logs, strict=True))
        predicted[held] = scores.argmax(axis=1)
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["dev"]["accuracy"] == pytest.approx((predicted == truth).mean())
    np.testing.assert_allclose(fit_weights(logs, truth), ensemble.weights, atol=1e-3)


def test_words_cannot_be_left_out_of_it(pool):
    from superconext.export.prune import without_rare_words

    with pytest.raises(ConfigError, match="found a run with TF-IDF"):
        without_rare_words(pool.model_, 2)


def test_a_kind_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="encoder\\+ngrams"):
        fitted(probe_features="encoder+words")
