"""Text to tokens, by one regular expression for any script; tokens to ids, by the vocabulary.

Every character that is not white space ends up in exactly one token, so under the profile
`none` the tokens written one after the other are the text without its white space.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superconext.core.errors import ConfigError, RunError, plural
from superconext.text import characters
from superconext.text.bridge import Bridge
from superconext.text.normalize import CONNECTORS, Normalizer, number_pattern

# A run of one of these is one token (`!!!`, `...`); any other symbol stands alone.
_RUNS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~،؛؟٪…“”«»‘’•·–—¡¿°。、！？।॥።፣፤፧"

#: Pieces of text that a tokenizer remembers, and characters in the longest of them.
_REMEMBERED, _LONGEST_PIECE = 200_000, 64
#: Texts split at once.
_AT_ONCE = 2_000

#: Of the rules and of what a token is; what was saved without one has 1, that of superconext 0.2.0.
VERSION = 2
#: Within words since version 2, tokens of their own before.
_NEW_CONNECTORS = frozenset("·״׳")


@lru_cache(maxsize=1)
def _find() -> Callable[[str], list[str]]:
    word, marks, emoji = characters.word(), characters.marks(), characters.EMOJI
    tones = characters.class_body([(characters.SKIN_TONES[0], characters.SKIN_TONES[-1])])
    picture = f"[{emoji}](?:[\ufe0e\ufe0f\u20e3{tones}]|[\U000e0020-\U000e007f])*"
    alternatives = [
        "\n",  # between the lines of a block, see `Tokenizer.pieces`
        "[0-9#*]\ufe0f?\u20e3",  # keycap
        number_pattern(),
        f"[{word}]+(?:[{CONNECTORS}][{word}]+)*",
        "</?[A-Za-z][A-Za-z0-9_]{0,15}>",  # <url>, <num>, <asp>
        "[\U0001f1e6-\U0001f1ff]{2}",  # flag
        f"{picture}(?:\u200d{picture})*",
        f"[{characters.UNSPACED}][{marks}]*",
        f"[#@](?=_*[{characters.letters()}{characters.UNSPACED}])[_{word}{characters.UNSPACED}]+",
        *(re.escape(mark) + "+" for mark in _RUNS),
        "\\S[\ufe0e\ufe0f]*",
    ]
    return re.compile("|".join(alternatives)).findall


def tokenize(text: str) -> list[str]:
    """Split text into tokens; none is empty or holds white space. Nothing is normalised.

    A word takes digits, combining marks and inner apostrophes, hyphens and underscores along
    (`3la`, `ma3arfach`, `l'argent`, `est-elle`). One token each: a number (`3.5`, `23/12`,
    `10%`), a tag in angle brackets (`<url>`), an emoji with its tone and what is joined to it,
    a flag, a keycap, a hashtag or mention that was not normalised away, a run of one
    punctuation mark. Scripts without spaces (Han, kana, Thai, Javanese and others, see
    `characters`) go by character. Time is linear in the length of the text.
    """
    return _find()(text.replace("\n", " "))


@lru_cache(maxsize=1)
def _runs() -> Callable[[str], list[str]]:
    unspaced, marks = characters.UNSPACED, characters.marks()
    return re.compile(f"[{unspaced}][{marks}]*|[^\\s{unspaced}]+").findall


def word_count(text: str) -> int:
    """Words of a text: what stands between white space, and each character of scripts without
    spaces. Six times as fast as `tokenize`, which also parts words from their punctuation.
    """
    return len(_runs()(text))


@dataclass(frozen=True)
class Pieces:
    """Tokens of N texts, which are made of D distinct pieces without a space.

    tokens: of each distinct piece, `[D]`; none is to be changed.
    numbers: int64 `[P]`, the distinct piece at each place, texts one after the other.
    counts: int64 `[N]`, pieces in each text.
    """

    tokens: Sequence[Sequence[str]]
    numbers: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def of_lists(cls, texts: Sequence[Sequence[str]]) -> Pieces:
        """Texts that are tokens already, each a piece of its own."""
        return cls(texts, np.arange(len(texts)), np.ones(len(texts), dtype=np.int64))

    def lists(self) -> list[list[str]]:
        """The tokens of each text."""
        numbers, ends = self.numbers.tolist(), np.cumsum(self.counts).tolist()
        starts = [0, *ends[:-1]]
        return [
            [token for number in numbers[a:b] for token in self.tokens[number]]
            for a, b in zip(starts, ends, strict=True)
        ]

    def spread(self, most: int | None = None) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
        """Where the tokens of the texts, one after the other, stand among those of the distinct
        pieces laid end to end, `[T]`; and where each text begins and the last ends, `[N + 1]`.

        most: of each text, so many tokens at most.
        """
        sizes = np.fromiter(map(len, self.tokens), dtype=np.int64, count=len(self.tokens))
        ends = np.cumsum(sizes)
        starts = ends - sizes
        small = len(ends) == 0 or ends[-1] <= np.iinfo(np.int32).max
        chosen: list[NDArray[np.integer]] = [np.empty(0, np.int32 if small else np.int64)]
        edges = [np.zeros(1, np.int64)]
        pieces = np.append(0, np.cumsum(self.counts))
        # Some texts at a time: the intermediate arrays are several times as large as the result.
        for first in range(0, len(self.counts), _AT_ONCE):
            cuts = pieces[first : first + _AT_ONCE + 1]
            numbers = self.numbers[cuts[0] : cuts[-1]]
            piece_sizes = sizes[numbers]
            ends = np.append(0, np.cumsum(piece_sizes))
            offsets = np.repeat(starts[numbers] - ends[:-1], piece_sizes)
            positions = np.arange(ends[-1]) + offsets
            bounds = ends[cuts - cuts[0]]
            lengths = np.diff(bounds)
            if most is not None and lengths.max() > most:
                within = np.arange(len(positions)) - np.repeat(bounds[:-1], lengths)
                positions = positions[within < most]
                bounds = np.append(0, np.cumsum(np.minimum(lengths, most)))
            chosen.append(positions.astype(chosen[0].dtype))
            edges.append(edges[-1][-1] + bounds[1:])
        return np.concatenate(chosen), np.concatenate(edges)


class Tokenizer:
    """Normalise, split and, if asked, map each token to its bridge key.

    Args:
        normalizer: text to text; without one the text is taken as it is (profile `none`).
        bridge: dialect of `superconext.text.bridge`, or None (the default) to leave
            Arabizi and Arabic script apart.
        words: whether text is split into words and marks, and not at white space alone.
        version: of the rules that a vocabulary was made by; what texts are cut by is `VERSION`.

    Raises `ConfigError` for an unknown dialect.

    Example:
        >>> Tokenizer()("film zwin, l'acteur 3jebni!!!")
        ['film', 'zwin', ',', "l'acteur", '3jebni', '!!!']
    """

    def __init__(
        self,
        normalizer: Normalizer | None = None,
        bridge: str | None = None,
        words: bool = True,
        version: int = VERSION,
    ) -> None:
        self.words, self.version = words, version
        self.normalizer = Normalizer("none") if normalizer is None else normalizer
        self.bridge = None if bridge is None else Bridge(bridge)
        self._known: dict[str, list[str]] = {}

    def __call__(self, text: str) -> list[str]:
        text = self.normalizer(text)
        return self._bridged(tokenize(text) if self.words else text.split())

    def many(self, texts: Sequence[str]) -> list[list[str]]:
        """The tokens of each text: what a call for each gives, several times as fast."""
        # Some at a time: the pieces take more room than the text.
        parts = [texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE)]
        return [tokens for part in parts for tokens in self.pieces(part).lists()]

    def pieces(self, texts: Sequence[str]) -> Pieces:
        """The tokens of each text, every distinct piece of all texts once.

        No rule and no token reaches over a space, so what stands between two spaces is worked
        out once, all new ones in one pass, and remembered for the next call.
        """
        number: dict[str, int] = {}
        numbers, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        # Some at a time, as above; most of it is known.
        for start in range(0, len(texts), _AT_ONCE):
            rows = [text.split(" ") for text in texts[start : start + _AT_ONCE]]
            places = list(chain.from_iterable(rows))
            fresh = [piece for piece in dict.fromkeys(places) if piece not in number]
            number.update(zip(fresh, range(len(number), len(number) + len(fresh)), strict=True))
            numbers.append(np.fromiter(map(number.__getitem__, places), np.int64, len(places)))
            counts.append(np.fromiter(map(len, rows), np.int64, len(rows)))
        known = list(map(self._cut(number).__getitem__, number))
        return Pieces(known, np.concatenate(numbers), np.concatenate(counts))

    def _cut(self, pieces: Mapping[str, object]) -> dict[str, list[str]]:
        """The tokens of at least these pieces, which have no space."""
        if len(self._known) > _REMEMBERED:
            self._known = {}
        known = self._known
        fresh = [piece for piece in pieces if piece not in known]
        if not fresh:
            return known
        # Lines of one text; no token is or reaches over white space.
        short = [piece for piece in fresh if len(piece) <= _LONGEST_PIECE and "\n" not in piece]
        if short:
            joined = self.normalizer.lines("\n".join(short))
            if self.words:
                joined = " ".join(_find()(joined))
            lines = map(str.split, joined.split("\n"))
            if self.bridge is not None:
                lines = map(self._bridged, lines)
            known.update(zip(short, lines, strict=True))
        others = {piece: self(piece) for piece in fresh if piece not in known}
        if not others:
            return known
        return {piece: others[piece] if piece in others else known[piece] for piece in pieces}

    def _bridged(self, tokens: list[str]) -> list[str]:
        return tokens if self.bridge is None else [self.bridge(token) for token in tokens]

    def misread(self, words: Sequence[str]) -> list[str]:
        """Those of the words of a vocabulary that earlier rules have made and these cut or spell
        otherwise; none of a vocabulary that these have made.

        Some may be missed: words with a digit can depend on what stands beside them, and those of
        a bridge are no words.
        """
        if self.version >= VERSION or not self.words or self.bridge is not None:
            return []
        odd = [word for word in words if not (word.isascii() or re.search("[0-9]", word))]
        return [
            word
            for word, tokens in zip(odd, self.many(odd), strict=True)
            if tokens != [word] or word in _NEW_CONNECTORS
        ]

    def lost(self, words: Sequence[str]) -> str:
        """What `misread` finds, for a message; "" where it is nothing."""
        some = self.misread(words)
        whole = [word for word in some if word not in CONNECTORS]
        if whole:
            return f"{plural(len(whole), 'word')} of it, such as {whole[0]!r}, cannot be found"
        return f"{some[0]!r} between letters is part of a word" if some else ""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_known": {}}  # a cache is not pickled

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a run folder."""
        return {
            "normalizer": self.normalizer.to_dict(),
            "bridge": None if self.bridge is None else self.bridge.dialect,
            **({} if self.words else {"words": False}),
            **({} if self.version == 1 else {"version": self.version}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Tokenizer:
        """Rebuild from `to_dict`. Raises `ConfigError` if something is missing or unknown."""
        if not isinstance(data, Mapping) or not {"normalizer", "bridge"} <= set(data):
            raise ConfigError(
                f"tokenize: found {data!r}, expected the keys 'normalizer' and 'bridge'; "
                "save the run again"
            )
        words, version = data.get("words", True) is not False, data.get("version", 1)
        if type(version) is not int or not 0 < version <= VERSION:
            raise ConfigError(
                f"tokenize: found version {version!r} of the rules, expected at most {VERSION}: "
                "install a newer superconext"
            )
        return cls(Normalizer.from_dict(data["normalizer"]), data["bridge"], words, version)


def folded(word: str) -> str:
    """The word without regard to case and Unicode form: programs on macOS write accents apart."""
    word = word.casefold()
    return word if word.isascii() else unicodedata.normalize("NFC", word)


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
        self._folded: dict[str, int] | None = None
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

    def folded_id(self, word: str) -> int | None:
        """The id of the most frequent word that is equal but for case or Unicode form, if any."""
        if self._folded is None:
            forms = ((folded(other), other) for other in reversed(self.words))
            self._folded = {form: self._ids[other] for form, other in forms if form != other}
        form = folded(word)
        found = {self._ids.get(form, UNK_ID), self._folded.get(form, UNK_ID)}
        return min((number for number in found if number > UNK_ID), default=None)

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
