"""Training that is stopped: by Ctrl-C, by a kill, by a full disk; and going on from there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import SafetensorError

from superconext.cli import explain
from superconext.core.locks import only_writer
from superconext.data.sampler import BalancedBatches
from tests.cli.conftest import environment

EPOCHS = 5

# The command line, but once some epochs are done it waits to be stopped, and says so.
PAUSING = """
import sys, time
from superconext.cli import main
from superconext.data.sampler import BalancedBatches

whole = BalancedBatches.epoch

def pausing(self, number):
    if number == int(sys.argv[1]):
        print("waiting", flush=True)
        time.sleep(120)
    return whole(self, number)

BalancedBatches.epoch = pausing
main(sys.argv[2:])
"""


def train_words(data, out, *more):
    files = ("train", data.train, "--dev", data.dev, "--test", data.test, "--out", out)
    return [*files, *data.small, "--epochs", str(EPOCHS), "--no-baselines", *more]


def weights(run):
    names = ("encoder.safetensors", "probe.safetensors")
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in names}


def contents(folder):
    """Every file below a folder with its hash."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def files(run):
    """The names of a run's files, without the figures, which need an extra."""
    return {name for name in contents(run) if not name.startswith("figures")}


def results(run):
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    metrics.pop("seconds")
    return metrics


def status(run):
    return json.loads((run / "manifest.json").read_text(encoding="utf-8"))["status"]


@pytest.fixture(scope="module")
def whole(call, data, tmp_path_factory):
    """The run nobody stopped."""
    run = tmp_path_factory.mktemp("whole") / "run"
    said = call(*train_words(data, run))
    assert said.code == 0, said.err
    return run


