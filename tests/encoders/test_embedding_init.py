"""Where word vectors come from."""

import numpy as np
import pytest

from superconext.config.parameters import resolve
from superconext.core.errors import DataError
from superconext.core.progress import Progress
from superconext.data.token_store import MemoryRows
from superconext.encoders import embedding_init
from superconext.encoders.embedding_init import initial_vectors
from superconext.text.normalize import Normalizer
from superconext.text.tokenize import Tokenizer, Vocabulary
from superconext.vectors.table import WordVectors
from superconext.vectors.text_corpus import record_tokenizer

SENTENCES = [["zwin", "bzaf"], ["khayb", "bzaf"], ["mzyan", "walo"]] * 30
ROWS = MemoryRows(Tokenizer(), SENTENCES)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))


class Counting(Tokenizer):
    calls = 0

    def __call__(self, text):
        self.calls += 1
        return super().__call__(text)


class Listening(Progress):
    def __init__(self):
        self.said = []

    def say(self, line):
        self.said.append(line)

    def warn(self, line):
        self.said.append(f"warning: {line}")


def start(tokenizer=None, progress=None, held=(), **given):
    config = resolve({"vector_dimension": 8, **given})
    vocabulary = Vocabulary.build(SENTENCES)
    return initial_vectors(
        config, vocabulary, ROWS, tokenizer or Tokenizer(), progress or Progress(), held
    )


def test_what_a_dev_or_test_text_says_is_not_learned_from(tmp_path):
    path = tmp_path / "more.txt"
    path.write_text("hadchi zwin\nsirr kbir!\nsirr kbir '\n" * 20, encoding="utf-8")
    progress = Listening()
    initial = start(progress=progress, held=["sirr, kbir"], unlabelled=str(path))
    assert initial.oov_vectors.words == ["hadchi"]
    assert any("left out: 40 of 60 unlabelled lines" in line for line in progress.said)
    assert initial.facts["vectors"]["cleared_of"] == 1
    again = Listening()
    assert start(progress=again, held=["sirr, kbir"], unlabelled=str(path)).facts == initial.facts
    assert any("without lines that repeat a labelled text" in line for line in again.said)
    assert "sirr" in start(unlabelled=str(path)).oov_vectors.words


@pytest.mark.parametrize(
    ("lines", "slow", "told"), [(2_000, 0.0, 1), (2_000, 20.0, 0), (20, 0.0, 0)]
)
def test_vectors_that_take_long_may_be_made_once(tmp_path, monkeypatch, lines, slow, told):
    """Only where they are of so much text that they are made without the labelled rows."""
    path = tmp_path / "more text.txt"
    path.write_text("hadchi zwin\nsirr kbir\n" * lines, encoding="utf-8")
    monkeypatch.setattr(embedding_init, "_SLOW", slow)
    for more in (told, 0):  # the second time they are in the cache
        progress = Listening()
        start(progress=progress, held=["sirr kbir"], unlabelled=str(path))
        found = [line for line in progress.said if "to make them once" in line]
        assert len(found) == more
        assert not more or f"vectors train '{path}' --leave-out TEST --out V" in found[0]


def test_trained_vectors_cover_the_vocabulary_and_unlabelled_words(tmp_path):
    path = tmp_path / "more.txt"
    path.write_text("hadchi zwin\nhadchi khayb\n" * 20, encoding="utf-8")
    initial = start(unlabelled=str(path))
    assert initial.table.shape == (7, 8) and initial.table.dtype == np.float32
    # The unknown word is composed too, here of n-grams that no word has.
    assert (initial.table[:2] == 0).all() and (initial.table[2:] != 0).any(axis=1).all()
    assert initial.oov_vectors.words == ["hadchi"]
    vectors, known = initial.oov_vectors.lookup(["hadchi", "zwiiin"])
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
    assert initial.oov_vectors.words == ["elsewhere"]
    again = start(vectors=str(path))
    assert np.array_equal(initial.table, again.table)


def test_missing_unlabelled_text_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: no such file"):
        start(unlabelled=str(tmp_path / "none.txt"))


def test_unlabelled_files_without_text_are_refused(tmp_path):
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(DataError, match=r"empty\.txt: no text found"):
        start(unlabelled=str(tmp_path / "empty.txt"))


def test_labels_of_an_unlabelled_table_are_no_words(tmp_path):
    path = tmp_path / "more.tsv"
    path.write_text("label\ttext\n" + "wrong\thadchi zwin\n" * 20, encoding="utf-8")
    assert start(unlabelled=str(path)).oov_vectors.words == ["hadchi"]


def test_a_scale_reaches_every_vector_alike(tmp_path):
    """Words of the table, the reserve and its character n-grams, of a file that is too small."""
    text = tmp_path / "more.txt"
    text.write_text("hadchi zwin\n" * 20, encoding="utf-8")
    made = start(unlabelled=str(text)).oov_vectors
    words = ["hadchi", "zwin", "bzaf"]
    matrix = np.full((3, 8), 0.1, dtype=np.float32)
    WordVectors(words, matrix, made.subwords).save(tmp_path / "small")
    initial = start(vectors=str(tmp_path / "small"))
    scale = initial.facts["vectors"]["scale"]
    assert scale > 2
    vocabulary = Vocabulary.build(SENTENCES)
    np.testing.assert_allclose(initial.table[vocabulary.index("zwin")], 0.1 * scale, rtol=1e-6)
    np.testing.assert_allclose(initial.oov_vectors.lookup(["hadchi"])[0], 0.1 * scale, rtol=2e-3)
    ours, theirs = initial.oov_vectors.lookup(["zwiiin"])[0], made.lookup(["zwiiin"])[0]
    np.testing.assert_allclose(ours, scale * theirs, rtol=2e-3, atol=1e-4 * scale)


