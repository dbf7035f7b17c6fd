"""A static student answers nearly as its run does, and in its folder just as in Python."""

import asyncio
import gzip
import json
import os
import pickle
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

import superconext
from superconext.core.errors import DataError, RunError
from superconext.core.files import file_sha256
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.export import static_folder
from superconext.export.server import Limits, Service
from superconext.export.static_folder import Bags, distil, write_static
from superconext.export.static_model import FACTS, WEIGHTS, StaticModel, hashed
from tests.cli.conftest import call_main, rows, write_table
from tests.export.test_standalone import ABSENT

ODD = [
    "", "  \t\n ", "\u200f", "\ud800", "👍🏽👍🏽 ❤️\u200d🔥 🇲🇦", "هاد الفيلم زوين بزاف",
    "\u202bshalom שלום\u202c", "z" * 30_000, "zwin " * 30_000, "https://a.b/c?d=1 @user_1 #tag",
    "हिन्दी 漢字かな ไทย", "İSTANBUL ẞ", "مُحَمَّـــد", "a", "\x00\x1f", "١٢٣ 3,5%",
]  # fmt: skip
TINY = ("--epochs", 6, "--hidden-size", 8, "--vector-dimension", 8, "--learning-rate", 0.02)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run, its files, and the export of its student with what the command said."""
    place = tmp_path_factory.mktemp("static")
    table = rows(400, seed=5)
    train, dev = (
        write_table(place / f"{name}.tsv", part)
        for name, part in (("train", table[:300]), ("dev", table[300:]))
    )
    whole = train.read_text(encoding="utf-8").replace("label\ttext", "Label\tPost", 1)
    train.write_text(whole, encoding="utf-8")
    (place / "more.txt").write_text("\n".join(text for _, text in rows(400, seed=6)), "utf-8")
    more = ("--preset", "fast", "--no-baselines", "--no-report", "--quiet", *TINY)
    said = call_main("train", train, "--dev", dev, "--out", place / "run", *more)
    assert said.code == 0, said.err
    given = ("--train", train, "--unlabelled", place / "more.txt", "--test", dev, "--json")
    said = call_main("export", place / "run", "--format", "static", *given, "--out", place / "out")
    assert said.code == 0, said.err
    return place, json.loads(said.out)


def test_it_learns_what_the_run_answers(made):
    place, told = made
    cost = told["cost"]
    readme = (place / "out" / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 25 and "Made of the run `run` by" in readme
    assert (
        "pip install numpy\n" in readme and f"{cost['student']['accuracy']:.3f}, the run" in readme
    )
    model = superconext.load(place / "out")
    assert repr(model) == f"StaticModel({str(place / 'out')!r}, classes=['neg', 'pos'])"
    for either in (model, superconext.load(place / "run")):
        said = list(either.predict(["", "\t", "zwin"]))
        assert said[:2] == ["", ""] and said[2]
    assert told["format"] == "static" and cost["rows"] == 100 and 300 < cost["learned"] <= 700
    assert cost["trained"] == 0
    assert cost["run"]["accuracy"] > 0.9 and cost["agree"] >= 90
    assert cost["student"]["accuracy"] > cost["run"]["accuracy"] - 0.1
    assert 0 < cost["student"]["f1_macro"] <= 1


def test_the_folder_alone_answers_as_in_python(made):
    """In a process that has NumPy and nothing else."""
    place, _ = made
    texts = [*ODD, *(text for _, text in rows(200, seed=7))]
    absent = (*ABSENT, "onnxruntime")
    program = (
        f"import sys, json\nfor name in {absent!r}: sys.modules[name] = None\n"
        f"sys.path[:0] = [{str(place / 'out')!r}]\n"
        "from classify import load\n"
        "print(json.dumps(load().probabilities(json.load(sys.stdin)).tolist()))\n"
    )
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words, given = [sys.executable, "-c", program], json.dumps(texts).encode()
    said = subprocess.run(words, input=given, capture_output=True, env=plain, check=False)
    assert said.returncode == 0, said.stderr.decode()
    model = StaticModel(place / "out")
    expected = model.probabilities(texts)
    assert np.abs(np.array(json.loads(said.stdout)) - expected).max() < 1e-5
    assert np.isfinite(expected).all() and np.allclose(expected.sum(axis=1), 1)
    # A text's answer is its own, whatever stands beside it and was read before it.
    alone = np.vstack([model.probabilities([text]) for text in reversed(texts)])[::-1]
    assert np.abs(alone - expected).max() < 1e-5
    assert model.probabilities([]).shape == (0, 2)
    assert model.predict([]).shape == (0,)
    assert (expected[:2] == expected[0]).all()
    with pytest.raises(DataError, match="found one string; expected a list"):
        model.predict("khayb bzaf")  # else each letter would be labelled


@pytest.mark.parametrize("form", ["onnx", "static"])
@pytest.mark.parametrize(
    "labels", [[1, -1], [True, False], np.float32([2, 1]), ["b", "a"], np.array(["b", "a"], object)]
)
def test_labels_are_of_the_type_that_they_were_fitted_in(tmp_path, form, labels):
    if form == "onnx":
        pytest.importorskip("onnxruntime")
    texts = ["zwin bzaf", "khayb bzaf", "film zwin", "film khayb"] * 6
    given = {"vector_method": "random", "epochs": 2, "hidden_size": 4, "vector_dimension": 4}
    superconext.SuperConTextClassifier(**given).fit(texts, [*labels] * 12).save(tmp_path / "run")
    train = write_table(tmp_path / "a.tsv", zip(map(str, [*labels] * 12), texts, strict=True))
    test = write_table(tmp_path / "b.tsv", [(str(labels[0]), "zwin had chi")])
    more = ("--train", train, "--test", test) if form == "static" else ()
    said = call_main("export", tmp_path / "run", "--format", form, *more, "--out", tmp_path / "out")
    assert said.code == 0, said.err
    run, export = superconext.load(tmp_path / "run"), superconext.load(tmp_path / "out")
    assert export.classes_.dtype == run.classes_.dtype and (export.classes_ == run.classes_).all()
    assert export.classes == run.model_.classes
    found, expected = export.predict(texts), run.predict(texts)
    assert isinstance(found, np.ndarray) and found.dtype == expected.dtype
    assert (found == expected).mean() >= (1 if form == "onnx" else 0.5)
    if run.classes_.dtype.kind in "OU":
        assert export.predict([" "]).tolist() == [""]
    else:
        with pytest.warns(UserWarning, match=r"found 1 blank of 1 text \(at 0\)"):
            assert export.predict([" "]) == run.classes_[:1]
    printed = call_main("predict", tmp_path / "out", stdin=b"zwin\n\n").out.splitlines()
    assert printed[0].split("\t")[0] in export.classes and printed[1] == "\t"
    words = [sys.executable, str(tmp_path / "out" / "classify.py")]
    alone = subprocess.run(words, input=b"zwin\n\n", capture_output=True, check=False)
    assert alone.stdout.decode().splitlines() == printed, alone.stderr
    name = "model.json" if form == "onnx" else FACTS
    facts = json.loads((tmp_path / "out" / name).read_text())
    old = {key: value for key, value in facts.items() if key not in ("label_type", "sha256")}
    (tmp_path / "out" / name).write_text(json.dumps(old))
    assert superconext.load(tmp_path / "out").predict(["zwin"]).tolist()[0] in run.model_.classes
    (tmp_path / "out" / name).write_text(json.dumps({**facts, "classes": facts["classes"][::-1]}))
    with pytest.raises(RunError, match=f"{name} is not what was written"):
        superconext.load(tmp_path / "out")
    (tmp_path / "out" / name).write_text(json.dumps({**facts, "label_type": "complex64"}))
    with pytest.raises(RunError, match="label_type 'complex64' does not fit the labels"):
        superconext.load(tmp_path / "out")


@pytest.mark.parametrize("folder", ["run", "out"])
def test_what_are_no_texts_is_refused_by_the_run_and_its_student_alike(made, folder):
    place, _ = made
    model = superconext.load(place / folder)
    asked = (model.predict, model.predict_proba, *[model.transform] * (folder == "out"))
    for ask in asked:
        for odd, kind in ((None, "NoneType"), (3, "int"), (b"a", "bytes")):
            with pytest.raises(DataError, match=f"text 1 is {kind}; expected str: convert or dr"):
                ask(["a", odd])
        with pytest.raises(DataError, match=r"text 1 is missing \(NaN\): drop the row"):
            ask(["a", float("nan")])
        with pytest.raises(DataError, match="found NoneType; expected a list of texts"):
            ask(None)
        assert len(ask([])) == 0
    assert model.predict_proba([]).shape == (0, 2)


def test_the_commands_read_it(made):
    place, _ = made
    said = call_main("predict", place / "out", "--proba", stdin="zwin bzaf\n\n😀\n".encode())
    assert said.code == 0, said.err
    head, *answers = said.out.splitlines()
    assert head == "label\tneg\tpos\ttext" and len(answers) == 3
    assert answers[0].startswith("pos\t") and answers[1].startswith("\t")
    model = StaticModel(place / "out")
    assert float(answers[0].split("\t")[1]) == pytest.approx(
        model.probabilities(["zwin bzaf"])[0, 0], abs=1e-4
    )
    file = write_table(place / "texts.tsv", rows(20, seed=8))
    said = call_main("embed", place / "out", file, "--out", place / "vectors.npy")
    assert said.code == 0 and np.load(place / "vectors.npy").shape == (20, 16), said.err
    head = call_main("predict", place / "out", file, "--details").out.splitlines()[0]
    assert head == "line\tlabel\ttext", "an export cannot tell what training has seen"
    said = call_main("evaluate", place / "out", file)
    assert said.code == 0 and f"{file}, 20 rows\nrun" in said.out and "next:" not in said.err
    assert f"\n{place / 'out'} (export) " in said.out, said.out
    scores = json.loads(call_main("evaluate", place / "out", file, "--json").out)
    labels = model.predict([text for _, text in rows(20, seed=8)])
    right = [a == b for a, (b, _) in zip(labels, rows(20, seed=8), strict=True)]
    assert scores["accuracy"] == sum(right) / 20
    words = [sys.executable, str(place / "out" / "classify.py"), "-"]
    said = subprocess.run(words, input=b"zwin bzaf\n", capture_output=True, check=False)
    assert said.stdout == b"pos\tzwin bzaf\n", said.stderr
    alone = place / "alone"
    alone.mkdir()
    shutil.copy(words[1], alone)
    words[1] = str(alone / "classify.py")
    said = subprocess.run(words, input=b"zwin\n", capture_output=True, check=False, text=False)
    expected = "found no superconext_runtime; expected the whole exported folder"
    assert (
        said.returncode == 1 and said.stderr.decode() == f"error: {alone.resolve()}: {expected}\n"
    )
    program = (
        "import classify\ntry:\n    classify.load()\nexcept ImportError as error:\n    print(error)"
    )
    words = [sys.executable, "-c", program]
    said = subprocess.run(words, cwd=alone, capture_output=True, check=False, text=True)
    assert said.stdout == f"{alone.resolve()}: {expected}\n", said.stderr


def classify(made, *words):
    command = [sys.executable, str(made[0] / "out" / "classify.py"), *map(str, words)]
    return subprocess.run(command, capture_output=True, check=False)


def unexpected(said):
    """Lines of standard error that do not tell how the file was read."""
    return [line for line in said.stderr.splitlines() if not line.startswith(b"note: ")]


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.csv", 'id,Post,label\n1,zwin,pos\n2,"khayb, bzaf",neg\n', ["zwin", "khayb, bzaf"]),
        ("a.CSV", "\ufeffid;POST ;text\n1;zwin;a\n", ["zwin"]),
        ("a.tsv", "id\tTEXT\r\n1\tzwin, bzaf\r\n", ["zwin, bzaf"]),
        ("b.csv", "text\nzwin, bzaf\n", ["zwin, bzaf"]),
        ("c.csv", "zwin\nkhayb\n", ["zwin", "khayb"]),
        ("b.tsv", "zwin, bzaf\nkhayb\n", ["zwin, bzaf", "khayb"]),
        ("a.txt", "text,label\n", ["text,label"]),
    ],
)
def test_the_column_of_training_is_labelled_else_text(made, tmp_path, name, content, texts):
    file = tmp_path / name
    file.write_bytes(content.encode())
    said = classify(made, file)
    assert said.returncode == 0 and not unexpected(said), said.stderr
    labels = superconext.load(made[0] / "out").predict(texts)
    expected = "".join(f"{label}\t{text}\n" for label, text in zip(labels, texts, strict=True))
    assert said.stdout.decode() == expected


def test_blank_texts_have_no_label_wherever_they_are_given(made, tmp_path):
    """White space and marks without a width, by the run and its student."""
    place, texts = made[0], ["", " \u3000", "\u200b", "\u202b \ufeff", "zwin"]
    file = tmp_path / "rows.csv"
    file.write_text("".join(f'"{text}",x\n' for text in ("Post", *texts)), encoding="utf-8")
    answers = [classify(made, file, "--proba").stdout.decode()]
    answers += [call_main("predict", place / of, file, "--proba").out for of in ("run", "out")]
    for answer in answers:
        head, *rows_of = [line.split("\t") for line in answer.splitlines()]
        assert head == ["label", "neg", "pos", "text"] and len(rows_of) == 5
        assert [row[:3] for row in rows_of[:4]] == [["", "", ""]] * 4 and rows_of[4][0] == "pos"
    estimator = superconext.load(place / "run").estimator()
    assert estimator.transform(texts).any(axis=1).tolist() == [False] * 4 + [True]
    for of in ("run", "out"):
        model = superconext.load(place / of)
        vectors = model.transform(texts)
        assert not vectors[:4].any() and vectors[4].any()
        assert list(model.predict(texts)) == ["", "", "", "", "pos"]
        shares = model.predict_proba(texts)
        assert (shares[:4] == 0.5).all() and shares[4, 1] > 0.5
    assert asyncio.run(Service(model, Limits())._answer(texts[:4]))["labels"] == [None] * 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"id,part,n\n1,zwin,2\n", "found the columns 'id', 'part', 'n', exp"),
        ("a.txt", b"zwin\ncaf\xe9\n", "a.txt, line 2: byte 0xe9 is not UTF-8, expected UTF-8"),
        ("a.txt", b"zwin\ncaf\xe9\n", ": give --encoding "),
        ("a.csv", b"\x89PNG\r\n\x1a\n\0\0", "a.csv: found an image (PNG), expected a table"),
        ("a.csv", b"text,n\ncaf\xe9,1\n", "line 2: byte 0xe9 is not UTF-8"),
        ("a.csv", b"PK\x03\x04\x14\x00", "not a readable workbook"),
        ("a.txt", "zwin\n".encode("utf-16-le"), "line 1: found a NUL byte"),
        ("a.txt", b"", "is empty or blank, expected one example a line"),
        ("a.csv", b"\n \n", "is empty or blank, expected one example a line"),
        ("a.json", b'["zwin"]', "found a JSON array, expected one object a line"),
    ],
)  # fmt: skip
def test_what_is_no_text_is_not_labelled(made, tmp_path, name, content, message):
    file = tmp_path / name
    file.write_bytes(content)
    said = classify(made, file, "--proba")
    error = said.stderr.decode()
    assert said.returncode == 1 and said.stdout == b"", said.stdout
    assert error.startswith("error: ") and error.count("\n") == 1 and message in error


def test_a_file_in_another_encoding_is_read_as_named(made, tmp_path):
    text = "text;n\nzwin référence;1\n"
    expected = superconext.load(made[0] / "out").predict(["zwin référence"])[0]
    for codec, named in (("cp1252", ["--encoding", "windows-1252"]), ("utf-16", []), ("utf-8", [])):
        for name, data in (
            ("a.csv", text.encode(codec)),
            ("a.csv.gz", gzip.compress(text.encode(codec))),
        ):
            (tmp_path / name).write_bytes(data)
            said = classify(made, tmp_path / name, *named)
            assert said.returncode == 0 and not unexpected(said), said.stderr
            assert said.stdout.decode() == f"{expected}\tzwin référence\n"
    said = classify(made, tmp_path / "a.csv", "--encoding", "klingon")
    assert said.returncode == 1 and said.stderr.startswith(b"error: found encoding 'klingon'")


def test_fasttext_lines_are_no_table(made, tmp_path):
    file = tmp_path / "a.tsv"
    file.write_text("__label__pos\tzwin\nkhayb\n", encoding="utf-8")
    said = classify(made, file)
    assert said.returncode == 1 and b"a.tsv, line 2: begins with 'khayb'" in said.stderr


@pytest.mark.parametrize("table", [False, True])
def test_a_slow_pipe_is_answered_line_by_line(made, table):
    words = [sys.executable, str(made[0] / "out" / "classify.py")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, **pipes) as process:
        if table:
            process.stdin.write(b"id,Post\n")
        for line, label in ((b"zwin bzaf", b"pos"), (b"khayb bzaf", b"neg"), (b"zwin", b"pos")):
            process.stdin.write(b"1," * table + line + b"\n")
            process.stdin.flush()
            assert select.select([process.stdout], [], [], 60)[0], "the line is not answered"
            assert process.stdout.readline() == label + b"\t" + line + b"\n"
        out, err = process.communicate()
        assert (process.returncode, out) == (0, b"")
        assert err in (b"", b"note: standard input: read as plain text, one sentence a line\n")


def test_a_closed_pipe_ends_quietly(made, tmp_path):
    file = tmp_path / "many.txt"
    file.write_text("zwin bzaf\n" * 20_000, encoding="utf-8")
    words = [sys.executable, str(made[0] / "out" / "classify.py"), str(file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"pos\tzwin bzaf\n"
        process.stdout.close()
        told = f"note: {file}: read as plain text, one sentence a line\n"
        assert process.stderr.read() == told.encode()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_program_says_so_and_leaves_nothing(made, tmp_path, number):
    words = [sys.executable, str(made[0] / "out" / "classify.py"), "--out", str(tmp_path / "o.tsv")]
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, **pipes) as process:
        process.stdin.write(b"zwin bzaf\n" * 50)
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        _, err = process.communicate()
    assert err.splitlines()[-1] == b"error: interrupted; run the command again"
    assert process.returncode == 1
    assert not list(tmp_path.iterdir())


def test_each_text_is_one_line_for_every_reader(made, tmp_path):
    texts = ["zwin\u2028b", "zwin\x0bc", "zwin\x85e"]
    (tmp_path / "a.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    out = classify(made, tmp_path / "a.txt").stdout.decode()
    assert [line.split("\t")[1] for line in out.splitlines()] == ["zwin b", "zwin c", "zwin e"]


def test_a_closed_input_is_an_empty_one(made):
    line = f'exec "{sys.executable}" "{made[0] / "out" / "classify.py"}" <&-'
    said = subprocess.run(["sh", "-c", line], capture_output=True, check=False)
    assert said.returncode == 1 and b"Traceback" not in said.stderr


def test_a_tenth_is_measured_on_where_no_file_is(made):
    place, _ = made
    given = ("--format", "static", "--train", place / "train.tsv", "--out", place / "tenth")
    said = call_main("export", place / "run", *given)
    assert said.code == 0, said.err
    assert " of 30 rows; the student learned from 270 texts" in said.err
    assert "next: python" in said.err and "classify.py" in said.err
    # Training had a dev file, and so held back nothing of train: there is no score to tell.
    assert said.out == ""
    told = "train.tsv: found 30 of 30 rows that the run was trained on; expected others to measure"
    [note] = [line for line in said.err.splitlines() if told in line]
    assert note.startswith("note: ") and note.endswith("give them with --test")
    readme = (place / "tenth" / "README.md").read_text(encoding="utf-8")
    assert " of 30 texts that the run was trained on" in readme and "accuracy" not in readme
    assert "trained on" not in (place / "out" / "README.md").read_text(encoding="utf-8")


def test_no_score_is_told_where_it_is_unknown_what_the_run_was_trained_on(made):
    place, _ = made
    assert call_main("export", place / "run", "--out", place / "bare").code == 0
    given = ("--format", "static", "--train", place / "train.tsv")
    said = call_main("export", place / "bare", *given, "--out", place / "unknown")
    assert said.code == 0 and said.out == "", said.out
    told = f"train.tsv: {place / 'bare'} does not tell which texts it was trained on"
    [note] = [line for line in said.err.splitlines() if told in line]
    assert note.startswith("note: ") and note.endswith("give them with --test")
    readme = (place / "unknown" / "README.md").read_text(encoding="utf-8")
    assert " of 30 texts that the run may have been trained on" in readme
    assert "accuracy" not in readme
    said = call_main("export", place / "bare", *given, "--json", "--out", place / "unknown2")
    cost = json.loads(said.out)["cost"]
    assert cost["trained"] is None and "run" not in cost and cost["rows"] == 30
    more = ("--test", place / "dev.tsv", "--out", place / "vouched")
    said = call_main("export", place / "bare", *given, *more)
    assert said.out.startswith("run     accuracy ") and "does not tell" not in said.err


def test_scores_are_told_where_most_rows_are_new(made):
    place, _ = made
    known = rows(400, seed=5)[:40]
    test = write_table(place / "mixed.tsv", [*known, *rows(60, seed=11)])
    given = ("--format", "static", "--train", place / "train.tsv", "--test", test)
    said = call_main("export", place / "run", *given, "--out", place / "mixed")
    run, student = said.out.splitlines()
    assert run.startswith("run     accuracy ") and student.startswith("student accuracy ")
    assert "macro F1" in student
    assert re.search(r"warning: .*mixed.tsv: found \d+ of 100 rows that the run was tr", said.err)
    readme = (place / "mixed" / "README.md").read_text(encoding="utf-8")
    assert "of these rows: expect less on new texts." in readme


def test_files_are_mended_as_in_training_and_new_rows_are_not_warned_of(made):
    place, _ = made
    odd = [("Pos ", "had lfilm zwin bzaf"), ("neg", ""), ("", "khayb"), ("NEG", "film khayb jdid")]
    test = place / "odd.csv"
    lines = ["label,text", *(f"{label},{text}" for label, text in odd)]
    test.write_text("\n".join(lines) + "\n", encoding="utf-8")
    given = ("--format", "static", "--train", place / "train.tsv", "--test", test)
    said = call_main("export", place / "run", *given, "--out", place / "odd")
    assert said.code == 0 and "trained on" not in said.err, said.err
    assert " of 2 rows; " in said.err


def test_what_numpy_adds_up_is_what_was_trained(tmp_path):
    texts = [text for text in ODD if 0 < len(text.split()) < 1000] + [
        text for _, text in rows(50, seed=9)
    ]
    answers = np.random.default_rng(0).dirichlet([1, 1, 1], len(texts))
    arrays = distil(texts, answers, seed=3, advance=lambda share: None)
    again = distil(texts, answers, seed=3, advance=lambda share: None)
    assert all(np.array_equal(arrays[name], again[name]) for name in arrays)
    other = distil(texts, answers, seed=4, advance=lambda share: None)
    assert not np.array_equal(arrays["A"], other["A"])
    beside = np.ones(len(arrays["table"]), bool)
    beside[Bags(texts).pieces.tokens] = False  # of words that are in no text
    assert beside.any() and not arrays["table"][beside].any()
    save_file(arrays, tmp_path / WEIGHTS)
    facts = {"format": 1, "classes": ["a", "b", "c"], "columns": None}
    files = {WEIGHTS: file_sha256(tmp_path / WEIGHTS)}
    (tmp_path / FACTS).write_text(json.dumps({**facts, "files": files}))
    model = StaticModel(tmp_path)
    ids, begin, weights = Bags(texts).batch(np.arange(len(texts)))
    table = torch.from_numpy(arrays["table"].astype(np.float32))
    found = torch.nn.functional.embedding_bag(
        ids, table, begin, mode="sum", per_sample_weights=weights
    )
    np.testing.assert_allclose(model.features(texts), found.numpy(), atol=1e-5)
    fitted = model.probabilities(texts)
    assert (fitted.argmax(axis=1) == answers.argmax(axis=1)).mean() > 0.9


def test_a_piece_has_the_rows_of_its_own_and_of_its_runs_of_two_to_four_characters():
    """Else a student that was written before would answer otherwise, and without a word."""
    pieces, seen = ["a", "bb", "zwin", "زوين👍🏽", "é" * 9], 0
    for places, parts in hashed(pieces, 17):
        for place, found in zip(places, parts.T, strict=True):
            codes = [ord(character) for character in f" {pieces[place]} "]
            values = [sum(code * 0x01000193 ** (k + 1) for k, code in enumerate(codes))]
            for length in range(2, min(4, len(codes)) + 1):
                for first in range(len(codes) - length + 1):
                    value = 0
                    for code in codes[first : first + length]:
                        value = value * 0x01000193 + code
                    values.append(value)
            assert found.tolist() == [(v * 0x9E3779B9 % (1 << 32)) >> 15 for v in values]
            seen += 1
    assert seen == len(pieces)


def test_many_pieces_are_forgotten_and_answered_the_same(made, monkeypatch):
    from superconext.export import static_model

    place, _ = made
    texts = [text for _, text in rows(200, seed=7)]
    expected = StaticModel(place / "out").probabilities(texts)
    monkeypatch.setattr(static_model, "_REMEMBERED", 7)
    monkeypatch.setattr(static_model, "_PIECES", 2)
    model = StaticModel(place / "out")
    parts = [model.probabilities(texts[first : first + 3]) for first in range(0, 200, 3)]
    assert np.abs(np.concatenate(parts) - expected).max() < 1e-6
    assert len(model._known) < 20


def test_several_threads_get_the_answers_of_one(made):
    place, _ = made
    texts = [f"{text} kalima{k} {k}" for k, (_, text) in enumerate(rows(2000, seed=12))]
    expected = superconext.load(place / "out").predict_proba(texts)
    model = superconext.load(place / "out")
    parts = [range(first, 2000, 40) for first in range(40)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            found = pool.map(lambda part: model.predict_proba([texts[k] for k in part]), parts)
            for part, shares in zip(parts, found, strict=True):
                assert np.abs(shares - expected[[*part]]).max() < 1e-6
    finally:
        sys.setswitchinterval(before)
    assert np.abs(model.predict_proba(texts) - expected).max() < 1e-6
    again = pickle.loads(pickle.dumps(model))
    assert np.abs(again.predict_proba(texts) - expected).max() < 1e-6


def test_a_damaged_student_is_refused(made, tmp_path):
    place, _ = made
    facts = json.loads((place / "out" / FACTS).read_text())
    weights = (place / "out" / WEIGHTS).read_bytes()
    damages = [(FACTS, b"[]"), (FACTS, b"[" * 100_000), (FACTS, b'{"format": 9}')]
    damages.append((WEIGHTS, weights[:-2]))
    for change in (
        {"classes": ["a"]}, {"classes": "ab"}, {"classes": ["a", "a"]}, {"classes": [1, 2]},
        {"classes": ["a", "b", "c"]}, {"columns": "x"}, {"columns": [1, 2]}, {"files": []},
    ):  # fmt: skip
        damages.append((FACTS, json.dumps({**facts, **change}).encode()))
    for name, content in damages:
        for file, whole in ((FACTS, json.dumps(facts).encode()), (WEIGHTS, weights)):
            (tmp_path / file).write_bytes(content if file == name else whole)
        with pytest.raises(RunError, match="export it again"):
            StaticModel(tmp_path)
        said = call_main("predict", tmp_path, stdin=b"a\n")
        assert said.code == 1 and said.err.startswith("error: ")
        assert said.err.count("\n") == 1 and not said.out


def test_the_folder_refuses_edited_facts_in_one_line(made, tmp_path):
    shutil.copytree(made[0] / "out", tmp_path / "copy")
    facts = json.loads((tmp_path / "copy" / FACTS).read_text())
    words = [sys.executable, str(tmp_path / "copy" / "classify.py")]
    for change in ({"columns": "x"}, {"columns": [1, 2]}, {"classes": "ab"}):
        (tmp_path / "copy" / FACTS).write_text(json.dumps({**facts, **change}))
        said = subprocess.run(words, input=b"zwin\n", capture_output=True, check=False)
        assert said.returncode == 1 and not said.stdout
        assert said.stderr.startswith(b"error: ") and said.stderr.count(b"\n") == 1


@pytest.mark.parametrize("name", [FACTS, WEIGHTS])
def test_a_file_that_is_gone_is_named(made, tmp_path, name):
    place, _ = made
    shutil.copytree(place / "out", tmp_path / "copy")
    (tmp_path / "copy" / name).unlink()
    said = call_main("predict", tmp_path / "copy", stdin=b"a\n")
    told = f"{tmp_path / 'copy' / name}: missing; expected a whole export: copy or export it again"
    assert (said.code, said.err.strip()) == (1, f"error: {told}")
    with pytest.raises(RunError, match=f"^{re.escape(told)}$"):
        superconext.load(tmp_path / "copy")


@pytest.mark.parametrize(
    "given",
    [
        ("--format", "static"),
        ("--format", "static", "--train", "x", "--prune", "--test", "y"),
        ("--train", "x"),
        ("--unlabelled", "x"),
    ],
)
def test_options_that_do_not_go_together(made, given):
    place, _ = made
    said = call_main("export", place / "run", *given, "--out", place / "none")
    assert said.code == 2 and "static" in said.err
    assert not (place / "none").exists()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            "id,Post,n\n1,zwin,a\n2\n",
            "a.csv, line 3: found 1 column separated by commas, ",
        ),
        ("a.csv", "pos,zwin\nneg,ok\nkhayb\npos,a\n", "line 3: found 1 column separated by commas"),
        ("a.tsv", "id\tn\tPost\n1\t2\n", "a.tsv, line 2: found 2 columns separated by tabs, exp"),
        (
            "a.csv",
            "sep=;\nid;Post\n1\n",
            "a.csv, line 3: found 1 column separated by semicolons, expect",
        ),
        ("a.csv", "pos,zwin\nneg,khayb, bzaf\n", "a.csv, line 2: found 3 columns separated by"),
    ],
)
def test_a_row_that_lacks_its_text_stops_the_folder_as_it_stops_the_run(
    made, tmp_path, name, content, message
):
    (tmp_path / name).write_text(content, encoding="utf-8")
    said = classify(made, tmp_path / name, "--out", tmp_path / "out.tsv")
    assert said.returncode == 1 and message in said.stderr.decode()
    assert not (tmp_path / "out.tsv").exists()
    assert call_main("predict", made[0] / "out", tmp_path / name).code == 1


@pytest.mark.parametrize(
    ("name", "content", "mark"),
    [
        ("a.csv", "id;Post;n\n1;zwin;a\n2;khayb\n \n\n;;\n", ";"),  # what is short has its text
        ("a.csv", "sep=;\nid;Post\n1;zwin\n2;khayb\n", ";"),
        ("a.csv", "SEP=,\nPost,id\nzwin,1\nkhayb,2\n", ","),
        ("a.csv", "Post|id\nzwin|1\nkhayb|2\n", "|"),
        ("a.csv", "pos;zwin\nneg;khayb\n", ";"),
        ("a.csv", "Post\nzwin; bzaf\n", ","),
        ("a.csv", 'Post\nzwin\n\n"khayb, bzaf"\n""\nok\n\n', ","),
        ("a.csv", "sep=;\nText\n\nzwin\n\nkhayb\n", ";"),
        ("a.tsv", "Post\nzwin\n\nkhayb\n", ","),
        ("a.tsv", "Post\tid\nzwin\t1\n", ","),
        ("a.csv", "\n\nPost,id\nzwin,1\n", ","),
        ("a.csv", "\n\nPost\n\nzwin\n", ","),
        ("a.csv", "\n\nzwin\n\nkhayb\n", ","),
        ("a.tsv", 'id\tPost\n1\t"zwin ""bzaf"""\n2\t"khayb\nbla"\n3\tok\n', ","),
        ("a.tsv", '"id"\tPost\n1\t"zwin"\n2\t"khayb" bzaf\n', ","),
        ("a.tsv", '"id"\t"text"\n1\t"zwin"\n2\t"khayb\tbzaf"\n', ","),
        ("a.tsv", 'id\tPost\n1\t"zwin"\n2\t"khayb"\n', ","),
        ("a.txt", "__label__pos zwin bzaf\n\n__label__neg khayb\n", ","),
        ("a.tsv", "__label__pos\tzwin bzaf\n__label__neg\tkhayb\n", ","),
        ("a", "__label__pos zwin\n", ","),
        ("a.txt", 'id\tPost\n1\t"zwin ""bzaf"""\n2\t"khayb\nbla"\n', ","),
    ],
)
def test_the_folder_reads_and_writes_tables_as_the_run_does(made, tmp_path, name, content, mark):
    (tmp_path / name).write_text(content, encoding="utf-8")
    out, expected = tmp_path / "labels.csv", tmp_path / "expected.csv"
    said = classify(made, tmp_path / name, "--out", out)
    assert said.returncode == 0, said.stderr
    assert out.read_text(encoding="utf-8-sig").startswith(f"label{mark}text\n")
    said = call_main("predict", made[0] / "out", tmp_path / name, "--out", expected)
    assert said.code == 0 and out.read_bytes() == expected.read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "texts"),
    [
        ("a.jsonl", '{"text": "zwin"}\n{"text": "khayb", "n": 1}\n', ["zwin", "khayb"]),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nzwin bzaf\n\n", ["zwin bzaf"]),
        ("a.csv", "My export,,\nid,text,n\n1,zwin bzaf,2\n2,khayb,3\n", ["zwin bzaf", "khayb"]),
        ("a.txt", "[01/02/2024, 10:00:00] Ali: zwin bzaf\n" * 3, ["zwin bzaf"] * 3),
        ("a.csv", "id,comment\n1,zwin bzaf\n", ["zwin bzaf"]),
    ],
)
def test_the_folder_reads_every_format_that_the_run_reads(made, tmp_path, name, content, texts):
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")
    said = classify(made, file)
    assert said.returncode == 0, said.stderr
    assert [row.split("\t")[1] for row in said.stdout.decode().splitlines()] == texts
    run = call_main("predict", made[0] / "out", file)
    assert run.code == 0 and run.out == said.stdout.decode()


