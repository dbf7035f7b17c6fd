"""Pruning leaves out rows that serve no word, tells the loss, and survives the folder."""

import json
from dataclasses import replace

import numpy as np
import pytest

import superconext
from superconext.export.prune import prune, without_examples, without_rare_words
from superconext.runs.folder import load_model, save_run
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors
from tests.estimator.test_contract import NEW, TEXTS
from tests.export.conftest import SENTENCES


@pytest.fixture(scope="module")
def model(fitted):
    """A model whose vectors came from elsewhere: every bucket holds something."""
    if fitted.model_.indexer.oov_vectors.subwords is None:
        pytest.skip("no n-gram buckets")
    generator = np.random.default_rng(0)
    own = fitted.model_.indexer.oov_vectors
    table = generator.standard_normal((5000, own.dimension)).astype(np.float16)
    reserve = WordVectors(own.words, own.matrix, SubwordTable(table, 2, 5))
    return replace(fitted.model_, indexer=replace(fitted.model_.indexer, oov_vectors=reserve))


@pytest.fixture(scope="module")
def labels(fitted):
    return [str(label) for label in fitted.classes_[np.arange(len(TEXTS)) % 2]]


def test_known_words_lose_nothing(model, labels):
    known = [
        text
        for text in TEXTS
        if all(t in model.indexer.vocabulary for t in model.tokens([text])[0])
    ]
    assert len(known) > 12, "all but the rows held back"
    small, report = prune(model, known, labels[: len(known)])
    assert np.array_equal(small.features(known), model.features(known))
    assert report.accuracy_loss == 0 and report.labels_changed == 0 and report.rows == len(known)
    assert report.words[0] == report.words[1]


def test_the_buckets_kept_are_those_a_known_word_falls_into(model, labels):
    small, report = prune(model, TEXTS, labels)
    table = model.indexer.oov_vectors.subwords
    used = set()
    for word in [*model.indexer.vocabulary.words[2:], *model.indexer.oov_vectors.words]:
        used.update(table.hashes(word))
    kept = small.indexer.oov_vectors.subwords.buckets
    for row in range(len(kept)):
        expected = table.buckets[row] if row in used else 0
        assert np.array_equal(kept[row], np.zeros_like(kept[row]) + expected), row
    assert report.buckets[1] <= len(used) < report.buckets[0]


def test_the_loss_is_the_difference_of_the_two_accuracies(model, labels):
    small, report = prune(model, NEW, labels[:6])
    before = np.mean(np.array(model.predict(NEW)) == np.array(labels[:6]))
    after = np.mean(np.array(small.predict(NEW)) == np.array(labels[:6]))
    assert (report.accuracy_before, report.accuracy_after) == pytest.approx((before, after))
    assert report.accuracy_loss == pytest.approx(before - after)


def test_the_loss_is_that_of_the_run_where_rare_words_are_left_out_too(model):
    rare, left_out = without_rare_words(model, 1000)
    truth = np.array(model.predict(TEXTS))
    small, report = prune(rare, TEXTS, truth.tolist(), whole=model)
    changed = (np.array(small.predict(TEXTS)) != truth).sum()
    assert left_out > 10 and changed
    assert report.accuracy_before == 1 and report.labels_changed == changed
    assert report.accuracy_after == pytest.approx(1 - changed / len(TEXTS))
    assert report.accuracy_loss == pytest.approx(changed / len(TEXTS))


def test_words_seen_just_as_often_as_asked_stay(model):
    counts = model.indexer.vocabulary.counts[2:]
    often = sorted(set(counts))[1]
    small, left_out = without_rare_words(model, often)
    assert left_out == sum(n < often for n in counts) > 0
    assert min(small.indexer.vocabulary.counts[2:]) == often


def test_words_that_are_left_out_count_as_unknown_and_keep_their_hashed_ngrams(model):
    own = replace(model, config=replace(model.config, vectors=None))
    small, left_out = without_rare_words(own, 3)
    before, after = (one.indexer.vocabulary.counts for one in (model, small))
    assert left_out and sum(after) == sum(before) and after[1] > before[1]
    buckets = small.indexer.oov_vectors.subwords.buckets
    assert np.array_equal(buckets, model.indexer.oov_vectors.subwords.buckets)