@pytest.fixture
def stopped(data, tmp_path):
    """Train in a process of its own and send it a signal after some epochs."""

    def stop(number, epochs):
        words = [str(word) for word in train_words(data, tmp_path / "run")]
        with subprocess.Popen(
            [sys.executable, "-c", PAUSING, str(epochs), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=environment(),
        ) as process:
            assert process.stdout.readline() == "waiting\n"
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        return process.returncode, out, err

    return stop


@contextlib.contextmanager
def interrupted_at(epoch, member=1):
    """Ctrl-C before the first batch of an epoch (from 0) of a member (from 1)."""
    batches, calls = BalancedBatches.epoch, 0

    def pressing(self, number):
        nonlocal calls
        calls += number == epoch
        if number == epoch and calls == member:
            raise KeyboardInterrupt
        return batches(self, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BalancedBatches, "epoch", pressing)
        yield


def check_whole(call, run, whole):
    """Resume `run`; it must end as if nothing had happened."""
    said = call("train", "--resume", run)
    assert said.code == 0, said.err
    assert weights(run) == weights(whole)
    assert results(run) == results(whole)
    assert status(run) == "complete" and files(run) == files(whole)
    assert [path.name for path in run.parent.iterdir()] == [run.name]
    return said


# Ctrl-C and kill


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_keeps_a_run_that_works_and_can_be_gone_on_with(
    stopped, call, data, whole, tmp_path
):
    code, out, err = stopped(signal.SIGINT, 1)
    run = tmp_path / "run"
    assert code == 1 and out == "" and "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.startswith("error: interrupted after 1 of 5 epochs") and str(run) in last
    assert f"train --resume {run}" in last
    assert status(run) == "interrupted" and list(tmp_path.iterdir()) == [run]
    assert call("predict", run, data.test).out.count("\n") == 12
    assert weights(run) != weights(whole)
    said = check_whole(call, run, whole)
    assert "test, 12 rows" in said.out


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_killed_run_can_be_gone_on_with(stopped, call, data, whole, tmp_path):
    code, _, _ = stopped(signal.SIGKILL, 4)
    run = tmp_path / "run"
    assert code == -signal.SIGKILL and not run.exists()
    assert call("predict", run, data.test).code == 1
    said = check_whole(call, run, whole)
    epochs = [line.split()[0] for line in said.err.splitlines() if line.split()[:1]]
    assert "5" in epochs and not {"1", "2", "3", "4"} & {*epochs}


def test_whoever_uses_an_interrupted_run_is_told(call, data, whole, tmp_path):
    run = tmp_path / "run"
    with interrupted_at(3):
        call(*train_words(data, run))
    told = f"{run}: training was interrupted after 3 of 5 epochs: "
    more = f"{told}superconext train --resume {run} goes on"
    page, out = tmp_path / "page.html", tmp_path / "exported"
    uses = (
        ("predict", run, data.test),
        ("evaluate", run, data.test),
        ("evaluate", run, whole, data.test),
        ("embed", run, data.test, "--out", tmp_path / "vectors.npy"),
        ("report", run),
        ("report", run, data.test, "--out", page),
        ("export", run, "--out", out),
    )
    for words in uses:
        said = call(*words)
        warned = [line for line in said.err.splitlines() if line.startswith("warning: ")]
        assert said.code == 0 and warned.count(f"warning: {more}") == 1, (words, said.err)
        assert len([line for line in warned if "interrupted" in line]) == 1
    assert call("predict", run, data.test, "--quiet").err == f"warning: {more}\n"
    assert "interrupted" not in call("predict", whole, data.test).err
    for path in (run / "report.html", page):
        assert "Training was interrupted after 3 of 5 epochs: superconext" in path.read_text(
            "utf-8"
        )
    assert "Training was interrupted" not in (whole / "report.html").read_text("utf-8")
    # What has no checkpoint cannot go on.
    said = call("predict", out, data.test)
    assert f"warning: {out}: training was interrupted after 3 of 5 epochs: expect less" in said.err
    (run / "report.html").unlink()
    assert call("report", run).code == 0
    assert "Training was interrupted after 3" in (run / "report.html").read_text("utf-8")
    assert call("train", "--resume", run).code == 0
    assert "Training was interrupted" not in (run / "report.html").read_text("utf-8")


def test_ctrl_c_before_the_first_epoch_ends_leaves_nothing(call, data, tmp_path):
    with interrupted_at(0):
        said = call(*train_words(data, tmp_path / "runs" / "run"))
    assert said.code == 1 and said.err.splitlines()[-1].startswith("error: interrupted before")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_twice(call, data, whole, tmp_path):
    run = tmp_path / "run"
    with interrupted_at(2):
        assert "after 2 of 5" in call(*train_words(data, run)).err
    with interrupted_at(4):
        assert "after 4 of 5" in call("train", "--resume", run).err
    assert status(run) == "interrupted"
    check_whole(call, run, whole)


def test_ctrl_c_in_a_later_member_keeps_the_earlier_ones(call, data, tmp_path):
    words = ("--members", "2")
    assert call(*train_words(data, tmp_path / "whole", *words)).code == 0
    run = tmp_path / "stopped" / "run"
    with interrupted_at(0, member=2):
        said = call(*train_words(data, run, *words))
    assert said.code == 1 and f"train --resume {run}" in said.err.splitlines()[-1]
    check_whole(call, run, tmp_path / "whole")


def test_a_run_is_not_resumed_with_other_files_than_it_began_with(call, data, tmp_path):
    text, run = tmp_path / "text.txt", tmp_path / "run"
    lines = [f"film zwin {word} bzaf" for word in "abcdefgh"]
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with interrupted_at(2):
        assert "after 2 of 5" in call(*train_words(data, run, "--unlabelled", text)).err
    text.write_text("\n".join(lines[1:]) + "\n", encoding="utf-8")
    said = call("train", "--resume", run)
    assert said.code == 1 and f"unlabelled = {text}: its content is not what" in said.err
    assert status(run) == "interrupted"
    text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert call("train", "--resume", run).code == 0


def test_a_run_of_code_that_is_not_there_waits_for_it(call, data, tmp_path, monkeypatch):
    from superconext.probe import PROBES
    from tests.probe.test_own_probe import NearestMean

    run = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(PROBES, "_added", {"nearest_mean": NearestMean})
        with interrupted_at(2):
            words = train_words(data, run, "--probe-features", "nearest_mean")
            assert "after 2 of 5" in call(*words).err
    said = call("train", "--resume", run)
    assert said.code == 1 and "waits for the code" in said.err and "--force" not in said.err
    monkeypatch.setattr(PROBES, "_added", {"nearest_mean": NearestMean})
    assert call("train", "--resume", run).code == 0


def test_ctrl_c_while_results_are_written(call, data, whole, tmp_path, monkeypatch):
    run = tmp_path / "run"

    def press(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("superconext.runs.artifacts.write_csv", press)
        said = call(*train_words(data, run))
    assert said.code == 1 and f"train --resume {run}" in said.err.splitlines()[-1]
    assert not run.exists()
    check_whole(call, run, whole)


@pytest.mark.parametrize("name", ["run.partial", "run.partial/"])
def test_the_folder_of_the_epochs_stands_for_the_run(call, data, whole, tmp_path, name):
    run = tmp_path / "run"
    with interrupted_at(3):
        call(*train_words(data, run))
    partial = tmp_path / "run.partial"
    partial.mkdir()
    (run / "checkpoint").rename(partial / "checkpoint")
    shutil.rmtree(run)
    held = tmp_path / ".run.lock"
    with only_writer(held, run, print, "", remove=True):
        said = call("train", "--resume", f"{tmp_path}/{name}")
        assert said.code == 1 and f"{run}: process {os.getpid()}" in said.err
    said = call("train", "--resume", f"{tmp_path}/{name}")
    assert said.code == 0 and f"run.partial is the unfinished {run}, which" in said.err
    assert f"run folder: {run}\n" in said.err
    assert weights(run) == weights(whole) and list(tmp_path.iterdir()) == [run]


def test_a_run_may_be_called_so(call, data, whole, tmp_path):
    run = tmp_path / "my.partial"
    with interrupted_at(3):
        call(*train_words(data, run))
    assert status(run) == "interrupted"
    check_whole(call, run, whole)


def test_a_kill_while_results_are_written_leaves_no_rest(call, data, whole, tmp_path):
    run = tmp_path / "run"
    with interrupted_at(3):
        call(*train_words(data, run))
    partial = tmp_path / "run.partial"
    partial.mkdir()
    (run / "checkpoint").rename(partial / "checkpoint")
    (partial / "figures").mkdir()
    for name in ("metrics.json", ".metrics.json.abc.tmp", "figures/.map.png.1-1.part"):
        (partial / name).write_text("half")
    check_whole(call, run, whole)


def test_starting_anew_over_an_unfinished_run_says_so(call, data, whole, tmp_path):
    run = tmp_path / "run"
    with interrupted_at(0, member=2):
        call(*train_words(data, run, "--members", "2"))
    # As a killed run stands there, of which only the checkpoint is left.
    (tmp_path / "run.partial").mkdir()
    (run / "checkpoint").rename(tmp_path / "run.partial" / "checkpoint")
    shutil.rmtree(run)
    said = call(*train_words(data, run))
    assert said.code == 0 and "run.partial, an unfinished run" in said.err
    assert weights(run) == weights(whole) and list(tmp_path.iterdir()) == [run]


# Resuming what has changed


def test_a_run_goes_on_from_another_folder(call, data, whole, tmp_path, monkeypatch):
    monkeypatch.chdir(data.train.parent)
    near = data._replace(
        **{name: Path(getattr(data, name).name) for name in ("train", "dev", "test")},
        small=tuple(word.replace(str(data.vectors), data.vectors.name) for word in data.small),
    )
    assert data.vectors.name in near.small
    with interrupted_at(3):
        assert call(*train_words(near, tmp_path / "run")).code == 1
    monkeypatch.chdir(tmp_path)
    assert call("train", "--resume", "run").code == 0
    assert weights(tmp_path / "run") == weights(whole)


def test_a_run_of_piped_rows_goes_on_where_they_are_piped_again(call, data, whole, tmp_path):
    run, rows = tmp_path / "run", data.train.read_bytes()
    with interrupted_at(3):
        said = call(*train_words(data._replace(train="-"), run), stdin=rows)
    assert "after 3 of 5 epochs" in said.err
    for piped, found in (
        (b"", "is empty or blank, expected"),
        (rows + b"neg\tkhayb\n", "is not what"),
    ):
        said = call("train", "--resume", run, stdin=piped)
        assert said.code == 1 and f"note: {run} was trained on standard input" in said.err
        last = said.err.splitlines()[-1]
        assert last.startswith("error: standard input") and found in last
        assert f"pipe the rows that {run} was trained on" in last
    assert status(run) == "interrupted"
    said = call("train", "--resume", run, stdin=rows)
    assert said.code == 0 and weights(run) == weights(whole)


def test_a_run_does_not_go_on_with_other_data(call, data, tmp_path):
    train = tmp_path / "train.tsv"
    train.write_bytes(data.train.read_bytes())
    run = tmp_path / "run"
    with interrupted_at(3):
        call(*train_words(data._replace(train=train), run))
    before = contents(tmp_path)
    with train.open("a", encoding="utf-8") as stream:
        stream.write("neg\tkhayb\n")
    said = call("train", "--resume", run)
    assert said.code == 1 and "train.tsv: its content is not what" in said.err.splitlines()[-1]
    train.unlink()
    assert "no such file" in call("train", "--resume", run).err.splitlines()[-1]
    after = contents(tmp_path)
    assert before.pop("train.tsv") and after == before


def test_a_damaged_checkpoint_falls_back_or_is_refused(call, data, whole, tmp_path):
    run = tmp_path / "run"
    with interrupted_at(3):
        call(*train_words(data, run))
    names = sorted(path.name for path in (run / "checkpoint").iterdir())
    epochs = ["member-0-epoch-2.safetensors", "member-0-epoch-3.safetensors"]
    assert names == [*epochs, "request.json"]
    for damage in (["request.json"], epochs):
        damaged = tmp_path / damage[0] / "run"
        shutil.copytree(run, damaged)
        for name in damage:
            path = damaged / "checkpoint" / name
            path.write_bytes(path.read_bytes()[:-20])
        said = call("train", "--resume", damaged)
        assert said.code == 1 and "Traceback" not in said.err
        last = said.err.splitlines()[-1]
        assert last.startswith("error: ") and "checkpoint" in last and "--force" in last
        assert call("predict", damaged, data.test).code == 0
    path = run / "checkpoint" / epochs[1]
    path.write_bytes(path.read_bytes()[:-20])
    said = call("train", "--resume", run)
    (line,) = [line for line in said.err.splitlines() if "warning: " in line]
    assert epochs[1] in line and "resuming from the one before, after epoch 2" in line
    assert said.code == 0 and weights(run) == weights(whole)


# A full disk


def full_at(patch, name):
    """Fail as a full disk does when a file of this name is put in its place."""
    replace = os.replace

    def full(source, target, **more):
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), source)
        return replace(source, target, **more)

    patch.setattr(os, "replace", full)


