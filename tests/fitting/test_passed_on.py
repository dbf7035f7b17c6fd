"""What a caller says reaches what acts on it, through every layer between: texts that are scored,
the seed, texts of which there are copies, soft labels. None of these shows in a result that is
merely looked at."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from superconext import SuperConTextClassifier
from superconext.baselines.baseline import fit_baseline
from superconext.config.parameters import resolve
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.experiments.fit_job import TransferSource, run_fit
from superconext.experiments.plan import Fit
from superconext.experiments.row_sources import read_rows
from superconext.experiments.systems import DataSet, System, plain
from superconext.fitting import controls, recipes, stages
from superconext.fitting import fit as fitting
from superconext.fitting.controls import prepare_run_text
from superconext.fitting.cross_validation import CrossValidation
from superconext.fitting.fit import fit_model
from superconext.fitting.preprocess import preprocess
from superconext.objectives.cross_entropy import CrossEntropy
from superconext.probe import logistic_regression
from superconext.runs.folder import load_model
from superconext.runs.splits import TrainRequest, read_big, read_splits
from superconext.runs.train import train_run
from superconext.training.pretraining import make
from superconext.training.pretraining.language_model import Settings
from superconext.vectors.table import WordVectors
from tests.fitting.test_cross_validation import dataset
from tests.training.test_trainer import make_trainer

#: A text that is scored, and that the unlabelled text has too.
SECRET = "wahd jomla ghriba"
SMALL = {
    "epochs": 1,
    "steps_per_epoch": 2,
    "batch_size": 12,
    "hidden_size": 4,
    "vector_dimension": 4,
    "baselines": False,
}
TINY = {**SMALL, "vector_dimension": 8, "vector_method": "random", "subwords": False}


def rows(count=20, name="word"):
    texts = [f"{name}{k} {['zwin', 'khayb'][k % 2]}" for k in range(count)]
    return texts, ["a", "b"] * (count // 2)


def write_rows(path, texts, labels):
    lines = [f"{label}\t{text}" for text, label in zip(texts, labels, strict=True)]
    path.write_text("\n".join(["label\ttext", *lines]) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "text.txt"
    lines = [f"kolchi bzaf had lbelaka n{k}" for k in range(60)] + [SECRET] * 5
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def knows_secret(model):
    return "ghriba" in model.indexer.oov_vectors.words


# Texts that are scored, or were not drawn.


@pytest.mark.parametrize("cv", [0, None])
def test_auto_keeps_test_texts_apart_whether_dev_or_folds_choose(cv, monkeypatch):
    seen = []

    def watched(*given, test_texts=(), **more):
        seen.append([*test_texts])
        raise KeyError("enough")

    config = resolve({"preset": "auto", "cv": cv})
    chosen = SimpleNamespace(config=config), None, None
    monkeypatch.setattr(recipes, "fit_model", watched)
    monkeypatch.setattr(recipes, "CrossValidation", lambda *given, **more: None)
    monkeypatch.setattr(recipes, "choose", lambda *given: chosen)
    with pytest.raises(KeyError, match="enough"):
        dev = Dataset(*rows(12, "dev"))
        recipes.fit_chosen(Dataset(*rows()), config, dev, Progress(), test_texts=[SECRET])
    assert seen == [[SECRET]]


def test_folds_that_choose_keep_dev_and_test_texts_apart(monkeypatch):
    seen = []

    def watched(train, config, folds, progress, held, **more):
        seen.extend(held)
        raise KeyError("enough")

    monkeypatch.setattr(recipes, "CrossValidation", watched)
    dev, config = dataset(12, seed=1), resolve({"preset": "auto"})
    with pytest.raises(KeyError, match="enough"):
        recipes.fit_chosen(dataset(30), config, dev, Progress(), test_texts=[SECRET])
    assert seen == [*dev.texts, SECRET]


def test_a_fold_of_a_comparison_keeps_its_held_out_texts_apart(monkeypatch):
    data, seen = dataset(30), []

    def watched(train, config, dev, progress, test_texts=(), **more):
        seen.append(({*train.texts}, {*test_texts}))
        raise KeyError("enough")

    monkeypatch.setattr(recipes, "fit_chosen", watched)
    given = {"vector_method": "random", "vector_dimension": 8}
    source = {"all": (data.texts, data.labels)}
    with pytest.raises(KeyError, match="enough"):
        run_fit(Fit(plain("auto"), 0, "cv2-0"), source, given, sorted({*data.labels}))
    ((own, held),) = seen
    assert held and held == {*data.texts} - own


@pytest.mark.parametrize("moved", [False, True])
def test_a_fit_of_a_comparison_learns_no_vectors_from_test_texts(text, moved, monkeypatch):
    seen, real = [], fitting.fit_model

    def watched(*given, **more):
        seen.append(real(*given, **more))
        return seen[-1]

    monkeypatch.setattr(fitting, "fit_model", watched)
    given = {**SMALL, "unlabelled": text}
    parts = {"train": rows(), "dev": rows(8, "dev"), "test": ([SECRET, "zwin"], ["a", "b"])}
    other = {"train": rows(20, "o"), "dev": rows(8, "od"), "test": rows(8, "ot")}
    system = System("x", "cross_entropy", (), "other" if moved else "")
    source = TransferSource(other, given) if moved else None
    run_fit(Fit(system, 0, "given"), parts, given, ["a", "b"], source)
    assert len(seen) == 1 and not knows_secret(seen[0].model)


def test_a_run_learns_no_vectors_from_test_texts(text, tmp_path):
    train = write_rows(tmp_path / "train.tsv", *rows())
    test = write_rows(tmp_path / "test.tsv", [SECRET, "zwin"], ["a", "b"])
    given, run = {**SMALL, "unlabelled": text}, str(tmp_path / "run")
    request = TrainRequest(train=train, test=test, out=run, given=given, no_report=True)
    train_run(request, Progress())
    assert not knows_secret(load_model(run))


def test_word_vectors_learn_from_no_row_that_was_not_drawn(text):
    config = resolve({"vector_dimension": 4, "unlabelled": text})
    known = []
    for left in ((), [SECRET]):
        train = Dataset(*rows(6))
        made = preprocess(train, None, ["a", "b"], config, Progress(), not_drawn=left)
        known.append("ghriba" in made.indexer.oov_vectors.words)
    assert known == [True, False]


def test_a_control_of_few_rows_is_told_which_were_not_drawn(monkeypatch):
    seen, real = [], controls.preprocess

    def watched(*given):
        seen.append(given[6])
        return real(*given)

    monkeypatch.setattr(controls, "preprocess", watched)
    texts, labels = rows()
    parts = {"train": (texts, labels), "test": (["zwin", "khayb"], ["a", "b"])}
    fit = Fit(plain("vectors_logreg"), 0, "shots2-0")
    run_fit(fit, parts, {"vector_dimension": 4}, ["a", "b"])
    assert len(seen) == 1 and len(seen[0]) == 20 - 8 and set(seen[0]) < set(texts)


def test_suggestions_leave_out_what_was_trained_on():
    texts = [f"word{k} {['zwin', 'khayb'][k % 2]} {'xyz'[k % 3]}" for k in range(40)]
    model = SuperConTextClassifier(**TINY, cv=0).fit(texts[:30], ["a", "b"] * 15)
    found = {one.text for one in model.suggest(texts, 40)}
    assert found and not found & set(texts[:30])


def test_rows_without_a_label_of_every_file_are_learned_from(tmp_path):
    paths = {}
    for name in ("train", "test"):
        texts, labels = rows(8, name)
        path = tmp_path / f"{name}.tsv"
        paths[name] = write_rows(path, [*texts, f"{name} alone zwin"], [*labels, ""])
    data = DataSet("", paths["train"], test=paths["test"], drop_unlabelled=True)
    found = read_rows(data, "resampled", Progress()).unlabelled
    assert [*found] == ["train alone zwin", "test alone zwin"]


# The seed.


def seeded(**more):
    return [resolve({**TINY, "seed": seed, **more}) for seed in (0, 1)]


def test_another_seed_holds_out_other_rows_of_a_run(tmp_path):
    request = TrainRequest(write_rows(tmp_path / "rows.tsv", *rows(300)), "run")
    one, other = (read_splits(request, config, Progress()).dev for config in seeded(cv=0))
    assert one.texts != other.texts


@pytest.mark.parametrize(("share", "part"), [(0.1, 1), (0.0, 0)])
def test_another_seed_holds_out_and_samples_other_rows_of_a_stream(
    tmp_path, monkeypatch, share, part
):
    monkeypatch.setattr("superconext.runs.splits.SAMPLE_ROWS", 50)
    path = write_rows(tmp_path / "rows.tsv", *rows(300))
    one, other = (
        read_big(path, (None, None), config, str(tmp_path), share, Progress())[part]
        for config in seeded()
    )
    assert one.texts != other.texts


def test_another_seed_holds_out_other_rows_of_the_estimator():
    (texts, labels), held = rows(60), []
    for seed in (0, 1):
        model = SuperConTextClassifier(**TINY, cv=0, seed=seed).fit(texts, labels).model_
        held.append([split == "dev" for split in model.seen.split_of(model.tokens(texts))])
    assert sum(held[0]) == sum(held[1]) == 6 and held[0] != held[1]


def test_another_seed_deals_other_folds():
    one, other = (
        CrossValidation(Dataset(*rows(40)), config, 4, Progress(), times=1).folds
        for config in seeded()
    )
    pairs = zip(one, other, strict=True)
    assert not any(np.array_equal(a.held, b.held) for a, b in pairs)


def test_another_seed_draws_other_batches(monkeypatch):
    seen, real = [], stages.make_batches

    def watched(*given):
        made = real(*given)
        seen.append(np.concatenate([*made.epoch(0)]).tolist())
        return made

    monkeypatch.setattr(stages, "make_batches", watched)
    for config in seeded():
        fit_model(Dataset(*rows()), config)
    assert seen[0] != seen[1]


def test_another_seed_draws_another_pool_and_hides_other_words(text):
    pools = []
    more = {"objective": "css_lm", "unlabelled": text, "options": "pool_size=10"}
    for config in seeded(subwords=True, **more):
        dev = Dataset(*rows(8, "dev"))
        made = preprocess(Dataset(*rows()), dev, ["a", "b"], config, Progress())
        pools.append(made.pool.tokens.tolist())
    assert pools[0] != pools[1]
    assert [make_trainer(objective="css_lm", seed=seed).pool.seed for seed in (0, 5)] == [0, 5]


# Copies of a text, which belong to one side.


@pytest.fixture
def given_to_folds(monkeypatch):
    """The texts that folds of C's choice are told."""
    given, real = [], logistic_regression.folds

    def watched(labels, texts=None):
        given.append(texts)
        return real(labels, texts)

    monkeypatch.setattr(logistic_regression, "folds", watched)
    return given


