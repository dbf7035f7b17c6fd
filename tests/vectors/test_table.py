"""Lookups, neighbours, and the folder on disk."""

import json
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import VectorsError
from superconext.data.token_store import OovWords, TokenStore
from superconext.vectors.readers import read_vectors
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors, mean_vectors
from tests.cli.conftest import call_main, write_table

WORDS = ["the", "FOO", "foo", "Bar", "زوين", "new york"]


def make(words=WORDS, dimension=3, subwords=False, dtype=np.float32):
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(len(words), dimension)).astype(dtype)
    table = SubwordTable(rng.normal(size=(50, dimension)).astype(dtype), 3, 5) if subwords else None
    return WordVectors(words, matrix, table, name="toy", notes=["a note"])


def test_lookup_prefers_exact_then_folded_then_subwords_then_zeros():
    vectors = make(subwords=True)
    words = ["foo", "Foo", "bar", "THE", "زوينة", ""]
    rows, found = vectors.lookup(words)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows[0], vectors.matrix[2])
    np.testing.assert_array_equal(rows[1], vectors.matrix[1])  # the first that folds alike
    np.testing.assert_array_equal(rows[2], vectors.matrix[3])
    np.testing.assert_array_equal(rows[3], vectors.matrix[0])
    np.testing.assert_allclose(rows[4], vectors.subwords.compose_many(["زوينة"])[0][0])
    assert found.tolist() == [True] * 5 + [False]
    assert not rows[5].any()


def test_without_subwords_an_unknown_word_is_zeros_and_false():
    rows, found = make().lookup(["nowhere", "the"])
    assert found.tolist() == [False, True]
    assert not rows[0].any()


def test_lookup_of_nothing():
    rows, found = make().lookup([])
    assert rows.shape == (0, 3)
    assert found.shape == (0,)


def test_known_is_exact():
    assert make(subwords=True).known(["foo", "Foo", "bar"]).tolist() == [True, False, False]
    assert "foo" in make()
    assert len(make()) == 6


def test_the_first_of_two_equal_words_counts():
    vectors = WordVectors(["a", "a"], np.array([[1.0], [2.0]], np.float32))
    assert vectors.lookup(["a"])[0].tolist() == [[1.0]]


@given(st.lists(st.sampled_from(["a", "A", "b", "B", "ß", "SS", "ss", "İ"]), unique=True))
@settings(max_examples=100, deadline=None)
def test_restrict_changes_no_lookup_of_its_words(wanted):
    whole = make(["A", "a", "SS", "b", "ß", "i\u0307"])
    part = whole.restrict(wanted)
    for one, two in zip(whole.lookup(wanted), part.lookup(wanted), strict=True):
        np.testing.assert_array_equal(one, two)
    assert len(part) <= len(wanted)
    assert part.notes == whole.notes


def test_nearest_is_the_cosine_of_a_plain_loop():
    vectors = make()
    matrix = vectors.matrix.astype(np.float64)
    query = matrix[2]
    expected = sorted(
        (
            -float(query @ row) / (np.linalg.norm(query) * np.linalg.norm(row)),
            word,
        )
        for word, row in zip(WORDS, matrix, strict=True)
        if word != "foo"
    )
    found = vectors.nearest("foo", 4)
    assert [word for word, _ in found] == [word for _, word in expected[:4]]
    for (_, cosine), (minus, _) in zip(found, expected, strict=False):
        assert cosine == pytest.approx(-minus, abs=1e-6)