@pytest.mark.parametrize(
    ("theirs", "ours", "said"),
    [
        (("arabic",), ("arabic",), None),
        (("arabic",), ("latin",), "profile arabic, and this run reads latin"),
        (("latin", (), ("lower",)), ("latin",), "rules lower in this run alone"),
        (("latin",), ("latin", (), ("lower",)), "rules lower in the folder alone"),
    ],
)
def test_a_folder_whose_words_are_spelt_otherwise_is_told_of(tmp_path, theirs, ours, said):
    folder = tmp_path / "vectors"
    WordVectors(["zwin"], np.ones((1, 3), dtype=np.float32)).save(folder)
    record_tokenizer(folder, Tokenizer(Normalizer(*theirs)))
    progress = Listening()
    start(Tokenizer(Normalizer(*ours)), progress, vectors=str(folder))
    found = [line for line in progress.said if "choose --normalize" in line]
    assert len(found) == (said is not None)
    if said:
        assert str(folder) in found[0] and said in found[0] and "\n" not in found[0]
        assert found[0].startswith("warning: ")


@pytest.mark.parametrize("version", [1, 2])
def test_a_folder_whose_words_earlier_rules_cut_is_told_of(tmp_path, version):
    folder = tmp_path / "vectors"
    WordVectors(["zwin", "i\u0307sraf"], np.ones((2, 3), dtype=np.float32)).save(folder)
    record_tokenizer(folder, Tokenizer(Normalizer("latin"), version=version))
    progress = Listening()
    start(Tokenizer(Normalizer("latin")), progress, vectors=str(folder))
    told = [line for line in progress.said if "made by superconext 0.2.0" in line]
    assert len(told) == (version == 1)
    for line in told:
        assert line.startswith("warning: ") and "1 word of it, such as 'i\u0307sraf'" in line


def test_a_bridge_on_one_side_is_told_of(tmp_path):
    folder = tmp_path / "vectors"
    WordVectors(["zwin"], np.ones((1, 3), dtype=np.float32)).save(folder)
    record_tokenizer(folder, Tokenizer(Normalizer("arabic"), "moroccan"))
    progress = Listening()
    start(Tokenizer(Normalizer("arabic")), progress, vectors=str(folder))
    assert any("bridge moroccan against none here" in line for line in progress.said)


def test_word2vec_knows_whole_words_alone():
    whole, parts = start(vector_method="word2vec"), start()
    assert whole.oov_vectors.subwords is None and parts.oov_vectors.subwords is not None
    assert whole.facts["vectors"]["coverage"] == 1 and not np.array_equal(whole.table, parts.table)
    assert not whole.oov_vectors.lookup(["zwiiin"])[1].any()


def test_random_vectors_are_noise_by_the_seed(tmp_path):
    (tmp_path / "more.txt").write_text("hadchi zwin\n" * 20, encoding="utf-8")
    progress = Listening()
    given = {"vector_method": "random", "vector_dimension": 400}
    first = start(progress=progress, unlabelled=str(tmp_path / "more.txt"), **given)
    (warned,) = [line for line in progress.said if line.startswith("warning: ")]
    assert "more.txt is not used to train vectors" in warned
    assert first.facts["vectors"]["coverage"] == 0 and len(first.oov_vectors) == 0
    assert first.table[2:].std() == pytest.approx(0.1, rel=0.1) and (first.table[:2] == 0).all()
    assert np.array_equal(first.table, start(**given).table)
    assert not np.array_equal(first.table, start(**given, seed=1).table)


def test_small_vectors_of_a_file_are_brought_to_half_unless_an_encoder_has_read_them(tmp_path):
    """GoogleNews' numbers are a third the size of a dialect's: what is learned would drown them."""
    path = tmp_path / "small.txt"
    path.write_text("zwin 0.1 0 0\nbzaf 0 0.2 0\nelsewhere 0 0 3\n", encoding="utf-8")
    initial = start(vectors=str(path))
    words = Vocabulary.build(SENTENCES)
    known = np.stack([initial.table[words.index(word)] for word in ("zwin", "bzaf")])
    assert np.sqrt(np.mean(known.astype(float) ** 2)) == pytest.approx(0.5)
    assert initial.facts["vectors"]["scale"] == pytest.approx(5 * np.sqrt(6 / 5))
    path.write_text("zwin 1 0 0\nbzaf 0 2 0\n", encoding="utf-8")
    assert start(vectors=str(path)).facts["vectors"]["scale"] == 1  # large enough
    path.write_text("zwin 0 0 0\n", encoding="utf-8")
    assert np.isfinite(start(vectors=str(path)).table).all()
    plain = WordVectors(["zwin", "bzaf"], np.array([[0.1, 0], [0, 0.2]], dtype=np.float32))
    plain.save(tmp_path / "encoder")
    assert start(init=str(tmp_path / "encoder")).facts["vectors"]["scale"] == 1
    assert start().facts["vectors"]["scale"] == 1
