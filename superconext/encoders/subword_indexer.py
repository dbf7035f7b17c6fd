"""Text to the token ids of a pretrained transformer, by its own tokenizer.

Nothing here needs torch or transformers: the tokenizer is the library `tokenizers`', which a
transformer's `tokenizer.json` describes, and which a run keeps in `vocabulary.json`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.core.errors import MissingExtraError
from superconext.data.token_store import TokenRows, TokenStore, build_store
from superconext.encoders.indexer import TextIndexer
from superconext.text.tokenize import Pieces, Tokenizer

if TYPE_CHECKING:
    from superconext.config.parameters import Config

#: Texts that the tokenizer is given at once.
_AT_ONCE = 1000

#: Names of the token that stands for what a vocabulary lacks, and for what is hidden.
_UNKNOWN, _MASK = ("[UNK]", "<unk>"), ("[MASK]", "<mask>")


@dataclass
class SubwordIndexer(TextIndexer):
    """Texts to ids of subwords, without the special tokens around them.

    Args:
        tokenizer: the run's, which splits at white space alone.
        subwords: a `tokenizers.Tokenizer`.
        architecture: the model's `config.json`.
        max_length: subwords read of a text at most.
        above: what ids are above the tokenizer's, 1 where 0 is to be padding.

    Attributes:
        prefix, suffix: ids of the special tokens before and behind a text.
        unknown, mask: ids of the tokens that stand for what is unknown, and for what is hidden.
    """

    tokenizer: Tokenizer
    subwords: Any
    architecture: dict[str, Any]
    max_length: int
    facts: dict[str, Any] = field(default_factory=dict)
    above: int = 0
    limited: bool = False

    def __post_init__(self) -> None:
        self.subwords.no_truncation()
        self.subwords.no_padding()
        if not {*self.subwords.get_vocab().values()} - {*self._added()}:
            raise ValueError("its tokenizer knows no word")
        try:
            bare = self.subwords.encode("a", add_special_tokens=False).ids
            whole = self.subwords.encode("a").ids
        except Exception as error:  # it raises nothing narrower
            raise ValueError(f"its tokenizer reads no text: {error}") from None
        starts = range(len(whole) - len(bare) + 1)
        start = next((i for i in starts if whole[i : i + len(bare)] == bare), None)
        if not bare or start is None:
            raise ValueError("its tokenizer does not put special tokens around a text")
        self.prefix, self.suffix = whole[:start], whole[start + len(bare) :]
        self.unknown = self._first_of(_UNKNOWN, bare[0])
        self.mask = self._first_of(_MASK, self.unknown)

    def _added(self) -> dict[int, Any]:
        return self.subwords.get_added_tokens_decoder()  # type: ignore[no-any-return]

    def is_special(self, number: int) -> bool:
        """Whether an id is of a token that no text is cut into unless it spells it out."""
        token = self._added().get(number)
        return token is not None and token.special

    def of_raw_text(self) -> Any:
        """The tokenizer for texts as they are, whose white space counts as single spaces here."""
        twin = tokenizer_of(self.subwords.to_str())
        odd = "".join(f"a{space}" for space in ("  ", "\n", "\x1c", "\x85", "\u2028", "\u3000"))
        if twin.encode(f" {odd}").ids == twin.encode(" ".join(odd.split())).ids:
            return twin
        from tokenizers import Regex, normalizers

        own = [] if twin.normalizer is None else [twin.normalizer]
        spaces = [normalizers.Replace(Regex(r"[\s\x1c-\x1f]+"), " "), normalizers.Strip()]
        twin.normalizer = normalizers.Sequence([*spaces, *own])
        return twin

    def _first_of(self, names: Sequence[str], other: int) -> int:
        ids = [self.subwords.token_to_id(name) for name in names]
        return next((number for number in ids if number is not None), other)

    def limit(self, room: int) -> None:
        """Read no more subwords of a text than its encoder has room for."""
        if room < self.max_length:
            self.max_length, self.limited = room, True

    @property
    def ids(self) -> int:
        """One more than the largest id of a token."""
        return 1 + max(self.subwords.get_vocab().values())

    def store(self, texts: Sequence[str] | Pieces) -> TokenStore:
        tokens = texts.lists() if isinstance(texts, Pieces) else self.tokenizer.many(texts)
        return self._store(tokens)

    def training_store(self, rows: TokenRows, config: Config) -> TokenStore:
        return self._store(list(rows))

    def _ids(self, tokens: Sequence[Sequence[str]]) -> list[list[int]]:
        """The subwords of each text, uncut."""
        ids: list[list[int]] = []
        for start in range(0, len(tokens), _AT_ONCE):
            # A lone surrogate is no text to it.
            texts = [
                " ".join(row).encode("utf-8", "replace").decode()
                for row in tokens[start : start + _AT_ONCE]
            ]
            encoded = self.subwords.encode_batch(texts, add_special_tokens=False)
            ids += [text.ids or [self.unknown] for text in encoded]
        return ids

    def _store(self, tokens: Sequence[Sequence[str]]) -> TokenStore:
        store = build_store(self._ids(tokens), self.max_length)
        return replace(store, tokens=store.tokens + self.above) if self.above else store

    def cut(self, tokens: Sequence[Sequence[str]]) -> int:
        return sum(len(ids) > self.max_length for ids in self._ids(tokens))

    def to_saved(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        document = {
            "tokenizer": self.tokenizer.to_dict(),
            "subwords": json.loads(self.subwords.to_str()),
            "architecture": self.architecture,
            **self.facts,
        }
        return document, {}

    @classmethod
    def from_saved(
        cls, document: Mapping[str, Any], arrays: Mapping[str, np.ndarray], config: Config
    ) -> SubwordIndexer:
        tokenizer, architecture = (
            Tokenizer.from_dict(document["tokenizer"]),
            document["architecture"],
        )
        if not isinstance(architecture, dict):
            raise ValueError("the architecture is no table")
        subwords = tokenizer_of(json.dumps(document["subwords"]))
        facts = {"model": document["model"]} if isinstance(document.get("model"), dict) else {}
        return cls(tokenizer, subwords, architecture, config.max_length, facts=facts)

    def write_onnx(self, folder: Path) -> dict[str, Any]:
        limits = {"max_length": self.max_length, "limited": self.limited}
        return {**limits, **self.to_saved()[0]}

    @classmethod
    def from_onnx(cls, folder: Path, document: Mapping[str, Any]) -> SubwordIndexer:
        subwords = tokenizer_of(json.dumps(document["subwords"]))
        tokenizer = Tokenizer.from_dict(document["tokenizer"])
        most, limited = int(document["max_length"]), bool(document.get("limited"))
        return cls(tokenizer, subwords, {}, most, above=1, limited=limited)


def tokenizer_of(text: str) -> Any:
    """The `tokenizers.Tokenizer` of the text of a `tokenizer.json`.

    Raises ValueError where it is none, MissingExtraError without the library.
    """
    # Its threads and a process that is forked later do not go together, and it would say so.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    try:
        from tokenizers import Tokenizer as Subwords
    except ImportError:
        raise MissingExtraError("The encoder transformer", "tokenizers") from None
    try:
        return Subwords.from_str(text)
    except Exception as error:  # it raises nothing narrower
        raise ValueError(f"no tokenizer ({error})") from None
