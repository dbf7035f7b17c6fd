"""TF-IDF + logistic regression as arrays: scikit-learn's numbers, saved, and beside a probe."""

import copy
import itertools
import json
import pickle
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline, make_union

import superconext
from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, DataError, RunError
from superconext.probe.ensemble import MeanWithTfidf, Settings
from superconext.probe.ngrams import (
    FILES,
    TFIDF_GRID,
    TfidfModel,
    character_ngrams,
    fit_tfidf_model,
    ngram_tokenizer,
    word_ngrams,
)
from superconext.runs.folder import load_model, save_run
from tests.cli.conftest import call_main
from tests.companion_runs import command_line_run
from tests.estimator.test_contract import LABELS, TEXTS, TINY
from tests.estimator.test_contract import NEW as ANY

#: A blank text has no probabilities of its own.
NEW = [*filter(None, ANY)]

WORDS = ["zwin", "khayb", "مزيان", "خايب", "bzaf", "HAD", "لفيلم", "3jebni", "a", "ßtraße", "ok"]
QUICK = {**TINY, "epochs": 1, "vector_method": "random", "subwords": False}
#: White space of every kind, letters that change their length in lower case, half a pair.
ODD = st.text(st.sampled_from([*"aB3 يخ", "\t", "\n", "\x1c", "\xa0", "\u2003", "İ", "\ud83d"]))


def rows(count, classes, seed):
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, classes, count)
    labels[:classes] = range(classes)
    texts = [
        " ".join([*draw.choice(WORDS, draw.integers(0, 7)), WORDS[label] * draw.integers(1, 3)])
        for label in labels
    ]
    return texts, labels


def peers():
    return [
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\S+"),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
    ]


@given(ODD | st.text(max_size=30))
def test_the_analysis_is_scikit_learns(text):
    words, characters = (peer.build_analyzer() for peer in peers())
    assert word_ngrams(text) == words(text)
    assert list(character_ngrams(text)) == characters(text)


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_those_of_scikit_learn(classes, exact):
    (texts, labels), (held, truth) = rows(80, classes, 0), rows(40, classes, 1)
    new = [*rows(1300, classes, 2)[0], "", " \t", "zzz qqq", "ZWIN zwin zwin", *NEW]
    model = fit_tfidf_model(texts, labels, held, truth)
    vectorisers = peers()
    fitted = hstack([v.fit_transform(texts) for v in vectorisers])
    asked = hstack([v.transform(new) for v in vectorisers])
    losses = {}
    for c in TFIDF_GRID:
        pipeline = make_pipeline(make_union(*peers()), LogisticRegression(C=c, max_iter=1000))
        split = StratifiedKFold(5, shuffle=True, random_state=0)
        losses[c] = -cross_val_score(pipeline, texts, labels, scoring="neg_log_loss", cv=split)
    best = min(losses, key=lambda c: losses[c].mean())
    assert model.c == best
    rival = LogisticRegression(C=best, max_iter=1000).fit(fitted, labels)
    expected = rival.predict_proba(asked)
    found = model.probabilities(new)
    assert found.shape == (len(new), classes) and np.allclose(found.sum(axis=1), 1)
    assert np.abs(found - expected).max() < 1e-6
    assert model.probabilities([]).shape == (0, classes)


def test_texts_are_read_as_the_normaliser_leaves_them():
    texts = ["الفيلم زوين!", "شكرًا بزاف،", "خايب", "ماشي زوين"]
    labels = np.array([0, 0, 1, 1])
    model = fit_tfidf_model(texts, labels)
    assert {"زوين", "!", "زوين !", "شكرا", "،"} <= set(model.words)
    twice = ["الفيلم زوين !", "شكراً بزاف ،", "خـــايب", "ماشي زوين"]
    assert np.array_equal(model.probabilities(twice), model.probabilities(texts))
    plain = fit_tfidf_model(texts, labels, tokenizer=ngram_tokenizer(texts, "none"))
    assert "شكرًا" in plain.words and "شكرا" not in plain.words
    assert not np.array_equal(plain.probabilities(twice), plain.probabilities(texts))


