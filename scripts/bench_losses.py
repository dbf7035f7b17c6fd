"""Time and memory of the pairwise losses, beside plain autograd and pytorch-metric-learning.

    python scripts/bench_losses.py [--rows 200,1024,4096] [--dimension 128] [--classes 2]
        [--rounds N] [--memory] [--json]

Each contestant is the loss of N unit vectors, forward and backward. `bare` is the least a loss
over all pairs can cost under plain autograd: `torch.logsumexp(z @ z.T / temperature, 1).mean()`,
no positives, no masks. `products` is three matrix products of 2 N N d and nothing else, and
`products and sort` these and each row's negatives sorted, what a loss over all triplets needs. The
contestants take turns in one process on one thread; medians and quartiles of processor seconds
are printed (`--clock wall` for the other), and their ratio to `bare`. pytorch-metric-learning's
SupConLoss joins if it is installed.

`--memory` gives, for each contestant in a process of its own, by how many megabytes the loss and
its gradient raise the peak of resident memory.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from bench_output import give_out, summary

CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
TEMPERATURE = 0.1
MINED = {
    "superloss, threshold": ("threshold", 0.05),
    "superloss, topk": ("topk", 20),
    "superloss, quantile": ("quantile", 0.1),
}


def contestants(rows: int, dimension: int, classes: int) -> dict[str, Callable[[], object]]:
    """Functions that compute one loss and its gradient."""
    import numpy as np
    import torch

    from superconext.objectives.base import Batch
    from superconext.objectives.supcon import NPair, Options, SupCon
    from superconext.objectives.superloss import Miner, SuperLoss
    from superconext.objectives.triplet import Options as TripletOptions
    from superconext.objectives.triplet import Triplet

    torch.manual_seed(0)
    labels, ids = torch.arange(rows) % classes, torch.arange(rows)
    z = torch.nn.functional.normalize(torch.randn(rows, dimension), dim=1)
    left, right = torch.empty(rows, rows), torch.empty(rows, dimension)

    def products() -> None:
        torch.mm(z, z.T, out=left)
        torch.mm(left, z, out=right)
        torch.mm(left.T, z, out=right)

    def products_and_sort() -> None:
        products()
        others = left.numpy().reshape(-1)[: rows * (rows - rows // classes)]
        np.sort(others.reshape(rows, -1), axis=1)

    def gradient(loss: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], None]:
        def run() -> None:
            loss(z.clone().requires_grad_()).backward()

        return run

    def form(objective: torch.nn.Module, name: str) -> Callable[[], None]:
        def loss(x: torch.Tensor) -> torch.Tensor:
            value: torch.Tensor = getattr(objective, name)(Batch(x, x, labels, ids, 0, 1))[0]
            return value

        return gradient(loss)

    result: dict[str, Callable[[], object]] = {
        "products": products,
        "products and sort": products_and_sort,
        "bare": gradient(lambda x: torch.logsumexp(x @ x.T / TEMPERATURE, dim=1).mean()),
        "superloss": form(SuperLoss(TEMPERATURE), "chunked"),
        "superloss, plain": form(SuperLoss(TEMPERATURE), "plain"),
        "supcon out": form(SupCon(TEMPERATURE), "chunked"),
        "supcon in": form(SupCon(TEMPERATURE, Options("in")), "chunked"),
        "supcon out, plain": form(SupCon(TEMPERATURE), "plain"),
    }
    for name, (mode, level) in MINED.items():
        objective = SuperLoss(TEMPERATURE, miner=Miner(mode, level, 0.0))
        result[name] = form(objective, "chunked")
        result[f"{name}, plain"] = form(objective, "plain")
    forms = {
        f"triplet, {name}": Triplet(TripletOptions(form=name))
        for name in ("hard", "all", "semi_hard", "soft")
    }
    for name, other in (forms | {"n-pair": NPair(TEMPERATURE)}).items():
        result[name] = form(other, "forward")
    try:
        from pytorch_metric_learning.losses import SupConLoss
    except ImportError:
        return result
    rival = SupConLoss(temperature=TEMPERATURE)
    result["pytorch-metric-learning supcon"] = gradient(lambda x: rival(x, labels))
    return result


def times(
    runs: dict[str, Callable[[], object]], rounds: int, clock: Callable[[], float]
) -> dict[str, dict[str, float]]:
    """Seconds of each contestant, taking turns, after one round that does not count."""
    taken: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            started = clock()
            run()
            if number:
                taken[name].append(clock() - started)
    ratio = {
        name: median(own / bare for own, bare in zip(values, taken["bare"], strict=True))
        for name, values in taken.items()
    }
    return {name: {**summary(values), "over_bare": ratio[name]} for name, values in taken.items()}


def resident_peak() -> float:
    """Peak resident memory of this process in megabytes (Linux)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    raise OSError("no VmHWM in /proc/self/status")


def extra_memory(name: str, options: argparse.Namespace, rows: int) -> float:
    """Measured in a process of its own: one small call first, for what libraries take once."""
    command = [sys.executable, __file__, "--child", name, "--rows", str(rows)]
    command += ["--dimension", str(options.dimension), "--classes", str(options.classes)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(found.stdout)


def child(name: str, options: argparse.Namespace, rows: int) -> None:
    import torch

    torch.set_num_threads(1)
    contestants(64, options.dimension, options.classes)[name]()
    run = contestants(rows, options.dimension, options.classes)[name]
    before = resident_peak()
    run()
    print(resident_peak() - before)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default="200,1024,4096", help="batch sizes")
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="contestants, separated by semicolons")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="cpu")
    parser.add_argument("--memory", action="store_true", help="peak memory instead of time")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = [int(rows) for rows in options.rows.split(",")]
    if options.child:
        child(options.child, options, sizes[0])
        return 0
    import torch

    from superconext.core.process import keep_freed_memory

    keep_freed_memory()
    torch.set_num_threads(1)

    def measure(rows: int) -> dict:
        runs = contestants(rows, options.dimension, options.classes)
        if options.only:
            chosen = {"bare", *options.only.split(";")}
            runs = {name: run for name, run in runs.items() if name in chosen}
        if options.memory:
            found: object = {name: extra_memory(name, options, rows) for name in runs}
        else:
            found = times(runs, options.rounds, CLOCKS[options.clock])
        return {"rows": rows, "dimension": options.dimension, "contestants": found}

    give_out(map(measure, sizes), lambda one: show(one, options.memory), options.json)
    return 0


def show(result: dict, memory: bool) -> None:
    print(f"N = {result['rows']}, d = {result['dimension']}")
    for name, value in result["contestants"].items():
        if memory:
            print(f"  {name:32} {value:8.1f} MB")
        else:
            spread = f"[{1e3 * value['low']:.1f}, {1e3 * value['high']:.1f}]"
            print(
                f"  {name:32} {1e3 * value['median']:8.1f} ms {spread:18} "
                f"{value['over_bare']:6.2f} of bare"
            )


if __name__ == "__main__":
    sys.exit(main())
