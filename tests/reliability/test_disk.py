"""No room, no leave, no memory: a clear line, exit 1, and earlier results as they were."""

from __future__ import annotations

import errno
import os

import pytest

pytest.importorskip("resource")
if not hasattr(os, "fork"):
    pytest.skip("POSIX processes", allow_module_level=True)

from superconext.cli import explain
from superconext.core.errors import RunError
from superconext.core.files import (
    atomic_write,
    exchange,
    replace_folder,
    staging_folder,
    sync,
    write_array,
    write_json,
)
from superconext.experiments.record import ResultsFile, read_results
from tests.cli.conftest import blame
from tests.reliability.commands import contents, digest, make_files


def check_full(server, files, folder, whole, **fault):
    """Run out of room; then there is some again, and the run is ended. False: it never ran out."""
    folder.mkdir()
    run = folder / "run"
    said = server(files.train_words(run), folder, **fault)
    if said.code == 0:
        # The figures of merit were there already; only cleaning up was left.
        return False
    blame(said)
    assert "finished epochs are kept" not in said.err or f"train --resume {run}" in said.err
    left = [path.name for path in folder.iterdir()]
    if "run.partial" in left or "run" in left:
        again = server(["train", "--resume", run], folder)
        if again.code and "expected a run that was stopped" in again.err:
            assert (run / "manifest.json").exists(), (fault, said.err)
        else:
            assert again.code == 0, (fault, said.err, again.err)
    else:
        assert left in ([], [".run.lock"]), (fault, left)
        assert server(files.train_words(run), folder).code == 0
    assert digest(run) == whole[0], (fault, said.err)
    assert [path.name for path in folder.iterdir()] == ["run"], fault
    return True


def test_a_disk_that_is_full_while_training(server, files, whole, tmp_path):
    events = whole[1].events
    for how, at in (("full", 9), ("full", events // 2), ("limit", events // 3)):
        assert check_full(server, files, tmp_path / f"{how}{at}", whole, how=how, at=at, size=400)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["full", "limit"])
def test_a_disk_that_is_full_at_every_event(server, files, whole, tmp_path, how):
    for at in range(1, whole[1].events + 1):
        check_full(server, files, tmp_path / str(at), whole, how=how, at=at, size=400)


@pytest.mark.slow
def test_files_limited_to_every_size(server, files, whole, tmp_path):
    """RLIMIT_FSIZE from the first event on, so that each file in turn is the one too large."""
    for size in (0, 50, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600):
        check_full(server, files, tmp_path / str(size), whole, how="limit", at=1, size=size)


def test_resuming_on_a_full_disk_keeps_the_epochs(server, files, whole, tmp_path):
    run = tmp_path / "run"
    for at in (whole[1].events // 2, whole[1].events // 4):
        words = ["train", "--resume", run] if run.with_name("run.partial").exists() else None
        said = server(words or files.train_words(run), tmp_path, how="full", at=at)
        blame(said)
        assert any((tmp_path / "run.partial" / "checkpoint").glob("member-*"))
    assert server(["train", "--resume", run], tmp_path).code == 0
    assert digest(run) == whole[0]


def test_a_folder_that_may_not_be_written(server, files, tmp_path):
    """Also for root, whom permissions do not hold back: a file stands where a folder should."""
    (tmp_path / "wall").write_text("mine")
    last = blame(server(files.train_words(tmp_path / "wall" / "run"), tmp_path))
    assert "wall" in last
    assert contents(tmp_path).keys() == {"wall"}
    if os.geteuid() != 0:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o555)
        last = blame(server(files.train_words(closed / "run"), tmp_path))
        assert str(closed / "run") in last and "expected permission" in last


def test_paths_with_spaces_and_arabic_letters(server, whole, tmp_path):
    folder = tmp_path / "مجلد فيه مسافات and 'quotes'"
    odd = make_files(folder / "بيانات ${x}")
    for name in ("train", "dev", "test"):
        path = getattr(odd, name)
        odd = odd._replace(**{name: path.rename(path.with_name(f"جمل {name} %s.tsv"))})
    runs = folder / "نماذج 1"
    runs.mkdir()
    run = runs / "run"
    stopped = server(odd.train_words(run), runs, how="SIGKILL", at=whole[1].events // 2)
    assert stopped.code == -9
    assert server(["train", "--resume", run], runs).code == 0
    said = server(["predict", run, odd.test], runs)
    assert said.code == 0 and said.out.count("\n") == 12
    assert [path.name for path in runs.iterdir()] == ["run"]


def test_memory_that_runs_out(server, files, whole, tmp_path):
    run = tmp_path / "run"
    assert server(files.train_words(run), tmp_path).code == 0
    before = contents(run)
    wide = ("--hidden-size", 8000, "--force")
    said = server(files.train_words(run, *wide), tmp_path, memory=200 << 20)
    assert "out of memory; expected more of it" in blame(said)
    assert contents(run) == before and [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate"
                     " memory: you tried to allocate 8 bytes. Error code 12"),
        RuntimeError("std::bad_alloc"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        ImportError("x.so: failed to map segment from shared object"),
    ],
)  # fmt: skip
def test_all_the_words_for_no_memory(error):
    assert explain(error).startswith("out of memory; expected")
    wrapped = RunError("run: the files do not fit together")
    wrapped.__cause__ = error
    assert explain(wrapped).startswith("out of memory; expected")
    assert explain(RunError("run: no room")) == "run: no room"


# The writers themselves, at every one of their calls


def failing(monkeypatch, name, at):
    """Let call number `at` of os.`name` fail as a full disk does."""
    real, calls = getattr(os, name), [0]

    def call(*arguments, **more):
        calls[0] += 1
        if calls[0] == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **more)

    monkeypatch.setattr(os, name, call)


