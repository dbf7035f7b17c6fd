"""The table of docs/labelling.md on `superconext audit`: how many of the first suspects are errors.

    python scripts/audit_precision.py DATA --out RESULTS.json [--sets msac,afrisenti_arq,twifil]

DATA holds a folder for each set with all.tsv or train.tsv (label TAB text). Copies are left out.
Labels are flipped: to any other class, from `positive` to `negative` alone, or as annotators err, a
third from `positive` to `negative` in Arabic script and the rest to any class. The flipped rows are
looked for among the first 50 and 200 rows of each ranking. Errors that a set had before count
as false alarms, so that true precision is higher. Where cleanlab is installed its confident
learning ranks the same probabilities. RESULTS.json has every figure; `--doc PAGE` alone writes the
table of it into the page.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from doc_tables import write_table

from superconext.data.dataset import Dataset
from superconext.data.duplicates import deduplicate
from superconext.data.reading import read_labelled
from superconext.report.audit import audit
from superconext.report.table import Grid
from superconext.text.characters import script_of

NAME = "audit_precision"
SHARES, FIRST = (0.05, 0.1, 0.2), (50, 200)
SHOWN = 0.1

#: Rankings that the page shows, and what they are called there.
PRUNED = "cleanlab, pruned"
RANKINGS = {"audit": "audit", "cleanlab, adjusted scores": "adjusted", PRUNED: "pruned"}
MIXED = "as annotators err"
PATTERNS = ("to any class", "positive to negative", MIXED)


def read(folder: Path, most: int) -> Dataset:
    """The set without copies, of larger ones `most` rows drawn at random."""
    whole = folder / "all.tsv"
    rows = read_labelled(whole if whole.is_file() else folder / "train.tsv")
    rows = rows.select(deduplicate(rows.texts))
    if len(rows) > most:
        rows = rows.select(np.sort(np.random.default_rng(0).permutation(len(rows))[:most]))
    return rows


def flipped(
    rows: Dataset, share: float, pattern: str, seed: int
) -> tuple[Dataset, np.ndarray, np.ndarray]:
    """The rows with wrong labels, these as class indices, and which rows they are."""
    names, labels = np.unique(rows.labels, return_inverse=True)
    draw = np.random.default_rng(seed)
    count = round(share * len(rows))
    positive, negative = (
        next(k for k, name in enumerate(names) if name.lower().startswith(start))
        for start in ("pos", "neg")
    )
    pool = np.flatnonzero(labels == positive)
    if pattern == MIXED:
        arabic = np.array([script_of(text) == "Arabic" for text in rows.texts])
        pool = pool[arabic[pool]]
    asked = {PATTERNS[0]: 0, MIXED: count // 3}.get(pattern, count)
    wrong = (draw.permutation(pool) if asked else pool)[: min(asked, len(pool) // 2)]
    if pattern in (PATTERNS[0], MIXED):
        others = np.setdiff1d(np.arange(len(rows)), wrong)
        others = draw.permutation(others)[: count - len(wrong)]
        moved = draw.integers(1, len(names), len(others))
        labels[others] = (labels[others] + moved) % len(names)
    else:
        others = wrong[:0]
    labels[wrong] = negative
    wrong = np.concatenate([wrong, others])
    return Dataset(rows.texts, names[labels].tolist(), rows.lines, rows.source), labels, wrong


def rankings(rows: Dataset, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Rows, the most suspicious first, by the name of the ranking."""
    audited = audit(rows)
    given = audited.probabilities[np.arange(len(labels)), labels]
    found = {
        "audit": np.array([suspect.row for suspect in audited.ranked]),
        "probability of the label": np.argsort(given, kind="stable"),
    }
    try:
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores
    except ImportError:
        return found
    issues = find_label_issues(
        labels, audited.probabilities, return_indices_ranked_by="self_confidence"
    )
    rest = found["probability of the label"]
    found[PRUNED] = np.concatenate([issues, rest[~np.isin(rest, issues)]])
    scores = get_label_quality_scores(labels, audited.probabilities, adjust_pred_probs=True)
    found["cleanlab, adjusted scores"] = np.argsort(scores, kind="stable")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--doc", type=Path, help="a page; nothing is measured")
    parser.add_argument("--sets", default="msac,afrisenti_arq,twifil")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--at-most", type=int, default=10_000, help="rows of a set")
    parser.add_argument("--patterns", default=",".join(PATTERNS))
    asked = parser.parse_args()
    if asked.doc:
        write_table(asked.doc, NAME, grid(json.loads(asked.out.read_text(encoding="utf-8"))))
        return
    if asked.data is None:
        parser.error("DATA is missing, the folder of the sets")
    results = []
    for name in asked.sets.split(","):
        rows = read(asked.data / name, asked.at_most)
        for pattern in asked.patterns.split(","):
            for share in SHARES:
                for seed in range(asked.seeds):
                    noisy, labels, wrong = flipped(rows, share, pattern, seed)
                    for ranking, order in rankings(noisy, labels).items():
                        precision = {
                            str(first): float(np.isin(order[:first], wrong).mean())
                            for first in FIRST
                        }
                        results.append(
                            {"set": name, "rows": len(rows), "pattern": pattern, "share": share}
                            | {"flipped": len(wrong), "seed": seed, "ranking": ranking}
                            | {"precision": precision}
                        )
                    lines = ",\n".join(map(json.dumps, results))
                    asked.out.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(grid(results).markdown())


def grid(results: list[dict[str, Any]]) -> Grid:
    """Precision among the first 50 in percent, mean over seeds: a row for each set, a column
    for each pattern and ranking that the page shows."""
    rows: dict[str, dict[str, Any]] = {}
    for (name, pattern, ranking), values in _precisions(results).items():
        row = rows.setdefault(name, {"set": name})
        row[f"{pattern}: {RANKINGS[ranking]}"] = f"{np.mean(values):.0f}"
    return Grid.of(list(rows.values()), list(next(iter(rows.values()))))


def _precisions(results: list[dict[str, Any]]) -> dict[tuple[str, str, str], list[float]]:
    """Of each set, pattern and ranking that the page shows, the percentages by seed."""
    found: dict[tuple[str, str, str], list[float]] = {}
    for line in results:
        if line["share"] == SHOWN and line["ranking"] in RANKINGS:
            key = line["set"], line["pattern"], line["ranking"]
            found.setdefault(key, []).append(100 * line["precision"]["50"])
    return found


if __name__ == "__main__":
    main()
