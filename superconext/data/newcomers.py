"""Which ids have words that training never saw? Those after the vocabulary's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from superconext.data.token_store import Newcomers, TokenStore, build_store
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
    new = sorted({t for tokens in token_lists for t in tokens[:max_length] if t not in vocabulary})
    vectors, known = reserve.lookup(new)
    pieces = ngrams.encode(new) if ngrams is not None else None
    newcomers = Newcomers(np.ascontiguousarray(vectors), known, pieces)
    useful = known if pieces is None else known | (np.diff(pieces.offsets) > 0)
    ids_of = {new[i]: len(vocabulary) + int(i) for i in np.flatnonzero(useful)}
    sentences = []
    for tokens in token_lists:
        ids = vocabulary.encode(tokens[:max_length])
        for position in np.flatnonzero(ids == UNK_ID):
            ids[position] = ids_of.get(tokens[int(position)], UNK_ID)
        sentences.append(ids)
    return build_store(sentences, max_length, newcomers)
