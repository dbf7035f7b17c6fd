"""`superconext data`: what is printed, written and refused; and the commands of its page."""

from __future__ import annotations

import csv
import json
import re
import shlex
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from superconext.data import fetch as catalogue
from superconext.data.reading import read_labelled
from tests.cli.conftest import blame, call_main, environment, rows, write_table

DOCS = Path(__file__).parents[2] / "docs" / "data.md"
TABLE = "tweet\tlabel\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in with train, dev, test, all of them, and word vectors; an empty cache."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    table = rows(120, seed=4)
    write_table(tmp_path / "train.tsv", [*table[:80], table[0], ("neg", table[1][1])])
    write_table(tmp_path / "dev.tsv", table[80:100])
    leaked = [(label, text.upper()) for label, text in table[:4]]
    write_table(tmp_path / "test.tsv", [*table[100:], *leaked])
    write_table(tmp_path / "all.tsv", [*table, *leaked])
    votes = [
        "text\tannotator_1\tannotator_2",
        "zwin\tpos\tpos",
        "khayb\tneg\tpos",
        "7amd\tneg\tneg",
    ]
    (tmp_path / "annotators.tsv").write_text("\n".join(votes), encoding="utf-8")
    lines = ["zwin 0.1 0.2", "khayb 0.3 0.1", "bzaf 0.5 0.4"]
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def run(*words):
    """Call `superconext data`, expect success, return what it said."""
    said = call_main("data", *words)
    assert said.code == 0, said.err
    return said


def document(*words):
    return json.loads(run(*words, "--json").out)


def refused(*words):
    return blame(call_main("data", *words))


# Inspect


def test_inspect_finds_the_leak_and_warns(folder):
    said = run("inspect", "train.tsv", "--dev", "dev.tsv", "--test", "test.tsv")
    assert "warning: 4 of 24 rows of test (16.7%) are in train too" in said.err
    assert re.search(r"test in train +4 +16.7 +0 +4", said.out)
    assert re.search(r"dev in train +0 ", said.out)
    assert re.search(r"within train +2 +2.4 +2 +1", said.out)
    assert said.err.splitlines()[-1].startswith(
        "next: superconext train train.tsv --dev dev.tsv --test test.tsv --out RUN, and"
    )
    assert "texts that have another label in another row: 1, in 3 rows" in said.out
    report = document("inspect", "train.tsv", "dev.tsv", "test.tsv")
    assert [part["rows"] for part in report["parts"]] == [82, 20, 24]
    assert report["parts"][0]["classes"] == {"neg": 42, "pos": 40}
    assert report["profile"] == "arabic" and report["near_duplicates"]["threshold"] == 0.8


def test_after_a_file_of_one_class_comes_no_training(folder):
    (folder / "one.csv").write_text("text,label\nzwin,pos\nmzyan,pos\n", encoding="utf-8")
    last = run("inspect", "one.csv").err.splitlines()[-1]
    assert last.startswith("next: mend") and "--out" not in last


def test_inspect_orders_parts_by_what_they_are(folder):
    names = [
        part["name"] for part in document("inspect", "dev.tsv", "test.tsv", "train.tsv")["parts"]
    ]
    assert names == ["train", "dev", "test"]
    (folder / "b").mkdir()
    shutil.copy("dev.tsv", "b/dev.tsv")
    shutil.copy("dev.tsv", "b/other.set.tsv")
    report = document("inspect", "b/other.set.tsv", "dev.tsv", "b/dev.tsv", "--no-near")
    assert [part["name"] for part in report["parts"]] == ["other", "dev", "dev-2"]
    assert report["near_duplicates"] is None


def test_inspect_with_vectors(folder):
    said = run("inspect", "dev.tsv", "test.tsv", "--vectors", "vectors.txt")
    assert "coverage of dev (profile arabic)" in said.out and "coverage of test" in said.out
    found = document("inspect", "dev.tsv", "--vectors", "vectors.txt")["vectors"]
    words = [w for text in read_labelled("dev.tsv").texts for w in text.split()]
    assert found[0]["tokens"] == len(words)
    known = sum(word in {"zwin", "khayb", "bzaf"} for word in words)
    assert found[0]["exact"]["tokens"] == known


def test_inspect_to_the_letter(folder):
    words = ("inspect", "train.tsv", "--test", "test.tsv", "--normalize", "none")
    assert document(*words)["duplicates"]["across"][0]["rows"] == 0