FILES = [
    "request.json",
    "member-0-epoch-1.safetensors",
    "config.toml",
    "probe.safetensors",
    "history.csv",
    "README.md",
    "manifest.json",
]


@pytest.mark.parametrize("name", FILES)
def test_a_full_disk_leaves_nothing_or_the_epochs(call, data, tmp_path, monkeypatch, name):
    full_at(monkeypatch, name)
    said = call(*train_words(data, tmp_path / "run", "--epochs", "1"))
    assert said.code == 1 and said.out == "" and "Traceback" not in said.err
    last = said.err.splitlines()[-1]
    assert last.startswith("error: ") and "No space left" in last and name in last
    left = contents(tmp_path)
    if name in FILES[:2]:
        assert not list(tmp_path.iterdir())
        return
    assert f"resume with superconext train --resume {tmp_path / 'run'}" in said.err
    folder = Path("run.partial", "checkpoint")
    assert set(left) == {str(folder / kept) for kept in FILES[:2]}
    monkeypatch.undo()
    assert call("train", "--resume", tmp_path / "run").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("name", ["member-0-epoch-1.safetensors", "manifest.json"])
def test_a_full_disk_leaves_the_earlier_run(call, data, finished, tmp_path, monkeypatch, name):
    run = tmp_path / "run"
    assert call(*train_words(data, run, "--epochs", "1")).code == 0
    before = contents(run)
    full_at(monkeypatch, name)
    said = call(*train_words(data, run, "--epochs", "1", "--force"))
    assert said.code == 1 and "No space left" in said.err
    assert contents(run) == before
    kept = [] if name.startswith("member") else [tmp_path / "run.partial"]
    assert sorted(tmp_path.iterdir()) == [run, *kept]


