"""How close a training step comes to the processor's matrix rate, beside a packed nn.LSTM.

    python scripts/bench_step.py [--sizes small,large] [--lengths short|long] [--rounds N] [--json]
        [--machine NAME --commit NAME]
    python scripts/bench_step.py --table

A step is all of it: drawing a balanced batch, embedding, BiLSTM forward and backward, projection
head, SuperLoss, gradient clipping and Adam. Its rate counts the arithmetic of the BiLSTM on real
tokens alone (2 directions x 2 x 4h(i + h) for each token and layer, three times that with the
backward pass), so padding, dropout, pooling, head and loss only cost. The efficiency is that rate
over the fp32 rate of a 1024 x 1024 matrix product in the same process, as torch makes it without
being asked for more: what the rivals have. (`ours` and `products` have the faster library of
core/arithmetic.py, and may so exceed 1.) The contestants take turns; medians and quartiles are
printed. One thread; processor seconds, not wall seconds, so a busy neighbour disturbs less
(`--clock wall` for the other).

`products` is the bound: the matrix products of the BiLSTM alone, forward and backward, of the same
shapes, strides and order as in encoders/packed_lstm.py, and nothing else.
`ours` is the package's own trainer with frozen vectors, `ours, padded` the same over padded
LSTMs in four sub-batches of alike length (how it runs where there is no CPU path), `ours, vectors
tuned` and `ours, n-grams` with 15,000 word rows or 36,000 n-gram rows trained too; `compiled`,
`compiled bf16` and `compiled, n-grams` are the same with `--compile`. The rivals stand in
step_rivals.py: `packed`, a loop as people write it around nn.LSTM and packed sequences;
sentence-transformers' (6.2) WordEmbeddings + LSTM + pooling with its batch-hard loss; flair's
(0.15) document RNN classifier; fastText, of which only tokens a second mean something. Those that
are not installed are left out with a line. All run in one process and in one allocator state.

Sentences are random words with lengths as in SST-2 (`short`: mean 21, 95th percentile 39) or in
IMDB (`long`: mean 230, at most 400).

`--machine` puts the efficiencies into scripts/results/bench_step.csv in the place of those of that
machine, and the table of it into docs/performance.md; `--table` writes the table alone.
"""

from __future__ import annotations

import argparse
import functools
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bench_output import give_out, summary
from doc_tables import read_rows, write_rows, write_table
from step_rivals import RIVALS

from superconext.core.process import keep_freed_memory
from superconext.report.table import Grid

NAME = "step"
ROOT = Path(__file__).parents[1]
STORED = ROOT / "scripts" / "results" / "bench_step.csv"
PAGE = ROOT / "docs" / "performance.md"
FIELDS = ("machine", "commit", "size", "lengths", "contestant", "share", "low", "high")
KEY = ("machine", "size", "lengths", "contestant")
#: Contestants and columns of the table in the page, and what they are called there.
SHOWN = {
    "products": "matrix products",
    "ours, n-grams": "superconext",
    "compiled, n-grams": "--compile",
    "ours": "--no-subwords",
    "ours bf16": "--no-subwords --precision bfloat16",
    "packed": "packed nn.LSTM",
    "sentence-transformers": "sentence-transformers, LSTM",
    "flair": "flair, RNN",
}
COLUMNS = {
    ("small", "short"): "100-d, 1 × 128, batch 200",
    ("large", "short"): "300-d, 2 × 256, batch 400",
}

CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
VOCABULARY = 15_000
#: Contestants whose arithmetic is another.
NO_BILSTM = {"fastText"}


@dataclass(frozen=True)
class Size:
    """One of the two models the measurements are about."""

    dimension: int
    layers: int
    hidden: int
    batch: int

    def flops(self, tokens: int) -> float:
        """Of the BiLSTM, forward and backward, on so many tokens."""
        inputs = [self.dimension] + [2 * self.hidden] * (self.layers - 1)
        return tokens * sum(3 * 2 * 2 * 4 * self.hidden * (i + self.hidden) for i in inputs)


SIZES = {"small": Size(100, 1, 128, 200), "large": Size(300, 2, 256, 400)}


