"""Training of word vectors on the tokens at hand, its state, and the cache of what was trained.

Skip-gram with negative sampling, over whole words (Mikolov et al., 2013) or with character
n-grams (Bojanowski et al., 2017), which serves varieties where each writer spells differently.
gensim sets up vocabulary, hashes and arrays; `_Blocks` trains them, in about half of gensim's time
and to the same use (scripts/word_vector_controls.py); what comes back is plain arrays.

While it trains, a state holds the trained arrays in one safetensors file, written at most every
`SAVED_EVERY` seconds. A training that resumes from one ends with the same bits, for one worker, as
one that was not stopped. The cache is keyed by the tokens and every setting.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib import metadata
from itertools import islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from superconext.core import cache
from superconext.core import files as folders
from superconext.core.arithmetic import fast_products
from superconext.core.errors import ConfigError, VectorsError, needs_training
from superconext.vectors.emoji import rows_of_lists, scores_of
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import FOLDER_VERSION, WordVectors, mean_vectors

METHODS = ("fasttext", "word2vec")
SMALL_CORPUS = 5_000  # tokens; below this no word is left out for being rare
#: Seconds of training that a stop may lose beside the pass it falls into: writing takes about one.
SAVED_EVERY = 30.0
_LONGEST = 10_000  # tokens of a list that are learned from together

# Of `_Blocks`: words of the text that are scored together, counter-examples that they share,
# how often the commonest word may stand among them, on average, and tokens that are prepared at
# once. A block's gradient is taken before any of its updates: where the same words come again and
# again, large blocks would step too far.
_BLOCK, _SHARED, _REPEATS, _CHUNK = 32, 32, 4, 8_192


class _Lists:
    """Token lists that can be read several times, none too long."""

    def __init__(self, token_lists: Iterable[Sequence[str]]) -> None:
        again = iter(token_lists) is not token_lists
        self._lists = token_lists if again else list(token_lists)

    def __iter__(self) -> Iterator[list[str]]:
        for number, tokens in enumerate(self._lists, start=1):
            if isinstance(tokens, str):
                raise VectorsError(
                    f"sentence {number} is the string {tokens[:30]!r}; expected a list of tokens; "
                    "tokenise the sentences first"
                )
            listed = list(tokens)
            for start in range(0, len(listed), _LONGEST):
                yield listed[start : start + _LONGEST]


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
        token_lists: the tokens of each sentence. They are read `epochs + 2` times: an object
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
        there, rows that no n-gram of a trained word fell on are zeros. Of text with emoji it has
        `emoji_scores`.

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
    if not (1 <= min_n <= max_n and buckets >= 1):
        raise ConfigError(
            f"min_n={min_n}, max_n={max_n}, buckets={buckets}; expected 1 <= min_n <= max_n and "
            "1 or more buckets; choose such numbers"
        )
    model_class = _gensim_model(method)
    lists = _Lists(token_lists)
    counts: Counter[str] = Counter()
    sentences = 0
    for piece in lists:
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
    if not counts:
        raise VectorsError(
            "found 0 tokens; expected text to train on: check the input, and what is left out of it"
        )
    if max(counts.values()) < min_count:
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
        remaining = Epochs(epochs, progress, state)
        remaining.restore(model)
        remaining.train(model, lists, total)
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
    vectors.emoji_scores = emoji_scores(lists, vectors, seed)
    vectors.sha256 = vectors.content_sha256()
    return vectors


def passes(tokens: int) -> int:
    """Epochs over a text of so many tokens: about 10 million read in all, 5 to 100 epochs.

    At gensim's five, the vectors of a small text hardly leave their random start.
    """
    return min(100, max(5, math.ceil(10_000_000 / max(tokens, 1))))


def emoji_scores(
    token_lists: Iterable[Sequence[str]], vectors: WordVectors, seed: int = 0
) -> np.ndarray | None:
    """The `scores_of` emoji in mean word vectors `[K, d]`, from the sentences that hold some; None
    where those are too few."""
    from threadpoolctl import threadpool_limits

    found = rows_of_lists(token_lists, vectors.words, seed)
    if found is None:
        return None
    rows, words = found
    table, has_vector = vectors.lookup(words)
    table[~has_vector] = table[has_vector].mean(axis=0)
    with threadpool_limits(1, user_api="blas"):  # one result whatever the machine
        return scores_of(mean_vectors(rows.store, table), rows.labels)


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
    """The passes over the text: reports the fraction that is done, and keeps states.

    Args:
        total: passes over the text.
        report: called with the fraction.
        state: file of the state; None to keep none.

    Attributes:
        done: passes that are done.
    """

    def __init__(
        self, total: int, report: Callable[[float], None] | None, state: Path | None
    ) -> None:
        self.total, self.done, self.state = total, 0, state
        self._report = report or (lambda done: None)
        self._saved = time.monotonic()

    def restore(self, model: Any) -> None:
        """Put a model of the same text and settings where its state is, if there is a whole one."""
        if self.state is None or not self.state.exists():
            return
        from superconext.core.state_file import DAMAGE, read_state

        try:
            facts, tensors = read_state(self.state)
            saved = {name: tensors[name].numpy() for name in _arrays(model)}
            if any(saved[name].shape != array.shape for name, array in _arrays(model).items()):
                raise ValueError("of another size")
        except DAMAGE:
            return  # begun again, which costs time alone
        for name, array in _arrays(model).items():
            array[:] = saved[name]
        self.done = facts["done"]

    def train(self, model: Any, lists: _Lists, words: int) -> None:
        """Run the passes that are left."""
        import torch

        blocks, threads = _Blocks(model), torch.get_num_threads()
        torch.set_num_threads(1)  # a product is too small to be shared
        try:
            self._report(self.done / self.total)
            while self.done < self.total:
                with fast_products():
                    for read in blocks.one_pass(lists, self.done, self.total, words):
                        self._report(min((self.done + read / words) / self.total, 1.0))
                self.end_pass(model, blocks)
        finally:
            torch.set_num_threads(threads)
        blocks.store()
        blocks.compose()

    def end_pass(self, model: Any, blocks: _Blocks) -> None:
        self.done += 1
        if self.done < self.total and time.monotonic() - self._saved >= SAVED_EVERY:
            blocks.store()
            self._save(model)
        self._report(self.done / self.total)

    def _save(self, model: Any) -> None:
        if self.state is None:
            return
        import torch

        from superconext.core.state_file import write_state

        arrays = _arrays(model)
        try:
            self.state.parent.mkdir(parents=True, exist_ok=True)
            write_state(
                self.state,
                {"done": self.done},
                {name: torch.from_numpy(value) for name, value in arrays.items()},
            )
        except OSError:
            self.state = None  # a state spares time; without room for it training continues
        self._saved = time.monotonic()


class _Blocks:
    """Skip-gram with negative sampling on the arrays of a gensim model, a block of words at a time.

    gensim sums a word's n-grams again for each context word, and updates them as often. Here they
    are summed once for each word of the text. The words of a block are scored, in one matrix
    product, against all words around them and `_SHARED` counter-examples, and the gradient is
    added once. A pair of words weighs its counter-examples as much as `negative` of its own, and
    those that are its context word not at all; rates, sampling and windows are gensim's.
    """

    def __init__(self, model: Any) -> None:
        import torch

        self.model, keyed = model, model.wv
        self.arrays = list(_arrays(model).values())[:-1]
        grams = getattr(keyed, "buckets_word", [()] * len(keyed))
        first = len(keyed)  # the n-grams' rows follow those of the words
        self.lengths = 1 + np.fromiter(map(len, grams), np.int64, first)
        self.starts = np.cumsum(self.lengths) - self.lengths
        parts = np.full(self.lengths.sum(), -1)
        parts[self.starts] = np.arange(first)
        parts[parts < 0] = np.concatenate(grams).astype(np.int64) + first
        self.kept = keyed.expandos["sample_int"].astype(np.float64) / 2**32
        uses = keyed.expandos["count"] * self.kept
        self.block = int(np.clip(_REPEATS * uses.sum() / uses.max(), 1, _BLOCK))
        # What is used often lies together, and in the cache; what is never used is left out.
        rows = sum(map(len, self.arrays))
        used = np.bincount(parts, np.repeat(uses + 1, self.lengths), rows)
        self.order = np.argsort(-used, kind="stable")[: np.count_nonzero(used)]
        place = np.zeros(rows, np.int32)
        place[self.order] = np.arange(len(self.order))
        self.parts = place[parts]
        self.table = torch.from_numpy(np.concatenate(self.arrays)[self.order])
        self.output = torch.from_numpy(model.syn1neg)

    def store(self) -> None:
        """Give the model's arrays what is reached."""
        both = np.concatenate(self.arrays)
        both[self.order] = self.table.numpy()
        self.arrays[0][:] = both[: len(self.lengths)]
        if len(self.arrays) > 1:
            self.arrays[1][:] = both[len(self.lengths) :]

    def compose(self) -> None:
        """Make the vectors of the words: of the mean of its n-grams and its own each."""
        from scipy.sparse import csr_matrix

        shares = np.repeat((1 / self.lengths).astype(np.float32), self.lengths)
        bounds = np.append(self.starts, len(self.parts))
        shape = len(self.lengths), len(self.table)
        means = csr_matrix((shares, self.parts, bounds), shape=shape) @ self.table.numpy()
        self.model.wv.vectors[:] = means

    def one_pass(self, lists: _Lists, done: int, passes: int, words: int) -> Iterator[int]:
        """Learn from the whole text once, and yield now and then how many tokens are done."""
        first, last, workers = self.model.alpha, self.model.min_alpha, self.model.workers

        def learn(chunk: tuple[int, list[int], list[int]]) -> None:
            read, ids, sizes = chunk
            rate = max(last, first - (first - last) * (done + read / words) / passes)
            draw = np.random.default_rng((self.model.seed, done, read))
            word = np.array(ids, np.int32)
            sentence = np.repeat(np.arange(len(sizes)), sizes)
            kept = (word >= 0) & (draw.random(len(word)) < self.kept[word])
            if kept.any():
                self.learn(word[kept], sentence[kept], rate, draw)

        chunks = self._chunks(lists)
        with ThreadPoolExecutor(workers) as pool:
            while group := list(islice(chunks, 4 * workers)):
                yield group[0][0]
                list((pool.map if workers > 1 else map)(learn, group))

    def _chunks(self, lists: _Lists) -> Iterator[tuple[int, list[int], list[int]]]:
        """Tokens before, numbers of the next words, -1 for those left out, and sentences' sizes."""
        find, read = self.model.wv.key_to_index.get, 0
        ids: list[int] = []
        sizes: list[int] = []
        for tokens in lists:
            ids.extend(map(find, tokens, repeat(-1)))
            sizes.append(len(tokens))
            if len(ids) >= _CHUNK:
                yield read, ids, sizes
                read, ids, sizes = read + len(ids), [], []
        if ids:
            yield read, ids, sizes

    def learn(
        self,
        word: npt.NDArray[np.int32],
        sentence: npt.NDArray[np.int64],
        rate: float,
        draw: np.random.Generator,
    ) -> None:
        """Update for words of the text `[n]`, of the sentences `[n]`, block after block."""
        import torch

        model, block, n = self.model, self.block, len(word)
        blocks, window, width = -(-n // block), model.window, block + 2 * model.window
        reach = draw.integers(1, window + 1, n)
        picks = draw.integers(0, model.cum_table[-1], blocks * _SHARED)
        others = np.searchsorted(model.cum_table, np.sort(picks)).astype(np.int32)
        draw.shuffle(others)
        others = others.reshape(blocks, _SHARED)
        # Columns of a block: the words from `window` before it to `window` after it, the others.
        around = np.zeros(blocks * block + 2 * window, np.int32)
        around[window : window + n] = word
        around = np.lib.stride_tricks.sliding_window_view(around, width)[::block]
        columns = np.concatenate((around, others), 1)
        bounds = np.arange(columns.shape[1] + 1, dtype=np.int32)
        at = np.arange(n)
        own = at * (width + _SHARED) + at % block + window
        flat = np.zeros(blocks * block * (width + _SHARED), np.float32)
        for step in range(1, min(window, n - 1) + 1):
            same = sentence[step:] == sentence[:-step]
            flat[own[:-step][same & (reach[:-step] >= step)] + step] = 1
            flat[own[step:][same & (reach[step:] >= step)] - step] = 1
        weights = torch.from_numpy(flat.reshape(blocks, block, -1))
        near, against = weights[:, :, :width], weights[:, :, width:]
        alike = torch.from_numpy((around[:, :, None] == others[:, None]).astype(np.float32))
        against += near.sum(2, keepdim=True) - torch.bmm(near, alike)
        against *= model.negative / _SHARED
        weights *= -rate
        lengths = self.lengths[word]
        ends = np.append(0, np.cumsum(lengths)).astype(np.int32)
        parts = np.arange(ends[-1]) + np.repeat(self.starts[word] - ends[:-1], lengths)
        parts = self.parts[parts]
        scale = torch.from_numpy((1 / lengths).astype(np.float32))[:, None]
        add, add_output = _adder(self.table), _adder(self.output)
        with torch.inference_mode():
            for number in range(blocks):
                start, stop = number * block, min((number + 1) * block, n)
                mine = parts[ends[start] : ends[stop]]
                until = ends[start : stop + 1] - ends[start]
                hidden = torch.embedding_bag(
                    self.table, torch.from_numpy(mine), torch.from_numpy(until),
                    include_last_offset=True,
                )[0].mul_(scale[start:stop])  # fmt: skip
                words = self.output.index_select(0, torch.from_numpy(columns[number]))
                score = torch.mm(hidden, words.T).sigmoid_()
                score[:, :width].sub_(1)
                score.mul_(weights[number, : stop - start])
                add(mine, until, torch.mm(score, words))
                add_output(columns[number], bounds, torch.mm(score.T, hidden))


def _adder(table: Any) -> Callable[[np.ndarray, np.ndarray, Any], None]:
    """A function that adds to the rows `rows[ends[i] : ends[i + 1]]` of a table value i `[d]`."""
    import torch

    try:  # not public, and twice as fast as torch's
        from scipy.sparse._sparsetools import csc_matvecs
    except ImportError:

        def add(rows: np.ndarray, ends: np.ndarray, values: Any) -> None:
            column = np.repeat(np.arange(len(values)), np.diff(ends))
            sparse = torch.sparse_coo_tensor(
                torch.from_numpy(np.stack((rows, column))), torch.ones(len(rows)),
                (len(table), len(values)), check_invariants=False, is_coalesced=True,
            )  # fmt: skip
            table.addmm_(sparse, values)

    else:
        (size, dimension), flat = table.shape, table.numpy().ravel()
        ones = np.ones(1, np.float32)

        def add(rows: np.ndarray, ends: np.ndarray, values: Any) -> None:
            nonlocal ones
            if len(ones) < len(rows):
                ones = np.ones(2 * len(rows), np.float32)
            added = values.numpy().ravel()
            csc_matvecs(size, len(ends) - 1, dimension, ends, rows, ones, added, flat)

    return add


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
        if damage:
            folders.clear_path(folder)  # `save` might not recognise it as its own
        vectors.save(folder)
        cache.trim()
    except (OSError, VectorsError) as error:
        reason = getattr(error, "strerror", None) or error
        vectors.notes.append(f"not kept in the cache {folder}: {reason}")
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
    versions = {"format": FOLDER_VERSION, "gensim": gensim, "training": 4}
    digest = hashlib.sha256(json.dumps([named, versions], sort_keys=True, default=str).encode())
    if identity is not None:
        digest.update(identity.encode())
        return digest.hexdigest()[:32]
    for tokens in token_lists:
        # JSON keeps ["a b"] and ["a", "b"] apart; a separator of our own would not.
        listed = tokens if isinstance(tokens, str) else list(tokens)
        digest.update(json.dumps(listed, default=str).encode() + b"\n")
    return digest.hexdigest()[:32]
