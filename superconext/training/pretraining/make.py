"""Making of pretrained encoders: `superconext pretrain`, and the parameter `pretrain` of a run.

Beside another encoder (`init`) its training goes on from there, on text of one's own: with its word
vectors and spelling, and output words that are learned anew, as no folder keeps them.

An encoder is made once for the same text, vectors and settings and kept in the cache.

    torchrun --nproc-per-node K -m superconext pretrain ...

The first of several processes reads the text and trains the word vectors. Then each process is
given the table and every K-th sentence to learn from. Of a batch it reads its own sentences, and
the gradients are summed: order, words to compare with and weights are those of one process, except
for what dropout draws. The sentences with emoji, few of all, are given to every process, as rows
are in `train`.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from superconext._version import __version__
from superconext.config.parameters import BY_NAME, Config, files_of, names_of
from superconext.core import cache
from superconext.core.errors import (
    ConfigError,
    RunError,
    StoppedEarly,
    SuperConTextError,
    VectorsError,
    plural,
)
from superconext.core.files import cache_dir, clear_staging
from superconext.core.locks import only_writer
from superconext.core.process import keep_freed_memory
from superconext.core.progress import Progress
from superconext.core.random_streams import WORD_NOISE, random_stream
from superconext.data.duplicates import Decontamination
from superconext.data.token_store import TokenRows, TokenStore, text_of
from superconext.encoders.base import Encoder
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.compiled_gates import warn_without_kernel
from superconext.encoders.embedding_init import spelt_otherwise, unused_dimension
from superconext.encoders.pretrained import (
    LAYER_FILES,
    emoji_scores_in,
    read_facts,
    read_weights,
    with_sizes,
    write_layers,
)
from superconext.text.ngrams import WordNgrams
from superconext.text.tokenize import Tokenizer, Vocabulary, word_count
from superconext.training.callbacks import Record, StepBar
from superconext.training.distributed import Arrays, T, World, current_world, led, within
from superconext.training.pretraining.emoji import (
    FEWEST_SENTENCES,
    EmojiRows,
    emoji_rows,
    emoji_scores,
    emoji_training,
)
from superconext.training.pretraining.language_model import (
    CONTINUED,
    LONGEST,
    Corpus,
    Settings,
    pretraining,
    read_corpus,
)
from superconext.vectors.readers import read_vectors
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors
from superconext.vectors.text_corpus import (
    Lines,
    Sentences,
    make_tokenizer,
    record_tokenizer,
    recorded_tokenizer,
    text_to_clear,
)
from superconext.vectors.training import cached_vectors
from superconext.vectors.training import emoji_scores as word_scores

#: What training makes of the same text beyond its settings; raise it with any change there.
_TRAINING = 10

#: What n-grams learn is so many times the mean of their vectors; and numbers in a table of n-grams
#: beyond which they learn nothing, as the optimiser needs three such tables.
TIMES, MOST_LEARNED = 4.0, 1 << 25

#: What other processes are given of n-grams.
_NGRAM_ARRAYS = ("ids", "offsets", "counts")


@dataclass(frozen=True)
class PretrainRequest:
    """What `superconext pretrain` is asked for.

    files: text, one sentence a line. out: the folder to write. settings: of the training.
    vectors: word vectors to read with; None to train some of `vector_dimension` on the same text.
    init: folder of a pretrained encoder to go on from, with its word vectors; None to begin anew.
    words: of the text that each pass reads; None for all.
    normalize, bridge: how the text is spelt; where `vectors` or `init` is a folder that
        records how its words are spelt, that is taken and these must be left alone.
    leave_out: labelled files whose texts are not read.
    reading: how the files are read, as `Lines` takes it.
    threads: of matrix work; results depend on it in their last bits.
    """

    files: Sequence[str]
    out: Path
    settings: Settings
    vectors: str | None = None
    init: str | None = None
    words: int | None = None
    vector_dimension: int = BY_NAME["vector_dimension"].default
    normalize: str | None = None
    bridge: str | None = None
    leave_out: Sequence[str] = ()
    text_column: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    threads: int = 1


def request_of(options: Mapping[str, Any], **more: Any) -> PretrainRequest:
    """The request of options by name, among them those of `Settings`, where None is the default;
    with `init` that is the size of its encoder, and what differs where training goes on.

    Raises ConfigError for sizes other than its, and RunError where it is none.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if options.get("init"):
        given = {**CONTINUED, **with_sizes(given, options["init"])}
    own = {field.name for field in fields(Settings)}
    settings = Settings(**{name: value for name, value in given.items() if name in own})
    others = {name: value for name, value in given.items() if name not in own}
    return PretrainRequest(settings=settings, **others, **more)


