"""A multi-layer BiLSTM over word vectors.

Each direction is a plain padded LSTM. The backward one reads every sentence reversed
within its own length, so padding always comes last and no state ever passes through it:
a sentence's vector does not depend on the sentences beside it. On a CPU the same layers read
ragged input instead, with the same values and no padding (`encoders.packed_lstm`).

Class tokens stand at both ends of a text, t_1 .. t_C words t_C .. t_1: a token's state is
its backward half in front and its forward half behind, so both halves have read the text.
In front alone, the forward half could say nothing of it. A state depends on its slot, so
training puts the tokens of each text in a random order; otherwise they stand as numbered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.config.parameters import Config
from superconext.encoders.base import EncoderOutput, TextIndexer
from superconext.encoders.indexer import WordIndexer
from superconext.encoders.layers import POOLING, Dropout
from superconext.encoders.packed_inference import PACKED_POOLING, pooled_rows, read_rows
from superconext.encoders.packed_lstm import Packing, align, packed_bilstm, surround
from superconext.encoders.pretrained import emoji_scores_of, start_from
from superconext.encoders.words import WordEmbedding, WordEncoder
from superconext.text.tokenize import PAD_ID, UNK_ID

if TYPE_CHECKING:
    from superconext.encoders.onnx_graph import GraphBuilder


class BiLSTMEncoder(WordEncoder):
    """Word vectors, `layers` bidirectional LSTM layers, pooling.

    Args:
        embedding: vectors of the words.
        hidden_size: LSTM units in each direction; the sentence vector has twice as many.
        layers: stacked layers.
        dropout: on the word vectors and on every layer's output (`nn.LSTM`'s own
            dropout does nothing for a single layer).
        word_dropout: share of training tokens replaced by the unknown word.
        pooling: "last", "mean" or "max", over the states of the text's own tokens.
        class_tokens: trained rows put around every text, one for each class; 0 for none.
    """

    ragged = True
    has_class_tokens = True
    reads_pretrained = True

    def __init__(
        self,
        embedding: WordEmbedding,
        hidden_size: int = 128,
        layers: int = 1,
        dropout: float = 0.2,
        word_dropout: float = 0.0,
        pooling: str = "last",
        class_tokens: int = 0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        sizes = [embedding.dimension] + [2 * hidden_size] * (layers - 1)
        self.forwards = nn.ModuleList(nn.LSTM(i, hidden_size, batch_first=True) for i in sizes)
        self.backwards = nn.ModuleList(nn.LSTM(i, hidden_size, batch_first=True) for i in sizes)
        self.dropout = Dropout(dropout)
        self.word_dropout = word_dropout
        self.pooling = pooling
        self.pool, self.packed_pool = POOLING[pooling], PACKED_POOLING[pooling]
        self.sentence_size = 2 * hidden_size
        self.class_tokens = class_tokens
        self.class_rows: nn.Parameter | None = None
        if class_tokens:
            # Words without numbers, on the meta device, are still to be read, as these rows are.
            known = not embedding.words.is_meta
            spread = (float(embedding.words.detach().std()) if known else 0.0) or 0.1
            self.class_rows = nn.Parameter(spread * torch.randn(class_tokens, embedding.dimension))

    @classmethod
    def over_words(
        cls, embedding: WordEmbedding, config: Config, class_tokens: int
    ) -> BiLSTMEncoder:
        assert config.pooling is not None  # decided once the rows are counted
        return cls(
            embedding,
            hidden_size=config.hidden_size,
            layers=config.layers,
            dropout=config.dropout,
            word_dropout=config.word_dropout,
            pooling=config.pooling,
            class_tokens=class_tokens,
        )

    @classmethod
    def build(cls, config: Config, indexer: TextIndexer, class_tokens: int = 0) -> BiLSTMEncoder:
        encoder = super().build(config, indexer, class_tokens)
        if config.init:
            start_from(encoder, config.init)
        return encoder

    @classmethod
    def width_of(cls, config: Config) -> int:
        return 2 * config.hidden_size

    @classmethod
    def emoji_scores(cls, config: Config, indexer: TextIndexer) -> np.ndarray | None:
        return emoji_scores_of(config)

    def start_class_tokens(self, indexer: TextIndexer, classes: Sequence[str]) -> None:
        assert self.class_rows is not None and isinstance(indexer, WordIndexer)
        vectors, known = indexer.class_vectors(classes)
        with torch.no_grad():
            self.class_rows[torch.from_numpy(known)] = torch.from_numpy(vectors[known])

    @property
    def kept_bytes(self) -> int:
        return len(self.forwards) * super().kept_bytes

    def onnx_graph(self, graph: GraphBuilder, lengths: str, oov_vectors: str) -> str:
        from superconext.encoders.onnx_graph import BiLSTMNodes

        return BiLSTMNodes(graph, self, lengths).sentence(oov_vectors)

    def forward(self, ids: Tensor, lengths: Tensor, table: Tensor | None = None) -> EncoderOutput:
        columns = torch.arange(ids.shape[1], device=ids.device)
        mask = columns[None, :] < lengths[:, None]
        vectors = self._vectors(ids, table)
        if self.class_rows is None:
            states = self._read(vectors, lengths)
            return EncoderOutput(states, mask, self.pool(states, mask))
        count = self.class_tokens
        slots = self._slots(len(ids), ids.device)
        states = self._read(self._between(vectors, lengths, slots), lengths + 2 * count)
        half = self.sentence_size // 2
        rows = torch.arange(len(ids), device=ids.device)[:, None]
        behind = 2 * count - 1 + lengths[:, None] - slots
        classes = torch.cat([states[rows, behind, :half], states[rows, slots, half:]], dim=2)
        states = states[:, count : count + ids.shape[1]]
        return EncoderOutput(states, mask, self.pool(states, mask), classes)

    def forward_ragged(
        self,
        tokens: np.ndarray,
        lengths: np.ndarray,
        table: Tensor | None = None,
        whole: bool = False,
    ) -> EncoderOutput:
        packing = Packing(lengths)
        starts = (np.cumsum(lengths) - lengths)[packing.order]
        ids = torch.from_numpy(tokens[starts[packing.row] + packing.time].astype(np.int64))
        classes = None
        kept = torch.is_grad_enabled() or self.training
        if self.class_rows is None and not whole and not kept:
            return EncoderOutput.of_sentences(self._pooled_text(ids, packing, table))
        if self.class_rows is None:
            states = self._read_text(ids, packing, table)
        else:
            vectors = self._vectors(ids, table)
            slots = self._slots(len(lengths), vectors.device)[torch.from_numpy(packing.order)]
            outer, source = surround(packing, slots.argsort(dim=1).numpy())
            rows = torch.cat([vectors, self.class_rows.to(vectors.dtype)])
            read = self._read_packed(rows.index_select(0, source), outer)
            behind = outer.offsets[outer.lengths[:, None] - 1 - slots.numpy()]
            classes = read[torch.from_numpy(behind + np.arange(len(behind))[:, None])]
            classes = self.dropout(classes.index_select(0, packing.back))
            text = outer.offsets[packing.time + self.class_tokens] + packing.row
            states = read.index_select(0, torch.from_numpy(text))
        if not whole:
            sentence = self.packed_pool(states, packing, self.dropout.active)
            return EncoderOutput.of_sentences(sentence, classes)
        states = self.dropout(states)
        sentence = self.packed_pool(states, packing, 0.0)
        mask = np.arange(len(packing.steps)) < lengths[:, None]
        states = packing.pad(align(states, packing))
        return EncoderOutput(states, torch.from_numpy(mask), sentence, classes)

    def read_both_ways(self, ids: Tensor, packing: Packing) -> tuple[Tensor, Tensor]:
        """Top layer states of packed ids `[P]` by each direction `[P, h]`, in its reading order.

        At the place of token t of a sentence stands, of the second, its state at token t from
        the end. Only with a single layer has a state read nothing of what follows it.
        """
        states = self.dropout(self._read_packed(self._vectors(ids, None), packing))
        half = self.sentence_size // 2
        return states[:, :half], states[:, half:]

    def _read_text(self, ids: Tensor, packing: Packing, table: Tensor | None) -> Tensor:
        """Top layer states `[P, d]` of packed ids `[P]`, as `_read_packed` gives them."""
        if torch.is_grad_enabled() or self.training:
            return self._read_packed(self._vectors(ids, table), packing)
        rows, index = self._inputs_of_top(ids, packing, table)
        return read_rows(rows, index, packing, *self._top, aligned=False)

    def _pooled_text(self, ids: Tensor, packing: Packing, table: Tensor | None) -> Tensor:
        """Sentence vectors `[N, d]` of packed ids `[P]` in the caller's order, for prediction."""
        rows, index = self._inputs_of_top(ids, packing, table)
        return pooled_rows(rows, index, packing, *self._top, self.pooling)

    def _inputs_of_top(
        self, ids: Tensor, packing: Packing, table: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Distinct inputs of the top layer and the one of each packed token, for prediction."""
        distinct, index = torch.unique(ids, return_inverse=True)
        rows = self._vectors(distinct, table)
        for ahead, back in list(zip(self.forwards, self.backwards, strict=True))[:-1]:
            assert isinstance(ahead, nn.LSTM) and isinstance(back, nn.LSTM)
            rows = read_rows(rows, index, packing, ahead, back, aligned=True)
            index = torch.arange(len(rows))
        return rows, index

    @property
    def _top(self) -> tuple[nn.LSTM, nn.LSTM]:
        ahead, back = self.forwards[-1], self.backwards[-1]
        assert isinstance(ahead, nn.LSTM) and isinstance(back, nn.LSTM)
        return ahead, back

    def _read_packed(self, states: Tensor, packing: Packing) -> Tensor:
        """Top layer states `[P, d]` of packed input `[P, e]`, each half in its reading order.

        They are yet to be dropped.
        """
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            assert isinstance(ahead, nn.LSTM) and isinstance(back, nn.LSTM)
            inner = ahead is not self.forwards[-1]
            states = packed_bilstm(self.dropout(states), packing, ahead, back, aligned=inner)
        return states

    def _read(self, vectors: Tensor, lengths: Tensor) -> Tensor:
        """Top layer states `[N, T, d]` of padded input `[N, T, e]`."""
        columns = torch.arange(vectors.shape[1], device=vectors.device)
        mask = columns[None, :] < lengths[:, None]
        states: Tensor = self.dropout(vectors)
        # Position of token t counted from the end of its own sentence; padding stays put.
        turned = torch.where(mask, lengths[:, None] - 1 - columns[None, :], columns[None, :])
        index = turned.unsqueeze(2)
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            left = ahead(states)[0]
            right = back(states.gather(1, index.expand_as(states)))[0]
            right = right.gather(1, index.expand_as(right))
            states = self.dropout(torch.cat([left, right], dim=2))
        return states

    def _slots(self, texts: int, device: torch.device) -> Tensor:
        """The slot of each class's token, counted from the outer end, `[N, C]`."""
        if not self.training:
            return torch.arange(self.class_tokens, device=device).expand(texts, -1)
        return torch.rand(texts, self.class_tokens, device=device).argsort(dim=1)

    def _between(self, vectors: Tensor, lengths: Tensor, slots: Tensor) -> Tensor:
        """The words `[N, T, e]` between their class tokens, `[N, T + 2C, e]`, then padding."""
        assert self.class_rows is not None
        texts, width, _ = vectors.shape
        count = self.class_tokens
        front = self.class_rows[slots.argsort(dim=1)].to(vectors.dtype)
        whole = torch.cat([front, vectors, front.flip(1)], dim=1)
        # The tokens behind move up to the end of the words, the padding to the end of all.
        column = torch.arange(width + 2 * count, device=vectors.device)[None, :]
        end = count + lengths[:, None]
        source = torch.where(column < end, column, column + width - lengths[:, None])
        source = torch.where(column < end + count, source, column - count)
        return whole.gather(1, source.unsqueeze(2).expand(texts, -1, whole.shape[2]))

    def _vectors(self, ids: Tensor, table: Tensor | None) -> Tensor:
        if self.training and self.word_dropout > 0:
            hidden = torch.rand(ids.shape, device=ids.device) < self.word_dropout
            ids = ids.masked_fill(hidden & (ids != PAD_ID), UNK_ID)
        if table is not None:
            return functional.embedding(ids, table)
        vectors: Tensor = self.embedding(ids)
        return vectors
