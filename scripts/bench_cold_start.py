"""Seconds until a run, or its ONNX export in a light install, has answered its first text.

    python scripts/bench_cold_start.py [--words N] [--rounds N] [--light PYTHON ...] [--store]
    python scripts/bench_cold_start.py --table

The model knows 50,000 words. Each figure is of a fresh process of its own, the interpreter's start
included: its processor seconds, which a busy machine stretches less, and the wall clock beside
them; medians of contestants that take turns.

PYTHON is the interpreter of an environment with the extra `serve` and nothing else (pip and
setuptools do not count): its packages are measured in megabytes, byte code included. That needs the
extra `onnx` here. `--store` puts the figures into scripts/results/bench_cold_start.csv and their
table into docs/inference.md; `--table` writes the table alone.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from doc_tables import read_rows, write_rows, write_table

from superconext.report.table import Grid

NAME = "cold_start"
ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "scripts" / "results" / "bench_cold_start.csv"
PAGE = ROOT / "docs" / "inference.md"
FIELDS = ("installed", "megabytes", "process", "processor", "wall")
ALONE = "the interpreter alone"
LOAD = "import sys, superconext; superconext.load(sys.argv[1]).predict(['zwin bzaf had film'])"
#: Prints the megabytes of all installed files but those of an empty environment, and a version.
SIZE = """
import sysconfig, pathlib, importlib.metadata
home, size = pathlib.Path(sysconfig.get_path("purelib")), 0
for path in home.rglob("*"):
    own = path.relative_to(home).parts[0]
    if path.is_file() and not own.startswith(("pip", "setuptools", "pkg_resources", "_distutils")):
        size += path.stat().st_size
print(size / 1e6, importlib.metadata.version("onnxruntime"))
"""


def once(words: list[str], environment: dict[str, str], folder: str) -> tuple[float, float]:
    """(processor seconds, wall seconds) of one process. Raises RuntimeError if it fails."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    said = subprocess.run(
        words, input=b"zwin bzaf had film\n", capture_output=True, env=environment, cwd=folder
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if said.returncode:
        raise RuntimeError(said.stderr.decode(errors="replace").strip())
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def of_light(python: str, export: str) -> tuple[str, float, dict[str, list[str]]]:
    """What is installed there, its megabytes, and the processes to measure."""
    said = subprocess.run([python, "-I", "-c", SIZE], capture_output=True, text=True, check=True)
    size, version = said.stdout.split()
    processes = {
        ALONE: [python, "-c", ""],
        "import superconext": [python, "-c", "import superconext"],
        "superconext predict": [python, "-m", "superconext", "predict", export],
        "classify.py": [python, f"{export}/classify.py"],
        "load, predict in Python": [python, "-c", LOAD, export],
    }
    return f"extra serve, onnxruntime {version}: export", float(size), processes


def measure(options: argparse.Namespace) -> list[dict[str, str]]:
    sys.path.insert(0, str(ROOT))
    from superconext.export.onnx_folder import write_onnx
    from superconext.runs.folder import load_model, save_run
    from tests.runs.test_folder import make_model

    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH"):  # byte code is kept, as when installed
        environment.pop(name, None)
    with tempfile.TemporaryDirectory() as folder:
        run, export = f"{folder}/run", f"{folder}/export"
        environment["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        own = sys.executable
        save_run(make_model(options.words), Path(run))
        train = {
            ALONE: [own, "-c", ""],
            "import superconext": [own, "-c", "import superconext"],
            "superconext predict": [own, "-m", "superconext", "predict", run],
            "load, predict in Python": [own, "-c", LOAD, run],
        }
        places = [("extra train: run", 0.0, train)]
        if options.light:
            Path(export).mkdir()
            write_onnx(load_model(Path(run)), Path(export))
            places += [of_light(python, export) for python in options.light]
        taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for turn in range(options.rounds + 1):
            for number, (place, _, processes) in enumerate(places):
                given = environment if number else {**environment, "PYTHONPATH": str(ROOT)}
                for name, words in processes.items():
                    seconds = once(words, given, folder)
                    if turn:  # the first round fills the disk's cache
                        taken.setdefault((place, name), []).append(seconds)
    sizes = {place: f"{size:.0f}" if size else "" for place, size, _ in places}
    return [
        dict(zip(FIELDS, (at, sizes[at], name, f"{cpu:.3f}", f"{wall:.3f}"), strict=True))
        for (at, name), values in taken.items()
        for cpu, wall in [np.median(values, axis=0)]
    ]


def grid(rows: list[dict[str, str]]) -> Grid:
    """Of each install, its size and the processor seconds of two processes."""
    processes, lines = ["superconext predict", "load, predict in Python"], []
    for place in dict.fromkeys(row["installed"] for row in rows):
        own = {row["process"]: row for row in rows if row["installed"] == place}
        cells = [f"{float(own[name]['processor']):.2f}" for name in processes]
        lines.append([place, own[ALONE]["megabytes"], *cells])
    return Grid(["installed", "MB", *processes], lines, right=frozenset((1, 2, 3)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--light", nargs="*", default=[], metavar="PYTHON")
    parser.add_argument("--store", action="store_true", help="keep what is measured")
    parser.add_argument("--table", action="store_true", help="write the table of what is stored")
    options = parser.parse_args()
    if not options.table:
        rows = measure(options)
        for row in rows:
            print(*row.values(), sep="\t")
        if not options.store:
            return 0
        write_rows(STORED, rows)
    write_table(PAGE, NAME, grid(read_rows(STORED)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