def pretrain(request: PretrainRequest, progress: Progress) -> dict[str, Any]:
    """Pretrain and write the folder; returns the facts in its `encoder.json`, and `cached`.

    The work is kept in the cache while it runs and when it is done: the same call resumes
    after a stop, and takes what was made before. Raises the project's errors.
    """
    began = time.perf_counter()
    out = request.out
    out.parent.mkdir(parents=True, exist_ok=True)
    lock = out.with_name(f".{out.name}.lock")
    with only_writer(lock, out, progress.say, "what it did is kept", remove=True):
        clear_staging(out, alone=True)
        facts = _pretrain(request, progress)
    return {**facts, "seconds": round(time.perf_counter() - began, 2)}


def _pretrain(request: PretrainRequest, progress: Progress) -> dict[str, Any]:
    source = _source(request.vectors, request.init)
    if request.init:
        with_sizes({"hidden_size": request.settings.hidden_size}, request.init)
    if request.init and Path(request.init).resolve().is_relative_to(request.out.resolve()):
        same = Path(request.init).resolve() == request.out.resolve()
        raise ConfigError(
            f"out = {str(request.out)!r} {'is' if same else 'holds'} the encoder to go on from; "
            "expected another folder, as it stays as it is: choose another --out"
        )
    lines = Lines(request.files, request.text_column, **request.reading)
    tokenizer = _tokenizer(request, source, lines)
    left_out = Decontamination.of_files(
        request.leave_out, tokenizer, request.text_column, **request.reading
    )
    text = Sentences(lines, tokenizer, request.out.parent, progress, left_out=left_out)
    vectors = text_vectors(text, source, request.vector_dimension, progress)
    settings = replace(request.settings, part=part_of(lines, request.words))
    with made_encoder(text, vectors, settings, request.threads, progress, init=request.init) as (
        made,
        cached,
    ):
        facts = read_facts(made)
        whole = WordVectors.load(made)

        def also(fresh: Path) -> None:
            for name in ("tokenizer.json", *LAYER_FILES):
                if (made / name).exists():
                    shutil.copyfile(made / name, fresh / name)

        whole.save(request.out, also)
    unused = source and unused_dimension(source, vectors, request.vector_dimension)
    for note in [*lines.notes, *left_out.notes, *vectors.notes, *filter(None, [unused])]:
        progress.note(note)
    return {**facts, "cached": cached}


def words_read(lines: Lines) -> int:
    """Words that are read of all sentences. Raises DataError for text that cannot be read."""
    return sum(min(word_count(line), LONGEST) for line in lines)


def part_of(lines: Lines, words: int | None) -> float:
    """The part of a text that so many words of it are; 1 for None."""
    return 1.0 if words is None else min(1.0, words / max(words_read(lines), 1))


def check_pretraining(config: Config) -> None:
    """Raise ConfigError where a configuration asks for what cannot be made."""
    if config.pretrain and not config.unlabelled:
        raise ConfigError(
            "pretrain = true and no unlabelled text; expected some to learn from: name a file "
            "with one sentence a line as unlabelled"
        )
    if config.pretrain_words and not config.pretrain:
        raise ConfigError(
            f"pretrain_words = {config.pretrain_words} without pretrain; expected text to pretrain "
            "on: add pretrain = true, or leave it out"
        )


def pretrained_encoder(
    config: Config, rows: TokenRows, held_out: Sequence[str], progress: Progress
) -> tuple[Path, int]:
    """The folder of an encoder pretrained on `config.unlabelled`, out of the cache or made, and of
    how many labelled texts the text was cleared.

    rows: of training. held_out: dev and test texts; sentences of the same wording are not learned
    from, and of much text neither are those of `rows`, see `text_to_clear`.

    Its words are spelt as the run's, its seed is not the run's: runs that differ in their seed
    alone share it. Everything else is as `superconext pretrain` has it by default, but each pass
    reads `config.pretrain_words` of a longer text. It goes on from `config.init` where one is
    named.
    """
    source = _source(config.vectors, config.init)
    lines = Lines(files_of(config.unlabelled))
    tokenizer = rows.tokenizer
    if config.init and (different := spelt_otherwise(config.init, tokenizer)):
        raise ConfigError(different)
    left_out, _ = text_to_clear(lines, tokenizer, held_out, rows)
    text = Sentences(lines, tokenizer, None, progress, text_of(rows, alone=True), left_out)
    vectors = text_vectors(text, source, config.vector_dimension, progress)
    more: dict[str, Any] = dict(CONTINUED) if config.init else {}
    settings = Settings(
        hidden_size=config.hidden_size,
        compile=config.compile,
        part=part_of(lines, config.pretrain_words),
        **more,
    )
    # Of several fits at a time the first makes it, and the others take it out of the cache.
    # Other processes of a run wait too.
    with (
        within(World()),
        made_encoder(
            text, vectors, settings, config.threads, progress, init=config.init, wait=True
        ) as (made, cached),
    ):
        pass
    goes_on = f"{config.init}, trained further" if config.init else "pretrained"
    progress.say(f"encoder: {goes_on} on {names_of(config.unlabelled)}{', cached' * cached}")
    for note in [*lines.notes, *vectors.notes]:
        progress.note(note)
    return made, len(left_out)


