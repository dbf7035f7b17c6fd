"""Small files, the server of commands with faults, and what makes two runs the same."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from superconext.core.files import file_sha256
from tests.cli.conftest import BAD, COMMON, GOOD, environment, rows, write_table

EPOCHS = 3


class Said(NamedTuple):
    code: int
    out: str
    err: str
    seconds: float
    events: int


class Server:
    """`server(words, folder, at=3, how="SIGKILL")`; see `server.Fault` for the faults."""

    def __init__(self, cache: Path) -> None:
        env = {**environment(), "SUPERCONEXT_CACHE": str(cache), "OMP_NUM_THREADS": "1"}
        env["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), env["PYTHONPATH"]])
        words = [sys.executable, "-m", "tests.reliability.server"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, encoding="utf-8", env=env)
        assert self.process.stdout.readline() == "ready\n"

    def __call__(self, words, folder, **fault) -> Said:
        asked = {"words": [str(word) for word in words], "folder": str(folder), **fault}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return Said(**json.loads(self.process.stdout.readline()))

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Files(NamedTuple):
    train: Path
    dev: Path
    test: Path
    text: Path
    vectors: Path

    def train_words(self, out: Path, *more: object) -> list[object]:
        """`superconext train` of a tiny model, in three epochs of two batches."""
        sizes = {"hidden-size": 4, "batch-size": 20, "learning-rate": 0.02}
        sizes |= {"epochs": EPOCHS, "steps-per-epoch": 2, "vectors": self.vectors}
        words = ["train", self.train, "--dev", self.dev, "--test", self.test, "--out", out]
        words += [word for name, value in sizes.items() for word in (f"--{name}", value)]
        return [*words, "--no-baselines", *more]


def make_files(folder: Path) -> Files:
    """Labelled files of 40, 12 and 12 rows, text without labels, and vectors for their words."""
    folder.mkdir(parents=True, exist_ok=True)
    table = rows(64, seed=0)
    draw = random.Random(1)
    words = [*GOOD, *BAD, *COMMON]
    vectors = [
        f"{word} {' '.join(f'{draw.gauss(0, 0.3):.4f}' for _ in range(6))}" for word in words
    ]
    (folder / "vectors.txt").write_text("\n".join(vectors) + "\n", encoding="utf-8")
    (folder / "text.txt").write_text("\n".join(text for _, text in table), encoding="utf-8")
    parts = {"train": table[:40], "dev": table[40:52], "test": table[52:]}
    made = [write_table(folder / f"{name}.tsv", part) for name, part in parts.items()]
    return Files(*made, folder / "text.txt", folder / "vectors.txt")


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder with its hash."""
    found = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): file_sha256(path) for path in found}


def results(run: Path) -> dict[str, object]:
    """All that a run holds but what tells the time: equal for equal runs, to the bit."""
    exact = contents(run)
    for name in ("manifest.json", "metrics.json", "history.csv", "README.md"):
        exact[name] = "timed"
    # The page repeats the command, which names folders.
    page = re.sub("superconext train [^<]*", "", (run / "report.html").read_text(encoding="utf-8"))
    exact["report.html"] = hashlib.sha256(page.encode()).hexdigest()
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    metrics.pop("seconds")
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    kept = {name: manifest[name] for name in ("status", "files", "vectors", "data", "seed")}
    lines = (run / "history.csv").read_text().splitlines()
    where = lines[0].split(",").index("seconds")
    history = [
        [cell for place, cell in enumerate(line.split(",")) if place != where] for line in lines
    ]
    return {"files": exact, "metrics": metrics, "manifest": kept, "history": history}


def digest(run: Path) -> str:
    """One hash for `results`."""
    return hashlib.sha256(json.dumps(results(run), sort_keys=True).encode()).hexdigest()[:16]
