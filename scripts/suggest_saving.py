"""The table of docs/labelling.md on `superconext suggest`: rows of labelling that it saves.

    python scripts/suggest_saving.py DATA --out RESULTS.json [--sets msac,afrisenti_arq,…]

DATA holds a folder for each set with all.tsv or train.tsv (label TAB text). A quarter of the texts
is for testing; 80 random rows of the rest are labelled, and 80 more at a time until all are, chosen
at random, by uncertainty alone or by `suggest`. After each step TF-IDF and logistic regression are
fitted, a fast stand-in for a run, and their macro F1 measured. Vectors of 100 dimensions, a
truncated singular value decomposition of TF-IDF over all texts, are what `suggest` compares texts
by; no label enters them. RESULTS.json has every curve; `--doc docs/labelling.md` alone writes the
table of it into the page.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from audit_precision import read
from doc_tables import write_table
from scipy.sparse import csr_matrix
from scipy.stats import t as student
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from threadpoolctl import threadpool_limits

from superconext.probe.ngrams import NgramCounts, TfidfFeatures
from superconext.report.suggest import select
from superconext.report.table import Grid

NAME = "suggest_saving"
STEP = 80

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
    features: Any,
    vectors: np.ndarray,
    labels: np.ndarray,
    rows: np.ndarray,
    test: np.ndarray,
    seed: int,
) -> list[float]:
    """Macro F1 on `test` with 80, 160, 240 … rows out of `rows` labelled, chosen by `choose`."""
    labelled = rows[:STEP]
    scores = []
    while True:
        model = fitted(features[labelled], labels[labelled])
        scores.append(score(model, features[test], labels[test]))
        others = np.setdiff1d(rows, labelled)
        if not len(others):
            return scores
        shares = model.predict_proba(features[others])
        chosen = choose(shares, vectors[others], STEP, 100 * seed + len(scores))
        labelled = np.concatenate([labelled, others[chosen]])


def fitted(features: Any, labels: np.ndarray) -> OneVsRestClassifier:
    model = LogisticRegression(C=10, solver="liblinear", random_state=0)
    return OneVsRestClassifier(model).fit(features, labels)


def score(model: OneVsRestClassifier, features: Any, labels: np.ndarray) -> float:
    return round(float(f1_score(labels, model.predict(features), average="macro")), 4)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--doc", type=Path, help="a page; nothing is measured")
    parser.add_argument("--sets", default="msac,afrisenti_arq,twifil,sst2_sentence")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--at-most", type=int, default=1600, help="rows of a set")
    asked = parser.parse_args()
    if asked.doc:
        write_table(asked.doc, NAME, grid(json.loads(asked.out.read_text(encoding="utf-8"))))
        return
    if asked.data is None:
        parser.error("DATA is missing, the folder of the sets")
    results: dict[str, dict[str, Any]] = {}
    with threadpool_limits(1):
        for name in asked.sets.split(","):
            data = read(asked.data / name, asked.at_most)
            labels = np.unique(data.labels, return_inverse=True)[1]
            counts = NgramCounts(data.texts).counts
            (tfidf,) = TfidfFeatures(counts, labels).rows(counts)
            tfidf = csr_matrix(tfidf)
            vectors = TruncatedSVD(100, n_iter=1, random_state=0).fit_transform(tfidf)
            vectors *= 10 / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
            found: dict[str, Any] = {choice: [] for choice in CHOICES} | {"rows": len(data)}
            for seed in range(asked.seeds):
                order = np.random.default_rng(seed).permutation(len(data))
                test, rows = order[: len(data) // 4], order[len(data) // 4 :]
                for choice, choose in CHOICES.items():
                    found[choice].append(curve(choose, tfidf, vectors, labels, rows, test, seed))
            results[name] = found
            asked.out.write_text(json.dumps(results) + "\n", encoding="utf-8")
    print(grid(results).markdown())


def grid(results: dict[str, dict[str, Any]]) -> Grid:
    """For each set, by each choice but chance: the mean lead in macro F1 over random rows along the
    curve, and how many fewer rows than at random first have the score of all rows, with 95%
    intervals (Student's t over the seeds)."""
    rows = []
    for name, found in results.items():
        count = found["rows"] - found["rows"] // 4
        sizes = np.minimum(STEP * np.arange(1, len(found["suggest"][0]) + 1), count)
        random, row = np.array(found["at random"]), {"set": name}
        for choice in ("suggest", "uncertainty alone"):
            scores = np.array(found[choice])
            row[f"{choice}: lead"] = within(100 * (scores - random).mean(axis=1), ".1f")
            needed, usual = (sizes[(of >= of[:, -1:]).argmax(axis=1)] for of in (scores, random))
            row[f"{choice}: rows saved"] = within(usual - needed, ".0f")
        rows.append(row)
    return Grid.of(rows, list(rows[0]), ".1f")


def within(values: np.ndarray, digits: str) -> str:
    """The mean of values of the seeds with its 95% interval."""
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    mean = values.mean()
    return f"{mean:+{digits}} [{mean - half:+{digits}}, {mean + half:+{digits}}]"


if __name__ == "__main__":
    main()
