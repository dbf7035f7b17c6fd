"""The mean of the word vectors: an encoder that works without training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional

from superconext.config.parameters import Config
from superconext.core.errors import ConfigError
from superconext.encoders.base import EncoderOutput
from superconext.encoders.layers import pool_mean
from superconext.encoders.words import WordEmbedding, WordEncoder

if TYPE_CHECKING:
    from superconext.encoders.onnx_graph import GraphBuilder


class MeanEncoder(WordEncoder):
    """Mean of a text's word vectors, `[N, e]`.

    With `freeze` it is the control `vectors_logreg` as a run. Trained, it has the vectors of
    n-grams, and with `tune_vectors` those of words, to change.
    """

    def __init__(self, embedding: WordEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.sentence_size = embedding.dimension
        self.pool = pool_mean

    @classmethod
    def check(cls, config: Config) -> None:
        super().check(config)
        if not (config.freeze or config.subwords or config.tune_vectors):
            raise ConfigError(
                f"encoder = {config.encoder!r} without subwords and tune_vectors has nothing to "
                "train; expected one of them, or freeze: add freeze"
            )

    @classmethod
    def over_words(cls, embedding: WordEmbedding, config: Config, class_tokens: int) -> MeanEncoder:
        return cls(embedding)

    @classmethod
    def width_of(cls, config: Config) -> int:
        return config.vector_dimension

    def onnx_graph(self, graph: GraphBuilder, lengths: str, oov_vectors: str) -> str:
        from superconext.encoders.onnx_graph import WordNodes

        nodes = WordNodes(graph, self, lengths)
        return nodes.pooled(nodes.words(oov_vectors))

    def forward(self, ids: Tensor, lengths: Tensor, table: Tensor | None = None) -> EncoderOutput:
        words = self.embedding(ids) if table is None else functional.embedding(ids, table)
        columns = torch.arange(ids.shape[1], device=ids.device)
        mask = columns[None, :] < lengths[:, None]
        return EncoderOutput(words, mask, pool_mean(words, mask))
