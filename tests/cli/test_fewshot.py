"""`superconext fewshot` as a user meets it."""

from __future__ import annotations

import json

import pytest


def words(data, out, *more):
    first = ("fewshot", data.train, "--test", data.test, "--shots", "2,4", "--seeds", "2")
    return [*first, "--out", out, *data.small, *more]


def test_curve_on_stdout_and_files_in_the_folder(call, data, tmp_path):
    out = tmp_path / "out"
    said = call(*words(data, out))
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert lines[:2] == ["weighted F1 in percent, by rows of each class", ""]
    assert lines[2].split() == ["system", "2", "4"]
    names = {line.split("  ")[0] for line in lines[4:11]}
    assert names == {
        "majority", "tfidf_logreg", "tfidf_svm", "vectors_logreg", "superloss",
        "cross_entropy", "cross_entropy (own rule)",
    }  # fmt: skip
    assert "hierarchical bootstrap" in said.out and "[24/24]" in said.err
    assert {path.name for path in out.iterdir()} >= {
        "results.jsonl", "comparison.json", "table.md", "table.csv", "table.tex", "overview.md"
    }  # fmt: skip
    again = call(*words(data, out, "--json", "--quiet"))
    document = json.loads(again.out)
    assert [row["shots"] for row in document["rows"]] == ["2"] * 7 + ["4"] * 7
    verified = call("compare", "--verify", out, 1)
    assert verified.code == 0 and ": match" in verified.out
    other = call("compare", data.train, "--objectives", "supcon", "--seeds", 1, "--out", out)
    assert other.code == 1 and "superconext fewshot, this is superconext compare" in other.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--shots", "four"], "expected whole numbers"),
        (["--shots", "1"], "at least 2"),
        (["--shots", ","], "Missing option '--shots'"),
        (["--seed", "1"], "No such option"),
        (["--objectives", "supcon", "--systems", "x.toml"], "expected one of them"),
        (["--backend", "dask"], "add --scheduler"),
        (["--reference", "best"], "reference = 'best'"),
    ],
)
def test_wrong_usage(call, data, tmp_path, more, message):
    said = call(*words(data, tmp_path / "out", *more))
    assert said.code == 2 and message in " ".join(said.err.split()) and not said.out
    assert not (tmp_path / "out").exists()


def test_too_few_rows_are_the_data_s_fault(call, data, tmp_path):
    said = call(*words(data, tmp_path / "out", "--shots", "11"))
    assert said.code == 1 and said.err.splitlines()[-1].startswith("error: class 'neg' has 20")
