"""What a label is called, as a vector: known words, unknown ones, names that say the same."""

import numpy as np
import pytest

from superconext.text.normalize import Normalizer
from superconext.text.tokenize import Tokenizer, Vocabulary
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors, label_vectors

VOCABULARY = Vocabulary(["very", "زوين", "7azin"], [3, 2, 1])
TABLE = np.arange(10, dtype=np.float32).reshape(5, 2)  # <pad>, <unk>, then the three
RESERVE = WordVectors(
    ["positive", "very"],
    np.array([[0.5, -1.0], [9.0, 9.0]], dtype=np.float16),
    SubwordTable(np.ones((50, 2), dtype=np.float32), 2, 5),
)


def of(*labels):
    return label_vectors(labels, Tokenizer(Normalizer("none")), VOCABULARY, TABLE, RESERVE)


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("زوين", [6, 7]),
        ("Positive", [0.5, -1]),
        ("very", [4, 5]),  # the vocabulary's, not the reserve's
        ("very_positive", [2.25, 2]),
        ("veryPositive", [2.25, 2]),
        ("very-positive", [2.25, 2]),
        ("very unheard", [4, 5]),
        ("7azin", [8, 9]),
    ],
)
def test_mean_of_the_known_words(label, expected):
    vectors, known = of(label)
    assert known.tolist() == [True] and vectors.dtype == np.float32
    assert np.allclose(vectors, [expected])


@pytest.mark.parametrize("label", ["positively", "<pad>", "<unk>", "_", "", "<num>"])
def test_what_no_word_says_has_no_vector(label):
    vectors, known = of(label, "زوين")
    assert known.tolist() == [False, True] and not vectors[0].any()


def test_names_that_come_to_the_same_tell_nothing_apart():
    vectors, known = of("very", "Very", "very unheard", "positive")
    assert known.tolist() == [False, False, False, True] and not vectors[:3].any()


def test_a_number_is_no_name():
    tokenizer = Tokenizer(Normalizer("latin"))
    vocabulary = Vocabulary(["<num>", "stars"], [2, 1])
    vectors, known = label_vectors(["1", "2", "stars"], tokenizer, vocabulary, TABLE, RESERVE)
    assert known.tolist() == [False, False, True] and vectors[2].tolist() == [6, 7]
