"""Where word vectors come from."""

import numpy as np
import pytest

from superconext.config import resolve
from superconext.errors import DataError
from superconext.initial import initial_vectors
from superconext.text.tokenize import Tokenizer
from superconext.text.vocabulary import Vocabulary
from superconext.training.progress import Progress

SENTENCES = [["zwin", "bzaf"], ["khayb", "bzaf"], ["mzyan", "walo"]] * 30


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))


class Counting(Tokenizer):
    calls = 0

    def __call__(self, text):
        self.calls += 1
        return super().__call__(text)


def start(tokenizer=None, **given):
    config = resolve({"vector_dimension": 8, **given})
    vocabulary = Vocabulary.build(SENTENCES)
    return initial_vectors(config, vocabulary, SENTENCES, tokenizer or Tokenizer(), Progress())


def test_trained_vectors_cover_the_vocabulary_and_unlabelled_words(tmp_path):
    path = tmp_path / "more.txt"
    path.write_text("hadchi zwin\nhadchi khayb\n" * 20, encoding="utf-8")
    initial = start(unlabelled=str(path))
    assert initial.table.shape == (7, 8) and initial.table.dtype == np.float32
    assert (initial.table[0] == 0).all() and (initial.table[1:] != 0).any(axis=1).all()
    assert initial.reserve.words == ["hadchi"]
    vectors, known = initial.reserve.lookup(["hadchi", "zwiiin"])
    assert known.all() and np.isfinite(vectors).all()
    assert initial.facts["vectors"]["trained_on"] == "training text and more.txt"


def test_the_same_text_is_neither_read_nor_trained_on_twice(tmp_path):
    path = tmp_path / "more.txt"
    path.write_text("hadchi zwin\n" * 20, encoding="utf-8")
    first, second = Counting(), Counting()
    tables = [start(t, unlabelled=str(path)).table for t in (first, second)]
    assert np.array_equal(*tables) and (first.calls, second.calls) == (20, 0)
    path.write_text("hadchi khayb\n" * 20, encoding="utf-8")
    third = Counting()
    assert not np.array_equal(start(third, unlabelled=str(path)).table, tables[0])
    assert third.calls == 20


def test_a_file_serves_the_words_it_has_and_noise_the_others(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("zwin 1 0 0\nbzaf 0 2 0\nelsewhere 0 0 3\n", encoding="utf-8")
    initial = start(vectors=str(path))
    words = Vocabulary.build(SENTENCES)
    assert initial.table[words.index("zwin")].tolist() == [1, 0, 0]
    assert initial.table[1].tolist() == [0.5, 1, 0], "the unknown word is the mean"
    assert initial.facts["vectors"]["coverage"] == 0.4
    assert initial.reserve.words == ["elsewhere"]
    again = start(vectors=str(path))
    assert np.array_equal(initial.table, again.table)


def test_missing_unlabelled_text_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: no such file"):
        start(unlabelled=str(tmp_path / "none.txt"))