def by_a_word():
    """What stands for a model, which tells by a word."""

    def probabilities(some):
        return np.array([[0.2, 0.8] if "zwin" in text else [0.9, 0.1] for text in some])

    return SimpleNamespace(
        classes=["neg", "pos"],
        columns=None,
        config=SimpleNamespace(seed=0),
        probabilities=probabilities,
    )


@pytest.mark.parametrize(
    ("trained", "told"), [(0, True), (1, True), (2, False), (3, False), (None, False)]
)
def test_scores_are_told_where_less_than_half_was_trained_on(tmp_path, monkeypatch, trained, told):
    monkeypatch.setattr(static_folder, "_STEPS", 2)
    dev = Dataset(["zwin bzaf", "khayb bzaf", "zwin", "khayb"], ["pos", "neg", "neg", "neg"])
    texts = ["had zwin", "had khayb"]
    found = write_static(by_a_word(), tmp_path, texts, dev, Progress(), trained=trained)
    assert found["trained"] == trained and found["rows"] == 4
    assert ("run" in found, "student" in found) == (told, told)
    assert not told or found["run"]["accuracy"] == 0.75


@pytest.mark.parametrize(("texts", "rows"), [([], ["a"]), (["a"], ["a"]), (["a"], [])])
def test_without_texts_to_learn_from_and_rows_to_measure_on_there_is_no_student(
    tmp_path, texts, rows
):
    with pytest.raises(DataError, match="expected some of both"):
        write_static(by_a_word(), tmp_path, texts, Dataset(rows, ["pos"] * len(rows)), Progress())
    assert not list(tmp_path.iterdir())


