"""The controls `vectors_logreg` and `pretrained_logreg` against computations by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from superconext.baselines import CONTROLS
from superconext.baselines.baseline import controls_of, fit_baseline
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.encoders import encoder_class
from superconext.encoders.base import sentence_vectors
from superconext.experiments.compare import compare, fewshot
from superconext.experiments.record import read_results
from superconext.experiments.runner import verify
from superconext.experiments.systems import parse_systems, read_systems
from superconext.fitting import controls
from superconext.fitting.controls import POOLINGS, prepare_run_text, run_text
from superconext.fitting.fit import fit_model
from superconext.fitting.preprocess import preprocess
from superconext.probe.base import dev_score
from superconext.probe.logistic_regression import GRID, fit_probe
from superconext.vectors.readers import read_vectors
from tests.experiments.conftest import BAD, COMMON, GOOD, _no_figures, changed, data, request_of

__all__ = ["_no_figures", "data", "request_of"]

FOLDER = Path(__file__).parents[1] / "frozen" / "pretrained"
PRETRAINED = {"init": str(FOLDER), "hidden_size": 6, "vector_dimension": 4}
SMALL = {"epochs": 1, "hidden_size": 4, "batch_size": 20, "learning_rate": 0.02}


def rows(count, seed, words=()):
    """Texts of three to five words and their labels; every third has one of `words` too."""
    draw = np.random.default_rng(seed)
    texts, labels = [], []
    for k in range(count):
        labels.append("pos" if k % 2 else "neg")
        # Now and then a word of the other class, so that C matters.
        own = GOOD if (labels[-1] == "pos") != (draw.random() < 0.2) else BAD
        chosen = [*draw.choice(COMMON, 2 + k % 3), draw.choice(own)]
        texts.append(
            " ".join([*chosen, *([draw.choice(words)] if len(words) and not k % 3 else [])])
        )
    return texts, labels


TRAIN, DEV = rows(60, 0), rows(40, 1)
TEST = rows(30, 2, ["ghriba", "qrib", "zwinaaa", "mkhayeb"])


def prepared_run(**given):
    config = resolve({**SMALL, **given})
    return prepare_run_text(Dataset(*TRAIN), Dataset(*DEV), TEST[0], config)


class OneScale(TransformerMixin, BaseEstimator):
    """Centres rows, and divides all of them by one number, the root of the mean variance."""

    def fit(self, rows, labels=None):
        self.mean_ = rows.mean(axis=0)
        self.scale_ = np.sqrt(((rows - self.mean_) ** 2).mean())
        return self

    def transform(self, rows):
        return (rows - self.mean_) / self.scale_


def oracle(train, test, labels):
    """scikit-learn's grid search by log loss, rows at unit length, scaled within each fold."""
    steps = [
        ("length", Normalizer()),
        ("scale", OneScale()),
        ("model", LogisticRegression(max_iter=1000)),
    ]
    split = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(Pipeline(steps), {"model__C": GRID}, scoring="neg_log_loss", cv=split)
    search.fit(train, labels)
    c = search.best_params_["model__C"]
    return c, search.predict(test).tolist(), search.predict_proba(test)


@pytest.mark.parametrize("kind", ["file", "trained"])
def test_vectors_logreg_is_logistic_regression_on_means_of_word_vectors(kind, data, tmp_path):
    given = {"vectors": str(data / "vectors.txt")}
    if kind == "trained":
        lines = [
            " ".join(np.random.default_rng(k).choice(COMMON + GOOD + BAD, 6)) for k in range(90)
        ]
        (tmp_path / "more.txt").write_text("\n".join([*lines, "qrib mkhayeb"] * 3), "utf-8")
        given = {"unlabelled": str(tmp_path / "more.txt"), "vector_dimension": 6, "min_count": 2}
    run = prepared_run(**given)
    indexer = run.indexer
    if kind == "file":  # the vectors as the file has them, so that the table is checked as well
        source = read_vectors(given["vectors"])
        table = dict(zip(source.words, source.matrix.astype(np.float64), strict=True))
    else:
        table = dict(zip(indexer.vocabulary.words, indexer.table.astype(np.float64), strict=True))
    scale = indexer.facts["vectors"]["scale"] if kind == "file" else 1.0
    unknown = indexer.table[1].astype(np.float64)

    def vector(word):
        if word in table:
            return table[word] * scale
        found, known = indexer.oov_vectors.lookup([word])
        return found[0].astype(np.float64) if known[0] else unknown

    def means(texts):
        return np.array([np.mean([vector(w) for w in indexer.tokenizer(t)], axis=0) for t in texts])

    c, labels, probabilities = oracle(means(TRAIN[0]), means(TEST[0]), TRAIN[1])
    ours = fit_baseline("vectors_logreg", TRAIN, DEV, run=run)
    assert ours.settings == {"C": c} and ours.predict(TEST[0]) == labels
    np.testing.assert_allclose(ours.predict_proba(TEST[0]), probabilities, atol=2e-3)
    assert len(set(labels)) == 2
    # A word that only character n-grams know has a vector of its own, not the unknown word's.
    if kind == "trained":
        far = vector("zwinaaa") - unknown
        assert "zwinaaa" not in table and np.abs(far).max() > 1e-3


