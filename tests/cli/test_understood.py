"""No wrong answer without a word: labels, blank rows and headers that a run does not know."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import blame, call_main, rows, write_table

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


# Columns and headers


@pytest.fixture(scope="module")
def named(data, tmp_path_factory):
    """A run trained on columns that are named in a way of their own."""
    folder = tmp_path_factory.mktemp("named")
    table = rows(40, seed=0)
    lines = ["id,جملتي,حكم", *(f"{i},{text},{label}" for i, (label, text) in enumerate(table))]
    (folder / "train.csv").write_text("\n".join(lines), encoding="utf-8")
    columns = ("--text-column", "جملتي", "--label-column", "حكم")
    words = ("--out", folder / "run", "--no-baselines", *columns, *data.small)
    said = call_main("train", folder / "train.csv", *words)
    assert said.code == 0, said.err
    return folder / "run"


def texts_of(said):
    assert said.code == 0, said.err
    return [line.split("\t", 1)[1] for line in said.out.splitlines()]


def test_a_run_remembers_its_columns(call, named, tmp_path):
    manifest = json.loads((named / "manifest.json").read_text(encoding="utf-8"))
    columns = {"text": "جملتي", "label": "حكم", "header": True}
    assert manifest["data"]["train"]["columns"] == columns
    table = rows(12, seed=7)
    path = tmp_path / "new.csv"
    lines = ["حكم,id,text,جملتي", *(f"{label},1,no,{text}" for label, text in table)]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert texts_of(call("predict", named, path)) == [text for _, text in table]
    said = call("evaluate", named, path, "--json")
    assert said.code == 0 and json.loads(said.out)["n"] == 12
    (tmp_path / "one.csv").write_text("جملتي\nzwin\nbnin\n", encoding="utf-8")
    assert texts_of(call("predict", named, tmp_path / "one.csv")) == ["zwin", "bnin"]
    (tmp_path / "x.jsonl").write_text(json.dumps({"no": "a", "جملتي": "زوين"}), encoding="utf-8")
    assert texts_of(call("predict", named, tmp_path / "x.jsonl")) == ["زوين"]


@pytest.mark.parametrize(
    ("name", "header"),
    [("x.csv", "النص,التصنيف"), ("x.tsv", "utterance\tpolarity"), ("x.tsv", "kelma\tنوع")],
)
def test_an_unknown_header_is_no_row(call, finished, tmp_path, name, header):
    table, cut = rows(20, seed=7), "," if name == "x.csv" else "\t"
    lines = [header, *(f"{text}{cut}{label}" for label, text in table)]
    (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    said = call("predict", finished.folder, tmp_path / name)
    assert texts_of(said) == [text for _, text in table]
    assert "first row read as a header" in said.err
    said = call("evaluate", finished.folder, tmp_path / name, "--json")
    assert said.code == 0 and json.loads(said.out)["n"] == 20
    assert "unknown_labels" not in json.loads(said.out)
    # Other labels than the run's tell too, for they repeat.
    lines = [
        header,
        *(
            f"{text}{cut}{'bon' if i % 2 else 'سيئ'}"
            for i, (_, text) in enumerate(rows(24, seed=8))
        ),
    ]
    (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
    assert len(texts_of(call("predict", finished.folder, tmp_path / name))) == 24


def test_header_and_no_header_settle_it(call, finished, tmp_path):
    path = tmp_path / "x.csv"
    for first in ("kelma", "كلمة"):
        path.write_text(f"{first}\nzwin had\nكان عيان\n", encoding="utf-8")
        below = ["zwin had", "كان عيان"]
        assert texts_of(call("predict", finished.folder, path)) == [first, *below]
        assert texts_of(call("predict", finished.folder, path, "--header")) == below
        path.write_text(f"{first},y\nzwin had,neg\nكان عيان,pos\n", encoding="utf-8")
        assert texts_of(call("predict", finished.folder, path)) == below
        assert texts_of(call("predict", finished.folder, path, "--no-header")) == [first, *below]
        said = call("evaluate", finished.folder, path, "--no-header", "--json")
        assert json.loads(said.out)["unknown_labels"] == {"y": 1}
        plain = tmp_path / "x.txt"
        plain.write_text(f"{first}\nzwin had\n", encoding="utf-8")
        assert texts_of(call("predict", finished.folder, plain, "--header")) == ["zwin had"]
    path.write_text("النص\nzwin had\n", encoding="utf-8")
    assert texts_of(call("predict", finished.folder, path)) == ["zwin had"]
    assert texts_of(call("predict", finished.folder, path, "--no-header")) == ["النص", "zwin had"]


def test_the_first_rows_are_shown_as_they_were_understood(call, finished, test_table):
    for verb in ("predict", "evaluate"):
        said = call(verb, finished.folder, finished.data.test)
        shown = [line for line in said.err.splitlines() if "row read as" in line]
        assert len(shown) == 3
        for line, (label, text) in zip(shown, test_table, strict=False):
            assert f"label '{label}'" in line and text in line and len(line) <= 100
        assert "row read as" not in call(verb, finished.folder, finished.data.test, "--quiet").err
    assert "row read as" not in call("predict", finished.folder, stdin=b"zwin\n").err


@pytest.fixture
def test_table(finished):
    lines = finished.data.test.read_text(encoding="utf-8").splitlines()[1:]
    return [tuple(line.split("\t")) for line in lines]


# Commas


@pytest.mark.parametrize("count", [1, 3, 40])
@pytest.mark.parametrize("comma", ["wallah {}, khayb had", "{} زوين بزاف, كان عيان"])
def test_commas_in_sentences_do_not_cut_them(call, finished, tmp_path, count, comma):
    texts = [comma.format(f"n{i}") for i in range(count)]
    path = tmp_path / "x.csv"
    path.write_text("\n".join([*texts, "", "zwin"]) + "\n", encoding="utf-8")
    said = call("predict", finished.folder, path)
    assert texts_of(said) == [*texts, "", "zwin"]
    assert "commas included" in said.err
    path.write_text("\n".join(["zwin", *texts]) + "\n", encoding="utf-8")
    assert texts_of(call("predict", finished.folder, path)) == ["zwin", *texts]


def test_columns_that_hold_labels_or_numbers_are_columns(call, finished, tmp_path):
    path = tmp_path / "x.csv"
    for first in (["neg", "pos", "neg"], ["1", "2", "3"], ["?", "?", "?"]):
        lines = [f"{cell},kan {i} زوين" for i, cell in enumerate(first)]
        path.write_text("\n".join(lines), encoding="utf-8")
        expected = [f"kan {i} زوين" for i in range(3)]
        assert texts_of(call("predict", finished.folder, path)) == expected
