"""Correction by the class shares of each script: the equation, the batches, the runs."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from superconext import SuperConTextClassifier, load
from superconext.baselines.baseline import AdjustedBaseline, baseline_report, fit_baseline
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, RunError
from superconext.data.dataset import Dataset
from superconext.data.sampler import BalancedBatches
from superconext.fitting.checks import check_config
from superconext.fitting.fit import fit_model
from superconext.probe.base import softmax
from superconext.probe.group_priors import (
    FILE,
    GroupPriors,
    balanced_cells,
    fit_group_priors,
    probe_out_of_fold,
)
from superconext.probe.logistic_regression import fit_probe, folds
from superconext.runs.folder import load_model, save_run
from superconext.text.characters import FEWEST_OF_SCRIPT, OTHER, script_groups
from tests.probe.test_cross_validation import tfidf

ARABIC, LATIN = "زوين", "zwin"
SMALL = {"epochs": 1, "hidden_size": 4, "vector_dimension": 4, "batch_size": 24, "baselines": False}

SCRIPT = resolve({"prior_groups": "script"})


def by_the_equation(texts, shares, groups, fitted, strength):
    """p(c | x) / prior_group(c) * wanted(c), one number after another."""
    classes = len(shares[0])
    whole = [sum(row[c] for row in fitted) / len(fitted) for c in range(classes)]
    corrected = []
    for text, row in zip(texts, shares, strict=True):
        (group,) = script_groups([text])
        inside = [f for g, f in zip(groups, fitted, strict=True) if g == group]
        prior = [
            (sum(f[c] for f in inside) + 20 * whole[c]) / (len(inside) + 20) for c in range(classes)
        ]
        scores = [row[c] / prior[c] * whole[c] ** (1 - strength) for c in range(classes)]
        corrected.append([score / sum(scores) for score in scores])
    return np.array(corrected)


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_the_equation_in_plain_loops(strength):
    draw = np.random.default_rng(0)
    train = [ARABIC] * 30 + [LATIN] * 7 + ["123"] * 3
    fitted = draw.dirichlet([2, 3, 1], len(train))
    priors = fit_group_priors(train, fitted, strength)
    texts = [LATIN, "привет", ARABIC, "!?", "zwin زوين"]  # Cyrillic was never seen
    shares = draw.dirichlet([1, 1, 1], len(texts))
    found = priors.corrected(texts, shares)
    expected = by_the_equation(texts, shares, script_groups(train), fitted, strength)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(priors.corrected([], np.empty((0, 3))), np.empty((0, 3)))


def test_a_group_without_rows_is_left_as_it_is():
    shares = np.array([[0.2, 0.8]])
    priors = fit_group_priors([ARABIC] * 5, np.tile([0.3, 0.7], (5, 1)))
    np.testing.assert_allclose(priors.corrected([LATIN], shares), shares)


@given(st.integers(0, 10**6), st.integers(2, 5))
def test_probabilities_stay_probabilities_and_the_saved_priors_are_the_same(seed, classes):
    draw = np.random.default_rng(seed)
    texts = draw.choice([ARABIC, LATIN, "1"], 40).tolist()
    priors = fit_group_priors(texts, draw.dirichlet(np.ones(classes), 40), draw.random())
    saved = json.loads(json.dumps(priors.to_dict()))
    shares = draw.dirichlet(np.ones(classes), 40)
    corrected = priors.corrected(texts, shares)
    assert (corrected >= 0).all() and np.allclose(corrected.sum(axis=1), 1)
    again = GroupPriors.from_dict(saved, classes).corrected(texts, shares)
    assert np.array_equal(again, corrected)


@pytest.mark.parametrize(
    "change",
    [
        {"groups": "city"},
        {"priors": [1]},
        {"priors": {"Arabic": [0.5, 0.5]}},
        {"priors": {"": [0.5, 0.5, 0.5]}},
        {"priors": {"": [0.0, 1.0]}},
        {"priors": {"": [float("nan"), 1.0]}},
        {"priors": {"": "ab"}},
        {"wanted": None},
        {"wanted": [1.0, -1.0]},
    ],
)
def test_what_is_no_priors_is_refused(change):
    saved = {"groups": "script", "priors": {"": [0.5, 0.5]}, "wanted": [0.5, 0.5]}
    assert GroupPriors.from_dict(saved, 2)
    with pytest.raises((ValueError, TypeError)):
        GroupPriors.from_dict({**saved, **change}, 2)


def test_batches_have_every_class_alike_in_every_script():
    counts = {(ARABIC, 0): 300, (ARABIC, 1): 60, (LATIN, 0): 55, (LATIN, 1): 90, ("12", 1): 40}
    texts = [text for (text, _), count in counts.items() for _ in range(count)]
    labels = np.repeat([label for _, label in counts], list(counts.values()))
    cells = balanced_cells(texts, labels)
    # The few in no script are of one class alone, and count with the largest group.
    assert np.bincount(cells).tolist() == [300, 100, 55, 90]
    assert (cells % 2 == labels).all()
    for batch in BalancedBatches(cells, 40, seed=1).epoch(0):
        assert np.bincount(cells[batch]).tolist() == [10] * 4
        assert np.bincount(labels[batch]).tolist() == [20, 20]


def test_scripts_of_few_rows_are_one_group():
    texts = [ARABIC] * 120 + [LATIN] * 60 + ["привет"] * 60
    labels = np.array([0, 1] * 120)
    assert np.bincount(balanced_cells(texts, labels)).tolist() == [60, 60, 60, 60]
    few = np.bincount(balanced_cells([LATIN, ARABIC] * 10, np.array([0, 1] * 10)))
    assert few.tolist() == [10, 10]


def test_a_script_is_a_group_of_its_own_from_so_many_rows_of_each_class_on():
    texts = [ARABIC] * 160 + [LATIN] * 2 * FEWEST_OF_SCRIPT + ["привет"] * 160 + ["12"] * 2
    labels = np.arange(len(texts)) % 2
    sizes = np.bincount(balanced_cells(texts, labels)).tolist()
    assert sorted(sizes) == sorted([81, 81, 80, 80, *[FEWEST_OF_SCRIPT] * 2])


def test_many_texts_in_no_script_are_a_group_of_their_own():
    texts = [text for text in (ARABIC, LATIN, "12") for _ in range(2 * FEWEST_OF_SCRIPT)]
    sizes = np.bincount(balanced_cells(texts, np.arange(len(texts)) % 2))
    assert sizes.tolist() == [FEWEST_OF_SCRIPT] * 6


def biased(count, seed, share, words=("khayb", "mlih")):
    """Texts whose words tell the class, mostly; in Latin script `share` of them are of class 1."""
    draw = np.random.default_rng(seed)
    texts, labels = [], []
    for k in range(count):
        latin = k % 2
        label = int(draw.random() < (share if latin else 1 - share))
        hint = label if draw.random() < 0.75 else 1 - label
        word = words[hint] if latin else ("خايب", "مليح")[hint]
        texts.append(
            f"{word} {draw.choice(['a', 'b', 'c']) if latin else draw.choice(list('دذر'))}"
        )
        labels.append(["neg", "pos"][label])
    return texts, labels


def test_the_baseline_is_corrected_by_what_it_says_out_of_fold(exact):
    train, test = biased(240, 0, 0.9), biased(200, 1, 0.5)
    plain = fit_baseline("tfidf_logreg", train, None)
    shares = plain.out_of_fold(train, None)
    # With scikit-learn alone, everything fitted within the fold.
    truth = np.array([label == "pos" for label in train[1]], dtype=int)
    expected = np.empty((240, 2))
    texts = np.array(train[0], dtype=object)
    for fitted, held in folds(truth, train[0]):
        features = tfidf()
        model = LogisticRegression(C=plain.model.c, max_iter=1000)
        model.fit(features.fit_transform(texts[fitted]), truth[fitted])
        expected[held] = model.predict_proba(features.transform(texts[held]))
    np.testing.assert_allclose(shares, expected, atol=1e-6)
    corrected = fit_baseline("tfidf_logreg", train, None, config=SCRIPT)
    assert isinstance(corrected, AdjustedBaseline) and corrected.name == "tfidf_logreg"
    assert corrected.settings == {**plain.settings, "prior_groups": "script"}
    by_hand = fit_group_priors(train[0], shares).corrected(test[0], plain.predict_proba(test[0]))
    np.testing.assert_allclose(corrected.predict_proba(test[0]), by_hand)
    assert corrected.predict(test[0]) == [("neg", "pos")[k] for k in by_hand.argmax(axis=1)]
    # Test rows do not share the bias of train's scripts, so taking it away helps.
    right = [np.mean(np.array(m.predict(test[0])) == test[1]) for m in (plain, corrected)]
    assert right[1] > right[0] + 0.05


def test_a_run_wants_what_logit_adjustment_says():
    texts, labels = biased(160, 0, 0.9)
    keep = [k for k, label in enumerate(labels) if label == "pos" or k % 3]  # unequal classes
    train, new = ([texts[k] for k in keep], [labels[k] for k in keep]), biased(40, 1, 0.5)[0]
    options = {**SMALL, "encoder": "mean", "freeze": True, "prior_groups": "script"}

    def fitted(strength):
        return SuperConTextClassifier(**options, logit_adjustment=strength).fit(*train)

    plain, equal = fitted(0.0), fitted(1.0)
    whole = plain.model_.priors.wanted
    assert abs(whole[0] - whole[1]) > 0.1
    np.testing.assert_allclose(equal.model_.priors.wanted, [0.5, 0.5])
    expected = plain.predict_proba(new) / whole
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(equal.predict_proba(new), expected, atol=1e-6)


def test_any_baseline_with_probabilities_is_corrected_and_others_are_as_they_were():
    train = biased(80, 0, 0.8)
    assert not isinstance(
        fit_baseline("majority", train, None, config=SCRIPT),
        AdjustedBaseline,
    )
    few = train[0][:40], train[1][:40]
    pool = fit_baseline("ngrams", few, None, config=SCRIPT)
    assert isinstance(pool, AdjustedBaseline) and set(pool.predict(few[0])) <= {"neg", "pos"}
    single = (["a b", "c d", "e f"], ["x", "x", "y"])
    assert fit_baseline("tfidf_logreg", single, None, config=SCRIPT).predict(["a b"])


@pytest.fixture(scope="module")
def fitted():
    train = biased(240, 0, 0.9)
    config = resolve({**SMALL, "prior_groups": "script"})
    return fit_model(Dataset(*train), config, Dataset(*biased(60, 2, 0.9))).model


def test_a_run_is_corrected_and_says_the_same_when_it_is_loaded(fitted, tmp_path):
    texts, _ = biased(50, 3, 0.5)
    probe = fitted.probe.probabilities(fitted.features(texts))
    np.testing.assert_allclose(fitted.probabilities(texts), fitted.priors.corrected(texts, probe))
    assert not np.allclose(fitted.probabilities(texts), probe)
    assert set(fitted.priors.priors) == {"", "Arabic", "Latin"}
    save_run(fitted, tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["format"] == 5 and FILE in manifest["files"]
    again = load_model(tmp_path / "run")
    np.testing.assert_allclose(again.probabilities(texts), fitted.probabilities(texts), atol=1e-6)
    assert again.predict(texts) == fitted.predict(texts)
    answer = again.answer(texts)
    np.testing.assert_allclose(answer.probabilities, again.probabilities(texts), atol=1e-5)
    loaded = load(tmp_path / "run")
    assert loaded.predict(texts).tolist() == fitted.predict(texts)
    np.testing.assert_allclose(loaded.predict_proba(texts), fitted.probabilities(texts), atol=1e-5)
    # The order of the scores is that of the probabilities.
    scores = again.decision(texts)
    assert (scores.argmax(axis=1) == answer.probabilities.argmax(axis=1)).all()


def test_a_run_whose_priors_are_gone_is_refused(fitted, tmp_path):
    save_run(fitted, tmp_path / "run")
    (tmp_path / "run" / FILE).unlink()
    with pytest.raises(RunError, match=f"{FILE}: missing"):
        load_model(tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    del manifest["files"][FILE]
    (tmp_path / "run" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(RunError, match=FILE):
        load_model(tmp_path / "run")


@pytest.mark.parametrize(
    "given",
    [{"related": "more.tsv"}, {"probe_features": "encoder+tfidf"}],
)
def test_what_cannot_be_corrected_is_refused(given):
    with pytest.raises(ConfigError, match="prior_groups"):
        check_config(resolve({**given, "prior_groups": "script"}))


def test_the_estimator_has_it_and_without_it_nothing_changes():
    texts, labels = biased(80, 0, 0.9)
    plain = SuperConTextClassifier(**SMALL).fit(texts, labels)
    again = SuperConTextClassifier(**SMALL, prior_groups="none").fit(texts, labels)
    np.testing.assert_array_equal(plain.predict_proba(texts), again.predict_proba(texts))
    script = SuperConTextClassifier(**SMALL, prior_groups="script").fit(texts, labels)
    assert not np.allclose(script.predict_proba(texts), plain.predict_proba(texts))
    assert OTHER not in script_groups(texts)


def test_a_baseline_is_adjusted_as_the_run_beside_it():
    texts = [f"w{n % 4} word" for n in range(80)]
    labels = ["neg" if n % 4 == 1 and n % 20 < 8 else "pos" for n in range(80)]
    train = texts, labels
    plain = fit_baseline("tfidf_logreg", train, None)
    half = fit_baseline("tfidf_logreg", train, None, config=resolve({"logit_adjustment": 0.5}))
    assert half.settings == {**plain.settings, "logit_adjustment": 0.5}
    shares = [labels.count(name) / len(labels) for name in ("neg", "pos")]
    found = half.predict_proba(texts)
    for row, before in zip(found, plain.predict_proba(texts), strict=True):
        raised = [p / share**0.5 for p, share in zip(before, shares, strict=True)]
        np.testing.assert_allclose(row, [p / sum(raised) for p in raised], atol=1e-9)
    assert half.predict(texts) == [("neg", "pos")[k] for k in found.argmax(axis=1)]
    assert half.predict(texts) != plain.predict(texts)
    config = resolve({"logit_adjustment": 0.5})
    report = baseline_report(train, None, {"train": train}, config=config)
    assert list(report) == ["majority", "tfidf_logreg", "tfidf_logreg_adjusted"]
    for name, fitted in {"tfidf_logreg": plain, "tfidf_logreg_adjusted": half}.items():
        right = sum(a == b for a, b in zip(fitted.predict(texts), labels, strict=True))
        assert report[name]["train"]["accuracy"] == pytest.approx(right / len(labels))
    for name in ("majority", "tfidf_svm"):  # no probabilities
        kept = fit_baseline(name, train, None, config=resolve({"logit_adjustment": 0.5}))
        assert not isinstance(kept, AdjustedBaseline)


def test_out_of_fold_a_probe_is_fitted_and_cooled_as_the_whole_one_is():
    draw = np.random.default_rng(0)
    labels = np.arange(60) % 3
    features = draw.normal(0, 1, (60, 6)) + 0.7 * np.eye(3, 6)[labels]
    for beside in (None, draw.normal(0, 3, (2, 6))):
        how = {"grid": (0.3,), "unit_length": True, "beside": beside}
        probe = fit_probe(features, labels, **how)
        expected = np.empty((60, 3))
        for fitted, held in folds(labels):
            expected[held] = fit_probe(features[fitted], labels[fitted], **how).decision(
                features[held]
            )
        for temperature in (1.0, 4.0):
            found = probe_out_of_fold(probe, features, labels, temperature)
            np.testing.assert_allclose(found, softmax(expected / temperature), atol=1e-9)


@pytest.mark.parametrize("few", [[0, 1] * 3, [1] * 6])
def test_a_script_of_few_rows_counts_with_the_largest_where_no_text_is_in_none(few):
    texts = [ARABIC] * 200 + ["привет"] * 120 + [LATIN] * 6
    labels = np.array([0, 1] * 160 + few)
    cells = balanced_cells(texts, labels)
    sizes = np.bincount(labels[:200]) + np.bincount(few, minlength=2)
    assert sorted(np.bincount(cells).tolist()) == sorted([60, 60, *sizes])
