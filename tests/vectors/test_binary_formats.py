"""word2vec .bin, fastText .bin and gensim .kv, against gensim where it is the oracle."""

import os
import pickle
import struct

import numpy as np
import pytest

from superconext.core.errors import VectorsError
from superconext.vectors import binary_formats
from superconext.vectors import table as vector_table
from superconext.vectors.readers import read_vectors

gensim_models = pytest.importorskip("gensim.models")
SENTENCES = [["hello", "world", "مرحبا"], ["بزاف", "hello", "3lach"]] * 20
UNSEEN = ["helloo", "مرحبااا", "x", "zwin"]


def word2vec_bytes(words, matrix, feed=b"\n"):
    rows = b"".join(
        word.encode() + b" " + row.astype("<f4").tobytes() + feed
        for word, row in zip(words, matrix, strict=True)
    )
    return f"{len(words)} {matrix.shape[1]}\n".encode() + rows


def numbers(rows=30, dimension=5):
    return np.random.default_rng(2).normal(size=(rows, dimension)).astype(np.float32)


@pytest.fixture(scope="module")
def fasttext():
    return gensim_models.FastText(
        SENTENCES, vector_size=8, min_count=1, bucket=211, sg=1, epochs=2, workers=1
    )


def same_as_gensim(vectors, keyed, unseen=UNSEEN):
    assert vectors.words == keyed.index_to_key
    np.testing.assert_allclose(vectors.matrix, keyed.vectors, atol=1e-6)
    for word in unseen:
        np.testing.assert_allclose(vectors.lookup([word])[0][0], keyed[word], atol=1e-6)


@pytest.mark.parametrize("feed", [b"\n", b""])
def test_word2vec_binary(tmp_path, feed):
    words, matrix = [f"كلمة{i}" for i in range(30)], numbers()
    (tmp_path / "v.bin").write_bytes(word2vec_bytes(words, matrix, feed))
    vectors = read_vectors(tmp_path / "v.bin")
    assert vectors.words == words
    np.testing.assert_array_equal(vectors.matrix, matrix)
    assert read_vectors(tmp_path / "v.bin", keep={"كلمة7"}, limit=1).words == ["كلمة0", "كلمة7"]
    assert len(read_vectors(tmp_path / "v.bin", limit=4)) == 4


def test_word2vec_binary_of_zeros_and_of_one_number(tmp_path):
    (tmp_path / "v.bin").write_bytes(word2vec_bytes(["a", "b"], np.zeros((2, 1))))
    assert read_vectors(tmp_path / "v.bin").matrix.tolist() == [[0.0], [0.0]]


def test_word2vec_binary_larger_than_one_read(tmp_path):
    matrix = numbers(3000, 50)
    words = [f"w{i}" for i in range(3000)]
    (tmp_path / "v.bin").write_bytes(word2vec_bytes(words, matrix))
    vectors = read_vectors(tmp_path / "v.bin")
    np.testing.assert_array_equal(vectors.matrix, matrix)
    assert vectors.words == words


def test_word2vec_binary_cut_anywhere_is_an_error(tmp_path):
    data = word2vec_bytes([f"w{i}" for i in range(30)], numbers())
    for length in range(20, len(data) - 1, 7):
        (tmp_path / "v.bin").write_bytes(data[:length])
        with pytest.raises(VectorsError):
            read_vectors(tmp_path / "v.bin")


def test_word2vec_binary_with_more_than_its_header_promises_is_an_error(tmp_path):
    words, matrix = [f"w{i}" for i in range(30)], numbers()
    data = word2vec_bytes(words, matrix)
    wrong = data.replace(b"30 ", b"12 ", 1)
    (tmp_path / "v.bin").write_bytes(wrong)
    with pytest.raises(VectorsError, match=r"promises 12 rows of .* and more follow"):
        read_vectors(tmp_path / "v.bin")
    assert len(read_vectors(tmp_path / "v.bin", limit=4)) == 4


