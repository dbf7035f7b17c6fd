"""The base of all encoders: texts to token ids, token ids to token states and a sentence vector.

An encoder comes in two parts. Its `TextIndexer` turns texts into token ids and is shared by all
members of a run; the `Encoder` itself is a torch module that reads those ids. Everything else in
the package holds these two and never a concrete class.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from superconext.config.parameters import CheckedOptions, own_options, parse_options
from superconext.core.arithmetic import fast_products
from superconext.core.errors import ConfigError, RunError
from superconext.core.progress import Progress
from superconext.core.registry import expect, expect_floats
from superconext.data.sampler import FEWEST_BATCHES
from superconext.data.token_store import OovWords, TokenStore
from superconext.encoders.indexer import NO_ONNX, TextIndexer

if TYPE_CHECKING:
    from superconext.config.parameters import Config
    from superconext.data.token_store import TokenRows
    from superconext.encoders.onnx_graph import GraphBuilder

#: Tokens an encoder reads at once from ragged input.
MOST_TOKENS = 1 << 14

#: What the backward pass of one layer keeps of one token, in bytes for each of its outputs:
#: gates, cells, states, input and dropout's mask.
BYTES_PER_OUTPUT = 40


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


class Encoder(nn.Module):
    """Base of all encoders.

    A subclass names its `indexer_class` and defines `fit_indexer`, `build`, `width_of`,
    `from_tensors` and `forward`.

    Attributes:
        sentence_size: the d of `EncoderOutput.sentence`.
        class_tokens: how many class tokens each text is read with, 0 for none.
        ragged: whether it takes ragged input on the CPU, which costs nothing for padding.
        reads_streams: whether it can be trained on rows that are read from the disk.
        has_class_tokens: whether it can read texts with a trained token for each class.
        reads_pretrained: whether `build` can start from a folder of `superconext pretrain`.
        reads_text: whether its indexer splits words itself: the tokens that it is given are then
            what stands between white space, as it is written unless `normalize` names a profile.
        reads_model: whether it starts from `model`, a pretrained model of others.
        fewest_batches: balanced batches in an epoch at least, where `steps_per_epoch` is not given.
        poolings: values of `pooling` that it can have.
        unread: parameters that it does not read, and are not refused beside it either.
        options_type: dataclass of the settings that it alone has, see `config.parameters`.
    """

    #: What a class has to define, beside what brings its tokens.
    required: ClassVar[tuple[str, ...]] = ("width_of", "forward")
    indexer_class: ClassVar[type[TextIndexer]]
    sentence_size: int
    class_tokens: int = 0
    ragged: bool = False
    reads_streams: bool = False
    has_class_tokens: bool = False
    reads_pretrained: bool = False
    reads_text: bool = False
    reads_model: bool = False
    fewest_batches: int = FEWEST_BATCHES
    poolings: tuple[str, ...] = ("last", "mean", "max")
    unread: frozenset[str] = frozenset()
    options_type: type = CheckedOptions

    @classmethod
    def check(cls, config: Config) -> None:
        """Raise ConfigError for a configuration that this encoder cannot have, before any file of
        rows is read, and MissingExtraError where a package is missing."""
        parse_options(own_options(config.options, cls.options_type), cls.options_type)
        if config.model and not cls.reads_model:
            raise ConfigError(
                f"model = {config.model!r} with encoder = {config.encoder!r}, which starts from no "
                "model; expected an encoder that does: add encoder transformer, or leave it out"
            )
        if config.pooling is not None and config.pooling not in cls.poolings:
            raise ConfigError(
                f"pooling = {config.pooling!r} with encoder = {config.encoder!r}; expected one of "
                f"{', '.join(cls.poolings)}"
            )

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
    def emoji_scores(cls, config: Config, indexer: TextIndexer) -> np.ndarray | None:
        """Weights float `[K, d]` whose products with its sentence vectors at unit length, as they
        are before training, tell K emoji apart; None where nothing has learned such.

        config: with the `init` that the run starts from. Raises RunError where that is damaged.
        """
        return None

    @classmethod
    def limit(cls, config: Config, indexer: TextIndexer, class_tokens: int) -> None:
        """Let the indexer cut texts where this encoder has no room for more beside so many class
        tokens, before the first text is counted; `build` does so too."""

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

    def start_class_tokens(self, indexer: TextIndexer, classes: Sequence[str]) -> None:
        """Put what the classes are called into their class tokens, as far as it is known."""

    def start_guessing(self, config: Config) -> bool:
        """Prepare `guess` with what the model that training starts from has for it; False if it
        has nothing."""
        return False

    def guess(self, ids: Tensor, lengths: Tensor, draws: Tensor) -> Tensor:
        """How badly hidden words are guessed from the others, with gradient.

        draws: uniform numbers `[2, N, T]` that choose the hidden words of padded ids `[N, T]` and
            what is shown in their place; 1 behind a text's end.

        Returns for each text the sum of -log p(word) over its hidden words, and their number,
        `[N, 2]`.
        """
        raise NotImplementedError

    def parameter_groups(
        self, learning_rate: float, others: Sequence[nn.Parameter]
    ) -> list[dict[str, Any]]:
        """All that is trained as groups of `params` with their `lr` and, where it is not 0, their
        `decay`: each step makes their weights smaller by `lr` times that share.

        others: trained weights of the projection head and of the objective.
        """
        trained = [p for p in self.parameters() if p.requires_grad]
        return [{"params": [*trained, *others], "lr": learning_rate}]

    def rate(self, done: float) -> float:
        """What learning rates are multiplied by when this share of all steps is done."""
        return 1.0

    @property
    def kept_bytes(self) -> int:
        """What the backward pass keeps of one token, in bytes, about."""
        return BYTES_PER_OUTPUT * self.sentence_size

    def finish(self) -> Encoder:
        """The encoder as it is saved and predicts, in evaluation mode; no training follows."""
        return self.eval()

    def with_rows(self, rows: Mapping[str, np.ndarray]) -> Encoder:
        """A copy with the given rows `[n]` of its tables, by the tables' names."""
        raise NotImplementedError

    def onnx_graph(self, graph: GraphBuilder, lengths: str, oov_vectors: str) -> str:
        """Add the nodes from token ids to sentence vectors to an ONNX graph.

        Args:
            graph: has the input `ids`, int64 `[N, T]`, 0 behind a text's end; see `onnx_ids`.
            lengths: name of the texts' lengths, int64 `[N]`.
            oov_vectors: name of the vectors float32 `[words, e]` of the ids behind those of
                `vector_table(None)`, which an encoder with an ONNX form has.

        Returns the name of the sentence vectors float32 `[N, d]`. Raises RunError for an encoder
        that has no such form.
        """
        raise RunError(NO_ONNX.format(type(self).__name__))

    @property
    def onnx_ids(self) -> tuple[int, int]:
        """What the graph's ids are above the encoder's own, and the first id that is none of its
        `vector_table(None)`, nor of its tokens."""
        table = self.vector_table(None)
        return 0, 0 if table is None else len(table)

    def onnx_arrays(self) -> dict[str, np.ndarray]:
        """Arrays from which `oov_vectors` are made where the graph runs, by name."""
        raise RunError(NO_ONNX.format(type(self).__name__))

    @property
    def has_adapters(self) -> bool:
        """Whether its other weights stay where they were read from."""
        return False

    def standing_alone(self, config: Config) -> tuple[Encoder, Config]:
        """An encoder of the same vectors that keeps all its weights, and its configuration; itself
        where none are elsewhere."""
        return self, config

    def sentence_modules(self, indexer: TextIndexer, folder: Path) -> list[dict[str, str]] | None:
        """Write the encoder as modules of the library sentence-transformers itself, for which
        nothing else need be installed.

        Returns their entries in `modules.json`; None, and nothing is written, where it has no
        such form.
        """
        return None

    def forward(self, ids: Tensor, lengths: Tensor, table: Tensor | None = None) -> EncoderOutput:
        """Encode padded ids `[N, T]` with lengths `[N]`, each sentence alone: in training mode
        aside, neither padding nor the other sentences may change its vector.

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

    def vector_table(self, oov_words: OovWords | None) -> Tensor | None:
        """Vectors for vocabulary words and oov_words, once for many batches; None if the
        encoder needs none."""
        return None


def length_groups(lengths: np.ndarray, groups: int) -> list[np.ndarray]:
    """Positions `[n]` cut into `groups` parts of alike length, more where these are long, shortest
    first.

    Encoding the parts one by one saves the arithmetic on padding. It changes no result,
    since an encoder treats every sentence alone.
    """
    order = np.argsort(lengths, kind="stable")
    parts = [part for part in np.array_split(order, min(groups, len(order))) if len(part)]
    # Each in pieces of about `MOST_TOKENS`, padding counted.
    pieces = [-(-len(part) * int(lengths[part[-1]]) // MOST_TOKENS) for part in parts]
    return [
        piece
        for part, count in zip(parts, pieces, strict=True)
        for piece in np.array_split(part, min(count, len(part)))
    ]


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
        output = encoder.forward_ragged(*store.take(rows), table, whole)
        return _checked(encoder, "forward_ragged", output, len(rows), whole)
    ids, lengths = store.pad(rows)
    output = encoder(torch.from_numpy(ids).to(device), torch.from_numpy(lengths).to(device), table)
    return _checked(encoder, "forward", output, len(rows), whole)


def _checked(encoder: Encoder, method: str, output: Any, count: int, whole: bool) -> EncoderOutput:
    """What a method of the encoder's has given for so many rows. Raises ConfigError where a part of
    it is of another shape, or there is none that is needed."""
    expect(isinstance(output, EncoderOutput), encoder, method, output, "an EncoderOutput")
    size, states = encoder.sentence_size, output.token_states
    parts: dict[str, tuple[int | str, ...]] = {"sentence": (count, size)}
    if encoder.class_tokens:
        parts["class_states"] = (count, encoder.class_tokens, size)
    if whole:
        width = states.shape[1] if isinstance(states, Tensor) and states.dim() == 3 else "T"
        parts["token_states"] = (count, width, size)
    for name, shape in parts.items():
        expect_floats(encoder, f"{method} as {name}", getattr(output, name), shape, finite=False)
    if whole:
        right = isinstance(output.mask, Tensor) and output.mask.shape == states.shape[:2]
        told = f"a mask of shape {tuple(states.shape[:2])}"
        expect(right, encoder, f"{method} as mask", output.mask, told)
    return output  # type: ignore[no-any-return]


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

    Dropout is off, class tokens are in their fixed order. whole: with token states.
    """
    training = encoder.training
    on_processor = next(encoder.parameters()).device.type == "cpu"
    encoder.eval()
    table = encoder.vector_table(store.oov_words)
    order = np.argsort(store.lengths, kind="stable")
    try:
        for start in range(0, len(order), block):
            rows = order[start : start + block]
            with fast_products(on_processor):
                output = encode_rows(encoder, store, rows, whole=whole, table=table)
            yield rows, output
    finally:
        encoder.train(training)


def sentence_vectors(encoder: Encoder, store: TokenStore) -> np.ndarray:
    """Frozen sentence vectors float32 `[N, d]` of a whole store, dropout off."""
    result = np.empty((len(store), encoder.sentence_size), dtype=np.float32)
    for rows, output in encoded_blocks(encoder, store):
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