@contextmanager
def made_encoder(
    text: Sentences,
    vectors: WordVectors,
    settings: Settings,
    threads: int,
    progress: Progress,
    *,
    init: str | None = None,
    wait: bool = False,
) -> Iterator[tuple[Path, bool]]:
    """The folder in the cache of the encoder that follows from all this, made where there is none
    yet, and whether there was; no other process makes the same inside the block. init: folder of
    the encoder that its training goes on from.

    Where another process is making it, this one waits for it (`wait`) or raises RunError. The
    latter is raised, too, where the cache is full or cannot be written.
    """
    home = cache_dir() / "encoders"
    made = home / _key(text, vectors, settings, threads, init)
    with (
        _in_cache(home),
        _made_there(made, text, vectors, settings, threads, progress, init, wait) as cached,
    ):
        yield made, cached


@contextmanager
def _in_cache(home: Path) -> Iterator[None]:
    """What the system refuses in the cache, or on the way to `home` in it, says what to do."""
    try:
        yield
    except OSError as error:
        named = Path(str(error.filename or ""))
        if isinstance(error, SuperConTextError) or not (
            named.is_relative_to(home) or (error.filename and home.is_relative_to(named))
        ):
            raise
        raise RunError(
            f"{named}: {error.strerror or error}; expected a cache to make the encoder in: make "
            "room, or name a folder elsewhere as SUPERCONEXT_CACHE, and run the command again"
        ) from error


@contextmanager
def _made_there(
    made: Path,
    text: Sentences,
    vectors: WordVectors,
    settings: Settings,
    threads: int,
    progress: Progress,
    init: str | None,
    wait: bool,
) -> Iterator[bool]:
    """`made_encoder` at its place in the cache; whether it was there."""
    home = made.parent
    home.mkdir(parents=True, exist_ok=True)
    cache.use(made)
    states = made.with_name(f"{made.name}.states")
    lock = made.with_name(f".{made.name}.lock")
    advice = "expected one process for the same text and settings: wait until it ends"
    kept = "its states are kept"
    with only_writer(lock, made, progress.say, kept, remove=True, advice=advice, wait=wait):
        clear_staging(made, alone=True)  # what a killed process left
        try:
            cached = _is_whole(made)
            if not cached:
                _make(text, vectors, settings, threads, made, states, progress, init)
                cache.trim()
            else:
                current_world().broadcast({})  # nothing to help with
            # Here and not in `_make`: a stop right after it would leave them for good.
            shutil.rmtree(states, ignore_errors=True)
            yield cached
        except KeyboardInterrupt:
            if not (any(states.glob("*.safetensors")) or made.exists()):
                raise
            raise StoppedEarly(
                f"interrupted; finished work is kept in {home}: repeat the command to resume"
            ) from None


def _source(vectors: str | None, init: str | None) -> str | None:
    """Where word vectors come from; None: from the text. Raises ConfigError where both are named,
    RunError where `init` is no folder of a pretrained encoder."""
    if init:
        read_facts(init)
        if vectors:
            raise ConfigError(
                f"vectors = {vectors!r} beside init = {init!r}, which brings its own; expected one "
                "of the two: leave out vectors"
            )
    return init or vectors


def _tokenizer(request: PretrainRequest, source: str | None, lines: Lines) -> Tokenizer:
    recorded = recorded_tokenizer(source) if source else None
    if recorded is None:
        return make_tokenizer(lines, request.normalize or "auto", request.bridge)
    if request.normalize or request.bridge:
        raise ConfigError(
            f"{source} fixes its normalisation; expected no other profile, rules or bridge "
            "beside it: leave out --normalize and --bridge"
        )
    return recorded