@pytest.mark.parametrize("layers", [1, 2])
def test_pretrained_logreg_is_the_probe_on_the_encoder_of_the_folder(layers):
    run = prepared_run(**PRETRAINED, layers=layers)
    labels, dev_labels = (np.array([("neg", "pos").index(x) for x in s[1]]) for s in (TRAIN, DEV))
    found = []
    for pooling in POOLINGS:
        config = resolve({**SMALL, **PRETRAINED, "pooling": pooling})
        texts = Dataset(*TRAIN), Dataset(*DEV), ["neg", "pos"], config, Progress(), TEST[0]
        encoder = encoder_class("bilstm").build(config, preprocess(*texts).indexer).finish()
        train, dev, test = (
            sentence_vectors(encoder, run.indexer.store(s[0])) for s in (TRAIN, DEV, TEST)
        )
        c, *_ = oracle(train.astype(np.float64), test, labels)
        probe = fit_probe(train, labels, grid=(c,), unit_length=True)
        score = dev_score(probe.probabilities(dev), dev_labels)[1]
        found.append((score, pooling, probe, test))
    _, pooling, probe, test = max(found, key=lambda item: item[0])
    assert len({score for score, *_ in found}) == 3  # so that the choice is one
    ours = fit_baseline("pretrained_logreg", TRAIN, DEV, run=run)
    assert ours.settings == {"pooling": pooling, "C": probe.c}
    assert np.array_equal(ours.predict_proba(TEST[0]), probe.probabilities(test))
    assert ours.predict(TEST[0]) == [("neg", "pos")[k] for k in probe.decision(test).argmax(axis=1)]


def test_with_few_dev_rows_the_pooling_is_the_mean():
    few = DEV[0][:19], DEV[1][:19]
    run = prepared_run(**PRETRAINED)
    settings = fit_baseline("pretrained_logreg", TRAIN, few, run=run).settings
    assert settings["pooling"] == "mean" and settings["C"] in GRID
    assert fit_baseline("pretrained_logreg", TRAIN, None, run=run).settings == settings


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({}, ["vectors_logreg"]),
        ({"vector_method": "random"}, []),
        ({"vector_method": "random", "vectors": "x.vec"}, ["vectors_logreg"]),
        ({"init": "folder", "vector_method": "random"}, list(CONTROLS)),
        ({"pretrain": True, "unlabelled": "x.txt"}, list(CONTROLS)),
    ],
)
def test_a_control_is_fitted_where_the_run_has_what_it_reads(given, names):
    assert list(controls_of(resolve(given))) == names


def test_a_control_without_its_run_is_refused():
    with pytest.raises(ConfigError, match="vectors_logreg: found no run"):
        fit_baseline("vectors_logreg", TRAIN, DEV)
    run = prepared_run(vector_method="random", vector_dimension=4)
    with pytest.raises(ConfigError, match="pretrained_logreg: found no pretrained encoder"):
        fit_baseline("pretrained_logreg", TRAIN, DEV, run=run)
    with pytest.raises(ConfigError, match="vectors_logreg: found vector_method = 'random'"):
        fit_baseline("vectors_logreg", TRAIN, DEV, run=run)


def test_training_is_the_same_to_the_bit_beside_the_controls():
    config = resolve({**SMALL, **PRETRAINED, "epochs": 2})
    train, dev = Dataset(*TRAIN), Dataset(*DEV)
    reports = []

    def fit_controls(prepared):
        run = run_text(prepared, config, {"train": train.texts, "dev": dev.texts})
        torch.rand(3)  # a control may draw what it likes
        reports.append([fit_baseline(name, TRAIN, DEV, run=run) for name in CONTROLS])

    state = torch.random.get_rng_state()
    alone = fit_model(train, config, dev)
    beside = fit_model(train, config, dev, on_prepared=fit_controls)
    assert len(reports) == 1 and torch.equal(torch.random.get_rng_state(), state)
    answers = [made.model.answer(TEST[0]) for made in (alone, beside)]
    assert np.array_equal(answers[0].features, answers[1].features)
    assert np.array_equal(answers[0].probabilities, answers[1].probabilities)


