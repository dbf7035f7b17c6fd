"""Closed standard streams, users without a home, and names that a shell would take apart."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from superconext.core import files
from tests.cli.conftest import environment


def closed(which, *words, given=b""):
    """superconext with a standard stream closed, as `command >&-` does."""
    shell = f'exec "$0" "$@" {which}'
    line = ["sh", "-c", shell, sys.executable, "-m", "superconext", *map(str, words)]
    return subprocess.run(line, input=given, capture_output=True, env=environment(), timeout=120)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="needs sh")
@pytest.mark.parametrize("which", ["<&-", ">&-", "2>&-"])
def test_a_closed_stream_is_an_empty_one(finished, tmp_path, which):
    out = tmp_path / "out.tsv"
    (tmp_path / "texts.txt").write_text("kan zwin\nkan khayb\n", encoding="utf-8")
    said = closed(which, "predict", finished.folder, tmp_path / "texts.txt", "--out", out)
    assert said.returncode == 0 and len(out.read_text(encoding="utf-8").splitlines()) == 3
    said = closed(which, "predict", finished.folder, given=b"kan zwin\n")
    assert said.returncode == (which == "<&-")
    assert b"Traceback" not in said.stderr and b"not expected" not in said.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="needs sh")
def test_an_unbuffered_output_that_is_cut_off_is_told(tmp_path):
    shell = 'ulimit -f 8; exec "$0" -u -m superconext train --help-all > "$1"'
    line = ["sh", "-c", shell, sys.executable, str(tmp_path / "out.txt")]
    said = subprocess.run(line, capture_output=True, env=environment(), timeout=120)
    assert 4_000 < (tmp_path / "out.txt").stat().st_size < 10_000
    assert said.returncode == 1 and said.stderr.startswith(b"error: standard output: ")


@pytest.mark.skipif(sys.platform == "win32", reason="has other variables")
def test_a_user_without_a_home_predicts(call, finished, tmp_path, monkeypatch):
    for name in ("HOME", "SUPERCONEXT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)

    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    (tmp_path / "texts.txt").write_text("kan zwin\n", encoding="utf-8")
    said = call("predict", finished.folder, tmp_path / "texts.txt")
    assert said.code == 0 and "kan zwin" in said.out
    said = call("cache")
    assert said.code == 1 and "set HOME or SUPERCONEXT_CACHE" in said.err


@pytest.mark.parametrize("name", ["a b", "-r x", "é", "plain"])
@pytest.mark.skipif(sys.platform == "win32", reason="needs sh")
def test_a_shell_takes_a_name_for_a_file(tmp_path, name):
    (tmp_path / name).write_text("here")
    line = f"cat {files.shell_word(name)}"
    assert subprocess.check_output(line, shell=True, cwd=tmp_path, env=os.environ) == b"here"
