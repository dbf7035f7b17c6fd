"""Which ids have words that training never saw? Those after the vocabulary's."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from superconext.data.token_store import Newcomers, TokenStore
from superconext.text.ngrams import NgramVocabulary
from superconext.text.tokenize import Pieces
from superconext.text.vocabulary import PAD, UNK, UNK_ID, Vocabulary
from superconext.vectors.table import WordVectors


def store_with_newcomers(
    texts: Sequence[Sequence[str]] | Pieces,
    vocabulary: Vocabulary,
    reserve: WordVectors,
    ngrams: NgramVocabulary | None,
    max_length: int,
) -> TokenStore:
    """Token ids under `vocabulary`; words it lacks become newcomers with ids after it.

    A word of which neither the reserve nor an n-gram is known becomes the unknown word.

    Args:
        texts: the tokens of each text, or its pieces: a word is then looked up once for each
            distinct piece that has it.
        max_length: tokens of a text after so many are left out.
    """
    if not isinstance(texts, Pieces):
        cut = [tokens[:max_length] for tokens in texts]
        texts = Pieces(cut, np.arange(len(cut)), np.ones(len(cut), dtype=np.int64))
    words = list(chain.from_iterable(texts.tokens))
    ids = vocabulary.encode(words)
    chosen, edges = texts.spread(max_length)
    lengths = np.diff(edges)
    read = np.zeros(len(words), dtype=bool)
    read[chosen] = True
    places = np.flatnonzero((ids == UNK_ID) & read)
    unknown = [words[place] for place in places.tolist()]
    # Of the vocabulary's words, these two alone read as unknown.
    new = sorted(set(unknown).difference((PAD, UNK)))
    vectors, known = reserve.lookup(new)
    pieces = ngrams.encode(new) if ngrams is not None else None
    newcomers = Newcomers(np.ascontiguousarray(vectors), known, pieces)
    useful = known if pieces is None else known | (np.diff(pieces.offsets) > 0)
    numbers = np.where(useful, len(vocabulary) + np.arange(len(new)), UNK_ID)
    ids_of = {PAD: UNK_ID, UNK: UNK_ID, **dict(zip(new, numbers.tolist(), strict=True))}
    ids[places] = [ids_of[word] for word in unknown]
    ids = ids[chosen]
    # A text without a token is the single unknown word, as in `build_store`.
    empty = np.flatnonzero(lengths == 0)
    ids = np.insert(ids, (np.cumsum(lengths) - lengths)[empty], UNK_ID)
    lengths[empty] = 1
    return TokenStore(ids, np.append(0, np.cumsum(lengths)), newcomers)