def test_texts_that_are_tokenised_already_are_not_tokenised_again(monkeypatch):
    run = prepared_run(**PRETRAINED)
    texts = next(known for known, _ in run.tokenised)
    expected = run.indexer.store(texts)

    def refuse(*_):
        raise AssertionError("tokenised again")

    monkeypatch.setattr(type(run.indexer.tokenizer), "pieces", refuse)
    assert np.array_equal(run.store(texts).tokens, expected.tokens)
    with pytest.raises(AssertionError, match="again"):
        run.store(list(texts))
    assert [len(known) for known, _ in run.tokenised] == [60, 40, 30]


def test_the_docs_name_them():
    docs = Path(__file__).parents[2] / "docs"
    compare, results = ((docs / f"{name}.md").read_text("utf-8") for name in ("compare", "results"))
    assert "## The controls" in compare and "(compare.md#the-controls)" in results
    assert all(f"`{name}`" in compare for name in CONTROLS)


# In comparisons


def test_both_stand_in_the_tables_of_compare_and_fewshot(request_of, tmp_path):
    given = {**SMALL, **PRETRAINED}
    request = changed(request_of(objectives="superloss", seeds=1), given=given)
    names = ["majority", "tfidf_logreg", "tfidf_svm", *CONTROLS, "superloss"]
    result = compare(changed(request, reference="pretrained_logreg"), Progress())
    assert [row.name for row in result.table.rows] == names
    lines = read_results(tmp_path / "out" / "results.jsonl")
    assert lines["pretrained_logreg", 0, "given"]["pooling"] in POOLINGS
    assert set(lines["vectors_logreg", 0, "given"]) >= {"C", "predictions", "test"}
    assert all(check.same for check in verify(tmp_path / "out", 9, Progress()))
    few = changed(request, verb="fewshot", draws=("shots4",), dev=None, out=str(tmp_path / "few"))
    assert [row.name for row in fewshot(few, Progress()).tables["4"].rows] == names


def test_without_vectors_or_encoder_they_are_left_out_and_refused_by_name(request_of, tmp_path):
    given = {**SMALL, "vector_method": "random", "vector_dimension": 4}
    request = changed(request_of(objectives="superloss", seeds=1), given=given)
    rows_of = [row.name for row in compare(request, Progress()).table.rows]
    assert rows_of == ["majority", "tfidf_logreg", "tfidf_svm", "superloss"]
    for name, found in (
        ("vectors_logreg", "vector_method"),
        ("pretrained_logreg", "no pretrained"),
    ):
        other = request_of(objectives=f"superloss,{name}", out=str(tmp_path / name))
        other = changed(other, given=given)
        with pytest.raises(ConfigError, match=f"{name}: found {found}"):
            compare(other, Progress())
        assert not (tmp_path / name).exists()


def test_named_they_stand_once_and_take_parameters_of_train(request_of, data, tmp_path):
    other = f"vectors_logreg:init={FOLDER}"
    request = request_of(objectives=f"vectors_logreg,{other},superloss", seeds=1)
    request = changed(request, given={**SMALL, "vector_dimension": 4})
    names = [row.name for row in compare(request, Progress()).table.rows]
    assert names == ["majority", "tfidf_logreg", "tfidf_svm", "vectors_logreg", other, "superloss"]
    lines = read_results(tmp_path / "out" / "results.jsonl")
    assert lines[other, 0, "given"]["test"] != lines["vectors_logreg", 0, "given"]["test"]
    with pytest.raises(ConfigError, match="nbsvm, a baseline that chooses its own"):
        parse_systems("nbsvm:layers=2")
    path = tmp_path / "systems.toml"
    path.write_text('[[system]]\nname = "vectors_logreg"\nobjective = "supcon"\n', "utf-8")
    with pytest.raises(ConfigError, match="a baseline has this name"):
        read_systems(path)


def test_of_poolings_that_are_as_good_the_first_is_taken(monkeypatch):
    monkeypatch.setattr(controls, "log_loss", lambda probabilities, labels: 0.5)
    fitted = fit_baseline("pretrained_logreg", TRAIN, DEV, run=prepared_run(**PRETRAINED))
    assert fitted.settings["pooling"] == controls.POOLINGS[0] == "mean"
