"""Which word vectors suit a labelled file? An answer in seconds, without training an encoder.

    python scripts/vectors_probe.py FILE... --vectors A [--vectors B ...]

FILEs are labelled and taken together: train and dev, never test. A text is the mean of its words'
vectors, and a logistic regression on it is judged by weighted F1 on five stratified splits 80/20,
exact copies removed. C is the best of three, the same number of chances for all. What wins here
is worth trying in an encoder; how far ahead it is there is another matter.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.preprocessing import StandardScaler

from superconext.data.duplicates import deduplicate
from superconext.data.reading import read_labelled
from superconext.report.table import render
from superconext.text.normalize import Normalizer, choose_profile
from superconext.text.tokenize import Tokenizer
from superconext.vectors.readers import read_vectors
from superconext.vectors.text_corpus import recorded_tokenizer

GRID = (0.01, 0.1, 1.0)


def features(texts: list[str], source: str) -> np.ndarray:
    """The mean vector of each text's words, `[N, e]`; zeros for a text without a known word."""
    tokenizer = recorded_tokenizer(source) or Tokenizer(Normalizer(choose_profile(texts)))
    tokens = [tokenizer(text) for text in texts]
    words = sorted({word for text in tokens for word in text})
    vectors, known = read_vectors(source, keep=set(words)).lookup(words)
    place = {word: row for row, word in enumerate(words) if known[row]}
    found = [[place[word] for word in text if word in place] for text in tokens]
    empty = np.zeros(vectors.shape[1], dtype=np.float32)
    return np.stack([vectors[rows].mean(axis=0) if rows else empty for rows in found])


def scores(table: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Weighted F1 of each C on each split, `[3, 5]`."""
    found = []
    splitter = StratifiedShuffleSplit(5, test_size=0.2, random_state=0)
    for train, test in splitter.split(table, labels):
        scale = StandardScaler().fit(table[train])
        inside, outside = scale.transform(table[train]), scale.transform(table[test])
        models = [LogisticRegression(C=c, max_iter=500).fit(inside, labels[train]) for c in GRID]
        found.append(
            [f1_score(labels[test], m.predict(outside), average="weighted") for m in models]
        )
    return np.array(found).T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--vectors", action="append", required=True)
    options = parser.parse_args()
    corpora = [read_labelled(file) for file in options.files]
    texts = [text for corpus in corpora for text in corpus.texts]
    labels = np.array([label for corpus in corpora for label in corpus.labels])
    kept = deduplicate(texts)
    texts, labels = [texts[row] for row in kept], labels[kept]
    rows = []
    for source in options.vectors:
        found = 100 * scores(features(texts, source), labels)
        best = found[found.mean(axis=1).argmax()]
        cell = f"{best.mean():.1f} ± {best.std(ddof=1):.1f}"
        rows.append({"vectors": source, "weighted F1": cell})
    print(render(rows, list(rows[0])))


if __name__ == "__main__":
    main()
