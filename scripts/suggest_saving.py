"""The table of docs/labelling.md on `superconext suggest`: rows of labelling that it saves.

    python scripts/suggest_saving.py DATA --out RESULTS.json [--sets msac,afrisenti_arq,twifil]

DATA holds a folder for each set with all.tsv or train.tsv (label TAB text). A quarter of the texts
is for testing; 60 random rows of the rest are labelled, and 40 more at a time, chosen at random,
by uncertainty alone or by `suggest`. After each step a logistic regression is fitted and its
macro F1 measured. A fast setting stands in for a run: vectors of 200 dimensions, a truncated
singular value decomposition of TF-IDF over all texts, which no label enters. The table is printed;
RESULTS.json has every curve.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from audit_precision import read
from scipy.stats import t as student
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from threadpoolctl import threadpool_limits

from superconext.labelling.suggest import select
from superconext.probe.ngrams import NgramCounts, TfidfFeatures
from superconext.report.table import markdown

START, STEP, STEPS = 60, 40, 15

Choice = Callable[[np.ndarray, np.ndarray, int, int], np.ndarray]


def at_random(shares: np.ndarray, vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(len(shares))[:count]


def least_certain(shares: np.ndarray, vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    best = np.sort(shares, axis=1)
    return np.argsort(best[:, -1] - best[:, -2], kind="stable")[:count]


CHOICES: dict[str, Choice] = {
    "at random": at_random,
    "uncertainty alone": least_certain,
    "suggest": select,
}


def curve(
    choose: Choice,
    vectors: np.ndarray,
    labels: np.ndarray,
    rows: np.ndarray,
    test: np.ndarray,
    seed: int,
) -> list[float]:
    """Macro F1 on `test` with 60, 100, 140 … labelled rows out of `rows`, chosen by `choose`."""
    labelled = rows[:START]
    scores = []
    for step in range(STEPS + 1):
        model = LogisticRegression(C=0.1, max_iter=300).fit(vectors[labelled], labels[labelled])
        scores.append(score(model, vectors[test], labels[test]))
        others = np.setdiff1d(rows, labelled)
        shares = model.predict_proba(vectors[others])
        chosen = choose(shares, vectors[others], STEP, 100 * seed + step)
        labelled = np.concatenate([labelled, others[chosen]])
    return scores


def score(model: LogisticRegression, vectors: np.ndarray, labels: np.ndarray) -> float:
    return round(float(f1_score(labels, model.predict(vectors), average="macro")), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default="msac,afrisenti_arq,twifil")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--at-most", type=int, default=4000, help="rows of a set")
    asked = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    with threadpool_limits(1):
        for name in asked.sets.split(","):
            data = read(asked.data / name, asked.at_most)
            labels = np.unique(data.labels, return_inverse=True)[1]
            counts = NgramCounts(data.texts).counts
            (tfidf,) = TfidfFeatures(counts, labels).rows(counts)
            vectors = TruncatedSVD(200, n_iter=2, random_state=0).fit_transform(tfidf)
            vectors *= 10 / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
            found: dict[str, Any] = {choice: [] for choice in CHOICES}
            found |= {"rows": len(data), "all rows": []}
            for seed in range(asked.seeds):
                order = np.random.default_rng(seed).permutation(len(data))
                test, rows = order[: len(data) // 4], order[len(data) // 4 :]
                whole = LogisticRegression(C=0.1, max_iter=300).fit(vectors[rows], labels[rows])
                found["all rows"].append(score(whole, vectors[test], labels[test]))
                for choice, choose in CHOICES.items():
                    found[choice].append(curve(choose, vectors, labels, rows, test, seed))
            results[name] = found
            asked.out.write_text(json.dumps(results) + "\n", encoding="utf-8")
    print(table(results))


def table(results: dict[str, dict[str, Any]]) -> str:
    """For each set and choice: mean macro F1 at four sizes, the mean difference to random rows over
    the curve with its 95% interval (Student's t over the seeds), and the rows needed to reach what
    random rows reach at the end."""
    rows = []
    sizes = [START + STEP * step for step in range(STEPS + 1)]
    for name, found in results.items():
        random = np.array(found["at random"])
        for choice in CHOICES:
            scores = np.array(found[choice])
            reached = np.flatnonzero(scores.mean(axis=0) >= random.mean(axis=0)[-1])
            row: dict[str, Any] = {"set": name, "chosen": choice}
            row |= {f"{sizes[at]} rows": 100 * scores.mean(axis=0)[at] for at in (1, 3, 6, STEPS)}
            row["all rows"] = 100 * float(np.mean(found["all rows"]))
            if choice != "at random":
                gains = 100 * (scores - random).mean(axis=1)
                half = student.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / len(gains) ** 0.5
                mean = gains.mean()
                row["gain"] = f"{mean:+.1f} ({mean - half:+.1f} to {mean + half:+.1f})"
            row["rows needed"] = sizes[int(reached[0])] if len(reached) else None
            rows.append(row)
    return markdown(rows, list(rows[1]), fmt=".1f")


if __name__ == "__main__":
    main()
