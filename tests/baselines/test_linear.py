"""The baselines are fitted as described, and on nothing but train and dev."""

import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_union
from sklearn.svm import LinearSVC

from superconext.baselines.baseline import Majority, baseline_report, fit_baseline
from superconext.baselines.linear import (
    SVM_GRID,
    NbSvm,
    NgramPool,
    TfidfLogisticRegression,
    TfidfSvm,
)
from superconext.config.parameters import Config
from superconext.probe.base import log_softmax
from superconext.probe.ensemble import fit_weights, pooled
from superconext.probe.ngrams import (
    RATIO_GRID,
    TFIDF_GRID,
    NgramCounts,
    RatioFeatures,
    TfidfFeatures,
)
from tests.cli.conftest import call_main
from tests.probe.conftest import exact  # noqa: F401  (a fixture)

GOOD, BAD = ["zwin", "mzyan", "مزيان", "هايل"], ["khayb", "khasr", "خايب", "قبيح"]


def split(n, seed):
    generator = np.random.default_rng(seed)
    labels = ["good" if i % 3 else "bad" for i in range(n)]
    texts = [
        f"{generator.choice(GOOD if label == 'good' else BAD)} hadchi {generator.integers(9)}"
        for label in labels
    ]
    return texts, labels


def test_majority_is_the_commonest_label():
    assert Majority().fit((["x"] * 3, ["b", "a", "b"]), None).predict(["y", "z"]) == ["b", "b"]
    assert Majority().fit((["x"] * 2, ["b", "a"]), None).predict(["y"]) == ["a"]


def pipeline(classifier):
    """TF-IDF and a classifier, the vocabulary fitted with it."""
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\S+")
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    return Pipeline([("tfidf", make_union(words, characters)), ("classifier", classifier)])


def searched(classifier, grid, scoring, train, folds=5):
    """scikit-learn's grid search over C, with the baselines' folds."""
    split = StratifiedKFold(folds, shuffle=True, random_state=0)
    search = GridSearchCV(
        pipeline(classifier), {"classifier__C": grid}, scoring=scoring, cv=split
    ).fit(*train)
    return search, {"C": search.best_params_["classifier__C"]}


def noisy(n, seed, classes=("bad", "good", "so so"), share=0.6):
    """Texts of four words, the first of which is of the label's class with chance `share`."""
    draw = np.random.default_rng(seed)
    labels = [classes[k % len(classes)] for k in range(n)]
    texts = []
    for label in labels:
        of = label if draw.random() < share else str(draw.choice(classes))
        own = f"{of.replace(' ', '')}{draw.integers(5)}"
        texts.append(" ".join([own, *(f"w{k}" for k in draw.integers(0, 40, 3))]))
    return texts, labels


def test_the_noisy_rows_have_a_c_inside_the_grid():
    """So that the comparisons below are of a choice."""
    for classes in (("bad", "good", "so so"), ("bad", "good")):
        c = TfidfLogisticRegression().fit(noisy(150, 0, classes), None).settings["C"]
        assert TFIDF_GRID[0] < c < TFIDF_GRID[-1]


@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("classes", [("bad", "good", "so so"), ("bad", "good")])
def test_c_of_tfidf_is_that_of_a_grid_search_by_log_loss_within_train(classes):
    train, test = noisy(150, 0, classes), noisy(60, 2, classes)
    search, chosen = searched(LogisticRegression(), TFIDF_GRID, "neg_log_loss", train)
    # Dev rows with wrong labels: a small dev set has no say.
    misled = test[0], test[1][1:] + test[1][:1]
    for dev in (None, misled):
        ours = TfidfLogisticRegression().fit(train, dev)
        assert ours.settings == chosen
        assert ours.predict(test[0]) == search.predict(test[0]).tolist()
        difference = ours.predict_proba(test[0]) - search.predict_proba(test[0])
        assert np.abs(difference).max() < 1e-6