@pytest.mark.parametrize("name", ["nbsvm", "tfidf_svm", "vectors_logreg"])
def test_folds_of_a_baseline_know_the_texts(name, given_to_folds):
    (texts, labels), run = rows(40), None
    if name == "vectors_logreg":
        config = resolve({"vector_dimension": 4, "min_count": 1})
        run = prepare_run_text(Dataset(texts, labels), None, [], config)
    fit_baseline(name, (texts, labels), None, run=run)
    assert given_to_folds and all([*(one or ())] == texts for one in given_to_folds)


def test_folds_of_a_frozen_encoder_know_the_texts(given_to_folds):
    texts, labels = rows(160)
    fit_model(Dataset(texts, labels), resolve({**TINY, "freeze": True, "encoder": "mean"}))
    assert given_to_folds and all([*(one or ())] == texts for one in given_to_folds)


def test_copies_in_a_stream_are_told_by_the_usual_rules_whatever_the_runs(tmp_path):
    both = [
        (f"{word} {['zwin', 'khayb'][k % 2]} n{k // 2}", "ab"[k % 2])
        for k in range(200)
        for word in ("Film", "FILM")
    ]
    path = write_rows(tmp_path / "rows.tsv", *zip(*both, strict=True))
    config = resolve({**TINY, "normalize": "none"})
    dev = read_big(path, (None, None), config, str(tmp_path), 0.1, Progress())[1]
    assert len(dev) == 2 * len({one.lower() for one in dev.texts}) > 0


