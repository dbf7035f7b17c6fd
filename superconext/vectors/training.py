"""How are word vectors trained on the spot, from the tokens at hand?

Skip-gram with negative sampling, over whole words (Mikolov et al., 2013) or with character
n-grams (Bojanowski et al., 2017), which serves varieties where each writer spells anew. gensim
does the work; what comes back is plain arrays and no longer needs it.
"""

from __future__ import annotations

import gzip
import logging
import math
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from superconext.core.errors import ConfigError, VectorsError
from superconext.vectors.epochs import Epochs
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors

METHODS = ("fasttext", "word2vec")
SMALL_CORPUS = 5_000  # tokens; below this no word is left out for being rare
_LONGEST = 10_000  # gensim drops what stands beyond this many tokens in one list


class TokenLines:
    """Tokens of text files, one list for each line, read anew on each pass.

    Args:
        paths: UTF-8 files, `.gz` allowed.
        tokenize: line to tokens; on white space by default.
    """

    def __init__(
        self,
        paths: Sequence[str | Path],
        tokenize: Callable[[str], Sequence[str]] | None = None,
    ) -> None:
        self.paths = [Path(path) for path in paths]
        self.tokenize = tokenize or str.split

    def __iter__(self) -> Iterator[Sequence[str]]:
        for path in self.paths:
            try:
                opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
                with opener(path, "rb") as stream:
                    for line in stream:
                        yield self.tokenize(line.decode("utf-8", "replace").rstrip("\r\n"))
            except (OSError, EOFError, zlib.error) as error:
                raise VectorsError(
                    f"{path}: cannot be read ({error}); expected a text file, one sentence a "
                    "line; check the path"
                ) from error


class _Lists:
    """Token lists as gensim wants them: several passes, none too long, errors kept.

    gensim reads them in a thread of its own and waits forever when that thread dies, so an
    error ends the pass and is raised by `check` after it.
    """

    def __init__(self, token_lists: Iterable[Sequence[str]]) -> None:
        again = iter(token_lists) is not token_lists
        self._lists = token_lists if again else list(token_lists)
        self._error: Exception | None = None

    def pieces(self) -> Iterator[list[str]]:
        for number, tokens in enumerate(self._lists, start=1):
            if isinstance(tokens, str):
                raise VectorsError(
                    f"sentence {number} is the string {tokens[:30]!r}; expected a list of tokens; "
                    "tokenise the sentences first"
                )
            listed = list(tokens)
            for start in range(0, len(listed), _LONGEST):
                yield listed[start : start + _LONGEST]

    def __iter__(self) -> Iterator[list[str]]:
        try:
            yield from self.pieces()
        except Exception as error:
            self._error = error

    def check(self) -> None:
        if self._error is not None:
            raise self._error


