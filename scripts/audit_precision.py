"""The table of docs/labelling.md on `superconext audit`: how many of the first suspects are errors.

    python scripts/audit_precision.py DATA --out RESULTS.json [--sets msac,afrisenti_arq,twifil]

DATA holds a folder for each set with all.tsv or train.tsv (label TAB text). Copies are left out.
Labels are flipped, to any other class or from `positive` to `negative` alone, and the flipped rows
are looked for among the first 50 and 200 rows of each ranking. Errors that a set had before count
as false alarms, so that true precision is higher. Where cleanlab is installed its confident
learning ranks the same probabilities. The table is printed; RESULTS.json has every figure.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from superconext.data.dataset import Dataset
from superconext.data.duplicates import deduplicate
from superconext.data.reading import read_labelled
from superconext.labelling.audit import audit
from superconext.report.table import markdown, spread

SHARES, FIRST = (0.05, 0.1, 0.2), (50, 200)


def read(folder: Path, most: int) -> Dataset:
    """The set without copies, of larger ones `most` rows drawn at random."""
    whole = folder / "all.tsv"
    rows = read_labelled(whole if whole.is_file() else folder / "train.tsv")
    rows = rows.select(deduplicate(rows.texts))
    if len(rows) > most:
        rows = rows.select(np.sort(np.random.default_rng(0).permutation(len(rows))[:most]))
    return rows


def flipped(
    rows: Dataset, share: float, one_way: bool, seed: int
) -> tuple[Dataset, np.ndarray, np.ndarray]:
    """The rows with wrong labels, these as class indices, and which rows they are."""
    names, labels = np.unique(rows.labels, return_inverse=True)
    draw = np.random.default_rng(seed)
    count = round(share * len(rows))
    if one_way:
        positive, negative = (
            next(k for k, name in enumerate(names) if name.lower().startswith(start))
            for start in ("pos", "neg")
        )
        pool = np.flatnonzero(labels == positive)
        wrong = draw.permutation(pool)[: min(count, len(pool) // 2)]
        labels[wrong] = negative
    else:
        wrong = draw.permutation(len(rows))[:count]
        labels[wrong] = (labels[wrong] + draw.integers(1, len(names), count)) % len(names)
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
    found["cleanlab, pruned"] = np.concatenate([issues, rest[~np.isin(rest, issues)]])
    scores = get_label_quality_scores(labels, audited.probabilities, adjust_pred_probs=True)
    found["cleanlab, adjusted scores"] = np.argsort(scores, kind="stable")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default="msac,afrisenti_arq,twifil")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--at-most", type=int, default=10_000, help="rows of a set")
    asked = parser.parse_args()
    results = []
    for name in asked.sets.split(","):
        rows = read(asked.data / name, asked.at_most)
        for one_way in (False, True):
            for share in SHARES:
                for seed in range(asked.seeds):
                    noisy, labels, wrong = flipped(rows, share, one_way, seed)
                    for ranking, order in rankings(noisy, labels).items():
                        precision = {
                            str(first): float(np.isin(order[:first], wrong).mean())
                            for first in FIRST
                        }
                        results.append(
                            {"set": name, "rows": len(rows), "one_way": one_way, "share": share}
                            | {"flipped": len(wrong), "seed": seed, "ranking": ranking}
                            | {"precision": precision}
                        )
                    lines = ",\n".join(map(json.dumps, results))
                    asked.out.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(table(results))


def table(results: list[dict[str, Any]]) -> str:
    """Precision among the first 50, mean ± sd over seeds in percent, a column for each ranking."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    for line in results:
        key = line["set"], line["one_way"], line["share"], line["ranking"]
        groups.setdefault(key, []).append(100 * line["precision"]["50"])
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for (name, one_way, share, ranking), values in groups.items():
        flips = "positive to negative" if one_way else "to any class"
        first = {"set": name, "flipped": f"{share:.0%} {flips}"}
        row = rows.setdefault((name, one_way, share), first)
        row[ranking] = spread(np.mean(values), np.std(values, ddof=1), 1, 0)
    columns = list(dict.fromkeys(line["ranking"] for line in results))
    return markdown(list(rows.values()), ["set", "flipped", *columns])


if __name__ == "__main__":
    main()
