"""Does a training file's size cost memory, or time in a step? Reviews by the ten thousand.

    python scripts/bench_scale.py [FILE] [--rows 30000,300000] [--full] [--work DIR] [--json]

Reviews are made of sentences of FILE (labelled; default data/sample/train.tsv), drawn again and
again from those of one label until about 230 words stand there, as in IMDB. `--full` adds
3,000,000 of them, 4 GB, and as much again for their tokens, all under `--work`. For each number:

    tokenise   MB of text a second, with all processors, of which the limit is what one processor
               tokenises, alone and from memory, times their number; and peak memory
    again      seconds until a second run has found the store, file hash included
    sampler    milliseconds to set up class-balanced batches
    step       milliseconds of a training step (1 x 128 LSTM, batch 200), median and quartiles
    train      peak memory of `superconext train`, 20 steps, with probe, dev rows and run folder

Peak memory is the largest resident set of any process of a stage, each stage in its own; while
tokenising, the processes are as many as there are processors, beside the one that is told of.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from bench_output import give_out, summary

WORDS = 230
STAGES = ("tokenise", "again", "step")


def generate(source: Path, path: Path, rows: int) -> int:
    """Write a labelled file of so many reviews; gives back its bytes."""
    from superconext.data.reading import read_labelled

    corpus = read_labelled(source)
    names = sorted(corpus.class_counts())
    pools = {
        name: [t for t, label in zip(corpus.texts, corpus.labels, strict=True) if label == name]
        for name in names
    }
    mean = float(np.mean([len(text.split()) for text in corpus.texts]))
    generator = np.random.default_rng(0)
    with path.open("w", encoding="utf-8") as stream:
        stream.write("label\ttext\n")
        for row in range(rows):
            name = names[row % len(names)]
            count = max(1, round(generator.gamma(2.5) / 2.5 * WORDS / mean))
            chosen = generator.integers(0, len(pools[name]), count)
            text = " ".join(pools[name][i] for i in chosen)
            stream.write(f"{name}\t{' '.join(text.split())}\n")
    return path.stat().st_size


def peak(who: int = resource.RUSAGE_SELF) -> float:
    """Largest resident set so far, in MB."""
    scale = 1e6 if sys.platform == "darwin" else 1e3
    return resource.getrusage(who).ru_maxrss / scale


def tokenised(path: Path, home: Path) -> tuple[object, float]:
    """The rows out of the store, and the seconds that took, the file's hash included."""
    from superconext.core.files import file_sha256
    from superconext.data.file_rows import tokenised_rows
    from superconext.text.normalize import Normalizer
    from superconext.text.tokenize import Tokenizer

    started = time.perf_counter()
    tokenizer = Tokenizer(Normalizer("arabic"))
    rows = tokenised_rows(path, file_sha256(path), tokenizer, (None, None), home)
    return rows, time.perf_counter() - started


def stage_tokenise(path: Path, home: Path) -> dict:
    from superconext.core.process import processors
    from superconext.data.file_rows import tokenise_block
    from superconext.data.reading import RowStream
    from superconext.text.normalize import Normalizer
    from superconext.text.tokenize import Tokenizer

    first, *blocks = islice(RowStream(path).large_blocks(), 9)
    tokenizer = Tokenizer(Normalizer("arabic"))
    size = sum(len(text.encode()) for block in blocks for text in block.texts) / 1e6
    tokenise_block(tokenizer, tokenizer, first.texts)  # whose words it then remembers
    started = time.perf_counter()
    for block in blocks:
        tokenise_block(tokenizer, tokenizer, block.texts)
    limit = processors() * size / (time.perf_counter() - started)
    rows, seconds = tokenised(path, home)
    speed = path.stat().st_size / 1e6 / seconds
    return {
        "rows": len(rows),  # type: ignore[arg-type]
        "tokenise_mb_per_second": speed,
        "tokenise_limit": limit,
        "tokenise_share": speed / limit,
        "tokenise_peak_mb": max(peak(), peak(resource.RUSAGE_CHILDREN)),
    }


def stage_again(path: Path, home: Path) -> dict:
    return {"again_seconds": tokenised(path, home)[1]}


