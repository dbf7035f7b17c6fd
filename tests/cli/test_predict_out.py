"""`superconext predict --out` and `--keep`: a file beside which nothing else is needed."""

from __future__ import annotations

import csv
import importlib.util
import itertools
import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import superconext
from superconext.data.lines import CHUNK
from superconext.data.reading import read_texts
from tests.cli.conftest import blame, call_main, rows

TABLE = [
    {"id": f"{n:03}", "tweet": text + '\nbzaf, "zwin"' * (n == 3), "label": label, "ville": "طنجة"}
    for n, (label, text) in enumerate(rows(12, seed=6))
]


@pytest.fixture(scope="module", params=["csv", "semicolon", "jsonl", "json", "parquet", "xlsx"])
def table(request, tmp_path_factory):
    """The same table in a file of each kind."""
    kind = request.param
    path = tmp_path_factory.mktemp(kind) / f"posts.{kind.replace('semicolon', 'csv')}"
    if kind == "parquet":
        arrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(arrow.Table.from_pylist(TABLE), path)
    elif kind == "xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in ([*TABLE[0]], *([*row.values()] for row in TABLE)):
            book.active.append(row)
        book.save(path)
    elif kind.startswith("json"):
        lines = [json.dumps(row, ensure_ascii=False) for row in TABLE]
        whole = f"[{', '.join(lines)}]" if kind == "json" else "\n".join(lines)
        path.write_text(whole, encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, [*TABLE[0]], delimiter=",;"[kind == "semicolon"])
            writer.writeheader()
            writer.writerows(TABLE)
    return path


def read(path: Path, mark: str = ",") -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return list(csv.DictReader(stream, delimiter=mark))


def test_columns_of_the_same_name_are_all_kept(call, finished, tmp_path):
    path, out = tmp_path / "x.csv", tmp_path / "out.csv"
    lines = (f"{text},{n},{label},1{n:02}" for n, (label, text) in enumerate(rows(40, seed=6)))
    path.write_text("\n".join(["text,id,label,id", *lines]) + "\n", encoding="utf-8")
    for keep in ("all", "id_2"):
        said = call("predict", finished.folder, path, "--keep", keep, "--out", out, "--force")
        assert said.code == 0 and "told apart: 'id' as 'id_2'" in said.err
        assert read(out)[7]["id_2"] == "107" and ("id" in read(out)[0]) == (keep == "all")
    kept = json.loads(call("predict", finished.folder, path, "--keep", "all", "--json").out)
    assert kept[7]["kept"] == {"id": "7", "given_label": "pos", "id_2": "107"}
    for words in (("audit", path), ("data", "merge", path, path)):
        assert call(*words, "--out", out, "--force").code == 0
        assert {(int(row["id"]) + 100, int(row["id_2"])) for row in read(out)} <= {
            (n, n) for n in range(100, 140)
        }
    path.write_text("text,text,label,id\n" + "zwin,bzaf,pos,1\n", encoding="utf-8")
    assert "'text' occurs 2 times" in blame(call("predict", finished.folder, path))


def test_records_that_differ_keep_all_they_have(call, finished, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "zwin", "id": 1}\n{"text": "khayb", "more": "7"}\n', encoding="utf-8")
    given = ("predict", finished.folder, path)
    kept = [row["kept"] for row in json.loads(call(*given, "--keep", "all", "--json").out)]
    assert kept == [{"id": "1", "more": ""}, {"id": "", "more": "7"}]
    kept = [row["kept"] for row in json.loads(call(*given, "--keep", "more", "--json").out)]
    assert kept == [{"more": ""}, {"more": "7"}]


def test_a_column_that_begins_far_down_is_told_as_left_out(call, finished, tmp_path):
    path = tmp_path / "x.jsonl"
    rows = [{"text": "zwin", "id": str(n) * CHUNK} for n in range(6)]
    rows[4]["more"] = rows[5]["more"] = "7"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    said = call("predict", finished.folder, path, "--keep", "all", "--json")
    assert "columns that the first rows lack, left out: more (line 5);" in said.err
    assert all([*row["kept"]] == ["id"] for row in json.loads(said.out))
    assert "more" not in call("predict", finished.folder, path, "--keep", "id", "--json").err


