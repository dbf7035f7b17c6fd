"""Validation of a configuration, once, before any file is read: what cannot be is refused.

What would only be slow is warned about: some processors emulate bfloat16, many times slower.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from superconext.config.parameters import (
    BY_NAME,
    OF_TRAINING,
    Config,
    names_of,
    resolve,
)
from superconext.core.arithmetic import bfloat16_slowdown
from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.encoders import encoder_class
from superconext.encoders.compiled_gates import warn_without_kernel
from superconext.encoders.indexer import WordIndexer
from superconext.fitting.cross_validation import check_folds
from superconext.fitting.stages import reads_dev
from superconext.objectives.base import Shape
from superconext.objectives.catalogue import objective_class
from superconext.probe import probe_class
from superconext.probe.base import FEWEST_DEV_ROWS
from superconext.probe.logistic_regression import LogisticRegressionProbe
from superconext.training.pool import pool_sources
from superconext.training.pretraining.make import check_pretraining

#: Ratios up to here are no slowdown worth a line.
SLOWER = 1.2


def check_config(config: Config, own_text: bool = False) -> None:
    """Raise ConfigError for a device that is not there, for members, unlabelled text, pretraining
    or options that cannot be, and for an unknown objective.

    own_text: whether the training file may bring texts without a label.
    """
    check_device(config.device)
    check_folds(config)
    _check_probe(config)
    check_pretraining(config)
    if objective_class(config.objective).needs_pool and not config.freeze and not own_text:
        pool_sources(config.unlabelled, config.objective)
    _check_encoder(config)
    _check_options(config)


def needs_every_row(config: Config, held: float) -> bool:
    """Whether no rows are held back, where `held` would be: so few choose no C, training does not
    read them, and what a pretrained model learns from one more row is seen."""
    read = held >= FEWEST_DEV_ROWS or reads_dev(config)
    return encoder_class(config.encoder).reads_model and not read


def _check_encoder(config: Config) -> None:
    """Raise ConfigError for an unknown encoder, and for what this one cannot do."""
    encoder = encoder_class(config.encoder)
    encoder.check(config)
    tokens = objective_class(config.objective).needs_class_tokens and not config.freeze
    if tokens and not encoder.has_class_tokens:
        raise ConfigError(
            f"encoder = {config.encoder!r} with objective = {config.objective!r}, which reads "
            "texts with class tokens; expected an encoder that has them: use bilstm, or another "
            "objective"
        )
    vectors_alone = config.freeze and config.encoder == "mean"
    if (config.init or config.pretrain) and not (encoder.reads_pretrained or vectors_alone):
        asked = "pretrain" if config.pretrain else f"init = {config.init!r}"
        raise ConfigError(
            f"{asked} with encoder = {config.encoder!r}, which cannot start from a pretrained "
            "encoder; expected bilstm: leave it out, or use that encoder"
        )
    if config.vectors and not issubclass(getattr(encoder, "indexer_class", object), WordIndexer):
        raise ConfigError(
            f"vectors = {config.vectors!r} with encoder = {config.encoder!r}, which reads no word "
            "vectors; expected one that does, such as bilstm: leave it out, or use that encoder"
        )
    if config.freeze and (config.finetune_epochs or config.members > 1):
        name = "finetune_epochs" if config.finetune_epochs else "members"
        raise ConfigError(
            f"freeze with {name} = {getattr(config, name)}: expected one encoder that stays as it "
            f"is: set {name} to {0 if config.finetune_epochs else 1}, or leave out freeze"
        )


def _check_probe(config: Config) -> None:
    """Raise ConfigError for an unknown probe, and for what only a logistic regression can do."""
    if probe_class(config.probe_features) is LogisticRegressionProbe:
        return
    found = {
        "calibrate": config.calibrate,
        "logit_adjustment": config.logit_adjustment != 0,
    }
    for name in (name for name, asked in found.items() if asked):
        raise ConfigError(
            f"{name} with probe_features = {config.probe_features!r}: expected a logistic "
            "regression, whose weights it changes: leave it out, or use another probe"
        )


def _check_options(config: Config) -> None:
    """Build the objective for two classes, without weights: it says what is wrong by then."""
    objective = objective_class(config.objective)
    width = encoder_class(config.encoder).width_of(config)
    with torch.device("meta"):
        objective.build(config, Shape(classes=2, sentence=width, projected=width))


def check_device(name: str) -> None:
    """Raise ConfigError unless torch knows the device, it is there, and it can train."""
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda", "mps", "xpu"):
            raise RuntimeError(f"{device.type} cannot train")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        raise ConfigError(
            f"device = {name!r} is not one that torch can train on here; expected 'cpu', or 'cuda' "
            "where there is a GPU and a build of torch for it: use cpu"
        ) from None


def warn_where_unread(config: Config, progress: Progress) -> None:
    """Warn of unlabelled text beside an encoder that learns nothing from it, and of parameters that
    were changed and that nothing reads. Of word vectors that are given, and so not trained on it,
    is told where they are read."""
    pool = objective_class(config.objective).needs_pool and not config.freeze
    if config.unlabelled and encoder_class(config.encoder).reads_text and not pool:
        progress.warn(
            f"unlabelled = {names_of(config.unlabelled)} with encoder = {config.encoder!r}: found "
            "nothing that learns from it, expected word vectors to train, or objective css_lm: "
            "leave it out"
        )
    unread, changed = unread_parameters(config), dict[str, list[str]]()
    for name in filter(unread.__contains__, changed_parameters(config)):
        changed.setdefault(unread[name], []).append(f"{name} = {getattr(config, name)!r}")
    for reason, names in changed.items():
        them = "it" if len(names) == 1 else "them"
        progress.warn(
            f"{', '.join(names)} with {reason}, where nothing reads {them}: leave {them} out"
        )


def changed_parameters(config: Config) -> list[str]:
    """Parameters whose value is not that of the preset and the encoder."""
    usual = resolve({"preset": config.preset, "encoder": config.encoder})
    values = {name: getattr(config, name) for name in BY_NAME}
    return [n for n, value in values.items() if value is not None and value != getattr(usual, n)]


def unread_parameters(config: Config) -> dict[str, str]:
    """Parameters that nothing reads in this configuration, and what beside them is the reason."""
    objective = objective_class(config.objective)
    encoder = encoder_class(config.encoder)
    unread = dict.fromkeys(encoder.unread, f"encoder = {config.encoder!r}")
    if config.freeze:
        # Word vectors and vocabulary are of related rows too.
        read = set() if encoder.reads_text else {"related"}
        return unread | dict.fromkeys(OF_TRAINING - read, "freeze")
    of_objective = {
        "projection": objective.uses_projection,
        "temperature": objective.reads_temperature,
    }
    missing = [name for name, read in of_objective.items() if not read]
    return unread | dict.fromkeys(missing, f"objective = {config.objective!r}")


def warn_where_slow(configs: Iterable[Config], progress: Progress) -> None:
    """Warn, once, where one of the configurations asks for an arithmetic that is slower here, or
    for a compiler that is not."""
    configs = list(configs)
    if any(one.compile and one.device == "cpu" for one in configs):
        warn_without_kernel(progress)
    asked = any(one.precision == "bfloat16" and one.device == "cpu" for one in configs)
    if asked and (ratio := bfloat16_slowdown()) > SLOWER:
        progress.warn(
            f"precision = 'bfloat16': found that this processor takes {ratio:.1f} times as long "
            "for a matrix product in it as in float32, expected it to be faster, as with AVX-512 "
            "BF16 or AMX: use --precision float32"
        )