def test_word2vec_header_that_promises_the_moon_allocates_nothing(tmp_path):
    for header in (b"99999999999 300\n", b"3 999999999\n"):
        (tmp_path / "v.bin").write_bytes(header + b"w " + b"\0" * 400)
        with pytest.raises(VectorsError):
            read_vectors(tmp_path / "v.bin")


def test_word2vec_rows_that_are_not_finite_are_counted(tmp_path):
    matrix = numbers()
    matrix[4, 2] = np.inf
    (tmp_path / "v.bin").write_bytes(word2vec_bytes([f"w{i}" for i in range(30)], matrix))
    vectors = read_vectors(tmp_path / "v.bin")
    assert len(vectors) == 29
    assert "row 5" in vectors.notes[0]


def test_fasttext_binary_equals_gensim(tmp_path, fasttext):
    from gensim.models.fasttext import load_facebook_vectors, save_facebook_model

    save_facebook_model(fasttext, str(tmp_path / "m.bin"))
    vectors = read_vectors(tmp_path / "m.bin")
    same_as_gensim(vectors, load_facebook_vectors(str(tmp_path / "m.bin")))
    part = read_vectors(tmp_path / "m.bin", keep={"hello"})
    assert part.words == ["hello"]
    np.testing.assert_array_equal(part.lookup(UNSEEN)[0], vectors.lookup(UNSEEN)[0])
    vectors.save(tmp_path / "folder")
    np.testing.assert_array_equal(
        read_vectors(tmp_path / "folder").lookup(UNSEEN)[0], vectors.lookup(UNSEEN)[0]
    )


def fasttext_bytes(words, table, buckets, labels=(), min_n=2, max_n=3, quantised=False, pruned=-1):
    dimension = table.shape[1]
    data = struct.pack("<2i", 793712314, 12)
    data += struct.pack("<12id", dimension, 5, 5, 1, 5, 1, 2, 2, buckets, min_n, max_n, 100, 1e-4)
    entries = [(word, 0) for word in words] + [(label, 1) for label in labels]
    data += struct.pack("<3i2q", len(entries), len(words), len(labels), 99, pruned)
    for word, kind in entries:
        data += word.encode() + b"\0" + struct.pack("<qb", 3, kind)
    return data + struct.pack("<?2q", quantised, *table.shape) + table.astype("<f4").tobytes()


def test_fasttext_end_of_sentence_has_no_ngrams_and_labels_are_no_words(tmp_path):
    table = numbers(2 + 10, 4)
    data = fasttext_bytes(["</s>", "ab"], table, 10, labels=["__label__x"])
    (tmp_path / "m.bin").write_bytes(data)
    vectors = read_vectors(tmp_path / "m.bin")
    assert vectors.words == ["</s>", "ab"]
    np.testing.assert_array_equal(vectors.matrix[0], table[0])
    rows = [table[1], *(table[2 + i] for i in vectors.subwords.hashes("ab"))]
    np.testing.assert_allclose(vectors.matrix[1], np.mean(rows, axis=0), atol=1e-6)


def test_fasttext_without_ngrams_and_compressed(tmp_path):
    (tmp_path / "m.bin").write_bytes(fasttext_bytes(["a"], numbers(1, 4), 0, min_n=0, max_n=0))
    vectors = read_vectors(tmp_path / "m.bin")
    assert vectors.subwords is None
    np.testing.assert_array_equal(vectors.matrix, numbers(1, 4))
    (tmp_path / "m.ftz").write_bytes(fasttext_bytes(["a"], numbers(3, 4), 2, quantised=True))
    with pytest.raises(VectorsError, match="compressed"):
        read_vectors(tmp_path / "m.ftz")
    (tmp_path / "cut.ftz").write_bytes(fasttext_bytes(["a"], numbers(3, 4), 2, pruned=1))
    with pytest.raises(VectorsError, match="compressed"):
        read_vectors(tmp_path / "cut.ftz")


