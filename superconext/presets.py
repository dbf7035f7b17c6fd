"""Named sets of defaults, each value with where it comes from.

Source of both: SuperConText (IEEE Access 2023, doi 10.1109/ACCESS.2023.3241490),
section V.B. `stated` names what the paper prints; `left_open` what it does not say, so
that the value here is this project's choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Preset:
    """Values that replace the defaults, and their origin."""

    summary: str
    values: dict[str, Any]
    stated: dict[str, str]
    left_open: tuple[str, ...]


_LEFT_OPEN = (
    "temperature",
    "mining_threshold",
    "pooling",
    "steps_per_epoch",
    "max_length",
    "min_count",
    "gradient_clip",
)

PRESETS: dict[str, Preset] = {
    "dialect": Preset(
        summary="a few thousand sentences, one small BiLSTM, seconds to minutes on a laptop",
        values={
            "layers": 1,
            "hidden_size": 128,
            "dropout": 0.2,
            "epochs": 15,
            "batch_size": 200,
            "learning_rate": 0.003,
            "projection_size": 256,
            "vector_dimension": 100,
        },
        stated={
            "layers": "1 hidden layer (MSAC, ASAC)",
            "hidden_size": "128 units",
            "dropout": "0.2",
            "epochs": "15",
            "batch_size": "200",
            "learning_rate": "Adam, 0.003",
        },
        left_open=(*_LEFT_OPEN, "mining_warmup", "projection_size", "vector_dimension"),
    ),
    "paper": Preset(
        summary="the large-set model of the paper: 3 layers, 512-d sentence vectors, GloVe 300-d",
        values={
            "layers": 3,
            "hidden_size": 256,
            "dropout": 0.3,
            "epochs": 60,
            "batch_size": 800,
            "learning_rate": 0.001,
            "projection_size": 512,
            "vector_dimension": 300,
        },
        stated={
            "layers": "3 hidden layers",
            "hidden_size": "512-d sentence vector: 256 units in each direction",
            "dropout": "0.3 on each layer",
            "epochs": "60",
            "batch_size": "800",
            "learning_rate": "Adam, 0.001",
            "projection_size": "MLP into 512 dimensions",
            "vector_dimension": "GloVe, 300 dimensions: give the file with --vectors",
            "mining_warmup": "20 of 60 epochs (Yelp-F)",
        },
        left_open=_LEFT_OPEN,
    ),
}
