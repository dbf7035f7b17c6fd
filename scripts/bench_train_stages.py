"""Where each second of `superconext train` goes, on one thread.

    python scripts/bench_train_stages.py results.csv [--rounds N] -- TRAIN --test TEST --preset fast

What follows `--` are words of `train`, to which a new run folder is added. Each round is a process
of its own, so that imports count; the first makes the word vectors and is left out, so they come
from the cache afterwards. Processor seconds of each stage without the stages inside it, medians
over the rounds. The table is printed and written to the file named first, as
scripts/results/bench_train_stages.csv was.
"""

from __future__ import annotations

import argparse
import builtins
import csv
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from superconext.report.table import Grid

IMPORTS, REST = "imports", "all else"

#: Of each stage, where its functions are called by name.
STAGES = {
    "reading the files": ["superconext.runs.train:read_splits"],
    "baselines": ["superconext.baselines.baseline:baseline_report"],
    "tokens, vocabulary, vectors": ["superconext.fitting.fit:preprocess"],
    "training steps": ["superconext.training.trainer:Trainer.fit"],
    "dev score after each epoch": ["superconext.fitting.stages:_probe_dev_score"],
    "checkpoint after each epoch": ["superconext.training.checkpoint:Checkpointer.save"],
    "sentence vectors and probe": [
        "superconext.fitting.fit:member_features",
        "superconext.fitting.fit:_final_probe",
    ],
    "evaluation": ["superconext.runs.artifacts:RunResults.of"],
    "figures": ["superconext.runs.artifacts:draw_figures"],
    "page and card": [
        "superconext.runs.artifacts:train_page",
        "superconext.runs.artifacts:write_page",
        "superconext.report.card:write_card",
    ],
    "saving the model": ["superconext.runs.artifacts:save_model"],
}


class Stopwatch:
    """Seconds of the innermost stage that is running."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._running, self._since = [REST], time.process_time()

    def _note(self) -> None:
        now = time.process_time()
        self.seconds[self._running[-1]] += now - self._since
        self._since = now

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._note()
        self._running.append(name)
        try:
            yield
        finally:
            self._note()
            self._running.pop()

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            with self.stage(name):
                return call(*given, **named)

        return timed


def once(words: list[str]) -> dict[str, float]:
    """Seconds of each stage of one training, in this process."""
    watch, plain = Stopwatch(), builtins.__import__

    def imported(name: str, *given: Any, **more: Any) -> Any:
        if name in sys.modules:
            return plain(name, *given, **more)
        with watch.stage(IMPORTS):
            return plain(name, *given, **more)

    builtins.__import__ = imported
    from superconext.cli import main

    for name, places in STAGES.items():
        for place in places:
            module, _, path = place.partition(":")
            with watch.stage(IMPORTS):
                home: Any = importlib.import_module(module)
            *outer, last = path.split(".")
            for part in outer:
                home = getattr(home, part)
            setattr(home, last, watch.timed(name, getattr(home, last)))
    with tempfile.TemporaryDirectory() as folder:
        try:
            main(["train", *words, "--out", str(Path(folder) / "run"), "--quiet", "--threads", "1"])
        except SystemExit as leaving:
            if leaving.code:
                raise
    watch._note()
    return dict(watch.seconds)


def rounds(words: list[str], count: int) -> list[dict[str, float]]:
    """The stages of so many trainings, after one that fills the cache."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    alone = {**os.environ, **dict.fromkeys(names, "1")}
    command = [sys.executable, __file__, "--once", "-", "--", *words]
    found = []
    for _ in range(count + 1):
        said = subprocess.run(command, env=alone, stdout=subprocess.PIPE, check=True)
        found.append(json.loads(said.stdout.splitlines()[-1]))
    return found[1:]


def grid(lines: list[dict[str, str]]) -> Grid:
    """The stages, the longest first; what takes less than 4% is part of all else."""
    seconds = {line["stage"]: float(line["seconds"]) for line in lines}
    total = sum(seconds.values())
    shown = {name: one for name, one in seconds.items() if one >= 0.04 * total and name != REST}
    shown = dict(sorted(shown.items(), key=lambda item: -item[1]))
    shown[REST] = total - sum(shown.values())
    rows = [[name, f"{one:.2f}", f"{one / total:.0%}"] for name, one in shown.items()]
    return Grid(["stage", "seconds", "share"], [*rows, ["total", f"{total:.1f}", "100%"]])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("results", help="CSV file of the stages")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--once", action="store_true", help=argparse.SUPPRESS)
    cut = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options, words = parser.parse_args(sys.argv[1:cut]), sys.argv[cut + 1 :]
    if options.once:
        print(json.dumps(once(words)))
        return 0
    found = rounds(words, options.rounds)
    with open(options.results, "w", encoding="utf-8", newline="") as stream:
        write = csv.writer(stream, lineterminator="\n")
        write.writerow(["stage", "seconds"])
        for name in [IMPORTS, *STAGES, REST]:
            seconds = statistics.median(one.get(name, 0.0) for one in found)
            write.writerow([name, f"{seconds:.3f}"])
    with open(options.results, encoding="utf-8", newline="") as stream:
        print(grid(list(csv.DictReader(stream))).markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
