"""`--compile`: where the library is kept, and what happens without a compiler."""

import shutil

import pytest

from superconext.core import compiler
from superconext.encoders.compiled_gates import Kernel, kernel


@pytest.fixture
def unmade(monkeypatch, tmp_path):
    """As on a machine where the kernel was never made."""
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    kernel.cache_clear()
    yield tmp_path
    kernel.cache_clear()


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_the_library_is_made_once_and_stands_in_the_cache(unmade, call):
    assert isinstance(kernel(), Kernel)
    (library,) = (unmade / "cache" / compiler.FOLDER).iterdir()
    made = library.stat().st_mtime_ns
    kernel.cache_clear()
    assert isinstance(kernel(), Kernel) and library.stat().st_mtime_ns == made
    library.chmod(0o777)  # anybody may have changed it
    kernel.cache_clear()
    assert isinstance(kernel(), Kernel) and library.stat().st_mtime_ns != made
    assert library.stat().st_mode & 0o777 == 0o700
    library.parent.chmod(0o777)
    kernel.cache_clear()
    assert kernel() == f"{library.parent}: found a folder that others can write to"
    said = call("cache")
    assert said.code == 0 and f"{compiler.FOLDER}/{library.stem[:8]}" in said.out, said


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
def test_a_cache_that_cannot_be_made_is_not_laid_to_the_compiler(unmade, monkeypatch):
    (unmade / "file").touch()
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(unmade / "file"))
    told = str(kernel())
    assert told.startswith(f"{unmade / 'file'}") and "SUPERCONEXT_CACHE" in told


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (None, "found no C++ compiler, expected g++ or clang++"),
        ("echo release; echo no such option >&2; [ $1 = --version ]", "no such option"),
        ("[ $1 = --version ] || { for last; do :; done; touch $last; }", "file too short"),
    ],
)
def test_without_a_working_compiler_training_goes_on(unmade, call, data, monkeypatch, script, told):
    if script is None:
        monkeypatch.setattr(compiler.shutil, "which", lambda name: None)
    else:
        fake = unmade / "fake"
        fake.write_text(f"#!/bin/sh\n{script}\n")
        fake.chmod(0o755)
        monkeypatch.setenv("CXX", str(fake))
    run = unmade / "run"
    given = ("--dev", data.dev, "--out", run, "--compile")
    said = call("train", data.train, *given, *data.small)
    assert said.code == 0, said.err
    (line,) = [line for line in said.err.splitlines() if "compile:" in line]
    assert told in line and "training goes on without, and is slower" in line
    assert "\ncompile = true\n" in (run / "config.toml").read_text()
    assert isinstance(kernel(), str)
