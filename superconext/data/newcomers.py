"""Which ids have words that training never saw? Those after the vocabulary's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from superconext.data.token_store import Newcomers, TokenStore
from superconext.text.ngrams import NgramVocabulary
from superconext.text.vocabulary import UNK_ID, Vocabulary
from superconext.vectors.table import WordVectors


def store_with_newcomers(
    token_lists: Sequence[Sequence[str]],
    vocabulary: Vocabulary,
    reserve: WordVectors,
    ngrams: NgramVocabulary | None,
    max_length: int,
) -> TokenStore:
    """Token ids under `vocabulary`; words it lacks become newcomers with ids after it.

    A word of which neither the reserve nor an n-gram is known becomes the unknown word.
    """
    rows = [tokens[:max_length] for tokens in token_lists]
    words = list(chain.from_iterable(rows))
    ids = vocabulary.encode(words)
    places = np.flatnonzero(ids == UNK_ID)
    unknown = [words[place] for place in places.tolist()]
    new = sorted({word for word in unknown if word not in vocabulary})
    vectors, known = reserve.lookup(new)
    pieces = ngrams.encode(new) if ngrams is not None else None
    newcomers = Newcomers(np.ascontiguousarray(vectors), known, pieces)
    useful = known if pieces is None else known | (np.diff(pieces.offsets) > 0)
    ids_of = {new[i]: len(vocabulary) + i for i in np.flatnonzero(useful).tolist()}
    ids[places] = [ids_of.get(word, UNK_ID) for word in unknown]
    lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
    # A text without a token is the single unknown word, as in `build_store`.
    empty = np.flatnonzero(lengths == 0)
    ids = np.insert(ids, (np.cumsum(lengths) - lengths)[empty], UNK_ID)
    lengths[empty] = 1
    return TokenStore(ids, np.append(0, np.cumsum(lengths)), newcomers)
