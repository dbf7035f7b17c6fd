"""Sentences of text files."""

from __future__ import annotations

import gc
import gzip
import os
import shlex
import warnings

import pytest

from superconext import SuperConTextClassifier
from superconext.core.errors import DataError
from superconext.data.plain_text import TextDoubts, rows_in
from superconext.vectors.text_corpus import Lines, _lines
from tests.cli.conftest import blame, call_main


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
    gc.collect()  # of other tests
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
    text = "شكك bc\ndef ab c\ncde€€€".encode()
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    pieces = ["شك", "ك ", "bc", "def ", "ab c", "cde", "€", "€", "€"]
    assert [piece.decode() for piece in _lines(chunks)] == pieces


def test_a_line_longer_than_a_piece_is_utf_8_all_the_same(tmp_path):
    word = "كلب" * 10
    (tmp_path / "long.txt").write_text(f"x {f'{word} ' * 60_000}\n", encoding="utf-8")
    lines = Lines([tmp_path / "long.txt"])
    assert {token for line in lines for token in line.split()} == {"x", word}
    assert lines.notes == []


@pytest.mark.parametrize("text", ["zwin bzaf had lfilm", "zwin bzaf " * 60])
def test_a_text_in_place_of_a_file_is_told_as_one(text):
    model = SuperConTextClassifier(unlabelled=[text], vector_dimension=4)
    with pytest.raises(DataError, match="expected paths of text files, not sentences: write"):
        model.fit(["zwin", "khayb"] * 4, ["good", "bad"] * 4)


@pytest.mark.skipif(os.name == "nt", reason="no named pipes")
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="found a pipe or device, which can be read once alone"):
        list(Lines([tmp_path / "pipe"]))
    model = SuperConTextClassifier(unlabelled=[tmp_path / "pipe"], vector_dimension=4)
    with pytest.raises(DataError, match="found a pipe or device, which can be read once alone"):
        model.fit(["zwin", "khayb"] * 4, ["good", "bad"] * 4)


@pytest.mark.parametrize("name", ["zwin.txt", "mes avis.txt"])
def test_the_path_of_no_file_is_told_as_one(tmp_path, name):
    model = SuperConTextClassifier(unlabelled=[tmp_path / name], vector_dimension=4)
    with pytest.raises(DataError, match=f"{name}: no such file"):
        model.fit(["zwin", "khayb"] * 4, ["good", "bad"] * 4)
    (tmp_path / name).mkdir()
    with pytest.raises(DataError, match=r"is a folder.*superconext data pool"):
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
    pool = call_main("data", "pool", path, "--out", tmp_path / "pool.txt")
    inspected = call_main("data", "inspect", train, "--unlabelled", path)
    for done in (pool, inspected):
        assert done.code == 0
        assert f"warning: {path}: 4 of 204 lines look garbled" in done.err
    path.write_text("\n".join(sound + bad[:1]) + "\n", encoding="utf-8")
    lines = Lines([path])
    assert len(list(lines)) == 201 and not lines.notes