def test_the_file_has_every_row_and_the_columns_asked_for(call, finished, table, tmp_path):
    given = ("predict", finished.folder, table, "--text-column", "tweet")
    labels = [row["label"] for row in json.loads(call(*given, "--json").out)]
    out = tmp_path / "labelled.csv"
    said = call(*given, "--keep", "all", "--out", out)
    assert said.code == 0 and said.out == "" and f"{out}: 12 rows" in said.err
    expected = [
        {"label": label, "text": row["tweet"], "id": row["id"], "given_label": row["label"]}
        | {"ville": row["ville"]}
        for label, row in zip(labels, TABLE, strict=True)
    ]
    # As in the file that is read: where semicolons separate, spreadsheets open no other.
    mark = ";" if table.suffix == ".csv" and b"id;" in table.read_bytes() else ","
    assert read(out, mark) == expected and [*read(out, mark)[0]] == [*expected[0]]
    lines = tmp_path / "labelled.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in expected), encoding="utf-8")
    for file in (out, lines):
        own = f"{file}: found the columns 'label' and 'given_label', as superconext predict"
        assert own in blame(call("evaluate", finished.folder, file))
        asked = ("--label-column", "given_label", "--json")
        scores = json.loads(call("evaluate", finished.folder, file, *asked).out)
        right = [row["label"] == row["given_label"] for row in expected]
        assert scores["accuracy"] == sum(right) / len(right)
    found = json.loads(call(*given, "--keep", "VILLE", "--keep", "id", "--json").out)
    assert [row["kept"] for row in found] == [{"ville": r["ville"], "id": r["id"]} for r in TABLE]
    lines = call(*given, "--keep", "id", "--proba").out.splitlines()
    assert lines[0] == "label\tneg\tpos\ttext\tid" and lines[1].endswith("\t000")
    line = blame(call(*given, "--keep", "id,ville", "--out", out, "--force"))
    assert "repeat it: --keep id --keep ville" in line
    assert "no column 'vile', found " in blame(
        call(*given, "--keep", "vile", "--out", out, "--force")
    )
    assert read(out, mark) == expected


def test_a_file_that_is_there_is_replaced_whole_or_not_at_all(call, finished, tmp_path):
    path, out = tmp_path / "x.csv", tmp_path / "out.tsv"
    path.write_text("text,id\nzwin bzaf,1\n,2\n\nkhayb had,3,\n", encoding="utf-8")
    given = ("predict", finished.folder, path, "--out", out, "--keep", "id")
    assert call(*given).code == 0
    before = out.read_text(encoding="utf-8")
    assert [line.split("\t")[1:] for line in before.splitlines()] == [
        *(["text", "id"], ["zwin bzaf", "1"], ["", "2"], ["khayb had", "3"])
    ]
    assert "exists already" in blame(call(*given)) and "--force" in blame(call(*given))
    path.write_text("text,id\nzwin bzaf,1\nkhayb,2,3,4\n", encoding="utf-8")
    assert "line 3" in blame(call(*given, "--force"))
    assert out.read_text(encoding="utf-8") == before
    assert call(*given, "--force", "--on-error", "skip").code == 0
    assert len(out.read_text(encoding="utf-8").splitlines()) == 2
    assert sorted(tmp_path.iterdir()) == [out, path]
    assert "no folder" in blame(call(*given[:3], "--out", tmp_path / "none" / "x.csv"))


