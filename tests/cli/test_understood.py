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


# Rows


@pytest.mark.parametrize("text", ["zwin bzaf", "زوين بزاف"])
def test_every_line_of_plain_text_gives_a_row(call, finished, tmp_path, text):
    path = tmp_path / "plain.txt"
    path.write_text(f"\n  \n{text}\n\n{text} had\n\n", encoding="utf-8")
    said = call("predict", finished.folder, path)
    rows = [line.split("\t") for line in said.out.split("\n")[:-1]]
    assert [row[1].strip() for row in rows] == ["", "", text, "", f"{text} had", ""]
    assert [bool(row[0]) for row in rows] == [False, False, True, False, True, False]
    assert "4 rows without a text" in said.err
    piped = call("predict", finished.folder, stdin=path.read_bytes())
    assert [line.split("\t")[0] for line in piped.out.split("\n")[:-1]] == [row[0] for row in rows]
    found = json.loads(call("predict", finished.folder, path, "--json", "--proba").out)
    assert [row["line"] for row in found] == [1, 2, 3, 4, 5, 6]
    assert found[0]["label"] is None and found[0]["probabilities"] is None
    details = call("predict", finished.folder, path, "--details").out.splitlines()
    assert details[0] == "line\tlabel\ttext"
    assert [line.split("\t")[:2] for line in details[1:]] == [
        [str(i), row[0]] for i, row in enumerate(rows, 1)
    ]


TABLES = {
    "x.tsv": "label\ttext\n?\tzwin had\n?\t\n\t\n?\tكان عيان\n",
    "x.csv": 'text\nzwin had\n\n""\nكان عيان\n',
    "bare.csv": "zwin had\n\n  \nكان عيان\n",
    "x.jsonl": '{"text": "zwin had"}\n{"text": ""}\n{"text": null}\n{"text": "كان عيان"}\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_a_row_with_an_empty_cell_gives_a_row(call, finished, tmp_path, name):
    (tmp_path / name).write_text(TABLES[name], encoding="utf-8")
    said = call("predict", finished.folder, tmp_path / name, "--json", "--abstain-below", "0")
    assert said.code == 0, said.err
    rows = json.loads(said.out)
    assert [row["text"].strip() for row in rows] == ["zwin had", "", "", "كان عيان"]
    assert [row["label"] is None for row in rows] == [False, True, True, False]
    first = 1 if name in ("bare.csv", "x.jsonl") else 2
    assert [row["line"] for row in rows] == [first, first + 1, first + 2, first + 3]
    assert "2 rows without a text" in said.err and "no label for 0 of 2" in said.err


def test_blank_lines_between_rows_of_several_columns_are_no_rows(call, finished, tmp_path):
    (tmp_path / "x.csv").write_text('id,text\n\n1,zwin\n\n2,"خايب, kan"\n\n', encoding="utf-8")
    said = call("predict", finished.folder, tmp_path / "x.csv", "--json")
    assert [(row["line"], row["text"]) for row in json.loads(said.out)] == [
        (3, "zwin"),
        (5, "خايب, kan"),
    ]
    assert "2 blank lines left out" in said.err
