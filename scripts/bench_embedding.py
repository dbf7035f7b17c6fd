"""What do the words and n-grams that are not in a batch cost a training step?

    python scripts/bench_embedding.py [--sizes 4000,40000,400000] [--dimension N] [--json]

A step is all of it: batch, embedding, BiLSTM, head, SuperLoss, backward, clipping, optimiser. The
same sentences, of the same 4,000 words alone, are read with tables of each size, so whatever a
larger table adds to the time is paid for rows that no batch needs. The contestants take turns, and
each size is compared with the smallest in the same run:

- frozen: word vectors as they came;
- tuned: word vectors trained, as `tune_vectors` does it;
- tuned, dense: the same with gradients of all rows and torch's fused Adam over them;
- n-grams: frozen words and a table of trained n-grams, 15 for each word, as `subwords` does it;
- n-grams, dense: the same with gradients of all rows.

One thread; medians and quartiles of processor seconds, so that a busy neighbour disturbs less
(`--clock wall` for the other). State is what the optimiser keeps between steps.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from superconext.text.ngrams import WordNgrams

CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
CONTESTANTS = ("frozen", "tuned", "tuned, dense", "n-grams", "n-grams, dense")
IN_USE = 4_000
NGRAMS_OF_A_WORD = 15
BATCH = 200


@dataclass
class Contestant:
    """One way to train with one size of table. run: makes some steps; state: megabytes kept."""

    run: Callable[[], None]
    state: Callable[[], float]


def sentences(count: int = 2_000) -> list[np.ndarray]:
    """Ids of frequent words after Zipf's law, 21 a sentence on average (0, 1 are special)."""
    generator = np.random.default_rng(0)
    lengths = np.clip(generator.gamma(4.7, 21 / 4.7, count), 1, 60).astype(int)
    share = 1.0 / np.arange(1, IN_USE - 1)
    words = generator.choice(IN_USE - 2, size=int(lengths.sum()), p=share / share.sum()) + 2
    return np.split(words, np.cumsum(lengths)[:-1])


def contestant(which: str, size: int, dimension: int, steps: int) -> Contestant:
    """A trainer with a table of `size` rows."""
    import torch
    from torch import Tensor

    from superconext.config.parameters import resolve
    from superconext.data.sampler import make_batches
    from superconext.data.token_store import build_store
    from superconext.encoders import words as tables
    from superconext.encoders.bilstm import BiLSTMEncoder
    from superconext.encoders.layers import projection_head
    from superconext.objectives.base import Shape
    from superconext.objectives.catalogue import objective_class
    from superconext.training.callbacks import Callback
    from superconext.training.trainer import Trainer

    class OneEpoch(Callback):
        def on_epoch_end(self, trainer: Trainer, record: dict) -> None:
            trainer.stop = True

    config = resolve({"batch_size": BATCH, "steps_per_epoch": steps, "epochs": 10**6})
    torch.manual_seed(0)
    ngrams = which.startswith("n-grams")
    words = torch.randn(IN_USE if ngrams else size, dimension) * 0.1
    embedding = tables.WordEmbedding(
        words,
        which.startswith("tuned"),
        size if ngrams else 0,
        word_ngrams(size) if ngrams else None,
    )
    encoder = BiLSTMEncoder(embedding, config.hidden_size, dropout=config.dropout, pooling="max")
    head = projection_head(config.projection, encoder.sentence_size)
    rows = sentences()
    labels = np.arange(len(rows)) % 2
    trainer = Trainer(
        encoder,
        head,
        objective_class("superloss").build(
            config, Shape(2, encoder.sentence_size, encoder.sentence_size)
        ),
        make_batches("balanced", labels, BATCH, steps, 0),
        build_store(rows, config.max_length),
        labels,
        config,
        [OneEpoch()],
    )
    sparse_from = 10**9 if which.endswith("dense") else tables.SPARSE_FROM

    def run() -> None:
        trainer.stop = False
        tables.SPARSE_FROM, before = sparse_from, tables.SPARSE_FROM
        trainer.fit()
        tables.SPARSE_FROM = before

    def state() -> float:
        kept = trainer.optimizer.state_dict()["state"].values()
        tensors = [t for each in kept for t in each.values() if isinstance(t, Tensor)]
        return sum(t.numel() * t.element_size() for t in tensors) / 1e6

    return Contestant(run, state)


def word_ngrams(size: int) -> WordNgrams:
    """N-grams of the words in use: as many in every table, all over it."""
    drawn = np.random.default_rng(1).integers(0, IN_USE, (IN_USE, NGRAMS_OF_A_WORD))
    offsets = np.arange(IN_USE + 1) * NGRAMS_OF_A_WORD
    counts = np.full(IN_USE, NGRAMS_OF_A_WORD)
    return WordNgrams(drawn.ravel() * (size // IN_USE), offsets, counts)


def measure(
    sizes: list[int], dimension: int, steps: int, rounds: int, clock: Callable[[], float]
) -> list[dict[str, object]]:
    """A row for each size and contestant."""
    # A size at a time, for the memory; the smallest runs along with each, as its measure.
    found = []
    smallest = {which: contestant(which, sizes[0], dimension, steps) for which in CONTESTANTS}
    for size in sizes:
        present = {which: contestant(which, size, dimension, steps) for which in CONTESTANTS}
        times: dict[tuple[str, str], list[float]] = {}
        for turn in range(rounds + 1):
            for group, members in (("small", smallest), ("here", present)):
                for which, one in members.items():
                    started = clock()
                    one.run()
                    if turn:  # the first makes the optimiser's state
                        taken = (clock() - started) / steps
                        times.setdefault((group, which), []).append(taken)
        frozen = float(np.median(times["here", "frozen"]))
        for which in CONTESTANTS:
            low, middle, high = np.percentile(times["here", which], [25, 50, 75])
            found.append(
                {
                    "rows": size,
                    "vectors": which,
                    "milliseconds": 1e3 * middle,
                    "quartiles": [1e3 * low, 1e3 * high],
                    "to_smallest": float(middle / np.median(times["small", which])),
                    "to_frozen": float(middle / frozen),
                    "state_megabytes": present[which].state(),
                }
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="4000,40000,400000", help="rows, smallest first")
    parser.add_argument("--dimension", type=int, default=100)
    parser.add_argument("--steps", type=int, default=8, help="in each turn")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="cpu")
    parser.add_argument("--json", action="store_true", help="one JSON document")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    if min(sizes) < IN_USE:
        parser.error(f"a table of {min(sizes)} rows; expected {IN_USE} or more")
    import torch

    torch.set_num_threads(1)
    rows = measure(sizes, options.dimension, options.steps, options.rounds, CLOCKS[options.clock])
    if options.json:
        print(json.dumps({"dimension": options.dimension, "rows": rows}))
        return
    print(f"| rows | trained | ms a step | quartiles | to {sizes[0]:,} rows | to frozen | state |")
    print("|---:|---|---:|---|---:|---:|---:|")
    for row in rows:
        low, high = row["quartiles"]  # type: ignore[misc]
        print(
            f"| {row['rows']:,} | {row['vectors']} | {row['milliseconds']:.1f} | "
            f"{low:.1f}-{high:.1f} | {row['to_smallest']:.2f} | {row['to_frozen']:.2f} | "
            f"{row['state_megabytes']:.0f} MB |"
        )


if __name__ == "__main__":
    main()