def test_only_named_columns_can_be_kept(call, finished, tmp_path):
    for name, content in (("x.txt", "zwin\n"), ("x.csv", "text\nzwin\n"), ("x.tsv", "pos\tzwin\n")):
        (tmp_path / name).write_text(content, encoding="utf-8")
        line = blame(call("predict", finished.folder, tmp_path / name, "--keep", "all"))
        assert "found no named column beside the text" in line and "--keep" in line


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_not_replaced(
    call, finished, tmp_path, monkeypatch, links
):
    from superconext.core import files

    out, synced = tmp_path / "out.tsv", files.sync

    def sync(path):
        if path.name.startswith(".out.tsv"):  # what was made is whole, and has no name yet
            out.write_text("mine", encoding="utf-8")
        synced(path)

    def link(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(files, "sync", sync)
    if not links:
        monkeypatch.setattr(files.os, "link", link)
    given = ("predict", finished.folder, finished.data.dev, "--out", out)
    line = blame(call(*given))
    assert "out.tsv was written by somebody else meanwhile" in line and out.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["out.tsv"]
    assert call(*given, "--force").code == 0 and out.read_text() != "mine"


@pytest.mark.parametrize("verb", ["audit", "merge", "suggest", "explain"])
def test_every_command_that_writes_a_file_replaces_it_when_told(call, finished, tmp_path, verb):
    train, out = finished.data.train, tmp_path / "out.csv"
    pool = tmp_path / "pool.tsv"
    pool.write_text("\n".join(["text", *(text for _, text in rows(40, seed=5))]), encoding="utf-8")
    given = {
        "audit": ("audit", train),
        "merge": ("data", "merge", train, finished.data.dev),
        "suggest": ("suggest", finished.folder, pool),
        "explain": ("explain", finished.folder, "--file", finished.data.dev),
    }[verb]
    out.write_text("mine", encoding="utf-8")
    line = blame(call(*given, "--out", out))
    assert "exists already" in line and "add --force" in line and out.read_text() == "mine"
    assert call(*given, "--out", out, "--force").code == 0
    assert len(read(out)) > 10
    if verb != "explain":
        table = tmp_path / "table.csv"
        lines = (f"{label * (verb != 'suggest')};{text}" for label, text in rows(40, seed=2))
        table.write_text("\n".join(["label;text", *lines]) + "\n", encoding="utf-8")
        given = tuple(table if one in (train, pool) else one for one in given)
        assert call(*given, "--out", out, "--force").code == 0
        assert len(read(out, ";")) > 10 and read_texts(out).texts
    (tmp_path / "folder").mkdir()
    line = blame(call(*given, "--out", tmp_path / "folder", "--force"))
    assert "exists already" in line and (tmp_path / "folder").is_dir()


@pytest.mark.parametrize("verb", ["agreement", "audit", "merge", "suggest"])
def test_labels_and_texts_go_into_columns_called_as_in_the_file(call, data, tmp_path, verb):
    """So that the same options read the file that was written, also beside the first; the next
    line has them."""
    table, out = tmp_path / "mine.csv", tmp_path / "out.csv"
    pairs = rows(60, seed=2)
    lines = (f'{n},"{text}",{label},{label}' for n, (label, text) in enumerate(pairs))
    table.write_text("\n".join(["id,Post said,mood,her mood", *lines]) + "\n", encoding="utf-8")
    pool = tmp_path / "pool.csv"
    unlabelled = (f'"{text}"' for _, text in rows(60, seed=5))
    pool.write_text("\n".join(["Post said", *unlabelled]) + "\n", encoding="utf-8")
    names = ("--text-column", "Post said", "--label-column", "mood")
    given = {
        "agreement": ("data", "agreement", table, *names[:3], "mood,her mood"),
        "audit": ("audit", table, *names),
        "merge": ("data", "merge", table, table, *names),
        "suggest": ("suggest", tmp_path / "run", pool, *names[:2], "-n", 5),
    }[verb]
    if verb == "suggest":
        words = (*data.small, "--dev", table, "--no-report", "--no-baselines")
        assert call("train", table, *words, *names, "--out", tmp_path / "run").code == 0
    said = call(*given, "--out", out)
    assert said.code == 0, said.err
    head = [*read(out)[0]][:2]
    assert head == ["label" if verb == "agreement" else "mood", "Post said"]
    if verb == "suggest":  # fill in its labels
        lines = out.read_text(encoding="utf-8-sig").splitlines()
        filled = [lines[0], *(f"pos{line}" for line in lines[1:])]
        out.write_text("\n".join(filled) + "\n", encoding="utf-8")
    following = said.err.splitlines()[-1]
    assert following.startswith("next: ") and str(out) in following
    words = shlex.split(following.split("superconext ", 1)[1])
    if words[0] == "train":
        said = call("data", "inspect", *words[1:-2], "--json")
        assert json.loads(said.out)["parts"][0]["classes"] == {"neg": 30, "pos": 30}, said.err
    else:
        words = [str(table) if word == "LABELLED" else word for word in words[:-1]]
        said = call(*words, tmp_path / "new.csv", "--keep", "old")
        assert said.code == 0 and f"{65 if verb == 'suggest' else 60} rows" in said.err, said.err
    if verb == "audit":
        assert not call(*given, "--out", tmp_path / "again.csv", "--quiet").err


@pytest.mark.parametrize("verb", ["agreement", "audit", "embed", "merge", "predict", "suggest"])
def test_a_file_of_another_kind_than_is_written_is_refused_by_its_ending(finished, tmp_path, verb):
    train = finished.data.train
    given = {"merge": (train, train), "audit": (train,), "agreement": (train,)}
    words = given.get(verb, (finished.folder, train))
    verbs = ("data", verb) if verb in ("merge", "agreement") else (verb,)
    line = blame(call_main(*verbs, *words, "--out", tmp_path / "out.md"))
    wanted = ".npy" if verb == "embed" else ".csv or .tsv"
    assert f"found the ending .md, expected {wanted}" in line


def test_a_spreadsheet_is_not_written_under_the_name_of_one(finished, tmp_path):
    for name in ("out.xlsx", "out.PARQUET"):
        said = call_main("predict", finished.folder, finished.data.test, "--out", tmp_path / name)
        assert said.code == 1 and "expected .csv or .tsv" in said.err
    said = call_main("predict", finished.folder, finished.data.test, "--out", tmp_path / "out.json")
    assert said.code == 1 and said.err.rstrip().endswith("name the file so, or add --json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", ["agreement", "audit", "explain", "merge", "predict", "suggest"])
def test_the_ending_is_that_of_what_is_written_and_the_advice_leads_there(
    call, finished, tmp_path, verb
):
    train, run = finished.data.train, finished.folder
    pool = tmp_path / "pool.txt"
    pool.write_text("\n".join(text for _, text in rows(20, seed=5)), encoding="utf-8")
    wide = tmp_path / "wide.csv"
    wide.write_text("text,annotator_1,annotator_2\nun a,p,p\nun b,n,n\n", encoding="utf-8")
    given = {
        "agreement": ("data", "agreement", wide),
        "audit": ("audit", train),
        "explain": ("explain", run, "zwin had"),
        "merge": ("data", "merge", train, train),
        "predict": ("predict", run, train),
        "suggest": ("suggest", run, pool),
    }[verb]
    always_table = verb in ("agreement", "merge")
    for flags, ending in itertools.product(((), ("--json",)), (".csv", ".json")):
        out = tmp_path / f"out{ending}"
        said = call(*given, *flags, "--out", out)
        table = always_table or not flags
        if table == (ending == ".csv"):
            assert said.code == 0, said.err
            (read if table else json.loads)(out if table else out.read_text(encoding="utf-8"))
            out.unlink()
            continue
        line = blame(said)
        wanted = ".csv or .tsv" if table else ".json or .jsonl"
        assert f"found the ending {ending}, expected {wanted}: name the file so" in line
        offer = "" if always_table else ", or leave out --json" if flags else ", or add --json"
        assert line.endswith(f"name the file so{offer}")
    if verb == "suggest":
        tool = (*given, "--for", "doccano", "--out")
        assert blame(call(*tool, tmp_path / "x.csv")).endswith(".json or .jsonl: name the file so")
        assert call(*tool, tmp_path / "x.jsonl").code == 0
        line = blame(call(*given, "--for", "csv", "--out", tmp_path / "x.tsv"))
        assert line.endswith("found the ending .tsv, expected .csv: name the file so")


def test_own_predictions_are_not_taken_for_labels_without_a_word(call, data, tmp_path):
    table = [{"Tweet": text, "Sentiment": label} for label, text in rows(120, seed=6)]
    mine = tmp_path / "mine.csv"
    with mine.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, ["Tweet", "Sentiment"])
        writer.writeheader()
        writer.writerows(table)
    run, out = tmp_path / "run", tmp_path / "out.csv"
    columns = ("--text-column", "Tweet", "--label-column", "Sentiment")
    said = call("train", mine, "--dev", mine, *columns, *data.small, "--out", run)
    assert said.code == 0 and "120 of 120 dev texts are in train too: settings are" in said.err
    assert call("predict", run, mine, "--keep", "all", "--out", out).code == 0
    found = read(out)
    assert [*found[0]] == ["label", "text", "given_label"]
    assert [row["given_label"] for row in found] == [row["Sentiment"] for row in table]
    assert "as superconext predict writes" in blame(call("train", out, "--out", tmp_path / "no"))
    again = tmp_path / "again.csv"
    assert call("predict", run, out, "--keep", "all", "--out", again).code == 0
    assert [*read(again)[0]] == ["label", "text", "given_given_label", "given_label"]
    kept = [(row["given_given_label"], row["given_label"]) for row in read(again)]
    assert kept == [(row["label"], row["given_label"]) for row in found]
    odd = "predicts every one of these labels: did it make them?"
    assert call("predict", run, mine, "--out", out, "--force").code == 0
    assert odd in call("evaluate", run, out).err
    head, first, *rest = out.read_text("utf-8-sig").splitlines()
    first = f"{'pos' if first[0] == 'n' else 'neg'}{first[3:]}"
    out.write_text("\n".join([head, first, *rest]), "utf-8")
    assert odd not in call("evaluate", run, out).err


