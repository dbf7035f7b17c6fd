"""The stages of one member's training: its objective, then fine-tuning if asked for.

Fine-tuning starts from the encoder that the first stage ends with, by cross-entropy and with
all weights. It is the second mode of SuperConText (Table 3), which gives no learning rate for
it. After it, the softmax is the model's native prediction.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from superconext.config.parameters import Config, own_options
from superconext.core.errors import plural
from superconext.core.progress import Progress
from superconext.core.registry import expect_floats, own_fault
from superconext.data.sampler import Batches, make_batches
from superconext.encoders import encoder_class
from superconext.encoders.base import Encoder, EncoderOutput, encode_rows
from superconext.encoders.layers import projection_head
from superconext.fitting.model import member_features, vectors_and_scores
from superconext.fitting.preprocess import Prepared
from superconext.objectives.base import Objective, Shape
from superconext.objectives.catalogue import objective_class
from superconext.probe.base import dev_score, softmax
from superconext.probe.logistic_regression import fit_probe
from superconext.training.callbacks import (
    KEEPERS,
    Callback,
    DevProbe,
    EpochLines,
    Record,
    StepBar,
)
from superconext.training.checkpoint import Checkpointer
from superconext.training.trainer import Trainer, decided_epochs

#: C of the quick probe after each epoch; the final probe's C is chosen on dev.
EPOCH_PROBE_C = 0.01

#: Adam's step size in the second stage, at most: a pretrained encoder keeps its own, lower one.
FINETUNING_RATE = 0.001


#: Between the seeds of two members: runs whose seeds are neighbours have no member in common,
#: so that their spread is what it seems.
_SEED_STRIDE = 1_000_000
_SEEDS = 2**31


@dataclass
class Member:
    """One trained encoder and the objective it was trained with last; None of a frozen encoder.

    history: one record an epoch, of both stages in turn; `stage` tells them apart where a
        second one was asked for.
    interrupted: whether training was stopped by the user.
    finetuned: whether the second stage has begun.
    """

    encoder: Encoder
    objective: Objective | None
    history: list[Record]
    interrupted: bool
    finetuned: bool


def member_config(config: Config, member: int) -> Config:
    """The configuration that the member of number `member`, from 0, is trained by."""
    return replace(config, seed=(config.seed + member * _SEED_STRIDE) % _SEEDS)


def second_stage(config: Config) -> Config | None:
    """What the second stage is trained by, as a configuration of its own; None without one."""
    if not config.finetune_epochs:
        return None
    return replace(
        config,
        objective="cross_entropy",
        options=own_options(config.options, encoder_class(config.encoder).options_type),
        epochs=config.finetune_epochs,
        learning_rate=min(FINETUNING_RATE, config.learning_rate or FINETUNING_RATE),
        finetune_epochs=0,
    )


def total_epochs(config: Config) -> int:
    """Epochs of all stages of all members."""
    if config.freeze:
        return 0
    second = second_stage(config)
    stages = [config] if second is None else [config, second]
    return config.members * sum(decided_epochs(stage) for stage in stages)


def reads_dev(config: Config) -> bool:
    """Whether training itself reads how well each epoch does on dev."""
    read = config.keep == "best" or objective_class(config.objective).reads_dev_score
    return read and not config.freeze


def train_member(
    prepared: Prepared,
    config: Config,
    member: int,
    progress: Progress,
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
    monitor: bool = True,
) -> Member:
    """Train the member of number `member`, from 0, through its stages.

    monitor: whether each epoch's record has a `dev_score`, also where nothing reads it.

    Raises TrainingError, and KeyboardInterrupt where no epoch was finished.
    """
    config = member_config(config, member)
    if config.freeze:
        torch.manual_seed(config.seed)
        encoder = _new_encoder(prepared, config).to(torch.device(config.device))
        return Member(encoder, None, [], False, False)
    trainer = _trainer(prepared, config, member, progress, callbacks, monitor)
    _try_out(prepared, trainer)
    saver = Checkpointer(checkpoint, member, progress=progress) if checkpoint else None
    interrupted = _train(trainer, saver, progress, _title("training", config, member))
    _add_seconds(prepared, saver)
    second = second_stage(config)
    if second is None:
        return Member(trainer.encoder, trainer.objective, trainer.history, interrupted, False)
    history: list[Record] = [{"stage": 1, **record} for record in trainer.history]
    if interrupted:
        return Member(trainer.encoder, trainer.objective, history, True, False)
    progress.say("fine-tuning all weights by cross-entropy")
    told = member, progress, callbacks, monitor
    tuner = _tuner(prepared, second, trainer.encoder, *told)
    saver = Checkpointer(checkpoint, member, "finetune", progress) if checkpoint else None
    before = {name: value.clone() for name, value in trainer.weights().items()}
    try:
        interrupted = _train(tuner, saver, progress, _title("fine-tuning", config, member))
    except KeyboardInterrupt:
        tuner.optimizer.catch_up()  # else what it owes is paid onto the weights put back
        trainer.load_weights(before)
        progress.say("interrupted before an epoch of fine-tuning was finished")
        return Member(trainer.encoder, trainer.objective, history, True, False)
    _add_seconds(prepared, saver)
    for record in tuner.history:
        history.append({"stage": 2, **record, "epoch": len(trainer.history) + record["epoch"]})
    return Member(tuner.encoder, tuner.objective, history, interrupted, True)


def _new_encoder(prepared: Prepared, config: Config, class_tokens: int = 0) -> Encoder:
    """An encoder as training starts with it."""
    config = replace(config, init=prepared.init)
    return encoder_class(config.encoder).build(config, prepared.indexer, class_tokens)


def _trainer(
    prepared: Prepared,
    config: Config,
    member: int,
    progress: Progress,
    callbacks: Sequence[Callback],
    monitor: bool,
) -> Trainer:
    """Of the first stage, with an encoder of its own."""
    torch.manual_seed(config.seed)
    kind = objective_class(config.objective)
    encoder = _new_encoder(prepared, config, len(prepared.classes) * kind.needs_class_tokens)
    projection = config.projection if kind.uses_projection else "identity"
    head = projection_head(projection, encoder.sentence_size)
    shape = Shape(
        classes=len(prepared.classes),
        sentence=encoder.sentence_size,
        projected=encoder.sentence_size,
    )
    batches = _batches(kind, prepared, config)
    objective = kind.build(config, shape)
    if encoder.class_tokens and objective.class_tokens == "words":
        encoder.start_class_tokens(prepared.indexer, prepared.classes)
    trainer = Trainer(
        encoder,
        head,
        objective,
        batches,
        prepared.train,
        prepared.labels,
        config,
        [
            *_hooks(prepared, config, member, progress, monitor, _probe_dev_score),
            *callbacks,
        ],
        prepared.pool,
        shares=prepared.shares,
    )
    if objective.guesses_words and trainer.pool and not trainer.pool.guesses:
        progress.warn(
            "language_model is left out: the encoder has no head that guesses words; expected a "
            "model with one: leave the option out"
        )
    return trainer


@torch.no_grad()
def _try_out(prepared: Prepared, trainer: Trainer) -> None:
    """Encode two rows of each class and predict them by the objective's own rule, before any time
    is spent on training. It changes nothing, and raises ConfigError for what cannot be right."""
    by_class = np.argsort(prepared.labels, kind="stable")
    counts = np.bincount(prepared.labels, minlength=len(prepared.classes))
    starts = np.cumsum(counts) - counts
    rows = by_class[np.concatenate([starts[counts > 0], starts[counts > 1] + 1])]
    store, encoder, objective = prepared.train.subset(rows), trainer.encoder, trainer.objective
    if type(objective).end_training is not Objective.end_training:
        objective = copy.deepcopy(objective)
    modes = encoder.training, objective.training
    encoder.eval(), objective.eval()

    def encode(some: np.ndarray) -> EncoderOutput:
        return encode_rows(encoder, store, some, whole=objective.needs_token_states)

    sentence = encode(np.arange(len(store))).sentence
    shape = len(store), encoder.sentence_size
    expect_floats(encoder, "forward as sentence", sentence, shape)
    if not type(encoder).__module__.startswith("superconext."):
        lengths = prepared.train.lengths
        short, long = lengths.argmin(), lengths.argmax()
        long = long if short != long else (short + 1) % len(lengths)  # all are as long
        pair = prepared.train.subset(np.array([short, long]))
        alone = encode_rows(encoder, pair, np.arange(1)).sentence[0]
        beside = encode_rows(encoder, pair, np.arange(2), whole=True).sentence[0]
        if not torch.allclose(alone, beside, rtol=1e-3, atol=1e-4 * float(beside.abs().max())):
            raise own_fault(
                encoder,
                "a sentence vector of forward that changes with the sentences beside it",
                "the same in every batch: leave padding out, by the lengths",
            )
    objective.end_training(encode, trainer.labels[torch.from_numpy(rows)].to(trainer.device))
    late = objective.state_dict().keys() - trainer.objective.state_dict().keys()
    if late:  # which no run could load
        raise own_fault(
            objective,
            f"the tensor {min(late)!r}, made in end_training",
            "all parameters and buffers made in __init__, and filled later",
        )
    vectors_and_scores(encoder, objective, store, len(prepared.classes))
    encoder.train(modes[0]), objective.train(modes[1])


def _tuner(
    prepared: Prepared,
    config: Config,
    encoder: Encoder,
    member: int,
    progress: Progress,
    callbacks: Sequence[Callback],
    monitor: bool,
) -> Trainer:
    """Of the second stage, whose configuration is `second_stage`'s."""
    kind = objective_class(config.objective)
    width = encoder.sentence_size
    return Trainer(
        encoder,
        nn.Identity(),
        kind.build(config, Shape(len(prepared.classes), width, width)),
        _batches(kind, prepared, config),
        prepared.train,
        prepared.labels,
        config,
        [*_hooks(prepared, config, member, progress, monitor, _native_dev_score), *callbacks],
        shares=prepared.shares,
    )


