"""`train` on labels of several annotators and on soft labels, through the command line."""

from __future__ import annotations

import csv
import json

import pytest

from tests.cli.conftest import blame, call_main, rows, write_table

TABLE = rows(60, seed=3)
OTHER = {"neg": "pos", "pos": "neg"}

#: Text and the labels of three annotators: all alike, two to one, one to one, none.
VOTES = [
    (text, [label, label, OTHER[label]] if n % 3 == 0 else [label] * 3)
    for n, (label, text) in enumerate(TABLE[:40])
]
TIES = [(text, ["neg", "", "pos"]) for _, text in TABLE[40:44]]
NOBODY = [(TABLE[44][1], ["", "", ""])]


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def wide(path, votes, header="tweet\tannotator_1\tannotator_2\tannotator_3"):
    lines = [header, *("\t".join([text, *given]) for text, given in votes)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def long(path, votes):
    lines = ["annotator,label,text"]
    lines += [f"{who},{v},{text}" for who in range(3) for text, given in votes if (v := given[who])]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def label_studio(path, votes):
    def answer(who, label):
        result = {"from_name": "feeling", "type": "choices", "value": {"choices": [label]}}
        return {"completed_by": who, "result": [result]}

    tasks = [
        {"data": {"text": text}, "annotations": [answer(n, v) for n, v in enumerate(given) if v]}
        for text, given in votes
    ]
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """The run of a wide table, what was said, and the folder it stands in."""
    folder = tmp_path_factory.mktemp("annotators")
    file = wide(folder / "votes.tsv", [*VOTES, *TIES, *NOBODY])
    said = call_main("train", file, *given(data), "--out", folder / "run")
    assert said.code == 0, said.err
    return folder, said


def given(data):
    return ("--dev", data.dev, "--no-baselines", "--no-report", *data.small)


def probe(folder):
    return (folder / "probe.safetensors").read_bytes()


def test_majority_ties_and_agreement_are_told_and_kept(trained):
    folder, said = trained
    assert "40 texts get the label that most of them gave" in said.err
    assert "4 texts with a tie (lines 42, 43, 44 and 1 more), not evaluated on" in said.err
    assert "1 text that nobody labelled left out (line 46)" in said.err
    assert "soft labels: 4 rows; left out 0" in said.err
    report = read_json(folder / "run" / "metrics.json")["agreement"]
    assert report["file"] == "votes.tsv" and report["texts"] == 45
    assert (report["majority"], report["ties"]) == (40, 4)
    assert f"alpha {report['alpha']:.3f}" in said.out and "human ceiling" in said.out
    told = read_json(folder / "run" / "manifest.json")["data"]["train"]
    assert told["rows"] == 40 and told["classes"] == {"neg": 20, "pos": 20}


@pytest.mark.parametrize("form", ["label_studio", "listed", "long"])
def test_every_form_of_the_votes_trains_the_same_model(trained, data, tmp_path, form):
    votes, more = [*VOTES, *TIES], ["--dev", data.dev]
    if form == "listed":
        header = "text\tAmal\tIdir\tlabel"
        file = wide(tmp_path / "x.tsv", votes, header)
        table = [line.split("\t") for line in data.dev.read_text(encoding="utf-8").splitlines()[1:]]
        dev = wide(tmp_path / "dev.tsv", [(text, [label] * 3) for label, text in table], header)
        more = ["--label-column", "Amal, Idir,label", "--dev", dev]
    elif form == "long":
        file = long(tmp_path / "x.csv", votes)
    else:
        file = label_studio(tmp_path / "x.json", votes)
    words = (*given(data)[2:], *more, "--out", tmp_path / "run")
    said = call_main("train", file, *words)
    assert said.code == 0, said.err
    assert probe(tmp_path / "run") == probe(trained[0] / "run")


def records(path, table):
    """The table, its header first, in the format of the suffix."""
    header, *body = [[cell or None for cell in row] for row in table]
    if path.suffix == ".parquet":
        arrow = pytest.importorskip("pyarrow")
        from pyarrow.parquet import write_table as write

        columns = zip(*body, strict=True)
        write(arrow.table(dict(zip(header, map(list, columns), strict=True))), path)
    elif path.suffix == ".xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in (header, *body):
            book.active.append(row)
        book.save(path)
    else:
        # As one tool writes nothing for no answer, and another null.
        found = [dict(zip(header, row, strict=True)) for row in body]
        sparse = [{k: v for k, v in row.items() if v} for row in found]
        lines = [json.dumps(row) for row in sparse]
        text = "\n".join(lines) if path.suffix == ".jsonl" else json.dumps(found)
        path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["wide", "long"])
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet", ".xlsx"])
def test_every_format_of_the_votes_is_read_alike(tmp_path, form, suffix):
    votes = [*VOTES, *TIES]
    table = [["tweet", "annotator_1", "annotator_2", "annotator_3"]]
    table += [[text, *given] for text, given in votes]
    if form == "long":
        table = [["text", "annotator", "label"]]
        table += [[t, f"a{who}", v] for who in range(3) for t, g in votes if (v := g[who])]
    said = call_main("data", "agreement", records(tmp_path / f"x{suffix}", table), "--json")
    assert said.code == 0, said.err
    plain = call_main("data", "agreement", wide(tmp_path / "plain.tsv", votes), "--json")
    ours, theirs = (json.loads(one.out) for one in (said, plain))
    for pair in (*ours["pairs"], *theirs["pairs"]):
        pair["one"], pair["other"] = pair["one"][-1], pair["other"][-1]
    assert (ours["majority"], ours["ties"]) == (40, theirs["ties"]) and len(ours["ties"]) == 4
    assert ours["alpha"] == pytest.approx(theirs["alpha"]) and len(ours["pairs"]) == 3


