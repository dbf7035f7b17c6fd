"""Sentences of text files."""

from __future__ import annotations

import gzip

import pytest

from superconext.core.errors import DataError
from superconext.vectors.text_corpus import Lines


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