def test_a_large_dev_set_chooses_by_its_log_loss():
    train, dev, test = noisy(150, 0), noisy(1000, 1, share=0.9), noisy(60, 2)
    losses, accuracies, models = {}, {}, {}
    for c in TFIDF_GRID:
        models[c] = pipeline(LogisticRegression(C=c, max_iter=1000)).fit(*train)
        losses[c] = log_loss(dev[1], models[c].predict_proba(dev[0]))
        accuracies[c] = models[c].score(*dev)
    best = min(losses, key=losses.get)
    within = searched(LogisticRegression(max_iter=1000), TFIDF_GRID, "neg_log_loss", train)[1]
    assert best not in (within["C"], max(accuracies, key=accuracies.get))  # three choices
    ours = TfidfLogisticRegression().fit(train, dev)
    assert ours.settings == {"C": best}
    assert ours.predict(test[0]) == models[best].predict(test[0]).tolist()
    unknown = [*dev[0][:999], "bad1 w2"], [*dev[1][:999], "never seen"]
    assert TfidfLogisticRegression().fit(train, unknown).settings == within


def test_rare_classes_have_fewer_folds_and_a_class_of_one_row_none():
    train = noisy(60, 0, ("bad", "good"))
    three = [*train[0], "rare0", "rare1 w2", "rare0 w3"], [*train[1], *["rare"] * 3]
    model = LogisticRegression(max_iter=1000)
    search, chosen = searched(model, TFIDF_GRID, "neg_log_loss", three, folds=3)
    ours = TfidfLogisticRegression().fit(three, None)
    assert ours.settings == chosen
    assert ours.predict(train[0]) == search.predict(train[0]).tolist()
    # A class of one row: dev log loss, or without 20 dev rows a default.
    one = [*train[0], "rare0"], [*train[1], "rare"]
    dev = noisy(30, 4, ("bad", "good"))
    losses = {}
    for c in TFIDF_GRID:
        rival = pipeline(LogisticRegression(C=c, max_iter=1000)).fit(*one)
        losses[c] = log_loss(dev[1], rival.predict_proba(dev[0]), labels=sorted(set(one[1])))
    assert TfidfLogisticRegression().fit(one, dev).settings == {"C": min(losses, key=losses.get)}
    for kind in (TfidfLogisticRegression, TfidfSvm):
        assert kind().fit(one, None).settings == {"C": 1.0}
        assert kind().fit((["zwin", "khayb"], ["good", "bad"]), None).settings == {"C": 1.0}


def test_a_fold_without_a_word_is_no_error():
    texts = ["", "zwin", " ", "khayb"] * 2
    labels = ["good", "good", "bad", "bad"] * 2
    for rows in ((texts[:4], labels[:4]), (texts, labels)):
        for kind in (TfidfLogisticRegression, TfidfSvm, NgramPool, NbSvm):
            assert len(kind().fit(rows, None).predict(texts)) == 8
    only = ["zwin", "", "", ""], ["good", "good", "bad", "bad"]
    for kind in (TfidfLogisticRegression, TfidfSvm, NgramPool, NbSvm):
        assert len(kind().fit(only, None).predict(texts)) == 8


def test_report_has_every_split_of_every_baseline():
    report = baseline_report(split(60, 0), split(30, 1), {"dev": split(30, 1), "test": split(9, 2)})
    assert set(report) == {"majority", "tfidf_logreg"}
    assert report["majority"]["test"]["accuracy"] == pytest.approx(6 / 9)
    assert report["tfidf_logreg"]["test"]["accuracy"] > 0.9
    assert report["tfidf_logreg"]["seconds"] >= 0 and report["majority"]["dev"]["n"] == 30


@pytest.mark.parametrize("classes", [("bad", "good", "so so"), ("bad", "good")])
def test_c_of_the_svm_is_that_of_a_grid_search_by_accuracy_within_train(classes):
    train, test = noisy(150, 0, classes), noisy(60, 2, classes)
    model = LinearSVC(dual="auto", random_state=0)
    search, chosen = searched(model, SVM_GRID, "accuracy", train)
    for dev in (None, noisy(30, 4, classes)):
        ours = TfidfSvm().fit(train, dev)
        assert ours.settings == chosen
        assert ours.predict(test[0]) == search.predict(test[0]).tolist()