def test_a_student_does_not_learn_from_what_it_is_measured_on(tmp_path, monkeypatch):
    learned, distil = [], static_folder.distil

    def watched(texts, *others):
        learned.extend(texts)
        return distil(texts, *others)

    monkeypatch.setattr(static_folder, "distil", watched)
    monkeypatch.setattr(static_folder, "_STEPS", 2)
    texts = [f"{word} number {k}" for k in range(10) for word in ("zwin", "khayb")]
    dev = Dataset([*texts[:4], "a new one"], ["pos", "neg", "pos", "neg", "pos"])
    alike = ["ZWIN  number 0 ", "khayb number  1"]  # texts of dev, written otherwise
    told = write_static(by_a_word(), tmp_path, [*texts, *alike, texts[5], " "], dev, Progress())
    assert learned == texts[4:]
    assert told["learned"] == 16 and told["rows"] == 5


def test_weights_that_are_not_those_listed_and_another_format_are_refused(tmp_path, monkeypatch):
    """Also where the file is whole, and all that this version would read of the facts is there."""
    monkeypatch.setattr(static_folder, "_STEPS", 2)
    monkeypatch.setattr(static_folder, "epochs_of", lambda rows: 1)
    dev = Dataset(["zwin bzaf", "khayb bzaf"], ["pos", "neg"])
    write_static(by_a_word(), tmp_path, ["had zwin", "had khayb"], dev, Progress())
    whole = (tmp_path / WEIGHTS).read_bytes()
    (tmp_path / WEIGHTS).write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(RunError, match=f"{WEIGHTS} is not what {FACTS} lists"):
        StaticModel(tmp_path)
    (tmp_path / WEIGHTS).write_bytes(whole)
    facts = json.loads((tmp_path / FACTS).read_text(encoding="utf-8"))
    (tmp_path / FACTS).write_text(json.dumps({**facts, "format": 2}), encoding="utf-8")
    with pytest.raises(RunError, match="format 2, this version reads 1"):
        StaticModel(tmp_path)


