"""Training of word vectors on the tokens at hand, its state, and the cache of what was trained.

Skip-gram with negative sampling, over whole words (Mikolov et al., 2013) or with character
n-grams (Bojanowski et al., 2017), which serves varieties where each writer spells differently.
gensim does the work; what comes back is plain arrays and no longer needs it.

While it trains, a state holds the trained arrays and the random state in one safetensors file,
written at most every `SAVED_EVERY` seconds. A training that resumes from one ends with the same
bits, for one worker, as one that was not stopped. The cache is keyed by the tokens and every
setting.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from superconext.core import cache
from superconext.core import files as folders
from superconext.core.errors import ConfigError, VectorsError, needs_training
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import FOLDER_VERSION, WordVectors

METHODS = ("fasttext", "word2vec")
SMALL_CORPUS = 5_000  # tokens; below this no word is left out for being rare
#: Seconds of training that a stop may lose beside the pass it falls into: writing takes about one.
SAVED_EVERY = 30.0
_LONGEST = 10_000  # gensim drops what stands beyond this many tokens in one list


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
            whose `__iter__` starts again may be larger than memory, a generator is held whole.
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
        state: file to keep what is reached in, and to resume from; of this text and these
            settings alone. It is left for the caller to remove.

    Returns:
        The table `[V, dimension]` float32, most frequent word first; with `fasttext` each row is
        the mean of the word's own and its n-grams' vectors, and `subwords` serves other words;
        there, rows that no n-gram of a trained word fell on are zeros.

    Raises:
        ConfigError: an impossible setting.
        VectorsError: no token, or no word frequent enough.
        MissingExtraError: gensim is not installed.
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
        notes.append(f"only {total} tokens: every word is kept, min_count {min_count} ignored")
        min_count = 1
    if not counts or max(counts.values()) < min_count:
        raise VectorsError(
            f"{total} tokens and no word that occurs {min_count} times or more; expected text to "
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
        remaining = Epochs(epochs, progress, state, lists.check)
        remaining.restore(model)
        remaining.train(model, lists, sentences, total)
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
        # Rows that no word trained, of a few thousand sentences' words five in six, hold gensim's
        # random start. It says nothing, and zeros need not be carried by a saved model.
        untouched = np.ones(len(grams), dtype=bool)
        untouched[np.concatenate(list(keyed.buckets_word))] = False
        grams[untouched] = 0.0
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


def _check_settings(method: str, **positive: int) -> None:
    if method not in METHODS:
        raise ConfigError(
            f"method is {method!r}; expected {' or '.join(METHODS)}; choose one of them"
        )
    for name, value in positive.items():
        if value < 1:
            raise ConfigError(f"{name} is {value}; expected 1 or more; choose such a number")


def _gensim_model(method: str) -> Any:
    with needs_training("Training word vectors"):
        from gensim.models import FastText, Word2Vec
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


class Epochs:
    """gensim callback: reports the fraction of the passes that is done, and keeps states.

    Args:
        total: passes over the text.
        report: called with the fraction.
        state: file of the state; None to keep none.
        check: called after each pass; raises if the text could not be read to its end, which gensim
            does not see. Nothing of such a pass is kept.

    Attributes:
        done: passes that are done.
    """

    def __init__(
        self,
        total: int,
        report: Callable[[float], None] | None,
        state: Path | None,
        check: Callable[[], None],
    ) -> None:
        self.total, self.done, self.state = total, 0, state
        self._check = check
        self._report = report or (lambda done: None)
        self._saved = time.monotonic()

    def restore(self, model: Any) -> None:
        """Put a model of the same text and settings where its state is, if there is a whole one."""
        if self.state is None or not self.state.exists():
            return
        from superconext.core.state_file import DAMAGE, read_state

        try:
            facts, tensors = read_state(self.state)
            saved = {name: tensors[name].numpy() for name in (*_arrays(model), "random")}
            if any(saved[name].shape != array.shape for name, array in _arrays(model).items()):
                raise ValueError("of another size")
            model.random.set_state(("MT19937", saved["random"], *facts["random"]))
        except DAMAGE:
            return  # begun again, which costs time alone
        for name, array in _arrays(model).items():
            array[:] = saved[name]
        self.done = facts["done"]

    def train(self, model: Any, token_lists: Any, sentences: int, words: int) -> None:
        """Run the passes that are left."""
        first, last, before, total = model.alpha, model.min_alpha, self.done, self.total

        def rate(progress: float, epoch: int) -> float:
            # gensim's own line, which counts passes from this call's first.
            gone = (epoch + before + progress) / total
            self._report(min(gone, 1.0))
            return float(max(last, first - (first - last) * gone))

        model._get_next_alpha = rate
        model.train(
            token_lists,
            total_examples=sentences,
            total_words=words,
            epochs=total - before,
            callbacks=(self,),
        )

    def on_train_begin(self, model: Any) -> None:
        self._report(self.done / self.total)

    def on_train_end(self, model: Any) -> None:
        pass

    def on_epoch_begin(self, model: Any) -> None:
        pass

    def on_epoch_end(self, model: Any) -> None:
        self._check()
        self.done += 1
        if self.done < self.total and time.monotonic() - self._saved >= SAVED_EVERY:
            self._save(model)
        self._report(self.done / self.total)

    def _save(self, model: Any) -> None:
        if self.state is None:
            return
        import torch

        from superconext.core.state_file import write_state

        _, keys, *more = model.random.get_state()
        arrays = {**_arrays(model), "random": keys}
        try:
            self.state.parent.mkdir(parents=True, exist_ok=True)
            write_state(
                self.state,
                {"done": self.done, "random": [int(more[0]), int(more[1]), float(more[2])]},
                {name: torch.from_numpy(value) for name, value in arrays.items()},
            )
        except OSError:
            self.state = None  # a state spares time; without room for it training continues
        self._saved = time.monotonic()


def _arrays(model: Any) -> dict[str, np.ndarray]:
    """The arrays that training changes."""
    keyed = model.wv
    if hasattr(keyed, "vectors_vocab"):
        return {
            "words": keyed.vectors_vocab, "ngrams": keyed.vectors_ngrams, "output": model.syn1neg
        }  # fmt: skip
    return {"words": keyed.vectors, "output": model.syn1neg}


def cached_vectors(
    token_lists: Iterable[Sequence[str]],
    *,
    cache_dir: str | Path | None = None,
    identity: str | None = None,
    progress: Callable[[float], None] | None = None,
    **settings: Any,
) -> WordVectors:
    """`train_vectors`, or what it gave for the same tokens and settings before.

    Training that was stopped resumes from its last state, which the cache keeps until it ends; a
    KeyboardInterrupt that leaves one says so. A damaged entry is trained and written again; a
    cache that cannot be written costs nothing but the note that says so.

    Args:
        token_lists: the tokens of each sentence, as for `train_vectors`.
        cache_dir: the cache; `core.files.cache_dir()` by default. Entries are in `vectors`.
        identity: a hash that stands for the tokens, where the caller knows one without
            making them; by default they are read and hashed.
        progress: called with the fraction done; at once with 1.0 when nothing is to do.
        **settings: those of `train_vectors`, which also says what is raised.
    """
    if iter(token_lists) is token_lists:  # a generator: it is read twice at least
        token_lists = list(token_lists)
    key = _key(token_lists, identity, settings)
    home = Path(cache_dir) if cache_dir is not None else folders.cache_dir()
    folder = home / "vectors" / key
    cache.use(folder)
    damage = ""
    if folder.exists():
        try:
            vectors = WordVectors.load(folder, verify=True)
        except VectorsError:
            damage = "the cache entry was damaged and has been made again"
        else:
            if progress is not None:
                progress(1.0)
            return vectors
    state = folder.with_name(f"{key}.state")
    try:
        vectors = train_vectors(token_lists, progress=progress, state=state, **settings)
    except KeyboardInterrupt as stop:
        if state.exists():
            stop.args = (f"finished work is kept in {state}: repeat the command to resume",)
        raise
    with suppress(OSError):
        state.unlink(missing_ok=True)
    try:
        if damage and folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)  # `save` might not recognise it as its own
        elif damage:
            folder.unlink()
        vectors.save(folder)
        cache.trim()
    except (OSError, VectorsError) as error:
        vectors.notes.append(f"not kept in the cache {folder}: {error}")
    if damage:
        vectors.notes.append(damage)
    return vectors


def _key(
    token_lists: Iterable[Sequence[str]], identity: str | None, settings: dict[str, Any]
) -> str:
    """Hash of the tokens, every setting (defaults too), and the versions of all that trains."""
    bound = inspect.signature(train_vectors).bind(token_lists, **settings)
    bound.apply_defaults()
    named = {
        name: value
        for name, value in bound.arguments.items()
        if name not in ("token_lists", "progress", "state")
    }
    try:
        gensim = metadata.version("gensim")
    except metadata.PackageNotFoundError:
        gensim = "none"
    # What training makes of the same text beyond its settings; raise it with any change there.
    versions = {"format": FOLDER_VERSION, "gensim": gensim, "training": 2}
    digest = hashlib.sha256(json.dumps([named, versions], sort_keys=True, default=str).encode())
    if identity is not None:
        digest.update(identity.encode())
        return digest.hexdigest()[:32]
    for tokens in token_lists:
        # JSON keeps ["a b"] and ["a", "b"] apart; a separator of our own would not.
        listed = tokens if isinstance(tokens, str) else list(tokens)
        digest.update(json.dumps(listed, default=str).encode() + b"\n")
    return digest.hexdigest()[:32]
