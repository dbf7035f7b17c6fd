"""A multi-layer BiLSTM over word vectors.

Each direction is a plain padded LSTM. The backward one reads every sentence reversed
within its own length, so padding always comes last and no state ever passes through it:
a sentence's vector does not depend on the sentences beside it. Packed sequences would
give the same values at several times the cost on a CPU.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.data.token_store import PAD, UNKNOWN
from superconext.encoders.base import Encoder, EncoderOutput
from superconext.encoders.pooling import POOLING


class BiLSTMEncoder(Encoder):
    """Word vectors, `layers` bidirectional LSTM layers, pooling.

    Args:
        table: initial word vectors `[V, e]`, row `PAD` is not used.
        hidden_size: LSTM units in each direction; the sentence vector has twice as many.
        layers: stacked layers.
        dropout: on the word vectors and on every layer's output (`nn.LSTM`'s own
            dropout does nothing for a single layer).
        word_dropout: share of training tokens replaced by the unknown word.
        pooling: "last", "mean" or "max".
        tune_vectors: whether the table is trained.
    """

    def __init__(
        self,
        table: Tensor,
        hidden_size: int = 128,
        layers: int = 1,
        dropout: float = 0.2,
        word_dropout: float = 0.0,
        pooling: str = "last",
        tune_vectors: bool = True,
    ) -> None:
        super().__init__()
        self.table = nn.Parameter(table.clone(), requires_grad=tune_vectors)
        sizes = [table.shape[1]] + [2 * hidden_size] * (layers - 1)
        self.forwards = nn.ModuleList(nn.LSTM(i, hidden_size, batch_first=True) for i in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(i, hidden_size, batch_first=True) for i in sizes)
        self.dropout = nn.Dropout(dropout)
        self.word_dropout = word_dropout
        self.pool = POOLING[pooling]
        self.sentence_size = 2 * hidden_size

    def forward(self, ids: Tensor, lengths: Tensor, extra: Tensor | None = None) -> EncoderOutput:
        columns = torch.arange(ids.shape[1], device=ids.device)
        mask = columns[None, :] < lengths[:, None]
        states = self.dropout(self._embed(ids, extra))
        # Position of token t counted from the end of its own sentence; padding stays put.
        turned = torch.where(mask, lengths[:, None] - 1 - columns[None, :], columns[None, :])
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            index = turned.unsqueeze(2)
            left = ahead(states)[0]
            right = back(states.gather(1, index.expand_as(states)))[0]
            right = right.gather(1, index.expand_as(right))
            states = self.dropout(torch.cat([left, right], dim=2))
        return EncoderOutput(states, mask, self.pool(states, mask))

    def _embed(self, ids: Tensor, extra: Tensor | None) -> Tensor:
        if self.training and self.word_dropout > 0:
            hidden = torch.rand(ids.shape, device=ids.device) < self.word_dropout
            ids = ids.masked_fill(hidden & (ids != PAD), UNKNOWN)
        table = self.table if extra is None else torch.cat([self.table, extra.to(self.table)])
        return functional.embedding(ids, table)