def test_words_beside_the_training_text_stay_where_the_vectors_are_from_a_file(model):
    own = model.indexer.oov_vectors
    vectors = np.full((1, own.dimension), 0.5, dtype=np.float16)
    reserve = WordVectors(["kolchi"], vectors, own.subwords)
    model = replace(model, indexer=replace(model.indexer, oov_vectors=reserve))
    for file, kept in ((None, []), ("some.vec", ["kolchi"])):
        given = replace(model, config=replace(model.config, vectors=file))
        small, left_out = without_rare_words(given, 3)
        assert small.indexer.oov_vectors.words == kept
        rare = [n for n in model.indexer.vocabulary.counts[2:] if n < 3]
        assert left_out == len(rare) > 3


def test_a_pruned_folder_is_smaller_newer_and_the_same(model, labels, tmp_path):
    small, _ = prune(model, TEXTS, labels)
    save_run(model, tmp_path / "whole")
    save_run(small, tmp_path / "small")
    sizes = [(tmp_path / n / "vectors.safetensors").stat().st_size for n in ("whole", "small")]
    assert sizes[1] < sizes[0] / 5
    formats = [
        json.loads((tmp_path / n / "manifest.json").read_text())["format"]
        for n in ("whole", "small")
    ]
    assert formats == [1, 2], "a reader that knows no left-out rows must not try"
    loaded = load_model(tmp_path / "small")
    assert np.array_equal(loaded.features(SENTENCES), small.features(SENTENCES))
    assert np.array_equal(
        loaded.indexer.oov_vectors.subwords.buckets, small.indexer.oov_vectors.subwords.buckets
    )
    assert superconext.load(tmp_path / "small").predict(TEXTS).shape == (24,)


def test_words_that_are_not_expected_are_left_out(model, labels):
    vectors = np.full((3, model.indexer.oov_vectors.dimension), 0.5, dtype=np.float16)
    words = ["kolchi", "walou", "Daba"]
    model = replace(
        model,
        indexer=replace(
            model.indexer,
            oov_vectors=WordVectors(words, vectors, model.indexer.oov_vectors.subwords),
        ),
    )
    small, report = prune(model, TEXTS, labels, expected=["kolchi mzyan", "daba"])
    assert small.indexer.oov_vectors.words == ["kolchi", "Daba"] and report.words == (3, 2)
    assert np.array_equal(small.features(["kolchi"]), model.features(["kolchi"]))


def test_expected_words_that_no_table_has_are_read_as_before(model, labels):
    text = "khedma tbarkellah"
    small, _ = prune(model, TEXTS, labels, expected=[text])
    assert np.array_equal(small.features([text]), model.features([text]))
    other, _ = prune(model, TEXTS, labels, expected=["kolchi"])
    assert not np.array_equal(other.features([text]), model.features([text]))


def test_the_rows_before_are_those_of_the_run(model, labels):
    own = model.indexer.oov_vectors
    vectors = np.full((1, own.dimension), 0.5, dtype=np.float16)
    reserve = WordVectors(["kolchi"], vectors, own.subwords)
    config = replace(model.config, vectors=None)
    model = replace(model, config=config, indexer=replace(model.indexer, oov_vectors=reserve))
    rare, _ = without_rare_words(model, 1000)
    _, report = prune(rare, TEXTS, labels, whole=model)
    assert report.words == (1, 0)
    assert report.buckets[0] == model.indexer.sizes()["buckets"] > report.buckets[1]


def test_a_manifest_without_examples_has_the_rest():
    counted = {"tokens": 9, "oov_token_share": 0.1}
    text = {name: {**counted, "frequent_oov": [["ali", 2]]} for name in ("train", "dev")}
    manifest = {"format": 1, "command": ["train", "ali.tsv"], "text": {**text, "profile": "latin"}}
    left = {"train": counted, "dev": counted, "profile": "latin"}
    assert without_examples(manifest) == {"format": 1, "text": left}
    assert without_examples({"format": 1}) == {"format": 1}
    assert "command" in manifest and "frequent_oov" in text["dev"], "and stays as it is"


def test_the_loss_is_below_nothing_where_the_smaller_model_does_better(model, labels):
    rare, _ = without_rare_words(model, 1000)
    small, _ = prune(rare, TEXTS, labels)
    _, report = prune(rare, TEXTS, small.predict(TEXTS), whole=model)
    assert report.accuracy_after == 1 > report.accuracy_before
    assert report.accuracy_loss == pytest.approx(report.accuracy_before - 1)
