"""A few short sentences, word vectors for them, and the command line called in-process."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

import superconext
import superconext.report.figures
from superconext.cli import main

GOOD = ["زوين", "مزيان", "zwin", "mzyan", "bnin", "روعة"]
BAD = ["خايب", "khayb", "ضعيف", "7amd", "ghali", "عيان"]
COMMON = ["هاد", "الفيلم", "had", "lfilm", "bzaf", "كان", "kan", "walakin", "والو", "l3icha"]


class Outcome(NamedTuple):
    """What a command left behind: exit code, standard output and standard error."""

    code: int
    out: str
    err: str


class Data(NamedTuple):
    """Labelled files (TSV with a header), word vectors, and options for a tiny model."""

    train: Path
    dev: Path
    test: Path
    vectors: Path
    small: tuple[str, ...]


Call = Callable[..., Outcome]


def rows(count: int, seed: int) -> list[tuple[str, str]]:
    """Distinct (label, text) pairs, the two classes in turn."""
    draw = random.Random(seed)
    found: dict[str, str] = {}
    for label in itertools.cycle(["neg", "pos"]):
        words = [*draw.sample(COMMON, 4), draw.choice(GOOD if label == "pos" else BAD)]
        draw.shuffle(words)
        found.setdefault(" ".join(words), label)
        if len(found) == count:
            return [(label, text) for text, label in found.items()]
    raise AssertionError


def write_table(path: Path, table: list[tuple[str, str]]) -> Path:
    """Write (label, text) pairs as TSV under a header."""
    lines = ["label\ttext", *(f"{label}\t{text}" for label, text in table)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def call_main(*words: object, stdin: bytes = b"") -> Outcome:
    """Call the command line with these words; the exit code is 0 where it just returns."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        try:
            main([str(word) for word in words])
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
    return Outcome(code, out.getvalue(), err.getvalue())


def environment() -> dict[str, str]:
    """Variables for a process of its own, which finds this very package."""
    home = str(Path(superconext.__file__).parents[1])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONIOENCODING": "utf-8"}


def blame(said, code=1):
    """The one line of the error; before it there may be notes and progress."""
    assert said.code == code, said.err
    assert said.out == ""
    *before, last = said.err.splitlines()
    assert last.startswith("error: ") and len(last) > 30, said.err
    assert not any(line.startswith("error") or "Traceback" in line for line in before)
    assert "Warning" not in said.err and "not expected: run again" not in said.err
    return last


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch):
    """Drawing takes longer than training these models; only `finished` has pictures."""
    monkeypatch.setattr(superconext.report.figures, "available", lambda: False)


@pytest.fixture(scope="session")
def call() -> Call:
    return call_main


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Data:
    folder = tmp_path_factory.mktemp("data")
    table = rows(64, seed=0)
    draw = random.Random(1)
    # Two words have no vector, and two vectors belong to no training word.
    known = [*GOOD[1:], *BAD[1:], *COMMON, "kolchi", "ديما"]
    lines = [f"{word} {' '.join(f'{draw.gauss(0, 0.3):.4f}' for _ in range(8))}" for word in known]
    vectors = folder / "vectors.txt"
    vectors.write_text("\n".join(lines) + "\n", encoding="utf-8")
    small = {
        "vectors": vectors,
        "epochs": 2,
        "hidden-size": 8,
        "vector-dimension": 8,
        "batch-size": 20,
        "learning-rate": 0.02,
    }
    return Data(
        write_table(folder / "train.tsv", table[:40]),
        write_table(folder / "dev.tsv", table[40:52]),
        write_table(folder / "test.tsv", table[52:]),
        vectors,
        tuple(itertools.chain(*((f"--{name}", str(value)) for name, value in small.items()))),
    )


class Finished(NamedTuple):
    """A run folder, what its command said, and the labelled files it was made from."""

    folder: Path
    said: Outcome
    data: Data


@pytest.fixture(scope="session")
def finished(tmp_path_factory, data) -> Finished:
    """A run with dev and test files, baselines and, where they can be drawn, figures."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    given = ("--dev", data.dev, "--test", data.test, "--out", folder)
    said = call_main("train", data.train, *given, *data.small)
    assert said.code == 0, said.err
    return Finished(folder, said, data)
