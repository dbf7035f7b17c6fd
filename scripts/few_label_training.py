"""What training a pretrained encoder on few labels adds to a frozen one.

    python scripts/few_label_training.py STORED.csv --init ENCODER --set arq=train.tsv ...

From each file (4,000 rows at most, no copies) 8, 16 and 32 rows of each class are drawn; the frozen
encoder with a logistic regression, and the same encoder trained with SuperLoss and then probed, are
judged on 1,500 others by weighted F1. STORED.csv gets each draw; the mean differences with
their 95% intervals over the sets are printed.
Files with test rows are not for this: a rule of the package was chosen here.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from doc_tables import mean_over_sets, write_rows
from few_label_choice import named, sampled
from sklearn.metrics import f1_score

from superconext.config.parameters import Config, resolve
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.fitting.cross_validation import PRETRAINED, frozen
from superconext.fitting.fit import fit_model

SHOTS, JUDGED = (8, 16, 32), 1500


def score(train: Dataset, config: Config, judged: Dataset) -> float:
    """Weighted F1 in percent of a fit without dev rows."""
    model = fit_model(train, config, classes=sorted(set(train.labels)), progress=Progress()).model
    return 100 * float(f1_score(judged.labels, model.predict(judged.texts), average="weighted"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stored", type=Path)
    parser.add_argument("--init", required=True)
    parser.add_argument("--set", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--draws", type=int, default=4)
    options = parser.parse_args()
    trained = resolve({"preset": "fast", "init": options.init})
    stored = []
    for name, path in named(options.set):
        data = sampled(path)
        labels = np.array(data.labels)
        for shots in SHOTS:
            for draw in range(options.draws):
                order = np.random.default_rng(1000 + draw).permutation(len(data))
                rows = [order[labels[order] == k][:shots] for k in sorted(set(data.labels))]
                known = np.sort(np.concatenate(rows))
                judged = data.select(np.setdiff1d(order, known)[:JUDGED])
                both = [
                    score(data.select(known), config, judged)
                    for config in (frozen(trained, PRETRAINED), trained)
                ]
                figures = dict(zip(("frozen", "trained"), (f"{x:.2f}" for x in both), strict=True))
                stored.append({"set": name, "rows": shots, "draw": draw} | figures)
    write_rows(options.stored, stored)
    for shots in SHOTS:
        gains: dict[str, list[float]] = {}
        for row in (row for row in stored if row["rows"] == shots):
            gain = float(row["trained"]) - float(row["frozen"])
            gains.setdefault(str(row["set"]), []).append(gain)
        print(f"{shots} rows per class: {mean_over_sets(gains)}")


if __name__ == "__main__":
    main()
