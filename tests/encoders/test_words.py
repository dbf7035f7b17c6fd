"""Token ids beyond the vocabulary: against a plain loop over words."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.encoders.indexer import WordIndexer, store_with_oov
from superconext.text.ngrams import NgramVocabulary
from superconext.text.normalize import Normalizer
from superconext.text.tokenize import UNK_ID, Tokenizer, Vocabulary
from superconext.vectors.table import WordVectors

WORDS = ["aa", "ab", "bbb", "cab", "xy", "<pad>", "<unk>", "<url>", "zz", "abab"]
VOCABULARY = Vocabulary(["aa", "bbb"], [2, 1])
NGRAMS = NgramVocabulary.build(["aa", "bbb", "ab"])
RESERVE = WordVectors(["xy", "zz"], np.eye(2, dtype=np.float32))


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=7), max_size=9),
    st.sampled_from([None, NGRAMS]),
    st.integers(1, 6),
)
@settings(deadline=None)
def test_ids_are_those_of_a_plain_loop(token_lists, ngrams, longest):
    store = store_with_oov(token_lists, VOCABULARY, RESERVE, ngrams, longest)
    cut = [tokens[:longest] for tokens in token_lists]
    new = sorted({token for tokens in cut for token in tokens if token not in VOCABULARY})
    expected = []
    for tokens in cut:
        ids = []
        for token in tokens:
            if token in ("aa", "bbb"):
                ids.append(VOCABULARY.index(token))
            elif token in ("<pad>", "<unk>"):
                ids.append(UNK_ID)
            else:
                known = token in RESERVE
                pieces = ngrams is not None and len(ngrams.encode([token]).ids) > 0
                ids.append(len(VOCABULARY) + new.index(token) if known or pieces else UNK_ID)
        expected.append(ids or [UNK_ID])
    assert store.tokens.tolist() == [k for ids in expected for k in ids]
    assert store.lengths.tolist() == [len(ids) for ids in expected]
    assert store.tokens.dtype == np.int32 and len(store.oov_words) == len(new)


@given(
    st.lists(st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join), max_size=9),
    st.sampled_from([None, NGRAMS]),
    st.integers(1, 6),
)
@settings(deadline=None)
def test_pieces_give_the_store_of_their_texts(texts, ngrams, longest):
    tokenizer = Tokenizer(Normalizer("none"))
    rest = VOCABULARY, RESERVE, ngrams, longest
    found = store_with_oov(tokenizer.pieces(texts), *rest)
    expected = store_with_oov([tokenizer(text) for text in texts], *rest)
    assert np.array_equal(found.tokens, expected.tokens)
    assert np.array_equal(found.offsets, expected.offsets)
    assert np.array_equal(found.oov_words.vectors, expected.oov_words.vectors)
    assert np.array_equal(found.oov_words.known, expected.oov_words.known)


def test_a_script_of_many_words_that_are_hardly_ever_written_was_not_met():
    rare = [f"زوين{letter}" for letter in "ابتثجحخدذرز"]
    reserve = WordVectors(["zwin"], np.ones((1, 2), np.float32))
    for often, strange in ((5000, 1.0), (5, 0.0)):
        vocabulary = Vocabulary(["zwin", *rare], [often, *[1] * len(rare)])
        indexer = WordIndexer(Tokenizer(Normalizer("none")), vocabulary, reserve, None, 9)
        shares = indexer.unfamiliar([["zwin"], [rare[0]], ["zwin", rare[1]]])
        assert shares[:, 0].tolist() == [0, 0, 0], "all words are known"
        assert shares[:, 1].tolist() == [0, strange, strange * 5 / 9]


def test_a_word_of_another_case_is_that_of_the_vocabulary():
    """As it is that of the table where training has not seen it."""
    reserve = WordVectors(["Alger", "tram"], np.eye(2, 3, dtype=np.float32), None)
    vocabulary = Vocabulary.build([["zwin", "ZWIN", "zwin", "cafe\u0301", "BZAF", "BZAF", "Bzaf"]])
    texts = [["Zwin"], ["ZWIN"], ["caf\u00e9"], ["ALGER"], ["nothing"], ["bzaf"], ["<PAD>"]]
    store = store_with_oov(texts, vocabulary, reserve, None, 10)
    found = store.tokens.tolist()
    of = vocabulary.index
    assert found[:3] == [of("zwin"), of("ZWIN"), of("cafe\u0301")]
    assert found[3] >= len(vocabulary) and found[4] == UNK_ID
    assert found[5] == of("BZAF") and found[6] == UNK_ID