@pytest.mark.parametrize("name", ["table", "A", "a", "B", "b"])
def test_arrays_that_do_not_fit_together_are_refused(tmp_path, name):
    shapes = {"table": (16, 3), "A": (3, 4), "a": (4,), "B": (4, 2), "b": (2,)}

    def written(shapes):
        arrays = {key: np.ones(shape, np.float32) for key, shape in shapes.items()}
        save_file(arrays, tmp_path / WEIGHTS)
        facts = {"format": 1, "classes": ["a", "b"], "columns": None}
        files = {WEIGHTS: file_sha256(tmp_path / WEIGHTS)}
        (tmp_path / FACTS).write_text(json.dumps({**facts, "files": files}), encoding="utf-8")
        return StaticModel(tmp_path)

    assert np.allclose(written(shapes).probabilities(["zwin"]), 0.5)
    *rows, last = shapes[name]
    with pytest.raises(RunError, match="holds arrays that do not fit together"):
        written({**shapes, name: (16, last + 1) if name == "table" else (last + 5, *rows)})


def test_of_a_piece_64_characters_are_read():
    """Else a student that was written before would answer otherwise, and without a word."""
    letters = "abcdefghijklmnopqrstuvwxyz" * 3
    pieces = [letters[:64], letters[:65], letters[:70], letters[:63]]
    found = {}
    for places, parts in hashed(pieces, 17):
        found |= {
            place: rows.tolist() for place, rows in zip(places.tolist(), parts.T, strict=True)
        }
    assert found[0] == found[1] == found[2] and len(found[0]) == 1 + 65 + 64 + 63
    assert len(found[3]) == len(found[0]) - 3


