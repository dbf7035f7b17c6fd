"""The output of an encoder: the type that encoders return and objectives read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class EncoderOutput:
    """What an encoder gives for N sentences.

    token_states: `[N, T, d]`, of the text's own tokens; anything stands at padding.
    mask: `[N, T]`, True at the text's own tokens.
    sentence: `[N, d]`, the text's token states pooled.
    class_states: `[N, C, d]`, column k always of class k; None without class tokens.

    Where nobody asked for the token states, they and the mask are empty (see `encode_rows`).
    """

    token_states: Tensor
    mask: Tensor
    sentence: Tensor
    class_states: Tensor | None = None

    @classmethod
    def of_sentences(cls, sentence: Tensor, class_states: Tensor | None = None) -> EncoderOutput:
        """An output without token states."""
        empty = sentence.new_empty(0)
        return cls(empty, empty, sentence, class_states)