def test_nearest_serves_unseen_words_and_refuses_unknown_ones():
    assert len(make(subwords=True).nearest("foobar", 100)) == 6
    with pytest.raises(VectorsError, match="nowhere"):
        make().nearest("nowhere")
    with pytest.raises(VectorsError, match=r"expected a word with character n-grams"):
        make(subwords=True).nearest("")
    zero = WordVectors(["z", "y"], np.zeros((2, 2), np.float32))
    with pytest.raises(VectorsError):
        zero.nearest("z")


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("subwords", [True, False])
def test_save_and_load(tmp_path, subwords, dtype):
    words = ["a\nb", "tab\t", '"', "\u2028", "زوين", "\ud800"]
    before = make(words, subwords=subwords, dtype=dtype)
    before.save(tmp_path / "deep" / "vectors")
    after = WordVectors.load(tmp_path / "deep" / "vectors", verify=True)
    assert after.words == words
    assert after.matrix.dtype == dtype
    assert isinstance(after.matrix, np.memmap)
    assert (after.name, after.notes) == ("toy", ["a note"])
    assert after.sha256 == before.content_sha256()
    query = [*words, "unseen"]
    for one, two in zip(before.lookup(query), after.lookup(query), strict=True):
        np.testing.assert_array_equal(one, two)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["vectors"]


def test_an_empty_table_is_kept_too(tmp_path):
    WordVectors([], np.zeros((0, 5), np.float32)).save(tmp_path / "v")
    assert WordVectors.load(tmp_path / "v", verify=True).dimension == 5


def test_saving_over_its_own_folder(tmp_path):
    make().save(tmp_path / "v")
    loaded = WordVectors.load(tmp_path / "v")
    loaded.restrict(["foo"]).save(tmp_path / "v")
    assert WordVectors.load(tmp_path / "v").words == ["foo"]
    loaded.save(tmp_path / "v")
    assert WordVectors.load(tmp_path / "v").words == WORDS


