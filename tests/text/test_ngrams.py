"""Character n-grams by id."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import RunError
from superconext.text.ngrams import NgramVocabulary, PackedNgrams


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


LETTERS = st.characters(codec=None) | st.sampled_from("abab<>جد\ud800😀")


@given(
    trained=st.lists(st.text(LETTERS, max_size=7), max_size=12),
    words=st.lists(st.text(LETTERS, max_size=50), max_size=12),
    shortest=st.integers(1, 3),
    more=st.integers(0, 4),
)
@settings(max_examples=300, deadline=None)
def test_many_words_are_cut_as_one_by_one(trained, words, shortest, more):
    vocabulary = NgramVocabulary.build(trained, shortest, shortest + more)
    words = [*words, *trained, "<url>", "<>", "", "abababab"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("superconext.text.ngrams._MANY", 10**9)
        one_by_one = vocabulary.encode(words)
        patch.setattr("superconext.text.ngrams._MANY", 0)
        at_once = vocabulary.encode(words)
    for name in ("ids", "offsets", "counts"):
        found, expected = getattr(at_once, name), getattr(one_by_one, name)
        assert found.dtype == np.int64
        assert np.array_equal(found, expected), name


def test_too_many_characters_to_be_numbers_are_cut_one_by_one(monkeypatch):
    monkeypatch.setattr("superconext.text.ngrams._MANY", 0)
    trained = [chr(0x4E00 + i) + chr(0x4E01 + i) for i in range(5000)]
    vocabulary = NgramVocabulary.build(trained)
    assert PackedNgrams(vocabulary.ngrams, 2, 5).find(["<ab>"]) is None
    encoded = vocabulary.encode([trained[7], "ab"])
    assert {vocabulary.ngrams[k] for k in encoded.ids} == cut(trained[7])
    assert encoded.counts.tolist() == [len(cut(trained[7])), len(cut("ab"))]
