"""No wrong answer without a word: labels, rows, headers and texts that a run does not know."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import save_file

from superconext.core.files import file_sha256
from superconext.runs.folder import load_model
from tests.cli.conftest import blame, call_main, environment, rows, write_table

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
    assert f"'{strange}' (2 rows)" in said.err and "2 of 4 rows" in said.err
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
    assert details[0] == "line\tlabel\tunknown_words\tunseen_script\tseen_in\ttext"
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
    assert "2 rows without a text" in said.err and "no label for" not in said.err
    said = call("predict", finished.folder, tmp_path / name, "--abstain-below", "1")
    assert "no label for 2 of 2 texts" in said.err


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


def test_a_missing_column_is_told_by_the_name_that_the_run_knows_too(call, named, tmp_path):
    path = tmp_path / "other.csv"
    path.write_text("id,phrases lues,score\n1,zwin bzaf,2\n2,khayb bzaf,3\n", encoding="utf-8")
    said = call("predict", named, path)
    assert said.code == 1 and "expected a column named 'جملتي' or 'text': name" in said.err
    said = call("predict", named, path, "--header")
    assert said.code == 1 and "no column 'جملتي' or 'text', found 'id', " in said.err
    (tmp_path / "x.jsonl").write_text('{"no": "a", "other": "b"}\n', encoding="utf-8")
    assert "no column 'جملتي' or 'text'" in call("predict", named, tmp_path / "x.jsonl").err
    said = call("evaluate", named, path)
    assert "columns named 'جملتي' or 'text' and 'حكم' or 'label': name" in said.err
    said = call("predict", named, path, "--no-header")
    assert said.code == 1 and said.err.endswith(
        "without a header, expected the number of the text column: give it with --text-column\n"
    )


def test_suggest_and_explain_take_the_columns_of_the_run(call, named, tmp_path):
    path = tmp_path / "new.csv"
    table = rows(4, seed=7)
    path.write_text(
        "id,جملتي,n\n" + "".join(f"{i},{t},1\n" for i, (_, t) in enumerate(table)), "utf-8"
    )
    said = call("suggest", named, path, "-n", 2, "--leave-out", path.with_name("old.csv"))
    assert said.code == 1 and "old.csv" in said.err
    path.with_name("old.csv").write_text(f"id,جملتي,n\n1,{table[0][1]},1\n", encoding="utf-8")
    said = call("suggest", named, path, "--leave-out", path.with_name("old.csv"))
    assert said.code == 0 and all(text in said.out for _, text in table[1:])
    assert table[0][1] not in said.out
    out = ("--out", tmp_path / "out.tsv")
    said = call("predict", named, path, "--text-column", "2", "--encoding", "utf-8", *out)
    assert f"{path} --text-column 2 --encoding utf-8 chooses" in said.err
    said = call("explain", named, "--file", path, "--json")
    assert said.code == 0 and len(json.loads(said.out)) == 4


def test_inspect_hands_its_columns_to_train_and_to_audit(call, named):
    columns = "--text-column جملتي --label-column حكم"
    said = call("data", "inspect", named.parent / "train.csv", *columns.split())
    path = named.parent / "train.csv"
    assert said.code == 0 and said.err.replace("'", "").count(f"{path} {columns}") == 2


def test_copies_of_few_texts_are_told_as_such(call, tmp_path):
    for texts in (["same"] * 2, ["one", "other"]):
        table = [(label, text) for label, text in zip(("neg", "pos"), texts, strict=True)] * 20
        said = call("train", write_table(tmp_path / "x.tsv", table), "--out", tmp_path / "run")
        count = len(set(texts))
        line = blame(said)
        assert f"only {count} different text{'s' * (count > 1)} in 40 rows" in line
        assert "held out" not in said.err


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


def test_a_row_of_a_class_new_to_the_run_stays_a_row_above_empty_labels(call, finished, tmp_path):
    path = tmp_path / "x.tsv"
    texts = ["ماشي هاد", "lfilm zwin bzaf", "lmakla 3adia", "had nhar zwin"]
    labels = ["other", "pos", "", ""]
    lines = [f"{label}\t{text}\n" for label, text in zip(labels, texts, strict=True)]
    path.write_text("".join(lines), encoding="utf-8")
    assert texts_of(call("predict", finished.folder, path)) == texts
    # Of many sentences under single words the first is a header above empty labels too.
    table = [f"{label}\t{text}\n" for label, text in rows(24, seed=7)]
    path.write_text("".join(["mood\tkelma\n", *table, lines[2]]), encoding="utf-8")
    assert len(texts_of(call("predict", finished.folder, path))) == 25


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
        shown = [line for line in said.err.splitlines() if "note: row " in line]
        assert len(shown) == 3
        for line, (label, text) in zip(shown, test_table, strict=False):
            assert f"label '{label}'" in line and text in line and len(line) <= 100
        assert "row 1: " not in call(verb, finished.folder, finished.data.test, "--quiet").err
    assert "row 1: " not in call("predict", finished.folder, stdin=b"zwin\n").err


def test_an_unknown_header_of_one_column_is_no_row(call, finished, tmp_path):
    texts = [f"{text}, wallah" for _, text in rows(24, seed=9)]
    for first in ("kelma", "نصوص"):
        for name in ("x.csv", "x.tsv"):
            (tmp_path / name).write_text("\n".join([first, *texts]), encoding="utf-8")
            said = call("predict", finished.folder, tmp_path / name)
            assert texts_of(said) == texts
            assert f"header: column '{first}' read as text (--no-header" in said.err
            said = call("predict", finished.folder, tmp_path / name, "--no-header")
            assert texts_of(said) == [first, *texts]
    # A word that stands below too, or that the run knows, is a row; so is one above single words.
    for lines in (
        ["qwrt", *texts, "qwrt"],
        ["zwin", *texts],
        ["qwrt", *"abcdefghijklmnopqrstu"],
    ):
        (tmp_path / "x.tsv").write_text("\n".join(lines), encoding="utf-8")
        said = call("predict", finished.folder, tmp_path / "x.tsv")
        assert texts_of(said) == lines
        assert said.err.count("no header") == 1


def test_standard_input_is_read_by_the_columns_of_the_run(call, named):
    def piped(*lines):
        return texts_of(call("predict", named, stdin="\n".join(lines).encode()))

    assert piped("حكم,id,جملتي", 'pos,1,"zwin, had"') == ["zwin, had"]
    assert piped("حكم\tid\tجملتي", "pos\t1\tzwin") == ["zwin"]
    assert piped("جملتي", "zwin", "", "bnin, had") == ["zwin", "", "bnin, had"]
    assert piped("id,جملتي", "1,zwin") == ["zwin"]
    said = call("predict", named, stdin="جملتي\nzwin\n".encode())
    assert "first row, 'جملتي', read as the header" in said.err
    # A sentence first, or the name within one: plain text.
    assert piped("zwin, had", "id,جملتي") == ["zwin, had", "id,جملتي"]
    assert piped("had id,جملتي", "1,zwin") == ["had id,جملتي", "1,zwin"]


def test_no_line_of_plain_text_is_a_header_and_no_name_a_text(call, named, tmp_path):
    (tmp_path / "x.txt").write_text("جملتي\nzwin\n", "utf-8")
    assert texts_of(call("predict", named, tmp_path / "x.txt")) == ["جملتي", "zwin"]
    (tmp_path / "x.csv").write_text('n,kelma\n1,"zwin, had"\n2,bnin\n', "utf-8")
    said = call("predict", named, tmp_path / "x.csv")
    assert texts_of(said) == ["zwin, had", "bnin"] and "read as a header" in said.err
    for header in ("id;author", "author;id", "date;user"):
        (tmp_path / "x.csv").write_text(f"{header}\n1;ali baba\n2;mo salah\n", "utf-8")
        said = call("predict", named, tmp_path / "x.csv")
        assert said.code == 1 and not said.out and "or 'text', found" in said.err
        assert "--text-column" in said.err


def test_embed_knows_the_columns_and_gives_a_vector_for_every_row(call, named, tmp_path):
    (tmp_path / "x.csv").write_text(
        "id,حكم,جملتي\n1,pos,zwin had\n2,neg,\n3,neg,كان عيان\n", "utf-8"
    )
    said = call("embed", named, tmp_path / "x.csv", "--out", tmp_path / "x.npy")
    assert said.code == 0 and "1 row without a text" in said.err
    vectors = np.load(tmp_path / "x.npy")
    assert len(vectors) == 3 and not vectors[1].any() and vectors[[0, 2]].any(axis=1).all()
    (tmp_path / "y.csv").write_text("جملتي\nzwin had\n", "utf-8")
    call("embed", named, tmp_path / "y.csv", "--out", tmp_path / "y.npy")
    assert np.allclose(np.load(tmp_path / "y.npy"), vectors[:1], atol=1e-6)


def test_exports_know_the_columns(call, named, tmp_path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    (tmp_path / "x.csv").write_text("حكم,id,text,جملتي\nneg,1,no,zwin had\n", "utf-8")
    for form in ("folder", "onnx"):
        said = call("export", named, "--format", form, "--out", tmp_path / form)
        assert said.code == 0, said.err
        assert texts_of(call("predict", tmp_path / form, tmp_path / "x.csv")) == ["zwin had"]
        assert not list((tmp_path / form).glob("seen*"))
        found = json.loads(call("predict", tmp_path / form, tmp_path / "x.csv", "--json").out)
        assert set(found[0]) == {"line", "label", "unknown_words", "unseen_script", "text"}
    said = call(
        "export", named, "--prune", "--test", tmp_path / "x.csv", "--out", tmp_path / "small"
    )
    assert said.code == 0, said.err


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


@pytest.mark.parametrize("count", [6, 30])
@pytest.mark.parametrize(
    "top,row",
    [
        ("Enquête", "{0},kan {0} زوين,"),
        ("Enquête", "Amina,kan {0} زوين,Rabat n{0}"),
        ("# 3 mars\nid;fraz;note", "{0};kan {0} زوين;"),
    ],
)
def test_rows_that_are_read_as_whole_lines_are_warned_of(call, finished, tmp_path, top, row, count):
    path = tmp_path / "x.csv"
    lines = [*map(row.format, range(count))]
    path.write_text("\n".join([top, *lines]) + "\n", encoding="utf-8")
    said = call("predict", finished.folder, path)
    assert texts_of(said)[-count:] == lines
    warned = next(line for line in said.err.splitlines() if line.startswith("warning: "))
    assert "rows of a table of 3 columns" in warned and "--text-column" in warned


@pytest.mark.parametrize(
    "top,header",
    [
        (["# export du 3 mars"], "id,text,remarque"),
        (["# export, par Amina, Rabat"], "id,text,remarque"),
        (["Export; mars"], "id;text;remarque"),
        (["Enquête", "", "2026"], "id;text;remarque"),
        (["# 3, 4 ou 5", "#"], "text,id"),
        (["# 3 mars"], "text"),
    ],
)
def test_titles_above_the_header_of_texts(call, finished, tmp_path, top, header):
    path, mark = tmp_path / "x.csv", ";" if ";" in header else ","
    cells = [{"id": f"{n}", "text": f"kan {n} زوين", "remarque": ""} for n in range(6)]
    rows = [mark.join(row[name] for name in header.split(mark)) for row in cells]
    path.write_text("\n".join([*top, header, *rows]) + "\n", encoding="utf-8")
    said = call("predict", finished.folder, path)
    assert texts_of(said) == [row["text"] for row in cells]
    assert f"{len(top)} row" in said.err and "above the header left out" in said.err
    assert "6 vectors" in call("embed", finished.folder, path, "--out", tmp_path / "v.npy").err
    suggested = call("suggest", finished.folder, path, "-n", 9).out
    assert "kan 0" in suggested and top[0] not in suggested


def test_what_may_be_a_row_above_the_header_of_texts(call, finished, tmp_path):
    path = tmp_path / "x.csv"
    rows = [f"{n},kan {n} زوين" for n in range(6)]
    path.write_text("\n".join(["Projet,Darija", "id,text", *rows]), encoding="utf-8")
    line = blame(call("predict", finished.folder, path))
    assert "found the header 'id', 'text' in row 2" in line and "--no-header" in line
    lines = [f"labas {n}, khouya" + ", zwin" * (n % 3) for n in range(9)]
    lines[3] = "avis, conseils"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert texts_of(call("predict", finished.folder, path)) == lines
    pairs = [f"kan {n} زوين,{'pos' if n % 2 else 'neg'}" for n in range(9)]
    pairs[3] = "message,pos"
    path.write_text("\n".join(pairs), encoding="utf-8")
    assert len(texts_of(call("predict", finished.folder, path))) == 9


def test_semicolons_in_sentences_are_told_as_such_and_separate_nothing(call, finished, tmp_path):
    texts = [f"wallah n{i}; khayb had" for i in range(40)]
    (tmp_path / "x.csv").write_text("\n".join(texts), encoding="utf-8")
    said = call("predict", finished.folder, tmp_path / "x.csv")
    assert texts_of(said) == texts and "one text, semicolons included" in said.err
    assert "columns read as separated" not in said.err


def test_columns_that_hold_labels_or_numbers_are_columns(call, finished, tmp_path):
    path = tmp_path / "x.csv"
    for first in (["neg", "pos", "neg"], ["1", "2", "3"], ["?", "?", "?"]):
        lines = [f"{cell},kan {i} زوين" for i, cell in enumerate(first)]
        path.write_text("\n".join(lines), encoding="utf-8")
        expected = [f"kan {i} زوين" for i in range(3)]
        assert texts_of(call("predict", finished.folder, path)) == expected


# Texts the run was made from


def test_texts_of_the_training_rows_are_known_again(call, finished, tmp_path):
    new = [("neg", "walakin had lfilm khayb ghali"), ("pos", "kan bnin zwin had l3icha")]
    train = [
        tuple(line.split("\t")) for line in finished.data.train.read_text("utf-8").splitlines()[1:4]
    ]
    train[0] = train[0][0], "  " + train[0][1].replace(" ", "  ")  # the same to the run
    dev = [tuple(finished.data.dev.read_text("utf-8").splitlines()[1].split("\t"))]
    path = write_table(tmp_path / "x.tsv", [*new, *train, *dev])
    said = call("evaluate", finished.folder, path, "--json")
    found = json.loads(said.out)
    assert {name: found["overlap"][name] for name in ("train", "dev")} == {"train": 3, "dev": 1}
    rest = json.loads(
        call("evaluate", finished.folder, write_table(tmp_path / "n.tsv", new), "--json").out
    )
    assert found["overlap"]["without"] == {name: rest[name] for name in found["overlap"]["without"]}
    assert rest["overlap"] == {"train": 0, "dev": 0, "without": None}
    accuracy = f"accuracy without them {rest['accuracy']:.3f} (2 rows)"
    assert "4 of 6 texts are among the rows of the run (3 train and 1 dev)" in said.err
    assert accuracy in said.err and found["n"] == 6
    said = call("predict", finished.folder, path, "--json")
    assert [row["seen_in"] for row in json.loads(said.out)] == [None] * 2 + ["train"] * 3 + ["dev"]
    assert "4 of 6 texts are among" in said.err
    said = call("predict", finished.folder, tmp_path / "n.tsv", "--details")
    assert "texts are among" not in said.err
    said = call("evaluate", finished.folder, finished.data.train)
    assert "there are no others to evaluate it on" in said.err


def test_a_run_without_hashes_says_that_it_does_not_know(call, finished, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished.folder, run)
    (run / "seen.safetensors").unlink()
    said = call("evaluate", run, finished.data.train, "--json")
    assert (
        said.code == 0
        and json.loads(said.out)["overlap"] is None
        and "texts are among" not in said.err
    )
    assert "seen_in" not in call("predict", run, finished.data.train, "--json").out


@pytest.mark.parametrize(
    "arrays",
    [
        {"key": np.zeros(16, np.uint8), "train": np.array([3, 2], np.uint64)},
        {"key": np.zeros(15, np.uint8), "train": np.array([2, 3], np.uint64)},
        {"key": np.zeros(16, np.uint8), "train": np.array([[2, 3]], np.uint64)},
        {"key": np.zeros(16, np.uint8), "other": np.array([2, 3], np.uint64)},
        {"train": np.array([2.0, 3.0])},
    ],
)
def test_hostile_hashes_are_refused(call, finished, tmp_path, arrays):
    run = tmp_path / "run"
    shutil.copytree(finished.folder, run)
    save_file(arrays, run / "seen.safetensors")
    assert "seen.safetensors" in blame(call("predict", run, finished.data.test))
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    manifest["files"]["seen.safetensors"] = file_sha256(run / "seen.safetensors")
    (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    assert "do not fit together" in blame(call("predict", run, finished.data.test))


# Texts unlike all that the run has seen


@pytest.mark.parametrize("strange", ["Шла Саша по шоссе", "мир", "这是什么"])
def test_a_script_the_run_never_saw_is_told(call, finished, tmp_path, strange):
    path = tmp_path / "x.txt"
    path.write_text(f"{strange}\nzwin {strange} bzaf\nhad lfilm zwin\n😀 !!\n", "utf-8")
    said = call("predict", finished.folder, path, "--json")
    found = json.loads(said.out)
    shares = [row["unseen_script"] for row in found]
    assert shares[0] == 1 and 0 < shares[1] < 1 and shares[2:] == [0, 0]
    words = [row["unknown_words"] for row in found]
    # Of a text without a word its signs count, and training saw none of these.
    assert words[0] == 1 and 0 < words[1] < 1 and words[2:] == [0, 1]
    assert "of 4 texts are unlike those the run was trained on" in said.err
    details = call("predict", finished.folder, path, "--details").out.splitlines()[1].split("\t")
    assert details[2:4] == ["1.00", "1.00"]


def test_unknown_words_are_told_where_they_are_common(call, finished, tmp_path):
    (tmp_path / "x.txt").write_text("qwrtp sdfgh\n" + "had zwin bzaf\n" * 3, "utf-8")
    assert "1 of 4 texts are unlike" in call("predict", finished.folder, tmp_path / "x.txt").err
    (tmp_path / "x.txt").write_text("qwrtp sdfgh\n" + "had zwin bzaf\n" * 9, "utf-8")
    assert "are unlike" not in call("predict", finished.folder, tmp_path / "x.txt").err
    said = call(
        "evaluate", finished.folder, write_table(tmp_path / "x.tsv", [("neg", "qwrtp sdfg")])
    )
    assert "1 of 1 texts are unlike" in said.err


# Output that is not UTF-8


@pytest.mark.long
def test_a_pipe_of_another_encoding_gets_utf_8(finished, tmp_path):
    env = {**environment(), "PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    table = [("سلبي" if label == "neg" else "😀", text) for label, text in rows(40, seed=3)]
    path, run = write_table(tmp_path / "x.tsv", table), tmp_path / "run"
    for words in (
        ("predict", finished.folder, path),
        ("data", "inspect", path),
        ("train", path, "--out", run, "--no-baselines", "--json", *finished.data.small),
    ):
        command = [sys.executable, "-m", "superconext", *map(str, words)]
        done = subprocess.run(command, env=env, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        assert "Error" not in done.stderr.decode()
        assert "عيان" in done.stdout.decode() or "سلبي" in done.stdout.decode()
    assert "سلبي" in (run / "manifest.json").read_text("utf-8")


def test_texts_longer_than_a_run_reads_are_counted(call, data, tmp_path):
    long, run = tmp_path / "long.tsv", tmp_path / "run"
    lines = data.train.read_text(encoding="utf-8").splitlines()
    lines = [*lines, *(f"pos\tzwin {'bzaf ' * count}" for count in (10, 11, 5000))]
    long.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ("--dev", data.dev, *data.small, "--no-report", "--no-baselines", "--max-length", 11)
    said = call("train", long, *words, "--out", run)
    assert said.code == 0 and "cut after 11 tokens (--max-length): 2 train texts" in said.err
    for verb in ("predict", "evaluate"):
        told = call(verb, run, long)
        assert told.err.count("the first 11 tokens of a text") == 1, told.err
        assert "(--max-length of train), and 2 of 43 texts are longer" in told.err
        assert "tokens" not in call(verb, run, long, "--quiet").err
        assert "tokens" not in call(verb, run, data.test).err


@pytest.mark.parametrize(
    "content", ["id,text,جملتي\n1,walou,kolchi zwin\n", "جملتي,id\nkolchi zwin,walou\n"]
)
def test_expected_words_are_those_of_the_column_of_training(call, named, tmp_path, content):
    test, expected = tmp_path / "x.csv", tmp_path / "expected.csv"
    test.write_text("حكم,id,جملتي\nneg,1,zwin had\n", "utf-8")
    expected.write_text(content, "utf-8")
    words = ("--prune", "--test", test, "--expected", expected, "--out", tmp_path / "small")
    said = call("export", named, *words)
    assert said.code == 0, said.err
    assert load_model(tmp_path / "small").indexer.oov_vectors.words == ["kolchi"]