def text_vectors(
    text: Sentences, source: str | None, dimension: int, progress: Progress
) -> WordVectors:
    """Those of a file, or trained on the text with character n-grams and cached."""
    if source:
        return read_vectors(source)
    with progress.bar("training word vectors") as advance:
        return cached_vectors(
            text,
            identity=text.identity(),
            progress=advance,
            method="fasttext",
            dimension=dimension,
            min_n=2,
            max_n=5,
            seed=0,
        )


def _key(
    text: Sentences, vectors: WordVectors, settings: Settings, threads: int, init: str | None
) -> str:
    """Hash of everything the weights follow from."""
    facts = {
        "text": text.identity(),
        "vectors": vectors.content_sha256(),
        "settings": asdict(settings),
        "threads": threads,
        "versions": [torch.__version__, _TRAINING],
    }
    if init:
        begun = read_facts(init)
        facts["init"] = [begun["sha256"], begun.get("emoji_sha256")]
    if current_world().size > 1:  # alone as ever: encoders in the cache are found
        facts["processes"] = current_world().size
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _is_whole(folder: Path) -> bool:
    """Whether all is there, to the bit; what is damaged is made again."""
    try:
        read_weights(folder, read_facts(folder))
        WordVectors.load(folder, verify=True)
        return recorded_tokenizer(folder) is not None
    except (ConfigError, RunError, VectorsError):
        return False


def _make(
    text: Sentences,
    vectors: WordVectors,
    settings: Settings,
    threads: int,
    made: Path,
    states: Path,
    progress: Progress,
    init: str | None,
) -> None:
    """Train and put the folder `made` into the cache."""
    keep_freed_memory()
    if settings.compile:
        warn_without_kernel(progress)
    corpus = read_corpus(text, settings.seed)
    progress.say(
        f"text: {len(corpus.store)} sentences, {corpus.tokens} tokens, "
        f"{len(corpus.vocabulary)} words, of which {len(corpus.counts)} are predicted"
    )
    if cut := int((corpus.store.lengths == LONGEST).sum()):
        progress.warn(
            f"read {LONGEST} tokens of {plural(cut, 'sentence')} of {LONGEST} or more; expected "
            "shorter ones: give one sentence a line"
        )
    if settings.part < 1:
        progress.say(f"each pass reads {settings.part:.1%} of the text, drawn anew")
    settings = settings.of_text(len(corpus.trained))
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.random.fork_rng(devices=[]), threadpool_limits(threads):
            table, vectors = _table(vectors, corpus)
            ngrams = None if init else _learning_ngrams(vectors, corpus)
            share = dealt_out(corpus, table, settings, threads, states, ngrams)
            with progress.bar("pretraining") as advance:
                hooks = [StepBar(advance)]
                rest = progress, hooks, share, init, ngrams
                trainer = pretraining(corpus, table, settings, states, *rest)
                trainer.fit()
            _warn_of_nothing_learned(trainer.history, len(corpus.counts), progress)
            emoji, learned, scores = _learn_emoji(
                corpus, trainer.encoder, settings, states, progress
            )
            if ngrams is not None:
                vectors = _learned(vectors, corpus, trainer.encoder, text)
    finally:
        torch.set_num_threads(before)
    facts = {
        "superconext": __version__,
        "files": [path.name for path in text.lines.paths],
        "sentences": len(corpus.trained),
        "tokens": corpus.tokens,
        "predicted_words": len(corpus.counts),
        "settings": asdict(settings),
        "threads": threads,
        "processes": current_world().size,
        "history": trainer.history,
        "emoji": emoji,
        "emoji_history": learned,
    }
    if init:
        before_it = read_facts(init)
        facts["continued_from"] = {name: before_it.get(name) for name in ("sha256", "files")}
        if scores is None and (learned_before := emoji_scores_in(init)) is not None:
            scores = learned_before.astype(np.float32)  # they still tell much

    def also(fresh: Path) -> None:
        record_tokenizer(fresh, text.tokenizer)
        write_layers(fresh, trainer.encoder, facts, scores)

    if made.exists():  # damaged, or it would have been taken
        progress.note(f"{made} was damaged and has been made again")
        shutil.rmtree(made)
    vectors.save(made, also)