def _batches(kind: type[Objective], prepared: Prepared, config: Config) -> Batches:
    """The batches an objective asks for."""
    sizes = config.batch_size, config.steps_per_epoch
    fewest = encoder_class(config.encoder).fewest_batches
    return make_batches(kind.batches, prepared.labels, *sizes, config.seed, fewest)


def _hooks(
    prepared: Prepared,
    config: Config,
    member: int,
    progress: Progress,
    monitor: bool,
    score: Callable[[Prepared, Trainer], float],
) -> list[Callback]:
    hooks: list[Callback] = []
    if prepared.dev is not None and (monitor or reads_dev(config)):
        hooks.append(DevProbe(lambda trainer: score(prepared, trainer)))
    keeper = KEEPERS[config.keep]
    if keeper is not None:
        hooks.append(keeper())
    hooks.append(EpochLines(progress, member, config.members))
    return hooks


def _title(what: str, config: Config, member: int) -> str:
    return what if config.members == 1 else f"{what} {member + 1}/{config.members}"


def _train(trainer: Trainer, saver: Checkpointer | None, progress: Progress, title: str) -> bool:
    """Train; True if the user interrupted it after at least one epoch."""
    if saver:
        saver.restore(trainer)
        trainer.callbacks.append(saver)
    try:
        with progress.bar(title) as advance:
            trainer.callbacks.append(StepBar(advance))
            trainer.fit()
    except KeyboardInterrupt:
        if not trainer.history:
            raise
        trainer.finish()
        epochs, more = plural(len(trainer.history), "finished epoch"), trainer.so_far.step
        begun = f" and {plural(more, 'batch')} of the next" if more else ""
        progress.say(f"interrupted after {epochs}{begun}")
        return True
    return False


