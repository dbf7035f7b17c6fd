"""Hashed n-grams: against gensim, and against the definition written out."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import VectorsError
from superconext.vectors.subwords import SubwordTable

WORDS = ["hello", "a", "", "مرحبا", "3lach", "été", "😀", "cafe\u0301", "<b>", "x" * 40]
#: The first and the last characters of one byte, two, three and four.
WORDS += ["a\x7f\x80", "\u07ff\u0800b", "\uffff\U00010000"]


def table(buckets=97, min_n=3, max_n=6, dimension=4, dtype=np.float32):
    rows = np.random.default_rng(0).normal(size=(buckets, dimension))
    return SubwordTable(rows.astype(dtype), min_n, max_n)


def defined_hashes(word, min_n, max_n, buckets):
    """FNV-1a over signed bytes of every n-gram of the bracketed word."""
    text = f"<{word}>"
    hashes = []
    for start in range(len(text)):
        for length in range(1, max_n + 1):
            if start + length > len(text) or length < min_n:
                continue
            if length == 1 and (start == 0 or start + length == len(text)):
                continue
            value = 2166136261
            for byte in text[start : start + length].encode():
                signed = byte - 256 if byte > 127 else byte
                value = (value ^ (signed % 2**32)) * 16777619 % 2**32
            hashes.append(value % buckets)
    return hashes


@pytest.mark.parametrize("lengths", [(3, 6), (1, 1), (1, 3), (2, 2), (5, 9)])
def test_hashes_equal_gensim(lengths):
    gensim = pytest.importorskip("gensim.models.fasttext")
    for buckets in (1, 97, 2_000_000):
        subwords = SubwordTable(np.zeros((buckets, 1), np.float16), *lengths)
        for word in WORDS:
            assert subwords.hashes(word) == gensim.ft_ngram_hashes(word, *lengths, buckets)


@given(st.lists(st.text(max_size=9), max_size=9), st.integers(1, 4), st.integers(0, 3))
@settings(max_examples=200, deadline=None)
def test_many_words_are_hashed_as_one_by_one(words, min_n, more):
    subwords = table(min_n=min_n, max_n=min_n + more)
    words = [*words, *WORDS, "\ud800a"]
    ids, counts = subwords._hash_many(words)
    expected = [subwords.hashes(word) for word in words]
    assert counts.tolist() == [len(each) for each in expected]
    assert ids.tolist() == [bucket for each in expected for bucket in each]
    assert [subwords.composes(word) for word in words] == [bool(each) for each in expected]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_hashes_equal_the_definition(word, min_n):
    assert table(min_n=min_n).hashes(word) == defined_hashes(word, min_n, 6, 97)


def test_a_lone_surrogate_is_hashed_and_does_not_raise():
    assert table().hashes("ab\ud800") == table().hashes("ab?")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_compose_is_the_mean_of_the_rows(dtype):
    subwords = table(dtype=dtype)
    for word in WORDS:
        rows = [subwords.buckets[i].astype(np.float64) for i in defined_hashes(word, 3, 6, 97)]
        (vector,), (has_ngram,) = subwords.compose_many([word])
        assert has_ngram == bool(rows)
        if rows:
            assert vector.dtype == np.float32
            np.testing.assert_allclose(vector, np.mean(rows, axis=0), atol=1e-6)


def test_a_word_too_short_for_any_ngram_has_no_vector():
    vectors, has_ngram = table(min_n=4).compose_many(["a"])
    assert not vectors.any() and not has_ngram.any()
    vectors, found = table(min_n=4).compose_many(["a", "abc"])
    assert found.tolist() == [False, True]
    assert not vectors[0].any()


def test_own_vectors_take_part_in_the_mean():
    subwords = table(min_n=4)
    own = np.arange(8, dtype=np.float32).reshape(2, 4)
    vectors, _ = subwords.compose_many(["a", "abc"], own)
    np.testing.assert_array_equal(vectors[0], own[0])
    rows = subwords.buckets[subwords.hashes("abc")].astype(np.float64)
    expected = np.vstack([rows, own[1:]]).mean(axis=0)
    np.testing.assert_allclose(vectors[1], expected, atol=1e-6)


def test_many_words_equal_one_by_one_across_batches():
    subwords = table()
    words = [f"kelma{i}" for i in range(3000)] + [""] * 3 + ["بزاف"]
    vectors, found = subwords.compose_many(words)
    for at in (0, 1, 1500, 2999, 3003):
        np.testing.assert_allclose(vectors[at], subwords.compose_many([words[at]])[0][0], atol=1e-6)
    assert found.sum() == 3001


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("floats", [1, 4 * 60, 1 << 24])
def test_many_rows_are_added_up_as_few(monkeypatch, dtype, floats):
    subwords = table(min_n=2, dtype=dtype)
    words = [f"kelma{i}" for i in range(300)] + ["", "بزاف"]
    own = np.random.default_rng(1).normal(size=(len(words), 4)).astype(np.float32)
    expected = [subwords.compose_many(words, rows) for rows in (None, own)]
    monkeypatch.setattr("superconext.vectors.subwords._MANY_ROWS", 0)
    monkeypatch.setattr("superconext.vectors.subwords._GATHER_FLOATS", floats)
    for rows, (vectors, found) in zip((None, own), expected, strict=True):
        again, also = subwords.compose_many(words, rows)
        np.testing.assert_allclose(again, vectors, atol=1e-6)
        np.testing.assert_array_equal(also, found)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_many_rows_are_added_up_without_scipy_too(monkeypatch, dtype):
    subwords = table(min_n=2, dtype=dtype)
    words = [*WORDS, *(f"kelma{'x' * i}" for i in range(30))]
    expected, _ = subwords.compose_many(words)
    monkeypatch.setattr("superconext.vectors.subwords._MANY_ROWS", 9)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    np.testing.assert_allclose(subwords.compose_many(words)[0], expected, atol=1e-6)


def test_a_table_in_half_precision_composes_as_the_same_numbers_in_single():
    halves = table(dtype=np.float16)
    singles = SubwordTable(halves.buckets.astype(np.float32), halves.min_n, halves.max_n)
    for words in (WORDS, [f"w{n}" for n in range(9000)]):  # many words are added up another way
        np.testing.assert_array_equal(halves.compose_many(words)[0], singles.compose_many(words)[0])


def test_no_words():
    vectors, found = table().compose_many([])
    assert vectors.shape == (0, 4)
    assert found.shape == (0,)


def test_impossible_tables_are_refused():
    rows = np.zeros((3, 2), np.float32)
    for lengths in [(0, 3), (4, 3), (-1, -1)]:
        with pytest.raises(VectorsError, match="min_n"):
            SubwordTable(rows, *lengths)
    for bad in (np.zeros((0, 2)), np.zeros(3), np.zeros((2, 2), int)):
        with pytest.raises(VectorsError, match="subword table"):
            SubwordTable(bad, 3, 6)


def test_ngrams_of_words_add_so_many_times_the_mean_of_their_vectors():
    draw = np.random.default_rng(0)
    table = SubwordTable(draw.standard_normal((7, 3)).astype(np.float32), 2, 3)
    words = ["zwin", "a", "", "é"]
    ngrams = table.ngrams_of(words, 4.0)
    assert ngrams.size == 7
    for number, (word, scale) in enumerate(zip(words, ngrams.scales(np.arange(4)), strict=True)):
        ids = ngrams.ids[ngrams.offsets[number] : ngrams.offsets[number + 1]]
        assert ids.tolist() == table.hashes(word)
        composed = table.compose_many([word])[0][0]
        np.testing.assert_allclose(scale * table.buckets[ids].sum(axis=0), 4 * composed, rtol=1e-5)


def test_a_change_of_the_table_changes_what_it_composes():
    draw = np.random.default_rng(0)
    first, change = draw.standard_normal((2, 9, 3)).astype(np.float32)
    both = SubwordTable(first, 2, 4).plus(change)
    parts = [SubwordTable(part, 2, 4).compose_many(["bzaf", "kif"])[0] for part in (first, change)]
    np.testing.assert_allclose(both.compose_many(["bzaf", "kif"])[0], sum(parts), rtol=1e-4)
