"""Leakage is found, said, and taken out when asked."""

import pytest

from superconext.core.errors import DataError
from tests.cli.conftest import write_table
from tests.experiments.conftest import Heard, read_pools

TRAIN = [("a", "x1"), ("b", "x2"), ("a", "x3"), ("b", "x4"), ("a", "x1"), ("b", "d1"), ("a", "t1")]
DEV = [("a", "d1"), ("b", "d2"), ("a", "t1")]
TEST = [("a", "t1"), ("b", "t2"), ("b", "t2"), ("c", "t3")]


@pytest.fixture
def files(tmp_path):
    parts = {"train": TRAIN, "dev": DEV, "test": TEST}
    return {n: str(write_table(tmp_path / f"{n}.tsv", part)) for n, part in parts.items()}


def test_every_kind_of_trouble_is_said(files):
    heard = Heard()
    pools = read_pools(files, "given", progress=heard)
    said = "\n".join(heard.lines)
    assert "LEAKAGE: 1 of 4 test texts are in train" in said
    assert "LEAKAGE: 2 of 3 dev texts are in train" in said
    assert "LEAKAGE: 1 of 4 test texts are in dev" in said
    assert "DUPLICATES: 1 of 7 rows of train" in said and "DUPLICATES: 1 of 4 rows of test" in said
    assert "CONFLICTS: 1 text with more than one label" in said
    assert "UNKNOWN LABELS" in said and "c" in said
    assert all(line.startswith("warning: ") for line in heard.lines)
    assert len(pools.findings) == len(heard.lines) == 7
    assert pools.rows["train"] == ([text for _, text in TRAIN], [label for label, _ in TRAIN])
    assert pools.labels == ["a", "b", "c"]
    assert pools.files["train"]["rows"] == 7 and len(pools.files["test"]["sha256"]) == 64


def test_a_test_file_of_unknown_labels_alone_is_refused(files, tmp_path):
    files["test"] = str(write_table(tmp_path / "test.tsv", [("A", "t1"), ("B", "t2")]))
    with pytest.raises(
        DataError, match=r"labels 'A', 'B', of which training sees none.*fold-label"
    ):
        read_pools(files, "given", progress=Heard())


def test_copies_are_removed_within_and_across(files):
    heard = Heard()
    pools = read_pools(files, "given", copies=True, progress=heard)
    assert pools.rows["train"][0] == ["x1", "x2", "x3", "x4"]
    assert pools.rows["dev"][0] == ["d1", "d2"]
    assert pools.rows["test"][0] == ["t1", "t2", "t3"]
    assert not any("LEAKAGE" in line or "DUPLICATES" in line for line in heard.lines)
    assert (
        "note: 2 rows of train with a text that is also in dev or test: removed from train"
        in heard.lines
    )
    assert any("1 row of test repeated" in line for line in pools.findings)


def test_case_mentions_and_addresses_make_no_new_text(tmp_path):
    parts = {
        "train": [("a", "Film ZWIN @ali"), ("b", "khayb"), ("a", "bnin"), ("b", "ghali bzaf")],
        "test": [("a", "film zwin @omar"), ("b", "Khayb"), ("b", "jdid")],
    }
    files = {n: str(write_table(tmp_path / f"{n}.tsv", part)) for n, part in parts.items()}
    heard = Heard()
    read_pools(files, "dev", progress=heard)
    assert any("LEAKAGE: 2 of 3 test texts are in train" in line for line in heard.lines)
    pools = read_pools(files, "dev", copies=True, progress=Heard())
    assert pools.rows["train"][0] == ["bnin", "ghali bzaf"] and len(pools.rows["test"][0]) == 3


def test_a_text_with_several_labels_keeps_the_most_common_one(tmp_path):
    parts = {
        "train": [("b", "zwin"), ("a", "zwin"), ("a", "zwin"), ("b", "khayb"), ("b", "khayb")],
        "test": [("a", "bnin"), ("b", "ghali"), ("a", "ghali"), ("b", "bnin"), ("b", "bnin")],
    }
    files = {n: str(write_table(tmp_path / f"{n}.tsv", part)) for n, part in parts.items()}
    pools = read_pools(files, "dev", copies=True, progress=Heard())
    assert pools.rows["train"] == (["zwin", "khayb"], ["a", "b"])
    assert pools.rows["test"] == (["bnin", "ghali"], ["b", "b"])
    several = "with several labels had the most common one"
    assert f"3 rows of train repeated a text: removed; 1 text {several}" in pools.findings
    assert f"3 rows of test repeated a text: removed; 2 texts {several}" in pools.findings


def test_resampling_pools_the_rows_of_all_files(files):
    del files["test"]
    pools = read_pools(files, "resampled", progress=Heard())
    assert pools.rows["all"] == tuple(
        map(list, zip(*((t, l) for l, t in TRAIN + DEV), strict=True))
    )
    assert not any("LEAKAGE" in line for line in pools.findings)
    assert any("DUPLICATES: 3 of 10 rows repeat" in line for line in pools.findings)
    clean = read_pools(files, "resampled", copies=True, progress=Heard())
    assert clean.rows["all"][0] == ["x1", "x2", "x3", "x4", "d1", "t1", "d2"]
    assert set(clean.files) == {"train", "dev"}


def test_the_hash_is_of_the_rows(files, tmp_path):
    before = read_pools(files, "given", progress=Heard()).sha256
    assert read_pools(files, "given", progress=Heard()).sha256 == before
    path = tmp_path / "test.tsv"
    path.write_text(path.read_text(encoding="utf-8").replace("t2", "t4"), encoding="utf-8")
    after = read_pools(files, "given", progress=Heard()).sha256
    assert after["train"] == before["train"] and after["test"] != before["test"]


def test_standard_input_and_untrainable_files_are_refused(files, tmp_path):
    with pytest.raises(DataError, match="standard input for train"):
        read_pools({"train": "-"}, "resampled")
    (tmp_path / "one.tsv").write_text("label\ttext\na\tb\na\tc\n", encoding="utf-8")
    with pytest.raises(DataError, match="one class only"):
        read_pools({**files, "train": str(tmp_path / "one.tsv")}, "given", progress=Heard())


def test_files_of_several_annotators_are_pooled_without_their_shares(tmp_path):
    files = {}
    for name in ("train", "test"):
        rows = [f"{name} {k}\t{'ab'[k % 2]}\t{'ab'[k % 2]}\t{'ba'[k % 2]}" for k in range(6)]
        content = "\n".join(["text\tannotator_1\tannotator_2\tannotator_3", *rows, rows[0], ""])
        (tmp_path / f"{name}.tsv").write_text(content, encoding="utf-8")
        files[name] = str(tmp_path / f"{name}.tsv")
    pools = read_pools(files, "resampled", copies=True, progress=Heard())
    assert pools.rows["all"][0] == [f"{name} {k}" for name in files for k in range(6)]
