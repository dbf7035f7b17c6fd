"""What unlabelled text is worth: to mean word vectors, a language model, the pretrained encoder.

    python scripts/text_growth.py run DATA TEXT... --out DIR
    python scripts/text_growth.py collect DIR

For each share of the lines of TEXT, drawn so that a larger share holds the smaller one, word
vectors and two encoders are trained, one as a language model alone, one also on emoji. Logistic
regressions on them, frozen, are fitted to 8, 16 and 64 rows of each class of MSAC and arq (five
draws) and judged on test. `collect` writes scripts/results/text_growth.csv and the table of the
least and the most text, which is ten times as much, in docs/pretrain.md. DATA is as for
reproduce_results.py.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import numpy as np
from doc_tables import write_table
from reproduce_results import FOLDERS, ROOT, SETS, Step, learned, note_made_of, run_undone, step

from superconext.report.table import Grid

NAME = "text_growth"
STORED = ROOT / "scripts" / "results" / f"{NAME}.csv"
PAGE = ROOT / "docs" / "pretrain.md"
SHARES = (0.1, 0.3, 1.0)
SHOTS = ("8", "16", "64")
#: Rows of a class, and features, that the page shows; the stored file has all.
SHOWN = ("8", "64")
SHOWN_FEATURES = ("mean word vectors", "mean word vectors, emoji", "language model and emoji")
#: What each is fitted on (a folder of word vectors or an encoder), its system, what it is called.
CONTROLS = (
    ("vectors", "plain_vectors_logreg", "mean word vectors"),
    ("vectors", "vectors_logreg", "mean word vectors, emoji"),
    ("words-alone", "pretrained_logreg", "language model"),
    ("encoder", "pretrained_logreg", "language model and emoji"),
)


def sampled(texts: list[Path], share: float, to: Path) -> int:
    """Write a share of the lines of the files; returns their number of words."""
    draw = np.random.default_rng(0)
    words = 0
    with to.open("w", encoding="utf-8") as out:
        for path in texts:
            with path.open(encoding="utf-8") as lines:
                for line in lines:
                    if draw.random() < share:
                        out.write(line)
                        words += len(line.split())
    return words


def steps(data: Path, share: float, out: Path) -> list[Step]:
    """Vectors and encoders of a share, then the controls on both sets."""
    text, vectors = out / f"text-{share:g}.txt", out / f"vectors-{share:g}"
    split = out / "msac"
    planned = [
        step(
            "msac", split,
            "data", "split", data / FOLDERS["msac"] / "all.tsv", "--out", split,
            "--seed", 0, "--deduplicate", "--dev", 0.1, "--test", 0.2,
        )
    ]  # fmt: skip
    for kind in ("vectors", "encoder", "words-alone"):
        start = out / f"{kind}-{share:g}"
        made = learned(data, [text], vectors, start)
        made[-1].command.extend(["--emoji-epochs", "0"] if kind == "words-alone" else [])
        planned += made[: 1 if kind == "vectors" else 2]
        systems = dict.fromkeys(system for name, system, _ in CONTROLS if name == kind)
        for name, folder in (("msac", split), ("arq", data / FOLDERS["arq"])):
            to = out / f"{kind}-{share:g}-{name}"
            planned.append(
                step(
                    to.name, to / "table.csv",
                    "fewshot", folder / "train.tsv", "--test", folder / "test.tsv",
                    "--shots", ",".join(SHOTS), "--seeds", 5, "--objectives", ",".join(systems),
                    "--vectors" if kind == "vectors" else "--init", start, "--out", to,
                )
            )  # fmt: skip
    return planned


def run(data: Path, texts: list[Path], out: Path) -> None:
    """Run what is not done yet."""
    out.mkdir(parents=True, exist_ok=True)
    note_made_of(out, data, texts)  # before the text of another is replaced
    for share in SHARES:
        text = out / f"text-{share:g}.txt"
        words = sampled(texts, share, text)
        text.with_suffix(".json").write_text(json.dumps({"words": words}), encoding="utf-8")
        run_undone(steps(data, share, out), out, data, texts)


def collect(out: Path) -> None:
    """Store the means and write the table into the page."""
    lines = []
    for share in SHARES:
        words = json.loads((out / f"text-{share:g}.json").read_text(encoding="utf-8"))["words"]
        for name in ("msac", "arq"):
            for kind, system, called in CONTROLS:
                path = out / f"{kind}-{share:g}-{name}" / "results.jsonl"
                rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
                for shots in SHOTS:
                    found = [
                        row["test"]["f1_weighted"]
                        for row in rows
                        if row["system"] == system and str(row["shots"]) == shots
                    ]
                    mean = round(float(np.mean(found)), 4)
                    line = {"share": share, "words": words, "set": name, "features": called}
                    lines.append({**line, "shots": shots, "f1_weighted": mean})
    with STORED.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)
    write_table(PAGE, NAME, grid([{k: str(v) for k, v in line.items()} for line in lines]))


def grid(lines: list[dict[str, str]]) -> Grid:
    """Weighted F1 in percent by rows of each class and words of text, the fewest and the most."""
    words = sorted({int(line["words"]) for line in lines})
    words = [words[0], words[-1]]
    shown = [(shots, n) for shots in SHOWN for n in words]
    cells: dict[tuple[str, str], dict[tuple[str, int], str]] = {}
    for line in lines:
        if line["features"] not in SHOWN_FEATURES:
            continue
        of = cells.setdefault((line["set"], line["features"]), {})
        of[line["shots"], int(line["words"])] = f"{100 * float(line['f1_weighted']):.1f}"
    rows = [[SETS[key[0]], key[1], *(by[one] for one in shown)] for key, by in cells.items()]
    return Grid(["set", "features", *(f"{shots}: {n / 1e6:.2g} M" for shots, n in shown)], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("run")
    verb.add_argument("data", type=Path)
    verb.add_argument("texts", type=Path, nargs="+", metavar="TEXT")
    verb.add_argument("--out", type=Path, required=True)
    verbs.add_parser("collect").add_argument("out", type=Path, metavar="DIR")
    options = parser.parse_args()
    if options.verb == "run":
        run(options.data, options.texts, options.out)
    else:
        collect(options.out)


if __name__ == "__main__":
    main()
