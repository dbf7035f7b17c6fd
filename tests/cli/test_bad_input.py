"""Whatever is wrong: exit 1, one line that says so, and nothing left behind."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time

import pytest

from superconext import load
from superconext.core.errors import RunError
from superconext.data import lines
from tests.cli.conftest import blame, rows, write_table

SOME = rows(16, seed=3)


@pytest.fixture
def refused(call, data, tmp_path):
    """Train on what is in `tmp_path`, expect a refusal with no trace, return its line."""

    def run(train, *words, out="run"):
        before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
        below = sorted(tmp_path.rglob("*"))
        small = (*data.small, "--no-baselines")
        line = blame(call("train", train, "--out", tmp_path / out, *small, *words))
        assert sorted(tmp_path.rglob("*")) == below
        assert all(path.stat().st_mtime_ns == then for path, then in before.items())
        return line

    return run


# The labelled file


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ["is empty"]),
        (b" \n\t\n  \n", ["is empty"]),
        (b"label\ttext\n", ["a header and no rows"]),
        (b"id\tfraz\tscore\n1\tzwin\tgood\n", ["'text'", "'id', 'fraz', 'score'"]),
        (b"label\tphrase\ttweet\nneg\tzwin\t-\n", ["'phrase', 'tweet'", "--text-column"]),
        (b"label\ttext\nneg\tzwin\nneg\tbnin\n", ["one class only", "'neg'", "2 rows"]),
        (b"label\ttext\nneg\tzwin\npos\tkan\n", ["2 rows are too few"]),
        (b"label\ttext\nneg\tzwin\npos\t\npos\tkan\n", ["line 3", "empty text"]),
        (b"label\ttext\nneg\tzwin\n \tbnin\npos\tkan\n", ["line 3", "empty label"]),
        (b"label\ttext\nneg\tzwin\npos\tcaf\xe9 bnin\n", ["line 3", "0xe9", "UTF-8"]),
        (b"label\ttext\nneg\tzwin\npos\tbn\0in\n", ["line 3", "NUL"]),
        (b"label\ttext\nneg\nneg\tzwin\n", ["line 2", "1 column"]),
        ("label\ttext\nneg\tzwin\n".encode("utf-16")[:-1], ["line 2", "utf-16"]),
        (b"\x1f\x8b\x08broken", ["broken gzip"]),
    ],
)
def test_a_file_that_cannot_be_trained_on(refused, tmp_path, content, said):
    (tmp_path / "train.tsv").write_bytes(content)
    line = refused(tmp_path / "train.tsv")
    assert "train.tsv" in line
    assert all(part in line for part in said), line


PAGE = "\ufeff\n<!-- a, b -->\n<!DOCTYPE html>\n<html><head>\n<title>train.csv</title>\n</html>\n"
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.txt", "x.jsonl", "x.parquet", "x.xlsx"])
@pytest.mark.parametrize(
    ("content", "what"), [(PAGE, "a web page (HTML)"), (POINTER, "a Git LFS pointer")]
)
def test_what_a_download_left_in_place_of_the_file(
    call, finished, data, tmp_path, name, content, what
):
    (path := tmp_path / name).write_text(content, encoding="utf-8")
    run = finished.folder
    out = ("--out", tmp_path / "run")
    for words in (
        *(("predict", run, path), ("evaluate", run, path), ("suggest", run, path)),
        *(("train", path, *out), ("data", "inspect", path), ("audit", path)),
        ("train", data.train, "--unlabelled", path, *out, "--epochs", "1"),
    ):
        assert f"{name}: found {what}" in blame(call(*words))
    assert f"found {what}" in blame(call("predict", run, stdin=content.encode()))


OTHER_KINDS = {
    "an image (PNG)": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "an image (JPEG)": b"\xff\xd8\xff\xe0\0\x10JFIF\0",
    "an image (GIF)": b"GIF89a\x01\0\x01\0",
    "an image (WebP)": b"RIFF\n\0\n\0WEBPVP8 ",
    "a PDF": b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n",
    "audio (MP3)": b"ID3\x04\0\0\0\0\x02",
    "audio (WAV)": b"RIFF$\x08\0\0WAVEfmt ",
    "audio or video (MP4)": b"\0\0\0\x20ftypisom",
    "an old Office file (.xls)": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0",
    "data of SPSS, Stata or SAS": b"$FL2@(#) SPSS DATA FILE\0",
    "data of HDF5 or R": b"\x89HDF\r\n\x1a\n",
    "a pickle": b"\x80\x04\x95\0",
    "a packed file": b"7z\xbc\xaf\x27\x1c\0\x04",
}


@pytest.mark.parametrize("name", ["x.csv", "x.txt", "x.png", "x.xlsx"])
@pytest.mark.parametrize("what", OTHER_KINDS)
def test_a_file_of_another_kind_is_called_what_it_is(call, finished, tmp_path, name, what):
    (path := tmp_path / name).write_bytes(OTHER_KINDS[what] + bytes(range(256)) * 20)
    out = ("--out", tmp_path / "made")
    encoding = ("--encoding", "windows-1252")
    for words in (
        *(
            ("train", path, *out),
            ("train", path, *out, *encoding),
            ("vectors", "train", path, *out),
        ),
        *(("data", "inspect", path), ("predict", finished.folder, path, *encoding)),
    ):
        assert f"{name}: found {what}, expected a table or text: " in blame(call(*words))


def test_a_text_that_begins_as_an_image_does_is_a_text(call, finished, tmp_path):
    lines = ["GIF89a is a format", "BM had lfilm zwin", "ID3 kan", "fLaC"]
    for line in lines:
        (path := tmp_path / "x.txt").write_text(f"{line}\nkhayb\n", encoding="utf-8")
        said = call("predict", finished.folder, path)
        assert said.code == 0 and said.out.count("\n") == 2, said.err


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("id,text", "{n},{text}"),
        ("user_id,tweet", "17,{text}"),
        ("text,date", "{text},2021-03-0{n}"),
        ("tweet,uuid", "{text},a{n}"),
        ("text,key", "{text},k{n}"),
        ("id,tweet,date", "{n},{text},2021-03-01"),
        ("user,tweet,created_at", "u1,{text},2021-03-01"),
        ("text", "{text}"),
    ],
)
def test_a_file_without_labels(refused, call, finished, tmp_path, header, row):
    lines = [row.format(n=n, text=text) for n, (_, text) in enumerate(rows(30, seed=5))]
    (path := tmp_path / "x.csv").write_text("\n".join([header, *lines]), encoding="utf-8")
    line = refused(path)
    assert "no column 'label'" in line and "--label-column" in line and "suggest" in line
    assert all(f"'{name}'" in line for name in header.split(","))
    said = call("predict", finished.folder, path)
    assert said.code == 0 and "read as label" not in said.err, said.err
    assert [row.split("\t")[1] for row in said.out.splitlines()] == [t for _, t in rows(30, 5)]


def test_a_file_without_labels_or_header(refused, call, finished, tmp_path):
    lines = [f"{n}\t{text}" for n, (_, text) in enumerate(rows(30, seed=5))]
    (path := tmp_path / "x.tsv").write_text("\n".join(lines), encoding="utf-8")
    line = refused(path)
    assert "no header in '0'" in line and "--label-column by number" in line and "suggest" in line
    said = call("predict", finished.folder, path)
    assert [row.split("\t")[1] for row in said.out.splitlines()] == [t for _, t in rows(30, 5)]


def test_a_file_that_is_not_there_or_no_file(refused, tmp_path):
    assert "no such file" in refused(tmp_path / "none.tsv")
    assert "directory" in refused(tmp_path)


def test_columns_that_are_not_there(refused, tmp_path):
    train = write_table(tmp_path / "train.tsv", SOME)
    line = refused(train, "--label-column", "sentiment")
    assert "no column 'sentiment'" in line and "found 'label', 'text'" in line
    assert "no column number 7" in refused(train, "--text-column", "7")


def test_too_few_rows_to_hold_any_back(refused, call, data, tmp_path):
    few = [("neg", "khayb"), ("neg", "ghali"), ("pos", "zwin"), ("pos", "bnin")]
    train = write_table(tmp_path / "train.tsv", few)
    assert "4 rows are too few" in refused(train, "--cv", "0")
    train = write_table(tmp_path / "two.tsv", few[1:3])
    assert "2 rows are too few" in refused(train) and "--dev" in refused(train)
    assert "in 2 rows, expected two such classes for a score" in refused(train, "--cv", "3")
    words = ("--dev", data.dev, "--out", tmp_path / "run", "--no-baselines", *data.small)
    assert call("train", train, *words).code == 0


def test_the_other_files(refused, data, tmp_path):
    train = write_table(tmp_path / "train.tsv", SOME)
    for flag in ("--dev", "--test"):
        assert "none.tsv: no such file" in refused(train, flag, tmp_path / "none.tsv")
    strange = write_table(tmp_path / "dev.tsv", [("a", "zwin bzaf"), ("b", "khayb had")])
    line = refused(train, "--dev", strange)
    assert "no dev row has a label of the training data" in line and "'neg', 'pos'" in line


def test_stray_spaces_around_labels_are_stripped_with_a_note(call, data, tmp_path):
    spaced = [(f" {label}" if i % 3 else label, text) for i, (label, text) in enumerate(SOME)]
    train = write_table(tmp_path / "train.tsv", spaced)
    said = call("train", train, "--out", tmp_path / "run", "--no-baselines", *data.small)
    assert said.code == 0 and "note: " in said.err and "stray spaces stripped from 10" in said.err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["data"]["train"]["classes"]) == {"neg", "pos"}


def test_lines_of_a_million_characters_are_no_trouble(call, data, tmp_path):
    table = [*SOME, ("pos", "zwin bzaf " * 100_000), ("neg", "خ" * 1_000_000)]
    train = write_table(tmp_path / "train.tsv", table)
    started = time.process_time()
    said = call(
        "train", train, "--out", tmp_path / "run", "--no-baselines", "--cv", "0", *data.small
    )
    assert said.code == 0, said.err
    assert call("predict", tmp_path / "run", train).out.count("\n") == 18
    # Quadratic time would be many minutes.
    assert time.process_time() - started < 30


# Vectors, unlabelled text, parameters


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"zwin khayb bnin\nhad lfilm kan\n",
        b"3 8\nzwin 0.1 0.2\nbnin 0.1 0.3\nkan 1 2\n",
        b"zwin 0.1 nan\nbnin inf 0.3\n",
        bytes(range(256)) * 8,
        b"\x1f\x8b\x08broken",
        b"PK\x03\x04broken",
        b"\x80\x04\x95broken",
    ],
)
def test_vectors_that_cannot_be_read(refused, tmp_path, content):
    train = write_table(tmp_path / "train.tsv", SOME)
    (tmp_path / "vectors.txt").write_bytes(content)
    assert "vectors.txt" in refused(train, "--vectors", tmp_path / "vectors.txt")


def test_vectors_that_are_not_there_or_something_else(refused, tmp_path):
    train = write_table(tmp_path / "train.tsv", SOME)
    assert "none.vec: no such file" in refused(train, "--vectors", tmp_path / "none.vec")
    assert "train.tsv" in refused(train, "--vectors", train)
    (tmp_path / "folder").mkdir()
    assert "folder" in refused(train, "--vectors", tmp_path / "folder")


def test_vectors_of_other_words_still_serve_for_noise(call, data, tmp_path):
    train = write_table(tmp_path / "train.tsv", SOME)
    (tmp_path / "vectors.txt").write_text("the 0.1 0.2 0.3\nof 0.3 0.1 0.5\n")
    words = ("--no-baselines", *data.small, "--vectors", tmp_path / "vectors.txt")
    said = call("train", train, "--out", tmp_path / "run", *words)
    assert said.code == 0, said.err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["vectors"]["coverage"] == 0 and manifest["vectors"]["dimension"] == 3
    assert "found vectors for only 0.0% of the words" in said.err


@pytest.mark.parametrize(
    "numbers,what", [("0 0 0", "one vector for every word"), ("1e30 1 {}", "numbers up to 1e+30")]
)
def test_a_file_of_no_word_vectors_is_refused(refused, tmp_path, numbers, what):
    train = write_table(tmp_path / "train.tsv", SOME)
    words = {word for _, text in SOME for word in text.split()}
    rows = [f"{word} {numbers.format(n)}" for n, word in enumerate(sorted(words))]
    (tmp_path / "vectors.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    said = refused(train, "--vectors", tmp_path / "vectors.txt")
    assert f"found {what}, expected word vectors" in said


def test_unlabelled_text_that_is_not_there(call, data, tmp_path):
    small = [word for word in data.small if word not in ("--vectors", str(data.vectors))]
    words = ("--unlabelled", tmp_path / "none.txt", "--no-baselines", *small)
    line = blame(call("train", data.train, "--out", tmp_path / "run", *words))
    assert "none.txt: no such file" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("device", ["nonsense", "cuda:99", "", "tpu"])
def test_a_device_that_is_not_there(refused, data, device):
    assert f"device = '{device}'" in refused(data.train, "--device", device)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("hiden_size = 8\n", ["unknown parameter 'hiden_size'", "did you mean 'hidden_size'?"]),
        ("epochs = 'two'\n", ["epochs", "whole number"]),
        ("epochs = 0\n", ["epochs = 0", "at least 1"]),
        ("objective = 'superlos'\n", ["did you mean 'superloss'?"]),
        ("epochs\n", ["not valid TOML"]),
        ("[training]\nepochs = 1\n", ["found a table under 'training'", "expected name = value"]),
    ],
)
def test_a_configuration_that_cannot_be_used(refused, data, tmp_path, content, said):
    (tmp_path / "run.toml").write_text(content, encoding="utf-8")
    line = refused(data.train, "--config", tmp_path / "run.toml")
    assert all(part in line for part in said), line


def test_a_configuration_that_is_not_there(refused, data, tmp_path):
    assert "none.toml" in refused(data.train, "--config", tmp_path / "none.toml")


# The place of the run


def test_a_place_that_cannot_be_written(refused, call, data, tmp_path):
    (tmp_path / "file").touch()
    assert "file" in refused(data.train, out="file/run")
    assert "file exists already" in refused(data.train, out="file")
    assert "too long" in refused(data.train, out="n" * 300).lower()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write")
def test_a_folder_without_leave_to_write(refused, data, tmp_path):
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked").chmod(0o500)
    assert "permission" in refused(data.train, out="locked/run").lower()
    (tmp_path / "locked").chmod(0o700)


def test_a_run_that_is_not_there_cannot_be_resumed(call, finished, tmp_path):
    none = tmp_path / "none"
    for folder, found in ((none, "no such folder"), (finished.folder, "no checkpoint found")):
        line = blame(call("train", "--resume", folder))
        assert f"{folder}: {found}; expected a run that was stopped while its" in line
        assert "(of a cross-validation nothing is kept): start a new one" in line
    assert not list(tmp_path.iterdir())


# A run folder that is missing or damaged


def change(folder, name, content):
    """Put other content in a file of the run and its new hash into the manifest."""
    (folder / name).write_text(content, encoding="utf-8")
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def edit_manifest(folder, **values):
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, **values}), encoding="utf-8")


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "gone": (lambda run: shutil.rmtree(run), ["no such folder"]),
    "a file": (lambda run: (shutil.rmtree(run), run.touch()), ["found a file"]),
    "no manifest": (lambda run: (run / "manifest.json").unlink(), ["no manifest.json"]),
    "half a manifest": (lambda run: (run / "manifest.json").write_text('{"for'), ["not a JSON"]),
    "a list": (lambda run: (run / "manifest.json").write_text("[1]"), ["a JSON list"]),
    "no format": (lambda run: edit_manifest(run, format="one"), ["no format number"]),
    "newer": (lambda run: edit_manifest(run, format=99), ["format 99", "install a newer"]),
    "no hashes": (lambda run: edit_manifest(run, files=[1]), ["manifest.json", "hashes"]),
    "flipped bit": (lambda run: flip(run / "encoder.safetensors"), ["encoder.safetensors"]),
    "truncated": (lambda run: os.truncate(run / "probe.safetensors", 50), ["probe.safetensors"]),
    "emptied": (lambda run: os.truncate(run / "vectors.safetensors", 0), ["vectors.safetensors"]),
    "no config": (lambda run: (run / "config.toml").unlink(), ["config.toml", "missing"]),
    "other words": (lambda run: change(run, "vocabulary.json", "[]"), ["vocabulary.json"]),
    "no words": (lambda run: change(run, "vocabulary.json", "{}"), ["do not fit together"]),
    "odd words": (
        lambda run: change(
            run,
            "vocabulary.json",
            (run / "vocabulary.json").read_text(encoding="utf-8").replace('"classes": [', '"x": ['),
        ),
        ["do not fit together"],
    ),
    "other parameters": (
        lambda run: change(
            run,
            "config.toml",
            (run / "config.toml").read_text(encoding="utf-8").replace("_size = 8", "_size = 9"),
        ),
        ["do not fit together"],
    ),
    "unknown parameter": (lambda run: change(run, "config.toml", "x = 1\n"), ["'x'"]),
    "no tensors": (lambda run: change(run, "encoder.safetensors", "no"), ["do not fit together"]),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run(call, finished, tmp_path, damage):
    run = tmp_path / "run"
    shutil.copytree(finished.folder, run, ignore=shutil.ignore_patterns("figures"))
    harm, said = DAMAGES[damage]
    harm(run)
    lines = [
        blame(call("predict", run, finished.data.test)),
        blame(call("evaluate", run, finished.data.test, "--json")),
        blame(call("embed", run, finished.data.test, "--out", tmp_path / "vectors.npy")),
    ]
    assert len(set(lines)) == 1 and str(run) in lines[0]
    assert all(part in lines[0] for part in said), lines[0]
    assert {path.name for path in tmp_path.iterdir()} <= {"run"}


def test_files_beyond_the_model_are_not_needed(call, finished, tmp_path):
    run = tmp_path / "moved"
    kept = shutil.ignore_patterns("figures", "*.csv", "README.md", "metrics.json", "*.tsv")
    shutil.copytree(finished.folder, run, ignore=kept)
    expected = call("predict", finished.folder, finished.data.test)
    assert call("predict", run, finished.data.test) == expected


# What a run is asked about


def test_a_name_in_an_error_is_no_command_to_the_terminal(call):
    said = call("train", "a\x1b[2Jb.tsv", "--out", "c")
    assert said.code == 1 and "\x1b" not in said.err and "\\u001b[2Jb.tsv" in said.err


@pytest.mark.parametrize("verb", ["predict", "evaluate", "embed"])
def test_a_file_to_use_that_is_not_there_or_empty(call, finished, tmp_path, verb):
    more = ["--out", tmp_path / "vectors.npy"] if verb == "embed" else []
    assert "none.tsv: no such" in blame(call(verb, finished.folder, tmp_path / "none.tsv", *more))
    empty = tmp_path / "empty.tsv"
    empty.touch()
    assert "empty" in blame(call(verb, finished.folder, empty, *more))
    assert list(tmp_path.iterdir()) == [empty]


def test_standard_input_that_is_empty_or_not_text(call, finished):
    assert f"{lines.STDIN_NAME} is empty" in blame(call("predict", finished.folder))
    line = blame(call("predict", finished.folder, "-", stdin=b"zwin\n\xff\n"))
    assert f"{lines.STDIN_NAME}, line 2" in line


def test_evaluating_needs_labels(call, finished, tmp_path):
    plain = tmp_path / "plain.tsv"
    plain.write_text("text\nzwin bzaf\n", encoding="utf-8")
    assert "'label'" in blame(call("evaluate", finished.folder, plain))


def test_vectors_are_not_written_into_a_folder_that_is_not_there(call, finished, tmp_path):
    out = tmp_path / "none" / "vectors.npy"
    assert "found no folder" in blame(
        call("embed", finished.folder, finished.data.test, "--out", out)
    )
    assert not list(tmp_path.iterdir())


def test_debug_shows_the_traceback_and_the_line(call, tmp_path):
    said = call("predict", tmp_path / "none", "--debug")
    assert said.code == 1 and said.err.startswith("Traceback")
    assert said.err.splitlines()[-1].startswith("error: ")


FOLDERS = {
    "above": (lambda f: f.joinpath("inside").mkdir(), "found no manifest.json"),
    "runs": (None, "in it; expected a run or an exported folder: name one of these"),
    "sentences": (lambda f: f.joinpath("modules.json").touch(), "a sentence-transformers model"),
    "comparison": (lambda f: f.joinpath("results.jsonl").touch(), "of a comparison, which keeps"),
    "stopped": (lambda f: f.joinpath("checkpoint").mkdir(), "superconext train --resume "),
    "encoder": (lambda f: f.joinpath("encoder.json").touch(), "superconext train FILE --init "),
}


@pytest.mark.parametrize("kind", FOLDERS)
def test_a_folder_that_is_no_run_is_called_what_it_is(call, finished, tmp_path, kind, monkeypatch):
    make, said = FOLDERS[kind]
    folder = tmp_path / "folder"
    folder.mkdir()
    make(folder) if make else shutil.copytree(finished.folder, folder / "one")
    line = blame(call("predict", folder, finished.data.test))
    assert said in line and ("--resume" in line) is (kind == "stopped")
    assert str(folder / "one") in line or kind != "runs"
    monkeypatch.chdir(folder)
    for name in (folder, "."):
        with pytest.raises(RunError, match="expected a run made by superconext train"):
            load(name)


@pytest.mark.parametrize("verb", ["predict", "evaluate", "embed", "report", "suggest"])
@pytest.mark.parametrize("mark", ["manifest.json", "classify.py"])
def test_a_file_before_the_run_is_to_be_swapped(call, data, tmp_path, verb, mark):
    run = tmp_path / "my run"
    run.mkdir()
    more = ["--out", tmp_path / "x.npy"] if verb == "embed" else []
    said = call(verb, data.test, run, *more)
    assert "swap" not in said.err  # it is no run
    (run / mark).write_text("{}", encoding="utf-8")
    said = call(verb, data.test, run, *more)
    assert said.code == 2 and not said.out and "Traceback" not in said.err
    told = f"before the run {run}; expected the run first: swap them: superconext {verb} '{run}' "
    assert said.err.rstrip().endswith(f"{told}{data.test}")
    assert "swap" not in call(verb, run, data.test, *more).err
    if verb == "evaluate":
        told = call(verb, data.test, run, run).err
        assert told.rstrip().endswith(f"superconext {verb} '{run}' '{run}' {data.test}")


def test_an_export_without_its_model_is_called_so(call, finished, tmp_path):
    (tmp_path / "classify.py").touch()
    said = "neither model.onnx nor static.json found; expected a whole export: copy or export"
    for words in (["predict"], ["evaluate"], ["embed", "--out", tmp_path / "x.npy"]):
        assert said in blame(call(words[0], tmp_path, finished.data.test, *words[1:]))
    with pytest.raises(RunError, match=said):
        load(tmp_path)
    line = blame(call("report", tmp_path))
    assert "found an export, which predict, evaluate, embed and serve read" in line
