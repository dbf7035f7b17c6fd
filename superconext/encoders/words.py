"""Word vectors as the input of an encoder: the trained table, and the base class over it.

A tuned word row teaches the encoder nothing about other spellings of that word; a tuned
n-gram row does. So a word's vector is its own row plus the sum of its n-grams' rows over
the square root of their number; an n-gram that training never saw counts as zeros. N-gram
rows start at zero: training begins at the given word vectors.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.config.parameters import Config
from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.data.token_store import OovWords, TokenRows
from superconext.encoders.base import Encoder, EncoderOutput, check_affordable
from superconext.encoders.indexer import TextIndexer, WordIndexer
from superconext.encoders.layers import pool_mean
from superconext.text.ngrams import WordNgrams
from superconext.text.tokenize import UNK_ID

if TYPE_CHECKING:
    from superconext.encoders.onnx_graph import GraphBuilder

#: Rows from which a table's gradient names the rows of the batch alone; below, a pass over all
#: rows costs no more than choosing among them.
SPARSE_FROM = 20_000


class WordEmbedding(nn.Module):
    """Vectors of vocabulary words and of oov_words.

    A batch costs as much as the words in it, however many rows the tables have: the gradient
    of a large table is row-sparse (`torch.sparse_coo`), for `training.optimizer`.

    Args:
        words: initial vectors `[V, e]`.
        tune: whether the word rows are trained.
        ngram_count: rows of the n-gram table; 0 for none.
        ngrams: n-grams of the V words; None when the word rows already include them, as
            in a saved model.

    Attributes:
        before_reading: called with a trained table and the rows about to be read, None for
            all; an optimiser that puts off updates makes up for them here.
    """

    def __init__(
        self,
        words: Tensor,
        tune: bool = True,
        ngram_count: int = 0,
        ngrams: WordNgrams | None = None,
    ) -> None:
        super().__init__()
        self.words = nn.Parameter(words.clone(), requires_grad=tune)
        self.ngrams = nn.Parameter(torch.zeros(ngram_count, words.shape[1], device=words.device))
        self._index = ngrams if ngram_count else None
        self._place = np.empty(ngram_count, dtype=np.int64)
        self.before_reading: Callable[[Tensor, Tensor | None], None] | None = None

    @property
    def dimension(self) -> int:
        return int(self.words.shape[1])

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors `[N, T, e]` of vocabulary words `[N, T]`, with gradient."""
        if self._index is None and not _by_rows(self.words):
            return functional.embedding(ids, self.words)
        # Each distinct word is composed once, however often it is in the batch.
        distinct, position = torch.unique(ids, return_inverse=True)
        rows = self._read(self.words, distinct)
        if self._index is not None:
            chosen = distinct.cpu().numpy()
            rows = rows + self._compose(self._index, chosen, _by_rows(self.ngrams))
        return functional.embedding(position, rows)

    @torch.no_grad()
    def table(self, oov_words: OovWords | None = None) -> Tensor:
        """Vectors `[V + U, e]` of all vocabulary words and oov_words, without gradient.

        A unknown word no source knows starts from the unknown word's row.
        """
        if self.before_reading is not None:
            for table in (self.words, self.ngrams):
                self.before_reading(table, None)
        rows = self.words.detach()
        if self._index is not None:
            rows = rows + self._compose(self._index, np.arange(len(rows)))
        if oov_words is None or not len(oov_words):
            return rows
        given = torch.from_numpy(oov_words.vectors).to(rows)
        known = torch.from_numpy(oov_words.known).to(rows.device)
        given = torch.where(known[:, None], given, self.words[UNK_ID].detach())
        if oov_words.ngrams is not None and len(self.ngrams):
            given = given + self._compose(oov_words.ngrams, np.arange(len(given)))
        return torch.cat([rows, given])

    @torch.no_grad()
    def fold(self) -> None:
        """Add the n-grams into the word rows for good; no training after this."""
        self.words.copy_(self.table())
        self._index = self.before_reading = None

    def _read(self, table: Tensor, rows: Tensor) -> Tensor:
        """Distinct rows `[n]` of a table, `[n, e]`, with gradient."""
        if not _by_rows(table):
            return functional.embedding(rows, table)
        if self.before_reading is not None:
            self.before_reading(table, rows)
        read: Tensor = _Rows.apply(table, rows)
        return read

    def _compose(self, words: WordNgrams, chosen: np.ndarray, by_rows: bool = False) -> Tensor:
        """What the n-grams add to the chosen words, `[n, e]`; by_rows: of few of the n-grams."""
        starts = words.offsets[chosen]
        sizes = words.offsets[chosen + 1] - starts
        ends = np.cumsum(sizes)
        flat = words.ids[np.arange(int(sizes.sum())) + np.repeat(starts - (ends - sizes), sizes)]
        device = self.ngrams.device
        table: Tensor = self.ngrams
        if by_rows:
            # The distinct n-grams, ascending, and each one's place among them.
            self._place[flat] = np.arange(len(flat))
            distinct = np.sort(flat[self._place[flat] == np.arange(len(flat))])
            self._place[distinct] = np.arange(len(distinct))
            flat = self._place[flat]
            table = self._read(table, torch.from_numpy(distinct).to(device))
        total = functional.embedding_bag(
            torch.from_numpy(flat).to(device),
            table,
            torch.from_numpy(ends - sizes).to(device),
            mode="sum",
        )
        return total * torch.from_numpy(words.scales(chosen)).to(total).unsqueeze(1)


def row_table(rows: Tensor) -> nn.Module:
    """A trained table that starts at rows `[V, e]` and gives those of ids `[n]`, `[n, e]`.

    A step costs as much as the rows that are read, as for the words of an encoder.
    """
    return WordEmbedding(rows)


def _by_rows(table: Tensor) -> bool:
    """Whether a table's gradient is row-sparse."""
    sparse = table.device.type in ("cpu", "cuda")
    return sparse and table.requires_grad and len(table) >= SPARSE_FROM


class _Rows(torch.autograd.Function):
    """Distinct rows of a table; their gradient names them alone."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.shape = table.shape
        return table.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (rows,) = ctx.saved_tensors
        table = torch.sparse_coo_tensor(rows[None], grads[0], ctx.shape, check_invariants=False)
        return table, None


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
        weights = {
            name: t.to(torch.float32 if t.is_floating_point() else t.dtype, copy=True)
            for name, t in tensors.items()
        }
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


class MeanEncoder(WordEncoder):
    """Mean of a text's word vectors, `[N, e]`.

    With `freeze` it is the control `vectors_logreg` as a run. Trained, it has the vectors of
    n-grams, and with `tune_vectors` those of words, to change.
    """

    unread = frozenset({"layers", "hidden_size", "dropout", "word_dropout", "pooling", "compile"})

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

    @classmethod
    def emoji_scores(cls, config: Config, indexer: TextIndexer) -> np.ndarray | None:
        assert isinstance(indexer, WordIndexer)
        return indexer.emoji_scores if config.members == 1 else None

    def onnx_graph(self, graph: GraphBuilder, lengths: str, oov_vectors: str) -> str:
        from superconext.encoders.onnx_graph import WordNodes

        nodes = WordNodes(graph, self, lengths)
        return nodes.pooled(nodes.words(oov_vectors))

    def forward(self, ids: Tensor, lengths: Tensor, table: Tensor | None = None) -> EncoderOutput:
        words = self.embedding(ids) if table is None else functional.embedding(ids, table)
        columns = torch.arange(ids.shape[1], device=ids.device)
        mask = columns[None, :] < lengths[:, None]
        return EncoderOutput(words, mask, pool_mean(words, mask))
