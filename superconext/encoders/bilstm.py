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

from superconext.data.token_store import Newcomers
from superconext.encoders.base import Encoder, EncoderOutput
from superconext.encoders.embedding import WordEmbedding
from superconext.encoders.pooling import POOLING
from superconext.text.vocabulary import PAD_ID, UNK_ID


class BiLSTMEncoder(Encoder):
    """Word vectors, `layers` bidirectional LSTM layers, pooling.

    Args:
        embedding: vectors of the words.
        hidden_size: LSTM units in each direction; the sentence vector has twice as many.
        layers: stacked layers.
        dropout: on the word vectors and on every layer's output (`nn.LSTM`'s own
            dropout does nothing for a single layer).
        word_dropout: share of training tokens replaced by the unknown word.
        pooling: "last", "mean" or "max".
    """

    def __init__(
        self,
        embedding: WordEmbedding,
        hidden_size: int = 128,
        layers: int = 1,
        dropout: float = 0.2,
        word_dropout: float = 0.0,
        pooling: str = "last",
    ) -> None:
        super().__init__()
        self.embedding = embedding
        sizes = [embedding.dimension] + [2 * hidden_size] * (layers - 1)
        self.forwards = nn.ModuleList(nn.LSTM(i, hidden_size, batch_first=True) for i in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(i, hidden_size, batch_first=True) for i in sizes)
        self.dropout = nn.Dropout(dropout)
        self.word_dropout = word_dropout
        self.pool = POOLING[pooling]
        self.sentence_size = 2 * hidden_size

    def forward(self, ids: Tensor, lengths: Tensor, table: Tensor | None = None) -> EncoderOutput:
        columns = torch.arange(ids.shape[1], device=ids.device)
        mask = columns[None, :] < lengths[:, None]
        states = self.dropout(self._vectors(ids, table))
        # Position of token t counted from the end of its own sentence; padding stays put.
        turned = torch.where(mask, lengths[:, None] - 1 - columns[None, :], columns[None, :])
        index = turned.unsqueeze(2)
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            left = ahead(states)[0]
            right = back(states.gather(1, index.expand_as(states)))[0]
            right = right.gather(1, index.expand_as(right))
            states = self.dropout(torch.cat([left, right], dim=2))
        return EncoderOutput(states, mask, self.pool(states, mask))

    def vector_table(self, newcomers: Newcomers | None) -> Tensor:
        return self.embedding.table(newcomers)

    def _vectors(self, ids: Tensor, table: Tensor | None) -> Tensor:
        if self.training and self.word_dropout > 0:
            hidden = torch.rand(ids.shape, device=ids.device) < self.word_dropout
            ids = ids.masked_fill(hidden & (ids != PAD_ID), UNK_ID)
        if table is not None:
            return functional.embedding(ids, table)
        vectors: Tensor = self.embedding(ids)
        return vectors
