"""The tables of docs/results.md, from the labelled sets themselves.

    python scripts/dialect_results.py DATA --out DIR [--sets A,B] [--systems A,B]
        [--vectors FILE | --unlabelled FILE | --init FOLDER] [--related FILE] [--drop-leaked]
        [--set PARAMETER=VALUE]

DATA holds a folder for each set with train.tsv, dev.tsv and test.tsv, or all.tsv (label TAB text).
A set with a test file is used as it is, a stratified tenth of train being dev where it has none,
five seeds. Of a set in one file exact duplicates are removed, then it is split 80/10/10,
stratified, ten times for msac and five times for others. With `--drop-leaked` training rows whose
text stands in dev or test are left out, where a set has such. Every fit is a line of
DIR/results.jsonl as soon as it is done; run again, it goes on. The table is DIR/table.md too.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np
from protocol_splits import splits

from superconext.baselines.baseline import Split, fit_baseline
from superconext.config.parameters import resolve
from superconext.core.errors import SuperConTextError
from superconext.data.dataset import Dataset
from superconext.data.reading import read_labelled
from superconext.experiments.paired_tests import paired_bootstrap, resampled_t_test
from superconext.experiments.systems import parse_value
from superconext.fitting.fit import Fitted, fit_model
from superconext.fitting.model import Answer
from superconext.probe.ensemble import MeanWithTfidf, PoolWithNgrams
from superconext.probe.logistic_regression import fit_probe
from superconext.probe.metrics import classification_metrics
from superconext.report.table import markdown, spread

#: What stands beside our systems, by the name the table gives it.
BASELINES = {
    "majority": "majority",
    "TF-IDF + LR": "tfidf_logreg",
    "NB-SVM": "nbsvm",
    "fastText": "fasttext",
    "n-grams": "ngrams",
}

#: Baselines on the training rows and those of `--related`.
POOLED = {"TF-IDF + LR of both": "tfidf_logreg", "n-grams of both": "ngrams"}

BESIDE: dict[str, object] = {"probe_features": "encoder+ngrams"}
FIVE: dict[str, object] = {"members": 5, "probe_rows": "unseen"}

SYSTEMS: dict[str, dict[str, object]] = {
    "SuperLoss": BESIDE,
    "SuperLoss*": {"options": "mining=topk,mining_threshold=20"},
    "cross-entropy": {"objective": "cross_entropy", "batch_size": 64},
    "best": {"preset": "best"},
    "SuperLoss five unseen": {**FIVE, **BESIDE},
    "cross-entropy five unseen": {**FIVE, "objective": "cross_entropy", "batch_size": 64},
}

#: What members are worth: rows of a probe on some of them, out of the same fit. A member is what a
#: fit of its objective alone with its seed would be, so the first row is SuperLoss itself.
PARTS: dict[str, dict[str, list[int]]] = {
    "best": {"one member": [0], "two members": [0, 2]},
}

#: Of a fit with n-grams beside it the probe alone is a row, and its mean with TF-IDF, and the pool.
MEAN, POOL = " + TF-IDF", " + n-grams"

SCORES = {"accuracy": "accuracy", "f1_macro": "macro F1", "f1_weighted": "weighted F1"}

#: Parameters of all our systems that are options of this script.
PASSED = ("vectors", "init", "unlabelled", "related")


def fit(
    name: str, seed: int, train: Split, dev: Split, test: Split, shared: dict
) -> dict[str, dict]:
    """The lines of one fit by system: scores on dev and test, of a probe and of what predicts."""
    started = time.perf_counter()
    if name in BASELINES or name in POOLED:
        if name in POOLED:
            train = pooled(train, shared["related"], [*dev[0], *test[0]])
        baseline = fit_baseline({**BASELINES, **POOLED}[name], train, dev, seed)
        classes = sorted(set(train[1]))
        seconds = time.perf_counter() - started
        return {name: scored(*(baseline.predict(part[0]) for part in (dev, test)), dev, test,
                             classes, seconds)}  # fmt: skip
    config = resolve({**shared, **SYSTEMS[name], "seed": seed})
    fitted = fit_model(Dataset(*train), config, Dataset(*dev), monitor=False, test_texts=test[0])
    model, classes = fitted.model, fitted.model.classes
    answers = [model.answer(part[0]) for part in (dev, test)]
    seconds = time.perf_counter() - started

    def labels(scores: np.ndarray) -> list[str]:
        return [classes[k] for k in scores.argmax(axis=1)]

    line = scored(*(labels(a.probe) for a in answers), dev, test, classes, seconds)
    if answers[1].native is not None:
        line["native"] = classification_metrics(test[1], labels(answers[1].native), classes)
    lines = {name: line}
    if name in PARTS:
        found = part_scores(PARTS[name], fitted, answers, train, dev)
        for part, scores in found.items():
            on_both = (labels(one) for one in scores)
            lines[f"{name}: {part}"] = scored(*on_both, dev, test, classes, seconds)
    if isinstance(model.ensemble, PoolWithNgrams):
        by = {MEAN: MeanWithTfidf(model.ensemble.tfidf), POOL: model.ensemble}
        for beside, one in by.items():
            both = (one.combined(p[0], a.probe) for p, a in zip((dev, test), answers, strict=True))
            lines[name + beside] = scored(*map(labels, both), dev, test, classes, seconds)
    return lines


def pooled(train: Split, path: str, held: list[str]) -> Split:
    """Training rows, then those of a related file that have a label of theirs and no held text."""
    more, classes, left_out = read_labelled(path), set(train[1]), set(held)
    rows = zip(more.texts, more.labels, strict=True)
    kept = [row for row in rows if row[1] in classes and row[0] not in left_out]
    return [*train[0], *(text for text, _ in kept)], [*train[1], *(label for _, label in kept)]


def part_scores(
    parts: dict[str, list[int]], fitted: Fitted, answers: list[Answer], train: Split, dev: Split
) -> dict[str, list[np.ndarray]]:
    """Probabilities on dev and test of a probe on each of some parts."""
    index = {name: k for k, name in enumerate(fitted.model.classes)}
    truth, dev_truth = (
        np.array([index.get(label, -1) for label in part[1]]) for part in (train, dev)
    )
    known = dev_truth >= 0  # as in training: rows of other classes cannot help to choose
    found = {}
    for title, members in parts.items():
        own, on_dev, on_test = (
            np.hstack([np.split(block, len(fitted.model.encoders), axis=1)[m] for m in members])
            for block in (fitted.features, *(answer.features for answer in answers))
        )
        probe = fit_probe(own, truth, on_dev[known], dev_truth[known])
        found[title] = [probe.probabilities(part) for part in (on_dev, on_test)]
    return found


def scored(
    on_dev: list[str],
    on_test: list[str],
    dev: Split,
    test: Split,
    classes: list[str],
    seconds: float,
) -> dict:
    line: dict = {"seconds": seconds}
    for split, labels, rows in (("dev", on_dev, dev), ("test", on_test, test)):
        scores = classification_metrics(rows[1], labels, classes)
        line[split] = {k: scores[k] for k in ("n", *SCORES)}
    line["predicted"] = [classes.index(label) for label in on_test]
    line["truth"] = [classes.index(label) for label in test[1]]
    return line


def run(
    data: Path,
    out: Path,
    shared: dict,
    sets: list[str],
    systems: list[str],
    drop_leaked: bool = False,
) -> list[dict]:
    out.mkdir(parents=True, exist_ok=True)
    path = out / "results.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(line["set"], line["system"], line["seed"]) for line in lines}
    for name in sets:
        for seed, train, dev, test in splits(data / name, drop_leaked):
            for system in (one for one in systems if (name, one, seed) not in done):
                found = fit(system, seed, train, dev, test, shared)
                for title, scores in found.items():
                    lines.append({"set": name, "system": title, "seed": seed} | scores)
                    score = scores["test"]["accuracy"]
                    print(f"{name} {title} seed {seed}: accuracy {score:.3f}", file=sys.stderr)
                with path.open("a") as stream:
                    stream.writelines(json.dumps(x) + "\n" for x in lines[-len(found) :])
    return lines


def table(lines: list[dict], reference: str) -> str:
    """Mean and standard deviation of each system, and its difference to the reference."""
    rows = []
    for name in dict.fromkeys(line["set"] for line in lines):
        of = {
            system: [x for x in lines if x["set"] == name and x["system"] == system]
            for system in dict.fromkeys((*BASELINES, *SYSTEMS, *(x["system"] for x in lines)))
        }
        rival = of[reference]
        for system, fits in ((system, fits) for system, fits in of.items() if fits):
            row = {"set": name, "system": system, "fits": len(fits)}
            for key, title in SCORES.items():
                values = [x["test"][key] for x in fits]
                row[title] = spread(np.mean(values), np.std(values, ddof=1) if values[1:] else None)
            if system not in ("majority", reference) and len(fits) == len(rival):
                result = compare(fits, rival)
                row["difference"] = f"{100 * result.difference:+.1f}"
                row["p"] = f"{result.p:.3f}"
            row["seconds"] = f"{np.median([x['seconds'] for x in fits]):.0f}"
            rows.append(row)
    return markdown(rows, ("set", "system", "fits", *SCORES.values(), "difference", "p", "seconds"))


def compare(ours: list[dict], theirs: list[dict]):  # noqa: ANN201
    """Accuracy over resampled splits, or weighted F1 over the rows of one test set."""
    truth = ours[0]["truth"]
    if any(x["truth"] != truth for x in ours):
        scores = [[x["test"]["accuracy"] for x in fits] for fits in (ours, theirs)]
        return resampled_t_test(*scores, test_share=0.1 / 0.8)
    predicted = (np.array([x["predicted"] for x in fits]) for fits in (ours, theirs))
    return paired_bootstrap(np.array(truth), *predicted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--unlabelled", help="text to train word vectors on, beside train")
    parser.add_argument("--vectors", help="word vectors for all sets, instead")
    parser.add_argument("--init", help="or the folder of a pretrained encoder")
    parser.add_argument("--related", help="labelled rows that train our encoders too")
    parser.add_argument("--systems", default=",".join((*BASELINES, *SYSTEMS)))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--reference", default="TF-IDF + LR", help="system to compare with")
    parser.add_argument("--drop-leaked", action="store_true", help="of train, what dev or test has")
    parser.add_argument("--sets", default="msac,afrisenti_arq")
    parser.add_argument("--set", action="append", default=[], help="PARAMETER=VALUE of ours")
    options = parser.parse_args()
    shared = {name: getattr(options, name) for name in PASSED}
    for name, _, value in (setting.partition("=") for setting in options.set):
        shared[name] = parse_value(name, value, f"--set {name}")
    named = [names.split(",") for names in (options.sets, options.systems)]
    known = [*BASELINES, *SYSTEMS, *(POOLED if options.related else [])]
    if not set(known).issuperset(named[1]):
        parser.error(f"--systems {options.systems}; expected some of {', '.join(known)}")
    lines = run(options.data, options.out, shared, *named, options.drop_leaked)
    text = table(lines, options.reference)
    (options.out / "table.md").write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    try:
        main()
    except SuperConTextError as error:
        sys.exit(f"error: {error}")
