"""The baselines are fitted as described, and on nothing but train and dev."""

import numpy as np
import pytest
from scipy.sparse import hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from superconext.baselines.baseline import Majority, baseline_report
from superconext.baselines.linear import SVM_GRID, TfidfLogisticRegression, TfidfSvm
from superconext.probe.tfidf import TFIDF_GRID

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


def test_tfidf_is_word_and_character_n_grams_with_c_from_dev():
    train, dev, test = split(60, 0), split(30, 1), split(40, 2)
    ours = TfidfLogisticRegression().fit(train, dev)
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\S+")
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    rows = hstack([v.fit_transform(train[0]) for v in (words, characters)])
    others = {
        name: hstack([v.transform(texts) for v in (words, characters)])
        for name, texts in (("dev", dev[0]), ("test", test[0]))
    }
    scores = {}
    for c in TFIDF_GRID:
        model = LogisticRegression(C=c, max_iter=1000).fit(rows, train[1])
        scores[c] = (model.predict(others["dev"]) == dev[1]).mean()
    assert scores[ours.settings["C"]] == max(scores.values())
    chosen = LogisticRegression(C=ours.settings["C"], max_iter=1000).fit(rows, train[1])
    assert ours.predict(test[0]) == chosen.predict(others["test"]).tolist()


def test_without_dev_c_is_one():
    assert TfidfLogisticRegression().fit(split(30, 0), None).settings == {"C": 1.0}


def test_report_has_every_split_of_every_baseline():
    report = baseline_report(split(60, 0), split(30, 1), {"dev": split(30, 1), "test": split(9, 2)})
    assert set(report) == {"majority", "tfidf_logreg"}
    assert report["majority"]["test"]["accuracy"] == pytest.approx(6 / 9)
    assert report["tfidf_logreg"]["test"]["accuracy"] > 0.9
    assert report["tfidf_logreg"]["seconds"] >= 0 and report["majority"]["dev"]["n"] == 30


def test_svm_has_the_features_of_tfidf_and_c_from_dev():
    train, dev, test = split(60, 0), split(30, 1), split(40, 2)
    ours = TfidfSvm().fit(train, dev)
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"(?u)\S+")
    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True)
    rows = hstack([v.fit_transform(train[0]) for v in (words, characters)])
    held, asked = (
        hstack([v.transform(texts) for v in (words, characters)]) for texts in (dev[0], test[0])
    )
    models = {c: LinearSVC(C=c, dual="auto", random_state=0).fit(rows, train[1]) for c in SVM_GRID}
    scores = {c: float((model.predict(held) == dev[1]).mean()) for c, model in models.items()}
    best = min(c for c in SVM_GRID if scores[c] == max(scores.values()))
    assert ours.settings == {"C": best}
    assert ours.predict(test[0]) == models[best].predict(asked).tolist()
    assert TfidfSvm().fit(train, None).settings == {"C": 1.0}
