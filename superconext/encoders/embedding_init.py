"""Embedding initialisation: word vectors from a file, or trained on the text at hand."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import numpy as np

from superconext.config.parameters import BY_NAME, Config, files_of, names_of
from superconext.core.errors import ConfigError, DataError, VectorsError
from superconext.core.progress import WARNING, Progress
from superconext.core.random_streams import WORD_NOISE, random_stream
from superconext.data.token_store import TokenRows, text_of
from superconext.text.tokenize import Tokenizer, Vocabulary
from superconext.vectors.readers import read_vectors
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors
from superconext.vectors.text_corpus import Lines, Sentences, recorded_tokenizer, text_to_clear
from superconext.vectors.training import cached_vectors

#: Words of a vector source kept beside the training vocabulary, most frequent first, so
#: that a saved model knows more than its training text without carrying millions of rows.
OOV_WORDS = 50_000

#: Root mean square to which vectors of a file are brought where theirs is less.
LEAST_SIZE = 0.5

#: Larger numbers than those of word vectors; share of the words below which a file is warned of.
_LARGEST, _FEW = 1e6, 0.2

#: Seconds of training after which it is told how vectors are made once for several runs.
_SLOW = 20.0

#: Seed of vectors trained by the run. It is not the run's seed: runs that differ only in
#: their seed then share one cached table.
VECTOR_SEED = 0


@dataclass
class InitialVectors:
    """table: float32 `[V, e]` for the training vocabulary; oov_vectors: of all other words.
    emoji_scores: of the source, see `WordVectors`.

    The first two are multiplied by one factor, see `_scale`.
    """

    table: np.ndarray
    oov_vectors: WordVectors
    facts: dict[str, Any]
    emoji_scores: np.ndarray | None


def initial_vectors(
    config: Config,
    vocabulary: Vocabulary,
    tokens: TokenRows,
    tokenizer: Tokenizer,
    progress: Progress,
    held: Sequence[str] = (),
) -> InitialVectors:
    """Vectors for the vocabulary and for words beyond it.

    held: dev and test texts; what says the same in `config.unlabelled` is not learned from.

    Vocabulary words the source lacks start as Gaussian noise with the source's standard
    deviation; the unknown word, where n-grams compose no vector for it, as the mean of the
    known ones. A folder of vectors whose words are spelt otherwise than the run's is told of.
    """
    words = list(vocabulary.words)
    cleared = 0
    brought = config.vectors or config.init
    if config.vectors and config.init:
        raise ConfigError(
            f"vectors = {config.vectors!r} beside init = {config.init!r}, which brings its own; "
            "expected one of the two: leave out vectors"
        )
    if config.unlabelled and (brought or config.vector_method == "random"):
        given = "--vector-method random"
        if brought:
            given = "--vectors" if config.vectors else "--init"
        more = "; --pretrain trains the encoder further on it" if config.init else ""
        progress.note(
            f"{WARNING}{given} is given, so {names_of(config.unlabelled)} is not used to train "
            f"vectors{more}"
        )
    if brought:
        with progress.bar("reading word vectors"):
            source = read_vectors(brought, keep=set(words), limit=OOV_WORDS)
        difference = spelt_otherwise(brought, tokenizer, source.words)
        unused = unused_dimension(brought, source, config.vector_dimension)
        for note in source.notes:
            progress.note(note)
        for note in filter(None, [difference, unused]):
            progress.note(WARNING + note)
        origin = "file"
    elif config.vector_method == "random":
        nothing = np.empty((0, config.vector_dimension), dtype=np.float32)
        source, origin = WordVectors([], nothing, name="random"), "nothing"
    else:
        source, origin, cleared = _trained(config, tokens, tokenizer, progress, held)
    rows, found = source.lookup(words)
    known = rows[found]
    if brought:
        _check_brought(brought, known, found[2:], progress)
    spread = float(known.std()) if len(known) else 0.1
    noise = random_stream(config.seed, WORD_NOISE).standard_normal(rows.shape)
    table = np.where(found[:, None], rows, noise * spread).astype(np.float32)
    table[0] = 0.0
    if not found[1]:
        table[1] = known.mean(axis=0) if len(known) else 0.0
    scale = _scale(config, known)
    count = max(len(words) - 2, 1)
    facts = {
        "vectors": {
            "name": source.name,
            "sha256": source.sha256,
            "dimension": source.dimension,
            "scale": scale,
            "trained_on": origin,
            # Labelled texts, lines with whose words were left out of the unlabelled text.
            "cleared_of": cleared,
            "coverage": round(float(found[2:].sum()) / count, 4),
            "emoji_scores": 0 if source.emoji_scores is None else len(source.emoji_scores),
        }
    }
    table *= np.float32(scale)
    reserve = _oov_vectors(source, vocabulary, scale)
    return InitialVectors(table, reserve, facts, source.emoji_scores)


def unused_dimension(brought: str, source: WordVectors, asked: int) -> str | None:
    """A note where `vector_dimension` is asked for and word vectors from a file have another."""
    if asked in (source.dimension, BY_NAME["vector_dimension"].default):
        return None
    return (
        f"{brought}: its vectors have {source.dimension} numbers; vector_dimension = {asked} is "
        "for vectors that are trained here, and is not used"
    )


def _check_brought(source: str, known: np.ndarray, found: np.ndarray, progress: Progress) -> None:
    """Raise VectorsError for vectors `[N, d]` from a file that are all alike or no word vectors'
    numbers; warn where few of the words are found `[V]`."""
    largest = float(np.abs(known).max(initial=0))
    if largest > _LARGEST or (len(known) > 1 and not np.ptp(known, axis=0).any()):
        what = f"numbers up to {largest:.1g}" if largest > _LARGEST else "one vector for every word"
        raise VectorsError(
            f"{source}: found {what}, expected word vectors: make or copy the file again"
        )
    if len(found) and found.mean() < _FEW:
        progress.note(
            f"{WARNING}{source}: found vectors for only {found.mean():.1%} of the words, expected "
            "most: check that they are of the texts' language and have its spelling (--normalize)"
        )


def _trained(
    config: Config,
    tokens: TokenRows,
    tokenizer: Tokenizer,
    progress: Progress,
    held: Sequence[str],
) -> tuple[WordVectors, str, int]:
    """Vectors trained by the run, the text they are of, in words, and of how many labelled texts it
    was cleared."""
    lines = Lines(files_of(config.unlabelled))
    left_out, alone = text_to_clear(lines, tokenizer, held, tokens)
    text = Sentences(lines, tokenizer, None, progress, text_of(tokens, alone), left_out)
    began = monotonic()
    with progress.bar("training word vectors") as advance:
        trained = cached_vectors(
            text,
            identity=text.identity(),
            method=config.vector_method,
            dimension=config.vector_dimension,
            min_n=2,
            max_n=5,
            seed=VECTOR_SEED,
            progress=advance,
        )
    if left_out and not text.tokenised:
        progress.say(
            "word vectors: taken from the cache, made without lines that repeat a labelled text"
        )
    elif alone and monotonic() - began > _SLOW:
        files = shlex.join(map(str, files_of(config.unlabelled)))
        progress.say(
            "word vectors: made again where the labelled rows change; to make them once: "
            f"superconext vectors train {files} --leave-out TEST --out V, then train with "
            "--vectors V in place of --unlabelled"
        )
    for note in lines.notes:
        progress.note(note)
    sources = [*([] if alone else ["training text"]), *filter(None, [names_of(config.unlabelled)])]
    return trained, " and ".join(sources), len(left_out)


def spelt_otherwise(source: str, tokenizer: Tokenizer, words: Sequence[str] = ()) -> str:
    """A line on how the words of a folder of vectors were made unlike those of the run, or none."""
    recorded = recorded_tokenizer(source)
    if recorded is None:
        return ""
    if lost := recorded.lost(words):
        return (
            f"{source}: made by superconext 0.2.0, whose rules cut texts otherwise: {lost} by this "
            "version: train the vectors again"
        )
    theirs, ours = recorded.to_dict(), tokenizer.to_dict()
    rules = [set(made["normalizer"]["rules"]) for made in (theirs, ours)]
    parts = [
        f"rules {', '.join(sorted(names))} in {where} alone"
        for names, where in ((rules[0] - rules[1], "the folder"), (rules[1] - rules[0], "this run"))
        if names
    ]
    if theirs["bridge"] != ours["bridge"]:
        parts.append(f"bridge {theirs['bridge'] or 'none'} against {ours['bridge'] or 'none'} here")
    if not parts:
        return ""
    profiles = [made["normalizer"]["profile"] for made in (theirs, ours)]
    return (
        f"{source}: made from text of profile {profiles[0]}, and this run reads {profiles[1]} "
        f"({'; '.join(parts)}), so words may be missed; expected the same: choose --normalize, "
        "rules and bridge as there, or train the vectors again"
    )


def _scale(config: Config, known: np.ndarray) -> float:
    """The factor on the vectors; `known` are those of the training words `[n, e]`.

    Beside small ones, such as those of GoogleNews (0.17), what the encoder learns of n-grams drowns
    what it was given. An encoder has read its vectors as they are.
    """
    square = float(np.square(known, dtype=np.float64).mean()) if len(known) else 0.0
    size = math.sqrt(square) or 1.0
    return max(LEAST_SIZE / size, 1.0) if config.vectors else 1.0


def _oov_vectors(source: WordVectors, vocabulary: Vocabulary, scale: float) -> WordVectors:
    others = [word for word in source.words if word not in vocabulary]
    kept = source.restrict(others[:OOV_WORDS])
    # Half precision, as it will be saved: a loaded model then gives the very same figures.
    subwords = kept.subwords
    if subwords is not None:
        buckets = _scaled(subwords.buckets, scale)
        subwords = SubwordTable(buckets, subwords.min_n, subwords.max_n)
    matrix = _scaled(kept.matrix, scale)
    return WordVectors(kept.words, matrix, subwords, name=kept.name, sha256=kept.sha256)


def _scaled(vectors: np.ndarray, scale: float) -> np.ndarray:
    """In half precision; multiplied before, while small numbers still have all their digits.

    Raises DataError for numbers that half precision does not hold.
    """
    largest = float(np.abs(vectors).max(initial=0.0)) * scale
    if largest > float(np.finfo(np.float16).max):
        raise DataError(
            f"found the number {largest:g} in a word vector; expected none beyond 65504, which "
            "half precision holds: leave the row out, or divide all vectors by one number"
        )
    with np.errstate(under="ignore"):  # of half precision, whatever the caller has set
        if scale == 1.0:
            return np.asarray(vectors, dtype=np.float16)
        return (np.asarray(vectors, dtype=np.float32) * np.float32(scale)).astype(np.float16)
