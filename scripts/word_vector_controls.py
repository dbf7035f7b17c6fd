"""Whether word vectors serve as well as gensim's, by a control that uses nothing else.

    python scripts/word_vector_controls.py TEXT LABELLED... [--method M] [--seeds 3] [--draws 20]

The package and gensim learn vectors from TEXT with the settings of `vectors train`. A row of
LABELLED is the mean of the vectors of its words (by n-grams where a word is new); logistic
regression is fitted to some rows of each class, drawn anew each time, and scored by macro recall on
1,000 other rows. The interval is over the draws, which both share, of the mean over the seeds of
the vectors. Everything goes to scripts/results/word_vector_controls.csv, and a table of it is
printed.
"""

from __future__ import annotations

import argparse
import sys
from itertools import product
from pathlib import Path

import numpy as np
from doc_tables import write_rows

from superconext.report.table import Grid
from superconext.vectors.table import WordVectors

STORED = Path(__file__).parents[1] / "scripts" / "results" / "word_vector_controls.csv"
ROWS = (8, 16, 32, 64)


def means(vectors: WordVectors, lists: list[list[str]]) -> np.ndarray:
    """Mean vectors `[n, d]` of the token lists."""
    words = sorted({token for tokens in lists for token in tokens})
    rows, found = vectors.lookup(words)
    number = {word: i for i, word in enumerate(words) if found[i]}
    made = np.zeros((len(lists), rows.shape[1]), np.float32)
    for row, tokens in zip(made, lists, strict=True):
        if known := [number[token] for token in tokens if token in number]:
            row[:] = rows[known].mean(axis=0)
    return made


def trained_by_gensim(
    lists: list[list[str]], method: str, min_n: int, max_n: int, seed: int
) -> WordVectors:
    """gensim's own training, with the settings of `train_vectors`."""
    from gensim.models import FastText, Word2Vec

    from superconext.vectors.subwords import SubwordTable
    from superconext.vectors.training import passes

    known = {"vector_size": 100, "window": 5, "negative": 5, "min_count": 2, "sg": 1, "workers": 1}
    known |= {"epochs": passes(sum(map(len, lists))), "seed": seed}
    if method == "word2vec":
        keyed = Word2Vec(lists, **known).wv
        return WordVectors(list(keyed.index_to_key), keyed.vectors)
    keyed = FastText(lists, min_n=min_n, max_n=max_n, bucket=100_000, **known).wv
    table = SubwordTable(keyed.vectors_ngrams, min_n, max_n)
    return WordVectors(list(keyed.index_to_key), keyed.vectors, table)


def score(features: np.ndarray, labels: np.ndarray, rows: int, seed: int) -> float:
    """Macro recall after so many rows of each class."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import recall_score

    draw = np.random.default_rng((rows, seed))
    classes = [np.flatnonzero(labels == name) for name in np.unique(labels)]
    fitted = np.concatenate([draw.choice(members, rows, replace=False) for members in classes])
    rest = draw.permutation(np.setdiff1d(np.arange(len(labels)), fitted))[:1000]
    center, scale = features[fitted].mean(axis=0), features[fitted].std() + 1e-12
    model = LogisticRegression(max_iter=300)
    model.fit((features[fitted] - center) / scale, labels[fitted])
    answers = model.predict((features[rest] - center) / scale)
    return float(recall_score(labels[rest], answers, average="macro"))


def measure(options: argparse.Namespace) -> list[dict[str, str]]:
    from superconext.data.reading import read_labelled
    from superconext.text.normalize import Normalizer
    from superconext.text.tokenize import Tokenizer
    from superconext.vectors.training import train_vectors

    trainers = {"gensim": trained_by_gensim, "blocks": train_vectors}
    tokenizer, sets = Tokenizer(Normalizer("arabic")), {}
    lists = tokenizer.many(options.text.read_text(encoding="utf-8").split("\n"))
    for path in options.labelled:
        data = read_labelled(path)
        sets[path.parent.name] = np.array(data.labels), tokenizer.many(data.texts)
    kept, method = [], options.method
    found: dict[tuple[str, int, str], list[list[float]]] = {}
    for seed, (trainer, train) in product(range(options.seeds), trainers.items()):
        vectors = train(lists, method=method, min_n=2, max_n=5, seed=seed)
        for name, (labels, texts) in sets.items():
            features = means(vectors, texts)
            for rows in ROWS:
                scores = [score(features, labels, rows, d) for d in range(options.draws)]
                found.setdefault((name, rows, trainer), []).append(scores)
        print(method, trainer, seed, flush=True)
    for name, rows in product(sets, ROWS):
        theirs, ours = (100 * np.mean(found[name, rows, by], axis=0) for by in trainers)
        more = ours - theirs
        reach = 1.96 * more.std(ddof=1) / len(more) ** 0.5
        values = theirs.mean(), ours.mean(), more.mean(), more.mean() - reach
        row = dict(zip(("gensim", "blocks", "difference", "low"), values, strict=True))
        row["high"] = more.mean() + reach
        shown = {key: f"{value:.2f}" for key, value in row.items()}
        kept.append({"set": name, "method": method, "rows": str(rows), **shown})
        print(*kept[-1].values(), sep="\t", flush=True)
    return kept


def summary(rows: list[dict[str, str]]) -> Grid:
    """Of each set gensim's score and how much more blocks have, by rows of a class."""
    lines: dict[str, list[str]] = {}
    for row in rows:
        cell = f"{row['gensim']}, {row['difference']} ({row['low']} to {row['high']})"
        lines.setdefault(row["set"], [row["set"]]).append(cell)
    return Grid(["rows of", *map(str, ROWS)], list(lines.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("labelled", nargs="+", type=Path)
    parser.add_argument("--method", default="fasttext")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--draws", type=int, default=20)
    rows = measure(parser.parse_args())
    write_rows(STORED, rows)
    print(summary(rows).markdown())
    return 0


if __name__ == "__main__":
    sys.exit(main())
