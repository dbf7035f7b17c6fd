"""Which recipe is the default: chosen on training rows, judged on test rows afterwards.

    python scripts/choose_defaults.py choose DATA ENCODER --out DIR
    git commit scripts/results/choice.json scripts/results/choice.csv
    python scripts/choose_defaults.py judge
    python scripts/choose_defaults.py vary DATA VECTORS --out DIR

`choose` opens no test file. It copies the training rows of each set of DATA (a folder for each set
with train.tsv, or all.tsv, of which a fifth is set aside first), draws 80/10/10 splits of them, and
compares the candidates on the last tenth, all from the same pretrained ENCODER. The chosen one is
the cheapest whose mean over the sets is within one standard error of the best. `judge` compares the
candidates on test by the tables of `reproduce_results.py`, and refuses to before the choice is
committed. `vary` holds every default of the encoder and its training against its neighbours, one
changed at a time, on the same training rows; it opens no test file either. What the vectors
themselves are made by is varied on vectors of the training texts, all else on those of VECTORS.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import subprocess
import sys
from collections import Counter
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

#: Neighbours of the defaults of the preset `fast`, on word vectors that are given.
NEIGHBOURS = (
    *("hidden_size=64", "hidden_size=256", "layers=2", "pooling=mean", "pooling=last"),
    *("dropout=0", "dropout=0.4", "word_dropout=0", "word_dropout=0.4"),
    *("learning_rate=0.0003", "learning_rate=0.003", "batch_size=64", "epochs=8", "epochs=30"),
    *("temperature=0.05", "temperature=0.3", "projection=linear", "projection=identity"),
    *("keep=best", "keep=last", "tune_vectors=true", "normalize=none"),
)
#: And on vectors of the training texts.
OF_VECTORS = (
    *("vector_dimension=50", "vector_dimension=200", "vector_method=word2vec", "subwords=false"),
)
VARIED = STORED / "choose_defaults.csv"


SUPERCONEXT = [sys.executable, "-m", "superconext"]


def compared(data: Path, out: Path, to: str, systems: list[str], *given: object) -> list[dict]:
    """The lines of a comparison of systems on splits of training rows."""
    lines = []
    for name in SETS:
        kept = out / "rows" / name / "train.tsv"
        if not kept.exists():
            whole = data / FOLDERS[name] / "all.tsv"
            if whole.exists():
                split = [*SUPERCONEXT, "data", "split", whole, "--out", out / "split" / name]
                words = ["--seed", 0, "--deduplicate", "--dev", 0.1, "--test", 0.2]
                subprocess.run([str(word) for word in (*split, *words)], check=True)
            source = out / "split" / name if whole.exists() else data / FOLDERS[name]
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / "train.tsv", kept)
        lines += ["[[dataset]]", f'name = "{name}"', f"train = {json.dumps(str(kept.resolve()))}"]
    sets = out / "sets.toml"
    sets.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [
        *SUPERCONEXT, "compare", "--datasets", sets, "--objectives", ",".join(systems),
        "--seeds", SEEDS, "--splits", "resample", "--deduplicate", "--at-most", ROWS,
        *given, "--out", out / to,
    ]  # fmt: skip
    # Fits that are there are not repeated; those of other rows or settings are refused.
    subprocess.run([str(word) for word in command], check=True)
    found = (out / to / "results.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in found.splitlines()]
    fits = Counter(line["system"] for line in lines)
    if few := [name for name, count in fits.items() if count < SEEDS * len(SETS)]:
        sys.exit(f"error: {out / to}: {few[0]} has {fits[few[0]]} fits of {SEEDS * len(SETS)}")
    return lines


def choose(data: Path, encoder: Path, out: Path) -> None:
    """Compare on training rows and write the choice."""
    rows = compared(data, out, "compare", list(CANDIDATES), "--init", encoder)
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


def vary(data: Path, vectors: Path, out: Path) -> None:
    """Compare each default with its neighbours on training rows, and write what they differ by."""
    studies = {"given": (NEIGHBOURS, ("--vectors", vectors)), "own": (OF_VECTORS, ())}
    table = [["vectors", "changed", *SETS, "difference", "standard_error"]]
    for name, (changes, words) in studies.items():
        systems = ["superloss", *(f"superloss:{change}" for change in changes)]
        rows = compared(data, out, name, systems, *words)
        table += differences(name, rows)
    with VARIED.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(table)


def differences(name: str, rows: list[dict]) -> list[list]:
    """For each change its mean difference to the default in weighted F1, by set and over all, and
    the standard error of the last over sets and seeds."""
    scores: dict[str, dict[tuple[str, int], float]] = {}
    for row in (row for row in rows if row["system"].startswith("superloss")):
        place = row["dataset"], row["seed"]
        scores.setdefault(row["system"], {})[place] = row["test"]["f1_weighted"]
    plain = scores.pop("superloss")
    table = []
    for system, found in scores.items():
        minus = {place: value - plain[place] for place, value in found.items()}
        by_set = [np.mean([d for (of, _), d in minus.items() if of == one]) for one in SETS]
        every = np.array([*minus.values()])
        error = every.std(ddof=1) / len(every) ** 0.5
        cells = [round(float(x), 4) for x in (*by_set, every.mean(), error)]
        table.append([name, system.removeprefix("superloss:"), *cells])
    return table


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
    verb = verbs.add_parser("vary")
    verb.add_argument("data", type=Path)
    verb.add_argument("vectors", type=Path, help="of superconext vectors train")
    verb.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if options.verb == "vary":
        vary(options.data, options.vectors, options.out)
    elif options.verb == "choose":
        choose(options.data, options.encoder, options.out)
    else:
        judge()


if __name__ == "__main__":
    main()
