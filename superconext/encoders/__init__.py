"""Encoders: texts to token ids, token ids to token states and a sentence vector.

This module holds the registry; it imports nothing, so listing encoders needs no torch.

An encoder of one's own is added with `register`, by an installed package's entry point in the
group `superconext.encoders`, or by the variable SUPERCONEXT_ENCODERS, "name=path/file.py:Class".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superconext.core.registry import Entry, Registry

if TYPE_CHECKING:
    from superconext.encoders.base import Encoder

ENCODERS: Registry[type[Encoder]] = Registry(
    "encoder",
    "superconext.encoders.base:Encoder",
    {
        "bilstm": Entry("superconext.encoders.bilstm:BiLSTMEncoder", "BiLSTM over word vectors"),
        "mean": Entry("superconext.encoders.words:MeanEncoder", "mean of the word vectors"),
        "transformer": Entry(
            "superconext.encoders.transformer:TransformerEncoder", "pretrained transformer"
        ),
    },
    "SUPERCONEXT_ENCODERS",
    home=__name__,
)

register = ENCODERS.register


def encoder_class(name: str) -> type[Encoder]:
    """The class behind a name. Raises ConfigError for an unknown one."""
    return ENCODERS.get(name)
