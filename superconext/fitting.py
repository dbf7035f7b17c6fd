"""The whole stair: labelled texts in, a trained and probed model out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from superconext.config import Config
from superconext.data.sampler import make_batches
from superconext.encoders.base import Encoder
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.embedding import WordEmbedding
from superconext.encoders.projection import projected_size, projection_head
from superconext.errors import ConfigError
from superconext.metrics import collapse_report
from superconext.model import Model, member_features
from superconext.objectives.base import Objective, Shape
from superconext.objectives.catalogue import objective_class
from superconext.preparing import Prepared, prepare
from superconext.probe import Probe, dev_key, fit_probe
from superconext.training.callbacks import KEEPERS, Callback, DevProbe, Record
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
        dev: rows on which the probe's C (and with `keep="best"` the epoch) is chosen.
        classes: the distinct labels in the order of the probability columns; sorted if None.
        checkpoint: folder to save to after each epoch and to go on from if it holds a
            state of the same training.

    Raises:
        DataError, ConfigError, VectorsError, TrainingError: see there.
    """
    progress = progress or Progress()
    check_device(config.device)
    with _fixed_threads(config.threads), torch.random.fork_rng(devices=[]):
        prepared = prepare((texts, labels), dev, classes or sorted(set(labels)), config, progress)
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
        prepared.tokenizer,
        prepared.vocabulary,
        prepared.reserve,
        prepared.ngrams,
        encoders,
        objectives,
        probe,
    )
    collapse = collapse_report(features)
    return Fitted(model, history, features, prepared.facts, collapse, interrupted)


def check_device(name: str) -> None:
    """Raise ConfigError unless torch knows the device, it is there, and it can train."""
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda", "mps", "xpu"):
            raise RuntimeError(f"{device.type} cannot train")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise ConfigError(
            f"device = {name!r} is not available here; expected 'cpu', or a device torch can "
            "use such as 'cuda'"
        ) from None


def _trainer(
    prepared: Prepared,
    config: Config,
    member: int,
    progress: Progress,
    callbacks: Sequence[Callback],
) -> Trainer:
    seed = config.seed + member
    torch.manual_seed(seed)
    embedding = WordEmbedding(
        torch.from_numpy(prepared.table),
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
    keeper = KEEPERS[config.keep]
    if keeper is not None:
        hooks.append(keeper())
    hooks.append(EpochLines(progress, member, config.members))
    return Trainer(
        encoder,
        head,
        kind.build(config, shape),
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
        trainer.finish()
        progress.say(f"interrupted: keeping the {len(trainer.history)} finished epochs")
        return True
    return False


def _folded(encoder: Encoder) -> Encoder:
    """The encoder as it is saved: n-grams of vocabulary words added into their rows."""
    if isinstance(encoder, BiLSTMEncoder):
        encoder.embedding.fold()
    return encoder.eval()


def _dev_score(prepared: Prepared, trainer: Trainer) -> float:
    assert prepared.dev is not None and prepared.dev_labels is not None
    features = member_features([trainer.encoder], prepared.train)
    probe = fit_probe(features, prepared.labels, grid=(EPOCH_PROBE_C,))
    scores = probe.probabilities(member_features([trainer.encoder], prepared.dev))
    return dev_key(scores, prepared.dev_labels)[0]


def _final_probe(prepared: Prepared, encoders: Sequence[Encoder], features: np.ndarray) -> Probe:
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
