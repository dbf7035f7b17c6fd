"""The base of all encoders: texts to token ids, token ids to token states and a sentence vector.

An encoder comes in two parts. Its `TextIndexer` turns texts into token ids and is shared by all
members of a run; the `Encoder` itself is a torch module that reads those ids. Everything else in
the package holds these two and never a concrete class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from superconext.core.progress import Progress
from superconext.data.token_store import Newcomers, TokenStore
from superconext.text.tokenize import Pieces, Tokenizer

if TYPE_CHECKING:
    from superconext.config.parameters import Config
    from superconext.data.token_store import TokenRows

#: Tokens an encoder reads at once from ragged input.
MOST_TOKENS = 1 << 14


@dataclass
class EncoderOutput:
    """What an encoder says of N sentences.

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


class TextIndexer:
    """Texts to token ids: the part of an encoder that all members of a run share.

    Attributes:
        tokenizer: the run's word tokenizer.
        facts: what the run's manifest says of it.
    """

    tokenizer: Tokenizer
    facts: dict[str, Any]

    def store(self, texts: Sequence[str] | Pieces) -> TokenStore:
        """Token ids of texts `[N]`, or of texts that the tokenizer has cut into pieces."""
        raise NotImplementedError

    def training_store(self, rows: TokenRows, config: Config) -> TokenStore:
        """Token ids of the training rows `[N]`, as training reads them."""
        raise NotImplementedError

    def missing_words(self, tokens: Sequence[Sequence[str]]) -> dict[str, Any]:
        """How many of the words of texts the encoder does not know, for the manifest."""
        return {}

    def class_vectors(self, classes: Sequence[str]) -> tuple[np.ndarray, np.ndarray] | None:
        """Input vectors float32 `[C, e]` that say what each class is called, and for which
        classes there is one, bool `[C]`; None if the encoder has none."""
        return None

    def sizes(self) -> dict[str, int]:
        """Rows of what `pruned` can make smaller, by name."""
        return {}

    def pruned(self, expected: Sequence[str] | None) -> TextIndexer:
        """A smaller indexer for export: without what no text needs.

        expected: texts such as the model will read; words that only other texts have are left
            out too. None keeps all words.
        """
        return self

    def without_rare_words(
        self, min_count: int, public_vectors: bool
    ) -> tuple[TextIndexer, dict[str, np.ndarray], int]:
        """An indexer without the words seen fewer times in training, for privacy.

        public_vectors: whether the word vectors came from a file, so that their words say
            nothing of the training text.

        Returns the indexer, the rows to keep of each table of the encoder (see
        `Encoder.with_rows`) and how many words were left out. Raises RunError where the encoder
        has no words to leave out.
        """
        from superconext.core.errors import RunError

        raise RunError(
            f"{type(self).__name__} keeps no list of words; expected an encoder over word "
            "vectors: leave out --vocabulary-min-count"
        )

    def to_saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """A JSON document and arrays from which `from_saved` makes the same indexer."""
        raise NotImplementedError

    @classmethod
    def from_saved(
        cls, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray], config: Config
    ) -> TextIndexer:
        """The indexer of a run folder, which may be a stranger's.

        Raises ValueError, LookupError or TypeError where the parts do not fit together.
        """
        raise NotImplementedError


class Encoder(nn.Module):
    """Base of all encoders.

    A subclass names its `indexer_class` and defines `fit_indexer`, `build`, `width_of`,
    `from_tensors` and `forward`.

    Attributes:
        sentence_size: the d of `EncoderOutput.sentence`.
        class_tokens: how many class tokens each text is read with, 0 for none.
        ragged: whether it takes ragged input on the CPU, which costs nothing for padding.
        reads_streams: whether it can be trained on rows that are read from the disk.
    """

    indexer_class: ClassVar[type[TextIndexer]]
    sentence_size: int
    class_tokens: int = 0
    ragged: bool = False
    reads_streams: bool = False

    @classmethod
    def fit_indexer(
        cls, rows: TokenRows, config: Config, held_out: Sequence[str], progress: Progress
    ) -> TextIndexer:
        """Learn from the training rows what turns texts into ids: a vocabulary, word vectors.

        held_out: dev and test texts; unlabelled text that repeats one of them is not learned
            from.

        Raises the project's errors for files that cannot be read.
        """
        raise NotImplementedError

    @classmethod
    def build(cls, config: Config, indexer: TextIndexer, class_tokens: int = 0) -> Encoder:
        """A new encoder to train; its weights are drawn from torch's random state.

        It starts from the folder `config.init` where one is named.
        """
        raise NotImplementedError

    @classmethod
    def width_of(cls, config: Config) -> int:
        """The `sentence_size` of an encoder of this configuration."""
        raise NotImplementedError

    @classmethod
    def from_tensors(
        cls, config: Config, indexer: TextIndexer, tensors: Mapping[str, Tensor]
    ) -> Encoder:
        """The encoder of a run folder from its weights by name.

        Raises ValueError, LookupError or RuntimeError where the weights are not those of the
        configuration, before it takes more memory than the weights do.
        """
        raise NotImplementedError

    def start_class_tokens(self, vectors: np.ndarray, known: np.ndarray) -> None:
        """Put vectors `[C, e]` into the class tokens for which `known` `[C]` holds."""

    def finish(self) -> Encoder:
        """The encoder as it is saved and predicts, in evaluation mode; no training follows."""
        return self.eval()

    def with_rows(self, rows: Mapping[str, np.ndarray]) -> Encoder:
        """A copy with the given rows `[n]` of its tables, by the tables' names."""
        raise NotImplementedError

    def onnx_parts(self) -> Any:
        """What an ONNX graph is made of, see `encoders.onnx`.

        Raises RunError for an encoder that has no such form.
        """
        from superconext.core.errors import RunError

        raise RunError(
            f"{type(self).__name__} cannot be written as ONNX; expected an encoder that can: "
            "use --format sentence-transformers, or the run folder itself"
        )

    def forward(self, ids: Tensor, lengths: Tensor, table: Tensor | None = None) -> EncoderOutput:
        """Encode padded ids `[N, T]` with lengths `[N]`.

        table: word vectors `[V + U, e]` to use instead of the encoder's own `[V, e]`, as
            `vector_table` gave them.
        """
        raise NotImplementedError

    def forward_ragged(
        self,
        tokens: np.ndarray,
        lengths: np.ndarray,
        table: Tensor | None = None,
        whole: bool = False,
    ) -> EncoderOutput:
        """The same as `forward` from ids without padding, for encoders with `ragged`.

        tokens: ids of all N sentences, one after the other, `[sum of lengths]`.
        whole: with token states.
        """
        raise NotImplementedError

    def vector_table(self, newcomers: Newcomers | None) -> Tensor | None:
        """Vectors for vocabulary words and newcomers, once for many batches; None if the
        encoder needs none."""
        return None


