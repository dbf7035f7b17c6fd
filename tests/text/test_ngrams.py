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
    vocabulary = NgramVocabulary.build(words)
    distinct = set(words)
    for ngram in {g for word in distinct for g in cut(word)}:
        assert (ngram in vocabulary.ngrams) == (sum(ngram in cut(w) for w in distinct) >= 2)
    ids, offsets = vocabulary.encode(words)
    for i, word in enumerate(words):
        found = {vocabulary.ngrams[k] for k in ids[offsets[i] : offsets[i + 1]]}
        assert found == cut(word) & set(vocabulary.ngrams)
    again = NgramVocabulary.from_json(vocabulary.to_json())
    assert all(
        np.array_equal(a, b) for a, b in zip(again.encode(words), (ids, offsets), strict=True)
    )


def test_placeholders_have_no_n_grams():
    vocabulary = NgramVocabulary.build(["<url>", "<user>", "url", "curl"])
    assert "<url>"[1:4] in vocabulary.ngrams
    assert vocabulary.encode(["<url>", "<pad>"])[0].size == 0


@pytest.mark.parametrize("data", [None, {}, {"ngrams": ["a", "a"], "shortest": 2, "longest": 5}])
def test_damage_is_refused(data):
    with pytest.raises(RunError, match="n-grams"):
        NgramVocabulary.from_json(data)