def test_deduplicate(folder):
    said = run("inspect", "train.tsv", "dev.tsv", "test.tsv", "--deduplicate", "clean")
    parts = "clean/train.tsv --dev clean/dev.tsv --test clean/test.tsv"
    assert f"next: superconext train {parts} --out RUN" in said.err
    assert "train: 76 of 82 rows kept" in said.err
    assert sorted(p.name for p in Path("clean").iterdir()) == [
        *("dataset.json", "dev.tsv", "test.tsv", "train.tsv")
    ]
    assert len(read_labelled("clean/test.tsv")) == 24
    report = document("inspect", "clean/train.tsv", "clean/dev.tsv", "clean/test.tsv")
    copies = report["duplicates"]
    assert not any(case["rows"] for case in [*copies["within"], *copies["across"]])
    record = json.loads(Path("clean/dataset.json").read_text("utf-8"))
    assert record["deduplicated"]["train"]["rows"] == 82 and record["normalize"] == "arabic"
    line = refused("inspect", "train.tsv", "--deduplicate", "clean")
    assert "clean exists already" in line
    run("inspect", "train.tsv", "--deduplicate", "clean", "--force")
    assert sorted(p.name for p in Path("clean").iterdir()) == ["dataset.json", "train.tsv"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"a\tb\nc\n", b"text,label\n", b"\x00"])
def test_files_that_cannot_be_inspected(folder, content):
    (folder / "bad.tsv").write_bytes(content)
    assert "bad.tsv" in refused("inspect", "bad.tsv")
    assert "bad.tsv" in refused("split", "bad.tsv", "--out", "split")
    assert "none.tsv: no such file" in refused("inspect", "train.tsv", "--test", "none.tsv")
    assert not (folder / "split").exists()


# Split


def test_split(folder):
    said = run("split", "all.tsv", "--out", "a/split", "--seed", 3)
    texts = {p: read_labelled(f"a/split/{p}.tsv").texts for p in ("train", "dev", "test")}
    assert sum(map(len, texts.values())) == 124 and len(texts["dev"]) >= 12
    assert re.search(r"^all +\d+ ", said.out, re.MULTILINE) and "train %" in said.out
    report = document("inspect", *(f"a/split/{part}.tsv" for part in texts))
    assert not any(case["rows"] for case in report["duplicates"]["across"])
    run("split", "all.tsv", "--out", "again", "--seed", 3)
    for part in texts:
        assert Path(f"again/{part}.tsv").read_bytes() == Path(f"a/split/{part}.tsv").read_bytes()
    assert "split exists already" in refused("split", "all.tsv", "--out", "a/split")
    run("split", "all.tsv", "--out", "a/split", "--force", "--dev", 0)
    assert not Path("a/split/dev.tsv").exists()
    Path("home").mkdir()
    Path("home/thesis.doc").write_text("x")
    assert "no folder of a data set" in refused("split", "all.tsv", "--out", "home", "--force")
    assert Path("home/thesis.doc").exists()


def test_split_says_which_classes_have_no_row_in_dev_or_test(folder):
    table = [
        (label, f"{label} nass {k}") for label in "abcd" for k in range(2 if label > "b" else 20)
    ]
    write_table(folder / "few.tsv", table)
    said = run("split", "few.tsv", "--out", "split", "--test", 0)
    told = "note: dev.tsv has no row of 2 of 4 classes: 'c', 'd'; no score on it shows how well"
    assert told in said.err and "train.tsv has" not in said.err
    assert "no row of" not in run("split", "all.tsv", "--out", "other").err


def test_split_deduplicates_and_writes_other_formats(folder):
    found = document("split", "all.tsv", "--out", "split", "--deduplicate", "--format", "jsonl")
    assert found["deduplicated"] == 4 and found["out"] == "split"
    assert sum(file["rows"] for file in found["files"].values()) == 120
    assert len(read_labelled("split/test.jsonl")) == found["files"]["test.jsonl"]["rows"]


# List and fetch


def test_list(folder):
    names = [line.split()[0] for line in run("list").out.splitlines()[2:]]
    assert names == list(catalogue.CATALOGUE) == [s["name"] for s in document("list")]
    assert "licence" in run("list", "AfriSenti-arq").out
    assert document("list", "imdb")["files"][0]["md5"]