def test_a_student_is_learned_at_a_falling_rate_in_a_new_order_and_leaves_chance_alone(monkeypatch):
    rates, orders, plain = [], [], static_folder.Bags.batch

    class Watched(torch.optim.Adam):
        def step(self, *given):
            rates.append(self.param_groups[0]["lr"])
            return super().step(*given)

    monkeypatch.setattr(torch.optim, "Adam", Watched)
    monkeypatch.setattr(static_folder, "_STEPS", 4)
    monkeypatch.setattr(static_folder, "epochs_of", lambda rows: 1)
    monkeypatch.setattr(
        static_folder.Bags, "batch", lambda own, rows: orders.append(rows) or plain(own, rows)
    )
    texts, answers = [f"zwin {k}" for k in range(40)], np.full((40, 2), 0.5)
    before = torch.get_rng_state()
    arrays = distil(texts, answers, seed=3, advance=lambda share: None)
    assert torch.equal(torch.get_rng_state(), before)
    assert rates == pytest.approx([static_folder._RATE * share for share in (1, 0.75, 0.5, 0.25)])
    assert len({tuple(rows.tolist()) for rows in orders}) == 4
    assert all(sorted(rows.tolist()) == list(range(40)) for rows in orders)
    kinds = {name: array.dtype for name, array in arrays.items()}
    assert kinds == {"table": np.float16, **dict.fromkeys("AaBb", np.float32)}


