"""What an encoder is worth whose pretraining reads a part of long text, beside mean word vectors.

    python scripts/pretrain_part.py run DATA TEXT... --out DIR
    python scripts/pretrain_part.py collect DIR

Word vectors are trained on all of TEXT, and with them an encoder that reads as many words in each
pass as `superconext train` does by default. Logistic regressions on the mean word vectors and on
the frozen encoder, both with scores of emoji, are fitted to some rows of each class, five draws,
and judged on rows held out of the files of training rows: test rows have no part in it. `collect`
writes scripts/results/pretrain_part.csv and prints what docs/pretrain.md says of it. DATA is as for
reproduce_results.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from doc_tables import read_rows, write_rows
from indomain import FOUND, compared, fits
from reproduce_results import FOLDERS, ROOT, Step, run_undone, step

NAME = "pretrain_part"
STORED = ROOT / "scripts" / "results" / f"{NAME}.csv"
#: Words that `superconext train` pretrains on by default, of longer text.
WORDS = 2_400_000
SHOTS = ("8", "16", "64")
ALL = "8 to 64"
#: What is compared: what it is called, folder of the results, system.
CONTROL = ("mean word vectors", "vectors", "vectors_logreg")
OURS = ("encoder that read a part", "encoder", "pretrained_logreg")


def steps(data: Path, texts: list[Path], out: Path) -> list[Step]:
    """Vectors, splits of training rows and encoders, then what is fitted on them."""
    vectors = out / "vectors"
    planned = [step("vectors", vectors, "vectors", "train", *texts, "--out", vectors)]
    for name, folder in FOLDERS.items():
        rows = next(
            data / folder / f"{of}.tsv"
            for of in ("train", "all")
            if (data / folder / f"{of}.tsv").exists()
        )
        halves = ("--seed", 7, "--deduplicate", "--dev", 0.05, "--test", 0.4)
        split = out / "rows" / name
        planned.append(step(name, split, "data", "split", rows, "--out", split, *halves))
    encoder = out / "encoder"
    learn = ("--vectors", vectors, "--words", WORDS, "--out", encoder)
    planned.append(step("encoder", encoder, "pretrain", *texts, *learn))
    for (_, kind, system), words in (
        (CONTROL, ("--vectors", vectors)),
        (OURS, ("--init", encoder)),
    ):
        for name in FOLDERS:
            to, split = out / f"{kind}-{name}", out / "rows" / name
            planned.append(
                step(
                    to.name, to / "table.csv",
                    "fewshot", split / "train.tsv", "--test", split / "test.tsv",
                    "--shots", ",".join(SHOTS), "--seeds", 5, "--objectives", system,
                    *words, "--out", to,
                )
            )  # fmt: skip
    return planned


def run(data: Path, texts: list[Path], out: Path) -> None:
    """Run what is not done yet."""
    (out / "rows").mkdir(parents=True, exist_ok=True)
    run_undone(steps(data, texts, out), out, data, texts)


def collect(out: Path) -> None:
    """Store scores and differences, and print the sentence."""
    lines: list[dict[str, Any]] = []
    for name in FOLDERS:
        for shots in (*SHOTS, ALL):
            control = chosen(out, name, CONTROL, shots)
            lines.append(line_of(name, CONTROL, shots, control))
            own = chosen(out, name, OURS, shots)
            lines.append({**line_of(name, OURS, shots, own), **compared(own, control)})
    write_rows(STORED, lines)
    print(sentence(read_rows(STORED)))


def chosen(out: Path, name: str, what: tuple[str, str, str], shots: str) -> list[dict[str, Any]]:
    """The fits on a set with so many rows of each class, or with any of `SHOTS`."""
    _, kind, system = what
    rows = [of for of in SHOTS if shots in (of, ALL)]
    found = [fit for of in rows for fit in fits(out / f"{kind}-{name}", system, of)]
    return sorted(found, key=lambda fit: (fit["seed"], fit["shots"]))


def line_of(
    name: str, what: tuple[str, str, str], shots: str, own: list[dict[str, Any]]
) -> dict[str, Any]:
    scores = [fit["test"]["f1_weighted"] for fit in own]
    line = {"set": name, "features": what[0], "shots": shots, "fits": len(own)}
    return {**line, "f1_weighted": f"{np.mean(scores):.4f}", **dict.fromkeys(FOUND, "")}


def sentence(lines: list[dict[str, str]]) -> str:
    """The mean gains over mean word vectors, as the page says them."""
    ours = [line for line in lines if line["features"] == OURS[0]]
    gains = [
        np.mean([100 * float(x["difference"]) for x in ours if x["shots"] == n]) for n in SHOTS
    ]
    of_rows = [
        f"{gain:.1f}{' points' * (n == SHOTS[0])} with {n}"
        for gain, n in zip(gains, SHOTS, strict=True)
    ]
    return (
        f"Pretraining on such parts of 8.8 million words gains {of_rows[0]} rows per class, "
        f"{of_rows[1]} and {of_rows[2]} over mean word vectors trained on the whole text"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("run")
    verb.add_argument("data", type=Path, metavar="DATA")
    verb.add_argument("texts", type=Path, nargs="+", metavar="TEXT")
    verb.add_argument("--out", type=Path, required=True)
    verbs.add_parser("collect").add_argument("out", type=Path)
    given = parser.parse_args()
    if given.verb == "run":
        run(given.data, given.texts, given.out)
    else:
        collect(given.out)


if __name__ == "__main__":
    main()
