"""Memory and time of a training step on a batch of thousands of sentences.

    python scripts/bench_big_batch.py [--batch 8192] [--size small|large] [--lengths short|long]
        [--rounds N] [--only "ours;..."] [--json]

Each contestant is a whole step (draw, encode, loss, backward, Adam) of the same model, a BiLSTM
with max pooling over frozen word vectors, on the same random sentences (as in bench_step.py), in
a process of its own on one thread. The contestants take turns; medians of processor seconds and
the peak of resident memory above that of the process before its first batch are printed.

`ours` is SuperLoss with cached gradients, `ours, one pass` the same without.
`sentence-transformers` is its CachedMultipleNegativesRankingLoss on as many sentences (in pairs),
and `sentence-transformers, one pass` its MultipleNegativesRankingLoss; both run its own LSTM
module. `pytorch-metric-learning` is its SupConLoss behind our encoder in one pass. Rivals join if
they are installed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))

from bench_losses import resident_peak
from bench_step import SIZES, VOCABULARY, Size, draw_sentences

#: Sentences encoded at once by the rivals that cache gradients: about what 16,384 tokens are.
MINI_BATCH = {"short": 780, "long": 65}


def ours(size: Size, batch: int, lengths: str, **settings: object) -> Callable[[], object]:
    """One step of the package's own trainer."""
    import bench_step

    wide = Size(size.dimension, size.layers, size.hidden, batch)
    return bench_step.ours(wide, draw_sentences(lengths, 2 * batch), 1, **settings)


def one_pass(size: Size, batch: int, lengths: str) -> Callable[[], object]:
    """The same without cached gradients."""
    from superconext.training import cached_gradients

    cached_gradients.MOST_KEPT = sys.maxsize
    return ours(size, batch, lengths)


def metric_learning(size: Size, batch: int, lengths: str) -> Callable[[], object]:
    """Our encoder in one pass, with SupConLoss."""
    from pytorch_metric_learning.losses import SupConLoss
    from torch import Tensor

    from superconext.objectives.base import Batch
    from superconext.objectives.superloss import SuperLoss

    loss = SupConLoss(temperature=0.1)

    def forward(self: SuperLoss, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        return loss(batch.projected, batch.labels), {}

    SuperLoss.forward = forward  # type: ignore[method-assign]
    return one_pass(size, batch, lengths)


def sentence_transformers(
    size: Size, batch: int, lengths: str, cached: bool
) -> Callable[[], object]:
    """Its word embeddings, LSTM and pooling, with a loss over pairs of sentences."""
    import numpy as np
    import torch
    from sentence_transformers import SentenceTransformer, models
    from sentence_transformers import losses as known

    torch.manual_seed(0)
    words = [f"w{number}" for number in range(VOCABULARY)]
    tokenizer = models.tokenizer.WhitespaceTokenizer(words, stop_words=[], do_lower_case=False)
    table = torch.randn(VOCABULARY, size.dimension) * 0.1
    embedding = models.WordEmbeddings(tokenizer, table, update_embeddings=False)
    lstm = models.LSTM(size.dimension, size.hidden, size.layers, dropout=0.2)
    pooling = models.Pooling(lstm.get_word_embedding_dimension(), "max")
    model = SentenceTransformer(modules=[embedding, lstm, pooling], device="cpu").train()
    if cached:
        loss = known.CachedMultipleNegativesRankingLoss(model, mini_batch_size=MINI_BATCH[lengths])
    else:
        loss = known.MultipleNegativesRankingLoss(model)
    optimizer = torch.optim.Adam(p for p in model.parameters() if p.requires_grad)
    sentences = [" ".join(words[i] for i in row) for row in draw_sentences(lengths, batch)]
    order = np.random.default_rng(0).permutation(batch)

    def step() -> None:
        halves = (order[: batch // 2], order[batch // 2 :])
        features = [model.tokenize([sentences[i] for i in half]) for half in halves]
        optimizer.zero_grad()
        loss(features, torch.arange(batch // 2)).backward()
        optimizer.step()

    return step


def contestants(size: Size, batch: int, lengths: str) -> dict[str, Callable[[], Callable]]:
    """Functions that set up a contestant and return its step."""
    found: dict[str, Callable[[], Callable]] = {
        "ours": lambda: ours(size, batch, lengths),
        "ours, one pass": lambda: one_pass(size, batch, lengths),
    }
    if find_spec("pytorch_metric_learning"):
        found["pytorch-metric-learning"] = lambda: metric_learning(size, batch, lengths)
    if find_spec("sentence_transformers"):
        for name, cached in (("sentence-transformers", True), ("one pass", False)):
            name = name if cached else f"sentence-transformers, {name}"
            found[name] = lambda cached=cached: sentence_transformers(size, batch, lengths, cached)
    return found


def child(name: str, options: argparse.Namespace) -> None:
    """One contestant: a step on 64 sentences first, then one that counts."""
    from superconext.core.process import keep_freed_memory

    keep_freed_memory()
    import torch

    torch.set_num_threads(1)
    size = SIZES[options.size]
    contestants(size, 64, options.lengths)[name]()()
    step = contestants(size, options.batch, options.lengths)[name]()
    before = resident_peak()
    started = time.process_time()
    step()
    seconds = time.process_time() - started
    print(
        json.dumps({"seconds": seconds, "extra_mb": resident_peak() - before, "before_mb": before})
    )


def run(name: str, options: argparse.Namespace) -> dict[str, float] | None:
    command = [sys.executable, __file__, "--child", name, "--batch", str(options.batch)]
    command += ["--size", options.size, "--lengths", options.lengths]
    found = subprocess.run(command, capture_output=True, text=True)
    if found.returncode:  # most likely not enough memory: that is a result too
        print(f"{name}: ended with {found.returncode}: {found.stderr[-200:]}", file=sys.stderr)
        return None
    result: dict[str, float] = json.loads(found.stdout)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch", type=int, default=8192)
    parser.add_argument("--size", choices=tuple(SIZES), default="small")
    parser.add_argument("--lengths", choices=("short", "long"), default="short")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="contestants, separated by semicolons")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options)
        return 0
    names = list(contestants(SIZES[options.size], options.batch, options.lengths))
    if options.only:
        wanted = options.only.split(";")
        if unknown := [name for name in wanted if name not in names]:
            parser.error(f"--only: found {', '.join(unknown)}; expected {'; '.join(names)}")
        names = [name for name in names if name in wanted]
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in names}
    for _ in range(options.rounds):
        for name in names:
            found = run(name, options)
            if found is not None:
                rounds[name].append(found)
    table = {
        name: {key: median(one[key] for one in found) for key in found[0]}
        for name, found in rounds.items()
        if found
    }
    about = {"batch": options.batch, "size": options.size, "lengths": options.lengths}
    if options.json:
        print(json.dumps({**about, "contestants": table}))
        return 0
    print(f"batch {options.batch}, {options.size} model, {options.lengths} sentences")
    first = next(iter(table.values()), {"seconds": 1.0, "extra_mb": 1.0})
    for name, value in table.items():
        print(
            f"  {name:34} {value['seconds']:8.2f} s ({value['seconds'] / first['seconds']:.2f})"
            f"  {value['extra_mb']:8.0f} MB above {value['before_mb']:.0f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
