"""Texts of a file block by block: the same as reading it whole, but for memory and bad lines."""

from __future__ import annotations

import gzip
import io
import json
import sys
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import DataError
from superconext.data import lines
from superconext.data.reading import RowStream, read_texts


def whole(path, column=None):
    try:
        return read_texts(path, column).texts
    except DataError:
        return None


def streamed(path, column=None, on_error="fail"):
    try:
        stream = RowStream(path, column, labelled=False, on_error=on_error)
        return [text for block in stream for text in block.texts]
    except DataError:
        return None


CELL = st.text(st.sampled_from('ab ,\t"\r\u2028عé'), max_size=6)
CELLS = st.lists(st.lists(CELL, min_size=1, max_size=3), min_size=1, max_size=8)


@settings(max_examples=250, deadline=None)
@given(
    table=CELLS,
    suffix=st.sampled_from([".csv", ".tsv", ".txt", ""]),
    header=st.booleans(),
    chunk=st.sampled_from([1, 2, 3, 7, 1 << 18]),
    end=st.sampled_from(["\n", "\r\n"]),
    column=st.sampled_from([None, "text", 1, "2"]),
    quoted=st.booleans(),
)
def test_the_same_texts_as_from_the_whole_file(
    tmp_path_factory, table, suffix, header, chunk, end, column, quoted
):
    path = tmp_path_factory.getbasetemp() / f"some{suffix}"
    if chunk < 100:  # the first chunk decides whether carriage returns end lines
        table = [[cell.replace("\r", "") for cell in row] for row in table]
    separator = "," if suffix == ".csv" else "\t"
    if quoted and suffix == ".csv":
        table = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in table]
    rows = ([separator.join(["text", "label", "more"])] if header else []) + [
        separator.join(row) for row in table
    ]
    path.write_bytes(end.join(rows).encode())
    with pytest.MonkeyPatch.context() as patch:
        expected = whole(path, column)
        patch.setattr(lines, "CHUNK", chunk)
        assert streamed(path, column) == expected


@settings(max_examples=60, deadline=None)
@given(records=st.lists(st.sampled_from(["text", "other", "bad", "list", "blank"]), max_size=9))
def test_json_lines_are_read_alike_and_bad_ones_skipped(tmp_path_factory, records):
    path = tmp_path_factory.getbasetemp() / "some.jsonl"
    kinds = {"bad": '{"text": ', "list": "[1]", "blank": "  ", "other": '{"text": 1.50, "x": 2}'}
    kinds["text"] = json.dumps({"label": "a", "text": "زوين"}, ensure_ascii=False)
    path.write_text("\n".join(kinds[kind] for kind in records), encoding="utf-8")
    assert streamed(path) == whole(path)
    good = [{"text": "زوين", "other": "1.50"}[k] for k in records if k in ("text", "other")]
    assert streamed(path, on_error="skip") == (good or None)


BAD = {
    "tsv": (b"label\ttext\na\tone\nb\ntwo\tcaf\xe9\nb\t \nc\tz\0ero\na\ttwo\tand\nb\tthree\n", 4),
    "csv": (b'text,label\n"one",a\n"tw"o,b\n\xff,c\n"open,a\nthree,b\n', 3),
    "jsonl": (b'{"text": "one"}\nnonsense\n{"text": null}\n{"txt": 1}\n{"text": "three"}\n', 2),
    "txt": (b"one\n\xff\xfe\n\0\nthree\n", 2),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_lines_end_the_reading_or_are_counted(tmp_path, kind):
    content, bad = BAD[kind]
    path = tmp_path / f"some.{kind}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"line \d"):
        list(RowStream(path, labelled=False))
    stream = RowStream(path, labelled=False, on_error="skip")
    assert [text for block in stream for text in block.texts] == ["one", "three"]
    assert (stream.read, stream.skipped) == (2, bad)
    assert len(stream.problems) == min(bad, 5) and all("line " in told for told in stream.problems)
    empty = {"tsv": 5, "jsonl": 3}
    told = f"found an empty text (line {empty.get(kind)}), left out"
    assert (told in stream.notes) is (kind in empty)


def test_a_first_line_that_is_bad_is_skipped_as_any_other(tmp_path):
    path = tmp_path / "some.jsonl"
    path.write_bytes(b'\xff\n{"x": 1}\n{"text": "one"}\n')
    assert streamed(path, on_error="skip") == ["one"]


def test_what_is_wrong_with_the_whole_file_is_never_skipped(tmp_path):
    path = tmp_path / "some.tsv"
    for content, message in [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"label\ttext\n", "a header and no rows"),
        (b"id\tphrases lues\tscore\n1\ta b\t2\n", "expected a column named 'text'"),
        ("text\nab\n".encode("utf-16")[:-1], "utf-16"),
        (b"\x1f\x8b\x08broken", "broken gzip"),
        (b"text\n\xff\n\xfe\n", "none of 2 lines can be used"),
    ]:
        path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            list(RowStream(path, labelled=False, on_error="skip"))
    with pytest.raises(DataError, match="no such file"):
        list(RowStream(tmp_path / "none.tsv", labelled=False, on_error="skip"))
    with pytest.raises(DataError, match="directory"):
        list(RowStream(tmp_path, labelled=False, on_error="skip"))


