"""No wrong answer without a word: labels, blank rows and headers that a run does not know."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import blame, write_table

# Labels


@pytest.mark.parametrize("labels", [("0", "1"), ("سلبي", "إيجابي")])
def test_evaluate_refuses_labels_of_which_the_run_knows_none(call, finished, tmp_path, labels):
    table = [(labels[i % 2], text) for i, text in enumerate(["khayb had", "زوين بزاف", "bnin kan"])]
    for words in ([], ["--json"]):
        line = blame(
            call("evaluate", finished.folder, write_table(tmp_path / "x.tsv", table), *words)
        )
        assert all(f"'{label}'" in line for label in (*labels, "neg", "pos"))
        assert "x.tsv" in line and "--label-column" in line


@pytest.mark.parametrize("strange", ["zen", "محايد"])
def test_evaluate_counts_the_rows_of_unknown_labels(call, finished, tmp_path, strange):
    table = [("neg", "khayb"), (strange, "zwin had"), ("pos", "زوين بزاف"), (strange, "كان عيان")]
    path = write_table(tmp_path / "x.tsv", table)
    said = call("evaluate", finished.folder, path, "--json")
    assert said.code == 0 and json.loads(said.out)["unknown_labels"] == {strange: 2}
    assert f"{strange} (2 rows)" in said.err and "2 of 4 rows" in said.err
    known = call("evaluate", finished.folder, finished.data.test, "--json")
    assert "unknown_labels" not in json.loads(known.out)