def test_a_comparison_says_that_it_takes_the_majority(tmp_path):
    file = wide(tmp_path / "votes.tsv", [*VOTES, *TIES])
    words = ("--objectives", "nbsvm", "--splits", "resample", "--seeds", "1")
    said = call_main("compare", file, *words, "--out", tmp_path / "out")
    assert said.code == 0, said.err
    assert "40 texts get the label that most of them gave" in said.err
    assert "4 texts with a tie (lines 42, 43, 44 and 1 more)" in said.err
    assert "other commands leave them out" in said.err


def test_votes_that_agree_are_labels(data, tmp_path):
    """Bit for bit the model of a file with one label a text."""
    wide(tmp_path / "votes.tsv", [(text, [label] * 3) for label, text in TABLE[:40]])
    write_table(tmp_path / "hard.tsv", TABLE[:40])
    for name in ("votes", "hard"):
        said = call_main("train", tmp_path / f"{name}.tsv", *given(data), "--out", tmp_path / name)
        assert said.code == 0, said.err
    assert probe(tmp_path / "votes") == probe(tmp_path / "hard")
    assert "agreement" not in read_json(tmp_path / "hard" / "metrics.json")


def test_ties_are_held_back_from_no_split(data, tmp_path):
    """Where dev is a tenth of the file it has texts with a majority alone."""
    file = wide(tmp_path / "votes.tsv", [*VOTES, *TIES])
    words = ("--cv", "0", "--no-baselines", "--no-report", *data.small, "--keep-text")
    said = call_main("train", file, *words, "--out", tmp_path / "run")
    assert said.code == 0, said.err
    with (tmp_path / "run" / "predictions.tsv").open(encoding="utf-8") as stream:
        shown = [row["text"] for row in csv.DictReader(stream, delimiter="\t")]
    assert shown and not {text for text, _ in TIES} & set(shown)
    assert f"{len(shown)} of 40 training rows are held out" in said.err
    assert "soft labels: 4 rows" in said.err


def test_a_column_of_labels_comes_before_those_of_annotators(data, tmp_path):
    votes = [(text, [label, "x", "y"]) for label, text in TABLE[:40]]
    file = wide(tmp_path / "x.tsv", votes, "text\tlabel\tannotator_1\tannotator_2")
    said = call_main("data", "inspect", file, "--json")
    assert said.code == 0 and json.loads(said.out)["parts"][0]["classes"].keys() == {"neg", "pos"}
    said = call_main("data", "agreement", file, "--json")
    assert said.code == 0 and json.loads(said.out)["annotators"] == 2


def test_evaluate_reads_votes(trained):
    folder, _ = trained
    said = call_main("evaluate", folder / "run", folder / "votes.tsv", "--json")
    assert said.code == 0, said.err
    assert sum(of["support"] for of in json.loads(said.out)["per_class"].values()) == 40
    assert "tie (lines 42" in said.err


