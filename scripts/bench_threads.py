"""How many threads, and how should they wait: alone, and beside busy neighbours?

    python scripts/bench_threads.py [--rounds N] [--steps N] [--size small|large] [--json]

The policies take turns, each in a process of its own, for how OpenMP's workers wait is read when
torch is imported: one thread; all processors with torch's own waiting (spinning), with passive
waiting, and with a spin of 1000 rounds before it; and what `superconext train` does by itself,
which looks at the load when it begins. Neighbours are processes that only count, at the same
priority as this one. Seconds on the clock for a training step (bench_step.py's `ours`); medians
and quartiles. A policy is judged by its ratio to the best of the fixed ones under the same load:
the aim is 1.2 at most, under every load. Run it where nothing else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench_output import give_out, summary

from superconext.core.process import SPIN, choose_threads, wait_briefly

#: What OpenMP reads; a policy sets these and no others.
VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
PASSIVE = {"OMP_WAIT_POLICY": "passive"}
FIXED: dict[str, tuple[bool, dict[str, str]]] = {  # (all processors, environment)
    "one thread": (False, {}),
    "all, spinning": (True, {}),
    "all, passive": (True, PASSIVE),
    "all, bounded spin": (True, {**PASSIVE, "GOMP_SPINCOUNT": SPIN}),
}
OURS = "superconext"


def work(size: str, steps: int, all_processors: bool | None) -> dict:
    """In a process of its own: one policy's seconds a step."""
    from superconext.core.process import keep_freed_memory

    if all_processors is None:
        wait_briefly()
    threads = _threads(all_processors)
    keep_freed_memory()
    import torch
    from bench_step import SIZES, draw_sentences, ours

    torch.set_num_threads(threads)
    run = ours(SIZES[size], draw_sentences("short"), steps)
    run()
    started = time.perf_counter()
    run()
    return {"threads": threads, "seconds": (time.perf_counter() - started) / steps}


def _threads(all_processors: bool | None) -> int:
    if all_processors is None:
        return choose_threads()
    return len(os.sched_getaffinity(0)) if all_processors else 1


@contextmanager
def neighbours(count: int) -> Iterator[None]:
    """So many processes that keep a processor busy."""
    code = "while True: pass"
    started = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for process in started:
            process.kill()
            process.wait()


def run_policy(name: str, options: argparse.Namespace) -> dict:
    environment = {key: value for key, value in os.environ.items() if key not in VARIABLES}
    which = "ours"
    if name != OURS:
        everything, settings = FIXED[name]
        environment |= settings
        which = "all" if everything else "one"
    command = [sys.executable, __file__, "--worker", which, "--size", options.size]
    done = subprocess.run(
        [*command, "--steps", str(options.steps)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    result: dict = json.loads(done.stdout)
    return result


def measure(count: int, options: argparse.Namespace) -> dict:
    """All policies beside so many neighbours."""
    names = [*FIXED, OURS]
    found: dict[str, list[dict]] = {name: [] for name in names}
    with neighbours(count):
        for turn in range(options.rounds):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                found[name].append(run_policy(name, options))
    middle = {
        name: statistics.median(run["seconds"] for run in runs) for name, runs in found.items()
    }
    best = min(middle[name] for name in FIXED)
    policies = {}
    for name, runs in found.items():
        policies[name] = {
            "threads": sorted({run["threads"] for run in runs}),
            "seconds": summary([run["seconds"] for run in runs]),
            "over_best_fixed": middle[name] / best,
        }
    return {"neighbours": count, "policies": policies}


def show(result: dict) -> None:
    print(f"{result['neighbours']} busy neighbours")
    for name, value in result["policies"].items():
        seconds = value["seconds"]
        print(
            f"  {name:18} {1e3 * seconds['median']:7.1f} [{1e3 * seconds['low']:.1f}, "
            f"{1e3 * seconds['high']:.1f}] ms a step, {value['over_best_fixed']:.2f} of the best "
            f"fixed, threads {value['threads']}",
            flush=True,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--size", choices=("small", "large"), default="small")
    parser.add_argument("--neighbours", default="0,1,2")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--worker", choices=("one", "all", "ours"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        chosen = {"one": False, "all": True, "ours": None}[options.worker]
        print(json.dumps(work(options.size, options.steps, chosen)))
        return 0
    counts = map(int, options.neighbours.split(","))
    give_out((measure(count, options) for count in counts), show, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
