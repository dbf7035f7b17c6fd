"""Which texts are almost the same, without comparing every pair?

Texts are sets of character n-grams (shingles); two are near-duplicates when the Jaccard
similarity of their sets reaches a threshold. Candidates come from MinHash signatures (Broder,
1997) cut into bands, texts with an equal band being compared (locality-sensitive hashing, Indyk
and Motwani, 1998), and each candidate is then checked on the sets themselves: there are no false
alarms, and a pair at the threshold of 0.8 is missed about twice in ten thousand.

Time grows with the number of characters. In a crowded bucket a text is compared with its first
member and its nearest neighbours only, so that thousands of equal beginnings cost no more; the
groups, which are chains of similar pairs, come out the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from superconext.core.errors import ConfigError

SHINGLE = 4  # characters
THRESHOLD = 0.8

_ROWS = 4  # numbers of a signature that make a band
_BANDS = 16
_HASHES = _BANDS * _ROWS
_WINDOW = 4  # neighbours in a bucket that a text is compared with
_SLACK = 0.2  # three standard deviations of the similarity a signature tells
_CHUNK = 1 << 20  # characters hashed at a time
_PAIRS = 1 << 15  # signatures compared at a time

_Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class NearDuplicates:
    """What was found; texts go by their place in the input.

    pairs: (i, j, similarity) with i < j, the most similar first. Enough of them to join each
        group, not every pair inside it.
    groups: sorted places of the texts that pairs join, the largest group first.
    """

    threshold: float
    pairs: list[tuple[int, int, float]]
    groups: list[list[int]]


def near_duplicates(
    texts: Sequence[str],
    threshold: float = THRESHOLD,
    progress: Callable[[float], None] | None = None,
) -> NearDuplicates:
    """Groups of texts whose shingles overlap by `threshold` or more, exact copies included.

    Args:
        texts: normalised as they are to be compared; copies are best taken out before.
        threshold: Jaccard similarity, above 0.5 and at most 1. Lower ones would need more
            bands than there are.
        progress: called with the share done, 0 to 1.

    Raises ConfigError for another threshold. The same texts always give the same answer.
    """
    if not 0.5 < threshold <= 1:
        raise ConfigError(
            f"near-duplicate threshold is {threshold}, expected more than 0.5 and at most 1: "
            f"choose one such as {THRESHOLD}"
        )
    if len(texts) < 2:
        return NearDuplicates(threshold, [], [])
    signatures = _signatures(texts, progress)
    parent = list(range(len(texts)))
    sets: dict[int, _Hashes] = {}
    pairs: list[tuple[int, int, float]] = []
    for i, j in _candidates(signatures, threshold):
        a, b = _root(parent, i), _root(parent, j)
        if a == b:
            continue
        similarity = _jaccard(_set_of(i, texts, sets), _set_of(j, texts, sets))
        if similarity >= threshold:
            parent[max(a, b)] = min(a, b)
            pairs.append((i, j, similarity))
    members: dict[int, list[int]] = {}
    for place in sorted({place for i, j, _ in pairs for place in (i, j)}):
        members.setdefault(_root(parent, place), []).append(place)
    groups = sorted(members.values(), key=lambda group: (-len(group), group))
    return NearDuplicates(threshold, sorted(pairs, key=lambda p: (-p[2], p)), groups)


def _root(parent: list[int], place: int) -> int:
    while parent[place] != place:
        parent[place] = place = parent[parent[place]]
    return place


def _jaccard(a: _Hashes, b: _Hashes) -> float:
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both / (len(a) + len(b) - both)


def _set_of(place: int, texts: Sequence[str], sets: dict[int, _Hashes]) -> _Hashes:
    if place not in sets:
        sets[place] = np.unique(_shingles([texts[place]])[0])
    return sets[place]


def _shingles(texts: Sequence[str]) -> tuple[_Hashes, NDArray[np.int64]]:
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


def _signatures(
    texts: Sequence[str], progress: Callable[[float], None] | None
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
        hashes, starts = _shingles(texts[begin:end])
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
    for band in range(_BANDS):
        key = np.zeros(count, dtype=np.uint64)
        for column in range(band * _ROWS, (band + 1) * _ROWS):
            key = _mix(key + wide[:, column] + np.uint64(0x9E3779B97F4A7C15))
        order = np.argsort(key, kind="stable")
        ordered = key[order]
        new = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        leader = np.maximum.accumulate(np.where(new, np.arange(count), 0))
        mates = [(order[leader[~new]], order[~new])]
        for step in range(1, min(_WINDOW, count - 1) + 1):
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
