"""What it is worth to train a pretrained encoder further on a task's own texts, without labels.

    python scripts/indomain.py run DATA ENCODER TEXT... --out DIR
    python scripts/indomain.py collect DIR

For each set, `superconext pretrain` trains ENCODER, which was made from TEXT, further on the texts
of all training rows. Logistic regressions on
both encoders, frozen, and on MSAC and arq SuperLoss from both, are then trained on 8, 16 and 32
rows of each class (five draws) and judged on test. The controls are logistic regressions on mean
word vectors, those of ENCODER and, for MSAC, others of TEXT and of the same training rows; those of
arq, ary and TSAC are in TEXT. `collect` writes scripts/results/indomain.csv and prints the
sentence that docs/pretrain.md has. DATA is as for reproduce_results.py.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from doc_tables import read_rows, write_rows
from reproduce_results import FOLDERS, LEAKING, ROOT, SETS, Step, run_undone, step

from superconext.experiments.paired_tests import hierarchical_bootstrap

NAME = "indomain"
STORED = ROOT / "scripts" / "results" / f"{NAME}.csv"
SHOTS = ("8", "16", "32")
ALL = "8 to 32"
FOUND = ("difference", "low", "high", "p")
#: The sets, and what is trained on each beside the controls.
TRAINED = {
    "msac": "superloss",
    "arq": "superloss",
    "ary": "pretrained_logreg",
    "twifil": "pretrained_logreg",
    "tsac": "pretrained_logreg",
}
#: Rows of the file: what they are called, folder of the results, system, and the folder of those
#: that it is compared with.
ROWS = (
    ("mean word vectors", "given", "vectors_logreg", None),
    ("mean word vectors, of these texts too", "control", "vectors_logreg", "given"),
    ("logistic regression", "given", "pretrained_logreg", None),
    ("logistic regression, trained further", "further", "pretrained_logreg", "given"),
    ("SuperLoss", "given", "superloss", None),
    ("SuperLoss, trained further", "further", "superloss", "given"),
)


def steps(data: Path, encoder: Path, texts: list[Path], out: Path) -> list[Step]:
    """The encoders and vectors of both sets, then what is fitted on them."""
    split = out / "msac"
    planned = [
        step(
            "split", split,
            "data", "split", data / FOLDERS["msac"] / "all.tsv", "--out", split,
            "--seed", 0, "--deduplicate", "--dev", 0.1, "--test", 0.2,
        )
    ]  # fmt: skip
    for name, objective in TRAINED.items():
        folder = split if name == "msac" else data / FOLDERS[name]
        own, further, vectors = folder / "train.tsv", out / f"encoder-{name}", out / f"words-{name}"
        others = [data / of for key, of in FOLDERS.items() if key != name]
        held = [
            word
            for of in (folder, *others)
            for part in ("all", "dev", "test")
            if (file := of / f"{part}.tsv").exists()
            for word in ("--leave-out", file)
        ]
        planned.append(
            step(
                further.name, further, "pretrain", own, "--init", encoder,
                "--leave-out", folder / "test.tsv", "--out", further,
            )
        )  # fmt: skip
        runs = {
            "given": (objective, "--init", encoder),
            "further": (objective, "--init", further),
        }
        if name == "msac":
            learn = ("vectors", "train", *texts, own, *held, "--out", vectors)
            planned.append(step(vectors.name, vectors, *learn))
            runs["control"] = ("vectors_logreg", "--vectors", vectors)
        copies = ["--deduplicate"] if name in LEAKING else []
        for kind, words in runs.items():
            to = out / f"{kind}-{name}"
            planned.append(
                step(
                    to.name, to / "table.csv",
                    "fewshot", own, "--test", folder / "test.tsv", "--shots", ",".join(SHOTS),
                    "--seeds", 5, "--objectives", *words, *copies, "--out", to,
                )
            )  # fmt: skip
    return sorted(planned, key=lambda one: one.name.startswith(("words", "control")))


def run(data: Path, encoder: Path, texts: list[Path], out: Path) -> None:
    """Run what is not done yet."""
    run_undone(steps(data, encoder, texts, out), out, data, [*texts, encoder / "encoder.json"])


def collect(out: Path) -> None:
    """Store scores and differences, and print the sentence."""
    lines: list[dict[str, Any]] = []
    for name in TRAINED:
        for called, kind, system, peer in ROWS:
            for shots in (*SHOTS, ALL):
                own = fits(out / f"{kind}-{name}", system, shots)
                if not own:
                    continue
                scores = [fit["test"]["f1_weighted"] for fit in own]
                line: dict[str, Any] = {"set": name, "features": called, "shots": shots}
                line |= {"fits": len(own), "f1_weighted": f"{np.mean(scores):.4f}"}
                other = fits(out / f"{peer}-{name}", system, shots) if peer else own
                line |= compared(own, other) if peer else dict.fromkeys(FOUND, "")
                lines.append(line)
    write_rows(STORED, lines)
    print(sentence(read_rows(STORED)))


def fits(folder: Path, system: str, shots: str) -> list[dict[str, Any]]:
    """The results of a system with so many rows of each class, by draw and then by rows."""
    if not folder.exists():
        return []
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row["system"] == system]
    chosen = [row for row in rows if shots in (ALL, str(row["shots"]))]
    return sorted(chosen, key=lambda row: (row["seed"], row["shots"]))


def compared(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> dict[str, str]:
    """Difference and its interval: test rows, and draws, paired, are resampled. Few rows of a draw
    are part of its more rows, so that the fits of a draw are averaged first."""
    truth = ours[0]["truth"]
    if any(row["truth"] != truth for row in (*ours, *theirs)):
        raise ValueError("found other test rows; expected the same for both encoders")
    first, second = (np.array([row["predictions"] for row in of]) for of in (ours, theirs))
    of_draw = len(ours) // len({row["seed"] for row in ours})
    found = hierarchical_bootstrap(np.array(truth), first, second, paired=True, fits=of_draw)
    return {name: f"{getattr(found, name):.4f}" for name in FOUND}


def sentence(lines: list[dict[str, str]]) -> str:
    """The gains of the frozen encoder over all rows of each class, as the page says them."""
    found = []
    for line in lines:
        if line["shots"] == ALL and line["features"] == ROWS[3][0]:
            gain, low, high = (100 * float(line[name]) for name in FOUND[:3])
            found.append(f"{gain:+.1f} ({low:.1f} to {high:.1f}) on {SETS[line['set']]}")
    return (
        "With 8 to 32 rows per class this changes the weighted F1 of a logistic regression by "
        f"{', '.join(found[:-1])} and {found[-1]} (test, five draws, 95% interval)."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("run")
    for name in ("data", "encoder"):
        verb.add_argument(name, type=Path, metavar=name.upper())
    verb.add_argument("texts", type=Path, nargs="+", metavar="TEXT")
    verb.add_argument("--out", type=Path, required=True)
    verbs.add_parser("collect").add_argument("out", type=Path, metavar="DIR")
    options = parser.parse_args()
    if options.verb == "run":
        run(options.data, options.encoder, options.texts, options.out)
    else:
        collect(options.out)


if __name__ == "__main__":
    main()
