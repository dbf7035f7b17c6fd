"""What the rows without a label of a training file bring: word vectors with and without their text.

    python scripts/own_rows.py STORED.csv --set arq=train.tsv ... [--draws 5]

Of each file 16 or 64 rows of each class keep their labels, 1,500 others at most are rows without
one, and 1,500 others are judged (4,000 rows at most in all, no copies). The recipes without a
trained encoder are cross-validated on the labelled rows, and that of the lowest log loss is judged,
once with word vectors of the labelled rows alone and once of the others too, as
`superconext train --drop-incomplete` makes them. STORED.csv gets the mean weighted F1 of each set;
the mean difference and its 95% interval over the sets are printed.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from doc_tables import mean_over_sets, write_rows
from few_label_choice import LOWEST, named, rules, sampled, scores

from superconext.config.parameters import resolve
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.fitting.controls import mean_vectors, run_text
from superconext.fitting.cross_validation import VECTORS, CrossValidation

SHOTS, JUDGED, OTHERS = (16, 64), 1500, 1500
#: Both: the default of `train`, and a logistic regression on mean word vectors.
MEASURED = ("default", "mean word vectors")


def measure(data: Dataset, shots: int, draw: int, others: bool) -> tuple[float, float]:
    """Weighted F1 in percent, of `MEASURED`, on the rows that are judged."""
    classes, labels = sorted(set(data.labels)), np.array(data.labels)
    order = np.random.default_rng(1000 + draw).permutation(len(data))
    rows = np.concatenate([order[labels[order] == name][:shots] for name in classes])
    rest = order[~np.isin(order, rows)]
    asked = np.sort(rest[: min(JUDGED, len(rest) // 2)])
    beside = [data.texts[row] for row in rest[len(asked) :][:OTHERS]] if others else []
    rows, config = np.sort(rows), resolve({"preset": "auto"})
    some = replace(data.select(rows), unlabelled=beside)
    prepared = CrossValidation(some, config, 5, Progress(), classes=classes).prepared
    run = run_text(prepared, config, {"train": some.texts})
    features = np.zeros((len(data), config.vector_dimension))
    for places in (rows, asked):
        store = run.store([data.texts[row] for row in places])
        features[places] = mean_vectors(store, prepared.indexer.table)
    numbers = np.searchsorted(classes, labels)
    found = scores(data, numbers, {VECTORS: features}, config, classes, rows, asked)
    chosen = rules(list(found))[LOWEST]({name: losses for name, (losses, _) in found.items()})
    return found[chosen][1], found[VECTORS][1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stored", type=Path)
    parser.add_argument("--set", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--draws", type=int, default=5)
    options = parser.parse_args()
    stored: list[dict[str, str]] = []
    gains: dict[tuple[int, str], dict[str, list[float]]] = {}
    for name, path in named(options.set):
        data = sampled(path)
        for shots in SHOTS:
            pairs = [
                [measure(data, shots, draw, others) for others in (False, True)]
                for draw in range(options.draws)
            ]
            for at, what in enumerate(MEASURED):
                both = np.array([[of[at] for of in pair] for pair in pairs])
                gains.setdefault((shots, what), {})[name] = (both[:, 1] - both[:, 0]).tolist()
                figures = dict(zip(("without", "with"), both.mean(axis=0), strict=True))
                row = {"set": name, "rows": str(shots), "draws": str(len(both)), "system": what}
                stored.append(row | {key: f"{x:.2f}" for key, x in figures.items()})
    write_rows(options.stored, stored)
    for (shots, what), gain in gains.items():
        print(f"{shots} rows per class, {what}: {mean_over_sets(gain)}")


if __name__ == "__main__":
    main()
