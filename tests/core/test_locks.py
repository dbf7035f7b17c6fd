"""Two processes told to write one place: the second is refused, a dead one is no hindrance."""

from __future__ import annotations

import errno
import os
import platform
import signal
import subprocess
import sys
import threading
import time

import pytest

from superconext.core import cache, locks
from superconext.core.errors import RunError
from superconext.core.files import atomic_write, clear_staging, staging_folder
from superconext.runs.folder import only_run
from tests.cli.conftest import call_main, environment
from tests.reliability.commands import contents, make_files

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX signals")

HOLDING = """
import sys, time
from pathlib import Path
from superconext.runs.folder import only_run
with only_run(Path(sys.argv[1]), print):
    print("held", flush=True)
    time.sleep(300)
"""


@pytest.fixture
def holder(tmp_path):
    """A process that makes a run in `tmp_path / "run"`."""
    words = [sys.executable, "-c", HOLDING, str(tmp_path / "run")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@posix
def test_the_second_run_is_refused_and_a_dead_holder_is_not_in_the_way(holder, tmp_path):
    files = make_files(tmp_path / "files")
    run = tmp_path / "run"
    before = contents(tmp_path)
    for words in (files.train_words(run), files.train_words(run, "--force")):
        said = call_main(*words)
        last = said.err.splitlines()[-1]
        assert said.code == 1 and f"{run}: process {holder.pid} on {platform.node()}" in last
        assert "is writing there" in last and "--out" in last
    assert contents(tmp_path) == before
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert (tmp_path / ".run.lock").read_text().startswith(f"process {holder.pid} ")
    heard = []
    with only_run(run, heard.append):
        assert len(heard) == 1 and f"process {holder.pid}" in heard[0] and "stopped" in heard[0]
    assert not (tmp_path / ".run.lock").exists()


def test_a_second_process_may_wait_until_the_first_has_ended(holder, tmp_path):
    lock = tmp_path / ".run.lock"
    with (
        pytest.raises(RunError, match=f"process {holder.pid} "),
        locks.only_writer(lock, tmp_path, print, ""),
    ):
        pass
    began = time.monotonic()
    timer = threading.Timer(0.5, holder.kill)
    timer.start()
    with locks.only_writer(lock, tmp_path, lambda line: None, "", wait=True):
        assert time.monotonic() - began >= 0.4
    timer.join()


def test_the_lock_goes_with_the_block_and_folders_that_stay_empty_too(tmp_path):
    out = tmp_path / "a" / "b" / "run"
    with only_run(out, print):
        assert (tmp_path / "a" / "b" / ".run.lock").exists()
        with pytest.raises(RunError, match=str(os.getpid())), only_run(out, print):
            pass
    assert not list(tmp_path.iterdir())
    with pytest.raises(ZeroDivisionError), only_run(out, print):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


@posix
def test_a_lock_file_that_was_removed_while_it_was_waited_for(tmp_path, monkeypatch):
    """Its holder ended in that moment: what was opened is no longer the lock."""
    lock, real, calls = tmp_path / ".lock", locks.try_lock, []

    def late(handle):
        calls.append(handle)
        if len(calls) == 1:
            lock.unlink()
        return real(handle)

    monkeypatch.setattr(locks, "try_lock", late)
    with locks.only_writer(lock, tmp_path, print, ""):
        assert len(calls) == 2 and lock.read_text().startswith(f"process {os.getpid()}")


@posix
def test_a_file_system_without_locks(tmp_path, monkeypatch):
    import fcntl

    def no_locks(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    lock, heard = tmp_path / ".lock", []
    node = platform.node()
    with subprocess.Popen([sys.executable, "-c", "pass"]) as dead:
        dead.wait()
    for holder, lives in (
        (f"process {os.getppid()} on {node}", True),
        (f"process {dead.pid} on {node}", False),
        ("process 1 on another-machine", True),
        ("", False),
        ("what is this", False),
    ):
        lock.write_text(holder)
        if lives:
            with (
                pytest.raises(RunError, match="is writing there"),
                locks.only_writer(lock, tmp_path, heard.append, "all is kept"),
            ):
                pass
        else:
            with locks.only_writer(lock, tmp_path, heard.append, "all is kept"):
                pass
    assert len(heard) == 2 and all("all is kept" in line for line in heard)


LEAVING = """
import os, sys
from pathlib import Path
from superconext.core.files import staging_folder
with staging_folder(Path(sys.argv[1])) as hidden:
    (hidden / "new").mkdir()
    os.kill(os.getpid(), 9)
"""


@posix
def test_hidden_folders_of_the_dead_are_cleared_and_of_the_living_are_not(tmp_path):
    place = tmp_path / "place"
    subprocess.run([sys.executable, "-c", LEAVING, str(place)], env=environment())
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(".place-")
    other = tmp_path / ".place-notes.txt"
    other.write_text("mine")
    with staging_folder(place) as outer, staging_folder(place) as inner:
        assert outer.is_dir() and inner.is_dir() and not left.exists()
    assert list(tmp_path.iterdir()) == [other]


def cleared_before_it_is_locked(monkeypatch, clear):
    """The first new file meets a process that clears away, before it is locked."""
    real, locked = locks.try_lock, []

    def late(handle):
        locked.append(handle)
        if len(locked) == 1:
            clear()
        return real(handle)

    monkeypatch.setattr(locks, "try_lock", late)
    return locked


@posix
def test_what_is_made_is_in_use_though_it_was_cleared_before_its_lock(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path))
    entry = tmp_path / "vectors" / "one"
    entry.mkdir(parents=True)
    locked = cleared_before_it_is_locked(monkeypatch, cache.entries)
    cache.use(entry)
    assert len(locked) == 2 and [one.in_use for one in cache.entries()] == [True]


@posix
def test_a_folder_cleared_before_its_lock_is_made_again(tmp_path, monkeypatch):
    place = tmp_path / "place"
    locked = cleared_before_it_is_locked(monkeypatch, lambda: clear_staging(place))
    with staging_folder(place) as hidden:
        assert len(locked) == 2 and list(tmp_path.iterdir()) == [hidden]
        clear_staging(place)
        (hidden / "new").mkdir()
    assert not list(tmp_path.iterdir())


@posix
def test_a_file_cleared_before_its_lock_is_made_again(tmp_path, monkeypatch):
    path = tmp_path / "file"

    def clear():
        for file in tmp_path.iterdir():
            file.unlink()

    locked = cleared_before_it_is_locked(monkeypatch, clear)
    with atomic_write(path) as temporary:
        temporary.write_text("whole")
    assert len(locked) == 2 and path.read_text() == "whole"