def test_a_model_without_rules_of_text_reads_it_as_it_stands(tmp_path):
    texts, labels = ["zwin!", "zwin bzaf", "khayb!", "machi zwin"], np.array([0, 0, 1, 1])
    fit_tfidf_model(texts, labels).save(tmp_path)
    path = tmp_path / FILES[0]
    kept = json.loads(path.read_text(encoding="utf-8"))
    del kept["text"]  # as formats up to 6 have it
    path.write_text(json.dumps(kept), encoding="utf-8")
    old = TfidfModel.load(tmp_path)
    assert old.tokenizer is None
    assert not np.array_equal(old.probabilities(["zwin!"]), old.probabilities(["zwin !"]))
    path.write_text(json.dumps({**kept, "text": {"normalizer": 3}}), encoding="utf-8")
    with pytest.raises(ConfigError, match="expected the keys 'normalizer' and 'bridge'"):
        TfidfModel.load(tmp_path)


def test_no_word_at_all_is_refused():
    for nothing in (["", " \n"], ["\u200b", "\u0640"]):
        with pytest.raises(DataError, match="found no word in 2 training texts"):
            fit_tfidf_model(nothing, np.array([0, 1]))


@settings(max_examples=20, deadline=None)
@given(st.lists(ODD, min_size=4, max_size=12))
def test_what_is_saved_answers_the_same(tmp_path_factory, texts):
    folder = tmp_path_factory.mktemp("saved")
    model = fit_tfidf_model([*texts, "a b", "c"], np.arange(len(texts) + 2) % 3)
    model.save(folder)
    again = TfidfModel.load(folder)
    assert again.words == model.words and again.characters == model.characters
    assert np.array_equal(again.probabilities(texts), model.probabilities(texts))
    assert again.c == model.c and {path.name for path in folder.iterdir()} == set(FILES)


# Beside a probe


@pytest.fixture(scope="module")
def both():
    """The same training with and without TF-IDF beside the probe."""
    return [
        SuperConTextClassifier(**QUICK, members=2, probe_features=features).fit(TEXTS, LABELS)
        for features in ("encoder", "encoder+tfidf")
    ]


def test_a_run_with_tfidf_answers_by_the_mean(both):
    alone, mean = both
    assert alone.model_.ensemble is None
    assert np.array_equal(mean.transform(NEW), alone.transform(NEW))
    lexical = mean.model_.ensemble.tfidf.probabilities(NEW)
    expected = (alone.predict_proba(NEW) + lexical) / 2
    assert np.allclose(mean.predict_proba(NEW), expected, atol=1e-12)
    assert np.abs(expected - alone.predict_proba(NEW)).max() > 1e-3
    likeliest = [mean.classes_[k] for k in expected.argmax(axis=1)]
    assert mean.predict(NEW).tolist() == likeliest
    assert mean.model_.predict(NEW) == likeliest
    odds = np.log(expected[:, 1] / expected[:, 0])
    assert np.allclose(mean.decision_function(NEW), odds)
    answer = mean.model_.answer(NEW)
    # Encoded in another way than `predict_proba` does, so alike but for rounding.
    assert np.allclose(answer.probabilities, mean.predict_proba(NEW), atol=1e-6)
    assert np.array_equal(answer.probe, alone.model_.answer(NEW).probabilities)


def test_the_estimator_saves_loads_and_copies_it(both, tmp_path):
    mean = both[1]
    mean.save(tmp_path / "run")
    others = [
        superconext.load(tmp_path / "run").estimator(),
        copy.deepcopy(mean),
        pickle.loads(pickle.dumps(mean)),
    ]
    for other in others:
        assert other.probe_features == "encoder+tfidf"
        assert np.array_equal(other.predict_proba(NEW), mean.predict_proba(NEW))
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["format"] == 7


