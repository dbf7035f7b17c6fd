"""What would a hundred million unlabelled lines take? Time, memory and disk, from measured slopes.

    python scripts/bench_much_text.py TEXT [--lines 8000,16000,32000]

`data pool`, `vectors train` (5 epochs, its number for much text) and `pretrain` with their defaults
read so many lines of TEXT, spread over the file, with one thread. Processor seconds, the peak of
resident memory and that of what lies on disk (results, cache, temporary files) go to
scripts/results/bench_much_text.csv, and what they come to at a hundred million lines into
docs/performance.md: on straight lines through them over the number of lines, but memory and disk of
the last two over the number of distinct words (seen twice or more), whose growth by a power of the
lines is measured on an eighth to the whole of TEXT. `--table` writes the table alone.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
from doc_tables import read_rows, write_rows, write_table

from superconext.report.table import Grid

NAME = "much_text"
ROOT = Path(__file__).parents[1]
STORED = ROOT / "scripts" / "results" / f"bench_{NAME}.csv"
PAGE = ROOT / "docs" / "performance.md"
ASKED = 100_000_000
WORDS = "text"
#: The command, which at its end notes its own peak: what the system counts for a child begins with
#: the memory of its parent.
COMMAND = """
import atexit, pathlib
from superconext.cli import main
status = pathlib.Path("/proc/self/status")
atexit.register(lambda: pathlib.Path("status").write_text(status.read_text()))
main()
"""
FIELDS = ("seconds", "memory_mb", "disk_mb")
STEPS = {
    "data pool": ["data", "pool", "text.txt", "--out", "pool.txt"],
    "vectors train": ["vectors", "train", "pool.txt", "--epochs", "5", "--out", "vectors"],
    "pretrain": ["pretrain", "pool.txt", "--vectors", "vectors", "--out", "encoder"],
}


def disk_of(folder: Path) -> int:
    """Bytes of the files below a folder that is being written."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += Path(place, name).stat().st_size
            except FileNotFoundError:
                continue
    return total


def measured(words: list[str], folder: Path) -> dict[str, float]:
    """Processor seconds, and peaks of memory and of disk in megabytes, of one command."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    there = {"SUPERCONEXT_CACHE": str(folder / "cache"), "TMPDIR": str(folder)}
    command = [sys.executable, "-c", COMMAND, *words, "--quiet"]
    before, peak = disk_of(folder), 0
    child = subprocess.Popen(
        command, cwd=folder, env={**os.environ, **one, **there}, stdout=subprocess.DEVNULL
    )
    while True:
        peak = max(peak, disk_of(folder) - before)
        done, status, usage = os.wait4(child.pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)} ended with exit code {child.returncode}")
    seconds = usage.ru_utime + usage.ru_stime
    memory = int(re.findall(r"VmHWM:\s*(\d+) kB", (folder / "status").read_text())[0]) * 1024
    return dict(zip(FIELDS, (seconds, memory / 1e6, peak / 1e6), strict=True))


def distinct_words(lines: list[str]) -> int:
    """Distinct words that stand in these lines twice or more."""
    counts = Counter(word for line in lines for word in line.split())
    return sum(count > 1 for count in counts.values())


def measure(text: Path, sizes: list[int]) -> list[dict[str, object]]:
    """A line for each step and number of lines, and one for each share of the words."""
    lines = text.read_text(encoding="utf-8").splitlines(keepends=True)
    found: list[dict[str, object]] = []
    for part in (lines[:: 2**k] for k in (3, 2, 1, 0)):
        found.append({"step": WORDS, "lines": len(part), "words": distinct_words(part)})
    for size in sizes:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            chosen = [lines[at] for at in np.linspace(0, len(lines) - 1, size).astype(int)]
            (folder / "text.txt").write_text("".join(chosen), encoding="utf-8")
            about = {"lines": size, "words": distinct_words(chosen)}
            for step, words in STEPS.items():
                found.append(about | {"step": step} | measured(words, folder))
                print(found[-1], file=sys.stderr, flush=True)
    return found


def grid(lines: list[dict[str, str]]) -> Grid:
    """Each step at a hundred million lines."""
    points = defaultdict(list)
    for line in lines:
        points[line["step"]].append(
            [float(line[name] or 0) for name in ("lines", "words", *FIELDS)]
        )
    sizes, words, *_ = np.array(points.pop(WORDS)).T
    distinct = np.exp(np.polyval(np.polyfit(np.log(sizes), np.log(words), 1), np.log(ASKED)))
    rows = []
    for step, of_step in points.items():
        sizes, words, seconds, *room = np.array(of_step).T
        hours = np.polyval(np.polyfit(sizes, seconds, 1), ASKED) / 3600
        over, at = (sizes, ASKED) if step == "data pool" else (words, distinct)
        giga = [np.polyval(np.polyfit(over, one, 1), at) / 1e3 for one in room]
        rows.append([step, f"{hours:,.0f}", *(f"{one:,.0f}" for one in giga)])
    step = f"step ({distinct / 1e6:.0f} million distinct words)"
    return Grid([step, "hours of one core", "GB of memory", "GB of disk"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path, nargs="?", help="text file, a sentence a line")
    parser.add_argument("--lines", default="8000,16000,32000")
    parser.add_argument("--table", action="store_true", help="write the table of what is stored")
    options = parser.parse_args()
    if not options.table:
        found = measure(options.text, [int(size) for size in options.lines.split(",")])
        rows = [{k: f"{v:.1f}" if k in FIELDS else v for k, v in one.items()} for one in found]
        write_rows(STORED, rows)
    table = grid(read_rows(STORED))
    write_table(PAGE, NAME, table)
    print(table.markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
