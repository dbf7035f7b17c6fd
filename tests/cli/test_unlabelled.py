"""Several files of unlabelled text, through every door."""

from __future__ import annotations

import json
import tomllib

import pytest

from superconext import SuperConTextClassifier
from tests.cli.conftest import BAD, COMMON, GOOD, blame, rows, write_table


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


@pytest.mark.parametrize("verb", ["train", "compare", "fewshot", "sweep"])
def test_help_says_that_the_option_may_be_repeated(call, verb):
    words = " ".join(call(verb, "--help-all").out.split())
    about = words[words.index("--unlabelled FILE") :]
    assert "for word vectors and pretraining. May be repeated." in about[:200]


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


# Trained once for a text


@pytest.fixture
def much(data, tmp_path, monkeypatch):
    """Unlabelled text of more than twenty times the labelled texts; each labelled text stands in
    it too, with another mark at the end."""
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    lines = [" ".join((w, "wa3r", x)) for w in COMMON for x in COMMON] * 32
    for path in (data.train, data.test):
        lines += [line.split("\t")[1] + " !" for line in path.read_text("utf-8").splitlines()[1:]]
    assert not set(GOOD + BAD) & set(" ".join(lines[:3200]).split())
    (tmp_path / "much.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "much.txt"


def entries(tmp_path, kind):
    return [path.name for path in (tmp_path / "cache" / kind).iterdir() if path.is_dir()]


def words_of(tmp_path):
    """All words that some word vectors in the cache, or pretrained encoders, are of."""
    files = (tmp_path / "cache").glob("*/*/words.json")
    return {word for file in files for word in json.loads(file.read_text("utf-8"))}


def test_another_seed_or_hold_out_finds_the_vectors(call, data, small, much, tmp_path):
    words = ["train", data.train, "--test", data.test, "--no-baselines", *small]
    words += ["--unlabelled", much]
    for number, more in enumerate(
        (["--seed", 0], ["--seed", 1], ["--seed", 2, "--no-tune-vectors"])
    ):
        said = call(*words, *more, "--out", tmp_path / str(number))
        assert said.code == 0, said.err
    assert vectors_of(tmp_path / "0")[0]["trained_on"] == "much.txt"
    assert len(entries(tmp_path, "vectors")) == 1
    # Every labelled text is left out, and only they have these words.
    assert "wa3r" in words_of(tmp_path) and not words_of(tmp_path) & set(GOOD + BAD)


@pytest.mark.long
@pytest.mark.parametrize("verb", ["compare", "fewshot"])
@pytest.mark.parametrize("more", [(), ("--pretrain",)])
def test_the_splits_of_an_experiment_share_them(call, data, small, much, tmp_path, verb, more):
    kind = ["--shots", "4,8"] if verb == "fewshot" else ["--splits", "resample"]
    words = [verb, data.train, "--test", data.test, *kind]
    words += ["--seeds", 2, "--out", tmp_path / "x", "--unlabelled", much]
    said = call(*words, "--objectives", "superloss", *small, *more)
    assert said.code == 0, said.err
    assert len(entries(tmp_path, "vectors")) == 1
    assert (tmp_path / "cache" / "encoders").exists() == bool(more)
    if more:
        assert len(entries(tmp_path, "encoders")) == 1
    assert "wa3r" in words_of(tmp_path) and not words_of(tmp_path) & set(GOOD + BAD)


def test_little_text_is_learned_from_with_the_training_rows(call, data, small, texts, tmp_path):
    held = [line.split("\t")[1] for line in data.test.read_text("utf-8").splitlines()[1:]]
    texts[0].write_text("wa3r bzaf\n" * 9 + "\n".join(f"{text} !" for text in held), "utf-8")
    words = ["train", data.train, "--no-baselines", *small, "--unlabelled", texts[0]]
    said = call(*words, "--test", data.test, "--out", tmp_path / "run")
    assert said.code == 0 and "left out: 12 of 21 unlabelled lines" in said.err
    assert vectors_of(tmp_path / "run")[0]["trained_on"] == "training text and a.txt"


def test_a_labelled_text_file_given_as_unlabelled_lets_no_test_text_in(
    call, data, small, texts, tmp_path
):
    lines = data.test.read_text("utf-8").splitlines()[1:]
    texts[0].write_text("\n".join(["pos\twa3r bzaf"] * 20 + lines), "utf-8")
    words = ["train", data.train, "--no-baselines", *small, "--unlabelled", texts[0]]
    said = call(*words, "--test", data.test, "--out", tmp_path / "run")
    assert said.code == 0 and "left out: 12 of 32 unlabelled lines" in said.err
    pool = tmp_path / "pool.txt"
    said = call("data", "pool", texts[0], "--leave-out", data.test, "--out", pool, "--no-near")
    assert said.code == 0 and pool.read_text("utf-8") == "wa3r bzaf\n"


def test_a_table_of_unlabelled_text_whose_column_is_unknown_says_what_it_may_be(call, tmp_path):
    """`train` has no option for its columns; `vectors train` has."""
    path, table = write_table(tmp_path / "x.tsv", rows(20, seed=1)), tmp_path / "more.csv"
    table.write_text("id,commentaire,avis\n1,film zwin,bon\n", encoding="utf-8")
    line = blame(call("train", path, "--unlabelled", table, "--out", tmp_path / "run"))
    assert "could be the text column" in line and line.endswith("or name their column text")
    line = blame(call("vectors", "train", table, "--out", tmp_path / "vectors"))
    assert line.endswith("name it with --text-column")