def test_one_run_teaches_another(trained, data, tmp_path):
    folder, _ = trained
    pool = tmp_path / "pool.txt"
    pool.write_text("\n".join(text for _, text in TABLE[40:]) + "\n\n", encoding="utf-8")
    lessons = {}
    for form, more in (("tsv", ["--details"]), ("json", ["--json"])):
        said = call_main("predict", folder / "run", pool, "--proba", *more)
        assert said.code == 0, said.err
        lessons[form] = tmp_path / f"soft.{form}"
        lessons[form].write_text(said.out, encoding="utf-8")
    test = write_table(tmp_path / "test.tsv", TABLE[40:42])
    for form, lesson in lessons.items():
        words = ("--soft-labels", lesson, "--test", test, "--objective", "cross_entropy")
        said = call_main("train", data.train, *given(data), *words, "--out", tmp_path / form)
        assert said.code == 0, said.err
        assert "soft labels: 18 rows; left out 2 that repeat a held-out text" in said.err
        facts = read_json(tmp_path / form / "manifest.json")["soft_labels"]
        assert facts["rows"] == 18 and facts["file"] == lesson.name
    said = call_main("evaluate", tmp_path / "json", write_table(tmp_path / "s.tsv", TABLE[44:48]))
    assert "4 of 4 texts are among the rows" in said.err
    bare = call_main("train", data.train, *given(data), "--out", tmp_path / "bare")
    assert bare.code == 0 and probe(tmp_path / "bare") != probe(tmp_path / "json")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("text\tneg\tpos\nun\t0.3\t0.3\n", "sum to 0.6"),
        ("text\tneg\tneutral\nun\t0.3\t0.7\n", "found 0 columns 'pos'"),
        ("text\tneg\tpos\nun\t-1\t2\n", "line 2: found '-1'"),
        ("text\tneg\tpos\nun\tnan\t1\n", "line 2: found 'nan'"),
        ("text\tneg\tpos\n\u2800\t0.3\t0.7\n", "line 2: found an empty text"),
        ("", "is empty"),
    ],
)
def test_soft_labels_that_are_wrong(data, tmp_path, text, expected):
    (tmp_path / "soft.tsv").write_text(text, encoding="utf-8")
    words = (*given(data), "--soft-labels", tmp_path / "soft.tsv", "--out", tmp_path / "run")
    assert expected in blame(call_main("train", data.train, *words))
    assert not (tmp_path / "run").exists()


def test_where_soft_labels_cannot_be(data, tmp_path):
    soft = tmp_path / "soft.tsv"
    soft.write_text("text\tneg\tpos\nun\t0.5\t0.5\n", encoding="utf-8")
    words = ("train", data.train, *given(data), "--out", tmp_path / "run", "--soft-labels")
    assert "no.tsv" in blame(call_main(*words, tmp_path / "no.tsv"))
    assert "below 64 MB" in blame(call_main(*words, soft, "--store", tmp_path / "store"))
    votes = wide(tmp_path / "votes.tsv", VOTES)
    said = call_main("train", votes, "--store", tmp_path / "s", "--out", tmp_path / "r")
    assert "several annotators" in blame(said)


def test_cross_validation_is_of_the_majority(data, tmp_path):
    file = wide(tmp_path / "votes.tsv", [*VOTES, *TIES])
    words = ("--cv", "2", "--no-baselines", "--no-report", *data.small, "--freeze")
    said = call_main("train", file, *words, "--out", tmp_path / "run")
    assert said.code == 0, said.err
    assert "the label that most annotators gave; ties are left out" in said.err
    assert "soft labels:" not in said.err and "human ceiling" in said.out
    soft = tmp_path / "soft.tsv"
    soft.write_text("text\tneg\tpos\nun\t0.5\t0.5\n", encoding="utf-8")
    said = call_main("train", file, *words, "--soft-labels", soft, "--out", tmp_path / "other")
    assert said.code != 0 and "soft_labels" in said.err


def test_ties_alone_leave_nothing_to_write(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("text,annotator_1,annotator_2\nbon film,a,b\nmauvais,b,a\n", encoding="utf-8")
    out = tmp_path / "out.csv"
    said = call_main("data", "agreement", file, "--out", out)
    assert said.code == 1 and "found a tie for each of 2 texts" in said.err and not out.exists()
    assert call_main("data", "agreement", file).code == 0
