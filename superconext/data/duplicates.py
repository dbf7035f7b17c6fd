"""Duplicates, leakage and decontamination: which texts count as the same.

Three notions, each with one normalisation, serve the whole project.

Duplicates (`text_keys`) are equal after the rules of a profile, under the profile `none` exactly:
copies within a file, leakage between train, dev and test, sides of a split.

Texts of the same words (`wording`) have equal words in the same order; punctuation, emoji and
placeholders count for nothing: decontamination of unlabelled and auxiliary text.

Near-duplicates (`near_duplicates`) share character 4-grams up to a threshold: leakage that a
search for copies does not see.

Functions on duplicates take keys: what `text_keys` gives, or raw texts, which are their own keys
to the letter.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from superconext.core.errors import ConfigError, DataError, plural
from superconext.text.markup import cleaned, is_marked, parts
from superconext.text.normalize import PLACEHOLDERS, Normalizer, choose_profile
from superconext.text.tokenize import Tokenizer

Rows = NDArray[np.int64]

SHINGLE = 4  # characters
THRESHOLD = 0.8  # Jaccard similarity

#: Words that a line or cell of a text has at least to stand for it: others would leave out what
#: many people say.
FEWEST_WORDS = 3

_ROWS = 4  # numbers of a signature that make a band
_BANDS = 16
_HASHES = _BANDS * _ROWS
#: Neighbours in a bucket that a text is compared with: the second, but so many of all texts
#: together in a band, and at least the first.
_FEWEST_MATES, _MOST_MATES, _ALL_MATES = 4, 16, 2_000_000
_SLACK = 0.2  # three standard deviations of the similarity a signature tells
_CHUNK = 1 << 20  # characters hashed at a time
_PAIRS = 1 << 15  # signatures compared at a time

_Hashes = NDArray[np.uint64]

#: Texts of these alone are not taken for one another.
_NO_WORDS = frozenset(PLACEHOLDERS)


def text_keys(
    parts: Mapping[str, Sequence[str]], profile: str = "auto"
) -> tuple[dict[str, list[str]], str]:
    """The key of each text of each part, and the profile: `auto` is decided on all parts at once.

    Letter case, an address or a mention, or one more `ه` of laughter make no new text. A text of
    which the rules leave nothing, or addresses and the like alone, is its own key. Raises
    ConfigError for an unknown profile.
    """
    if profile == "auto":
        profile = choose_profile(chain.from_iterable(parts.values()))
    normalizer = Normalizer(profile)

    def key(text: str) -> str:
        normal = normalizer(text)
        return text if set(normal.split()) <= _NO_WORDS else normal

    return {name: list(map(key, texts)) for name, texts in parts.items()}, profile


def key_of_words(text: str, words: Sequence[str]) -> str:
    """The key of a text that was cut into these normalised words."""
    return text if _NO_WORDS.issuperset(words) else " ".join(words)


def keys_of(texts: Sequence[str]) -> list[str]:
    """The keys of texts `[N]` by themselves; those of the last texts are kept, because several
    steps and the fits of a comparison ask for the same."""
    return _keys(tuple(texts))


@lru_cache(maxsize=1)
def _keys(texts: tuple[str, ...]) -> list[str]:
    return text_keys({"": texts})[0][""]


def first_copies(keys: Sequence[str], labels: Sequence[str]) -> tuple[Rows, list[str]]:
    """Sorted rows of the first copy of each text, and a label for each of them.

    A text with several labels gets the one most of its copies have, of equally many the one
    that comes first. Raises DataError for unequal lengths.
    """
    _check_lengths(keys, labels)
    first: dict[str, int] = {}
    votes: dict[str, Counter[str]] = {}
    for row, (key, label) in enumerate(zip(keys, labels, strict=True)):
        first.setdefault(key, row)
        votes.setdefault(key, Counter())[label] += 1
    rows = np.fromiter(first.values(), dtype=np.int64, count=len(first))
    # `most_common` keeps the order of arrival among equals.
    return rows, [votes[key].most_common(1)[0][0] for key in first]


def without_copies(
    keys: Mapping[str, Sequence[str]], labels: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Rows, list[str]]]:
    """For each part the rows to keep, with their labels, so that every text stands once.

    Parts are in the order train, dev, test: of a text that is in several, a copy in the last one
    stays, so that nothing is taken from what results are reported on. Its label is the one most
    copies in all parts have, of equally many the one of the last part.
    """
    kept: dict[str, tuple[Rows, list[str]]] = {}
    later: set[str] = set()
    votes: dict[str, Counter[str]] = {}
    for name in keys:
        _check_lengths(keys[name], labels[name])
        for key, label in zip(keys[name], labels[name], strict=True):
            votes.setdefault(key, Counter())[label] += 1
    for name in reversed(list(keys)):
        rows, voted = first_copies(keys[name], labels[name])
        wanted = [place for place, row in enumerate(rows) if keys[name][row] not in later]
        kept[name] = (
            rows[wanted],
            [
                max([voted[place], *of], key=lambda label: of[label])
                for place in wanted
                for of in [votes[keys[name][rows[place]]]]
            ],
        )
        later.update(keys[name])
    return {name: kept[name] for name in keys}


def deduplicate(texts: Sequence[str]) -> Rows:
    """Sorted rows of the first occurrence of each text."""
    first: dict[str, int] = {}
    for row, text in enumerate(texts):
        first.setdefault(text, row)
    return np.fromiter(first.values(), dtype=np.int64, count=len(first))


def leaks(train_texts: Sequence[str], other_texts: Sequence[str]) -> Rows:
    """Sorted rows of `other_texts` that are copies of one of `train_texts`."""
    seen = set(train_texts)
    rows = [row for row, text in enumerate(other_texts) if text in seen]
    return np.array(rows, dtype=np.int64)


def conflicting(texts: Sequence[str], labels: Sequence[str]) -> list[list[int]]:
    """The rows of each distinct text that carries more than one label."""
    return [rows for rows in copies(texts, labels) if len({labels[row] for row in rows}) > 1]


def told_conflicting(
    texts: Sequence[str], labels: Sequence[str], lines: Sequence[int], where: str
) -> str:
    """How many texts carry more than one label, with the places of two rows of the first; "" where
    none does. where: what stands before the places, such as "on lines"."""
    found = conflicting(keys_of(texts), labels)
    if not found:
        return ""
    first = found[0][0]
    other = next(row for row in found[0] if labels[row] != labels[first])
    return told_several(len(found), where, lines[first], lines[other])


def told_several(count: int, where: str, first: int, other: int) -> str:
    """That so many texts carry more than one label, with the places of two rows of one."""
    verb = "has" if count == 1 else "have"
    return f"{plural(count, 'text')} {verb} several labels, as {where} {first} and {other}"


def copies(texts: Sequence[str], labels: Sequence[str]) -> list[list[int]]:
    """The rows of each distinct text, in order of first occurrence."""
    _check_lengths(texts, labels)
    groups: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        groups.setdefault(text, []).append(row)
    return list(groups.values())


def text_hashes(texts: Sequence[str]) -> np.ndarray:
    """A 64-bit hash of each text, uint64 `[n]`."""
    digests = (
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for text in texts
    )
    return np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _check_lengths(texts: Sequence[str], labels: Sequence[str]) -> None:
    if len(texts) != len(labels):
        raise DataError(
            f"found {len(texts)} texts and {len(labels)} labels, expected as many of each: "
            "pass one label for each text"
        )


def wording(tokens: Iterable[str]) -> str:
    """The words among the tokens of a text, with blanks between."""
    return " ".join(
        token for token in tokens if token not in PLACEHOLDERS and any(map(str.isalnum, token))
    )


class Decontamination:
    """The wordings of labelled texts, which unlabelled and auxiliary text is cleared of.

    What is learned from the texts a model is judged on flatters it, labels or not, and collections
    of unlabelled text often hold them with another mark or quote at the end, without tags and the
    sign of a retweet, or a line or cell at a time: of a text these are known too, those of
    `FEWEST_WORDS` words or more.

    Attributes:
        digest: a hash that stands for them.
        removed: how often `holds` or `repeats` said yes.
        notes: how the files were read, if they are of files.
    """

    def __init__(
        self, texts: Iterable[str], tokenizer: Tokenizer, tokens: Iterable[Sequence[str]] = ()
    ) -> None:
        """tokens: of further texts."""
        self._tokenizer = tokenizer
        self._wordings = {wording(of_one) for of_one in tokens}
        for text in texts:
            self._wordings.update(self._wordings_of(text))
        self._wordings -= {""}
        listed = "\n".join(sorted(self._wordings)).encode("utf-8", "surrogatepass")
        self.digest = hashlib.sha256(listed).hexdigest() if self._wordings else ""
        self.removed = 0
        self.notes: list[str] = []

    @classmethod
    def of_files(
        cls,
        paths: Sequence[str | Path],
        tokenizer: Tokenizer,
        text_column: str | None = None,
        **reading: Any,
    ) -> Decontamination:
        """Those of all texts of labelled files, read as `read_texts` takes it.

        text_column: of the unlabelled text; a table that has a column of this name is read by it.
        Raises DataError for a file that cannot be read.
        """
        from superconext.data.columns import Known
        from superconext.data.reading import read_texts  # which itself needs data sets

        files = [read_texts(path, known=Known(text=text_column), **reading) for path in paths]
        made = cls((text for file in files for text in file.texts), tokenizer)
        made.notes = [f"{file.source}: {note}" for file in files for note in file.notes]
        return made

    def _wordings_of(self, text: str) -> Iterator[str]:
        yield wording(self._tokenizer(text))
        yield wording(self._tokenizer(cleaned(text)))
        for part in parts(text):
            for form in (part, cleaned(part)):
                said = wording(self._tokenizer(form))
                if said.count(" ") + 1 >= FEWEST_WORDS:
                    yield said

    def __len__(self) -> int:
        return len(self._wordings)

    @property
    def size(self) -> int:
        """Bytes of all the wordings, in UTF-8."""
        return sum(len(text.encode("utf-8", "surrogatepass")) for text in self._wordings)

    def holds(self, tokens: Iterable[str]) -> bool:
        """Whether these tokens have the words of one of the texts."""
        same = bool(self._wordings) and wording(tokens) in self._wordings
        self.removed += same
        return same

    def repeats(self, text: str, tokens: Sequence[str]) -> bool:
        """Whether a text has the words of one of the texts, as it stands, in one of its lines or
        cells, or without markup. tokens: its own."""
        if not self._wordings:
            return False
        same = any(said in self._wordings for said in chain([wording(tokens)], self._more(text)))
        self.removed += same
        return same

    def _more(self, text: str) -> Iterator[str]:
        if is_marked(text):
            yield wording(self._tokenizer(cleaned(text)))
        least = FEWEST_WORDS if "\n" in text or "\r" in text else 1  # a cell stands beside a label
        for part in parts(text):
            for form in (part, cleaned(part)) if is_marked(part) else (part,):
                said = wording(self._tokenizer(form))
                if said.count(" ") + 1 >= least:
                    yield said


@dataclass(frozen=True)
class NearDuplicates:
    """What was found; texts go by their place in the input.

    pairs: (i, j, similarity) with i < j, the most similar first. Enough of them to join each
        group, not every pair inside it.
    groups: sorted places of the texts that pairs join, the largest group first.
    """

    pairs: list[tuple[int, int, float]]
    groups: list[list[int]]


def near_duplicates(
    texts: Sequence[str],
    threshold: float = THRESHOLD,
    progress: Callable[[float], None] | None = None,
) -> NearDuplicates:
    """Groups of texts whose shingles overlap by `threshold` or more, exact copies included.

    Texts are sets of character n-grams (shingles), compared by the Jaccard similarity of their
    sets. Candidates come from MinHash signatures (Broder, 1997) cut into bands, texts with an
    equal band being compared (locality-sensitive hashing, Indyk and Motwani, 1998), and each
    candidate is then checked on the sets themselves: there are no false alarms, and a pair at the
    threshold of 0.8 is missed about twice in ten thousand.

    Time grows with the number of characters. In a crowded bucket a text is compared with its
    first member and a few neighbours only, in an order that brings like ones together. So
    thousands of equal beginnings cost no more, but of many texts made of one template a few are
    missed: 7 of 1,990 on such a file.

    texts: normalised as they are to be compared; copies are best taken out before. threshold: above
    0.5, for lower ones would need more bands than there are, and at most 1. progress: called with
    the share done, 0 to 1.

    Raises ConfigError for another threshold. The same texts always give the same answer.
    """
    if not 0.5 < threshold <= 1:
        raise ConfigError(
            f"near-duplicate threshold is {threshold}, expected more than 0.5 and at most 1: "
            f"choose one such as {THRESHOLD}"
        )
    if len(texts) < 2:
        return NearDuplicates([], [])
    signatures = signatures_of(texts, progress)
    parent = list(range(len(texts)))
    sets: dict[int, _Hashes] = {}
    pairs: list[tuple[int, int, float]] = []
    for i, j in _candidates(signatures, threshold):
        a, b = _root(parent, i), _root(parent, j)
        if a == b:
            continue
        similarity = jaccard(_set_of(i, texts, sets), _set_of(j, texts, sets))
        if similarity >= threshold:
            parent[max(a, b)] = min(a, b)
            pairs.append((i, j, similarity))
    members: dict[int, list[int]] = {}
    for place in sorted({place for i, j, _ in pairs for place in (i, j)}):
        members.setdefault(_root(parent, place), []).append(place)
    groups = sorted(members.values(), key=lambda group: (-len(group), group))
    return NearDuplicates(sorted(pairs, key=lambda p: (-p[2], p)), groups)


def near_duplicate_groups(
    keys: Sequence[str], progress: Callable[[float], None] | None = None
) -> Rows:
    """Number of each text's group of near-duplicates, `[N]`, -1 for one that resembles no other.

    Groups are numbered from the largest; copies share the number of their text, and a text that
    has copies only is a group of its own.
    """
    place = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    groups = near_duplicates(list(place), progress=progress).groups
    number = np.full(len(place), -1)
    for at, members in enumerate(groups):
        number[members] = at
    rows = np.array([place[key] for key in keys], dtype=np.int64)
    alone = np.flatnonzero((number < 0) & (np.bincount(rows, minlength=len(place)) > 1))
    number[alone] = len(groups) + np.arange(len(alone))
    found: Rows = number[rows]
    return found


def _root(parent: list[int], place: int) -> int:
    while parent[place] != place:
        parent[place] = place = parent[parent[place]]
    return place


def jaccard(a: _Hashes, b: _Hashes) -> float:
    """Similarity of two sets of shingles, each sorted and without repeats."""
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both / (len(a) + len(b) - both)


def _set_of(place: int, texts: Sequence[str], sets: dict[int, _Hashes]) -> _Hashes:
    if place not in sets:
        sets[place] = np.unique(shingles([texts[place]])[0])
    return sets[place]


def shingles(texts: Sequence[str]) -> tuple[_Hashes, NDArray[np.int64]]:
    """Hashes of every shingle of every text, and where each text's begin.

    A blank at both ends lets first and last letters count as much as the others; a text shorter
    than a shingle is filled up with blanks.
    """
    padded = [f" {text} ".ljust(SHINGLE) for text in texts]
    lengths = np.array([len(text) for text in padded], dtype=np.int64)
    joined = "".join(padded).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(joined, dtype="<u4").astype(np.uint64)
    hashed = np.zeros(len(codes) - SHINGLE + 1, dtype=np.uint64)
    for step in range(SHINGLE):
        hashed = hashed * np.uint64(0x100000001B3) + codes[step : step + len(hashed)]
    # Those that run over the end of a text belong to none.
    inside = np.ones(len(codes), dtype=bool)
    ends = np.cumsum(lengths)
    for step in range(1, SHINGLE):
        inside[ends - step] = False
    counts = lengths - (SHINGLE - 1)
    return _mix(hashed[inside[: len(hashed)]]), np.cumsum(counts) - counts


def _mix(values: _Hashes) -> _Hashes:
    """The finaliser of SplitMix64, which spreads every bit over all others."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def signatures_of(
    texts: Sequence[str], progress: Callable[[float], None] | None = None
) -> NDArray[np.uint32]:
    """MinHash signatures `[N, 64]`: the least of each of 64 hashes over a text's shingles."""
    draw = np.random.RandomState(0)
    words = draw.randint(0, 2**32, size=(2, 2, _HASHES), dtype=np.uint64)
    factors, shifts = (words[:, 0] << np.uint64(32)) | words[:, 1]
    factors |= np.uint64(1)
    found = np.empty((len(texts), _HASHES), dtype=np.uint32)
    begin = size = 0
    for end, text in enumerate(texts, start=1):
        size += len(text) + SHINGLE
        if size < _CHUNK and end < len(texts):
            continue
        hashes, starts = shingles(texts[begin:end])
        for column in range(_HASHES):
            spread = (hashes * factors[column] + shifts[column]) >> np.uint64(32)
            found[begin:end, column] = np.minimum.reduceat(spread, starts)
        begin, size = end, 0
        if progress is not None:
            progress(end / len(texts))
    return found


