"""Near-duplicates are found, said, and taken out where asked; large files are looked at in part."""

import pytest

from superconext.experiments import row_sources
from tests.cli.conftest import write_table
from tests.experiments.conftest import Heard, read_pools

LONG = "this film was {} and the acting of the whole cast carried it through two long hours"
TRAIN = [("a", LONG.format("good")), ("b", "a dull evening in a cold hall"), ("a", "x y z one")]
TRAIN += [("b", "nothing like the others at all"), ("b", LONG.format("awful!"))]
TRAIN += [("a", "seven green bottles stood there")]
TEST = [("a", LONG.format("great")), ("b", LONG.format("bad")), ("a", "quite another sentence")]


@pytest.fixture
def files(tmp_path):
    parts = {"train": TRAIN, "test": TEST}
    return {n: str(write_table(tmp_path / f"{n}.tsv", part)) for n, part in parts.items()}


def test_test_rows_that_resemble_training_rows_are_said_and_left(files):
    heard = Heard()
    pools = read_pools(files, "dev", progress=heard)
    (said,) = heard.lines
    assert said.startswith("warning: NEAR-DUPLICATES: 2 of 3 test rows resemble a text of train")
    assert said.endswith("add --deduplicate-near to remove them")
    assert len(pools.rows["train"][0]) == 6 and len(pools.rows["test"][0]) == 3
    assert "--deduplicate" not in pools.findings[0]


def test_copies_removal_leaves_them_and_the_other_takes_them_from_train(files):
    pools = read_pools(files, "dev", copies=True, progress=Heard())
    assert len(pools.rows["train"][0]) == 6
    heard = Heard()
    pools = read_pools(files, "dev", near=True, progress=heard)
    assert pools.rows["train"][0] == [text for _, text in (*TRAIN[1:4], TRAIN[5])]
    assert len(pools.rows["test"][0]) == 3
    assert [line for line in pools.findings if "2 rows of train resembled test" in line]
    assert not any("NEAR" in line for line in heard.lines)


def test_of_a_pool_the_first_of_a_group_stays(files):
    heard = Heard()
    read_pools(files, "resampled", progress=heard)
    assert any("3 of 9 rows resemble an earlier one" in line for line in heard.lines)
    pools = read_pools(files, "resampled", near=True, progress=Heard())
    assert pools.rows["all"][0] == [*(t for _, t in TRAIN[:4]), TRAIN[5][1], TEST[2][1]]


def test_of_copies_the_one_that_stays_has_the_most_common_label(tmp_path):
    near = LONG.format("great")
    rows = [("a", LONG.format("good")), ("b", LONG.format("good")), ("b", LONG.format("good"))]
    rows += [("a", near), ("a", near), ("a", near), ("a", "another"), ("b", "a fourth sentence")]
    files = {"train": str(write_table(tmp_path / "all.tsv", rows))}
    texts, labels = read_pools(files, "resampled", near=True, progress=Heard()).rows["all"]
    assert texts == [LONG.format("good"), "another", "a fourth sentence"]
    assert labels == ["b", "a", "b"]


def test_large_files_are_looked_at_in_part_and_that_is_said(files, monkeypatch):
    monkeypatch.setattr(row_sources, "BUDGET", 100)
    heard = Heard()
    read_pools(files, "dev", progress=heard)
    assert any("of the rows" in line and "NEAR-DUPLICATES" in line for line in heard.lines)
    heard = Heard()
    read_pools(files, "dev", look=False, progress=heard)
    assert not heard.lines


def test_a_subsample_is_stratified_stated_and_the_same_again(tmp_path):
    rows = [f"{'ab'[k % 3 == 0]}\tword{k} other{k * 7}" for k in range(300)]
    path = tmp_path / "all.tsv"
    path.write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    heard = Heard()
    pools = read_pools({"train": str(path)}, "resampled", at_most=60, look=False, progress=heard)
    texts, labels = pools.rows["all"]
    assert len(texts) == 60 and labels.count("b") == 20
    assert "note: SUBSAMPLE: 60 of 300 rows of all, drawn by class with seed 0" in heard.lines
    again = read_pools({"train": str(path)}, "resampled", at_most=60, look=False, progress=Heard())
    assert again.rows == pools.rows and again.sha256 == pools.sha256
