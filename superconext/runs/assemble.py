"""From the files of a run folder to a model; sizes are compared before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from superconext.config.parameters import Config
from superconext.encoders.base import check_affordable
from superconext.encoders.registry import encoder_class
from superconext.fitting.ensemble_members import member_config
from superconext.fitting.model import Model
from superconext.fitting.stages import second_stage
from superconext.objectives.base import Objective, Shape
from superconext.objectives.catalogue import objective_class
from superconext.probe import probe_class
from superconext.runs import trust


def assemble(
    config: Config,
    words: dict[str, Any],
    arrays: dict[str, np.ndarray],
    tensors: dict[str, torch.Tensor],
    probe: dict[str, np.ndarray],
    second_objective: str | None = None,
) -> Model:
    """The model of `config.toml`, `vocabulary.json` and the three safetensors files.

    second_objective: of every second member, in a run that an earlier version wrote.

    Raises an error of Python's (ValueError, LookupError, ...) where they do not fit together.
    """
    classes = trust.texts(words["classes"], "classes")
    if len(set(classes)) != len(classes) or len(classes) < 2:
        raise ValueError(f"{len(classes)} classes, expected two or more, each once")
    kind = encoder_class(config.encoder)
    indexer = kind.indexer_class.from_saved(words, arrays, config)
    encoders, objectives = [], []
    for member in range(trust.members_of(tensors)):
        weights = dict(_under(f"encoder.{member}.", tensors))
        encoder = kind.from_tensors(config, indexer, weights)
        own = dict(_under(f"objective.{member}.", tensors))
        trained_by = member_config(config, member)
        if second_objective is not None and member % 2:
            trained_by = replace(trained_by, objective=second_objective, options=None)
        with torch.device("meta"):
            check_affordable(_objective(trained_by, len(classes), encoder.sentence_size), own)
        objective = _objective(trained_by, len(classes), encoder.sentence_size)
        objective.load_state_dict(own)
        encoders.append(encoder.eval())
        objectives.append(objective.eval())
    width = sum(encoder.sentence_size for encoder in encoders)
    return Model(
        config,
        classes,
        indexer,
        encoders,
        objectives,
        probe_class(config.probe_features).from_arrays(probe, len(classes), width),
        second_objective=second_objective,
    )


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors whose name begins so, by the rest of it."""
    return ((n[len(prefix) :], t) for n, t in tensors.items() if n.startswith(prefix))


def _objective(config: Config, classes: int, sentence: int) -> Objective:
    """The objective a member was trained by last, which it predicts by, without its weights."""
    last = second_stage(config) or config
    kind = objective_class(last.objective)
    return kind.build(last, Shape(classes, sentence, sentence))
