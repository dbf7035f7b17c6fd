"""Sentences enter a run in its page alone; rare words can be left out."""

from __future__ import annotations

import fnmatch
import json

import pytest

from tests.cli.conftest import call_main, rows, write_table

SECRET = "siham benkirane skna f zenqat lwarda 47 rabat"
WORDS = ("siham", "benkirane", "zenqat", "lwarda")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("private")
    table = rows(48, seed=5)
    train = [*table[:32], ("pos", SECRET)]
    dev = [*table[32:40], ("neg", SECRET.replace("47", "48"))]
    test = [*table[40:], ("neg", SECRET.replace("47", "49"))]
    return [
        write_table(folder / f"{name}.tsv", part)
        for name, part in (("train", train), ("dev", dev), ("test", test))
    ]


def train(files, out, *words):
    first, dev, test = files
    small = "--epochs 1 --hidden-size 4 --vector-dimension 8 --batch-size 8"
    given = ("--dev", dev, "--test", test, "--out", out, *small.split())
    said = call_main("train", first, *given, *words)
    assert said.code == 0, said.err
    return out


def holding(folder, text):
    """Names of the files with these words in this order, however they are separated."""
    found = set()
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            for wanted in (text, json.dumps(text)[1:-1], text.replace(" ", "_")):
                if wanted.encode("utf-8") in content or wanted.encode("utf-16-le") in content:
                    found.add(path.name)
    return found


@pytest.fixture(scope="module")
def finished(files, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    return train(files, out, "--probe-features=encoder+ngrams", "--no-report")


def test_no_sentence_enters_the_run_beside_its_page(finished):
    assert not (finished / "report.html").exists()
    assert (finished / "predictions.tsv").is_file() and (finished / "README.md").is_file()
    # Three words in a row are of one sentence; TF-IDF keeps pairs.
    words = SECRET.split()
    for start in range(len(words) - 2):
        assert not holding(finished, " ".join(words[start : start + 3]))
    rows_of = (finished / "predictions.tsv").read_text(encoding="utf-8").splitlines()
    assert rows_of[0].split("\t") == ["line", "label", "predicted", "probability"]


def test_no_sentence_is_left_in_figures(files, tmp_path, monkeypatch):
    figures = pytest.importorskip("superconext.report.figures")
    pytest.importorskip("matplotlib")
    seen = []
    for name in ("draw_map", "draw_confusion", "draw_curves"):
        monkeypatch.setattr(
            f"superconext.report.run_figures.{name}", lambda *a, **k: seen.append(repr((a, k)))
        )
    monkeypatch.setattr(figures, "available", lambda: True)
    train(files, tmp_path / "run")
    assert seen and not any("siham" in given for given in seen)


def test_texts_are_there_where_they_are_asked_for(files, tmp_path):
    folder = train(files, tmp_path / "run", "--keep-text", "--no-baselines", "--no-report")
    assert holding(folder, SECRET.replace("47", "49")) == {"predictions.tsv"}


def test_the_page_alone_holds_sentences_and_what_is_shared_leaves_it_out(files, tmp_path):
    folder = train(files, tmp_path / "run", "--no-baselines")
    for text in (SECRET, SECRET.replace("47", "49")):
        assert holding(folder, text) == {"report.html"}
    said = call_main("export", folder, "--format", "folder", "--out", tmp_path / "shared")
    assert said.code == 0, said.err
    assert not holding(tmp_path / "shared", SECRET)
    from superconext.export.hub import FETCHED, REPORTS

    assert not any(fnmatch.fnmatch("report.html", one) for one in (*FETCHED, *REPORTS))


def test_words_enter_the_run_and_can_be_left_out(files, tmp_path):
    folder = train(files, tmp_path / "run", "--no-baselines")
    assert holding(folder, "benkirane") >= {"vocabulary.json"}
    for form, out in (("folder", "small"), ("folder", "smaller")):
        said = call_main(
            "export", folder, "--format", form, "--vocabulary-min-count", 2,
            "--out", tmp_path / out, "--json",
        )  # fmt: skip
        assert said.code == 0, said.err
        assert json.loads(said.out)["words_left_out"] >= len(WORDS)
    said = call_main(
        "export", folder, "--format", "static", "--train", files[0], "--vocabulary-min-count", 2,
        "--out", tmp_path / "static",
    )  # fmt: skip
    assert said.code == 2 and "a static student learns from all words" in said.err
    for word in WORDS:
        assert not holding(tmp_path / "small", word)
    # N-grams of the rare words alone are gone as well.
    known = json.loads((tmp_path / "small" / "vocabulary.json").read_text(encoding="utf-8"))
    assert "zwin" in known["vocabulary"]["tokens"] and "benki" not in known["ngrams"]["ngrams"]
    assert known["reserve"]["words"] == []
    said = call_main("predict", tmp_path / "small", files[2])
    assert said.code == 0 and said.out.count("\n") == 9


def test_what_min_count_keeps_out_in_training(files, tmp_path):
    folder = train(files, tmp_path / "run", "--no-baselines", "--min-count", 2)
    known = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    assert not set(WORDS) & set(known["vocabulary"]["tokens"])


def test_a_run_with_tfidf_is_not_said_to_be_free_of_rare_words(finished, tmp_path):
    said = call_main("export", finished, "--vocabulary-min-count", 2, "--out", tmp_path / "small")
    assert said.code == 1 and "TF-IDF" in said.err and not (tmp_path / "small").exists()
