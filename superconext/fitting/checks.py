"""What can no fit be made with? Looked at before anything is read, for reading takes its time."""

from __future__ import annotations

import torch

from superconext.config.parameters import Config
from superconext.core.errors import ConfigError
from superconext.encoders.registry import encoder_class
from superconext.fitting.ensemble_members import check_members
from superconext.objectives.base import Shape
from superconext.objectives.catalogue import objective_class
from superconext.probe import probe_class
from superconext.probe.logistic_regression import LogisticRegressionProbe
from superconext.training.pool import pool_source
from superconext.training.pretraining.make import check_pretraining


def check_config(config: Config) -> None:
    """Raise ConfigError for a device that is not there, for members, unlabelled text, pretraining
    or options that cannot be, and for an unknown objective."""
    check_device(config.device)
    check_members(config)
    _check_probe(config)
    check_pretraining(config)
    if objective_class(config.objective).needs_pool:
        pool_source(config.unlabelled, config.objective)
    _check_options(config)


def _check_probe(config: Config) -> None:
    """Raise ConfigError for an unknown probe, and for what only a logistic regression can do."""
    if issubclass(probe_class(config.probe_features), LogisticRegressionProbe):
        return
    found = {
        "calibrate": config.calibrate,
        "logit_adjustment": config.logit_adjustment != 0,
        "probe_rows = 'unseen'": config.probe_rows == "unseen",
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
            f"device = {name!r} is not available here; expected 'cpu', or a device torch can "
            "use such as 'cuda'"
        ) from None
