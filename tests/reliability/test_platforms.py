"""What only some systems have is not needed: no fcntl, resource, /proc/stat or affinity."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.conftest import environment, rows, write_table

BARE = """
import builtins, os, sys
sys.modules.update(fcntl=None, resource=None)
whole = builtins.open
def bare(file, *more, **options):
    if str(file) == "/proc/stat":
        raise FileNotFoundError(2, "no such file", str(file))
    return whole(file, *more, **options)
builtins.open = bare
vars(os).pop("sched_getaffinity", None)
from superconext.cli import main
main(sys.argv[1:])
"""


def test_a_run_is_trained_and_used_without_them(tmp_path):
    path, run = write_table(tmp_path / "x.tsv", rows(40, seed=3)), str(tmp_path / "run")
    small = ["--epochs", "1", "--hidden-size", "4", "--vector-dimension", "8", "--no-baselines"]
    for words in (["train", str(path), "--out", run, *small], ["predict", run, str(path)]):
        command = [sys.executable, "-c", BARE, *words]
        done = subprocess.run(command, env=environment(), capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
    assert len(done.stdout.splitlines()) == 40
