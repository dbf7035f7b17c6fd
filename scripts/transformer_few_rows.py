"""A pretrained transformer with few rows a class: frozen, fine-tuned, and SetFit beside it.

    python scripts/transformer_few_rows.py TRAIN TEST --model FOLDER --out results.jsonl

All systems start from the same weights and learn from the same drawn rows. Each adds one line to
the file, and lines that are there are not made again; the table is of all of them. Nothing is
chosen on the test rows: every system has its default settings, those of this script (`SYSTEMS`).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from superconext import SuperConTextClassifier
from superconext.data.reading import read_labelled

#: Parameters of each of ours; None is SetFit.
SYSTEMS: dict[str, dict[str, Any] | None] = {
    "frozen + LR": {"freeze": True},
    "cross_entropy": {"objective": "cross_entropy", "epochs": 8, "steps_per_epoch": 4},
    "superloss": {"objective": "superloss", "epochs": 8, "steps_per_epoch": 4},
    "SetFit": None,
}


def drawn_rows(labels: list[str], shots: int, seed: int) -> list[int]:
    """`shots` rows of each class."""
    draw = np.random.default_rng(seed).permutation(len(labels))
    rows: list[int] = []
    for name in sorted(set(labels)):
        rows += [int(row) for row in draw if labels[row] == name][:shots]
    return rows


def ours(given: dict[str, Any], model: str, seed: int, train: Any, texts: list[str]) -> list[str]:
    fitted = SuperConTextClassifier(encoder="transformer", model=model, seed=seed, **given)
    fitted.fit(*train)
    return [str(label) for label in fitted.predict(texts)]


def setfit(model: str, seed: int, train: Any, texts: list[str], folder: Path) -> list[str]:
    """SetFit with its defaults: one epoch over the pairs that it draws, then a logistic
    regression."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    started = SetFitModel.from_pretrained(model)
    arguments = TrainingArguments(
        output_dir=str(folder), seed=seed, save_strategy="no", report_to="none", use_amp=False
    )
    rows = Dataset.from_dict({"text": train[0], "label": train[1]})
    Trainer(model=started, args=arguments, train_dataset=rows).train()
    return [str(label) for label in started.predict(texts, use_labels=False)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("--model", required=True, help="folder of the weights")
    parser.add_argument("--out", required=True, type=Path, help="file of result lines")
    parser.add_argument("--shots", default="8,16")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--test-rows", type=int, default=0, help="drawn of TEST; 0: all")
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    train, test = read_labelled(arguments.train), read_labelled(arguments.test)
    if arguments.test_rows:
        order = np.random.default_rng(0).permutation(len(test.labels))
        test = test.select(sorted(int(row) for row in order[: arguments.test_rows]))
    done = []
    if arguments.out.exists():
        done = [json.loads(line) for line in arguments.out.read_text().splitlines()]
    for seed in range(arguments.seeds):
        for shots in map(int, arguments.shots.split(",")):
            rows = drawn_rows(train.labels, shots, seed)
            part = [train.texts[row] for row in rows], [train.labels[row] for row in rows]
            for name in arguments.systems.split(","):
                key = {"system": name, "shots": shots, "seed": seed}
                if any(key.items() <= line.items() for line in done):
                    continue
                began = time.perf_counter()
                given = SYSTEMS[name]
                if given is None:
                    folder = arguments.out.with_suffix(".setfit")
                    predicted = setfit(arguments.model, seed, part, test.texts, folder)
                else:
                    predicted = ours(given, arguments.model, seed, part, test.texts)
                right = np.array(predicted) == np.array(test.labels)
                seconds = round(time.perf_counter() - began, 1)
                line = {**key, "accuracy": float(right.mean()), "seconds": seconds}
                done.append(line)
                with arguments.out.open("a") as stream:
                    stream.write(json.dumps(line) + "\n")
                print(line, file=sys.stderr)
    for shots in sorted({line["shots"] for line in done}):
        for name in SYSTEMS:
            own = [x for x in done if x["system"] == name and x["shots"] == shots]
            if own:
                scores = [100 * line["accuracy"] for line in own]
                spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
                seconds = statistics.mean(line["seconds"] for line in own)
                print(
                    f"{shots:4d} rows a class  {name:15s} {statistics.mean(scores):5.1f} "
                    f"± {spread:.1f}  {seconds:6.1f} s  {len(own)} draws"
                )


if __name__ == "__main__":
    main()
