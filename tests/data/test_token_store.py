"""The ragged store: what goes in comes out, padded."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from superconext.data.token_store import build_store
from superconext.text.tokenize import PAD_ID, UNK_ID

SENTENCES = st.lists(st.lists(st.integers(2, 99), max_size=9), min_size=1, max_size=12)


@given(sentences=SENTENCES, data=st.data(), limit=st.integers(1, 10))
def test_pad_gives_back_every_sentence(sentences, data, limit):
    store = build_store(sentences, limit)
    rows = data.draw(st.lists(st.integers(0, len(sentences) - 1), min_size=1))
    ids, lengths = store.pad(np.array(rows))
    assert ids.shape == (len(rows), lengths.max())
    for row, padded, length in zip(rows, ids, lengths, strict=True):
        expected = sentences[row][:limit] or [UNK_ID]
        assert padded[:length].tolist() == expected
        assert (padded[length:] == PAD_ID).all()


@given(sentences=st.lists(st.lists(st.integers(2, 3), max_size=3), max_size=12))
def test_distinct_finds_each_sentence_its_first_like(sentences):
    store = build_store(sentences, 9)
    rows, place = store.distinct()
    found = [sentence or [UNK_ID] for sentence in sentences]
    assert rows.tolist() == [i for i, one in enumerate(found) if one not in found[:i]]
    assert [found[rows[i]] for i in place] == found
    assert rows.dtype == place.dtype == np.int64


def test_empty_sentences_become_one_unknown_word():
    store = build_store([[], [5]], 10)
    assert store.lengths.tolist() == [1, 1] and store.tokens.tolist() == [UNK_ID, 5]
    assert len(build_store([], 10)) == 0


def test_takes_the_ids_of_some_sentences_without_padding():
    store = build_store([[5, 6], [7], [8, 9, 10]], 9)
    ids, lengths = store.take(np.array([2, 0, 2]))
    assert ids.tolist() == [8, 9, 10, 5, 6, 8, 9, 10] and lengths.tolist() == [3, 2, 3]
    assert store.lengths_of(np.array([1, 2])).tolist() == [1, 3]