@pytest.mark.parametrize("module", ["torch", "numpy"])
def test_a_full_disk_in_the_words_of_safetensors(call, data, tmp_path, monkeypatch, module):
    def full(*_, **__):
        reason = "I/O error: No space left on device (os error 28)"
        raise SafetensorError(f"Error while serializing: {reason}")

    monkeypatch.setattr(f"safetensors.{module}.save_file", full)
    said = call(*train_words(data, tmp_path / "run", "--epochs", "1"))
    last = said.err.splitlines()[-1]
    assert said.code == 1 and "No space left" in last and "make room" in last
    assert ".safetensors" in last and not (tmp_path / "run").exists()
    assert module == "numpy" or not list(tmp_path.iterdir())


def test_a_full_disk_under_embed_leaves_the_earlier_file(call, finished, tmp_path, monkeypatch):
    out = tmp_path / "vectors.npy"
    out.write_text("earlier")
    full_at(monkeypatch, out.name)
    said = call("embed", finished.folder, finished.data.test, "--out", out, "--force")
    assert said.code == 1 and "No space left" in said.err
    assert out.read_text() == "earlier" and list(tmp_path.iterdir()) == [out]


def test_a_reader_that_leaves_is_no_error_to_talk_about(finished, tmp_path):
    many = tmp_path / "many.txt"
    many.write_text("zwin bzaf\n" * 20_000, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "superconext", "predict", str(finished.folder), str(many)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment(),
    ) as process:
        assert process.stdout.readline().endswith("\tzwin bzaf\n")
        process.stdout.close()
        err = process.stderr.read()
    assert all(line.startswith("note: ") for line in err.splitlines())


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_full_disk_under_standard_output_is_named(finished, buffered, words):
    command = ["-m", "superconext", "predict", finished.folder, finished.data.test, *words]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, *map(str, command)],
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env={**environment(), "PYTHONUNBUFFERED": "" if buffered else "1"},
        )
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith("error: standard output: No space left"), last