def test_calibration_scales_both(both):
    generator = np.random.default_rng(0)
    texts = [f"{text} {k}" for k in range(10) for text in TEXTS]
    labels = [
        ("bad" if label == "good" else "good") if generator.random() < 0.3 else label
        for _ in range(10)
        for label in LABELS
    ]
    plain, calibrated = (
        SuperConTextClassifier(**QUICK, probe_features="encoder+tfidf", calibrate=calibrate)
        .fit(texts, labels)
        .model_.ensemble.tfidf
        for calibrate in (False, True)
    )
    ratio = plain.decision(NEW) / calibrated.decision(NEW)
    assert np.allclose(ratio, ratio[0, 0]) and ratio[0, 0] != pytest.approx(1, abs=1e-6)


def damage(folder, how):
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    if how == "changed":
        path = folder / FILES[0]
        path.write_text(path.read_text(encoding="utf-8").replace("zwin", "zwen"), "utf-8")
    elif how == "missing":
        (folder / FILES[1]).unlink()
    elif how == "unlisted":
        for name in FILES:
            del manifest["files"][name]
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("changed", r"tfidf\.json: its content is not what the manifest lists"),
        ("missing", r"tfidf\.safetensors: missing"),
        ("unlisted", r"the manifest lists no tfidf\.json"),
    ],
)
def test_a_damaged_run_is_refused(both, tmp_path, how, message):
    folder = tmp_path / "run"
    save_run(both[1].model_, folder)
    damage(folder, how)
    with pytest.raises(RunError, match=message):
        load_model(folder)


