"""The vocabulary: words by id, and tokens to ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superconext.core.errors import ConfigError, RunError

PAD, UNK = "<pad>", "<unk>"
PAD_ID, UNK_ID = 0, 1
FORMAT = 1


class Vocabulary:
    """Words by id: `<pad>` is 0, `<unk>` is 1, the rest by count descending, then by word.

    Args:
        words: the words without the two specials, in order of their ids from 2 on.
        counts: how often each occurred in training.
        unknown: occurrences in training that were left out and so read as `<unk>`.
    """

    def __init__(self, words: Sequence[str], counts: Sequence[int], unknown: int = 0) -> None:
        if len(words) != len(counts):
            raise ConfigError(
                f"vocabulary: found {len(words)} words and {len(counts)} counts, "
                "expected one count for each word; pass lists of the same length"
            )
        self.words: tuple[str, ...] = (PAD, UNK, *words)
        self.counts: tuple[int, ...] = (0, int(unknown), *map(int, counts))
        self._ids = dict(zip(self.words, range(len(self.words)), strict=True))
        if len(self._ids) != len(self.words):
            double = next(word for word, n in Counter(self.words).items() if n > 1)
            raise ConfigError(
                f"vocabulary: found {double!r} twice, expected distinct words other than "
                f"{PAD} and {UNK}; remove the duplicate"
            )
        # A text that spells out <pad> must not be read as padding.
        self._lookup = {**self._ids, PAD: UNK_ID}

    @classmethod
    def build(
        cls,
        token_lists: Iterable[Sequence[str]],
        min_count: int = 1,
        max_size: int | None = None,
    ) -> Vocabulary:
        """Count the tokens of the texts and keep the frequent ones.

        Words seen fewer than `min_count` times are left out, and all but the `max_size` most
        frequent, the two specials not counted. Raises `ConfigError` if either is below 1.
        """
        for name, value in (("min_count", min_count), ("max_size", max_size)):
            if value is not None and value < 1:
                raise ConfigError(
                    f"vocabulary: found {name}={value}, expected 1 or more; raise {name}"
                )
        return cls.from_counts(Counter(chain.from_iterable(token_lists)), min_count, max_size)

    @classmethod
    def from_counts(
        cls, seen: Counter[str], min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """The same from the count of each token; `seen` is used up."""
        # Specials spelt out in a text are unknown words.
        unknown = seen.pop(PAD, 0) + seen.pop(UNK, 0)
        total = unknown + sum(seen.values())
        kept = [(word, n) for word, n in seen.items() if n >= min_count]
        kept.sort(key=lambda entry: (-entry[1], entry[0]))
        kept = kept[:max_size]
        counts = [n for _, n in kept]
        return cls([word for word, _ in kept], counts, unknown=total - sum(counts))

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._ids

    def index(self, word: str) -> int:
        """The id of a word, 1 if it is unknown (and 0 for `<pad>` itself)."""
        return self._ids.get(word, UNK_ID)

    def encode(self, tokens: Iterable[str]) -> NDArray[np.int32]:
        """Ids `[T]` int32 of a text's tokens in order; unknown ones, and a `<pad>`, are 1."""
        lookup = self._lookup.get
        return np.array([lookup(token, UNK_ID) for token in tokens], dtype=np.int32)

    def to_json(self) -> dict[str, Any]:
        """Plain data for `vocabulary.json`: the id of a token is its position in `tokens`."""
        return {
            "format": FORMAT,
            "specials": {"pad": PAD, "unk": UNK},
            "tokens": list(self.words),
            "counts": list(self.counts),
        }

    @classmethod
    def from_json(cls, data: Any) -> Vocabulary:
        """Rebuild from `to_json`. Raises `RunError` naming the damage."""
        if not isinstance(data, Mapping):
            raise _damage(f"a {type(data).__name__}", "an object")
        for key in ("format", "specials", "tokens", "counts"):
            if key not in data:
                raise _damage(f"no key {key!r}", "format, specials, tokens and counts")
        if data["format"] != FORMAT:
            raise _damage(f"format {data['format']!r}", f"format {FORMAT}")
        if data["specials"] != {"pad": PAD, "unk": UNK}:
            raise _damage(f"specials {data['specials']!r}", f"pad {PAD} and unk {UNK}")
        tokens, counts = data["tokens"], data["counts"]
        if not isinstance(tokens, list) or not isinstance(counts, list):
            raise _damage("tokens or counts that are no list", "two lists")
        if len(tokens) != len(counts):
            raise _damage(f"{len(tokens)} tokens and {len(counts)} counts", "as many of both")
        # All is well as a rule; only then need nothing be looked at one by one.
        well = set(map(type, tokens)) <= {str} and set(map(type, counts)) <= {int}
        well = well and min(counts, default=0) >= 0 and len(set(tokens)) == len(tokens)
        first: dict[str, int] = {}
        for i, (token, count) in enumerate(() if well else zip(tokens, counts, strict=True)):
            if not isinstance(token, str):
                raise _damage(f"token {i} of type {type(token).__name__}", "text")
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise _damage(f"count {i} = {count!r}", "a whole number, 0 or more")
            if first.setdefault(token, i) != i:
                raise _damage(f"token {token!r} at {first[token]} and {i}", "each token once")
        if tokens[:2] != [PAD, UNK]:
            raise _damage(f"tokens that begin with {tokens[:2]!r}", f"{PAD} at 0 and {UNK} at 1")
        if counts[PAD_ID] != 0:
            raise _damage(f"count {counts[PAD_ID]} for {PAD}", "0")
        return cls(tokens[2:], counts[2:], unknown=counts[UNK_ID])

    def oov_report(self, token_lists: Iterable[Sequence[str]]) -> dict[str, Any]:
        """How much of a text is unknown, in types (distinct tokens) and tokens.

        Returns `types`, `tokens`, `oov_types`, `oov_tokens`, `oov_type_share` and
        `oov_token_share` (fractions, 0.0 for no text), and `frequent_oov`, the 10 most frequent
        unknown tokens as `[token, count]`, ties by token.
        """
        seen = Counter(chain.from_iterable(token_lists))
        unknown = {t: n for t, n in seen.items() if self._lookup.get(t, UNK_ID) == UNK_ID}
        tokens_seen, tokens_unknown = sum(seen.values()), sum(unknown.values())
        frequent = sorted(unknown.items(), key=lambda entry: (-entry[1], entry[0]))[:10]
        return {
            "types": len(seen),
            "tokens": tokens_seen,
            "oov_types": len(unknown),
            "oov_tokens": tokens_unknown,
            "oov_type_share": len(unknown) / len(seen) if seen else 0.0,
            "oov_token_share": tokens_unknown / tokens_seen if tokens_seen else 0.0,
            "frequent_oov": [[token, count] for token, count in frequent],
        }


def _damage(found: str, expected: str) -> RunError:
    return RunError(
        f"vocabulary.json: found {found}, expected {expected}; "
        "the file was damaged or edited, restore it or train again"
    )