def test_save_leaves_other_peoples_things_alone(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years")
    with pytest.raises(VectorsError, match="thesis"):
        make().save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "years"
    (tmp_path / "empty").mkdir()
    make().save(tmp_path / "empty")
    assert len(WordVectors.load(tmp_path / "empty")) == 6


def sparse(rows=(3, 70)):
    buckets = np.zeros((2000, 3), np.float16)
    buckets[list(rows)] = 0.5
    table = make()
    table.subwords = SubwordTable(buckets, 2, 4)
    return table


@pytest.mark.parametrize("rows", [(3, 70), ()], ids=["few", "none"])
def test_rows_of_zeros_are_not_written(tmp_path, rows):
    table = sparse(rows)
    table.save(tmp_path / "v")
    loaded = WordVectors.load(tmp_path / "v", verify=True)
    assert np.array_equal(loaded.subwords.buckets, table.subwords.buckets)
    assert loaded.subwords.buckets.dtype == np.float16
    assert (tmp_path / "v" / "subwords.npy").stat().st_size < 300, "not 12 kB"
    for words in (["unseen"], ["foo", "other"]):
        assert np.array_equal(loaded.lookup(words)[0], table.lookup(words)[0])


@pytest.mark.parametrize("rows", ["[70, 3]", "[3, 2000]", "[-1, 3]", "[3.0, 70]", "[3]", "{}", "["])
def test_numbers_of_rows_that_cannot_be_are_a_clear_error(tmp_path, rows):
    sparse().save(tmp_path / "v")
    (tmp_path / "v" / "subword_rows.json").write_text(rows)
    with pytest.raises(VectorsError, match="not a readable folder"):
        WordVectors.load(tmp_path / "v")
    info = json.loads((tmp_path / "v" / "info.json").read_text())
    info["subwords"]["buckets"] = 10**15
    (tmp_path / "v" / "info.json").write_text(json.dumps(info))
    with pytest.raises(VectorsError, match="more than"):
        WordVectors.load(tmp_path / "v")


@pytest.mark.parametrize("name", ["info.json", "words.json", "matrix.npy", "subwords.npy"])
@pytest.mark.parametrize("damage", ["gone", "cut", "garbage"])
def test_a_damaged_folder_is_a_clear_error(tmp_path, name, damage):
    make(subwords=True).save(tmp_path / "v")
    path = tmp_path / "v" / name
    data = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(data[: len(data) // 2] if damage == "cut" else b"\x80\x04garbage")
    with pytest.raises(VectorsError, match="not a readable folder"):
        WordVectors.load(tmp_path / "v")


def test_a_newer_version_and_a_flipped_bit(tmp_path):
    make().save(tmp_path / "v")
    matrix = tmp_path / "v" / "matrix.npy"
    data = bytearray(matrix.read_bytes())
    data[-1] ^= 1
    matrix.write_bytes(bytes(data))
    WordVectors.load(tmp_path / "v")
    with pytest.raises(VectorsError, match="differs"):
        WordVectors.load(tmp_path / "v", verify=True)
    info = json.loads((tmp_path / "v" / "info.json").read_text())
    (tmp_path / "v" / "info.json").write_text(json.dumps({**info, "version": 99}))
    with pytest.raises(VectorsError, match="version 99"):
        WordVectors.load(tmp_path / "v")


def test_an_array_of_objects_is_never_unpickled(tmp_path):
    make().save(tmp_path / "v")
    np.save(tmp_path / "v" / "matrix.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(VectorsError):
        WordVectors.load(tmp_path / "v")


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(VectorsError, match="2 words"):
        WordVectors(["a", "b"], np.zeros((3, 2), np.float32))
    with pytest.raises(VectorsError):
        WordVectors(["a"], np.zeros((1, 2), int))
    with pytest.raises(VectorsError, match="subwords"):
        WordVectors(
            ["a"], np.zeros((1, 2), np.float32), SubwordTable(np.ones((4, 3), np.float32), 3, 6)
        )
    assert WordVectors(["a"], np.zeros((1, 2), np.float64)).matrix.dtype == np.float32


@pytest.mark.slow
def test_speed():
    rng = np.random.default_rng(0)
    vectors = WordVectors(
        [f"word{i}" for i in range(100_000)],
        rng.normal(size=(100_000, 100)).astype(np.float32),
        SubwordTable(rng.normal(size=(100_000, 100)).astype(np.float32), 3, 6),
    )
    start = time.process_time()
    vectors.lookup([f"word{i}" for i in range(0, 100_000, 5)])
    assert time.process_time() - start < 0.6  # a third of it on an idle laptop
    start = time.process_time()
    vectors.lookup([f"unseen{i}" for i in range(10_000)])
    assert time.process_time() - start < 3


def test_a_word_is_found_whatever_its_unicode_form(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("e\u0301te\u0301 1 2\n\u0622\u062f 3 4\n", encoding="utf-8")
    words = ["\u00e9t\u00e9", "\u00c9T\u00c9", "\u0627\u0653\u062f", "ete"]
    for vectors in (read_vectors(path), read_vectors(path, keep=set(words))):
        found, known = vectors.lookup(words)
        assert known.tolist() == [True, True, True, False]
        assert found[:3].tolist() == [[1, 2], [1, 2], [3, 4]]


def test_numbers_that_half_precision_does_not_hold_are_refused(tmp_path):
    table = [
        (label, f"{word} {k}") for k in range(10) for label, word in (("a", "zwin"), ("b", "khayb"))
    ]
    file = write_table(tmp_path / "rows.tsv", table)
    vectors = tmp_path / "v.txt"
    vectors.write_text("zwin 0.1 0.2\nkhayb 0.3 -0.2\nbzaf 1e6 0.1\n", encoding="utf-8")
    words = ("--vectors", vectors, "--preset", "fast", "--epochs", 1, "--hidden-size", 4)
    said = call_main("train", file, "--out", tmp_path / "run", "--cv", 0, *words)
    assert said.code == 1 and "in a word vector; expected none beyond 65504" in said.err


def test_a_word_that_no_source_knows_counts_as_the_unknown_word():
    table = np.array([[0, 0], [5, 7], [1, 2]], np.float32)  # padding, the unknown word, a word
    new = OovWords(np.array([[3, 4], [0, 0]], np.float32), np.array([True, False]), None)
    store = TokenStore(np.array([2, 3, 4, 4]), np.array([0, 2, 3, 4]), new)
    expected = [[2, 3], [5, 7], [5, 7]]
    np.testing.assert_allclose(mean_vectors(store, table), expected)
