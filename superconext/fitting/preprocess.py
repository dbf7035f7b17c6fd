"""Preprocessing: what all members of a run share, made once before the first is trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.config.parameters import Config, names_of, other_options
from superconext.core.errors import ConfigError, DataError, plural
from superconext.core.progress import Progress
from superconext.data.auxiliary import (
    SoftRows,
    auxiliary_rows,
    share_matrix,
    soft_rows,
    targets,
)
from superconext.data.dataset import Dataset
from superconext.data.duplicates import Decontamination
from superconext.data.lines import UNNAMED
from superconext.data.reading import read_texts
from superconext.data.token_store import MemoryRows, TokenRows, TokenStore
from superconext.encoders import encoder_class
from superconext.encoders.base import TextIndexer
from superconext.encoders.pretrained import read_facts
from superconext.objectives.base import PoolOptions, parse_options
from superconext.objectives.catalogue import objective_class
from superconext.text.normalize import normalizer_of, parse_normalize
from superconext.text.tokenize import Pieces, Tokenizer
from superconext.training.pool import draw_pool, pool_sources
from superconext.training.pretraining.make import pretrained_encoder

if TYPE_CHECKING:
    from superconext.data.file_rows import TrainingRows

#: Training rows that the probe after each epoch is fitted on.
MOST_MONITORED = 2_000


@dataclass(frozen=True)
class Prepared:
    """What all members of a run share.

    indexer: texts to the token ids of the encoder.
    train, labels: token ids and class indices of the training rows, of a row with soft labels the
        likeliest class.
    shares: the share of each class in the target of each training row, float64 `[N, C]`; None where
        each target is one class.
    taught: the tokens of the rows beside those of the file: related ones, and those that have soft
        labels and no other, which come last.
    dev, dev_labels: the same of the dev rows with a known label, or None.
    pool: token ids of unlabelled sentences, where the objective asks for them, or None.
    facts: profile, vocabulary size, vector source, words of each split unknown to the
        vocabulary, and how many sentences the pool holds.
    init: folder of the pretrained encoder to start from, or None.
    sample: the training rows that probes are fitted on, where it is not all: where those are more
        than memory holds, or some are of a related set.
    pieces: the words of each split, read once: "train", "dev" and "test", as far as they are in
        memory.
    """

    classes: list[str]
    indexer: TextIndexer
    train: TokenStore
    labels: np.ndarray
    dev: TokenStore | None
    dev_labels: np.ndarray | None
    pool: TokenStore | None
    facts: dict[str, Any]
    init: str | None
    sample: np.ndarray | None = None
    pieces: dict[str, Pieces] = field(default_factory=dict)
    shares: np.ndarray | None = None
    taught: list[list[str]] = field(default_factory=list)

    @property
    def probe_shares(self) -> np.ndarray | None:
        """The `shares` of the rows that probes are fitted on."""
        if self.shares is None or self.sample is None:
            return self.shares
        return self.shares[self.sample]

    @property
    def probe_split(self) -> tuple[TokenStore, np.ndarray]:
        """Token ids and class indices of the training rows that probes are fitted on."""
        if self.sample is None:
            return self.train, self.labels
        return self.train.subset(self.sample), self.labels[self.sample]

    @property
    def monitor_split(self) -> tuple[TokenStore, np.ndarray]:
        """About `MOST_MONITORED` rows of `probe_split`, each class having its share and one at
        least: the rows of the quick probe after each epoch."""
        rows, labels = self.probe_split
        if len(labels) <= MOST_MONITORED:
            return rows, labels
        by_class = np.argsort(labels, kind="stable")[:: -(-len(labels) // MOST_MONITORED)]
        kept = np.union1d(by_class, np.unique(labels, return_index=True)[1])
        return rows.subset(kept), labels[kept]

    def emoji_scores(self, config: Config) -> np.ndarray | None:
        """The `Encoder.emoji_scores` of a run whose encoder stays as it is; else None."""
        if not config.freeze:
            return None
        config = replace(config, init=self.init)
        return encoder_class(config.encoder).emoji_scores(config, self.indexer)

    def without(self, rows: np.ndarray) -> Prepared:
        """The same with some training rows left out, given by their places among `probe_split`."""
        rows = rows if self.sample is None else self.sample[rows]
        kept = np.setdiff1d(np.arange(len(self.labels)), rows, assume_unique=True)
        sample = None if self.sample is None else np.flatnonzero(np.isin(kept, self.sample))
        train, labels = self.train.subset(kept), self.labels[kept]
        shares = None if self.shares is None else self.shares[kept]
        return replace(self, train=train, labels=labels, sample=sample, shares=shares)


def preprocess(
    train: Dataset,
    dev: Dataset | None,
    classes: Sequence[str],
    config: Config,
    progress: Progress,
    test_texts: Sequence[str] = (),
    not_drawn: Sequence[str] = (),
) -> Prepared:
    """Fit the encoder's text side and turn every split into token ids and class indices.

    test_texts: texts beside the dev rows that no unlabelled text learned from may repeat.
    not_drawn: labelled texts that are none of the splits', which neither it nor related and soft
        rows may repeat, so that every draw learns from the same.

    Raises DataError for fewer than two classes and for dev rows without a known label,
    ConfigError where the objective wants unlabelled text and none is named, and for a related set
    without a row to learn from.
    """
    wanted = objective_class(config.objective)
    needs_pool = wanted.needs_pool and not config.freeze
    pooled: tuple[str, ...] = ()
    if needs_pool:
        pooled = pool_sources(config.unlabelled, config.objective, train.unlabelled)
    if config.init:
        read_facts(config.init)  # before anything else of a folder that may be a stranger's
    if len(classes) < 2:
        raise DataError(
            f"found {len(classes)} class in the training rows; expected at least two: "
            "add rows with another label"
        )
    held = [*(dev.texts if dev is not None else ()), *test_texts]
    apart = [*held, *not_drawn]
    if train.on_disk is not None:
        own = _from_disk(train.on_disk, classes, config)
    else:
        own = _in_memory(train, apart, classes, config, progress)
    source = config
    if config.pretrain:
        made, cleared = pretrained_encoder(config, own.rows, apart, progress)
        source = replace(config, init=str(made), vectors=None, unlabelled=None)
    encoder = encoder_class(config.encoder)
    indexer = encoder.fit_indexer(own.rows, source, apart, progress)
    tokens_of_classes = wanted.needs_class_tokens and not config.freeze
    encoder.limit(config, indexer, len(classes) * tokens_of_classes)
    if config.pretrain and not config.init:
        indexer.facts["vectors"]["trained_on"] = names_of(config.unlabelled)
        indexer.facts["vectors"]["cleared_of"] = cleared
    judged = _held_rows(dev, test_texts, classes, own.tokenizer, indexer)
    pieces = {**({} if own.pieces is None else {"train": own.pieces}), **judged.pieces}
    # Not of rows that are more than memory holds: a pass over them all, to learn how many words
    # were too rare.
    unknown = {} if own.tokens is None else {"train": indexer.missing_words(own.tokens)}
    cut = {name: indexer.cut(some.lists()) for name, some in pieces.items()}
    if train.on_disk is not None:
        cut["train"] = train.on_disk.longer_than(config.max_length)
    facts: dict[str, Any] = {
        "profile": own.tokenizer.normalizer.named,
        **indexer.facts,
        "unknown": {**unknown, **judged.unknown},
        **own.facts,
        "cut": {name: count for name, count in cut.items() if count},
    }
    progress.summarise(_summary(facts, indexer))
    pool = None
    if needs_pool:
        others = own.tokenizer.many(not_drawn)
        labelled = chain(own.rows, *(some.lists() for some in judged.pieces.values()), others)
        drawn = _pool_tokens(pooled, train.unlabelled, labelled, own.tokenizer, config, progress)
        pool = indexer.store(Pieces.of_lists(drawn))
        facts["pool"] = len(pool)
    labels, sample, shares = _targets(train, own, classes)
    return Prepared(
        classes=list(classes),
        indexer=indexer,
        train=indexer.training_store(own.rows, config),
        labels=labels,
        dev=judged.dev,
        dev_labels=judged.dev_labels,
        pool=pool,
        facts=facts,
        init=source.init,
        sample=sample,
        pieces=pieces,
        shares=shares,
        taught=own.tokens[len(train.texts) :] if own.tokens is not None else [],
    )


@dataclass(frozen=True, eq=False)
class _OwnRows:
    """The training rows, related and soft ones among them, before their words have numbers.

    labels: class indices `[N]` of the rows without the soft ones, which come last.
    sample: as in `Prepared`, of these rows.
    pieces, tokens: words of the file's rows and of all, where they are in memory.
    """

    tokenizer: Tokenizer
    rows: TokenRows
    labels: np.ndarray
    sample: np.ndarray | None
    pieces: Pieces | None = None
    tokens: list[list[str]] | None = None
    soft: SoftRows | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def _in_memory(
    train: Dataset,
    apart: Sequence[str],
    classes: Sequence[str],
    config: Config,
    progress: Progress,
) -> _OwnRows:
    """Training rows of a file that memory holds, and what is learned from beside them, without what
    repeats a text that is kept `apart`: of dev, of test, or not drawn."""
    tokenizer = make_tokenizer(config, train.texts)
    pieces = tokenizer.pieces(train.texts)
    tokens, labels = pieces.lists(), train.labels
    facts: dict[str, Any] = {}
    sample = None
    if config.related:
        related = auxiliary_rows(config.related, tokenizer, classes, apart)
        tokens, labels = [*tokens, *related.tokens], [*labels, *related.labels]
        sample = np.arange(len(train.texts))
        facts["related"] = related.facts
        progress.say(related.summary)
    soft = soft_rows(config.soft_labels, train.ties, tokenizer, classes, apart)
    if soft:
        tokens = [*tokens, *soft.tokens]
        facts["soft_labels"] = soft.facts
        progress.say(
            f"soft labels: {plural(soft.facts['rows'], 'row')}; left out "
            f"{soft.facts['held']} that repeat a held-out text"
        )
    beside, repeated = _beside(train, apart, tokenizer, config)
    if beside:
        facts["without_label"] = {"learned_from": len(beside), "left_out": repeated}
    rows = MemoryRows(tokenizer, tokens, beside)
    numbers = _numbers(labels, classes)
    return _OwnRows(tokenizer, rows, numbers, sample, pieces, tokens, soft, facts)


def check_streamed(config: Config) -> None:
    """Raise ConfigError for what cannot use training rows that are read from the disk."""
    for name in ("related", "soft_labels"):
        if getattr(config, name):
            raise ConfigError(
                f"{name} = {getattr(config, name)!r} beside training rows that are read from "
                f"the disk; expected a training file below 64 MB: leave out {name}"
            )
    if not encoder_class(config.encoder).reads_streams:
        raise ConfigError(
            f"encoder = {config.encoder!r} beside training rows that are read from the disk; "
            "expected one that can read them, such as bilstm: train on a file below 64 MB"
        )


def _from_disk(rows: TrainingRows, classes: Sequence[str], config: Config) -> _OwnRows:
    """Training rows that are read from the disk. Raises what `check_streamed` does."""
    check_streamed(config)
    numbers = _numbers(rows.source.classes, classes)[rows.labels]
    return _OwnRows(rows.tokenizer, rows, numbers, rows.sample)


@dataclass(frozen=True, eq=False)
class _HeldRows:
    """The dev and test rows: their words, of each what the vocabulary lacks, and of dev the rows
    with a known label as `Prepared` has them."""

    pieces: dict[str, Pieces]
    unknown: dict[str, Any]
    dev: TokenStore | None = None
    dev_labels: np.ndarray | None = None


def _held_rows(
    dev: Dataset | None,
    test_texts: Sequence[str],
    classes: Sequence[str],
    tokenizer: Tokenizer,
    indexer: TextIndexer,
) -> _HeldRows:
    """Raises DataError for dev rows without a known label."""
    found = _HeldRows({}, {})
    if dev is not None and len(dev):
        # Rows of a class that training never sees cannot help to choose anything.
        learned = set(classes)
        known = np.array([i for i, label in enumerate(dev.labels) if label in learned], np.int64)
        if not len(known):
            raise DataError(
                "no dev row has a label of the training data; found "
                f"{sorted(set(dev.labels))[:5]}, expected some of {list(classes)[:5]}"
            )
        found.pieces["dev"] = words = tokenizer.pieces(dev.texts)
        store = indexer.store(words)
        if len(known) < len(dev):
            store = store.subset(known)
        tokens = words.lists()
        found.unknown["dev"] = indexer.missing_words([tokens[i] for i in known])
        labels = _numbers([dev.labels[i] for i in known], classes)
        found = replace(found, dev=store, dev_labels=labels)
    if len(test_texts):
        found.pieces["test"] = tokenizer.pieces(test_texts)
        found.unknown["test"] = indexer.missing_words(found.pieces["test"].lists())
    return found


def _numbers(labels: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """Class indices `[N]`."""
    index = {name: k for k, name in enumerate(classes)}
    return np.array([index[label] for label in labels])


def _targets(
    train: Dataset, own: _OwnRows, classes: Sequence[str]
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """`labels`, `sample` and `shares` of `Prepared`."""
    labels, sample, shares = own.labels, own.sample, None
    if train.shares or own.soft:
        given = share_matrix(train.shares, classes) if train.shares else None
        shares = targets(labels, given, own.soft, len(classes))
    if own.soft:
        labels = np.concatenate([labels, own.soft.shares.argmax(axis=1)])
        if sample is not None:
            sample = np.r_[sample, len(own.labels) : len(labels)]
    return labels, sample, shares


def learns_from_text(config: Config) -> bool:
    """Whether a run trains word vectors, or pretrains the encoder, on text without labels."""
    brought = config.vectors or config.init or config.vector_method == "random"
    return config.pretrain or not (brought or encoder_class(config.encoder).reads_text)


def _beside(
    train: Dataset,
    apart: Sequence[str],
    tokenizer: Tokenizer,
    config: Config,
) -> tuple[list[list[str]], int]:
    """Tokens of the texts that the training file has without a label, to train word vectors or
    pretrain an encoder on, and how many are left out because they repeat one kept apart."""
    if not train.unlabelled or not learns_from_text(config):
        return [], 0
    cleared = Decontamination(apart, tokenizer)
    pairs = ((text, tokenizer(text)) for text in train.unlabelled)
    found = [tokens for text, tokens in pairs if tokens and not cleared.repeats(text, tokens)]
    return found, cleared.removed


def _pool_tokens(
    paths: Sequence[str],
    own: Sequence[str],
    held: Iterable[Sequence[str]],
    tokenizer: Tokenizer,
    config: Config,
    progress: Progress,
) -> list[list[str]]:
    """Tokens of the sentences in the unlabelled pool of an objective that needs one.

    own: texts of the training file that have no label.
    """
    kind = objective_class(config.objective)
    given = other_options(config.options, encoder_class(config.encoder).options_type)
    options: object = parse_options(given, kind.options_type)
    assert isinstance(options, PoolOptions)
    read = [read_texts(path, encoding=UNNAMED) for path in paths]
    texts = [*own, *(text for one in read for text in one.texts)]
    source = ", ".join([*["rows without a label"] * bool(own), *paths])
    kept, passed = draw_pool(texts, tokenizer, held, options.pool_size, config.seed, source)
    progress.say(
        f"pool: {len(kept)} of {len(texts)} sentences of {source}; left out {passed} that are "
        "empty or repeat another or a labelled text"
    )
    return kept


def make_tokenizer(config: Config, texts: Sequence[str]) -> Tokenizer:
    """The tokenizer of a configuration; profile `auto` is decided on the training texts, or leaves
    them as they are for an encoder that reads text."""
    named = config.normalize
    whole = encoder_class(config.encoder).reads_text
    if whole and parse_normalize(named)[0] == "auto":
        named = named.replace("auto", "none", 1)
    return Tokenizer(normalizer_of(named, texts), config.bridge, words=not whole)


#: Share of the words that vectors have, from which they are of use.
_FEW = 0.5


def _summary(facts: dict[str, Any], indexer: TextIndexer) -> str:
    """How much of each split the training vocabulary and the vectors lack, for the user."""
    words = f", {facts['words']} words" if "words" in facts else ""
    lines = [f"text: spelling rules {facts['profile']!r}{words}"]
    lines += [
        f"not in train: {report['oov_token_share']:.1%} of {split}'s {report['tokens']} tokens, "
        f"{report['oov_type_share']:.1%} of its {report['types']} words"
        for split, report in facts["unknown"].items()
        if report and split != "train"
    ]
    if found := facts.get("without_label"):
        out = f" ({found['left_out']} left out, as they repeat a held-out text)"
        rows = plural(found["learned_from"], "row")
        told = f"also learned from: the texts of {rows} without a label"
        lines.append(told + out * bool(found["left_out"]))
    if facts["cut"]:
        named = ", ".join(plural(count, f"{name} text") for name, count in facts["cut"].items())
        why = "the model's longest input" if indexer.limited else "--max-length"
        lines.append(f"cut after {getattr(indexer, 'max_length', 0)} tokens ({why}): {named}")
    if "vectors" in facts:
        vectors = facts["vectors"]
        size, name = vectors["dimension"], vectors["name"]
        size = "" if f" {size}d" in name else f" of {size} dimensions"
        few = "; with so few they are of little use" * (vectors["coverage"] < _FEW)
        lines.append(f"vectors: {name}{size}, for {vectors['coverage']:.1%} of the words{few}")
    return "\n".join(lines)