def test_fasttext_rows_are_composed_in_parts_and_those_that_are_not_finite_are_counted(
    tmp_path, monkeypatch
):
    words, table = [f"kelma{k}" for k in range(120)], numbers(120 + 10, 4)
    table[100] = np.nan
    (tmp_path / "m.bin").write_bytes(fasttext_bytes(words, table, 10))
    whole = read_vectors(tmp_path / "m.bin")
    assert whole.words == words[:100] + words[101:]
    assert "word 101 " in whole.notes[0]
    monkeypatch.setattr(binary_formats, "_COMPOSE_ROWS", 7)
    parts = read_vectors(tmp_path / "m.bin")
    assert parts.words == whole.words
    np.testing.assert_allclose(parts.matrix, whole.matrix, atol=1e-6)


def test_fasttext_words_that_are_one_when_decoded_are_held_once(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_table, "_CHUNK_ROWS", 4)
    rows = numbers(9, 4)
    data = fasttext_bytes([*"abc", "X", "Y", *"defg"], rows, 0)
    data = data.replace(b"X\0", b"\xf0\0").replace(b"Y\0", b"\xf1\0")
    (tmp_path / "m.bin").write_bytes(data)
    vectors = read_vectors(tmp_path / "m.bin")
    assert vectors.words == [*"abc", "\ufffd", *"defg"]
    np.testing.assert_array_equal(vectors.matrix, rows[[0, 1, 2, 3, 5, 6, 7, 8]])
    assert any("1 repeated word" in note for note in vectors.notes)


def test_fasttext_with_a_largest_length_below_the_smallest_has_no_ngrams(tmp_path):
    data = fasttext_bytes(["ab"], numbers(1 + 10, 4), 10, min_n=5, max_n=3)
    (tmp_path / "m.bin").write_bytes(data)
    vectors = read_vectors(tmp_path / "m.bin")
    assert vectors.subwords is None
    np.testing.assert_array_equal(vectors.matrix, numbers(1 + 10, 4)[:1])


def test_fasttext_ngrams_of_no_least_length_begin_at_one_character(tmp_path):
    table = numbers(1 + 10, 4)
    (tmp_path / "m.bin").write_bytes(fasttext_bytes(["ab"], table, 10, min_n=0))
    vectors = read_vectors(tmp_path / "m.bin")
    hashes = gensim_models.fasttext.ft_ngram_hashes("ab", 1, 3, 10)
    assert len(hashes) == 7
    rows = [table[0], *(table[1 + i] for i in hashes)]
    np.testing.assert_allclose(vectors.matrix[0], np.mean(rows, axis=0), atol=1e-6)


def test_fasttext_cut_anywhere_is_an_error(tmp_path):
    data = fasttext_bytes(["</s>", "ab", "abc"], numbers(3 + 4, 2), 4)
    for length in range(4, len(data)):
        (tmp_path / "m.bin").write_bytes(data[:length])
        with pytest.raises(VectorsError):
            read_vectors(tmp_path / "m.bin")


@pytest.mark.parametrize("apart", [10, 10**9])
def test_gensim_files(tmp_path, fasttext, apart):
    plain = gensim_models.Word2Vec(SENTENCES, vector_size=8, min_count=1, workers=1).wv
    plain.save(str(tmp_path / "w.kv"), sep_limit=apart)
    same_as_gensim(read_vectors(tmp_path / "w.kv"), plain, unseen=[])
    fasttext.wv.save(str(tmp_path / "f.kv"), sep_limit=apart)
    same_as_gensim(read_vectors(tmp_path / "f.kv"), fasttext.wv)
    assert read_vectors(tmp_path / "f.kv", keep={"HELLO"}).words == ["hello"]


def test_the_hash_of_gensim_files_is_that_of_the_arrays_beside_them_too(tmp_path):
    keyed = gensim_models.KeyedVectors(3)
    keyed.add_vectors(["a", "b"], np.ones((2, 3), np.float32))
    keyed.save(str(tmp_path / "w.kv"), sep_limit=0)
    first = read_vectors(tmp_path / "w.kv").sha256
    assert read_vectors(tmp_path / "w.kv").sha256 == first
    np.save(tmp_path / "w.kv.vectors.npy", np.zeros((2, 3), np.float32))
    assert read_vectors(tmp_path / "w.kv").sha256 != first


