"""A labelled file of any size to token ids on disk, in one pass and with all processors.

Blocks of rows go to processes that normalise and split them; what comes back is small: the
distinct words of the block, and numbers. A folder then holds

    tokens.bin    int32, every sentence's words, numbered in the order in which they first came
    offsets.npy   int64 [N + 1], where each sentence begins
    labels.npy    int32 [N], class of each row, classes in sorted order
    lines.npy     int64 [N], line of the file each row starts on
    texts.npy     uint64 [N], a hash of each text, by which copies are known
    counts.npy    int64 [W], how often each word came
    words.json    the W words
    rows.json     classes, the reader's notes, the tokenizer, bytes of the others; written last
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from superconext.core.files import write_array, write_json
from superconext.data.duplicates import text_hashes
from superconext.data.file_format import Block
from superconext.data.reading import RowStream
from superconext.text.tokenize import Tokenizer

#: Blocks given to each process before the next ones are read.
_AHEAD = 4

Tokenised = tuple[list[str], np.ndarray, np.ndarray, np.ndarray]


def processors() -> int:
    """Processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def tokenise_block(tokenizer: Tokenizer, texts: Sequence[str]) -> Tokenised:
    """(distinct words, ids of all tokens among them int32, tokens of each text int32, hashes)."""
    index: dict[str, int] = {}
    pieces = tokenizer.pieces(texts)
    # Pieces come in the order of the text, so words are numbered as they first come in it.
    ids = np.array(
        [index.setdefault(token, len(index)) for token in chain.from_iterable(pieces.tokens)],
        dtype=np.int32,
    )
    chosen, edges = pieces.spread()
    return list(index), ids[chosen], np.diff(edges).astype(np.int32), text_hashes(texts)


def tokenise_file(
    stream: RowStream, tokenizer: Tokenizer, folder: Path, jobs: int | None = None
) -> Iterator[int]:
    """Write what the head of this page lists into `folder`; gives out the rows done so far.

    Args:
        jobs: processes; by default as many as there are processors.

    The files do not depend on `jobs`. Raises DataError as the stream does.
    """
    index: dict[str, int] = {}
    counts = np.zeros(1024, dtype=np.int64)
    classes: dict[str, int] = {}
    lengths, labels, lines, hashes = array("i"), array("i"), array("q"), array("Q")
    with (folder / "tokens.bin").open("wb") as tokens:
        for block, (words, ids, sizes, keys) in _tokenised(stream.large_blocks(), tokenizer, jobs):
            there = np.array([index.setdefault(word, len(index)) for word in words], dtype=np.int32)
            if len(index) > len(counts):
                counts = np.concatenate([counts, np.zeros(len(index), dtype=np.int64)])
            counts[there] += np.bincount(ids, minlength=len(words))
            tokens.write(there[ids].data)  # unlike `tofile`, this says why it fails
            lengths.frombytes(sizes.tobytes())
            hashes.frombytes(keys.tobytes())
            lines.extend(block.lines)
            labels.extend([classes.setdefault(label, len(classes)) for label in block.labels])
            yield len(lines)
    names = sorted(classes)
    place = np.empty(len(names), dtype=np.int32)
    place[[classes[name] for name in names]] = np.arange(len(names))
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.frombuffer(lengths, dtype=np.int32), out=offsets[1:])
    write_array(folder / "offsets.npy", offsets)
    write_array(folder / "labels.npy", place[np.frombuffer(labels, dtype=np.int32)])
    write_array(folder / "lines.npy", np.frombuffer(lines, dtype=np.int64))
    write_array(folder / "texts.npy", np.frombuffer(hashes, dtype=np.uint64))
    write_array(folder / "counts.npy", counts[: len(index)])
    (folder / "words.json").write_text(json.dumps(list(index)), encoding="utf-8")
    facts: dict[str, Any] = {
        "classes": names,
        "notes": stream.notes,
        "tokenizer": tokenizer.to_dict(),
        "sizes": {path.name: path.stat().st_size for path in sorted(folder.iterdir())},
    }
    write_json(folder / "rows.json", facts)


def _tokenised(
    blocks: Iterable[Block], tokenizer: Tokenizer, jobs: int | None
) -> Iterator[tuple[Block, Tokenised]]:
    """Each block with its tokens, in order."""
    jobs = processors() if jobs is None else jobs
    blocks = iter(blocks)
    first = list(islice(blocks, 2))
    if jobs == 1 or len(first) < 2:  # processes would cost more than they gain
        for block in chain(first, blocks):
            yield block, tokenise_block(tokenizer, block.texts)
        return
    from joblib import Parallel, delayed

    blocks = chain(first, blocks)
    work, facts = delayed(_tokenise_there), json.dumps(tokenizer.to_dict())
    with Parallel(n_jobs=jobs, return_as="generator", batch_size=1) as parallel:
        # Some blocks at a time, so that neither texts nor tokens pile up.
        while some := list(islice(blocks, _AHEAD * jobs)):
            found = parallel(work(facts, block.texts) for block in some)
            yield from zip(some, found, strict=True)


def _tokenise_there(facts: str, texts: Sequence[str]) -> Tokenised:
    """`tokenise_block` in a process that remembers the words of the blocks before."""
    return tokenise_block(_tokenizer(facts), texts)


@lru_cache(maxsize=1)
def _tokenizer(facts: str) -> Tokenizer:
    return Tokenizer.from_dict(json.loads(facts))
