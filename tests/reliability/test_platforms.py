"""What only some systems have is not needed: no fcntl, resource, termios or pwd, nothing below
/proc or /sys for this package, no affinity, priorities or fork; and macOS' names."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import environment, rows, write_table

BARE = """
import builtins, os, sys
import gensim.models, scipy.sparse, sklearn.linear_model, torch, tqdm  # what they need is theirs
for name in ("fcntl", "resource", "termios", "pwd", "grp"):
    sys.modules[name] = None
whole = builtins.open
def bare(file, *more, **options):
    asks = sys._getframe(1).f_globals.get("__name__", "")  # others know their systems
    if asks.startswith("superconext") and str(file).startswith(("/proc", "/sys")):
        raise FileNotFoundError(2, "no such file", str(file))
    return whole(file, *more, **options)
builtins.open = bare
for name in ("sched_getaffinity", "getpriority", "setpriority", "fork", "getuid", "getloadavg"):
    vars(os).pop(name, None)
if len(sys.argv[1]):
    sys.platform = sys.argv[1]
from superconext.cli import main
main(sys.argv[2:])
"""


@pytest.fixture(params=["", "darwin"], ids=["bare", "darwin"])
def bare(request, tmp_path):
    """Call the command line in a process without them."""

    def call(*words):
        command = [sys.executable, "-c", BARE, request.param, *map(str, words)]
        places = {"SUPERCONEXT_CACHE": str(tmp_path / "cache")}
        done = subprocess.run(
            command, env={**environment(), **places}, capture_output=True, timeout=240
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    return call


@pytest.mark.long
def test_a_run_is_trained_and_used_without_them(bare, tmp_path):
    path, run = write_table(tmp_path / "x.tsv", rows(60, seed=3)), tmp_path / "run"
    small = ["--epochs", "1", "--hidden-size", "4", "--vector-dimension", "8", "--no-baselines"]
    bare("train", path, "--out", run, *small)
    bare("train", path, "--out", run, "--force", "--store", tmp_path / "store", *small)
    assert len(bare("predict", run, path).splitlines()) == 60
    assert json.loads(bare("evaluate", run, path, "--json"))["n"] == 60
    listed = json.loads(bare("cache", "--json"))["entries"]
    assert {entry["name"].partition("/")[0] for entry in listed} == {"vectors"}
    assert "removed" in bare("cache", "clear", "--all")


def test_text_is_pooled_and_systems_are_compared_without_them(bare, tmp_path):
    path = write_table(tmp_path / "x.tsv", rows(60, seed=3))
    bare("data", "pool", path, "--out", tmp_path / "pool.txt")
    bare("compare", path, "--objectives", "ngrams", "--seeds", 2, "--out", tmp_path / "x")
    bare("vectors", "train", path, "--dimension", 4, "--epochs", 1, "--out", tmp_path / "v")
