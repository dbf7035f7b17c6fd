"""The base class of objectives, the batch that they are given, and their own options.

An objective is an `nn.Module` that turns one `Batch` into a scalar loss and a dict of
named floats for the history. What it needs beyond that it declares as class attributes;
the trainer reads them and provides it.

Settings that several objectives share (temperature, ...) are parameters of the run. What one
objective alone has is a frozen dataclass of int, float, bool and str fields, its
`options_type`, see `config.parameters`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
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
from superconext.core.registry import expect, own_fault
from superconext.encoders import encoder_class
from superconext.encoders.base import EncoderOutput

_OURS = "superconext."


class Pool(Protocol):
    """Unlabelled sentences beside the batch, M >= 1 of them; none is a labelled text."""

    @property
    def memory(self) -> Tensor:
        """`Objective.remembered` of each sentence, float32 `[M, r]`, as the epoch began."""

    def encode(self, rows: Tensor) -> Tensor:
        """Sentence vectors `[R, d]` of pool rows `[R]`, by today's weights, with gradient."""

    def guess(self, rows: Tensor, step: int) -> Tensor | None:
        """Mean -log p of hidden words of pool rows `[R]`, with gradient; None where nothing guesses
        them, see `Objective.guesses_words`."""


@dataclass
class Batch:
    """One training batch after the encoder.

    sentence: sentence vectors `[N, d]`.
    projected: projection head output `[N, p]`, not normalised.
    labels: class indices `[N]`; of rows with soft labels drawn from these for this epoch.
    shares: the share of each class in each row's target, float32 `[N, C]`, where rows have soft
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
    """Base class of all objectives. Subclasses define `forward`, and `from_config` if needed.

    Its parameters and buffers are saved with the run. Class attributes say what it needs; the
    hooks, which do nothing here, say when they are called.

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
    #: Whether `token_states` and `mask` must be there, in a `Batch` and in `class_scores`.
    needs_token_states: bool = False
    #: Whether texts are read with a trained token for each class, see `encoders.bilstm`;
    #: `class_states` are then there, in a `Batch` and in `class_scores`.
    needs_class_tokens: bool = False
    #: Where class tokens start: "words", at the word vectors of what the label is called as far
    #: as they are known (`vectors.table`), or "random".
    class_tokens: str = "random"
    #: Whether it reads token ids itself, without labels, as pre-training does: a `Batch` then has
    #: `tokens` and `lengths`, and is not encoded.
    reads_tokens: bool = False
    #: Whether `class_scores` must be given all rows at once (without token states), because
    #: one row's scores depend on the others.
    scores_together: bool = False
    #: Whether `Batch.pool` must be there; `options_type` is then a `PoolOptions`.
    needs_pool: bool = False
    #: Whether it asks for `Pool.guess`.
    guesses_words: bool = False
    #: Whether `begin_epoch` reads the `dev_score` of epochs; fits nobody watches have none else.
    reads_dev_score: bool = False
    #: Dataclass of the settings this objective alone has, see `parse_options`.
    options_type: type = CheckedOptions
    #: Loss of a collapsed encoder, drawn in the learning curves; None if it has none.
    chance_level: float | None = None

    @classmethod
    def fault(cls) -> None:
        """Raise ConfigError where the class itself lacks what an objective must have."""
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
        """`from_config`, with the objective's own options alone, after a check of them."""
        own = other_options(config.options, encoder_class(config.encoder).options_type)
        if own and cls.options_type is CheckedOptions and not cls.__module__.startswith(_OURS):
            raise own_fault(cls, f"no options_type for {own}", "a dataclass with these fields")
        parse_options(own, cls.options_type)
        return cls.from_config(replace(config, options=own), shape)

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> Objective:
        """Build the objective a configuration describes.

        Here from the size of sentence vectors, the number of classes, the run's temperature and
        its own options, or without arguments where the class has no `__init__`; override it for
        another constructor.
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
        """Scalar loss (with gradient, also where nothing contributes) and named scalars."""
        raise NotImplementedError

    def checked(self, answer: Any) -> tuple[Tensor, dict[str, float]]:
        """What `forward` returned. Raises ConfigError unless it is what it must return."""
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
        return loss, {
            name: float(value.detach() if isinstance(value, Tensor) else value)
            for name, value in scalars.items()
        }

    def remembered(self, sentence: Tensor) -> Tensor:
        """What the pool's memory holds of its sentence vectors `[n, d]`, `[n, r]`."""
        return sentence

    def begin_epoch(self, epoch: int, history: Sequence[Mapping[str, Any]]) -> None:
        """Before the batches of an epoch (from 0).

        history: the records of the epochs before, with `reads_dev_score` each with `dev_score`
            where there are dev rows. What is done here must follow from the arguments and the
            saved weights alone, so that a resumed training is the same.
        """

    def end_training(self, encode: Callable[[np.ndarray], EncoderOutput], labels: Tensor) -> None:
        """After the last epoch, in evaluation mode without gradient; draws no random numbers.

        Args:
            encode: training row numbers `[n]` to the encoder's output, with token states if
                the objective needs them, under the weights that training ends with.
            labels: class indices of all training rows `[N]`.
        """

    def class_scores(self, output: EncoderOutput) -> Tensor | None:
        """Native prediction: scores `[N, C]` (softmax of them: probabilities), or None.

        output: the encoder's, in evaluation mode, with what the class attributes ask for.
        """
        return None


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
