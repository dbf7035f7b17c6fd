"""What correcting by the class shares of each script (`prior_groups`) does to TF-IDF.

Five-fold cross-validation within the training rows of each set: TF-IDF + logistic regression is
fitted on four folds, C and the out-of-fold class shares within those, and predicts the fifth: as it
is; towards equal shares of all classes, whatever the script ("equal"); and corrected by the shares
of the text's script, towards those of all training rows ("script") or towards equal ones ("script,
equal"). A set with a test file is judged on that too. Copies of a text count once.

    python scripts/prior_groups.py results.csv --set ary=train.tsv,test.tsv --set twifil=all.tsv
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from superconext.baselines.baseline import AdjustedBaseline, fit_baseline
from superconext.data.reading import read_labelled
from superconext.probe.group_priors import GroupPriors, fit_group_priors
from superconext.text.characters import rows_by_script

#: Whether each correction knows the scripts, and whether it wants equal shares of all classes.
CORRECTIONS = {
    "as it is": (False, False),
    "equal": (False, True),
    "script": (True, False),
    "script, equal": (True, True),
}

Rows = tuple[list[str], list[str]]


def read_rows(path: str) -> Rows:
    """The first of equal texts, none of a text with several labels."""
    data = read_labelled(path)
    labels: dict[str, set[str]] = {}
    for text, label in zip(data.texts, data.labels, strict=True):
        labels.setdefault(text, set()).add(label)
    kept = {text: of.pop() for text, of in labels.items() if len(of) == 1}
    return list(kept), list(kept.values())


def sampled(rows: Rows, most: int) -> Rows:
    """So many rows at most, drawn by a fixed seed."""
    order = np.sort(np.random.default_rng(0).permutation(len(rows[0]))[:most])
    return pick(rows, order)


def pick(rows: Rows, places: np.ndarray) -> Rows:
    texts, labels = rows
    return [texts[n] for n in places], [labels[n] for n in places]


def predictions(train: Rows, texts: list[str]) -> dict[str, list[str]]:
    """The labels of texts by each of `CORRECTIONS`, of one fit of TF-IDF."""
    plain = fit_baseline("tfidf_logreg", train, None)
    shares, names = plain.out_of_fold(train, None), sorted(set(train[1]))
    assert shares is not None
    predicted = {}
    for name, (scripts, equal) in CORRECTIONS.items():
        priors = fit_group_priors(train[0], shares, float(equal))
        if not scripts:
            priors = GroupPriors({"": priors.priors[""]}, priors.wanted)
        predicted[name] = AdjustedBaseline(plain, names, priors.corrected, {}).predict(texts)
    return predicted


def judged(name: str, on: str, rows: Rows, predicted: dict[str, list[str]]) -> list[dict]:
    """A line for all rows and one for each script."""
    texts, labels = rows
    parts = {"all": np.arange(len(texts)), **rows_by_script(texts)}
    lines = []
    for script, places in parts.items():
        truth = [labels[n] for n in places]
        line = {"set": name, "on": on, "script": script, "rows": len(places)}
        shares = Counter(truth)
        line["classes"] = " ".join(f"{k}:{shares[k] / len(places):.2f}" for k in sorted(shares))
        for correction, of in predicted.items():
            answers = [of[n] for n in places]
            for average in ("weighted", "macro"):
                score = f1_score(truth, answers, average=average, zero_division=0.0)
                line[f"{average} {correction}"] = f"{score:.4f}"
        lines.append(line)
    return lines


def measure(name: str, train: Rows, test: Rows | None) -> list[dict]:
    texts, labels = train
    predicted = {correction: [""] * len(texts) for correction in CORRECTIONS}
    split = StratifiedKFold(5, shuffle=True, random_state=1)
    for fitted, held in split.split(texts, labels):
        answers = predictions(pick(train, fitted), [texts[n] for n in held])
        for correction, of in answers.items():
            for place, answer in zip(held, of, strict=True):
                predicted[correction][place] = answer
    lines = judged(name, "folds of train", train, predicted)
    if test is not None:
        lines += judged(name, "test", test, predictions(train, test[0]))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="CSV of the results")
    parser.add_argument("--set", action="append", default=[], help="NAME=TRAIN[,TEST]")
    parser.add_argument("--at-most", type=int, default=8000, help="rows of train")
    options = parser.parse_args()
    lines: list[dict] = []
    for setting in options.set:
        name, _, paths = setting.partition("=")
        train, *test = (read_rows(path) for path in paths.split(","))
        lines += measure(name, sampled(train, options.at_most), *(test or [None]))
        with options.out.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
        print(f"{name} done", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
