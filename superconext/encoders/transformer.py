"""A pretrained transformer as an encoder: BERT, RoBERTa, XLM-R, MiniLM and their like.

A text is read as [CLS] text [SEP], in the model's own special tokens. The sentence vector is the
first state, or the mean or the largest of all of them, special tokens included, which is how such
models are pretrained and published; the token states are the text's own.

With class tokens it is [CLS] label_1 .. label_C [SEP] text [SEP], as in DualCL: trained input
vectors at the labels' places. They stand at the same position as [CLS], where the model has
positions, so that their order says nothing; where it still does, as by relative positions (MPNet,
DeBERTa), training draws the order of each text anew. The text then begins at the position after
[SEP], and has the second token type where the model has two.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import re
import sqlite3
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from superconext.config.parameters import (
    CheckedOptions,
    Config,
    options_by_name,
    options_text,
    own_options,
    parameter,
    parse_options,
)
from superconext.core import cache
from superconext.core.errors import ConfigError, RunError, SuperConTextError
from superconext.core.files import cache_dir, write_json
from superconext.core.progress import Progress
from superconext.data.lines import shown as quoted
from superconext.data.token_store import TokenRows
from superconext.encoders.base import Encoder, EncoderOutput, TextIndexer
from superconext.encoders.layers import POOLING
from superconext.encoders.model_folder import (
    POOLINGS,
    ModelFolder,
    import_peft,
    language_head,
    shell_of,
    transformer_of,
    width_of,
)
from superconext.encoders.subword_indexer import SubwordIndexer

if TYPE_CHECKING:
    from superconext.encoders.onnx_graph import GraphBuilder

#: Numbers that the backward pass keeps of a token in each layer, for each of its state's.
_KEPT_NUMBERS = 25

#: Share of the words that are hidden, and what share of these is shown as a mask or as any word
#: (Devlin et al., 2019).
_HIDDEN, _MASKED, _CHANGED = 0.15, 0.8, 0.1

_LAYER = re.compile(r"\.(?:layers?|blocks?|h)\.(\d+)\.")
#: And what stands below the first: tables of words and positions, rows of class tokens.
_INPUT = re.compile(r"embed|\.w[tp]e\.|^class_rows$")


@dataclass(frozen=True)
class Options(CheckedOptions):
    """Settings of the encoder."""

    revision: str = parameter("", "Branch, tag or commit of a model on the Hub.")
    layer: int = parameter(
        -1, "Layer whose states are read, 0 for the input vectors; -1: the last one.", low=-1
    )
    warmup_ratio: float = parameter(
        0.1,
        "Share of the steps over which learning rates rise; over the others they fall to 0.",
        low=0,
        high=1,
    )
    weight_decay: float = parameter(
        0.01, "Weight decay, but of biases and of norms.", low=0, high=1
    )
    layer_decay: float = parameter(
        1.0,
        "What the learning rate is multiplied by from each layer to the one below it.",
        low=0,
        high=1,
    )
    head_rate: float = parameter(
        0.001,
        "Learning rate of the projection head and of the objective's own weights.",
        low=0,
        open_low=True,
    )
    unit: bool = parameter(
        False, "Whether sentence vectors have one length, the square root of their size."
    )
    lora: int = parameter(
        0,
        "Rank of adapters (LoRA) that are trained beside every linear layer in place of all "
        "weights; 0: none.",
        low=0,
        high=512,
    )


class TransformerEncoder(Encoder):
    """A base model of the library transformers, pooled.

    Args:
        model: the base model. indexer: its text side.
        config: pooling, dropout and the like. class_tokens: as the base class has them.
    """

    indexer_class = SubwordIndexer
    has_class_tokens = True
    reads_text = True
    reads_model = True
    fewest_batches = 1
    poolings = ("cls", "mean", "max")
    unread = frozenset(
        {"layers", "hidden_size", "vector_dimension", "vector_method", "tune_vectors"}
        | {"subwords", "min_count", "compile"}
    )
    options_type = Options

    def __init__(
        self, model: nn.Module, indexer: SubwordIndexer, config: Config, class_tokens: int = 0
    ) -> None:
        super().__init__()
        architecture: Any = model.config
        self.model, self.options = model, _options(config)
        self.sentence_size = int(architecture.hidden_size)
        assert config.pooling is not None  # its default is mean
        self.class_tokens, self.pooling = class_tokens, config.pooling
        self.word_dropout = config.word_dropout
        self.cache: VectorCache | None = None
        #: Of a language model; no part of the encoder's own weights.
        self.language_head: tuple[nn.Module, ...] = ()
        self.pad, self.mask_id = architecture.pad_token_id or 0, indexer.mask
        self.class_rows: nn.Parameter | None = None
        self._reads_order: bool | None = None  # of class tokens; None: not tried yet
        self.before = [*indexer.prefix]
        self.behind = [*indexer.suffix]
        if class_tokens:
            rows = self._words.weight.detach()
            # As far apart as words are; any will do on the meta device.
            spread = 0.02 if rows.is_meta else float(rows.std())
            self.class_rows = nn.Parameter(spread * torch.randn(class_tokens, rows.shape[1]))
            self.before += [indexer.unknown] * class_tokens + self.behind
        self.layers = int(architecture.num_hidden_layers)
        if self.options.layer > self.layers:
            raise ConfigError(
                f"options: layer = {self.options.layer}; expected at most {self.layers}, which "
                "the model has"
            )
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = config.dropout
        takes = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in takes
        self._types = (
            getattr(architecture, "type_vocab_size", 0) if "token_type_ids" in takes else 0
        )
        self._first_position = _first_position(model)
        self.room = _room(model, indexer, class_tokens)
        indexer.limit(self.room)
        if config.freeze:
            self.requires_grad_(False)
        elif self.options.lora:
            _add_adapters(model, self.options.lora)
            self.register_state_dict_post_hook(_without_base)

    @classmethod
    def check(cls, config: Config) -> None:
        super().check(config)
        if not config.model:
            raise ConfigError(
                "encoder = 'transformer' and no model; expected a folder, or a name on the Hugging "
                "Face Hub: add model"
            )
        if config.bridge:
            raise ConfigError(
                f"bridge = {config.bridge!r} with encoder = 'transformer', which knows words as "
                "they are written; expected none: leave it out"
            )
        lora = _options(config).lora
        if lora and _options(config).layer == 0:
            raise ConfigError(
                f"options: lora = {lora} with layer = 0, below which there is no linear layer to "
                "adapt; expected a higher layer: leave one of them out"
            )
        if lora and config.freeze:
            raise ConfigError(
                f"options: lora = {lora} with freeze, which trains nothing; expected one of them: "
                "leave the other out"
            )
        if lora:
            import_peft()

    @classmethod
    def fit_indexer(
        cls, rows: TokenRows, config: Config, held_out: Sequence[str], progress: Progress
    ) -> SubwordIndexer:
        found = _folder(config)
        name = found.name if found.revision else Path(found.name).name
        facts = {"name": name, "revision": found.revision, "sha256": found.sha256()}
        progress.say(f"model: {name}, sha256 {found.sha256()[:12]}")
        if (own := found.pooling()) not in (None, config.pooling):
            mend = f"add --pooling {own} for its own" if own in cls.poolings else "results differ"
            progress.warn(
                f"model: {name} was trained to pool by {quoted(own, 60)} (1_Pooling), and pooling "
                f"= {config.pooling!r}: {mend}"
            )
        try:
            return SubwordIndexer(
                rows.tokenizer,
                found.subwords(),
                found.architecture(),
                config.max_length,
                {"model": facts},
            )
        except SuperConTextError:
            raise
        except ValueError as error:
            raise _unusable(config, error) from None

    @classmethod
    def limit(cls, config: Config, indexer: TextIndexer, class_tokens: int) -> None:
        assert isinstance(indexer, SubwordIndexer)
        # Where a run begins: earlier runs of such a model open.
        if config.pooling == "cls" and not indexer.prefix:
            raise ConfigError(
                "pooling = 'cls', and the model's tokenizer puts no token of its own before a "
                "text, as in decoders: expected 'mean' or 'max', as the first word stands for "
                "itself alone"
            )
        if class_tokens and not indexer.prefix:
            raise ConfigError(
                f"objective = {config.objective!r} puts class tokens before a text, and the "
                "model's tokenizer puts no token of its own there, as in decoders; expected an "
                "encoder such as BERT: use another model or objective"
            )
        try:
            shell = shell_of(indexer.architecture, _folder(config).weights())
        except SuperConTextError:
            raise
        except Exception as error:  # whatever transformers finds wrong with a foreign folder
            raise _unusable(config, error) from None
        indexer.limit(_room(shell, indexer, class_tokens))

    @classmethod
    def build(
        cls, config: Config, indexer: TextIndexer, class_tokens: int = 0
    ) -> TransformerEncoder:
        assert isinstance(indexer, SubwordIndexer)
        found = _folder(config)
        tensors = found.tensors()
        try:
            model = transformer_of(indexer.architecture, tensors)
            _check_ids(model, indexer)
        except SuperConTextError:
            raise
        except Exception as error:
            raise _unusable(config, error) from None
        encoder = cls(model, indexer, config, class_tokens)
        if config.freeze:
            options = encoder.options
            settings: tuple[Any, ...] = (found.sha256(), options.layer, config.pooling)
            settings += (indexer.prefix, indexer.suffix, options.unit)
            encoder.cache = VectorCache(cache_dir() / "transformers", repr(settings))
        return encoder

    @classmethod
    def width_of(cls, config: Config) -> int:
        return width_of(_folder(config).architecture())

    @classmethod
    def from_tensors(
        cls, config: Config, indexer: TextIndexer, tensors: Mapping[str, Tensor]
    ) -> TransformerEncoder:
        assert isinstance(indexer, SubwordIndexer)
        adapted = bool(_options(config).lora) and not config.freeze
        if adapted:
            weights = _base_of(config, indexer).tensors()
        else:
            own = {name: t for name, t in tensors.items() if name.startswith("model.")}
            # A tensor may be a view of the file, which somebody may write over.
            weights = {
                n.removeprefix("model."): t.to(torch.float32, copy=True) for n, t in own.items()
            }
        model = transformer_of(indexer.architecture, weights)
        _check_ids(model, indexer)
        rows = tensors.get("class_rows")
        encoder = cls(model, indexer, config, 0 if rows is None else len(rows))
        if adapted and encoder.state_dict().keys() != tensors.keys():
            raise ValueError("its weights are not those of the adapters that config.toml names")
        encoder.load_state_dict(dict(tensors), strict=not adapted)
        return encoder

    @property
    def _words(self) -> nn.Embedding:
        words: nn.Embedding = self.model.get_input_embeddings()  # type: ignore[operator]
        return words

    def start_class_tokens(self, indexer: TextIndexer, classes: Sequence[str]) -> None:
        """A label's token starts at the mean input vector of its name's subwords."""
        assert isinstance(indexer, SubwordIndexer) and self.class_rows is not None
        names = [re.sub(r"[\W_]+|(?<=[a-z])(?=[A-Z])", " ", name) for name in classes]
        store = indexer.store(names)
        with torch.no_grad():
            for row in range(len(classes)):
                ids = torch.from_numpy(store.take(np.array([row]))[0].astype(np.int64))
                if indexer.unknown not in ids:
                    self.class_rows[row] = self._words.weight[ids].mean(dim=0)

    def start_guessing(self, config: Config) -> bool:
        found = _folder(config)
        head = None
        if self.options.layer in (-1, self.layers):
            try:
                head = language_head(found.architecture(), found.tensors(), self._words)
            except SuperConTextError:
                raise
            except Exception as error:  # transformers 5.12 fails on a head of DeBERTa
                raise ConfigError(
                    f"options: language_model needs a head that guesses words, and that of "
                    f"{config.model!r} cannot be used ({' '.join(str(error).split())[:200]}); "
                    "expected one that this version of transformers reads: leave language_model "
                    "out, use another version or another model"
                ) from None
        self.language_head = () if head is None else (head,)
        return head is not None

    def guess(self, ids: Tensor, lengths: Tensor, draws: Tensor) -> Tensor:
        shown, hidden = hide(ids, draws, self.mask_id, len(self._words.weight))
        states = self(shown, lengths).token_states
        ids, hidden = ids[:, : states.shape[1]], hidden[:, : states.shape[1]]
        (head,) = self.language_head
        logits = head.to(ids.device)(inputs_embeds=states[hidden][None]).logits[0]
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        losses = nn.functional.cross_entropy(wide, ids[hidden], reduction="none")
        sums = wide.new_zeros(len(ids)).index_add(0, hidden.nonzero()[:, 0], losses)
        return torch.stack([sums, hidden.sum(dim=1).to(sums)], dim=1)

    def finish(self) -> Encoder:
        self.language_head = ()
        return super().finish()

    def parameter_groups(
        self, learning_rate: float, others: Sequence[nn.Parameter]
    ) -> list[dict[str, Any]]:
        groups: dict[tuple[float, float], list[nn.Parameter]] = {}

        def add(weight: nn.Parameter, rate: float) -> None:
            decay = self.options.weight_decay if weight.ndim > 1 else 0.0
            groups.setdefault((rate, decay), []).append(weight)

        for name, weight in self.named_parameters():
            if weight.requires_grad:
                number = _LAYER.search(name)
                depth = self.layers if _INPUT.search(name) else 0
                if number:
                    depth = self.layers - 1 - int(number[1])
                add(weight, learning_rate * self.options.layer_decay**depth)
        for weight in others:
            add(weight, self.options.head_rate)
        return [{"params": own, "lr": rate, "decay": d} for (rate, d), own in groups.items()]

    def rate(self, done: float) -> float:
        warmup = self.options.warmup_ratio
        return min(
            done / warmup if warmup else 1.0, (1 - done) / (1 - warmup) if warmup < 1 else 1.0
        )

    @property
    def kept_bytes(self) -> int:
        return 4 * _KEPT_NUMBERS * self.layers * self.sentence_size

    @property
    def has_adapters(self) -> bool:
        return any("lora_" in name for name, _ in self.model.named_parameters())

    def merged(self) -> TransformerEncoder:
        """The same encoder without adapters: what they add is in the weights."""
        if not self.has_adapters:
            return self
        twin = copy.deepcopy(self)
        for name, part in [*twin.model.named_modules()]:
            if hasattr(part, "lora_A"):
                part.merge()  # type: ignore[operator]
                twin.model.set_submodule(name, part.get_base_layer())  # type: ignore[operator]
        return twin

    def standing_alone(self, config: Config) -> tuple[Encoder, Config]:
        given = options_by_name(config.options)
        given.pop("lora", None)
        return self.merged(), replace(config, options=options_text(given, {}))

    def sentence_modules(self, indexer: TextIndexer, folder: Path) -> list[dict[str, str]] | None:
        """A transformer and a pooling; not of an inner layer, of class tokens, of text that is
        normalised first, or where padding has no token of its own."""
        assert isinstance(indexer, SubwordIndexer)
        plain = not indexer.tokenizer.normalizer.rules
        plain &= indexer.is_special(self.pad)
        if self.options.layer >= 0 or self.class_tokens or not plain:
            return None
        most = min(indexer.max_length, self.room) + len(self.before) + len(self.behind)
        self.merged().model.save_pretrained(folder)  # type: ignore[operator]
        indexer.of_raw_text().save(str(folder / "tokenizer.json"))
        name = indexer.subwords.id_to_token
        tokens = {"pad_token": name(self.pad)}
        if indexer.is_special(indexer.unknown):
            tokens["unk_token"] = name(indexer.unknown)
        about = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": most}
        write_json(folder / "tokenizer_config.json", {**about, **tokens})
        opened: dict[str, Any] = {"max_seq_length": most}
        if "add_pooling_layer" in inspect.signature(type(self.merged().model)).parameters:
            # Weights that nothing reads would be called missing.
            opened["model_args"] = {"add_pooling_layer": False}
        write_json(folder / "sentence_bert_config.json", opened)
        (folder / "1_Pooling").mkdir()
        pooling: dict[str, Any] = {"word_embedding_dimension": self.sentence_size}
        pooling |= {f"pooling_mode_{mode}": key == self.pooling for key, mode in POOLINGS.items()}
        write_json(folder / "1_Pooling" / "config.json", pooling)
        kinds = {"": "Transformer", "1_Pooling": "Pooling"}
        if self.options.unit:  # of length 1 there; similarities are the same
            (folder / "2_Normalize").mkdir()
            kinds["2_Normalize"] = "Normalize"
        return [{"path": p, "type": f"sentence_transformers.models.{k}"} for p, k in kinds.items()]

    def onnx_graph(self, graph: GraphBuilder, lengths: str, oov_vectors: str) -> str:
        return graph.traced(_SentenceVectors(self.merged()), {"ids": "ids", "lengths": lengths})

    def onnx_arrays(self) -> dict[str, np.ndarray]:
        return {}

    @property
    def onnx_ids(self) -> tuple[int, int]:
        return 1, len(self._words.weight) + 1

    def forward(self, ids: Tensor, lengths: Tensor, table: Tensor | None = None) -> EncoderOutput:
        ids, lengths = ids[:, : self.room], lengths.clamp(max=self.room)
        if self.cache is not None and not self.training:
            rows = ids.cpu().numpy(), lengths.cpu().numpy()
            vectors = self.cache.vectors(*rows, lambda i: self._read(ids[i], lengths[i]).sentence)
            return EncoderOutput.of_sentences(torch.from_numpy(vectors).to(ids.device))
        return self._read(ids, lengths)

    def _read(self, ids: Tensor, lengths: Tensor, order: Tensor | None = None) -> EncoderOutput:
        """order: of the classes whose tokens stand there one after another, `[N, C]`; None: drawn
        in training where it matters, else by their numbers."""
        texts, width = ids.shape
        front, back = len(self.before), len(self.behind)
        mask = torch.arange(width, device=ids.device) < lengths[:, None]
        if self.training and self.word_dropout > 0:
            hidden = torch.rand(ids.shape, device=ids.device) < self.word_dropout
            ids = ids.masked_fill(hidden, self.mask_id)
        whole = ids.new_full((texts, front + width + back), self.pad)
        whole[:, :front] = ids.new_tensor(self.before)
        whole[:, front : front + width] = ids.masked_fill(~mask, self.pad)
        ends = front + lengths[:, None] + torch.arange(back, device=ids.device)
        whole.scatter_(1, ends, ids.new_tensor(self.behind).expand(texts, -1))
        columns = torch.arange(whole.shape[1], device=ids.device)
        read = columns < front + back + lengths[:, None]
        first, last = front, front  # of the class tokens: none
        given: dict[str, Any] = {"input_ids": whole}
        if self.class_rows is not None:
            last = front - back
            first = last - self.class_tokens
            if order is None and self.training and self._order_matters():
                order = torch.rand(texts, self.class_tokens, device=ids.device).argsort(dim=1)
            given = self._with_classes(whole, first, last, order)
        states = self._states(given, read)
        pooled = read & ((columns < first) | (columns >= last))
        classes = states[:, first:last] if self.class_rows is not None else None
        if classes is not None and order is not None:
            classes = classes.gather(1, order.argsort(dim=1).unsqueeze(2).expand_as(classes))
        sentence = states[:, 0] if self.pooling == "cls" else POOLING[self.pooling](states, pooled)
        if self.options.unit:
            sentence = self.sentence_size**0.5 * nn.functional.normalize(sentence)
        return EncoderOutput(states[:, front : front + width], mask, sentence, classes)

    @torch.no_grad()
    def _order_matters(self) -> bool:
        """Whether a class's state depends on where its token stands among the others."""
        if self._reads_order is None:
            assert self.class_rows is not None
            self.eval()
            ids = torch.full((1, 1), self.mask_id, device=self.class_rows.device)
            order = torch.arange(self.class_tokens, device=ids.device)[None]
            one, other = (
                self._read(ids, torch.ones_like(ids[0]), places).class_states
                for places in (order, order.flip(1))
            )
            assert one is not None and other is not None
            least = 1e-4 * float(one.abs().max())
            self._reads_order = not torch.allclose(one, other, rtol=0, atol=least)
            self.train()
        return self._reads_order

    def _with_classes(
        self, whole: Tensor, first: int, last: int, order: Tensor | None
    ) -> dict[str, Any]:
        """The model's input with the class tokens at the columns from `first` to `last`."""
        assert self.class_rows is not None
        vectors = self._words(whole)
        rows = self.class_rows.to(vectors.dtype)
        rows = rows.expand(whole.shape[0], -1, -1) if order is None else rows[order]
        vectors = torch.cat([vectors[:, :first], rows, vectors[:, last:]], dim=1)
        given: dict[str, Any] = {"inputs_embeds": vectors}
        columns = torch.arange(whole.shape[1], device=whole.device)
        if self._takes_positions:
            # Class tokens stand where the token before them does.
            places = (columns - self.class_tokens).clamp(min=first - 1)
            places = torch.where(columns < first, columns, places)
            given["position_ids"] = (self._first_position + places).expand(whole.shape[0], -1)
        if self._types > 1:
            text = (columns >= len(self.before)).to(whole.dtype)
            given["token_type_ids"] = text.expand(whole.shape[0], -1)
        return given

    def _states(self, given: dict[str, Any], read: Tensor) -> Tensor:
        """States `[N, L, d]` of the chosen layer."""
        layer = self.options.layer
        output = self.model(
            **given, attention_mask=read.to(torch.int64), output_hidden_states=layer >= 0
        )
        states: Tensor = output.last_hidden_state if layer < 0 else output.hidden_states[layer]
        if states.shape[:2] != read.shape:
            raise ConfigError(
                f"the model gives {states.shape[1]} states of {read.shape[1]} tokens; expected one "
                "of each: use another model, or layer"
            )
        return states


