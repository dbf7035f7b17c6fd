"""`pretrain` that is stopped, torn or out of room at any moment ends, given again, to the bit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

pytest.importorskip("resource")
if not hasattr(os, "fork"):
    pytest.skip("POSIX processes", allow_module_level=True)

from tests.cli.conftest import blame, environment, rows
from tests.reliability.commands import contents, make_files

TEXT = 130  # sentences, of which 128 are trained on: 6 steps an epoch, a state after 4, 6, 8, 12


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    made = make_files(tmp_path_factory.mktemp("files"))
    made.text.write_text("\n".join(text for _, text in rows(TEXT, seed=2)), encoding="utf-8")
    return made


def words(files, out, *more):
    """`superconext pretrain` of a tiny encoder, in two epochs of six steps."""
    sizes = ["--hidden-size", 4, "--batch-size", 20, "--epochs", 2]
    return ["pretrain", files.text, "--vectors", files.vectors, "--out", out, *sizes, *more]


def pretrained(folder):
    """All that the folder holds but what tells the time."""
    exact = contents(folder)
    exact.pop("encoder.json")
    facts = json.loads((folder / "encoder.json").read_text(encoding="utf-8"))
    for record in facts["history"]:
        record.pop("seconds")
    return exact, facts


@pytest.fixture(scope="module")
def whole(server, files, tmp_path_factory):
    """What nobody stopped came to, and what it said."""
    folder = tmp_path_factory.mktemp("whole")
    said = server(words(files, folder / "pre"), folder, cache=str(folder / "cache"))
    assert said.code == 0, said.err
    check_clean(folder)
    return pretrained(folder / "pre"), said


def check_clean(folder):
    """The folder and, in the cache, the same once more: no state, lock or half of anything."""
    assert {path.name for path in folder.iterdir()} == {"pre", "cache"}
    (made,) = (folder / "cache" / "encoders").iterdir()
    assert len(made.name) == 32 and pretrained(made) == pretrained(folder / "pre")


def states(folder):
    """Numbers of steps after which a state is there."""
    found = (folder / "cache" / "encoders").glob("*.states/*step-*.safetensors")
    return sorted(int(path.stem.rsplit("-", 1)[1]) for path in found)


def go_on(server, files, folder, whole):
    """Give the command again; True where it had been finished."""
    again = server(words(files, folder / "pre"), folder, cache=str(folder / "cache"))
    done = again.code == 1 and "pre exists already" in again.err
    if done:  # finished but for clearing up, which the next call that takes it from there does
        (folder / "pre").rename(folder / "first")
        again = server(words(files, folder / "pre"), folder, cache=str(folder / "cache"))
        assert pretrained(folder / "first") == whole[0]
        for path in (folder / "first").iterdir():
            path.unlink()
        (folder / "first").rmdir()
    assert again.code == 0, again.err
    assert pretrained(folder / "pre") == whole[0], again.err
    check_clean(folder)
    return again


def check_stopped(server, files, folder, whole, **fault):
    folder.mkdir()
    stopped = server(words(files, folder / "pre"), folder, cache=str(folder / "cache"), **fault)
    told = f"{fault}: {stopped}"
    polite = fault.get("how") in ("SIGTERM", "SIGINT")
    assert stopped.code in ((0, 1, -2, -15) if polite else (0, -9, -25)), told
    home = folder / "cache" / "encoders"
    kept = [] if [*home.glob("*/encoder.json")] else states(folder)  # else it goes on from none
    if stopped.code == 1:
        assert stopped.out == "" and "Traceback" not in stopped.err, told
        last = stopped.err.splitlines()[-1]
        assert last.startswith("error: interrupted") and ("to resume" in last or not kept), told
    again = go_on(server, files, folder, whole)
    if kept:
        assert f"resuming after step {kept[-1]} of 12" in again.err, (told, again.err)
    return stopped


def check_full(server, files, folder, whole, **fault):
    """Run out of room; then there is some again. False: it never ran out."""
    folder.mkdir()
    said = server(words(files, folder / "pre"), folder, cache=str(folder / "cache"), **fault)
    if said.code:
        last = blame(said)
        assert "SUPERCONEXT_CACHE" in last or f"{folder / 'cache'}" not in last, last
        if (folder / "pre").exists():  # the last event sends its name to the disk
            assert pretrained(folder / "pre") == whole[0], (fault, said.err)
    go_on(server, files, folder, whole)
    return said.code != 0


@pytest.mark.long
def test_stopped_at_a_few_moments(server, files, whole, tmp_path):
    """One of each kind; all of them are in the slow tests."""
    events = whole[1].events
    faults = [
        {"how": "SIGKILL", "at": events // 2},
        {"how": "tear", "size": 300, "at": events // 3},
        {"how": "SIGTERM", "at": events // 2},
    ]
    for number, fault in enumerate(faults):
        assert check_stopped(server, files, tmp_path / str(number), whole, **fault).code


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "tear", "SIGTERM", "SIGINT"])
def test_stopped_at_every_event(server, files, whole, tmp_path, how):
    for at in range(1, whole[1].events + 1):
        check_stopped(server, files, tmp_path / str(at), whole, how=how, at=at, size=200)


def test_a_disk_that_is_full(server, files, whole, tmp_path):
    events = whole[1].events
    for how, at in (("full", 2), ("full", events // 2), ("limit", events // 3)):
        assert check_full(server, files, tmp_path / f"{how}{at}", whole, how=how, at=at, size=400)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["full", "limit"])
def test_a_disk_that_is_full_at_every_event(server, files, whole, tmp_path, how):
    for at in range(1, whole[1].events + 1):
        check_full(server, files, tmp_path / str(at), whole, how=how, at=at, size=400)


def test_a_cache_that_cannot_be_written_is_told_of(server, files, tmp_path):
    (tmp_path / "wall").write_text("a file where the cache should be")
    last = blame(server(words(files, tmp_path / "pre"), tmp_path, cache=str(tmp_path / "wall")))
    assert "wall/encoders: Not a directory; expected a cache" in last
    assert "name a folder elsewhere as SUPERCONEXT_CACHE" in last
    assert sorted(path.name for path in tmp_path.iterdir()) == ["wall"]


def test_a_torn_state_falls_back_to_the_one_before_and_says_so(server, files, whole, tmp_path):
    cache = str(tmp_path / "cache")
    at = whole[1].events // 2
    while len(states(tmp_path)) < 2:
        assert server(words(files, tmp_path / "pre"), tmp_path, cache=cache, how="SIGKILL", at=at)
        at += 4
    before, last = states(tmp_path)
    (path,) = (tmp_path / "cache").rglob(f"*step-{last}.safetensors")
    path.write_bytes(path.read_bytes()[:-9])
    again = go_on(server, files, tmp_path, whole)
    assert f"warning: {path}: the checkpoint cannot be used" in again.err
    assert f"resuming after step {before} of 12" in again.err


@pytest.mark.parametrize("name", ["encoder.safetensors", "matrix.npy", "encoder.json"])
def test_a_damaged_cache_entry_is_made_again(server, files, whole, tmp_path, name):
    cache = str(tmp_path / "cache")
    assert server(words(files, tmp_path / "pre"), tmp_path, cache=cache).code == 0
    (made,) = (tmp_path / "cache" / "encoders").iterdir()
    content = bytearray((made / name).read_bytes())
    content[-3] ^= 0x40
    (made / name).write_bytes(content)
    for path in (tmp_path / "pre").iterdir():
        path.unlink()
    (tmp_path / "pre").rmdir()
    assert "was damaged" in go_on(server, files, tmp_path, whole).err


HOLDING = """
import sys, time
from pathlib import Path
from superconext.core.locks import only_writer
with only_writer(Path(sys.argv[1]), Path("x"), print, ""):
    print("held", flush=True)
    time.sleep(300)