@pytest.mark.usefixtures("exact")
def test_the_pool_has_the_c_and_the_weights_that_rows_left_out_ask_for():
    """Against folds made by hand, and both models fitted on each of them."""
    train = noisy(120, 0)
    names = sorted(set(train[1]))
    labels = np.array([names.index(label) for label in train[1]])
    split = StratifiedKFold(5, shuffle=True, random_state=0)
    folds = list(split.split(np.zeros(len(labels)), labels))

    def left_out(kind, c):
        shares = np.empty((len(labels), 3))
        for fitted, held in folds:
            counts = NgramCounts([train[0][k] for k in fitted])
            model = kind(counts.counts, labels[fitted]).fitted(counts, c)
            shares[held] = model.probabilities([train[0][k] for k in held])
        return shares

    losses = {c: log_loss(labels, left_out(RatioFeatures, c)) for c in RATIO_GRID}
    best = min(losses, key=losses.get)
    assert RATIO_GRID[0] < best < RATIO_GRID[-1]
    tfidf_c = TfidfLogisticRegression().fit(train, None).settings["C"]
    logs = [np.log(left_out(TfidfFeatures, tfidf_c)), np.log(left_out(RatioFeatures, best))]
    weights = fit_weights(logs, labels)
    assert np.ptp(weights) > 0.05
    test = noisy(40, 2)[0]
    for dev in (None, noisy(30, 4)):
        pool = NgramPool().fit(train, dev)
        assert pool.settings["ngrams_C"] == best and pool.settings["tfidf_C"] == tfidf_c
        np.testing.assert_allclose(pool.weights, weights, atol=1e-3)
        scores = pooled([log_softmax(one.decision(test)) for one in pool.models], pool.weights)
        assert pool.predict(test) == [names[k] for k in scores.argmax(axis=1)]
        np.testing.assert_allclose(pool.predict_proba(test), np.exp(log_softmax(scores)))
    one = [*train[0], "rare0"], [*train[1], "rare"]
    assert NgramPool().fit(one, None).settings["pool_weights"] == [0.5, 0.5]


LENGTHENED = (["haaa"] * 10 + ["haa"] * 10, ["yes"] * 10 + ["no"] * 10)


@pytest.mark.parametrize("name", ["tfidf_logreg", "tfidf_svm", "nbsvm", "ngrams", "fasttext"])
def test_texts_are_normalised_as_those_of_the_run_are(name):
    if name == "fasttext":
        pytest.importorskip("fasttext")
    for rule, same in (("+elongation", True), ("-elongation", False)):
        config = Config(normalize=f"latin{rule}")
        fitted = fit_baseline(name, LENGTHENED, None, config=config)
        one, other = fitted.predict(["haaa", "haa"])
        assert (one == other) == same
        if not same:
            assert (one, other) == ("yes", "no")


def test_the_baselines_of_train_and_compare_are_normalised_as_asked(tmp_path):
    data = tmp_path / "rows.tsv"
    rows = [
        f"{label}\t{text} {word}\n"
        for text, label in zip(*LENGTHENED, strict=True)
        for word in ("hadchi", "kayn", "bzf")
    ]
    data.write_text("label\ttext\n" + "".join(rows))
    asked = ["--normalize", "latin-elongation", "--test", data, "--cv", "0", "--quiet"]
    out = tmp_path / "compared"
    asked_of_compare = ["--objectives", "ngrams", "--seeds", "1", "--out", out]
    assert call_main("compare", data, *asked_of_compare, *asked).code == 0
    lines = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    scores = {line["objective"]: line["test"]["accuracy"] for line in lines}
    assert all(scores[name] == 1 for name in ("tfidf_logreg", "tfidf_svm", "ngrams"))
    run = tmp_path / "run"
    little = ["--preset", "fast", "--epochs", "1"]
    assert call_main("train", data, "--out", run, *little, *asked).code == 0
    baselines = json.loads((run / "metrics.json").read_text())["baselines"]
    assert baselines["tfidf_logreg"]["test"]["accuracy"] == 1
    page = tmp_path / "page.html"
    assert call_main("report", run, data, "--train", data, "--out", page).code == 0
    assert "100.0" in page.read_text()