def stage_step(path: Path, home: Path) -> dict:
    from superconext.core.process import keep_freed_memory

    keep_freed_memory()
    import torch

    from superconext.config.parameters import resolve
    from superconext.data.file_rows import TrainingRows
    from superconext.data.sampler import make_batches
    from superconext.encoders.bilstm import BiLSTMEncoder
    from superconext.encoders.layers import projection_head
    from superconext.encoders.words import WordEmbedding
    from superconext.objectives.base import Shape
    from superconext.objectives.catalogue import objective_class
    from superconext.training.callbacks import Callback
    from superconext.training.trainer import Trainer

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows, _ = tokenised(path, home)
    training = TrainingRows(rows, np.arange(len(rows)), np.arange(2))  # type: ignore[arg-type]
    vocabulary = training.vocabulary(1)
    started = time.perf_counter()
    store = training.store(vocabulary, 1, 400)
    cut = time.perf_counter() - started
    labels = training.labels
    started = time.perf_counter()
    batches = make_batches("balanced", labels, 200, STEPS, 0)
    sampler = time.perf_counter() - started
    config = resolve({"batch_size": 200, "steps_per_epoch": STEPS, "epochs": 1})
    embedding = WordEmbedding(torch.randn(len(vocabulary), 100) * 0.1, False, 0, None)
    encoder = BiLSTMEncoder(embedding, 128, 1, config.dropout, config.word_dropout, config.pooling)
    times: list[float] = []
    tokens: list[int] = []

    class Clock(Callback):
        def on_epoch_begin(self, trainer: Trainer, epoch: int) -> None:
            self.last = time.process_time()

        def on_step_end(self, trainer: Trainer, step: int, loss: float) -> None:
            now = time.process_time()
            times.append(now - self.last)
            self.last = now

    class Counted:
        steps = STEPS

        def epoch(self, number: int) -> Iterator[np.ndarray]:
            for some in batches.epoch(number):
                tokens.append(int(store.lengths_of(some).sum()))
                yield some

    shape = Shape(len(rows.classes), 256, 256)  # type: ignore[attr-defined]
    Trainer(
        encoder,
        projection_head(config.projection, 256),
        objective_class("superloss").build(config, shape),
        Counted(),
        store,
        labels,
        config,
        [Clock()],
    ).fit()
    each = np.array(times[WARM:]) / np.array(tokens[WARM:])
    return {
        "cut_seconds": cut,
        "sampler_ms": 1e3 * sampler,
        "step_ms": summary([1e3 * seconds for seconds in times[WARM:]]),
        "microseconds_per_token": 1e6 * float(np.median(each)),
        "step_peak_mb": peak(),
    }


#: Steps of training that are timed, and those before them that are not.
STEPS, WARM = 40, 8


def train(path: Path, work: Path) -> dict:
    """Peak memory of the whole command, in MB, and the seconds it took."""
    words = ["--store", str(work), "--epochs", "1", "--steps-per-epoch", "20", "--quiet"]
    words += ["--vector-method", "random", "--no-subwords", "--no-baselines", "--normalize"]
    words += ["arabic", "--threads", "1", "--force", "--out", str(work / "run")]
    code = (
        "import resource, subprocess, sys; done = subprocess.run(sys.argv[1:], stdout=2); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, done.returncode)"
    )
    command = [sys.executable, "-m", "superconext", "train", str(path), *words]
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *command], stdout=subprocess.PIPE, text=True, check=True
    )
    size, status = map(int, done.stdout.split())
    if status:
        raise SystemExit(f"error: superconext train ended with {status}; see its message above")
    return {
        "train_peak_mb": size / (1e6 if sys.platform == "darwin" else 1e3),
        "train_seconds": time.perf_counter() - started,
    }


def measure(source: Path, rows: int, work: Path) -> dict:
    path = work / f"reviews-{rows}.tsv"
    result: dict = {"rows": rows, "file_mb": generate(source, path, rows) / 1e6}
    for stage in STAGES:  # in processes of their own, for peak memory has no way down
        command = [sys.executable, __file__, "--stage", stage, "--work", str(work), str(path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        result |= json.loads(done.stdout)
    result |= train(path, work)
    path.unlink()
    return result


def show(result: dict) -> None:
    step = result["step_ms"]
    print(
        f"{result['rows']:9} rows, {result['file_mb']:.0f} MB: "
        f"tokenise {result['tokenise_mb_per_second']:.1f} MB/s, {result['tokenise_share']:.2f} of "
        f"the limit, peak {result['tokenise_peak_mb']:.0f} MB; "
        f"again {result['again_seconds']:.1f} s; ids {result['cut_seconds']:.1f} s; "
        f"sampler {result['sampler_ms']:.1f} ms; step {step['median']:.0f} "
        f"[{step['low']:.0f}, {step['high']:.0f}] ms, "
        f"{result['microseconds_per_token']:.2f} us a token, peak {result['step_peak_mb']:.0f} MB; "
        f"train: peak {result['train_peak_mb']:.0f} MB, {result['train_seconds']:.0f} s",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", nargs="?", type=Path, default=Path("data/sample/train.tsv"))
    parser.add_argument("--rows", default="30000,300000")
    parser.add_argument("--full", action="store_true", help="3,000,000 rows too")
    parser.add_argument("--work", type=Path, help="folder for files and stores; else a passing one")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        stages = {"tokenise": stage_tokenise, "again": stage_again, "step": stage_step}
        print(json.dumps(stages[options.stage](options.file, options.work)))
        return 0
    if not options.file.is_file():
        print(f"error: {options.file}: no such file; give a labelled file", file=sys.stderr)
        return 1
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    counts = [int(rows) for rows in options.rows.split(",")] + [3_000_000] * options.full
    with tempfile.TemporaryDirectory(dir=options.work) as work:
        results = (measure(options.file, rows, Path(work)) for rows in counts)
        give_out(results, show, options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
