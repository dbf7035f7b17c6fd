"""The cache: its list, its clearing, its limit, and what is in use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from superconext.core.cache import IN_CLEAR, entries, trim, use
from superconext.core.files import atomic_write
from tests.cli.conftest import blame, environment

DAY = 86_400
FORK = """
import os, sys
from pathlib import Path
from superconext.core.cache import use
use(Path(sys.argv[1]))
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
print("held", flush=True)
sys.stdin.read()
"""
HOLD = """
import sys
from pathlib import Path
from superconext.core.cache import use
use(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A cache with entries of 400,000 bytes each, the first used longest ago."""
    home = tmp_path / "cache"
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(home))
    names = ["vectors/old", "encoders/older.states", "tokens/new", "transformers/x.sqlite"]
    for age, name in enumerate([*names, "downloads/cc.ar.300.vec", "datasets/tsac/all.csv"]):
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if "." not in path.name or path.name.endswith(".states"):
            path.mkdir()
            (path / "info.json").write_text('{"name": "fasttext 100d"}'.ljust(400_000), "utf-8")
        else:
            path.write_bytes(bytes(400_000))
        entry = path.parent if name.startswith("datasets") else path
        used = time.time() - (40.3 - age) * DAY
        os.utime(entry, (used, used))
    for kind in ("downloads", "datasets"):
        (home / kind / "sha256.json").write_text("{}", encoding="utf-8")
    return home


def names():
    return sorted(entry.name for entry in entries())


ALL = [
    "datasets/tsac",
    "downloads/cc.ar.300.vec",
    "encoders/older.states",
    "tokens/new",
    "transformers/x.sqlite",
    "vectors/old",
]


def test_the_list_says_what_each_is_and_whose_words_it_holds(call, home):
    said = call("cache")
    assert said.code == 0 and IN_CLEAR in said.out
    lines = {line.split()[0]: line for line in said.out.splitlines() if "/" in line.split()[0]}
    assert "400 kB" in lines["vectors/old"] and "40 days ago" in lines["vectors/old"]
    assert "word vectors: fasttext 100d" in lines["vectors/old"]
    assert "unfinished training" in lines["encoders/older.states"]
    assert f"{home}: made here 2 MB (of 5.0 GB), downloaded 800 kB" in said.out
    report = json.loads(call("cache", "--json").out)
    assert sorted(entry["name"] for entry in report["entries"]) == ALL
    assert report["limit"] == 5e9 and report["note"] == IN_CLEAR
    for words in (("cache", "--help"), ("cache", "clear", "--help")):
        assert "unencrypted" in " ".join(call(*words).out.split())


@pytest.mark.parametrize(
    ("words", "gone"),
    [
        (["vectors/o"], ["vectors/old"]),
        (["tokens/new", "encoders"], ["tokens/new", "encoders/older.states"]),
        (["--older-than", "39d"], ["encoders/older.states", "vectors/old"]),
        (["--older-than", "9w"], []),
        (["--all"], ALL),
    ],
)
def test_what_is_named_old_or_all_is_removed(call, home, words, gone):
    said = call("cache", "clear", *words)
    assert said.code == 0, said.err
    assert names() == sorted(set(ALL) - set(gone)) and f"{len(gone)} removed" in said.out
    assert not [path for path in home.rglob("*") if path.name.startswith(".vectors")]


def test_what_names_nothing_or_several_removes_nothing(call, home):
    assert "found 0 entries" in blame(call("cache", "clear", "nothing"))
    assert "found 2 entries" in blame(call("cache", "clear", "d"))
    for words in ([], ["vectors/old", "--all"], ["--older-than", "soon"]):
        assert call("cache", "clear", *words).code == 2
    assert names() == ALL


def test_what_a_living_process_uses_stays_and_a_dead_one_keeps_nothing(call, home, monkeypatch):
    for entry in ("vectors/old", "encoders/older"):
        command = [sys.executable, "-c", HOLD, str(home / entry)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, env=environment(), **pipes) as other:
            assert other.stdout.readline() == "held\n"
            said = call("cache", "clear", "--older-than", "1h")
            kept = "vectors/old" if entry == "vectors/old" else "encoders/older.states"
            # The use itself was its last use.
            assert said.code == 0 and kept in names()
            monkeypatch.setenv("SUPERCONEXT_CACHE_LIMIT", "0")
            assert kept not in [gone.name for gone in trim()] and kept in names()
            said = call("cache", "clear", "--all")
            assert f"in use by another process and left: {kept}" in said.err and kept in names()
            other.kill()
        assert call("cache", "clear", "--all").code == 0 and names() == []
        (home / "encoders" / "older.states").mkdir()


def test_above_the_limit_the_longest_unused_go_first_and_no_download(home, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE_LIMIT", "0.0016")
    assert trim() == [], "as much as is there"
    monkeypatch.setenv("SUPERCONEXT_CACHE_LIMIT", "0.001")
    assert [entry.name for entry in trim()] == ["vectors/old", "encoders/older.states"]
    assert trim() == []
    monkeypatch.setenv("SUPERCONEXT_CACHE_LIMIT", "0")
    assert len(trim()) == 2 and names() == ALL[:2]
    monkeypatch.setenv("SUPERCONEXT_CACHE_LIMIT", "none")
    assert trim() == []


def test_a_training_leaves_no_more_than_the_limit(call, home, tmp_path, data, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE_LIMIT", "0.000001")
    out = tmp_path / "vectors"
    words = ["vectors", "train", data.train, "--dimension", 4, "--epochs", 1, "--out", out]
    assert call(*words).code == 0
    made = {name for name in names() if not name.startswith("d")}
    assert len(made) == 1 and not made & set(ALL)  # what it is using itself stays


@pytest.mark.parametrize("limit", ["lots", "-1", "inf", "nan"])
def test_a_limit_that_is_none_is_told_before_any_work(call, tmp_path, data, monkeypatch, limit):
    monkeypatch.setenv("SUPERCONEXT_CACHE_LIMIT", limit)
    line = blame(call("vectors", "train", data.train, "--out", tmp_path / "v"))
    assert f"SUPERCONEXT_CACHE_LIMIT = '{limit}': expected gigabytes" in line
    assert "expected gigabytes" in blame(call("cache"))


def test_folders_of_that_name_that_are_somebody_elses_are_left(call, home):
    for kind in ("downloads", "datasets"):
        (home / kind / "sha256.json").unlink()
    assert call("cache", "clear", "--all").code == 0
    assert (home / "downloads" / "cc.ar.300.vec").exists()
    assert (home / "datasets" / "tsac" / "all.csv").exists()


def test_a_use_is_the_last_use(home):
    use(home / "vectors" / "old")
    assert entries()[0].name == "vectors/old" and entries()[0].in_use


def test_with_a_file_the_folder_that_it_is_in_is_in_use(home):
    use(home / "datasets" / "tsac" / "all.csv")
    assert [entry.name for entry in entries() if entry.in_use] == ["datasets/tsac"]


def test_what_is_just_being_made_is_no_entry_and_stays(call, home):
    (home / "vectors" / ".new.tmp").mkdir()
    assert names() == ALL and call("cache", "clear", "--all").code == 0
    assert (home / "vectors" / ".new.tmp").is_dir()


MAKE = """
import sys
from pathlib import Path
from superconext.core.files import staging_folder
with staging_folder(Path(sys.argv[1])) as place:
    (place / "words.json").write_text("[]")
    print("made", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no lock tells there who is dead")
def test_what_a_killed_process_had_begun_is_cleared_and_a_living_one_s_stays(call, home):
    makers = []
    for name in ("half", "living"):
        words = [sys.executable, "-c", MAKE, home / "vectors" / name]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        makers.append(subprocess.Popen(words, **pipes, env=environment()))
        assert makers[-1].stdout.readline() == b"made\n"
    makers[0].kill()
    makers[0].communicate()
    assert call("cache", "clear", "--all").code == 0
    left = [path.parent.name for path in home.rglob("words.json")]
    makers[1].communicate()
    assert len(left) == 1 and left[0].startswith(".living-")
    trim()
    assert not [*home.rglob("words.json")]


@pytest.mark.skipif(sys.platform == "win32", reason="no lock tells there who is dead")
def test_files_and_folders_of_killed_processes_are_cleared(call, home):
    half = home / "vectors" / ".aaaa.state.g5pc3uwt.tmp"
    half.write_bytes(b"half")
    (home / "compiled").mkdir(exist_ok=True)
    old, young = (home / "compiled" / name for name in (".tmpold", ".tmpyoung"))
    old.mkdir(), young.mkdir()
    os.utime(old, (0, 0))
    with atomic_write(home / "vectors" / "living.state") as temporary:
        assert call("cache", "clear", "--all").code == 0
        assert temporary.exists()
    assert not half.exists() and not old.exists() and young.exists()


@pytest.mark.parametrize(
    "damage", ["null", "[1]", "5", '{"files": 5}', "[" * 100_000, '{"files": {"a": 1}}', "{"]
)
def test_an_entry_whose_description_is_damaged_is_listed_and_cleared(call, home, damage):
    (home / "vectors" / "old" / "info.json").write_text(damage, encoding="utf-8")
    assert "vectors/old" in call("cache").out
    trim()
    assert call("cache", "clear", "vectors/old").code == 0
    assert not (home / "vectors" / "old").exists()


def test_of_a_link_to_elsewhere_the_link_alone_counts_and_goes(call, home, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "model.bin").write_bytes(bytes(10_000))
    link = home / "vectors" / "link"
    link.symlink_to(tmp_path / "elsewhere")
    assert [entry.size < 1000 for entry in entries() if entry.name == "vectors/link"] == [True]
    assert call("cache", "clear", "vectors/link").code == 0
    assert not link.is_symlink() and (tmp_path / "elsewhere" / "model.bin").exists()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_what_a_process_uses_stays_when_a_child_of_it_has_ended(home):
    command = [sys.executable, "-c", FORK, str(home / "vectors" / "old")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(), **pipes) as other:
        assert other.stdout.readline() == "held\n"
        assert [entry.name for entry in entries() if entry.in_use] == ["vectors/old"]
        other.kill()


def test_without_locks_a_process_counts_as_living_for_a_day(home, monkeypatch):
    monkeypatch.setattr("superconext.core.cache.try_lock", lambda handle: None)
    users = home / ".users"
    users.mkdir()
    for hours, living in ((23, ["tokens/new"]), (25, [])):
        (users / "other").write_text("tokens/new\n", encoding="utf-8")
        os.utime(users / "other", (time.time() - hours * 3600,) * 2)
        assert [entry.name for entry in entries() if entry.in_use] == living