class _SentenceVectors(nn.Module):
    """Ids that are one higher, so that 0 is padding, and lengths to sentence vectors."""

    def __init__(self, encoder: TransformerEncoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.eval()

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        return self.encoder._read((ids - 1).clamp(min=0), lengths).sentence


def hide(ids: Tensor, draws: Tensor, mask: int, words: int) -> tuple[Tensor, Tensor]:
    """What is shown of ids `[N, T]`, and booleans: which are hidden. See `Encoder.guess`."""
    kind = draws[0] / _HIDDEN
    any_word = (draws[1] * words).to(ids.dtype).clamp(max=words - 1)
    shown = torch.where(kind < _MASKED + _CHANGED, any_word, ids)
    return torch.where(kind < _MASKED, mask, shown), kind < 1


def _first_position(model: nn.Module) -> int:
    """RoBERTa's positions begin behind that of padding."""
    for name, part in model.named_modules():
        padding = getattr(part, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            return 1 + int(padding)
    return 0


def _room(model: nn.Module, indexer: SubwordIndexer, class_tokens: int) -> int:
    """Subwords of a text that a model reads beside special and class tokens. Raises ConfigError
    where that is none."""
    architecture: Any = model.config
    places = getattr(architecture, "max_position_embeddings", None) or 0
    places = places if places > 0 else 1 << 20  # relative positions have no end
    around = len(indexer.prefix) + len(indexer.suffix)
    around += class_tokens + len(indexer.suffix) if class_tokens else 0
    room: int = places - _first_position(model) - around
    if room < 1:
        of_classes = f" and {class_tokens} class tokens" if class_tokens else ""
        mend = "fewer classes: use another objective" if class_tokens else "room: use another model"
        raise ConfigError(
            f"the model reads {places} tokens at most, and special tokens{of_classes} leave no "
            f"room for a text; expected {mend}"
        )
    return room


def _add_adapters(model: nn.Module, rank: int) -> None:
    """Put adapters of a rank beside the linear layers of a model, and freeze everything else.

    Source: Hu et al. (2022), "LoRA", with a scale of 2 whatever the rank.
    """
    peft = import_peft()
    settings = peft.LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear")
    try:
        peft.inject_adapter_in_model(settings, model)
    except ValueError as error:
        raise ConfigError(
            f"options: lora = {rank} cannot be had of this model "
            f"({' '.join(str(error).split())[:200]}); expected a model with linear layers: "
            "leave lora out"
        ) from None


def _without_base(module: nn.Module, tensors: dict[str, Any], prefix: str, _: Any) -> None:
    """Leave the weights out that adapters stand beside: they are the base model's."""
    assert isinstance(module, TransformerEncoder)
    if not module.has_adapters:  # merged
        return
    for name in [n for n in tensors if n.startswith(f"{prefix}model.") and "lora_" not in n]:
        del tensors[name]


def _base_of(config: Config, indexer: SubwordIndexer) -> ModelFolder:
    """The model that a run's adapters belong to; nothing is downloaded for it. Raises RunError."""
    facts = indexer.facts["model"]
    belong = f"the run's adapters belong to {facts['name']}, sha256 {str(facts['sha256'])[:12]}"
    try:
        found = ModelFolder.find(config.model or "", facts["revision"] or "", download=False)
        sha256 = found.sha256()
    except ConfigError as error:
        raise RunError(f"{belong}; {error}") from None
    if sha256 != facts["sha256"]:
        raise RunError(
            f"{belong}; model = {config.model!r}: found weights of sha256 {sha256[:12]}; expected "
            "that model: put it back"
        )
    return found


def _options(config: Config) -> Options:
    return parse_options(own_options(config.options, Options), Options)


def _folder(config: Config) -> ModelFolder:
    return ModelFolder.find(config.model or "", _options(config).revision)


def _unusable(config: Config, error: Exception) -> ConfigError:
    reason = " ".join(str(error).split())[:300]
    return ConfigError(
        f"model = {config.model!r}: cannot be used ({reason}); expected a pretrained encoder with "
        "its tokenizer: choose another"
    )


def _check_ids(model: nn.Module, indexer: SubwordIndexer) -> None:
    rows = model.get_input_embeddings().weight.shape[0]  # type: ignore[operator]
    if indexer.ids > rows:
        raise ValueError(f"a tokenizer of {indexer.ids} tokens and {rows} input vectors")


#: Seconds to wait for another process that writes.
_CACHE_PATIENCE = 30
#: Keys that one question asks for; SQLite takes 999 in its oldest versions.
_KEYS_AT_ONCE = 500


_CHECK = 4  # bytes of a checksum


def _check(vector: bytes) -> bytes:
    return zlib.crc32(vector).to_bytes(_CHECK, "little")


class VectorCache:
    """Sentence vectors of a frozen model and its settings, kept on disk by text.

    A cache is one SQLite file, which has each vector's bytes and their CRC-32. What cannot be read
    or written costs time and never a run.

    Args:
        folder: made when missing.
        identity: of the model and of everything else that the vectors follow from.
    """

    def __init__(self, folder: Path, identity: str) -> None:
        self.path = folder / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.sqlite"
        cache.use(self.path)
        cache.trim()

    def vectors(
        self, ids: np.ndarray, lengths: np.ndarray, encode: Callable[[np.ndarray], Tensor]
    ) -> np.ndarray:
        """Vectors float32 `[N, d]` of padded ids `[N, T]` with lengths `[N]`.

        encode: rows `[n]` to their vectors `[n, d]`, for those that are not known.
        """
        keys = [
            hashlib.sha256(np.ascontiguousarray(row[:length], dtype=np.int32).data).digest()
            for row, length in zip(ids, lengths, strict=True)
        ]
        known = self._read(keys)
        missing = {key: row for row, key in enumerate(keys) if key not in known}
        if missing:
            fresh = encode(np.array([*missing.values()])).detach().float().cpu().numpy()
            made = dict(zip(missing, fresh, strict=True))
            self._write(made)
            known |= made
        return np.stack([known[key] for key in keys])

    def _connect(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_CACHE_PATIENCE)
        connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")
        return connection

    def _read(self, keys: list[bytes]) -> dict[bytes, np.ndarray]:
        rows: list[tuple[bytes, bytes]] = []
        try:
            with closing(self._connect()) as connection:
                for start in range(0, len(keys), _KEYS_AT_ONCE):
                    part = keys[start : start + _KEYS_AT_ONCE]
                    marks = ",".join("?" * len(part))
                    query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"
                    rows += connection.execute(query, part)
            return {
                key: np.frombuffer(kept[:-_CHECK], dtype=np.float32)
                for key, kept in rows
                if kept[-_CHECK:] == _check(kept[:-_CHECK])
            }
        except (sqlite3.OperationalError, OSError):  # busy, or no place to write
            return {}
        except (sqlite3.Error, ValueError):  # damaged
            self.path.unlink(missing_ok=True)
            return {}

    def _write(self, vectors: dict[bytes, np.ndarray]) -> None:
        made = [(key, np.ascontiguousarray(vector).tobytes()) for key, vector in vectors.items()]
        rows = [(key, vector + _check(vector)) for key, vector in made]
        try:
            with closing(self._connect()) as connection, connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError):
            return