def _warn_of_nothing_learned(history: Sequence[Record], words: int, progress: Progress) -> None:
    """Warn where the words of held-out sentences are told worse than by chance, as after steps
    that were too large: chance has the logarithm of their number."""
    loss, chance = history[-1]["held_loss"], math.log(max(words, 2))
    if loss is not None and loss > 1.2 * chance:
        progress.warn(
            f"the encoder tells words of held-out sentences worse than chance (loss {loss:.4g}, "
            f"chance {chance:.4g}): expected less; lower the learning rate, or bring more text"
        )


def _learn_emoji(
    corpus: Corpus, encoder: Encoder, settings: Settings, states: Path, progress: Progress
) -> tuple[dict[str, Any] | None, list[Record], np.ndarray | None]:
    """Do the second part of pre-training where the text has emoji enough.

    Returns what it learned from, its history, and the `emoji_scores`.
    """
    rows = emoji_rows(corpus, settings.seed) if settings.emoji_epochs else None
    deal_out_emoji(rows)
    if rows is None:
        if settings.emoji_epochs:
            progress.say(
                f"emoji: fewer than {FEWEST_SENTENCES} sentences have one; none are learned"
            )
        return None, [], None
    progress.say(
        f"emoji: {len(rows.labels)} sentences have one of {len(rows.names)}, "
        f"{' '.join(rows.names[:10])} first"
    )
    with progress.bar("learning emoji") as advance:
        hooks = [StepBar(advance)]
        trainer = emoji_training(encoder, rows, settings, states, progress, hooks)
        trainer.fit()
    learned = {"sentences": len(rows.labels), "names": list(rows.names)}
    return learned, trainer.history, emoji_scores(encoder, rows, settings.seed)


def _table(vectors: WordVectors, corpus: Corpus) -> tuple[np.ndarray, WordVectors]:
    """Vectors of the words that are read `[V, e]`, and the source with all of them in it.

    Unknown words start from random vectors and keep them: whoever continues with the encoder must
    give it the vectors it has learned to read. The unknown word's is the mean of the known ones,
    as when a classifier is trained.
    """
    words = list(corpus.vocabulary.words)
    table, has_vector = vectors.lookup(words)
    known = table[has_vector]
    if not len(known):
        raise VectorsError(
            f"{vectors.name}: knows no word of the text; expected vectors of its language and "
            "spelling: choose others, or none to train them on the text"
        )
    noise = random_stream(0, WORD_NOISE).standard_normal(table.shape) * known.std()
    noise = noise.astype(vectors.matrix.dtype)  # as it will be kept
    table = np.where(has_vector[:, None], table, noise).astype(np.float32)
    table[0] = 0.0
    if not has_vector[1]:
        table[1] = known.mean(axis=0)
    has_vector[:2] = True  # padding and the unknown word are no words of a table
    if has_vector.all():
        return table, vectors
    added = np.flatnonzero(~has_vector)
    note = f"{len(added)} words it lacks had random vectors in pretraining, which are kept"
    extended = WordVectors(
        [*vectors.words, *(words[i] for i in added)],
        np.concatenate([vectors.matrix, noise[added]]),
        vectors.subwords,
        name=vectors.name,
        notes=[*vectors.notes, note],
        emoji_scores=vectors.emoji_scores,
    )
    return table, extended


def _learning_ngrams(vectors: WordVectors, corpus: Corpus) -> WordNgrams | None:
    """The n-grams of the words that are read; None where the word vectors have none, or so many
    that they stay as they are."""
    subwords = vectors.subwords
    if subwords is None or subwords.buckets.size > MOST_LEARNED:
        return None
    ngrams = subwords.ngrams_of(corpus.vocabulary.words[2:], TIMES)
    # Padding and the unknown word have none.
    offsets, counts = (np.append([0, 0], part) for part in (ngrams.offsets, ngrams.counts))
    return replace(ngrams, offsets=offsets, counts=counts)