def _candidates(signatures: NDArray[np.uint32], threshold: float) -> list[tuple[int, int]]:
    """Pairs that share a band and whose signatures do not rule the threshold out."""
    count = len(signatures)
    wide = signatures.astype(np.uint64)
    coded: list[NDArray[np.int64]] = []
    mates_of_each = min(_MOST_MATES, max(_FEWEST_MATES, _ALL_MATES // count))
    for band in range(_BANDS):
        key = np.zeros(count, dtype=np.uint64)
        for column in range(band * _ROWS, (band + 1) * _ROWS):
            key = _mix(key + wide[:, column] + np.uint64(0x9E3779B97F4A7C15))
        # Within a bucket texts stand beside those that share most of the numbers that follow.
        following = [(band + 1) * _ROWS + step for step in range(2 * _ROWS)]
        columns = [wide[:, place % _HASHES] for place in reversed(following)]
        order = np.lexsort([*columns, key])
        ordered = key[order]
        new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        leader = np.maximum.accumulate(np.where(new, np.arange(count), 0))
        mates = [(order[leader[~new]], order[~new])]
        for step in range(1, min(mates_of_each, count - 1) + 1):
            same = ordered[step:] == ordered[:-step]
            mates.append((order[:-step][same], order[step:][same]))
        for a, b in mates:
            coded.append(np.minimum(a, b) * count + np.maximum(a, b))
    pairs = np.unique(np.concatenate(coded))
    kept: list[tuple[int, int]] = []
    for begin in range(0, len(pairs), _PAIRS):
        i, j = np.divmod(pairs[begin : begin + _PAIRS], count)
        alike = (signatures[i] == signatures[j]).mean(axis=1) >= threshold - _SLACK
        kept.extend(zip(i[alike].tolist(), j[alike].tolist(), strict=True))
    return kept


_KEY, _KEYED = 16, 8  # bytes


@dataclass(frozen=True)
class SeenTexts:
    """Hashes of the distinct texts of each split, uint64 `[n]`, ascending, and their key."""

    key: bytes
    splits: Mapping[str, np.ndarray]

    @classmethod
    def of(cls, splits: Mapping[str, Iterable[Sequence[str]]]) -> SeenTexts:
        """Those of texts that are lists of tokens; a text of no tokens but placeholders is left
        out."""
        digests = {name: b"".join(_digests(texts)) for name, texts in splits.items()}
        key = hashlib.blake2b(b"".join(digests.values()), digest_size=_KEY).digest()
        hashes = {
            name: np.unique(
                _keyed((joined[i : i + _KEY] for i in range(0, len(joined), _KEY)), key)
            )
            for name, joined in digests.items()
        }
        return cls(key, hashes)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> SeenTexts:
        """What `arrays` gave. Raises ValueError for anything else."""
        splits = dict(arrays)
        key = splits.pop("key", np.empty(0))
        if key.dtype != np.uint8 or key.shape != (_KEY,) or not splits.keys() <= {"train", "dev"}:
            raise ValueError("no key of the texts seen, or other splits than train and dev")
        for name, hashes in splits.items():
            if hashes.dtype != np.uint64 or hashes.ndim != 1 or (hashes[1:] <= hashes[:-1]).any():
                raise ValueError(f"the hashes of the texts of {name} are no rising numbers")
        return cls(key.tobytes(), {name: splits[name] for name in sorted(splits, reverse=True)})

    def arrays(self) -> dict[str, np.ndarray]:
        """The same as arrays for a safetensors file."""
        return {"key": np.frombuffer(self.key, dtype=np.uint8), **self.splits}

    def split_of(self, texts: Iterable[Sequence[str]]) -> list[str | None]:
        """The first split in which each text stands, None where it is in none."""
        hashes = _keyed(_digests(texts, keep_empty=True), self.key)
        found: list[str | None] = [None] * len(hashes)
        for name in reversed(list(self.splits)):
            known = self.splits[name]
            places = np.minimum(np.searchsorted(known, hashes), max(len(known) - 1, 0))
            for row in np.flatnonzero(known[places] == hashes).tolist() if len(known) else ():
                found[row] = name
        return found


def _digests(texts: Iterable[Sequence[str]], keep_empty: bool = False) -> Iterator[bytes]:
    for tokens in texts:
        if keep_empty or not _NO_WORDS.issuperset(tokens):
            joined = " ".join(tokens).encode("utf-8", "surrogatepass")
            yield hashlib.blake2b(joined, digest_size=_KEY).digest()


def _keyed(digests: Iterable[bytes], key: bytes) -> np.ndarray:
    keyed = (hashlib.blake2b(d, key=key, digest_size=_KEYED).digest() for d in digests)
    return np.frombuffer(b"".join(keyed), dtype="<u8").astype(np.uint64)
