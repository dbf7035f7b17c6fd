"""Character n-grams by id."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superconext.errors import RunError
from superconext.text.ngrams import NgramVocabulary


def cut(word):
    marked = f"<{word}>"
    return {
        marked[a:b] for a in range(len(marked)) for b in range(a + 2, a + 6) if b <= len(marked)
    }


@given(words=st.lists(st.text("abجد", min_size=1, max_size=7), max_size=12))
def test_keeps_what_two_words_share_and_encodes_it(words):
    vocabulary = NgramVocabulary.build(words, min_words=2)
    distinct = set(words)
    for ngram in {g for word in distinct for g in cut(word)}:
        assert (ngram in vocabulary.ngrams) == (sum(ngram in cut(w) for w in distinct) >= 2)
    encoded = vocabulary.encode(words)
    for i, word in enumerate(words):
        ids = encoded.ids[encoded.offsets[i] : encoded.offsets[i + 1]]
        assert {vocabulary.ngrams[k] for k in ids} == cut(word) & set(vocabulary.ngrams)
        assert encoded.counts[i] == len(cut(word))
    again = NgramVocabulary.from_json(vocabulary.to_json()).encode(words)
    assert np.array_equal(again.ids, encoded.ids)


def test_placeholders_have_no_n_grams():
    vocabulary = NgramVocabulary.build(["<url>", "<user>", "url", "curl"])
    assert "<url>"[1:4] in vocabulary.ngrams
    assert vocabulary.encode(["<url>", "<pad>"]).ids.size == 0


@pytest.mark.parametrize("data", [None, {}, {"ngrams": ["a", "a"], "shortest": 2, "longest": 5}])
def test_damage_is_refused(data):
    with pytest.raises(RunError, match="n-grams"):
        NgramVocabulary.from_json(data)
