"""The base class of objectives, the batch that they are given, and their own options.

An objective is an `nn.Module` that turns one `Batch` into a scalar loss and a dict of
named floats for the history. Its class attributes declare what else it needs; the trainer reads
them and provides it.

Settings that several objectives share (temperature, ...) are parameters of the run. The settings of
one objective alone are a frozen dataclass of int, float, bool and str fields, its `options_type`,
see `config.parameters`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Real
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

from superconext.config.parameters import (
    CheckedOptions,
    Config,
    other_options,
    parameter,
    parse_options,
)
from superconext.core.registry import expect, expect_floats, own_fault
from superconext.encoders import encoder_class
from superconext.encoders.base import EncoderOutput

_OURS = "superconext."
#: What a record of training has besides the numbers of an objective.
RECORDED = ("member", "stage", "epoch", "loss", "seconds", "dev_score")


class Pool(Protocol):
    """Unlabelled sentences for an objective that `needs_pool`: M >= 1, none a labelled text."""

    @property
    def memory(self) -> Tensor:
        """`Objective.remembered` of each sentence, float32 `[M, r]`, by the weights with which the
        epoch began."""

    def encode(self, rows: Tensor) -> Tensor:
        """Sentence vectors `[R, d]` of pool rows `[R]`, by the current weights, with gradient."""

    def guess(self, rows: Tensor, step: int) -> Tensor | None:
        """The loss of a masked language model on pool rows `[R]`: mean -log p of their hidden
        words, a scalar with gradient; None without such a model, see `Objective.guesses_words`."""


@dataclass
class Batch:
    """One training batch after the encoder: N rows, C classes.

    sentence: sentence vectors `[N, d]`.
    projected: output of the projection head `[N, p]`, not normalised; `sentence` itself without
        `uses_projection`.
    labels: class indices `[N]`; for rows with soft labels one drawn from these in each epoch.
    shares: the share of each class in each row's target, float32 `[N, C]`; None without soft
        labels.
    ids: row numbers of the training set `[N]`; equal ids are the same sentence drawn twice.
    epoch, epochs: which epoch this is (from 0) of how many.
    step: which batch of the whole training this is, from 0.
    token_states: `[N, T, d]` and mask: `[N, T]` where the objective asks for them.
    class_states: `[N, C, d]`, column k of class k, where the objective asks for class tokens.
    second_view: encodes the batch once more with fresh dropout, giving
        (sentence `[N, d]`, projected `[N, p]`).
    pool: unlabelled sentences where the objective asks for them.
    tokens: ids of all sentences one after the other, int32 `[sum of lengths]`, and lengths:
        int64 `[N]`, where the objective reads them itself; `sentence`, `projected` and `labels`
        are then empty.
    """

    sentence: Tensor
    projected: Tensor
    labels: Tensor
    ids: Tensor
    epoch: int
    epochs: int
    token_states: Tensor | None = None
    mask: Tensor | None = None
    class_states: Tensor | None = None
    second_view: Callable[[], tuple[Tensor, Tensor]] | None = None
    pool: Pool | None = None
    step: int = 0
    tokens: np.ndarray | None = None
    lengths: np.ndarray | None = None
    shares: Tensor | None = None

    @property
    def targets(self) -> Tensor:
        """What cross-entropy compares with: the shares, else the labels."""
        return self.labels if self.shares is None else self.shares


@dataclass(frozen=True)
class Shape:
    """Sizes an objective may need to build its own parameters."""

    classes: int
    sentence: int
    projected: int


@dataclass(frozen=True)
class PoolOptions(CheckedOptions):
    """The options of an objective with unlabelled text."""

    pool_size: int = parameter(20_000, "Sentences drawn for the pool at most.", low=1)


class Objective(nn.Module):
    """Base class of all objectives. A subclass defines `forward`, and `from_config` if needed.

    Parameters and buffers of the module are trained with the encoder and saved with the run. Class
    attributes say what the objective needs. The hooks `remembered`, `begin_epoch`, `end_training`
    and `class_scores` have defaults; override those that you need.

    >>> import torch
    >>> class Length(Objective):
    ...     "Mean squared length of the sentence vectors."
    ...
    ...     def forward(self, batch):
    ...         return batch.sentence.square().sum(dim=1).mean(), {}
    >>> vectors, ids = torch.ones(2, 3), torch.tensor([0, 1])
    >>> Length()(Batch(vectors, vectors, labels=ids, ids=ids, epoch=0, epochs=1))
    (tensor(3.), {})
    """

    #: "balanced": every class equally often in a batch; "shuffled": plain random batches.
    batches: str = "balanced"
    #: Whether the projection head is part of the loss (else it is not built).
    uses_projection: bool = True
    #: Whether the run's temperature changes the loss.
    reads_temperature: bool = True
    #: Whether `token_states` and `mask` must be there, in a `Batch` and in `class_scores`.
    needs_token_states: bool = False
    #: Whether texts are read with a trained token for each class, see `encoders.bilstm`;
    #: `class_states` are then there, in a `Batch` and in `class_scores`.
    needs_class_tokens: bool = False
    #: Initial vectors of class tokens: "words", the word vectors of the label's name as far as they
    #: are known (`vectors.table`), or "random".
    class_tokens: str = "random"
    #: Whether it reads token ids itself, without labels, as pre-training does: a `Batch` then has
    #: `tokens` and `lengths`, and is not encoded.
    reads_tokens: bool = False
    #: Whether `class_scores` must be given all rows at once (without token states), because
    #: one row's scores depend on the others.
    scores_together: bool = False
    #: Whether `Batch.pool` must be there; `options_type` is then a `PoolOptions`.
    needs_pool: bool = False
    #: Whether it calls `Pool.guess`, the loss of a masked language model.
    guesses_words: bool = False
    #: Whether `begin_epoch` reads the `dev_score` of epochs, which is not always computed else.
    reads_dev_score: bool = False
    #: Dataclass of the settings that only this objective has, see `parse_options`.
    options_type: type = CheckedOptions
    #: Loss if all sentence vectors are equal, drawn in the learning curves; None if not known.
    chance_level: float | None = None

    @classmethod
    def fault(cls) -> None:
        """Raise ConfigError if the class itself is no complete objective."""
        wanted = PoolOptions if cls.needs_pool else CheckedOptions
        kind = cls.options_type
        right = isinstance(kind, type) and is_dataclass(kind)
        if not right or (cls.needs_pool and not issubclass(kind, wanted)):
            expected = f"a dataclass that extends {wanted.__module__}.{wanted.__name__}"
            raise own_fault(cls, f"options_type = {getattr(kind, '__name__', kind)}", expected)
        if cls.batches not in ("balanced", "shuffled"):
            raise own_fault(cls, f"batches = {cls.batches!r}", "'balanced' or 'shuffled'")
        if cls.forward is Objective.forward:
            raise own_fault(cls, "no method forward", "one that returns loss and named numbers")

    @classmethod
    def build(cls, config: Config, shape: Shape) -> Objective:
        """Check the options and call `from_config` with those that are the objective's own. Raises
        ConfigError for an unknown or impossible option."""
        of_encoder = encoder_class(config.encoder).options_type
        own = other_options(config.options, of_encoder)
        names = [{field.name for field in fields(one)} for one in (cls.options_type, of_encoder)]
        for name in sorted(names[0] & names[1]):
            ours = cls.__module__.startswith(_OURS)
            culprit: type = encoder_class(config.encoder) if ours else cls
            raise own_fault(
                culprit,
                f"the option {name!r}, which encoder {config.encoder!r} and objective "
                f"{config.objective!r} both have",
                "another name",
            )
        if own and cls.options_type is CheckedOptions and not cls.__module__.startswith(_OURS):
            raise own_fault(cls, f"no options_type for {own}", "a dataclass with these fields")
        also = [field.name for field in fields(of_encoder)]
        parse_options(own, cls.options_type, f"the objective {config.objective}", also)
        return cls.from_config(replace(config, options=own), shape)

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> Objective:
        """Build the objective that a configuration describes.

        This calls the constructor with the size of sentence vectors, the number of classes, the
        temperature of the run and the objective's own options, or without arguments if the class
        has no `__init__`. Override it for another constructor. Raises ConfigError if the
        constructor takes other arguments.
        """
        options: Any = parse_options(config.options, cls.options_type)
        arguments = shape.sentence, shape.classes, config.temperature, options
        if cls.__init__ is nn.Module.__init__:  # it has no constructor
            return cls()
        try:
            inspect.signature(cls).bind(*arguments)
        except TypeError as error:
            raise own_fault(
                cls,
                f"a constructor with other arguments ({error})",
                "__init__(self, size, classes, temperature, options), or from_config overridden",
            ) from None
        return cls(*arguments)

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """The loss of a batch, and numbers for the history by name.

        The loss is a tensor of one number with a gradient: where the batch has nothing to contrast,
        0 times something that has one.
        """
        raise NotImplementedError

    def checked(self, answer: Any) -> tuple[Tensor, dict[str, float]]:
        """What `forward` returned, the numbers as floats. Raises ConfigError if it is not a loss
        with gradient and a dict of named numbers."""
        pair = "the loss (a tensor of one number) and a dict of named numbers"
        right = isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], dict)
        expect(right, self, "forward", answer, pair)
        loss, scalars = answer
        right = isinstance(loss, Tensor) and loss.numel() == 1
        expect(right, self, "forward as loss", loss, pair)
        if not loss.requires_grad:
            raise own_fault(self, "a loss without gradient", "one computed from the batch")
        for name, value in scalars.items():
            right = isinstance(value, Real) or getattr(value, "shape", None) == ()
            expect(right, self, f"forward as {name!r}", value, pair)
            if name in RECORDED:
                raise own_fault(self, f"a number named {name!r}", "another name: training has it")
        return loss, {
            name: float(value.detach() if isinstance(value, Tensor) else value)
            for name, value in scalars.items()
        }

    def remembered(self, sentence: Tensor) -> Tensor:
        """What `Pool.memory` keeps, `[n, r]`, of sentence vectors `[n, d]`."""
        return sentence

    def begin_epoch(self, epoch: int, history: Sequence[Mapping[str, Any]]) -> None:
        """Called before the first batch of an epoch.

        Args:
            epoch: its number, from 0.
            history: the records of the epochs before. With `reads_dev_score`, and if there are dev
                rows, each has a `dev_score`.

        What is done here must follow from the arguments and the saved weights alone, so that a
        resumed training is the same.
        """

    def end_training(self, encode: Callable[[np.ndarray], EncoderOutput], labels: Tensor) -> None:
        """Called after the last epoch, in evaluation mode and without gradient. It must draw no
        random numbers.

        Args:
            encode: gives the encoder's output for numbers of training rows `[n]`, by the final
                weights, with token states if the objective needs them.
            labels: class indices of all training rows `[N]`.
        """

    def class_scores(self, output: EncoderOutput) -> Tensor | None:
        """Prediction by the objective itself, without the probe.

        Args:
            output: of the encoder in evaluation mode for N rows, with what the class attributes ask
                for.

        Returns finite scores `[N, C]`, whose softmax are probabilities; None if it does not
        predict. It is tried before training too, on two rows of each class, with the weights
        that training begins with, and after `end_training` of a copy on these rows.
        """
        return None

    def checked_scores(self, output: EncoderOutput, classes: int) -> Tensor | None:
        """What `class_scores` gives. Raises ConfigError if it is neither None nor a score of each
        of the C classes for each of the N rows, finite where the class is a user's own."""
        scores: Any = self.class_scores(output)
        if scores is not None:
            shape = len(output.sentence), classes
            meaning = ", a row for each text and a column for each class, or None"
            own = not type(self).__module__.startswith("superconext.")
            expect_floats(self, "class_scores", scores, shape, meaning, finite=own)
        return scores  # type: ignore[no-any-return]


class WithTemperature(Objective):
    """An objective made of the run's temperature and its own options, `options_type`."""

    def __init__(self, temperature: float = 0.1, options: Any = None) -> None:
        super().__init__()
        self.temperature = temperature
        self.options = options or self.options_type()

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> Objective:
        return cls(config.temperature, parse_options(config.options, cls.options_type))


def batch_accuracy(scores: Tensor, labels: Tensor) -> dict[str, float]:
    """The scalar of that name: the share of rows whose highest score `[N, C]` is at their label, or
    at the largest of their shares."""
    labels = labels if labels.dim() == 1 else labels.argmax(dim=1)
    return {"batch_accuracy": float((scores.argmax(dim=1) == labels).float().mean())}