"""


@pytest.mark.parametrize("of_cache", [False, True])
def test_the_second_of_two_processes_is_refused(server, files, whole, tmp_path, of_cache):
    """Two that write one folder, and two that train the same for different folders."""
    lock, told = tmp_path / ".pre.lock", "choose another with --out"
    if of_cache:
        home = tmp_path / "cache" / "encoders"
        home.mkdir(parents=True)
        key = entry_name(server, files, tmp_path)
        lock, told = home / f".{key}.lock", "same text and settings: wait until it ends"
    program = [sys.executable, "-c", HOLDING, str(lock)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment()) as holder:
        assert holder.stdout.readline() == "held\n"
        cache = str(tmp_path / "cache")
        last = blame(server(words(files, tmp_path / "pre"), tmp_path, cache=cache))
        assert f"process {holder.pid} on" in last and "is writing there" in last and told in last
        assert not (tmp_path / "pre").exists()
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    again = go_on(server, files, tmp_path, whole)
    assert (
        f"note: process {holder.pid} on" in again.err and "was stopped while writing" in again.err
    )


def entry_name(server, files, folder):
    """What the cache will call it: as another cache does."""
    other = folder / "other"
    assert server(words(files, other / "pre"), folder, cache=str(other)).code == 0
    (made,) = (other / "encoders").iterdir()
    name = made.name
    for path in sorted(other.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    other.rmdir()
    return name