# What else a stage hands to the next.


def test_the_second_stage_learns_shares_too(monkeypatch):
    seen, forward = [], CrossEntropy.forward

    def watched(self, batch):
        seen.append(batch.shares)
        return forward(self, batch)

    monkeypatch.setattr(CrossEntropy, "forward", watched)
    shares = [{"a": 0.7, "b": 0.3} if k % 2 else {"b": 1.0} for k in range(20)]
    soft = Dataset(rows()[0], ["b", "a"] * 10, shares=shares)
    fit_model(soft, resolve({**TINY, "finetune_epochs": 1}))
    assert seen and all(one is not None for one in seen)


def test_a_system_trained_on_another_set_is_adjusted_as_any():
    draw = np.random.default_rng(0)

    def unequal(count, word):
        labels = ["b" if draw.random() < 0.15 else "a" for _ in range(count)]
        said = [one if draw.random() < 0.6 else "ab"[draw.integers(2)] for one in labels]
        words = {"a": "zwin", "b": "khayb"}
        texts = [f"{words[one]} {word}{k} w{draw.integers(9)}" for k, one in enumerate(said)]
        return texts, labels

    sizes = {"train": 60, "dev": 20, "test": 20}
    source = {name: unequal(count, f"s{name}") for name, count in sizes.items()}
    target = {name: unequal(count, f"t{name}") for name, count in {**sizes, "test": 100}.items()}
    found = []
    for strength in (0.0, 1.0):
        given = {**TINY, "logit_adjustment": strength}
        fit = Fit(System("moved", "cross_entropy", (), source="other"), 0, "given")
        line = run_fit(fit, target, given, ["a", "b"], TransferSource(source, given))
        found.append(line["predictions"].count(1))
    assert found[1] > found[0]


