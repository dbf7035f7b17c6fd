"""Sentences of text files."""

from __future__ import annotations

import gc
import gzip
import warnings

import pytest

from superconext import SuperConTextClassifier
from superconext.core.errors import DataError
from superconext.vectors.text_corpus import Lines, _lines
from tests.cli.conftest import call_main


def test_lines_of_plain_and_packed_text_on_every_pass(tmp_path):
    (tmp_path / "a.txt").write_text("one two\u2028x\r\n\nthree\n", encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(b"four \xff\n"))
    lines = Lines([tmp_path / "a.txt", tmp_path / "b.txt.gz"])
    expected = [["one", "two", "x"], ["three"], ["four", "\ufffd"]]
    assert [line.split() for line in lines] == expected == [line.split() for line in lines]
    (note,) = lines.notes
    assert "b.txt.gz: 1 of 1 lines are not UTF-8" in note
    with pytest.raises(DataError, match="nowhere"):
        list(Lines([tmp_path / "nowhere"]))


def test_the_file_of_tokens_is_closed(tmp_path):
    (tmp_path / "a.txt").write_text("zwin bzaf had lfilm\n" * 50, encoding="utf-8")
    words = ("vectors", "train", tmp_path / "a.txt", "--out", tmp_path / "v", "--dimension", 4)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", ResourceWarning)
        assert call_main(*words, "--epochs", 1).code == 0
        gc.collect()
    assert not [str(one.message) for one in found if "unclosed" in str(one.message)]


@pytest.mark.parametrize("size", [1, 3, 7, 1 << 10])
def test_a_long_line_is_read_in_pieces(monkeypatch, size):
    monkeypatch.setattr("superconext.vectors.text_corpus._LONGEST", 4)
    text = b"ab\n\nabcdefghij\nabcd\nabcdef"
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    pieces = [piece for piece in _lines(chunks) if piece]
    assert pieces == [b"ab", b"abcd", b"efgh", b"ij", b"abcd", b"abcd", b"ef"]


@pytest.mark.parametrize("text", ["zwin bzaf had lfilm", "zwin bzaf " * 60])
def test_a_text_in_place_of_a_file_is_told_as_one(text):
    model = SuperConTextClassifier(unlabelled=[text], vector_dimension=4)
    with pytest.raises(DataError, match=r"no such file.*or write the texts into one"):
        model.fit(["zwin", "khayb"] * 4, ["good", "bad"] * 4)


def test_much_text_in_another_encoding_is_not_learned_from(tmp_path):
    path = tmp_path / "posts.txt"
    lines = [f"هذا نص قصير {i}" for i in range(40)]
    path.write_bytes("\n".join(lines).encode("windows-1256"))
    with pytest.raises(DataError, match=r"40 of 40 lines are not UTF-8, expected UTF-8.*1256"):
        list(Lines([path]))
    path.write_bytes("\n".join(lines).encode() + b"\n\xe7\xed\n")
    assert len(list(Lines([path]))) == 41


def test_few_lines_most_of_which_are_no_utf_8_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("خدمة ممتازة\n".encode("windows-1256") * 6 + b"ok\n" * 2)
    with pytest.raises(DataError, match="6 of 8 lines are not UTF-8, expected UTF-8"):
        list(Lines([path]))
    path.write_bytes(b"caf\xe9\n" + b"ok\n" * 7)
    assert len(list(Lines([path]))) == 8


@pytest.mark.parametrize("wrong", ["cp1252", "cp1256"])
def test_text_saved_in_a_wrong_encoding_is_warned_of_wherever_it_is_learned_from(tmp_path, wrong):
    path = tmp_path / "posts.txt"
    sound = ["هاد الفيلم زوين بزاف", "la référence était bonne"] * 100
    bad = ["الماكلة بنينة بزاف".encode().decode(wrong, "ignore")] * 4
    path.write_text("\n".join(sound + bad) + "\n", encoding="utf-8")
    train = tmp_path / "train.tsv"
    rows = "".join(f"zwin {n}\tgood\nkhayb {n}\tbad\n" for n in range(8))
    train.write_text("text\tlabel\n" + rows, encoding="utf-8")
    vectors = ("vectors", "train", path, "--out", tmp_path / "v", "--dimension", 4)
    pretrain = ("pretrain", path, "--out", tmp_path / "p", "--hidden-size", 2)
    run = ("train", train, "--unlabelled", path, "--preset", "fast", "--out", tmp_path / "r")
    run += ("--vector-dimension", 4, "--hidden-size", 2, "--epochs", 1)
    for words, mend in ((vectors, True), (pretrain, True), (run, False)):
        done = call_main(*words)
        assert done.code == 0
        assert f"warning: {path}: 4 of 204 lines look garbled" in done.err
        assert (", or give --fix-text" in done.err) is mend
    path.write_text("\n".join(sound + bad[:1]) + "\n", encoding="utf-8")
    lines = Lines([path])
    assert len(list(lines)) == 201 and not lines.notes
