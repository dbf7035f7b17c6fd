"""Several files of unlabelled text, through every door."""

from __future__ import annotations

import json
import tomllib

import pytest

from superconext import SuperConTextClassifier
from tests.cli.conftest import blame, rows


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """Two files of unlabelled text, each with a word of its own; nothing is cached yet."""
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a.txt").write_text("wa3r bzaf had lfilm\n" * 80, encoding="utf-8")
    (tmp_path / "b.txt").write_text("kolchi bzaf had lfilm\n" * 80, encoding="utf-8")
    return tmp_path / "a.txt", tmp_path / "b.txt"


@pytest.fixture
def small(data):
    return [word for word in data.small if word not in ("--vectors", str(data.vectors))]


def vectors_of(run):
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    words = json.loads((run / "vocabulary.json").read_text("utf-8"))["reserve"]["words"]
    kept = tomllib.loads((run / "config.toml").read_text("utf-8"))["unlabelled"]
    return manifest["vectors"], kept, set(words)


@pytest.mark.parametrize("door", ["file", "options"])
def test_a_run_learns_from_all_of_them(call, data, small, texts, tmp_path, door):
    out = tmp_path / "run"
    named = [word for text in texts for word in ("--unlabelled", text)]
    if door == "file":
        given = tmp_path / "given.toml"
        given.write_text(f"unlabelled = {json.dumps([str(t) for t in texts])}\n", encoding="utf-8")
        named = ["--config", given]
    said = call("train", data.train, "--no-baselines", *small, "--out", out, *named)
    assert said.code == 0, said.err
    facts, kept, words = vectors_of(out)
    assert facts["trained_on"] == "training text and a.txt, b.txt"
    assert kept == [str(text) for text in texts] and {"wa3r", "kolchi"} <= words
    again = call("train", data.train, "--config", out / "config.toml", "--out", tmp_path / "two")
    assert again.code == 0 and vectors_of(tmp_path / "two")[1] == kept
    assert call("predict", out, data.test).code == 0


def test_the_estimator_takes_a_list(texts, tmp_path):
    labels, sentences = zip(*rows(40, seed=3), strict=True)
    settings = {"epochs": 1, "hidden_size": 4, "vector_dimension": 8}
    model = SuperConTextClassifier(unlabelled=list(texts), **settings).fit(sentences, labels)
    assert {"wa3r", "kolchi"} <= set(model.model_.indexer.oov_vectors.words)
    model.save(tmp_path / "saved")
    paths = tuple(map(str, texts))
    assert SuperConTextClassifier.load(tmp_path / "saved").unlabelled == paths
    twice = SuperConTextClassifier(unlabelled=[texts[0], texts[0]], **settings)
    assert twice._config().unlabelled == str(texts[0])


@pytest.mark.parametrize("verb", ["compare", "fewshot"])
def test_experiments_take_them_and_go_on(call, data, small, texts, tmp_path, verb):
    named = [word for text in texts for word in ("--unlabelled", text)]
    more = ["--shots", "4"] if verb == "fewshot" else []
    words = [verb, data.train, "--test", data.test, *more, "--seeds", 1, "--out", tmp_path / "x"]
    words += ["--objectives", "superloss", *small, "--pretrain"]
    assert call(*words, *named).code == 0
    record = json.loads((tmp_path / "x" / "comparison.json").read_text("utf-8"))
    prints = record["datasets"][""]["identity"]["parameters"]["unlabelled"]
    assert [one[:7] for one in prints] == ["sha256 "] * 2 and prints[0] != prints[1]
    assert "are in" in call(*words, *named).err
    assert "made with unlabelled" in blame(call(*words, *named[:2]))
    if verb == "compare":
        checked = call("compare", "--verify", tmp_path / "x", 1)
        assert checked.code == 0, checked.err


def test_a_data_set_of_its_own_names_them_beside_its_file(call, data, small, texts, tmp_path):
    table = f'[[dataset]]\nname = "one"\ntrain = {json.dumps(str(data.train))}\n'
    table += 'unlabelled = ["a.txt", "b.txt"]\n'
    (tmp_path / "sets.toml").write_text(table, encoding="utf-8")
    words = ["--datasets", tmp_path / "sets.toml", "--seeds", 1, "--out", tmp_path / "x"]
    said = call("compare", *words, "--objectives", "superloss", *small)
    assert said.code == 0, said.err


@pytest.mark.parametrize("value", ["[]", '["a.txt", 3]', '[["a.txt"]]', '[{a = "b"}]'])
def test_what_is_no_list_of_files_is_refused(call, data, tmp_path, value):
    (tmp_path / "given.toml").write_text(f"unlabelled = {value}\n", encoding="utf-8")
    out = tmp_path / "run"
    said = call("train", data.train, "--config", tmp_path / "given.toml", "--out", out)
    assert "unlabelled" in blame(said) and not out.exists()
