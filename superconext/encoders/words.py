"""The base class of encoders that read word vectors."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from superconext.config.parameters import Config
from superconext.core.progress import Progress
from superconext.data.token_store import OovWords, TokenRows
from superconext.encoders.base import Encoder, check_affordable
from superconext.encoders.embedding import WordEmbedding
from superconext.encoders.indexer import TextIndexer, WordIndexer
from superconext.text.vocabulary import UNK_ID

Made = TypeVar("Made", bound="WordEncoder")


class WordEncoder(Encoder):
    """Base of encoders that read word vectors.

    A subclass defines `over_words` and `width_of`, and has its `WordEmbedding` in `embedding`.
    """

    indexer_class = WordIndexer
    reads_streams = True
    embedding: WordEmbedding

    @classmethod
    def over_words(
        cls: type[Made], embedding: WordEmbedding, config: Config, class_tokens: int
    ) -> Made:
        """The encoder of a configuration over an embedding."""
        raise NotImplementedError

    @classmethod
    def fit_indexer(
        cls, rows: TokenRows, config: Config, held_out: Sequence[str], progress: Progress
    ) -> WordIndexer:
        return WordIndexer.fit(rows, config, held_out, progress)

    @classmethod
    def build(cls: type[Made], config: Config, indexer: TextIndexer, class_tokens: int = 0) -> Made:
        assert isinstance(indexer, WordIndexer) and indexer.table is not None
        embedding = WordEmbedding(
            torch.from_numpy(indexer.table),
            config.tune_vectors,
            len(indexer.ngrams) if indexer.ngrams else 0,
            indexer.word_ngrams,
        )
        return cls.over_words(embedding, config, class_tokens)

    @classmethod
    def from_tensors(
        cls: type[Made], config: Config, indexer: TextIndexer, tensors: Mapping[str, Tensor]
    ) -> Made:
        assert isinstance(indexer, WordIndexer)
        table = tensors["embedding.words"]
        words, ngrams = len(indexer.vocabulary), len(indexer.ngrams or ())
        if table.ndim != 2 or table.shape[0] != words or table.shape[1] < 1:
            raise ValueError(f"{words} words and word vectors of shape {list(table.shape)}")
        if str(table.dtype) != "torch.float32":
            raise ValueError(f"word vectors of type {table.dtype}")
        dimension = indexer.oov_vectors.dimension
        if table.shape[1] != dimension:
            raise ValueError(f"words of {table.shape[1]} numbers and {dimension} in reserve")
        tokens = len(tensors.get("class_rows", ()))

        def shell(class_tokens: int) -> Made:
            # The tables of words and n-grams are not made before they are read: they are large.
            empty = torch.empty(table.shape, device="meta")
            return cls.over_words(
                WordEmbedding(empty, config.tune_vectors, ngrams), config, class_tokens
            )

        with torch.device("meta"):
            check_affordable(shell(0), tensors)
        encoder = shell(tokens)
        # A tensor may be a view of the file, which somebody may write over.
        weights = {name: t.to(torch.float32, copy=True) for name, t in tensors.items()}
        encoder.load_state_dict(weights, assign=True)
        return encoder

    def vector_table(self, oov_words: OovWords | None) -> Tensor:
        return self.embedding.table(oov_words)

    def with_rows(self: Made, rows: Mapping[str, np.ndarray]) -> Made:
        """rows: of the tables `words` and `ngrams`."""
        made = copy.deepcopy(self)
        for name, kept in rows.items():
            whole = getattr(made.embedding, name)
            part = whole.detach()[torch.from_numpy(kept)]
            setattr(made.embedding, name, nn.Parameter(part, requires_grad=whole.requires_grad))
        return made

    def finish(self: Made) -> Made:
        """N-grams of vocabulary words are added into the words' rows."""
        self.embedding.fold()
        return self.eval()

    def onnx_arrays(self) -> dict[str, np.ndarray]:
        """The unknown word's vector `[e]` and n-gram vectors `[G, e]`."""
        unknown = self.embedding.words[UNK_ID].detach().cpu().numpy().copy()
        return {"unknown": unknown, "ngrams": self.embedding.ngrams.detach().cpu().numpy()}