def test_an_interrupt_that_c_code_turned_into_another_error_is_one():
    """As NumPy does where it comes while a buffer's format is read."""
    stopped = ValueError("'T{d:val:}' is not a valid PEP 3118 buffer format string")
    stopped.__cause__ = KeyboardInterrupt()
    assert explain(stopped).startswith("interrupted; run the command again")
    assert explain(ValueError("other")).startswith("found ValueError (other), which was not")


def test_rows_from_a_pipe_of_the_shell_cannot_be_gone_on_with(call, data, tmp_path):
    run = tmp_path / "run"
    with interrupted_at(3):
        assert call(*train_words(data, run)).code == 1
    request = run / "checkpoint" / "request.json"
    saved = json.loads(request.read_text(encoding="utf-8"))
    request.write_text(json.dumps({**saved, "train": "/dev/fd/9999"}), encoding="utf-8")
    said = call("train", "--resume", run)
    assert said.code == 1 and "begun with rows from /dev/fd/9999, a pipe that is gone" in said.err


# Places that cannot be replaced


def test_the_run_that_a_link_leads_to_is_replaced(call, data, whole, tmp_path):
    real, link = tmp_path / "real" / "one", tmp_path / "link"
    shutil.copytree(whole, real)
    link.symlink_to(real)
    said = call(*train_words(data, link, "--force", "--seed", "3"))
    assert said.code == 0 and link.is_symlink() and weights(real) != weights(whole)
    assert [path.name for path in real.parent.iterdir()] == ["one"]


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_that_a_link_leads_to_is_gone_on_with(call, data, whole, tmp_path, killed):
    real, link = tmp_path / "real", tmp_path / "link"
    with interrupted_at(3):
        assert call(*train_words(data, real)).code == 1
    if killed:
        real.rename(tmp_path / "real.partial")
        shutil.copytree(whole, real)
    link.symlink_to(real)
    said = call("train", "--resume", link)
    assert said.code == 0, said.err
    assert link.is_symlink() and status(real) == "complete" and weights(real) == weights(whole)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]