def draw_sentences(lengths: str, count: int = 4000, seed: int = 0) -> list[np.ndarray]:
    """Word ids with frequencies after Zipf's law, from 2 (0 and 1 are padding and unknown)."""
    generator = np.random.default_rng(seed)
    mean, longest = (21, 60) if lengths == "short" else (252, 400)
    sizes = generator.gamma(4.7 if lengths == "short" else 2.5, 1.0, count)
    sizes = np.clip(np.round(sizes / sizes.mean() * mean), 1, longest).astype(int)
    share = 1.0 / np.arange(1, VOCABULARY - 1)
    words = generator.choice(VOCABULARY - 2, size=int(sizes.sum()), p=share / share.sum()) + 2
    return np.split(words, np.cumsum(sizes)[:-1])


class Counted:
    """Batches that remember how many tokens they drew."""

    def __init__(self, batches: object, lengths: np.ndarray) -> None:
        self.batches, self.lengths, self.tokens = batches, lengths, 0
        self.steps = batches.steps  # type: ignore[attr-defined]

    def epoch(self, number: int) -> Iterator[np.ndarray]:
        for rows in self.batches.epoch(number):  # type: ignore[attr-defined]
            self.tokens += int(self.lengths[rows].sum())
            yield rows


def ours(size: Size, sentences: list[np.ndarray], steps: int, **settings: object) -> Callable:
    """A function that trains one short epoch and tells the tokens it read."""
    import torch

    from superconext.config.parameters import resolve
    from superconext.data.sampler import make_batches
    from superconext.data.token_store import build_store
    from superconext.encoders.bilstm import BiLSTMEncoder
    from superconext.encoders.layers import projection_head
    from superconext.encoders.words import WordEmbedding
    from superconext.objectives.base import Shape
    from superconext.objectives.catalogue import objective_class
    from superconext.text.ngrams import NgramVocabulary
    from superconext.training.callbacks import Callback
    from superconext.training.trainer import Trainer

    ragged, tune = bool(settings.pop("ragged", True)), bool(settings.pop("tune", False))
    ngrams = None
    if settings.pop("subwords", False):
        words = draw_words()
        ngrams = NgramVocabulary.build(words)
    config = resolve(
        {"batch_size": size.batch, "steps_per_epoch": steps, "epochs": 10**6, **settings}
    )
    torch.manual_seed(0)
    embedding = WordEmbedding(
        torch.randn(VOCABULARY, size.dimension) * 0.1,
        tune,
        len(ngrams) if ngrams else 0,
        ngrams.encode(words) if ngrams else None,
    )
    encoder = BiLSTMEncoder(
        embedding, size.hidden, size.layers, config.dropout, config.word_dropout, config.pooling
    )
    encoder.ragged = ragged
    head = projection_head(config.projection, 2 * size.hidden)
    shape = Shape(2, 2 * size.hidden, 2 * size.hidden)
    labels = np.arange(len(sentences)) % 2
    store = build_store(sentences, 10**6)
    batches = Counted(
        make_batches("balanced", labels, size.batch, steps, 0), np.asarray(store.lengths)
    )
    objective = objective_class("superloss").build(config, shape)

    class OneEpoch(Callback):
        def on_epoch_end(self, trainer: Trainer, record: dict) -> None:
            trainer.stop = True

    trainer = Trainer(encoder, head, objective, batches, store, labels, config, [OneEpoch()])

    def run() -> int:
        trainer.stop, batches.tokens = False, 0
        trainer.fit()
        return batches.tokens

    return run