@pytest.fixture
def mirror(folder, monkeypatch):
    """A server on this machine with the files of AfriSenti and MSAC in their own layouts."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(catalogue, "ENOUGH", 0)  # of the rows that are published
    served = folder / "served"
    served.mkdir()
    for number, part in enumerate(("train", "dev", "test")):
        lines = [f"{text}\\n{number}\t{label}" for label, text in rows(9 + number, number)]
        text = TABLE + "\n".join(lines) + "\n"
        (served / f"arq_{part}.tsv").write_text(text, encoding="utf-8")
    lines = [f"'{text}',{label}" for label, text in rows(60, 7)]
    text = "@relation r\n@attribute text string\n@data\n" + "\n".join(lines)
    (served / "MSAC.arff").write_text(text, encoding="utf-8")

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=served))
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


def test_fetch_a_set_with_a_split(mirror, folder):
    said = run("fetch", "afrisenti_arq", "--out", "arq", "--url-base", mirror)
    assert [len(read_labelled(f"arq/{p}.tsv")) for p in ("train", "dev", "test")] == [9, 10, 11]
    assert "\\n" not in read_labelled("arq/train.tsv").texts[0]
    assert "note: train: 9 rows, where 1651 are published" in said.err
    assert "found SHA-256" in said.err and "licence: CC BY 4.0" in said.err
    record = json.loads(Path("arq/dataset.json").read_text("utf-8"))
    assert record["name"] == "afrisenti_arq" and record["split"] == "as published"
    assert [len(source["sha256"]) for source in record["sources"]] == [64] * 3
    assert "arq exists already" in refused("fetch", "afrisenti_arq", "--out", "arq")
    # What is in the cache needs no server.
    run("fetch", "afrisenti_arq", "--out", "arq", "--force", "--quiet")


def test_fetch_a_set_of_one_file(mirror, folder):
    found = document("fetch", "msac", "--out", "msac", "--url-base", mirror, "--seed", 5)
    assert {name: file["rows"] for name, file in found["files"].items()} == {
        "all.tsv": 60,
        "train.tsv": 48,
        "dev.tsv": 6,
        "test.tsv": 6,
    }
    assert found["split"]["seed"] == 5


def test_fetch_by_hand(folder, mirror):
    run("fetch", "msac", "--out", "msac", "--from", "served")
    assert "MSAC.arff: no such file" in refused("fetch", "msac", "--out", "b", "--from", "cache")


def test_fetch_offline_and_without_what_it_needs(folder, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    line = refused("fetch", "cr", "--out", "cr", "--url-base", "http://127.0.0.1:9")
    assert "cannot reach http://127.0.0.1:9/custrev.all" in line and "go online" in line
    monkeypatch.setitem(sys.modules, "datasets", None)
    said = call_main("data", "fetch", "ag_news", "--out", "x")
    assert "superconext[datasets]" in blame(said, 2)
    assert "no certain address is known" in refused("fetch", "amazon_full", "--out", "x")
    assert sorted(p.name for p in folder.iterdir() if p.is_dir()) in ([], ["cache"])


@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("inspect", "a.tsv", "--near", "0.5"),
        ("inspect", "train.tsv", "train.tsv"),
        ("inspect", "a.tsv", "--normalize", "greek"),
        ("split", "all.tsv"),
        ("split", "all.tsv", "--out", "x", "--dev", "0.5", "--test", "0.5"),
        ("split", "all.tsv", "--out", "x", "--dev", "1"),
        ("split", "all.tsv", "--out", "x", "--format", "xls"),
        ("list", "nosuchset"),
        ("fetch", "msac"),
        ("fetch", "nosuchset", "--out", "x"),
        ("fetch", "msac", "--out", "x", "--from", "a", "--url-base", "http://a"),
    ],
)
def test_wrong_usage(folder, words):
    said = call_main("data", *words)
    assert said.code == 2 and said.out == "", said


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from superconext.cli import main\n"
        "for verb in ([], ['inspect'], ['split'], ['list'], ['fetch']):\n"
        "    try: main(['data', *verb, '--help'])\n"
        "    except SystemExit as leaving: assert not leaving.code\n"
        "main(['data', 'list'])\n"
        "heavy = {'torch', 'sklearn', 'gensim', 'numpy', 'pooch', 'requests'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "--deduplicate" in done.stdout and "afrisenti_ary" in done.stdout


# The page


def test_every_command_of_the_page_runs(folder, mirror):
    blocks = re.findall(r"^```bash\n(.*?)^```", DOCS.read_text("utf-8"), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    assert len(lines) > 8
    for line in lines:
        _, *words = shlex.split(line)
        if words[:2] == ["data", "fetch"]:
            words += ["--url-base", mirror]
        said = call_main(*words)
        assert said.code == 0, (line, said.err)
    for target in re.findall(r"\]\(([^)#]+)\)", DOCS.read_text("utf-8")):
        assert (DOCS.parent / target).exists(), target


def test_inspect_counts_what_an_unlabelled_text_says_too(tmp_path):
    train = write_table(tmp_path / "train.tsv", [("pos", "فيلم زوين"), ("neg", "خايب بزاف")])
    test = write_table(
        tmp_path / "test.tsv", [("pos", "فيلم مزيان"), ("neg", "والو هنا"), ("neg", "!!!")]
    )
    text = tmp_path / "more.txt"
    text.write_text("فيلم مزيان'\nخايب بزاف 😀\nشي حاجة\n!!!\n", encoding="utf-8")
    words = ("data", "inspect", train, "--test", test, "--unlabelled", text, "--no-near")
    done = call_main(*words)
    assert done.code == 0
    assert f"in {text}: 1 of 2 texts of train" in done.out
    assert f"in {text}: 1 of 3 texts of test" in done.out
    assert "1 of 3 texts of test are in" in done.err and "--leave-out" in done.err
    assert "of train are said" not in done.err
    found = json.loads(call_main(*words, "--json").out)["unlabelled"]
    assert [(one["part"], one["said"]) for one in found] == [("train", 1), ("test", 1)]
    missing = call_main(*words[:-2], tmp_path / "no.txt")
    assert missing.code == 1 and "no.txt" in missing.err
    (tmp_path / "other.txt").write_text("فيلم زوين\n", encoding="utf-8")
    done = call_main(*words, "--unlabelled", tmp_path / "other.txt")
    assert f"in {text}, {tmp_path / 'other.txt'}: 2 of 2 texts of train" in done.out


def test_split_tells_which_columns_it_leaves_out(tmp_path):
    rows = [f"{n};text number {n};{'good' if n % 2 else 'bad'}" for n in range(60)]
    odd = tmp_path / "odd.csv"
    odd.write_text("\n".join(["ticket;text;label", *rows]) + "\n", encoding="utf-8")
    said = call_main("data", "split", odd, "--out", tmp_path / "split")
    assert said.code == 0 and "left out the columns ticket: label and text" in said.err
    plain = tmp_path / "split" / "train.tsv"
    said = call_main("data", "split", plain, "--out", tmp_path / "again")
    assert said.code == 0 and "left out the columns" not in said.err


def test_merge_keeps_the_columns_of_the_old_file(tmp_path):
    """The cell of the row that is taken, else that of another row with the same text."""
    old, new, plain = (tmp_path / name for name in ("old.csv", "new.csv", "plain.tsv"))
    old.write_text("id;class;body\n1;good;zwin\n2;good;khayb\n3;bad;salam\n", encoding="utf-8")
    new.write_text("id;body;class;why\n7;khayb;bad;x\n9;jdid;good;y\n", encoding="utf-8")
    columns = ("--text-column", "body", "--label-column", "class", "--keep", "new")
    out = tmp_path / "merged.csv"
    assert call_main("data", "merge", old, new, *columns, "--out", out).code == 0
    with out.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    assert rows == [
        {"class": "good", "body": "zwin", "id": "1"},
        {"class": "bad", "body": "salam", "id": "3"},
        {"class": "bad", "body": "khayb", "id": "7"},
        {"class": "good", "body": "jdid", "id": "9"},
    ]
    told = json.loads(call_main("data", "merge", old, new, *columns, "--json").out)
    assert told["rows"][2] == {"label": "bad", "text": "khayb", "kept": {"id": "7"}}
    plain.write_text("class\tbody\nbad\tkhayb\n", encoding="utf-8")
    lines = call_main("data", "merge", old, plain, *columns).out.splitlines()
    assert lines[-1].split("\t") == ["bad", "khayb", "2"]
    told = json.loads(call_main("data", "merge", plain, old, *columns, "--json").out)
    assert all(set(row) == {"label", "text"} for row in told["rows"])
