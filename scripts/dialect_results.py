"""The dialect table of docs/results.md, from the labelled sets themselves.

    python scripts/dialect_results.py DATA --out DIR [--unlabelled FILE] [--systems A,B]

DATA holds msac/all.tsv and afrisenti_arq/{train,dev,test}.tsv (label TAB text). MSAC:
exact duplicates removed, ten stratified 80/10/10 splits; arq: its own splits, five seeds.
Every fit is a line of DIR/results.jsonl as soon as it is done; run again, it goes on where
it stopped. The table goes to stdout and DIR/table.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedShuffleSplit

from superconext.config import resolve
from superconext.data.corpus import read_labelled
from superconext.data.splits import deduplicate
from superconext.experiments.baselines import Split, fit_majority, fit_tfidf
from superconext.experiments.significance import paired_bootstrap, resampled_t_test
from superconext.fitting import fit_model
from superconext.metrics import classification_metrics
from superconext.report.table import markdown

SYSTEMS: dict[str, dict[str, object]] = {
    "SuperLoss": {},
    "SuperLoss*": {"mining": "topk", "mining_threshold": 20.0},
    "SuperLoss + TF-IDF": {"probe_features": "encoder+tfidf"},
    "cross-entropy": {"objective": "cross_entropy", "batch_size": 64},
}


def msac(data: Path) -> Iterator[tuple[int, Split, Split, Split]]:
    corpus = read_labelled(data / "msac" / "all.tsv")
    corpus = corpus.select(deduplicate(corpus.texts))
    for seed in range(10):
        train, rest = halves(corpus.labels, np.arange(len(corpus)), 0.2, seed)
        dev, test = halves(corpus.labels, rest, 0.5, seed)
        parts = [corpus.select(rows) for rows in (train, dev, test)]
        yield seed, *((part.texts, part.labels) for part in parts)


def halves(labels: list[str], rows: np.ndarray, share: float, seed: int) -> list[np.ndarray]:
    """Rows split in two, stratified, as published figures on this set were made."""
    splitter = StratifiedShuffleSplit(1, test_size=share, random_state=seed)
    parts = next(splitter.split(rows, [labels[i] for i in rows]))
    return [rows[part] for part in parts]


def arq(data: Path) -> Iterator[tuple[int, Split, Split, Split]]:
    parts = [read_labelled(data / "afrisenti_arq" / f"{s}.tsv") for s in ("train", "dev", "test")]
    for seed in range(5):
        yield seed, *((part.texts, part.labels) for part in parts)


SETS = {"msac": msac, "afrisenti_arq": arq}


def fit(name: str, seed: int, train: Split, dev: Split, test: Split, shared: dict) -> dict:
    """One fit's line: scores of the probe (and of the objective's own rule) on dev and test."""
    started = time.perf_counter()
    line: dict[str, object] = {}
    if name in ("majority", "TF-IDF + LR"):
        baseline = fit_majority(train) if name == "majority" else fit_tfidf(train, dev)
        predicted = {"dev": baseline.predict(dev[0]), "test": baseline.predict(test[0])}
        classes = sorted(set(train[1]))
    else:
        fitted = fit_model(*train, resolve({**shared, **SYSTEMS[name], "seed": seed}), dev)
        model, classes = fitted.model, fitted.model.classes
        predicted = {"dev": model.predict(dev[0]), "test": model.predict(test[0])}
        own = model.native_probabilities(test[0])
        if own is not None:
            named = [classes[k] for k in own.argmax(axis=1)]
            line["native"] = classification_metrics(test[1], named, classes)
    line["seconds"] = time.perf_counter() - started
    for split, rows in (("dev", dev), ("test", test)):
        scores = classification_metrics(rows[1], predicted[split], classes)
        line[split] = {k: scores[k] for k in ("n", "accuracy", "f1_macro", "f1_weighted")}
    line["predicted"] = [classes.index(label) for label in predicted["test"]]
    line["truth"] = [classes.index(label) for label in test[1]]
    return line


def run(data: Path, out: Path, shared: dict, sets: list[str], systems: list[str]) -> list[dict]:
    out.mkdir(parents=True, exist_ok=True)
    path = out / "results.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(line["set"], line["system"], line["seed"]) for line in lines}
    for name in sets:
        for seed, train, dev, test in SETS[name](data):
            for system in systems:
                if (name, system, seed) in done:
                    continue
                line = {"set": name, "system": system, "seed": seed}
                line |= fit(system, seed, train, dev, test, shared)
                lines.append(line)
                with path.open("a") as stream:
                    stream.write(json.dumps(line) + "\n")
                score = line["test"]["accuracy"]
                print(f"{name} {system} seed {seed}: accuracy {score:.3f}", file=sys.stderr)
    return lines


def table(lines: list[dict], reference: str) -> str:
    """Mean and standard deviation of each system, and its difference to the reference."""
    rows = []
    for name in dict.fromkeys(line["set"] for line in lines):
        of = {
            system: [x for x in lines if x["set"] == name and x["system"] == system]
            for system in ("majority", "TF-IDF + LR", *SYSTEMS)
        }
        rival = of[reference]
        for system, fits in of.items():
            if not fits:
                continue
            row = {"set": name, "system": system, "fits": len(fits)}
            for key, title in (("accuracy", "accuracy"), ("f1_weighted", "weighted F1")):
                values = [100 * x["test"][key] for x in fits]
                row[title] = f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"
            if system not in ("majority", reference) and len(fits) == len(rival):
                result = compare(name, fits, rival)
                row["difference"] = f"{100 * result.difference:+.1f}"
                row["p"] = f"{result.p:.3f}"
            row["seconds"] = f"{np.median([x['seconds'] for x in fits]):.0f}"
            rows.append(row)
    columns = ("set", "system", "fits", "accuracy", "weighted F1", "difference", "p", "seconds")
    return markdown(rows, columns)


def compare(name: str, ours: list[dict], theirs: list[dict]):  # noqa: ANN201
    """Accuracy over resampled splits (msac), weighted F1 over rows of one test set (arq)."""
    if name == "msac":
        scores = [[x["test"]["accuracy"] for x in fits] for fits in (ours, theirs)]
        return resampled_t_test(*scores, test_share=0.1 / 0.8)
    truth = np.array(ours[0]["truth"])
    return paired_bootstrap(
        truth, np.array([x["predicted"] for x in ours]), np.array([x["predicted"] for x in theirs])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--unlabelled", help="text to train word vectors on, beside train")
    parser.add_argument("--systems", default=",".join(("majority", "TF-IDF + LR", *SYSTEMS)))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--reference", default="TF-IDF + LR", help="system to compare with")
    parser.add_argument("--sets", default="msac,afrisenti_arq")
    options = parser.parse_args()
    shared = {"unlabelled": options.unlabelled}
    wanted = options.systems.split(",")
    lines = run(options.data, options.out, shared, options.sets.split(","), wanted)
    text = table(lines, options.reference)
    (options.out / "table.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