@pytest.mark.parametrize("lengths", [(3, 2), (3, 0), (0, 0), (0, 3)])
def test_gensim_files_of_fasttext_without_n_grams_or_from_length_0(tmp_path, lengths):
    sizes = {"vector_size": 8, "min_n": lengths[0], "max_n": lengths[1], "bucket": 50}
    model = gensim_models.FastText(SENTENCES, **sizes, min_count=1, epochs=1, workers=1, seed=1)
    model.wv.save(str(tmp_path / "f.kv"))
    read = read_vectors(tmp_path / "f.kv")
    same_as_gensim(read, model.wv, unseen=["salamou"] if lengths[1] == 3 else [])
    assert (read.subwords is not None) == (lengths == (0, 3))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_gensim_files_of_each_pickle_protocol(tmp_path, fasttext, protocol):
    fasttext.wv.save(str(tmp_path / "f.kv"), pickle_protocol=protocol)
    same_as_gensim(read_vectors(tmp_path / "f.kv"), fasttext.wv)


def test_a_whole_gensim_model_is_refused_with_the_way_out(tmp_path, fasttext):
    fasttext.save(str(tmp_path / "f.model"))
    with pytest.raises(VectorsError, match=r"FastText.*save_word2vec_format"):
        read_vectors(tmp_path / "f.model")


class Evil:
    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [2, 4, 5])
@pytest.mark.parametrize(
    "evil",
    [
        Evil(os.system, "touch pwned"),
        Evil(eval, "open('pwned', 'w')"),
        Evil(getattr, {}, "keys"),
        Evil(np.load, "x.npy"),
    ],
)
def test_a_hostile_pickle_runs_nothing(tmp_path, monkeypatch, evil, protocol):
    monkeypatch.chdir(tmp_path)
    payload = {"index_to_key": ["a"], "vectors": evil}
    (tmp_path / "v.kv").write_bytes(pickle.dumps(payload, protocol=protocol))
    with pytest.raises(VectorsError, match="safety"):
        read_vectors(tmp_path / "v.kv")
    assert not (tmp_path / "pwned").exists()


def test_a_companion_array_of_objects_is_not_unpickled(tmp_path, fasttext):
    fasttext.wv.save(str(tmp_path / "f.kv"), sep_limit=10)
    np.save(tmp_path / "f.kv.vectors_ngrams.npy", np.array([[Evil(print)]]), allow_pickle=True)
    with pytest.raises(VectorsError, match="vectors_ngrams"):
        read_vectors(tmp_path / "f.kv")
    (tmp_path / "f.kv.vectors_ngrams.npy").unlink()
    with pytest.raises(VectorsError, match="vectors_ngrams"):
        read_vectors(tmp_path / "f.kv")


def test_other_pickles_are_refused(tmp_path):
    for content in ({"a": [1.0]}, [1, 2], "text"):
        (tmp_path / "v.kv").write_bytes(pickle.dumps(content))
        with pytest.raises(VectorsError, match="not of gensim"):
            read_vectors(tmp_path / "v.kv")


def test_a_memo_index_of_four_billion_costs_nothing(tmp_path):
    (tmp_path / "v.kv").write_bytes(b"\x80\x04Nr\xff\xff\xff\xff.")
    with pytest.raises(VectorsError):
        read_vectors(tmp_path / "v.kv")


def test_word2vec_binary_with_bytes_left_over_is_an_error(tmp_path):
    """Of rows that the header makes narrower than they are, less than a row is left."""
    data = word2vec_bytes(["a", "b"], np.ones((2, 6)), b"")
    (tmp_path / "v.bin").write_bytes(data.replace(b"2 6", b"2 5", 1))
    with pytest.raises(VectorsError, match="and more follow"):
        read_vectors(tmp_path / "v.bin")