@pytest.mark.parametrize(("name", "at"), [("fsync", 1), ("replace", 1), ("open", 2)])
def test_a_failed_write_leaves_the_earlier_file(tmp_path, monkeypatch, name, at):
    path = tmp_path / "x.json"
    write_json(path, 1)
    failing(monkeypatch, name, at)
    with pytest.raises(OSError, match=r"No space left on device: '.*x\.json'$"):
        write_json(path, 2)
    monkeypatch.undo()
    assert path.read_text() == "1\n" and list(tmp_path.iterdir()) == [path]


def test_a_file_and_its_name_are_synced_in_that_order(tmp_path, monkeypatch):
    seen = []
    real_sync, real_replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append(handle), real_sync(handle)))
    monkeypatch.setattr(os, "replace", lambda a, b: (seen.append("name"), real_replace(a, b)))
    with atomic_write(tmp_path / "x") as temporary:
        temporary.write_text("x")
    assert len(seen) == 3 and seen[1] == "name"


def test_an_array_on_a_full_disk_is_told_as_one():
    np = pytest.importorskip("numpy")
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    from pathlib import Path

    with pytest.raises(OSError) as caught:
        write_array(Path("/dev/full"), np.ones(100_000))
    assert caught.value.errno == errno.ENOSPC


def test_arrays_are_read_again(tmp_path):
    np = pytest.importorskip("numpy")
    for array in (np.ones((3, 2), np.float32), np.zeros((0, 5)), np.float16([1])):
        write_array(tmp_path / "x.npy", array)
        again = np.load(tmp_path / "x.npy", allow_pickle=False)
        assert again.dtype == array.dtype and np.array_equal(again, array)


@pytest.mark.parametrize("at", [1, 2])
def test_a_line_of_results_that_does_not_fit(tmp_path, monkeypatch, at):
    line = {"objective": "supcon", "seed": 0, "split": "given"}
    results = ResultsFile(tmp_path)
    results.add(line)
    before = results.path.read_bytes()
    failing(monkeypatch, "fsync", 1)
    with pytest.raises(OSError, match=r"results\.jsonl"):
        results.add({**line, "seed": at})
    monkeypatch.undo()
    assert results.path.read_bytes() == before
    results.add({**line, "seed": at})
    assert len(read_results(results.path)) == 2


def folder_of(path, text):
    path.mkdir()
    (path / "file").write_text(text)
    return path


@pytest.mark.parametrize("at_once", [True, False])
def test_a_folder_takes_the_place_of_another(tmp_path, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr("superconext.core.files.exchange", lambda one, other: False)
    place = tmp_path / "place"
    for text in ("one", "two", "three"):
        with staging_folder(place) as hidden:
            replace_folder(folder_of(hidden / "new", text), place, hidden / "old")
        assert (place / "file").read_text() == text and list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("at", [1, 2])
def test_a_folder_that_cannot_be_put_leaves_the_earlier_one(tmp_path, monkeypatch, at):
    monkeypatch.setattr("superconext.core.files.exchange", lambda one, other: False)
    place = folder_of(tmp_path / "place", "old")
    told = pytest.raises(OSError, match=r"No space left on device: '.*place'$")
    with told, staging_folder(place) as hidden:
        fresh = folder_of(hidden / "new", "new")
        failing(monkeypatch, "rename", at)
        replace_folder(fresh, place, hidden / "old")
    monkeypatch.undo()
    assert (place / "file").read_text() == "old" and list(tmp_path.iterdir()) == [place]


def test_two_folders_change_places_in_one_step(tmp_path):
    one, two = folder_of(tmp_path / "one", "1"), folder_of(tmp_path / "two", "2")
    if not exchange(one, two):
        pytest.skip("this file system cannot")
    assert ((one / "file").read_text(), (two / "file").read_text()) == ("2", "1")
    assert not exchange(one, tmp_path / "none") and one.is_dir()
    sync(tmp_path)
