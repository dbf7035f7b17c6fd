"""What the faster library for float32 products gains here: training with it and without.

    python scripts/bench_products.py [--model FOLDER] [--rounds 5]

Each contestant trains for some steps with torch's own products and with those of
core/arithmetic.py, in turns, in one process and on one thread; a ratio is that of medians of
processor seconds. The BiLSTMs are those of bench_step.py; with `--model` a transformer is
fine-tuned too, on made-up sentences. Ratios go to scripts/results/bench_products.csv.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from bench_step import SIZES, draw_sentences, draw_words, ours
from doc_tables import write_rows

from superconext.core import arithmetic

STORED = Path(__file__).parents[1] / "scripts" / "results" / "bench_products.csv"


def transformer(model: str) -> Callable[[], object]:
    """A function that fine-tunes the model for one pass over 128 sentences of some 21 words."""
    from superconext import SuperConTextClassifier

    words = draw_words()
    texts = [" ".join(words[word] for word in row) for row in draw_sentences("short", 128)]
    labels = np.arange(len(texts)) % 2
    given = {"encoder": "transformer", "model": model, "objective": "cross_entropy", "epochs": 1}
    return lambda: SuperConTextClassifier(**given).fit(texts, labels)


def contestants(model: str | None) -> dict[str, Callable[[], object]]:
    sentences = draw_sentences("short")
    small, large = SIZES["small"], SIZES["large"]
    found: dict[str, Callable[[], object]] = {
        "BiLSTM, 100-d, 1 x 128": ours(small, sentences, 8),
        "BiLSTM, 100-d, 1 x 128, compiled": ours(small, sentences, 8, compile=True),
        "BiLSTM, 300-d, 2 x 256": ours(large, sentences, 2),
        "BiLSTM, 300-d, 2 x 256, compiled": ours(large, sentences, 2, compile=True),
    }
    return found | ({"transformer": transformer(model)} if model else {})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="folder of a transformer")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    gain = arithmetic.measure_onednn()
    print(f"a product alone: {gain:.2f} times as fast", flush=True)
    rows = [{"what": "product", "times_as_fast": f"{gain:.2f}"}]
    for what, run in contestants(options.model).items():
        taken: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(options.rounds + 1):
            for fast in taken:
                arithmetic._onednn_wins = lambda fast=fast: fast
                began = time.process_time()
                run()
                if turn:  # the first warms up
                    taken[fast].append(time.process_time() - began)
        ratio = statistics.median(taken[False]) / statistics.median(taken[True])
        rows.append({"what": what, "times_as_fast": f"{ratio:.2f}"})
        print(f"{what}: {ratio:.2f} times as fast", flush=True)
    write_rows(STORED, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
