"""Which recipe is the default: chosen on training rows, judged on test rows afterwards.

    python scripts/choose_defaults.py choose DATA ENCODER --out DIR
    git commit docs/results/choice.json docs/results/choice.csv
    python scripts/choose_defaults.py judge

`choose` opens no test file. It copies the training rows of each set of DATA (a folder for each set
with train.tsv, or all.tsv, of which a fifth is set aside first), draws 80/10/10 splits of them, and
compares the candidates on the last tenth, all from the same pretrained ENCODER. The chosen one is
the cheapest whose mean over the sets is within one standard error of the best. `judge` compares the
candidates on test by the tables of `reproduce_results.py`, and refuses to before the choice is
committed.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from reproduce_results import FOLDERS, ROOT, STORED, SYSTEMS, read_csv

CHOICE = STORED / "choice.json"
TABLE = STORED / "choice.csv"
SETS = ("msac", "arq", "ary")

#: Cheapest first, by the parameters that differ from the fast preset.
CANDIDATES = {
    "cross_entropy": "cross-entropy",
    "superloss": "SuperLoss",
    "cross_entropy:probe_features=encoder+ngrams": "cross-entropy + n-grams",
    "superloss:probe_features=encoder+ngrams": "SuperLoss + n-grams",
    "superloss:members=4+probe_features=encoder+ngrams": "four times SuperLoss + n-grams",
}
SEEDS, ROWS = 3, 1500


def choose(data: Path, encoder: Path, out: Path) -> None:
    """Compare on training rows and write the choice."""
    superconext = [sys.executable, "-m", "superconext"]
    lines = []
    for name in SETS:
        kept = out / "rows" / name / "train.tsv"
        if not kept.exists():
            whole = data / FOLDERS[name] / "all.tsv"
            if whole.exists():
                split = [*superconext, "data", "split", whole, "--out", out / "split" / name]
                words = ["--seed", 0, "--deduplicate", "--dev", 0.1, "--test", 0.2]
                subprocess.run([str(word) for word in (*split, *words)], check=True)
            source = out / "split" / name if whole.exists() else data / FOLDERS[name]
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / "train.tsv", kept)
        lines += ["[[dataset]]", f'name = "{name}"', f"train = {json.dumps(str(kept.resolve()))}"]
    sets = out / "sets.toml"
    sets.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = [
        "compare", "--datasets", sets, "--objectives", ",".join(CANDIDATES), "--seeds", SEEDS,
        "--splits", "resample", "--deduplicate", "--at-most", ROWS, "--init", encoder,
        "--out", out / "compare",
    ]  # fmt: skip
    subprocess.run([*superconext, *map(str, words)], check=True)
    found = out / "compare" / "results.jsonl"
    rows = [json.loads(line) for line in found.read_text(encoding="utf-8").splitlines()]
    document, table = chosen(rows)
    with TABLE.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(table)
    CHOICE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(document, indent=1))


def chosen(rows: list[dict]) -> tuple[dict, list[list]]:
    """The choice, and weighted F1 of each candidate on each set, from the lines of a comparison.

    The standard error is of the mean, over all sets and seeds, of the difference to the best.
    """
    scores = {
        name: np.array(
            [
                [
                    row["test"]["f1_weighted"]
                    for row in sorted(rows, key=lambda row: row["seed"])
                    if (row["dataset"], row["system"]) == (of, name)
                ]
                for of in SETS
            ]
        )
        for name in ("tfidf_logreg", *CANDIDATES)
    }
    best = max(CANDIDATES, key=lambda name: scores[name].mean())
    for name in CANDIDATES:  # cheapest first
        behind = (scores[best] - scores[name]).ravel()
        if behind.mean() <= behind.std(ddof=1) / len(behind) ** 0.5:
            break
    document = {"chosen": name, "best": best, "sets": list(SETS), "seeds": SEEDS, "rows": ROWS}
    table = [["system", *SETS, "mean"]]
    table += [
        [name, *(round(float(one), 4) for one in (*of.mean(axis=1), of.mean()))]
        for name, of in scores.items()
    ]
    return document, table


def committed(path: Path) -> bool:
    """Whether git has the file as it is."""
    if not path.exists():
        return False
    words = ["git", "log", "-1", "--format=%h", "--", str(path)]
    known = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    words = ["git", "status", "--porcelain", "--", str(path)]
    changed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return bool(known.strip()) and not changed.strip()


def judge() -> None:
    """Print weighted F1 on test of the candidates that were run. Raises SystemExit before the
    choice is committed."""
    if not committed(CHOICE):
        sys.exit(f"error: {CHOICE.name} is not committed; expected the choice before its judgement")
    name = json.loads(CHOICE.read_text(encoding="utf-8"))["chosen"]
    rows = [r for r in read_csv(STORED / "all-labels.csv") if r["reference"] == "tfidf_logreg"]
    for system in (one for one in SYSTEMS if one in CANDIDATES or one == "tfidf_logreg"):
        cells = {row["dataset"]: row["f1_weighted_mean"] for row in rows if row["system"] == system}
        said = "  ".join(f"{of} {100 * float(value):.1f}" for of, value in cells.items())
        print(f"{'chosen' if system == name else '      '}  {SYSTEMS[system][0]}: {said}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("choose")
    verb.add_argument("data", type=Path)
    verb.add_argument("encoder", type=Path, help="of superconext pretrain")
    verb.add_argument("--out", type=Path, required=True)
    verbs.add_parser("judge")
    options = parser.parse_args()
    if options.verb == "choose":
        choose(options.data, options.encoder, options.out)
    else:
        judge()


if __name__ == "__main__":
    main()