def test_of_a_long_file_every_row_is_beside_its_own_label(made, tmp_path):
    """Of several blocks, each answered in several parts; the name of the file in capitals."""
    file, out = tmp_path / "many.csv", tmp_path / "LABELS.CSV"
    lines = [f"{k},{('zwin', 'khayb')[k % 3 == 0]} {k}\n" for k in range(5000)]
    file.write_text("id,text\n" + "".join(lines), encoding="utf-8")
    said = classify(made, file, "--keep", "id", "--out", out)
    assert said.returncode == 0, said.stderr
    assert said.stderr.decode().splitlines()[-1] == f"{out}: 5000 rows"
    head, *found = out.read_text(encoding="utf-8-sig").splitlines()
    assert head == "label,text,id" and out.read_bytes().startswith(b"\xef\xbb\xbf")
    rows = [row.split(",") for row in found]
    assert [row[2] for row in rows] == [row[1].split()[1] for row in rows]
    assert [row[2] for row in rows] == [str(k) for k in range(5000)]
    expected = StaticModel(made[0] / "out").predict([row[1] for row in rows])
    assert [row[0] for row in rows] == expected.tolist() and len({*expected}) == 2


def test_a_closed_pipe_is_no_success(made, tmp_path):
    file = tmp_path / "many.txt"
    file.write_text("zwin bzaf\n" * 20_000, encoding="utf-8")
    words = [sys.executable, str(made[0] / "out" / "classify.py"), str(file)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(60) == 1


def test_the_service_of_a_folder_names_the_package_that_it_lacks(made):
    program = (
        "import sys\nsys.modules['starlette'] = None\nsys.argv = ['serve.py']\n"
        f"sys.path[:0] = [{str(made[0] / 'out')!r}]\nimport serve\nserve.main()\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    told = b"error: found no starlette; expected it: pip install starlette"
    assert said.returncode == 1 and said.stderr.startswith(told)


@pytest.mark.parametrize("more", [(), ("--text-column", "Post", "--label-column", "Label")])
def test_unlabelled_tables_are_read_by_the_column_of_training(made, tmp_path, monkeypatch, more):
    learned, distil = [], static_folder.distil
    monkeypatch.setattr(
        static_folder, "distil", lambda texts, *rest: learned.extend(texts) or distil(texts, *rest)
    )
    monkeypatch.setattr(static_folder, "_STEPS", 2)
    table = tmp_path / "more.csv"
    table.write_text("id,Post,text\n1,zwin jdid,a remark\n", encoding="utf-8")
    given = ("--train", made[0] / "train.tsv", "--unlabelled", table, *more)
    said = call_main(
        "export", made[0] / "run", "--format", "static", *given, "--out", tmp_path / "o"
    )
    assert said.code == 0, said.err
    assert "zwin jdid" in learned and "a remark" not in learned


def test_the_program_tells_of_late_columns_and_of_no_folder(made, tmp_path):
    rows = [{"text": f"zwin {k}", "id": str(k)} for k in range(9_000)]
    rows[-1]["late"] = "x"
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    said = classify(made, path, "--keep", "all", "--out", tmp_path / "found.csv")
    assert said.returncode == 0 and b"left out: late (line 9000)" in said.stderr
    said = classify(made, path, "--out", tmp_path / "none" / "found.csv")
    assert said.returncode == 1 and b"found no folder" in said.stderr
