"""Folders of data sets: what is written reads back, and nothing half made stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import DataError
from superconext.core.files import file_sha256, tsv_cell
from superconext.data import FORMS
from superconext.data.reading import read_labelled
from superconext.data.splits import check_folder, write_folder

ROWS = [("pos", "zwin bzaf"), ("neg", 'had "lfilm", khayb'), ("pos", "شكرا\tlik\nkhoya")]
words = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=8)
cells = st.lists(words, min_size=1, max_size=4).map(" ".join)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_written_reads_back(tmp_path, form):
    document = write_folder(tmp_path / "a" / "set", {"train": ROWS}, {"seed": 1}, form)
    path = tmp_path / "a" / "set" / f"train.{form}"
    corpus = read_labelled(path)
    texts = [tsv_cell(text) if form == "tsv" else text for _, text in ROWS]
    assert corpus.texts == texts and corpus.labels == [label for label, _ in ROWS]
    record = json.loads((path.parent / "dataset.json").read_text("utf-8"))
    assert record == document and record["seed"] == 1
    assert record["files"][path.name] == {
        "rows": 3,
        "classes": {"neg": 1, "pos": 2},
        "sha256": file_sha256(path),
    }
    assert sorted(p.name for p in (tmp_path / "a").iterdir()) == ["set"]


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=5), st.sampled_from(FORMS))
@settings(deadline=None, max_examples=40)
def test_any_text_reads_back(tmp_path_factory, rows, form):
    out = tmp_path_factory.mktemp("any") / "set"
    write_folder(out, {"train": rows}, {}, form)
    corpus = read_labelled(out / f"train.{form}")
    assert list(zip(corpus.labels, corpus.texts, strict=True)) == rows


def test_only_a_data_set_is_replaced_and_only_when_asked(tmp_path):
    out = tmp_path / "set"
    write_folder(out, {"train": ROWS}, {})
    with pytest.raises(DataError, match=r"exists already.*--force"):
        write_folder(out, {"train": ROWS[:1]}, {})
    write_folder(out, {"test": ROWS[:1]}, {}, force=True)
    assert sorted(p.name for p in out.iterdir()) == ["dataset.json", "test.tsv"]
    other = tmp_path / "photos"
    other.mkdir()
    assert check_folder(other, True) == other  # empty
    (other / "me.jpg").write_text("x")
    with pytest.raises(DataError, match=r"no folder of a data set"):
        check_folder(other, True)
    with pytest.raises(DataError, match=r"no folder of a data set"):
        check_folder(other / "me.jpg", True)
    with pytest.raises(DataError, match=r"names no new folder"):
        check_folder("..")


def test_an_earlier_set_stays_when_the_new_one_fails(tmp_path):
    out = tmp_path / "set"
    write_folder(out, {"train": ROWS}, {})

    def broken():
        yield ROWS[0]
        raise DataError("the line broke")

    with pytest.raises(DataError, match=r"the line broke"):
        write_folder(out, {"train": broken()}, {}, force=True)
    with pytest.raises(DataError, match=r"test.tsv: found no rows"):
        write_folder(out, {"train": ROWS, "test": []}, {}, force=True)
    assert len(read_labelled(out / "train.tsv")) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["set"]
