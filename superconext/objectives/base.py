"""What an objective gets, what it returns, and what it may ask for.

An objective is an `nn.Module` that turns one `Batch` into a scalar loss and a dict of
named floats for the history. What it needs beyond that it declares as class attributes;
the trainer reads them and provides it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor, nn

from superconext.objectives.options import parse_options

if TYPE_CHECKING:
    from superconext.config import Config


@dataclass
class Batch:
    """One training batch after the encoder.

    sentence: sentence vectors `[N, d]`.
    projected: projection head output `[N, p]`, not normalised.
    labels: class indices `[N]`.
    ids: row numbers of the training set `[N]`; equal ids are the same sentence drawn twice.
    epoch, epochs: which epoch this is (from 0) of how many.
    token_states: `[N, T, d]` and mask: `[N, T]` where the objective asks for them.
    second_view: encodes the batch once more with fresh dropout, giving
        (sentence `[N, d]`, projected `[N, p]`).
    """

    sentence: Tensor
    projected: Tensor
    labels: Tensor
    ids: Tensor
    epoch: int
    epochs: int
    token_states: Tensor | None = None
    mask: Tensor | None = None
    second_view: Callable[[], tuple[Tensor, Tensor]] | None = None


@dataclass(frozen=True)
class Shape:
    """Sizes an objective may need to build its own parameters."""

    classes: int
    sentence: int
    projected: int


@dataclass(frozen=True)
class NoOptions:
    """Of an objective without settings of its own."""


class Objective(nn.Module):
    """Base of all objectives. Subclasses define `from_config` and `forward`."""

    #: "balanced": every class equally often in a batch; "shuffled": plain random batches.
    batches: str = "balanced"
    #: Whether the projection head is part of the loss (else it is not built).
    uses_projection: bool = True
    #: Whether `Batch.token_states` and `Batch.mask` must be there.
    needs_token_states: bool = False
    #: Dataclass of the settings this objective alone has, see `objectives.options`.
    options_type: type = NoOptions
    #: Loss of a collapsed encoder, drawn in the learning curves; None if it has none.
    chance_level: float | None = None

    @classmethod
    def build(cls, config: Config, shape: Shape) -> Objective:
        """`from_config` after a check of the objective's own options."""
        parse_options(config.options, cls.options_type)
        return cls.from_config(config, shape)

    @classmethod
    def from_config(cls, config: Config, shape: Shape) -> Objective:
        """Build the objective a configuration describes."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> tuple[Tensor, dict[str, float]]:
        """Scalar loss (with gradient, also where nothing contributes) and named scalars."""
        raise NotImplementedError

    def class_scores(self, sentence: Tensor) -> Tensor | None:
        """Native prediction: scores `[N, C]` from sentence vectors `[N, d]`, or None."""
        return None