def length_groups(lengths: np.ndarray, groups: int) -> list[np.ndarray]:
    """Positions `[n]` cut into up to `groups` parts of alike length, shortest first.

    Encoding the parts one by one saves the arithmetic on padding. It changes no result,
    since an encoder treats every sentence alone.
    """
    order = np.argsort(lengths, kind="stable")
    return [part for part in np.array_split(order, min(groups, len(order))) if len(part)]


def token_groups(lengths: np.ndarray, tokens: int = MOST_TOKENS) -> list[np.ndarray]:
    """Positions `[n]` cut into parts of about so many tokens at most, longest first.

    Ragged input needs no parts to save padding; these bound the memory.
    """
    order = np.argsort(-lengths, kind="stable")
    part = np.cumsum(lengths[order]) // tokens
    return np.split(order, np.flatnonzero(np.diff(part)) + 1)


def encode_at_once(
    encoder: Encoder,
    store: TokenStore,
    rows: np.ndarray,
    *,
    whole: bool = False,
    table: Tensor | None = None,
) -> EncoderOutput:
    """Rows of a store in one pass, ragged where the encoder takes that, see `encode_rows`."""
    device = next(encoder.parameters()).device
    if encoder.ragged and device.type == "cpu":
        return encoder.forward_ragged(*store.take(rows), table, whole)
    ids, lengths = store.pad(rows)
    output: EncoderOutput = encoder(
        torch.from_numpy(ids).to(device), torch.from_numpy(lengths).to(device), table
    )
    return output


def encode_rows(
    encoder: Encoder,
    store: TokenStore,
    rows: np.ndarray,
    *,
    whole: bool = False,
    groups: int = 4,
    table: Tensor | None = None,
) -> EncoderOutput:
    """Encode rows of a store, in the order given.

    whole: pad all rows to one width and return their token states; otherwise rows are
        encoded in groups of alike length and `token_states` and `mask` are empty.
    table: see `Encoder.forward`.
    """
    if whole:
        return encode_at_once(encoder, store, rows, whole=True, table=table)
    device = next(encoder.parameters()).device
    lengths = store.lengths_of(rows)
    ragged = encoder.ragged and device.type == "cpu"
    parts = token_groups(lengths) if ragged else length_groups(lengths, groups)
    outputs = [encode_at_once(encoder, store, rows[part], table=table) for part in parts]
    back = torch.from_numpy(np.argsort(np.concatenate(parts))).to(device)
    states = [output.class_states for output in outputs if output.class_states is not None]
    return EncoderOutput.of_sentences(
        torch.cat([output.sentence for output in outputs])[back],
        torch.cat(states)[back] if states else None,
    )


@torch.no_grad()
def encoded_blocks(
    encoder: Encoder, store: TokenStore, *, whole: bool = False, block: int = 1024
) -> Iterator[tuple[np.ndarray, EncoderOutput]]:
    """A whole store in blocks of alike length: row numbers `[n]` and the encoder's output.

    Dropout is off, class tokens stand in their fixed order. whole: with token states.
    """
    training = encoder.training
    encoder.eval()
    table = encoder.vector_table(store.newcomers)
    order = np.argsort(store.lengths, kind="stable")
    try:
        for start in range(0, len(order), block):
            rows = order[start : start + block]
            yield rows, encode_rows(encoder, store, rows, whole=whole, table=table)
    finally:
        encoder.train(training)


def sentence_vectors(encoder: Encoder, store: TokenStore, block: int = 1024) -> np.ndarray:
    """Frozen sentence vectors float32 `[N, d]` of a whole store, dropout off."""
    result = np.empty((len(store), encoder.sentence_size), dtype=np.float32)
    for rows, output in encoded_blocks(encoder, store, block=block):
        result[rows] = output.sentence.float().cpu().numpy()
    return result


#: Numbers a model may have beside those of its file: what need not be saved.
_SLACK = 1 << 20


def check_affordable(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Raise ValueError if a module (on torch's meta device) has more numbers than the tensors."""
    asked = sum(part.numel() for part in (*module.parameters(), *module.buffers()))
    there = sum(tensor.numel() for tensor in tensors.values())
    if asked > there + _SLACK:
        raise ValueError(
            f"config.toml asks for {asked} numbers, encoder.safetensors has {there} of them"
        )