def test_no_two_columns_have_one_name_where_a_class_is_named_as_a_column(call, tmp_path):
    names = ["Text", "label", "line", "given_id", "unknown_words"]
    texts = ["zwin bzaf", "khayb bzaf", "film zwin", "film khayb", "bnin"]
    given = {"vector_method": "random", "epochs": 1, "hidden_size": 4, "vector_dimension": 4}
    model = superconext.SuperConTextClassifier(**given)
    model.fit(texts * 6, names * 6).save(tmp_path / "run")
    file, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    file.write_text("id,Text,label\n1,zwin,given_id\n2,khayb,line\n", encoding="utf-8")
    for details in ([], ["--details"]):
        asked = ("--proba", *details, "--keep", "all", "--out", out, "--force")
        said = call("predict", tmp_path / "run", file, *asked)
        assert said.code == 0, said.err
        with out.open(encoding="utf-8-sig", newline="") as stream:
            head = next(csv.reader(stream))
        assert len({name.casefold() for name in head}) == len(head), head
        assert {"proba_Text", "proba_label"} <= {*head} and "given_id" in head
        assert ("proba_line" in head) == bool(details)
        asked = ("--label-column", "given_label", "--json")
        again = call("evaluate", tmp_path / "run", out, *asked)
        assert again.code == 0 and json.loads(again.out)["n"] == 2, again.err
        assert call("predict", tmp_path / "run", out).code == 0
    if all(map(importlib.util.find_spec, ("onnx", "onnxruntime"))):
        export = tmp_path / "onnx"
        assert call("export", tmp_path / "run", "--format", "onnx", "--out", export).code == 0
        words = [sys.executable, str(export / "classify.py"), str(file), "--proba", "--keep", "all"]
        said = subprocess.run(words, capture_output=True, check=False)
        assert said.returncode == 0, said.stderr
        head = said.stdout.decode().splitlines()[0].split("\t")
        assert len({name.casefold() for name in head}) == len(head), head
        assert head[:2] == ["label", "proba_Text"]