def train_vectors(
    token_lists: Iterable[Sequence[str]],
    *,
    method: str = "fasttext",
    dimension: int = 100,
    epochs: int | None = None,
    window: int = 5,
    min_count: int = 2,
    min_n: int = 3,
    max_n: int = 6,
    buckets: int = 100_000,
    negative: int = 5,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[float], None] | None = None,
    state: Path | None = None,
) -> WordVectors:
    """Train skip-gram vectors.

    Args:
        token_lists: the tokens of each sentence. They are read `epochs + 1` times: an object
            whose `__iter__` starts anew may be larger than memory, a generator is held whole.
        method: `fasttext` (with character n-grams) or `word2vec`.
        dimension: numbers in a vector.
        epochs: passes over the text; by default as many as `passes` says.
        window: words on each side that count as context.
        min_count: rarer words are left out; 1 when there are fewer than 5,000 tokens.
        min_n, max_n, buckets: lengths of n-grams in characters, and rows of their table.
        negative: words drawn as counter-examples for each context word.
        seed: with `workers=1` the same seed gives the same vectors, bit for bit.
        workers: threads; more than one is faster and no longer reproducible.
        progress: called with the fraction done, from 0.0 to 1.0.
        state: file to keep what is reached in, and to go on from; of this text and these
            settings alone. It is left for the caller to remove.

    Returns:
        The table `[V, dimension]` float32, most frequent word first; with `fasttext` each row is
        the mean of the word's own and its n-grams' vectors, and `subwords` serves other words;
        there, rows that no n-gram of a trained word fell on are zeros.

    Raises:
        ConfigError: an impossible setting.
        VectorsError: no token, no word frequent enough, or gensim is not installed.
    """
    _check_settings(
        method,
        dimension=dimension,
        epochs=5 if epochs is None else epochs,
        window=window,
        min_count=min_count,
        negative=negative,
        workers=workers,
    )
    subword = method == "fasttext"
    if subword and not (1 <= min_n <= max_n and buckets >= 1):
        raise ConfigError(
            f"min_n={min_n}, max_n={max_n}, buckets={buckets}; expected 1 <= min_n <= max_n and "
            "1 or more buckets; choose such numbers"
        )
    model_class = _gensim_model(method)
    lists = _Lists(token_lists)
    counts: Counter[str] = Counter()
    sentences = 0
    for piece in lists.pieces():
        counts.update(piece)
        sentences += 1
    strange = next((token for token in counts if not isinstance(token, str)), None)
    if strange is not None:
        raise VectorsError(f"a token is {strange!r}; expected strings; tokenise the text first")
    total = sum(counts.values())
    if epochs is None:
        epochs = passes(total)
    notes = []
    if total < SMALL_CORPUS and min_count > 1:
        notes.append(f"only {total} tokens: every word is kept, min_count {min_count} set aside")
        min_count = 1
    if not counts or max(counts.values()) < min_count:
        raise VectorsError(
            f"{total} tokens and no word that stands {min_count} times or more; expected text to "
            "train on; check the input or lower min_count"
        )
    settings: dict[str, Any] = {
        "vector_size": dimension,
        "window": window,
        "min_count": min_count,
        "negative": negative,
        "seed": seed,
        "workers": workers,
        "epochs": epochs,
        "sg": 1,
    }
    if subword:
        settings.update(min_n=min_n, max_n=max_n, bucket=buckets)
    with _quiet_gensim():
        model = model_class(**settings)
        model.build_vocab_from_freq(dict(counts), corpus_count=sentences)
        left = Epochs(epochs, progress, state, lists.check)
        left.restore(model)
        left.train(model, lists, sentences, total)
    keyed = model.wv
    matrix = np.array(keyed.vectors, dtype=np.float32)
    if not np.isfinite(matrix).all():
        raise VectorsError(
            "training ended in numbers that are not finite; expected a text with varied "
            "words; use fewer epochs or more text"
        )
    table = None
    if subword:
        grams = np.array(keyed.vectors_ngrams, dtype=np.float32)
        grams[_untouched(keyed.buckets_word, len(grams))] = 0.0
        table = SubwordTable(grams, min_n, max_n)
    name = f"{method} {dimension}d, {total} tokens, seed {seed}"
    vectors = WordVectors(list(keyed.index_to_key), matrix, table, name=name, notes=notes)
    vectors.sha256 = vectors.content_sha256()
    return vectors


def passes(tokens: int) -> int:
    """Epochs over a text of so many tokens: about 10 million read in all, 5 to 100 epochs.

    At gensim's five, the vectors of a small text hardly leave their random start.
    """
    return min(100, max(5, math.ceil(10_000_000 / max(tokens, 1))))


def _untouched(buckets_of_words: Iterable[Any], count: int) -> np.ndarray:
    """Which n-gram rows no word trained, bool `[count]`: they still hold gensim's random start.

    It says nothing, and without it a saved model need not carry the rows: of a few thousand
    sentences' words, five in six.
    """
    untouched = np.ones(count, dtype=bool)
    for buckets in buckets_of_words:
        untouched[buckets] = False
    return untouched


def _check_settings(method: str, **positive: int) -> None:
    if method not in METHODS:
        raise ConfigError(
            f"method is {method!r}; expected {' or '.join(METHODS)}; choose one of them"
        )
    for name, value in positive.items():
        if value < 1:
            raise ConfigError(f"{name} is {value}; expected 1 or more; choose such a number")


def _gensim_model(method: str) -> Any:
    try:
        from gensim.models import FastText, Word2Vec
    except ImportError as error:
        raise VectorsError(
            f"training word vectors needs gensim, which cannot be imported ({error}); expected "
            "gensim 4.3.3 or newer; pip install 'gensim>=4.3.3'"
        ) from error
    return FastText if method == "fasttext" else Word2Vec


@contextmanager
def _quiet_gensim() -> Iterator[None]:
    # On a small corpus gensim warns at each epoch that its batches are large; harmless here.
    logger = logging.getLogger("gensim")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