def test_notes_say_what_read_texts_says(tmp_path):
    path = tmp_path / "some.txt"
    path.write_text("one\n\n\ntwo\tand\n\n", encoding="utf-8")
    stream = RowStream(path, labelled=False)
    list(stream)
    assert sorted(stream.notes) == sorted(read_texts(path).notes)


def test_gzip_also_several_in_one_and_byte_order_marks(tmp_path):
    path = tmp_path / "some.tsv.gz"
    content = "\ufefflabel\ttext\na\tone\n".encode()
    path.write_bytes(gzip.compress(content) + gzip.compress(b"b\ttwo\n"))
    assert streamed(path) == ["one", "two"] == whole(path)
    path.write_bytes(gzip.compress(content * 1000)[:-20])
    with pytest.raises(DataError, match="broken gzip"):
        list(RowStream(path, labelled=False))


def test_lines_end_as_they_do_in_the_whole_file(tmp_path):
    path = tmp_path / "some.txt"
    for content in (b"a\rb\rc", b"a\r\nb\rc\n", b"a\nb\r\r\nc", b"a\rb\r"):
        path.write_bytes(content)
        assert streamed(path) == whole(path), content


def test_parquet_in_batches(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "some.parquet"
    texts = [f"text {i}" for i in range(10_000)]
    parquet.write_table(arrow.table({"text": texts, "n": list(range(10_000))}), path)
    stream = RowStream(path, labelled=False)
    blocks = list(stream)
    assert len(blocks) > 1 and [text for block in blocks for text in block.texts] == texts
    parquet.write_table(arrow.table({"text": ["a", None, "b"]}), path)
    assert streamed(path) == ["a", "b"]
    predicted = RowStream(path, labelled=False, every_row=True)
    assert [text for block in predicted for text in block.texts] == ["a", "", "b"]


class SlowPipe(io.RawIOBase):
    """Gives one line at a time, as a pipe does that somebody types into."""

    def __init__(self, told):
        self.told = [b"one\n", b"two\n", b"thr", b"ee\n"]
        self.asked = told

    def read1(self, size):
        self.asked.append(len(self.told))
        return self.told.pop(0) if self.told else b""

    def readable(self):
        return True


def test_a_slow_pipe_is_answered_line_by_line(monkeypatch):
    asked: list[int] = []
    monkeypatch.setattr(sys, "stdin", type("Stdin", (), {"buffer": SlowPipe(asked)}))
    seen = []
    for block in RowStream("-", labelled=False):
        seen.append((block.texts, len(asked)))
    assert [block for block, _ in seen] == [["one"], ["two"], ["three"]]
    assert [reads for _, reads in seen] == [1, 2, 4], "before more is waited for"


@pytest.mark.parametrize("suffix", [".txt", ".tsv", ".csv", ".jsonl", ".txt.gz"])
def test_memory_does_not_grow_with_the_file(tmp_path, suffix):
    def peak(count: int) -> int:
        path: Path = tmp_path / f"{count}{suffix}"
        rows = (f"zwin bzaf had film {i}" for i in range(count))
        if suffix == ".jsonl":
            rows = (json.dumps({"text": row}) for row in rows)
        elif suffix in (".tsv", ".csv"):
            rows = (row for part in (["text"], rows) for row in part)
        content = "\n".join(rows).encode()
        path.write_bytes(gzip.compress(content, 1) if suffix.endswith("gz") else content)
        tracemalloc.start()
        total = sum(len(block) for block in RowStream(path, labelled=False))
        _, highest = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert total == count
        return highest

    # One chunk is a quarter of a megabyte: 20,000 rows are several of them.
    assert peak(60_000) < 1.3 * peak(30_000) and peak(30_000) < 12e6


def test_a_line_without_end_is_bad_and_not_held(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "LONGEST", 1000)
    monkeypatch.setattr(lines, "CHUNK", 100)
    path = tmp_path / "some.txt"
    path.write_bytes(b"one\n" + b"x" * 5000 + b"\ntwo\n" + b"y" * 1001)
    assert streamed(path, on_error="skip") == ["one", "two"]
    with pytest.raises(DataError, match="line 2: longer than"):
        list(RowStream(path, labelled=False))


def test_an_open_quote_takes_only_its_own_line_along(tmp_path):
    path = tmp_path / "some.csv"
    path.write_text('text,label\none,a\n"open,b\n' + "two,a\n" * 2500 + '"x\ny",b\n')
    stream = RowStream(path, labelled=False, on_error="skip")
    texts = [text for block in stream for text in block.texts]
    # The quote closes only at the next one, 2,500 lines on: too far to be a cell.
    assert texts == ["one", *["two"] * 2500, "x\ny"] and stream.skipped == 1
