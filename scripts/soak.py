"""Many short fits in one process, and many processes at one run: is anything left behind?

    python scripts/soak.py --fits 1000 --predictors 10

An evening's work in miniature. Prints a table: after each tenth of the fits, the memory of the
process (resident, MiB), its open files and threads, and the seconds of a fit; then whether the
processes that predict from one run at the same time gave the same bytes. Exit 1 if memory grew
by more than --growth MiB after the first tenth, a file stayed open, or an answer differed.
Linux, for the counts come from /proc.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_WORDS = [
    *("zwin", "mzyan", "bnin", "hada", "lfilm", "bzaf"),
    *("kan", "walakin", "khayb", "ghali", "7amd", "l3icha"),
]


def sentences(count: int) -> tuple[list[str], list[str]]:
    """Distinct sentences of four words and two labels."""
    texts = [
        " ".join(_WORDS[(k * step + k // 7) % len(_WORDS)] for step in (1, 5, 7, 11)) + f" w{k}"
        for k in range(count)
    ]
    return texts, ["pos" if k % 2 else "neg" for k in range(count)]


def measure() -> tuple[float, int, int]:
    """Resident memory in MiB, open files, threads of this process."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    memory = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return memory, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def fit(folder: Path, number: int) -> None:
    """One short life of a model: fitted, asked, saved, loaded."""
    from superconext import SuperConTextClassifier, load

    texts, labels = sentences(24)
    model = SuperConTextClassifier(
        epochs=1,
        steps_per_epoch=2,
        batch_size=8,
        hidden_size=8,
        vector_dimension=8,
        vector_method="random",
        seed=number,
    )
    model.fit(texts, labels)
    before = model.predict(texts[:6])
    place = folder / f"run-{number}"
    model.save(place)
    if list(load(place).predict(texts[:6])) != list(before):
        raise SystemExit(f"fit {number}: the loaded model answers otherwise")
    for path in sorted(place.rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    place.rmdir()


def soak(fits: int, folder: Path) -> list[tuple[int, float, int, int, float]]:
    """Rows of the table: fits done, memory, open files, threads, seconds of a fit."""
    rows, began, done = [], time.perf_counter(), 0
    for number in range(1, fits + 1):
        fit(folder, number)
        if number % max(fits // 10, 1) == 0 or number == fits:
            seconds = (time.perf_counter() - began) / (number - done)
            rows.append((number, *measure(), seconds))
            began, done = time.perf_counter(), number
            print("{:>6}  {:>8.1f}  {:>5}  {:>7}  {:>7.3f}".format(*rows[-1]), flush=True)
    return rows


def predict_together(count: int, folder: Path) -> bool:
    """Whether `count` processes that predict from one run at once give the same bytes."""
    from superconext import SuperConTextClassifier

    texts, labels = sentences(200)
    model = SuperConTextClassifier(epochs=1, vector_dimension=8, vector_method="random")
    model.fit(texts, labels).save(folder / "shared")
    (folder / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    words = [sys.executable, "-m", "superconext", "predict", "--proba"]
    words += [str(folder / "shared"), str(folder / "texts.txt")]
    running = [subprocess.Popen(words, stdout=subprocess.PIPE) for _ in range(count)]
    answers = [process.communicate()[0] for process in running]
    lines = answers[0].count(b"\n")
    same = len(set(answers)) == 1 and lines == len(texts) + 1
    same = same and not any(process.returncode for process in running)
    print(f"{count} processes predict together: {lines} lines, {'the same' if same else 'OTHERS'}")
    return same


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fits", type=int, default=1000)
    parser.add_argument("--predictors", type=int, default=10, help="0: none")
    parser.add_argument("--growth", type=float, default=20.0, help="MiB after the first tenth")
    given = parser.parse_args()
    if given.fits < 1:
        parser.error("--fits: expected at least 1")
    ok = True
    with tempfile.TemporaryDirectory() as name:
        print("  fits    memory  files  threads  seconds")
        rows = soak(given.fits, Path(name))
        first, last = rows[0], rows[-1]
        ok = last[1] - first[1] <= given.growth and last[2] <= first[2]
        print(f"memory grew by {last[1] - first[1]:.1f} MiB, files by {last[2] - first[2]}")
        if given.predictors:
            ok = predict_together(given.predictors, Path(name)) and ok
    sys.exit(not ok)


if __name__ == "__main__":
    main()