def products(size: Size, sentences: list[np.ndarray], steps: int) -> Callable:
    """A function that multiplies as `ours` does, and tells the tokens it would have read."""
    import torch

    from superconext.core.arithmetic import fast_products
    from superconext.encoders.packed_lstm import Packing

    lengths, generator = np.array([len(row) for row in sentences]), np.random.default_rng(0)
    hidden, inputs = size.hidden, [size.dimension] + [2 * size.hidden] * (size.layers - 1)
    layers = []
    for number, width in enumerate(inputs):
        weight = 0.01 * torch.randn(4 * hidden, width + hidden + 1)
        layers.append((weight, weight[:, 0 if number else width : -1]))
    most = size.batch * int(lengths.max())
    rows = [torch.randn(most, 2, -(-weight.shape[1] // 16) * 16) for weight, _ in layers]
    made = torch.randn(most, 2, 4 * hidden)
    into = torch.empty(most, 2, max(inputs) + hidden)

    def step() -> int:
        packing = Packing(lengths[generator.choice(len(lengths), size.batch, replace=False)])
        starts = list(zip(packing.offsets[:-1].tolist(), packing.steps, strict=True))
        for (weight, back), joined in zip(layers, rows, strict=True):
            joined, columns = joined[:, :, : weight.shape[1]], weight.t()
            for at, n in starts:
                for d in (0, 1):
                    torch.mm(joined[at : at + n, d], columns, out=made[at : at + n, d])
            for at, n in reversed(starts):
                for d in (0, 1):
                    out = into[at : at + n, d, : back.shape[1]]
                    torch.mm(made[at : at + n, d], back, out=out)
            for d in (0, 1):
                torch.mm(joined[: len(packing), d].t(), made[: len(packing), d])
        return len(packing)

    def many() -> int:
        with fast_products():
            return sum(step() for _ in range(steps))

    return many


def draw_words(seed: int = 0) -> list[str]:
    """Made-up words, so that their n-grams repeat about as in a language."""
    generator = np.random.default_rng(seed)
    syllables = [c + v for c in "bcdfghjklmnprstwz" for v in ("a", "e", "i", "o", "u", "ou")]
    share = 1.0 / np.arange(1, len(syllables) + 1)
    words: dict[str, None] = {}
    while len(words) < VOCABULARY - 2:
        chosen = generator.choice(syllables, int(generator.integers(2, 5)), p=share / share.sum())
        words["".join(chosen)] = None
    return ["<pad>", "<unk>", *words]


def matrix_rate(clock: Callable[[], float]) -> float:
    """FLOP/s of a large fp32 matrix product."""
    import torch

    left, right = torch.randn(1024, 1024), torch.randn(1024, 1024)
    result = torch.empty(1024, 1024)
    started = clock()
    for _ in range(4):
        torch.mm(left, right, out=result)
    return 4 * 2 * 1024**3 / (clock() - started)


def measure(
    name: str, lengths: str, rounds: int, clock: Callable[[], float], chosen: list[str] | None
) -> dict:
    """One size: contestants in turn, each warmed up once."""
    size, sentences = SIZES[name], draw_sentences(lengths)
    steps = max(1, (8 if name == "small" else 2) // (1 if lengths == "short" else 8))
    makers: dict[str, Callable[[], Callable]] = {
        "products": lambda: products(size, sentences, steps),
        "ours": lambda: ours(size, sentences, steps),
        "ours bf16": lambda: ours(size, sentences, steps, precision="bfloat16"),
        "ours, padded": lambda: ours(size, sentences, steps, ragged=False),
        "ours, vectors tuned": lambda: ours(size, sentences, steps, tune=True),
        "ours, n-grams": lambda: ours(size, sentences, steps, subwords=True),
        "compiled": lambda: ours(size, sentences, steps, compile=True),
        "compiled bf16": lambda: ours(size, sentences, steps, compile=True, precision="bfloat16"),
        "compiled, n-grams": lambda: ours(size, sentences, steps, compile=True, subwords=True),
    }
    for rival, make in RIVALS.items():
        makers[rival] = functools.partial(make, size, sentences, steps, VOCABULARY)
    if unknown := [which for which in chosen or () if which not in makers]:
        sys.exit(f"error: --only: found {', '.join(unknown)}; expected {'; '.join(makers)}")
    contestants, missing = {}, {}
    for which in chosen or makers:
        try:
            contestants[which] = makers[which]()
        except ImportError as error:
            missing[which] = f"not installed ({error})"
    for run in contestants.values():
        run()
    rates: list[float] = []
    results: dict[str, dict[str, list[float]]] = {
        which: {"seconds": [], "rate": [], "tokens": [], "faults": []} for which in contestants
    }
    for _ in range(rounds):
        rates.append(matrix_rate(clock))
        for which, run in contestants.items():
            faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            started = clock()
            tokens = run()
            taken = clock() - started
            results[which]["seconds"].append(taken / steps)
            results[which]["rate"].append(size.flops(tokens) / taken)
            results[which]["tokens"].append(tokens / taken)
            faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
            results[which]["faults"].append(faults / steps)
    limit = statistics.median(rates)
    reference = statistics.median(results["ours"]["tokens"]) if "ours" in results else None
    return {
        "size": name,
        "lengths": lengths,
        "mean_length": float(np.mean([len(row) for row in sentences])),
        "p95_length": float(np.percentile([len(row) for row in sentences], 95)),
        "gemm_gflops": summary([rate / 1e9 for rate in rates]),
        "missing": missing,
        "contestants": {
            which: {
                "tokens_per_second": summary(values["tokens"]),
                "ours_over_it": reference and reference / statistics.median(values["tokens"]),
                **({} if which in NO_BILSTM else _efficiency(values, limit)),
            }
            for which, values in results.items()
        },
    }


def _efficiency(values: dict[str, list[float]], limit: float) -> dict:
    return {
        "seconds": summary(values["seconds"]),
        "efficiency": summary([rate / limit for rate in values["rate"]]),
        "page_faults": statistics.median(values["faults"]),
    }


def grid(rows: list[dict[str, str]]) -> Grid:
    """Of each machine on which all settings were measured, and of each contestant on it, the share
    in each setting; those kept from using what they have are for comparison in the file alone."""
    of = {(r["machine"], r["contestant"], r["size"], r["lengths"]): r["share"] for r in rows}
    lines = []
    for machine in dict.fromkeys(row["machine"] for row in rows):
        if any((machine, "ours", *column) not in of for column in COLUMNS):
            continue
        if "limited to" in machine:
            continue
        of_machine = []
        for name, shown in SHOWN.items():
            shares = [of.get((machine, name, *column)) for column in COLUMNS]
            if any(shares):
                cells = [f"{float(share):.2f}" if share else "" for share in shares]
                of_machine.append(["" if of_machine else machine, shown, *cells])
        lines += of_machine
    headings = ["processor", "", *COLUMNS.values()]
    return Grid(headings, lines, right=frozenset(range(2, len(headings))))


def store(results: list[dict], machine: str, commit: str) -> None:
    """Put what was measured into the file, in the place of the same on the same machine."""
    rows = []
    for result in results:
        for name, value in result["contestants"].items():
            if "efficiency" in value:
                share = {k: f"{value['efficiency'][k]:.3f}" for k in ("median", "low", "high")}
                about = (machine, commit, result["size"], result["lengths"], name)
                rows.append(dict(zip(FIELDS, (*about, *share.values()), strict=True)))
    new = {tuple(row[name] for name in KEY) for row in rows}
    kept = [row for row in read_rows(STORED) if tuple(row[name] for name in KEY) not in new]
    write_rows(STORED, [*rows, *kept])


def show(result: dict) -> None:
    rate = result["gemm_gflops"]
    print(
        f"{result['size']}, sentences of {result['mean_length']:.1f} tokens (95th percentile "
        f"{result['p95_length']:.0f}), matrix product {rate['median']:.0f} "
        f"[{rate['low']:.0f}, {rate['high']:.0f}] GFLOP/s, freed memory "
        f"{'kept' if result['allocator'] == 'kept' else 'as the allocator has it'} for all"
    )
    for name, value in result["contestants"].items():
        line = f"  {name:22} {value['tokens_per_second']['median']:9.0f} tokens/s"
        if value["ours_over_it"]:
            line += f", ours {value['ours_over_it']:.2f} times that"
        if "seconds" in value:
            seconds, share = value["seconds"], value["efficiency"]
            line += (
                f", {1e3 * seconds['median']:.1f} ms, {share['median']:.3f} "
                f"[{share['low']:.3f}, {share['high']:.3f}] of it, "
                f"{value['page_faults']:.0f} faults"
            )
        print(line)
    for name, reason in result["missing"].items():
        print(f"  {name:22} {reason}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", default="small,large", help="of small, large")
    parser.add_argument("--lengths", choices=("short", "long"), default="short")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="cpu")
    parser.add_argument("--only", default="", help="contestants, separated by semicolons")
    parser.add_argument(
        "--allocator",
        choices=("kept", "default"),
        default="kept",
        help="whether freed memory stays with the process, for all contestants alike",
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--machine", help="store what is measured under this name")
    parser.add_argument("--commit", default="", help="of the code that is measured")
    parser.add_argument("--table", action="store_true", help="write the table of what is stored")
    options = parser.parse_args()
    if options.table:
        write_table(PAGE, NAME, grid(read_rows(STORED)))
        return 0
    if options.allocator == "kept":  # before torch makes its first tensor
        keep_freed_memory()
    import torch

    torch.set_num_threads(1)
    chosen = options.only.split(";") if options.only else None
    if unknown := [name for name in options.sizes.split(",") if name not in SIZES]:
        parser.error(f"--sizes: found {', '.join(unknown)}; expected {', '.join(SIZES)}")
    clock = CLOCKS[options.clock]
    done: list[dict] = []

    def results() -> Iterator[dict]:
        for name in options.sizes.split(","):
            found = measure(name, options.lengths, options.rounds, clock, chosen)
            done.append({"allocator": options.allocator, **found})
            yield done[-1]

    give_out(results(), show, options.json)
    if options.machine:
        store(done, options.machine, options.commit)
        write_table(PAGE, NAME, grid(read_rows(STORED)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