@pytest.mark.parametrize(("count", "chosen"), [(60, True), (19, False)])
def test_it_is_known_whether_dev_chose(count, chosen):
    config = resolve({**TINY, "preset": "auto", "budget": 0.0})
    fitted = recipes.fit_on_dev(dataset(30), config, dataset(count, seed=1), Progress())[0]
    assert fitted.chosen_on_dev is chosen


def test_the_pool_is_read_with_the_vectors_of_the_epochs_beginning():
    trainer, some = make_trainer(objective="css_lm"), torch.arange(3)
    trainer.modules.eval()
    before = trainer.pool.encode(some).detach()
    words = trainer.encoder.embedding.words
    trainer.encoder.embedding.words = torch.nn.Parameter(words.detach() + 1, requires_grad=False)
    assert torch.equal(trainer.pool.encode(some), before)
    trainer.pool.begin_epoch()
    assert not torch.allclose(trainer.pool.encode(some), before)


def test_a_cached_encoder_is_one_of_its_beginning_and_threads(monkeypatch):
    monkeypatch.setattr(make, "read_facts", lambda folder: {"sha256": folder})
    vectors = WordVectors(["a"], np.ones((1, 2), np.float32))
    text = SimpleNamespace(identity=lambda: "x")
    keys = {
        make._key(text, vectors, Settings(), threads, init)
        for threads, init in ((1, None), (2, None), (1, "one"), (1, "two"))
    }
    assert len(keys) == 4
