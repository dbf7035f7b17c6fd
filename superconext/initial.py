"""Word vectors to start from: out of a file, or trained on the text at hand."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from superconext._version import __version__
from superconext.config import Config
from superconext.data.corpus import read_texts
from superconext.errors import DataError
from superconext.files import file_sha256
from superconext.text.tokenize import Tokenizer
from superconext.text.vocabulary import Vocabulary
from superconext.training.progress import Progress
from superconext.vectors.cache import cached_vectors
from superconext.vectors.readers import read_vectors
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors

#: Words of a vector source kept beside the training vocabulary, most frequent first, so
#: that a saved model knows more than its training text without carrying millions of rows.
RESERVE_WORDS = 50_000

#: Seed of vectors trained on the spot. It is not the run's seed: runs that differ only in
#: their seed then share one cached table.
VECTOR_SEED = 0


@dataclass
class InitialVectors:
    """table: float32 `[V, e]` for the training vocabulary; reserve: all other words."""

    table: np.ndarray
    reserve: WordVectors
    facts: dict[str, Any]


def initial_vectors(
    config: Config,
    vocabulary: Vocabulary,
    tokens: Sequence[Sequence[str]],
    tokenizer: Tokenizer,
    progress: Progress,
) -> InitialVectors:
    """Vectors for the vocabulary and for words beyond it.

    Vocabulary words the source lacks start as Gaussian noise with the source's standard
    deviation; the unknown word starts as the mean of the known ones.
    """
    words = list(vocabulary.words)
    if config.vectors:
        source = read_vectors(config.vectors, keep=set(words), limit=RESERVE_WORDS)
        for note in source.notes:
            progress.say(f"note: {note}")
        if config.unlabelled:
            progress.say(
                f"note: --vectors is given, so {config.unlabelled} is not used to train vectors"
            )
        origin = "file"
    else:
        source = _trained(config, tokens, tokenizer, progress)
        origin = "training text"
        if config.unlabelled:
            origin += f" and {Path(config.unlabelled).name}"
    rows, found = source.lookup(words)
    known = rows[found]
    spread = float(known.std()) if len(known) else 0.1
    noise = np.random.default_rng([config.seed, 4]).standard_normal(rows.shape)
    table = np.where(found[:, None], rows, noise * spread).astype(np.float32)
    table[0] = 0.0
    if not found[1]:
        table[1] = known.mean(axis=0) if len(known) else 0.0
    count = max(len(words) - 2, 1)
    facts = {
        "vectors": {
            "name": source.name,
            "sha256": source.sha256,
            "dimension": source.dimension,
            "trained_on": origin,
            "coverage": round(float(found[2:].sum()) / count, 4),
        }
    }
    return InitialVectors(table, _reserve(source, vocabulary), facts)


def _trained(
    config: Config, tokens: Sequence[Sequence[str]], tokenizer: Tokenizer, progress: Progress
) -> WordVectors:
    text = _Text(tokens, config.unlabelled, tokenizer, progress)
    with progress.bar("training word vectors") as advance:
        return cached_vectors(
            text,
            identity=text.identity(),
            dimension=config.vector_dimension,
            min_n=2,
            max_n=5,
            seed=VECTOR_SEED,
            progress=advance,
        )


class _Text:
    """Training tokens and unlabelled text, the latter read only when somebody looks."""

    def __init__(
        self,
        tokens: Sequence[Sequence[str]],
        unlabelled: str | None,
        tokenizer: Tokenizer,
        progress: Progress,
    ) -> None:
        self.tokens, self.unlabelled = tokens, unlabelled
        self.tokenizer, self.progress = tokenizer, progress
        self._more: list[list[str]] | None = None

    def __iter__(self) -> Iterator[Sequence[str]]:
        yield from self.tokens
        if self.unlabelled:
            if self._more is None:
                self._more = self._read(self.unlabelled)
            yield from self._more

    def identity(self) -> str:
        """A hash of everything the tokens follow from."""
        digest = hashlib.sha256(json.dumps(self.tokens).encode())
        if self.unlabelled:
            path = Path(self.unlabelled)
            if not path.is_file():
                raise DataError(f"{path}: no such file; expected unlabelled text: check the path")
            facts = [file_sha256(path), self.tokenizer.to_dict(), __version__]
            digest.update(json.dumps(facts, sort_keys=True).encode())
        return digest.hexdigest()

    def _read(self, path: str) -> list[list[str]]:
        texts = read_texts(path).texts
        if not texts:
            raise DataError(f"{path}: no text found; expected one sentence a line")
        result = []
        with self.progress.bar("reading unlabelled text") as advance:
            for number, text in enumerate(texts):
                result.append(self.tokenizer(text))
                if number % 5000 == 0:
                    advance(number / len(texts))
        return result


def _reserve(source: WordVectors, vocabulary: Vocabulary) -> WordVectors:
    others = [word for word in source.words if word not in vocabulary]
    reserve = source.restrict(others[:RESERVE_WORDS])
    # Half precision, as it will be saved: a loaded model then gives the very same figures.
    subwords = reserve.subwords
    if subwords is not None:
        buckets = np.asarray(subwords.buckets, dtype=np.float16)
        subwords = SubwordTable(buckets, subwords.min_n, subwords.max_n)
    matrix = np.asarray(reserve.matrix, dtype=np.float16)
    return WordVectors(reserve.words, matrix, subwords, name=reserve.name, sha256=reserve.sha256)