def test_what_is_odd_about_a_text_is_told_again_where_its_vectors_are_in_the_cache(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "posts.txt"
    lines = ["هاد الفيلم زوين بزاف"] * 200 + [
        "الماكلة بنينة".encode().decode("cp1252", "ignore")
    ] * 4
    path.write_text("\ufeff" + "\n".join(lines) + "\n", encoding="utf-16-le")
    train = tmp_path / "train.tsv"
    rows = "".join(f"zwin {n}\tgood\nkhayb {n}\tbad\n" for n in range(8))
    train.write_text("text\tlabel\n" + rows, encoding="utf-8")
    vectors = ("vectors", "train", path, "--dimension", 4, "--normalize", "none")
    pretrain = ("pretrain", path, "--hidden-size", 2)
    run = ("train", train, "--unlabelled", path, "--preset", "fast", "--vector-dimension", 4)
    run += ("--hidden-size", 2, "--epochs", 1)
    for number, words in enumerate((vectors, pretrain, run)):
        for again in "ab":
            done = call_main(*words, "--out", tmp_path / f"{again}{number}")
            assert done.code == 0, done.err
            assert done.err.count(f"{path}: read as utf-16") == 1
            assert done.err.count(f"warning: {path}: 4 of 204 lines look garbled") == 1


NAMED = ["id;date;commentaire"]
POSTS = [f"had {word} zwin bzaf, w {word} mzyan" for word in ("lfilm", "lmakla", "lbousta")] * 10
POSTS += [f"{text} {n}" for n, text in enumerate(POSTS * 3)]
TABLES = {
    "a header": (NAMED + [f"{n};2024-05-01;{text}" for n, text in enumerate(POSTS)], ".csv"),
    "numbers": ([f"2024-05-0{n % 9 + 1}\t{text}" for n, text in enumerate(POSTS)], ".tsv"),
    "labels": ([f"{('good', 'bad')[n % 2]}|{text}" for n, text in enumerate(POSTS)], ".csv"),
    "quotes": (["id,text,x"] + [f'{n},"{text}",' for n, text in enumerate(POSTS)], ".csv"),
    "marks in texts": (NAMED + [f"{n};;{text};{text}" for n, text in enumerate(POSTS)], ".csv"),
    "texts": ([f"{text};{text} bzaf" for text in POSTS], ".csv"),
    "dates": ([f"2024-05-01 10:20,@user{n},{text}" for n, text in enumerate(POSTS)], ".csv"),
    "objects": ([f'{{"id": {n}, "text": "{text}"}}' for n, text in enumerate(POSTS)], ".jsonl"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_that_is_named_plain_text_is_warned_of(tmp_path, kind):
    lines, suffix = TABLES[kind]
    path = tmp_path / "new.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = Lines([path])
    assert len(list(text)) == len(lines)
    (note,) = text.notes
    assert note.startswith(f"warning: {path}: the lines look like ")
    assert f"name the file {suffix}, and its column of texts alone is read" in note


def test_every_command_that_learns_from_a_text_warns_of_a_table(tmp_path):
    path, train = tmp_path / "new.txt", tmp_path / "train.tsv"
    path.write_text("\n".join(TABLES["a header"][0]) + "\n", encoding="utf-8")
    rows = "".join(f"zwin {n}\tgood\nkhayb {n}\tbad\n" for n in range(8))
    train.write_text("text\tlabel\n" + rows, encoding="utf-8")
    run = ("train", train, "--unlabelled", path, "--preset", "fast", "--vector-dimension", 4)
    for number, words in enumerate(
        (
            ("vectors", "train", path, "--dimension", 4),
            ("pretrain", path, "--hidden-size", 2),
            ("data", "pool", path),
            (*run, "--hidden-size", 2, "--epochs", 1),
        )
    ):
        done = call_main(*words, "--out", tmp_path / str(number))
        assert done.code == 0, done.err
        warning = f"warning: {path}: the lines look like rows of a table of 3 columns with ';'"
        assert done.err.count(warning) == 1


PROSE = {
    "commas": [f"{text}, w ana, w nta, kamlin" for text in POSTS],
    "semicolons": [text + "; bzaf" * (n % 9 > 0) for n, text in enumerate(POSTS)],
    "a comma": [f"zwin, {text.replace(',', '')}" for text in POSTS],
    "numbers": [f"{n} {text}" for n, text in enumerate(POSTS)],
    "a usual name first": ["commentaire", *POSTS],
    "few lines": [f"1;{text}" for text in POSTS[:4]],
    "stray marks": [f'"{text}", "\\r{text}, "' for text in POSTS],
    "braces": [f"{{ {text} }}" for text in POSTS],
}


@pytest.mark.parametrize("kind", PROSE)
def test_sentences_with_marks_are_no_table(tmp_path, kind):
    path = tmp_path / "posts.txt"
    path.write_text("\n".join(PROSE[kind]) + "\n", encoding="utf-8")
    lines = Lines([path])
    assert len(list(lines)) == len(PROSE[kind]) and not lines.notes


def test_text_in_another_encoding_is_saved_again_by_the_command_that_is_named(tmp_path):
    path, train = tmp_path / "mes posts.txt", tmp_path / "train.tsv"
    path.write_bytes(
        "\n".join("خدمة ممتازة " + letter * 9 for letter in "ابتثجحخد").encode("cp1256")
    )
    rows = "".join(f"zwin {n}\tgood\nkhayb {n}\tbad\n" for n in range(8))
    train.write_text("text\tlabel\n" + rows, encoding="utf-8")
    words = ("train", train, "--unlabelled", path, "--preset", "fast", "--encoding", "cp1256")
    line = blame(call_main(*words, "--out", tmp_path / "run"))
    assert "--encoding is for labelled files, but superconext data pool" in line
    command = line.partition("superconext ")[2].partition(" saves")[0]
    *pool, out = shlex.split(command)
    assert call_main(*pool, tmp_path / out).code == 0
    assert len(list(Lines([tmp_path / out]))) == 8


def test_how_many_lines_and_cells_tell_a_table():
    dated = [f"{n};2024-05-01;zwin bzaf" for n in range(5)]
    assert rows_in(dated) and rows_in(dated[:4]) is None
    pairs = [f"{n},zwin bzaf" for n in range(40)]
    assert rows_in(pairs) is None, "a number and a comma"
    assert rows_in(["id,text", *pairs]) and rows_in([f"{pair},{pair}" for pair in pairs])
    numbers = " 0.5" * 9
    assert rows_in([f"zwin{numbers}"] * 20) is None
    assert rows_in([f"zwin{numbers} -1e-3"] * 20) == ("word vectors", "")
    two, three = ([f"{text}{'; bzaf' * n}" for text in POSTS[:19]] for n in (1, 2))
    assert rows_in(two) and rows_in([*two, "zwin"]) is None, "one mark is on every line"
    assert rows_in([*three, "zwin"]) and rows_in([*three, "zwin", "mzyan", "top"]) is None
    labels = [f"word{n % 3};had zwin bzaf {text}" for n, text in enumerate(POSTS)]
    assert rows_in(labels, alike="")
    assert rows_in([f"word{n}{line}" for n, line in enumerate(labels)], alike="") is None


def test_one_garbled_line_of_few_is_not_told():
    bad = "الماكلة بنينة".encode().decode("cp1252", "ignore")
    for garbled, told in ((1, 0), (2, 1)):
        doubts = TextDoubts()
        for line in ["هاد الفيلم زوين بزاف"] * 20 + [bad] * garbled:
            doubts.add(line)
        assert len(doubts.garbled()) == told


def test_lines_may_end_in_a_lone_carriage_return(tmp_path):
    """As a labelled file's may, which is left out of them."""
    for name, end in (("old", "\r"), ("new", "\n"), ("both", "\r\n")):
        (tmp_path / name).write_bytes(end.join(["salam bzaf", "fin kayn", ""]).encode())
        assert list(map(str.strip, Lines([tmp_path / name]))) == ["salam bzaf", "fin kayn"]
