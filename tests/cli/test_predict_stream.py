"""`superconext predict` on files of any size, with bad lines, and with nothing to say."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import subprocess
import sys
import tracemalloc
from contextlib import redirect_stdout

import numpy as np
import pytest

from superconext.cli.use import write_predictions
from superconext.data.columns import Known
from superconext.data.reading import RowStream
from superconext.runs.folder import load_model
from tests.cli.conftest import environment, rows


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """More texts than one chunk of a quarter of a megabyte holds."""
    path = tmp_path_factory.mktemp("many") / "many.txt"
    texts = [f"{text} {i}" for i in range(200) for _, text in rows(40, seed=i)]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    assert path.stat().st_size > 300_000
    return path, texts


def test_a_large_file_keeps_its_order_and_gets_the_models_labels(call, finished, many):
    path, texts = many
    said = call("predict", finished.folder, path)
    assert said.code == 0, said.err
    told = [line.split("\t") for line in said.out.splitlines()]
    assert [text for _, text in told] == texts
    assert [label for label, _ in told] == load_model(finished.folder).predict(texts)
    document = json.loads(call("predict", finished.folder, path, "--json").out)
    assert [[row["label"], row["text"]] for row in document] == told


@pytest.mark.long
@pytest.mark.parametrize("form", ["rows", "json", "proba"])
def test_memory_does_not_grow_with_the_file(finished, tmp_path, form):
    model, words = load_model(finished.folder), ["zwin", "bzaf", "had", "film", "khayb", "walo"]

    def peak(count: int) -> int:
        path = tmp_path / f"{count}.txt"
        draw = random.Random(0)
        with path.open("w", encoding="utf-8") as stream:
            for _ in range(count):
                stream.write(" ".join(draw.choices(words, k=6)) + "\n")
        with (tmp_path / "out").open("w", encoding="utf-8") as out, redirect_stdout(out):
            tracemalloc.start()
            write_predictions(
                model, RowStream(path, labelled=False), form == "json", form == "proba"
            )
            _, highest = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        return highest

    peak(100)  # what is made at first use
    # A block is of 4,096 texts, and the file is read in quarters of a megabyte.
    assert peak(36_000) < 1.2 * peak(12_000)


def test_a_pipe_is_answered_before_it_ends(finished):
    with subprocess.Popen(
        [sys.executable, "-m", "superconext", "predict", str(finished.folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for text in ("zwin bzaf", "khayb"):
            process.stdin.write(f"{text}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode().rstrip().split("\t")[1] == text
        process.stdin.close()
        assert process.wait() == 0


BAD = "label\ttext\nneg\tkhayb bzaf\nneg\npos\tzwin\tbzaf\npos\tbnin\n"


def test_bad_lines_stop_it_or_are_counted_at_the_end(call, finished, tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_text(BAD, encoding="utf-8")
    said = call("predict", finished.folder, path)
    assert said.code == 1 and said.out == "" and "line 3" in said.err
    assert said.err.endswith(" (--on-error skip leaves such lines out)\n")
    assert "--on-error" not in call("evaluate", finished.folder, path).err
    path.write_bytes("text\nخايب\n".encode("windows-1256"))
    said = call("predict", finished.folder, path)
    assert "is not UTF-8" in said.err and "--on-error" not in said.err, "it would leave out all"
    path.write_text(BAD, encoding="utf-8")
    said = call("predict", finished.folder, path, "--on-error", "skip")
    assert said.code == 0
    assert [line.split("\t")[1] for line in said.out.splitlines()] == ["khayb bzaf", "bnin"]
    *_, first, second, last = said.err.splitlines()
    assert first.startswith("warning: ") and "line 3" in first and "line 4" in second
    assert last.endswith("bad.tsv: 2 texts predicted, 2 lines skipped")
    said = call("predict", finished.folder, path, "--on-error", "skip", "--json")
    assert [row["text"] for row in json.loads(said.out)] == ["khayb bzaf", "bnin"]


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_a_person_is_told_what_to_do_next_and_a_pipe_is_not(finished):
    command = [sys.executable, "-m", "superconext", "predict", finished.folder, finished.data.test]
    reader, terminal = os.openpty()
    said = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, text=True)
    os.close(terminal)
    os.close(reader)
    wanted = f"next: superconext suggest {finished.folder} {finished.data.test}"
    assert said.returncode == 0 and said.stderr.splitlines()[-1].startswith(wanted)


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize("verb", ["predict", "predict --json", "explain"])
def test_a_terminal_is_sent_nothing_that_it_would_obey(finished, tmp_path, verb):
    path = tmp_path / "texts.txt"
    path.write_text("zwin\x1b]0;title\x07 bzaf\u202e\x9b2J\n", encoding="utf-8")
    verb, *more = verb.split()
    given = [verb, finished.folder, *["--file"] * (verb == "explain"), path, *more]
    command = [sys.executable, "-m", "superconext", *given]
    reader, terminal = os.openpty()
    plain = {**environment(), "NO_COLOR": "1"}
    said = subprocess.run(command, stdout=terminal, stderr=subprocess.PIPE, env=plain)
    os.close(terminal)
    shown = b""
    with contextlib.suppress(OSError):  # of Linux, where nothing is left
        while part := os.read(reader, 4096):
            shown += part
    os.close(reader)
    assert said.returncode == 0, said.stderr
    assert "zwin" in (text := shown.decode()) and not re.search("[\x1b\x07\x9b\u202e]", text)


@pytest.mark.parametrize("verb", ["predict", "suggest"])
@pytest.mark.parametrize("where", ["pipe", "file"])
def test_texts_come_out_to_the_character(finished, tmp_path, verb, where):
    """Colours of a terminal that a log has caught are part of a text."""
    path, text = tmp_path / "texts.txt", "zwin \x1b[31mbzaf\x1b[0m khayb"
    path.write_text(f"{text}\nkhayb bzaf\n", encoding="utf-8")
    out = tmp_path / "out.tsv"
    command = [sys.executable, "-m", "superconext", verb, str(finished.folder), str(path)]
    command += ["--out", str(out)] if where == "file" else []
    said = subprocess.run(command, capture_output=True, env=environment())
    assert said.returncode == 0, said.stderr
    written = out.read_bytes() if where == "file" else said.stdout
    assert text.encode() in written


def test_a_file_of_bad_lines_alone_is_an_error(call, finished):
    said = call("predict", finished.folder, "--on-error", "skip", "--json", stdin=b"\xff\n\0\n")
    assert said.code == 1 and said.out == "" and "none of 2 lines can be used" in said.err


def test_it_abstains_where_no_class_is_probable_enough(call, finished):
    texts = [text for _, text in rows(40, seed=9)]
    stdin = "\n".join(texts).encode()
    shares = load_model(finished.folder).probabilities(texts)
    best = shares.max(axis=1)
    limit = float(np.median(best))
    said = call("predict", finished.folder, "--abstain-below", repr(limit), "--json", stdin=stdin)
    rest = json.loads(said.out)
    assert [row["label"] is None for row in rest] == (best < limit).tolist()
    assert 0 < sum(best < limit) < 40 and f"no label for {sum(best < limit)} of 40" in said.err
    said = call("predict", finished.folder, "--abstain-below", repr(limit), stdin=stdin)
    labels = [line.split("\t")[0] for line in said.out.splitlines()]
    assert labels == [row["label"] or "" for row in rest]
    all_of_them = call("predict", finished.folder, "--abstain-below", "0", stdin=stdin)
    assert all_of_them.out == call("predict", finished.folder, stdin=stdin).out
    assert "no label for" not in all_of_them.err


@pytest.mark.parametrize("value", ["1.5", "-0.1", "nan", "much"])
def test_what_is_no_probability_is_wrong_usage(call, finished, value):
    assert call("predict", finished.folder, "--abstain-below", value, stdin=b"a\n").code == 2


def test_a_wrong_choice_is_wrong_usage(call, finished):
    assert call("predict", finished.folder, "--on-error", "ignore", stdin=b"a\n").code == 2


def test_quiet_says_nothing_but_errors(call, finished, tmp_path):
    path, out = tmp_path / "x.csv", tmp_path / "out.csv"
    path.write_text("text;id;label\nzwin bzaf;1;pos\n\n;2;neg\nwqkzj;3;zen\n", encoding="utf-8")
    given = ("predict", finished.folder, path, "--on-error", "skip", "--abstain-below", "0.9")
    assert len(call(*given).err.splitlines()) > 5
    said = call(*given, "--quiet", "--out", out)
    assert (said.code, said.out, said.err) == (0, "", "") and out.is_file()
    said = call("evaluate", finished.folder, path, "--drop-incomplete", "--quiet")
    assert said.code == 0 and said.err == "" and "zen" in said.out
    assert "error: " in call(*given[:2], tmp_path / "none.csv", "--quiet").err


@pytest.mark.parametrize("mark", [",", ";"])
def test_rows_without_a_text_have_no_label_or_are_left_out(call, finished, tmp_path, mark):
    path = tmp_path / "x.csv"
    table = [("text", "id"), ("zwin bzaf", "1"), ("", "2"), ("khayb had", "3"), (" ", "4")]
    path.write_text("\n".join(map(mark.join, table)) + "\n", encoding="utf-8")
    given = ("predict", finished.folder, path, "--keep", "id")
    said = call(*given)
    assert [line.split("\t")[2] for line in said.out.splitlines()[1:]] == ["1", "2", "3", "4"]
    assert "2 rows without a text, given an empty label (--drop-inc" in said.err
    said = call(*given, "--drop-incomplete")
    assert [line.split("\t")[2] for line in said.out.splitlines()[1:]] == ["1", "3"]
    assert "found an empty text (lines 3, 5), left out" in said.err


@pytest.mark.long
def test_a_terminal_is_told_that_text_is_waited_for(finished):
    command = [sys.executable, "-m", "superconext", "predict", finished.folder]
    asked, told = pty.openpty()
    os.write(asked, b"zwin bzaf\n\x04")
    done = subprocess.run(command, stdin=told, capture_output=True, timeout=120, env=environment())
    assert done.returncode == 0 and done.stdout.endswith(b"\tzwin bzaf\n")
    assert done.stderr.startswith(b"waiting for text: one a line, then Ctrl-D")
    os.write(asked, b"zwin bzaf\n\x04")
    words = [*command, "--quiet"]
    done = subprocess.run(words, stdin=told, capture_output=True, timeout=120, env=environment())
    assert done.returncode == 0 and done.stdout.endswith(b"\tzwin bzaf\n") and not done.stderr
    done = subprocess.run(command, input=b"zwin\n", capture_output=True, env=environment())
    assert b"waiting" not in done.stderr


def test_a_piped_table_with_the_column_of_texts_is_read_as_one(call, finished):
    """The run's column is called text; what is piped names it, or the option does."""
    expected = call("predict", finished.folder, stdin=b"zwin bzaf\nkhayb\n").out
    for mark in (b",", b";", b"|", b"\t"):
        table = b"id%stext\n1%szwin bzaf\n2%skhayb\n".replace(b"%s", mark)
        assert call("predict", finished.folder, stdin=table).out == expected, mark
        other = table.replace(b"text", b"phrase")
        said = call("predict", finished.folder, "--text-column", "phrase", stdin=other)
        assert said.out == expected, said.err
        kept = call("predict", finished.folder, "--keep", "id", stdin=table).out.splitlines()
        assert [line.split("\t")[-1] for line in kept] == ["id", "1", "2"]
    nameless = Known()  # of a training file without a header
    assert nameless.heads("id;text") and not nameless.heads("text") and not nameless.heads("1,2")
    plain = b"a text, and more\nzwin bzaf\n"
    assert len(call("predict", finished.folder, stdin=plain).out.splitlines()) == 2


def test_texts_that_were_all_seen_in_training_are_not_suggested_to_be_labelled(
    call, finished, tmp_path
):
    new, words = tmp_path / "new.txt", ("predict", finished.folder)
    new.write_text("un texte tout neuf\n", encoding="utf-8")
    for file, offered in ((new, True), (finished.data.train, False)):
        said = call(*words, file, "--out", tmp_path / f"{file.stem}.csv")
        assert said.code == 0 and ("superconext suggest" in said.err) == offered
    table = tmp_path / "labelled.tsv"
    table.write_text("label\ttext\npos\tun autre texte tout neuf\n", encoding="utf-8")
    for given in ((new, "--proba"), (table,)):
        said = call(*words, *given, "--out", tmp_path / "out.csv", "--force")
        assert said.code == 0 and "superconext suggest" not in said.err, given
