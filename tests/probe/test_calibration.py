"""Temperature scaling and the calibration error, against loops and a grid."""

import json
import math

import numpy as np
import pytest

from superconext import SuperConTextClassifier
from superconext.data.splits import HELD_BACK, stratified_holdout
from superconext.probe.base import FEWEST_DEV_ROWS, HIGHEST, LOWEST, fit_temperature, softmax
from superconext.probe.logistic_regression import LogisticRegressionProbe, calibrate
from superconext.probe.metrics import expected_calibration_error, probability_metrics
from tests.estimator.test_contract import TEXTS, TINY


def log_loss(scores, labels, temperature):
    total = 0.0
    for row, label in zip(scores.tolist(), labels.tolist(), strict=True):
        powers = [math.exp(score / temperature) for score in row]
        total -= math.log(powers[label] / sum(powers))
    return total / len(labels)


def drawn(temperature, rows=400, classes=3, seed=0):
    """Scores, and labels drawn from their softmax at a temperature."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(0, 2, (rows, classes))
    powers = np.exp(scores / temperature)
    shares = powers / powers.sum(axis=1, keepdims=True)
    labels = np.array([generator.choice(classes, p=row) for row in shares])
    return scores, labels


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_temperature_is_the_one_no_other_beats(temperature):
    scores, labels = drawn(temperature)
    found = fit_temperature(scores, labels)
    assert found == pytest.approx(temperature, rel=0.3)
    best = log_loss(scores, labels, found)
    grid = [log_loss(scores, labels, math.exp(step / 50)) for step in range(-140, 141)]
    assert best <= min(grid) + 1e-9


def test_rows_of_unknown_classes_are_left_out():
    scores, labels = drawn(2.0)
    more = np.vstack([scores, 50 * np.ones((30, 3))])
    assert fit_temperature(more, np.concatenate([labels, [-1] * 30])) == pytest.approx(
        fit_temperature(scores, labels)
    )


def test_nothing_is_learned_from_rows_that_are_few_or_all_right():
    scores, labels = drawn(2.0)
    assert fit_temperature(scores[:19], labels[:19]) == 1.0
    assert fit_temperature(scores, scores.argmax(axis=1)) == 1.0
    assert fit_temperature(scores, scores.argmin(axis=1)) == pytest.approx(HIGHEST, rel=1e-3)


@pytest.mark.parametrize("classes", [2, 4])
def test_a_calibrated_probe_says_the_same_more_or_less_surely(classes):
    generator = np.random.default_rng(1)
    rows = 1 if classes == 2 else classes
    probe = LogisticRegressionProbe(
        np.zeros(5),
        np.ones(5),
        5 * generator.standard_normal((rows, 5)),
        generator.standard_normal(rows),
        1.0,
    )
    features = generator.standard_normal((200, 5))
    labels = generator.integers(0, classes, 200)
    other, temperature = calibrate(probe, features, labels)
    assert temperature > 1
    assert np.allclose(other.decision(features) * temperature, probe.decision(features))
    before, after = (one.probabilities(features) for one in (probe, other))
    assert np.array_equal(before.argmax(axis=1), after.argmax(axis=1))
    assert (after.max(axis=1) < before.max(axis=1)).all()


@pytest.mark.parametrize("bins", [1, 5, 15])
def test_the_calibration_error_is_the_one_of_its_definition(bins):
    generator = np.random.default_rng(bins)
    shares = generator.dirichlet([0.7] * 3, 300)
    classes = ["a", "b", "c"]
    truth = [["a", "b", "c", "unknown"][k] for k in generator.integers(0, 4, 300)]
    expected = 0.0
    for b in range(bins):
        inside = [i for i in range(300) if b / bins < shares[i].max() <= (b + 1) / bins]
        if inside:
            right = sum(classes[int(shares[i].argmax())] == truth[i] for i in inside)
            sure = sum(float(shares[i].max()) for i in inside)
            expected += abs(right / len(inside) - sure / len(inside)) * len(inside) / 300
    assert expected_calibration_error(shares, truth, classes, bins) == pytest.approx(expected)


def test_the_error_of_the_sure_and_the_honest():
    sure = np.array([[1.0, 0.0]] * 4)
    assert expected_calibration_error(sure, ["a", "a", "a", "a"], ["a", "b"]) == 0
    assert expected_calibration_error(sure, ["a", "b", "b", "b"], ["a", "b"]) == 0.75
    even = np.array([[0.75, 0.25]] * 4)
    assert expected_calibration_error(even, ["a", "a", "a", "b"], ["a", "b"]) == 0
    assert expected_calibration_error(np.zeros((0, 2)), [], ["a", "b"]) == 0
    assert probability_metrics([], np.zeros((0, 2)), ["a", "b"]) == {"n": 0}


def test_bins_are_closed_on_the_right():
    shares = np.array([[0.75, 0.25], [0.625, 0.375]])
    assert expected_calibration_error(shares, ["a", "b"], ["a", "b"], 4) == 0.1875, "one bin"


def test_too_few_dev_rows_are_said(recwarn):
    plain = SuperConTextClassifier(**TINY).fit(TEXTS, ["x", "y"] * 12)
    model = SuperConTextClassifier(**TINY, calibrate=True)
    with pytest.warns(
        UserWarning, match=r"calibrate: found \d+ dev rows, expected at least 20.*cv = 5"
    ):
        model.fit(TEXTS, ["x", "y"] * 12)
    assert np.array_equal(model.predict_proba(TEXTS), plain.predict_proba(TEXTS))


def test_the_estimator_calibrates_on_the_rows_it_holds_back():
    # Labels are drawn, so dev has rows that are wrong, and being sure is a mistake.
    generator = np.random.default_rng(0)
    words = ["zwin", "khayb", "bzaf", "had", "film", "mzyan", "ghali", "bnin"]
    texts = [" ".join(generator.choice(words, 4)) for _ in range(400)]
    labels = generator.integers(0, 2, 400)
    plain, scaled = (
        SuperConTextClassifier(**TINY, calibrate=flag).fit(texts, labels) for flag in (False, True)
    )
    ratio = plain.decision_function(texts) / scaled.decision_function(texts)
    assert np.allclose(ratio, ratio[0]) and abs(ratio[0] - 1) > 1e-3
    assert np.array_equal(plain.predict(texts), scaled.predict(texts))


@pytest.mark.parametrize("features", ["encoder", "encoder+tfidf", "encoder+ngrams"])
def test_few_rows_are_calibrated_on_those_that_folds_hold_out(features):
    generator = np.random.default_rng(0)
    words = ["zwin", "khayb", "bzaf", "had", "film", "mzyan", "ghali", "bnin"]
    texts = [" ".join(generator.choice(words, 4)) for _ in range(60)]
    labels = generator.choice(["x", "y"], 60).tolist()
    plain, scaled = (
        SuperConTextClassifier(
            **TINY, calibrate=flag, cv=3, probe_features=features, logit_adjustment=0.5
        ).fit(texts, labels)
        for flag in (False, True)
    )
    probes = [model.model_.probe.decision(model.transform(texts)) for model in (plain, scaled)]
    ratio = probes[0] / probes[1]
    held = [model.cv_["probabilities"] for model in (plain, scaled)]
    assert not np.allclose(held[0], held[1])
    if features == "encoder+ngrams":
        by = scaled.model_.ensemble.settings["pool_temperature"]
        assert np.allclose(ratio, 1) and abs(by - 1) > 1e-3
        logs = np.log(plain.predict_proba(texts))
        np.testing.assert_allclose(scaled.predict_proba(texts), softmax(logs / by), atol=1e-6)
    else:
        assert np.allclose(ratio, ratio[0]) and abs(ratio[0, 0] - 1) > 1e-3
    if features != "encoder+tfidf":
        assert np.array_equal(plain.predict(texts), scaled.predict(texts))


@pytest.mark.parametrize("cv", [0, 3])
def test_no_other_temperature_fits_the_mean_with_tfidf_better(cv):
    """The mean of two calibrated models is less sure than it is right, unless it is calibrated."""
    generator = np.random.default_rng(0)
    words = ["zwin", "khayb", "bzaf", "had", "film", "mzyan", "ghali", "bnin"]
    texts = [" ".join(generator.choice(words, 4)) for _ in range(300)]
    labels = [int(("zwin" in text) != (generator.random() < 0.25)) for text in texts]
    mixed = {**TINY, "probe_features": "encoder+tfidf", "cv": cv}
    model = SuperConTextClassifier(**mixed, calibrate=True).fit(texts, labels)
    if cv:
        held = range(len(texts))
    else:
        _, held = stratified_holdout(texts, [*map(str, labels)], HELD_BACK, model.seed)
        assert len(held) > FEWEST_DEV_ROWS
    texts, truth = ([column[row] for row in held] for column in (texts, labels))
    scores = [
        np.log(model.model_.probe.probabilities(model.transform(texts))),
        np.log(model.model_.ensemble.tfidf.probabilities(texts)),
    ]
    mean = np.mean([softmax(one) for one in scores], axis=0)
    np.testing.assert_allclose(model.predict_proba(texts), mean, atol=1e-6)
    if cv:  # each row by what the other folds have chosen, so nearly
        shares = model.cv_["probabilities"]
        assert fit_temperature(np.log(shares), np.array(truth)) == pytest.approx(1, abs=0.1)
    else:
        assert fit_temperature(scores, np.array(truth)) == pytest.approx(1, abs=1e-3)
        probe, tfidf = (fit_temperature(one, np.array(truth)) for one in scores)
        assert probe > 1.01 and probe == pytest.approx(tfidf, rel=1e-3)


def test_train_calibrates_few_rows_on_folds(tmp_path):
    from tests.cli.conftest import call_main, rows, write_table

    table = [(label if i % 3 else {"neg": "pos", "pos": "neg"}[label], text)
             for i, (label, text) in enumerate(rows(60, seed=5))]  # fmt: skip
    train = write_table(tmp_path / "train.tsv", table)
    given = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    words = ("--calibrate", "--cv", "3", "--no-baselines", *given)
    said = call_main("train", train, "--out", tmp_path / "run", *words)
    assert said.code == 0, said.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["probe_temperature"] > 0 and metrics["probe_temperature"] != 1
    assert metrics["reported_split"] == "cv"


def test_the_command_line_writes_the_error_and_the_temperature(tmp_path):
    from tests.cli.conftest import call_main, rows, write_table

    table = rows(120, seed=5)
    # A third of the labels is turned round: no probe is right about all.
    table = [(label if i % 3 else {"neg": "pos", "pos": "neg"}[label], text)
             for i, (label, text) in enumerate(table)]  # fmt: skip
    train = write_table(tmp_path / "train.tsv", table[:80])
    dev = write_table(tmp_path / "dev.tsv", table[80:])
    given = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    said = call_main(
        "train", train, "--dev", dev, "--out", tmp_path / "run", "--calibrate",
        "--no-baselines", *given,
    )  # fmt: skip
    assert said.code == 0, said.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["probe_temperature"] > 0 and metrics["probe_temperature"] != 1
    told = json.loads(call_main("evaluate", tmp_path / "run", dev, "--json").out)
    for scores in (metrics["dev"], metrics["train"], told):
        assert 0 <= scores["expected_calibration_error"] <= 1
    assert told["expected_calibration_error"] == pytest.approx(
        metrics["dev"]["expected_calibration_error"], abs=1e-6
    )


def test_as_few_dev_rows_as_are_enough_are_enough():
    labels = np.arange(FEWEST_DEV_ROWS) % 2
    scores = 4.0 * np.eye(2)[np.where(np.arange(len(labels)) % 5 == 0, 1 - labels, labels)]
    assert fit_temperature(scores, labels) > 1.5
    assert fit_temperature(scores[:-1], labels[:-1]) == 1.0


@pytest.mark.parametrize("seed", [4, 6, 79, 84, 96])  # where one search alone misses it
def test_the_temperature_of_a_mean_is_the_best_of_all(seed):
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 3, 40)
    scores = draw.normal(size=(2, 40, 3)) * np.array([0.5, 40.0])[:, None, None]
    scores[:, np.arange(40), labels] += draw.normal(size=(2, 40))

    def loss(temperature):
        shares = softmax(scores / temperature).mean(axis=0)
        return -np.log(shares[np.arange(40), labels]).mean()

    grid = np.exp(np.linspace(np.log(LOWEST), np.log(HIGHEST), 200))
    assert loss(fit_temperature(scores, labels)) <= min(map(loss, grid)) + 1e-4