def _add_seconds(prepared: Prepared, saver: Checkpointer | None) -> None:
    """Into the facts: what a stopped run's training took that was not done again."""
    if saver is not None:
        known = prepared.facts.get("seconds_before", (0.0, 0.0))
        added = tuple(one + other for one, other in zip(known, saver.before, strict=True))
        prepared.facts["seconds_before"] = added


def _probe_dev_score(prepared: Prepared, trainer: Trainer) -> float:
    """Dev accuracy of a quick probe on the encoder as it is."""
    assert prepared.dev is not None and prepared.dev_labels is not None
    rows, labels = prepared.monitor_split
    features = member_features([trainer.encoder], rows)
    probe = fit_probe(features, labels, grid=(EPOCH_PROBE_C,))
    scores = probe.probabilities(member_features([trainer.encoder], prepared.dev))
    return dev_score(scores, prepared.dev_labels)[0]


def _native_dev_score(prepared: Prepared, trainer: Trainer) -> float:
    """Dev accuracy of the objective's own rule."""
    assert prepared.dev is not None and prepared.dev_labels is not None
    models = trainer.encoder, trainer.objective
    _, scores = vectors_and_scores(*models, prepared.dev, len(prepared.classes))
    assert scores is not None
    return dev_score(softmax(scores), prepared.dev_labels)[0]