def test_files_of_two_models_do_not_pass_for_one(tmp_path):
    for name, count in (("one", 30), ("two", 60)):
        (tmp_path / name).mkdir()
        texts, labels = rows(count, 2, count)
        texts[0] += " " + string.ascii_letters[: count // 2]
        fit_tfidf_model(texts, labels).save(tmp_path / name)
    (tmp_path / "one" / FILES[0]).replace(tmp_path / "two" / FILES[0])
    with pytest.raises(ValueError, match="n-grams"):
        TfidfModel.load(tmp_path / "two")


def test_a_run_without_it_has_no_such_file_and_an_older_format(both, tmp_path):
    save_run(both[0].model_, tmp_path / "run")
    assert not [name for name in FILES if (tmp_path / "run" / name).exists()]
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["format"] < 3
    # A folder older than the parameter.
    config = tmp_path / "run" / "config.toml"
    lines = config.read_text("utf-8").splitlines(keepends=True)
    config.write_text("".join(line for line in lines if "probe_features" not in line), "utf-8")
    from superconext.core.files import file_sha256

    manifest["files"]["config.toml"] = file_sha256(config)
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    assert load_model(tmp_path / "run").config.probe_features == "encoder"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return command_line_run(tmp_path_factory.mktemp("run"), "encoder+tfidf", 3, (42, 60))


def test_the_encoder_alone_and_the_mean_are_told_apart(run):
    folder, test, said = run
    assert (
        "superconext, trained encoder" in said.out
        and "superconext, trained encoder + TF-IDF" in said.out
    )
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    assert set(metrics["combined"]) == {"train", "dev", "test"} and metrics["tfidf_C"] > 0
    model = load_model(folder)
    told = json.loads(call_main("evaluate", folder, test, "--json").out)
    assert told.pop("encoder_alone") == metrics["encoder_alone"]["test"]
    told.pop("overlap")
    assert told == metrics["test"] == metrics["combined"]["test"]
    texts = [line.split("\t")[1] for line in test.read_text("utf-8").splitlines()[1:]]
    shares = model.probabilities(texts)
    assert not np.allclose(shares, model.probe.probabilities(model.features(texts)))
    written = (folder / "predictions.tsv").read_text("utf-8").splitlines()[1:]
    assert [line.split("\t")[2] for line in written] == model.predict(texts)
    assert [float(line.split("\t")[3]) for line in written] == pytest.approx(
        shares.max(axis=1), abs=1e-4
    )
    predicted = call_main("predict", folder, test).out.splitlines()
    assert [line.split("\t")[0] for line in predicted] == model.predict(texts)
    card = (folder / "README.md").read_text("utf-8")
    assert "its encoder alone, with a linear probe" in card and "TF-IDF features" in card


def test_evaluate_prints_both(run):
    folder, test, _ = run
    said = call_main("evaluate", folder, test).out
    assert f"{folder} (trained encoder + TF-IDF) " in said and "its trained encoder alone " in said


def test_a_stopped_run_goes_on_to_the_same_answers_and_adds_up_its_time(run, tmp_path, monkeypatch):
    from superconext.data.sampler import BalancedBatches

    folder, test, _ = run
    batches = BalancedBatches.epoch

    def pressing(self, number):
        if number == 1:
            raise KeyboardInterrupt
        return batches(self, number)

    small = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    files = ["--dev", test.with_name("dev.tsv"), "--test", test, "--out", tmp_path / "run"]
    words = ["train", test.with_name("train.tsv"), *files, *small]
    with monkeypatch.context() as patch:
        patch.setattr("superconext.report.figures.available", lambda: False)
        patch.setattr(BalancedBatches, "epoch", pressing)
        clock = itertools.count(0, 500)
        patch.setattr("superconext.training.checkpoint._now", lambda: (next(clock), 0.0))
        stopped = call_main(*words, "--probe-features", "encoder+tfidf")
        assert stopped.code == 1 and "resume with" in stopped.err
        assert load_model(tmp_path / "run").ensemble is not None
        patch.setattr(BalancedBatches, "epoch", batches)
        assert call_main("train", "--resume", tmp_path / "run").code == 0
    facts, scores = (
        json.loads((tmp_path / "run" / f"{name}.json").read_text("utf-8"))
        for name in ("manifest", "metrics")
    )
    assert facts["cpu_seconds"] < 500 < min(facts["wall_seconds"], scores["seconds"])
    assert facts["wall_seconds"] < 1000
    texts = [line.split("\t")[1] for line in test.read_text("utf-8").splitlines()[1:]]
    one, other = (load_model(place).probabilities(texts) for place in (folder, tmp_path / "run"))
    assert np.array_equal(one, other)


def test_fitting_takes_one_blas_thread(monkeypatch):
    from threadpoolctl import threadpool_info, threadpool_limits

    taken = []

    def fit(model, features, labels):
        blas = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
        taken.append(blas)
        return original(model, features, labels)

    original = LogisticRegression.fit
    monkeypatch.setattr(LogisticRegression, "fit", fit)
    texts, labels = rows(30, 2, 0)
    with threadpool_limits(2, user_api="blas"):
        fit_tfidf_model(texts, labels)
        after = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    assert taken and all(taken) and {n for blas in taken for n in blas} == {1}
    assert set(after) == {2}, "the caller's own limit is put back"


@pytest.mark.parametrize("again", [False, True])
def test_the_class_shares_are_taken_off_the_scores(again):
    labels = np.repeat([0, 1, 2], [12, 6, 4])
    texts = [f"{'abc'[label]}lm lfilm {row % 3}" for row, label in enumerate(labels)]
    found = []
    for strength in (0.0, 1.0):
        config = resolve({"logit_adjustment": strength})
        if again:
            model = MeanWithTfidf.refit(texts, labels, Settings({"tfidf": 1.0}, {}), config)
        else:
            model, _ = MeanWithTfidf.fit(texts, labels, None, config)
        found.append(model.tfidf.probabilities(texts))
    expected = found[0] / (np.bincount(labels) / len(labels))
    np.testing.assert_allclose(found[1], expected / expected.sum(axis=1, keepdims=True))
