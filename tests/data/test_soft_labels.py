"""Shares of annotators and of files: drawn from, made targets, and read row by row."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import pytest

from superconext.core.errors import ConfigError, DataError
from superconext.data.auxiliary import drawn_labels, share_matrix, soft_rows, targets
from superconext.data.reading import read_labelled
from superconext.text.normalize import Normalizer
from superconext.text.tokenize import Tokenizer

TOKENIZER = Tokenizer(Normalizer("none"))


def read(path, classes=("n", "p"), ties=(), held=()):
    return soft_rows(str(path), ties, TOKENIZER, classes, held)


def test_labels_are_drawn_as_often_as_their_shares_say():
    shares = np.tile([0.5, 0.0, 0.2, 0.3, 0.0], (20_000, 1))
    drawn = drawn_labels(shares, np.random.default_rng(0))
    assert np.bincount(drawn, minlength=5) / 20_000 == pytest.approx(shares[0], abs=0.02)
    assert set(drawn) == {0, 2, 3}
    certain = np.eye(4)[[0, 3, 1, 2] * 50]
    assert np.array_equal(drawn_labels(certain, np.random.default_rng(1)), [0, 3, 1, 2] * 50)


def test_votes_for_what_is_no_class_count_for_nothing():
    shares = [{"p": 0.5, "x": 0.25, "n": 0.25}, {"x": 1.0}]
    assert np.allclose(share_matrix(shares, ["n", "p"]), [[1 / 3, 2 / 3], [0, 0]])


def test_targets_of_one_class_each_are_no_shares():
    labels = np.array([0, 1, 1])
    assert targets(labels, np.eye(2)[labels], None, 2) is None
    every = targets(labels, np.array([[0.5, 0.5]]), None, 2)
    assert np.array_equal(every, [[0.5, 0.5], [0, 1], [0, 1]])


FILES = {
    "a.tsv": "label\tn\tp\ttext\nn\t0.7001\t0.3\tun a\np\t0\t1\tun b\n",
    "b.csv": 'p,text,n,more\n0.2999,"un a",0.7,x\n1,un b,0,y\n',
    "c.jsonl": '{"text": "un a", "n": 0.7, "p": "0.3"}\n'
    '{"p": 1, "n": 0, "tweet": 1, "text": "un b"}',
    "d.json": '[{"line": 1, "label": "n", "probabilities": {"n": 0.7, "p": 0.3}, "text": "un a"}, '
    '{"text": "", "label": null, "probabilities": null}, {"text": null, "probabilities": null}, '
    '{"text": "un b", "probabilities": {"p": 1.0, "n": 0.0}}]',
    "e.tsv": "text\tp\tn\nun a\t0.3\t0.7\n\t\t\n\nun b\t1\t0\n",
}


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_of_probabilities(tmp_path, name):
    (tmp_path / name).write_text(FILES[name], encoding="utf-8")
    rows = read(tmp_path / name)
    assert rows.tokens == [["un", "a"], ["un", "b"]]
    assert rows.shares == pytest.approx(np.array([[0.7, 0.3], [0, 1]]), abs=1e-3)
    assert rows.shares.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert rows.facts["rows"] == 2 and rows.facts["file"] == name


@pytest.mark.parametrize("classes", [["ne\u0301", "p"], ["n\xe9", "p"]])
@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("name", sorted(FILES))
def test_names_of_classes_are_known_in_either_unicode_form(tmp_path, name, form, classes):
    content = re.sub(r"\bn\b", unicodedata.normalize(form, "né"), FILES[name])
    (tmp_path / name).write_text(content, encoding="utf-8")
    rows = read(tmp_path / name, classes)
    assert rows.shares == pytest.approx(np.array([[0.7, 0.3], [0, 1]]), abs=1e-3)


WRONG = {
    "too little": ("text\tn\tp\nun a\t0.3\t0.3\n", "line 2: found shares of 'n', 'p' that sum"),
    "another class": ("text\tn\tp\tx\nun a\t0.3\t0.3\t0.4\n", "that sum to 0.6"),
    "no such class": ("text\tn\tq\nun a\t0.5\t0.5\n", "found 0 columns 'p' among"),
    "a class twice": ("text\tn\tp\tp\nun a\t0.5\t0.5\t0\n", "found 2 columns 'p'"),
    "negative": ("text\tn\tp\nun a\t0\t1\nun b\t-0.5\t1.5\n", "line 3: found '-0.5'"),
    "NaN": ("text\tn\tp\nun a\tnan\t1\n", "line 2: found 'nan'"),
    "a word": ("text\tn\tp\nun a\thigh\t1\n", "found 'high'"),
    "a gap": ("text\tn\tp\nun a\t\t1\n", "found ''"),
    "no text": ("text\tn\tp\n\t0\t1\n", "line 2: found an empty text"),
    "short": ("text\tn\tp\nun a\t1\n", "line 2: found 2 columns"),
}


@pytest.mark.parametrize("name", sorted(WRONG))
def test_files_that_are_wrong(tmp_path, name):
    text, expected = WRONG[name]
    (tmp_path / "x.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(DataError) as refused:
        read(tmp_path / "x.tsv")
    assert expected in str(refused.value)


@pytest.mark.parametrize("row", ['{"text": "un a", "n": NaN, "p": 1}', '{"text": "un a", "p": 1}'])
def test_records_that_are_wrong(tmp_path, row):
    (tmp_path / "x.jsonl").write_text(row + "\n", encoding="utf-8")
    with pytest.raises(DataError, match="line 1"):
        read(tmp_path / "x.jsonl")


def test_what_a_held_text_says_is_left_out(tmp_path):
    (tmp_path / "x.tsv").write_text(FILES["a.tsv"], encoding="utf-8")
    rows = read(tmp_path / "x.tsv", held=["un b !"], ties=[("un b", {"p": 1.0}), ("c", {"q": 1.0})])
    assert rows.tokens == [["un", "a"]] and rows.facts["held"] == 2
    with pytest.raises(ConfigError, match="which all repeat a held-out text"):
        read(tmp_path / "x.tsv", held=["un a", "un b"])


def test_a_tie_with_what_is_no_class_is_not_learned_from_as_the_others():
    ties = [("zwin", {"n": 0.5, "x": 0.5}), ("khayb", {"n": 0.5, "p": 0.5})]
    rows = soft_rows(None, ties, TOKENIZER, ("n", "p"), ())
    assert rows.tokens == [["khayb"]] and rows.shares.tolist() == [[0.5, 0.5]]
    assert soft_rows(None, ties[:1], TOKENIZER, ("n", "p"), ()) is None


def test_labels_that_are_the_majority_of_no_text_are_told(tmp_path):
    lines = [
        "text\tannotator_1\tannotator_2",
        "a\tn\tn",
        "b\tp\tp",
        "c\tn\tx",
        "d\tp\tx",
        "e\tn\tp",
    ]
    path = tmp_path / "votes.tsv"
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    (told,) = [note for note in read_labelled(path).notes if "majority" in note]
    assert "no text has a majority for 'x' (2)" in told
    assert "found no class of it, and 2 ties with it left out" in told
    path.write_text("\n".join([*lines, "f\tx\tx", ""]), encoding="utf-8")
    assert not any("majority" in note for note in read_labelled(path).notes)
