"""Seconds until a run of 50,000 words has answered its first text, and until `--help` is read.

    python scripts/bench_cold_start.py [--words N] [--rounds N] [--json]

Each figure is of a fresh process of its own, the interpreter's start included: its processor
seconds, which a busy machine stretches less, and the wall clock beside them. "Until the answer"
leaves out the end of the process, which takes torch apart.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
ANSWERED = "load and predict, until the answer"
TARGETS = {ANSWERED: 2.0, "predict, one text": 2.0, "--help": 0.3}
LOAD = "import sys, superconext; superconext.load(sys.argv[1]).predict(['zwin bzaf had film'])"
TELL = "; import time; print(time.process_time())"


def once(words: list[str], environment: dict[str, str], told: bool = False) -> tuple[float, float]:
    """(processor seconds, wall seconds) of one process. Raises RuntimeError if it fails.

    told: take the processor seconds that the process prints.
    """
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    said = subprocess.run(
        words, input=b"zwin bzaf had film\n", capture_output=True, env=environment, check=False
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if said.returncode:
        raise RuntimeError(said.stderr.decode(errors="replace").strip())
    if told:
        return float(said.stdout), wall
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, wall


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from superconext.runs.folder import save_run
    from tests.runs.test_folder import make_model

    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    # Compiled once and kept, as an installed package is.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder) / "run")
        environment["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "bytecode")
        save_run(make_model(options.words), Path(run))
        commands = {
            "the interpreter alone": [sys.executable, "-c", ""],
            "--help": [sys.executable, "-m", "superconext", "--help"],
            "import torch": [sys.executable, "-c", "import torch"],
            "load and predict": [sys.executable, "-c", LOAD, run],
            ANSWERED: [sys.executable, "-c", LOAD + TELL, run],
            "predict, one text": [sys.executable, "-m", "superconext", "predict", run],
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for turn in range(options.rounds + 1):
            for name, words in commands.items():
                taken = once(words, environment, name == ANSWERED)
                if turn:  # the first round fills the disk's cache
                    times[name].append(taken)
    result = {}
    for name, taken in times.items():
        cpu, wall = zip(*taken, strict=True)
        result[name] = {
            "cpu": float(np.median(cpu)),
            "low": float(np.percentile(cpu, 25)),
            "high": float(np.percentile(cpu, 75)),
            "wall": float(np.median(wall)),
            "target": TARGETS.get(name),
        }
    if options.json:
        print(json.dumps({"words": options.words, "seconds": result}))
        return 0
    print(f"{options.words} words, processor seconds (median [quartiles]), wall clock")
    for name, value in result.items():
        target = f"  (target {value['target']:g})" if value["target"] else ""
        spread = f"[{value['low']:.2f}, {value['high']:.2f}]"
        print(f"  {name:36} {value['cpu']:6.2f} {spread}  {value['wall']:6.2f}{target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