@pytest.mark.parametrize("inside", [".", "figures"])
def test_a_run_that_the_command_stands_in_is_not_replaced(
    call, data, whole, tmp_path, monkeypatch, inside
):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    monkeypatch.chdir(run / inside)
    for out in (run, Path(os.path.relpath(tmp_path), "run")):
        said = call(*train_words(data, out, "--force"))
        assert said.code == 1 and "holds the folder that this command runs in" in said.err
    assert weights(run) == weights(whole) and [*tmp_path.iterdir()] == [run]


def test_a_mount_point_is_not_replaced(call, data, whole, tmp_path, monkeypatch):
    run, is_mount = tmp_path / "run", os.path.ismount
    shutil.copytree(whole, run)
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == run or is_mount(path))
    said = call(*train_words(data, run, "--force"))
    assert said.code == 1 and f"{run} is a mount point" in said.err and "training" not in said.err


@pytest.mark.parametrize("option", ["train", "--dev", "--unlabelled"])
def test_a_run_that_holds_what_is_read_is_not_replaced(call, data, whole, tmp_path, option):
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    words, mine = train_words(data, run, "--force"), run / "mine.tsv"
    shutil.copy(data.train, mine)
    if option == "train":
        words[1] = mine
    else:
        words += [option, mine]
    said = call(*words)
    assert said.code == 1 and "mine.tsv in it, which is read here and would be removed" in said.err
    assert mine.exists() and weights(run) == weights(whole)


def test_a_run_that_is_finished_while_it_is_resumed_is_done(call, whole, tmp_path):
    partial = tmp_path / "run.partial"
    shutil.copytree(whole, partial)
    (partial / "checkpoint").mkdir()
    (partial / "checkpoint" / "in-place").touch()
    said = call("train", "--resume", tmp_path / "run")
    assert said.code == 0 and "was finished already" in said.err
    assert weights(tmp_path / "run") == weights(whole) and not partial.exists()
    said = call("train", "--resume", tmp_path / "run")
    assert said.code == 1 and "no checkpoint found" in said.err


def test_a_checkpoint_waits_for_a_folder_that_is_gone(call, data, tmp_path):
    run = tmp_path / "a run"
    with interrupted_at(3):
        assert call(*train_words(data, run)).code == 1
    request = run / "checkpoint" / "request.json"
    saved = json.loads(request.read_text(encoding="utf-8"))
    saved["given"]["init"] = str(tmp_path / "gone")
    request.write_text(json.dumps(saved), encoding="utf-8")
    said = call("train", "--resume", run)
    assert said.code == 1 and "gone" in said.err and "The checkpoint waits" in said.err
    run.rename(tmp_path / "a run.partial")
    said = call("predict", run, data.test)
    assert said.code == 1 and f"--resume '{run}'" in said.err
