"""Tokens a second of word vector training, beside gensim as usually called and fastText's own.

    python scripts/bench_word_vectors.py TEXT [--lines 50000] [--epochs 5] [--rounds 3]

All train skip-gram vectors (100 dimensions, window 5, 5 negatives, words seen twice or more,
sampling 0.001) of the first lines of TEXT, tokenised beforehand, and take turns. A rate, per
processor second and per second of the clock, counts every token once for each pass; the
vocabulary's making is in it.

The traffic is what the floats come to that one token's updates read and write, if none of it came
from cache: of each pair of words within the window the rows of the word and its n-grams once, and
again twice for their update, and six rows of output read and written. Where it comes to more than
the measured rate of copying 256 MB, memory is not what limits. The package's own training, in
blocks of words, needs less, and has no share. All figures go to
scripts/results/bench_word_vectors.csv and are printed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
from doc_tables import write_rows

from superconext.report.table import Grid

NAME = "word_vectors"
STORED = Path(__file__).parents[1] / "scripts" / "results" / f"bench_{NAME}.csv"
FIELDS = ("method", "trainer", "threads", "per_processor_second", "per_second", "copied_share")
DIMENSION, WINDOW, NEGATIVE, LEAST, SAMPLE = 100, 5, 5, 2, 1e-3
GRAMS = {"min_n": 3, "max_n": 6}
Lists = list[list[str]]


def trainers(
    lists: Lists, method: str, epochs: int, folder: str
) -> dict[tuple[str, int], Callable]:
    """Functions that train, by who does it and with how many threads."""
    import fasttext
    import torch  # noqa: F401  # so that no rate has its import in it
    from gensim.models import FastText, Word2Vec

    from superconext.vectors.training import train_vectors

    grams = method == "fasttext"
    text = Path(folder) / "text.txt"
    text.write_text("".join(" ".join(tokens) + "\n" for tokens in lists), encoding="utf-8")
    known = {"dimension": DIMENSION, "window": WINDOW, "negative": NEGATIVE, "min_count": LEAST}

    def ours(workers: int) -> object:
        more = {**GRAMS, "buckets": 100_000} if grams else {}
        return train_vectors(lists, method=method, epochs=epochs, workers=workers, **known, **more)

    def gensim(workers: int) -> object:
        kind, more = (FastText, {**GRAMS, "bucket": 100_000}) if grams else (Word2Vec, {})
        return kind(
            lists, sg=1, vector_size=DIMENSION, window=WINDOW, negative=NEGATIVE, epochs=epochs,
            min_count=LEAST, sample=SAMPLE, workers=workers, **more,
        )  # fmt: skip

    def own(thread: int) -> object:
        more = {"minn": 3, "maxn": 6, "bucket": 100_000} if grams else {"minn": 0, "maxn": 0}
        return fasttext.train_unsupervised(
            str(text), model="skipgram", dim=DIMENSION, ws=WINDOW, neg=NEGATIVE, epoch=epochs,
            minCount=LEAST, t=SAMPLE, thread=thread, verbose=0, **more,
        )  # fmt: skip

    return {
        (name, threads): lambda train=train, threads=threads: train(threads)
        for name, train in (("superconext", ours), ("gensim 4.4", gensim), ("fastText", own))
        for threads in (1, 2)
    }


def bytes_per_token(lists: Lists, method: str) -> float:
    """Of the floats that the updates for one token of the text read and write, on average."""
    from superconext.vectors.subwords import SubwordTable

    counts = Counter(token for tokens in lists for token in tokens)
    counts = Counter({word: n for word, n in counts.items() if n >= LEAST})
    table = SubwordTable(np.zeros((100_000, 1), np.float32), **GRAMS)
    floor = SAMPLE * counts.total()
    chance = {w: min(1.0, (floor / n) ** 0.5 + floor / n) for w, n in counts.items()}
    rows = dict.fromkeys(counts, 1)
    if method == "fasttext":
        rows = {word: 1 + len(table.hashes(word)) for word in counts}
    draw, pairs = np.random.default_rng(0), Counter()
    for tokens in lists:
        kept = [t for t in tokens if t in counts and draw.random() < chance[t]]
        for place, reach in enumerate(draw.integers(1, WINDOW + 1, len(kept)).tolist()):
            near = range(max(0, place - reach), min(len(kept), place + reach + 1))
            pairs.update(kept[other] for other in near if other != place)
    floats = sum(n * (3 * rows[word] + 2 * (1 + NEGATIVE)) for word, n in pairs.items())
    return 4 * DIMENSION * floats / sum(map(len, lists))


def copy_rate() -> float:
    """Bytes a second that copying reads and writes together."""
    source = np.ones(1 << 26, np.float32)
    target, taken = np.empty_like(source), []
    for _ in range(5):
        started = time.process_time()
        np.copyto(target, source)
        taken.append(time.process_time() - started)
    return 2 * source.nbytes / statistics.median(taken)


def measure(options: argparse.Namespace) -> list[dict[str, str]]:
    from superconext.text.normalize import Normalizer
    from superconext.text.tokenize import Tokenizer

    with open(options.text, encoding="utf-8") as stream:
        lists = Tokenizer(Normalizer("arabic")).many(list(islice(stream, options.lines)))
    tokens, rows = options.epochs * sum(map(len, lists)), []
    print(f"{tokens} tokens in {options.epochs} passes", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for method in ("fasttext", "word2vec"):
            runs = trainers(lists, method, options.epochs, folder)
            taken: dict[tuple[str, int], list[tuple[float, float]]] = {key: [] for key in runs}
            copied, traffic = [], bytes_per_token(lists, method)
            for _ in range(options.rounds):
                copied.append(copy_rate())
                for key, run in runs.items():
                    before = time.process_time(), time.perf_counter()
                    run()
                    after = time.process_time(), time.perf_counter()
                    taken[key].append((after[0] - before[0], after[1] - before[1]))
            for (name, threads), seconds in taken.items():
                rates = tokens / np.median(seconds, axis=0)
                share = f"{rates[0] * traffic / statistics.median(copied):.2f}"
                if name == "superconext":
                    share = ""
                values = (method, name, str(threads), *(f"{r:.0f}" for r in rates), share)
                rows.append(dict(zip(FIELDS, values, strict=True)))
                print(*values, sep="\t", flush=True)
    return rows


def grid(rows: list[dict[str, str]]) -> Grid:
    """Of each trainer the thousands of tokens a second of the clock with one thread and with two,
    and the largest share of the rate of copying."""
    headings = ["trainer", "1 thread", "2 threads", "traffic over copying"]
    lines: dict[str, list[str]] = {}
    for row in rows:
        name = f"{row['trainer']}, {row['method']}"
        rate = f"{int(row['per_second']) / 1000:.0f}"
        line = lines.setdefault(name, [name, "", "", ""])
        line[int(row["threads"])] = rate
        line[3] = max(line[3], row["copied_share"], key=lambda share: float(share or 0))
    return Grid(headings, list(lines.values()), right=frozenset({1, 2, 3}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text")
    parser.add_argument("--lines", type=int, default=50_000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = measure(options)
    write_rows(STORED, rows)
    print(grid(rows).markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
