"""The whole stair: labelled texts in, a trained and probed model out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from superconext.config import Config
from superconext.data.sampler import make_batches
from superconext.data.token_store import TokenStore, build_store
from superconext.encoders.base import Encoder
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.embedding import WordEmbedding
from superconext.encoders.projection import projected_size, projection_head
from superconext.errors import ConfigError, DataError
from superconext.initial import InitialVectors, initial_vectors
from superconext.metrics import collapse_report
from superconext.model import Model, member_features, store_with_newcomers
from superconext.objectives.base import Objective, Shape
from superconext.objectives.catalogue import objective_class
from superconext.probe import Probe, dev_key, fit_probe
from superconext.text.ngrams import NgramVocabulary, WordNgrams
from superconext.text.normalize import Normalizer, choose_profile
from superconext.text.tokenize import tokenize
from superconext.text.vocabulary import Vocabulary
from superconext.training.callbacks import Callback, DevProbe, KeepBest, Record
from superconext.training.checkpoint import Checkpointer
from superconext.training.progress import EpochLines, Progress, StepBar
from superconext.training.trainer import Trainer

#: C of the quick probe after each epoch; the final probe's C is chosen on dev.
EPOCH_PROBE_C = 0.01


@dataclass
class Fitted:
    """A trained model and what was learned on the way.

    history: one record an epoch, with `member` from 1.
    features: sentence vectors of the training rows `[N, d]`.
    facts: normalisation profile, vector source, words unknown to the vocabulary.
    interrupted: whether training was stopped by the user.
    """

    model: Model
    history: list[Record]
    features: np.ndarray
    facts: dict[str, Any]
    collapse: dict[str, Any]
    interrupted: bool = False


@dataclass
class _Prepared:
    """What all members share."""

    normalizer: Normalizer
    vocabulary: Vocabulary
    ngrams: NgramVocabulary | None
    word_ngrams: WordNgrams | None
    initial: InitialVectors
    classes: list[str]
    train: TokenStore
    labels: np.ndarray
    dev: TokenStore | None
    dev_labels: np.ndarray | None
    facts: dict[str, Any] = field(default_factory=dict)


def fit_model(
    texts: Sequence[str],
    labels: Sequence[str],
    config: Config,
    dev: tuple[Sequence[str], Sequence[str]] | None = None,
    *,
    classes: Sequence[str] | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
) -> Fitted:
    """Train encoders on labelled texts and probe them.

    Args:
        texts, labels: the training rows `[N]`; at least two classes of two rows.
        dev: rows on which the probe's C (and with `keep_best` the epoch) is chosen.
        classes: the distinct labels in the order of the probability columns; sorted if None.
        checkpoint: folder to save to after each epoch and to go on from if it holds a
            state of the same training.

    Raises:
        DataError, ConfigError, VectorsError, TrainingError: see there.
    """
    progress = progress or Progress()
    check_device(config.device)
    with _fixed_threads(config.threads), torch.random.fork_rng(devices=[]):
        prepared = _prepare(texts, labels, classes or sorted(set(labels)), config, dev, progress)
        encoders: list[Encoder] = []
        objectives: list[Objective] = []
        history: list[Record] = []
        interrupted = False
        for member in range(config.members):
            trainer = _trainer(prepared, config, member, progress, callbacks)
            saver = Checkpointer(checkpoint, member) if checkpoint else None
            interrupted = _train(trainer, saver, progress, config, member)
            history += [{"member": member + 1, **record} for record in trainer.history]
            encoders.append(_folded(trainer.encoder))
            objectives.append(trainer.objective.eval())
            if interrupted:
                break
        features = member_features(encoders, prepared.train)
        probe = _final_probe(prepared, encoders, features)
    model = Model(
        config,
        prepared.classes,
        prepared.normalizer,
        prepared.vocabulary,
        prepared.initial.reserve,
        prepared.ngrams,
        encoders,
        objectives,
        probe,
    )
    collapse = collapse_report(features)
    return Fitted(model, history, features, prepared.facts, collapse, interrupted)


def check_device(name: str) -> None:
    """Raise ConfigError unless torch knows the device and it is there."""
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError):
        raise ConfigError(
            f"device = {name!r} is not available here; expected 'cpu', or a device torch can "
            "use such as 'cuda'"
        ) from None


def _prepare(
    texts: Sequence[str],
    labels: Sequence[str],
    classes: Sequence[str],
    config: Config,
    dev: tuple[Sequence[str], Sequence[str]] | None,
    progress: Progress,
) -> _Prepared:
    if len(classes) < 2:
        raise DataError(
            f"found {len(classes)} class in {len(labels)} training rows; expected at least two: "
            "add rows with another label"
        )
    profile = choose_profile(texts) if config.normalize == "auto" else config.normalize
    normalizer = Normalizer(profile)
    tokens = [tokenize(normalizer(text)) for text in texts]
    vocabulary = Vocabulary.build(tokens, min_count=config.min_count)
    initial = initial_vectors(config, vocabulary, tokens, normalizer, progress)

    ngrams = NgramVocabulary.build(vocabulary.words[2:]) if config.subwords else None

    index = {name: k for k, name in enumerate(classes)}
    facts: dict[str, Any] = {"profile": profile, "words": len(vocabulary), **initial.facts}
    dev_store, dev_labels = None, None
    if dev is not None and len(dev[0]):
        dev_tokens = [tokenize(normalizer(text)) for text in dev[0]]
        dev_store = store_with_newcomers(
            dev_tokens, vocabulary, initial.reserve, ngrams, config.max_length
        )
        known = np.array([label in index for label in dev[1]])
        if not known.any():
            raise DataError(
                f"no dev row has a label of the training data; found {sorted(set(dev[1]))[:5]}, "
                f"expected some of {classes[:5]}"
            )
        # Rows of a class never trained cannot help to choose anything.
        dev_labels = np.array([index.get(label, -1) for label in dev[1]])
        facts["dev_unknown"] = vocabulary.oov_report(dev_tokens)
    return _Prepared(
        normalizer,
        vocabulary,
        ngrams,
        ngrams.encode(vocabulary.words) if ngrams else None,
        initial,
        list(classes),
        build_store([vocabulary.encode(row) for row in tokens], config.max_length),
        np.array([index[label] for label in labels]),
        dev_store,
        dev_labels,
        facts,
    )


def _trainer(
    prepared: _Prepared,
    config: Config,
    member: int,
    progress: Progress,
    callbacks: Sequence[Callback],
) -> Trainer:
    seed = config.seed + member
    torch.manual_seed(seed)
    embedding = WordEmbedding(
        torch.from_numpy(prepared.initial.table),
        config.tune_vectors,
        len(prepared.ngrams) if prepared.ngrams else 0,
        prepared.word_ngrams,
    )
    encoder = BiLSTMEncoder(
        embedding,
        hidden_size=config.hidden_size,
        layers=config.layers,
        dropout=config.dropout,
        word_dropout=config.word_dropout,
        pooling=config.pooling,
    )
    kind = objective_class(config.objective)
    projection = config.projection if kind.uses_projection else "identity"
    head = projection_head(projection, encoder.sentence_size, config.projection_size)
    shape = Shape(
        classes=len(prepared.classes),
        sentence=encoder.sentence_size,
        projected=projected_size(projection, encoder.sentence_size, config.projection_size),
    )
    batches = make_batches(
        kind.batches, prepared.labels, config.batch_size, config.steps_per_epoch, seed
    )
    hooks: list[Callback] = []
    if prepared.dev is not None:
        hooks.append(DevProbe(lambda trainer: _dev_score(prepared, trainer)))
        if config.keep_best:
            hooks.append(KeepBest())
    hooks.append(EpochLines(progress, member, config.members))
    return Trainer(
        encoder,
        head,
        kind.from_config(config, shape),
        batches,
        prepared.train,
        prepared.labels,
        config,
        [*hooks, *callbacks],
    )


def _train(
    trainer: Trainer,
    saver: Checkpointer | None,
    progress: Progress,
    config: Config,
    member: int,
) -> bool:
    """Train; True if the user interrupted it after at least one epoch."""
    if saver:
        saver.restore(trainer)
        trainer.callbacks.append(saver)
    title = "training" if config.members == 1 else f"training {member + 1}/{config.members}"
    try:
        with progress.bar(title) as advance:
            trainer.callbacks.append(StepBar(advance))
            trainer.fit()
    except KeyboardInterrupt:
        if not trainer.history:
            raise
        progress.say(f"interrupted: keeping the {len(trainer.history)} finished epochs")
        return True
    return False


def _folded(encoder: Encoder) -> Encoder:
    """The encoder as it is saved: n-grams of vocabulary words added into their rows."""
    if isinstance(encoder, BiLSTMEncoder):
        encoder.embedding.fold()
    return encoder.eval()


def _dev_score(prepared: _Prepared, trainer: Trainer) -> float:
    assert prepared.dev is not None and prepared.dev_labels is not None
    features = member_features([trainer.encoder], prepared.train)
    probe = fit_probe(features, prepared.labels, grid=(EPOCH_PROBE_C,))
    scores = probe.probabilities(member_features([trainer.encoder], prepared.dev))
    return dev_key(scores, prepared.dev_labels)[0]


def _final_probe(prepared: _Prepared, encoders: Sequence[Encoder], features: np.ndarray) -> Probe:
    if prepared.dev is None:
        return fit_probe(features, prepared.labels)
    dev_features = member_features(encoders, prepared.dev)
    return fit_probe(features, prepared.labels, dev_features, prepared.dev_labels)


@contextmanager
def _fixed_threads(threads: int) -> Iterator[None]:
    """Limit torch's and BLAS's threads inside the block, and put them back after it."""
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        torch.set_num_threads(before)