def _learned(
    vectors: WordVectors, corpus: Corpus, encoder: Encoder, text: Sentences
) -> WordVectors:
    """The word vectors with what their n-grams have learned in them."""
    assert isinstance(encoder, BiLSTMEncoder) and vectors.subwords is not None
    embedding = encoder.embedding
    trained = embedding.table().numpy()[1:]
    change = (TIMES * embedding.ngrams.detach()).numpy()
    subwords = vectors.subwords.plus(change)
    added, _ = SubwordTable(change, subwords.min_n, subwords.max_n).compose_many(vectors.words)
    rows = vectors.matrix.astype(np.float32) + added

    def as_named(words: Sequence[str], rows: np.ndarray) -> WordVectors:
        return WordVectors(words, rows, subwords, name=vectors.name, notes=vectors.notes)

    learned = as_named(vectors.words, rows)
    # A word that was found in another spelling had the vector of that one and its own n-grams, and
    # the unknown word's n-grams have not learned with it.
    words = corpus.vocabulary.words[1:]
    read, _ = learned.lookup(words)
    other = np.flatnonzero(np.abs(read - trained).max(axis=1) > 1e-3 * np.abs(trained).max())
    if len(other):
        more = [*vectors.words, *(words[i] for i in other)]
        learned = as_named(more, np.concatenate([rows, trained[other]]))
    learned.emoji_scores = vectors.emoji_scores
    if vectors.emoji_scores is not None:
        found = word_scores(text, learned, 0)
        if found is not None and len(found) >= len(vectors.emoji_scores):
            learned.emoji_scores = found  # else that text had more emoji, and told more
    return learned


@dataclass(frozen=True)
class Shard(TokenStore):
    """Some sentences of a larger store, under the numbers they have there.

    numbers: of the sentences in the larger store, ascending, int64 `[N]`.
    """

    numbers: np.ndarray = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(cls, arrays: Arrays) -> Shard:
        """What `arrays` has been given of."""
        return cls(arrays["tokens"], arrays["offsets"], None, arrays["numbers"])

    def take(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As in the larger store, of those of the rows that are here."""
        return super().take(np.searchsorted(self.numbers, rows[np.isin(rows, self.numbers)]))

    def checksum(self) -> int:
        """Nothing to compare: the first process has made the shards of all."""
        return 0


def dealt_out(
    corpus: Corpus,
    table: np.ndarray,
    settings: Settings,
    threads: int,
    states: Path,
    ngrams: WordNgrams | None,
) -> TokenStore:
    """Give each process its share; returns this one's, which is all where it is alone."""
    world = current_world()
    if world.size == 1:
        return corpus.store
    about = {"settings": asdict(settings), "threads": threads, "states": str(states.absolute())}
    world.broadcast(about)

    def arrays_of(rank: int) -> Arrays:
        numbers = corpus.trained[rank :: world.size]
        tokens, lengths = corpus.store.take(numbers)
        offsets = np.append(0, np.cumsum(lengths))
        own = {"tokens": tokens, "offsets": offsets, "numbers": numbers}
        if ngrams is not None:
            own |= {f"ngram_{name}": getattr(ngrams, name) for name in _NGRAM_ARRAYS}
            own["ngram_size"] = np.array([ngrams.size])
        return {**own, "table": table, "counts": corpus.counts, "trained": corpus.trained}

    return Shard.of(world.hand_out(arrays_of))


def deal_out_emoji(rows: EmojiRows | None) -> None:
    """Give every process the sentences with emoji; None: there is no second part."""
    world = current_world()
    world.broadcast({"names": list(rows.names)} if rows else {})
    if rows:
        store, labels = rows.store, rows.labels
        arrays = {"tokens": store.tokens, "offsets": store.offsets, "labels": labels}
        world.hand_out(lambda rank: arrays)


def by_all(work: Callable[[], T]) -> T | None:
    """What `work` returns, which pre-trains, all processes together; None in all but the first."""
    return led(work, _help)


def _help() -> None:
    world = current_world()
    about: dict[str, Any] = world.broadcast({})
    if not about:  # the encoder is in the cache
        return
    keep_freed_memory()
    torch.set_num_threads(about["threads"])
    settings, states = Settings(**about["settings"]), Path(about["states"])
    arrays = world.hand_out()
    nothing = np.empty(0, np.int64)
    share = Shard.of(arrays)
    corpus = Corpus(Vocabulary([], []), share, arrays["counts"], arrays["trained"], nothing)
    ngrams = None
    if "ngram_size" in arrays:
        ids, offsets, counts = (arrays[f"ngram_{name}"] for name in _NGRAM_ARRAYS)
        ngrams = WordNgrams(ids, offsets, counts, TIMES, int(arrays["ngram_size"][0]))
    trainer = pretraining(corpus, arrays["table"], settings, states, ngrams=ngrams)
    trainer.fit()
    emoji: dict[str, Any] = world.broadcast({})
    if emoji:
        arrays = world.hand_out()
        store = TokenStore(arrays["tokens"], arrays["offsets"])
        rows = EmojiRows(store, arrays["labels"], emoji["names"])
        emoji_training(trainer.encoder, rows, settings, states, Progress()).fit()
