"""GloVe, word2vec and fastText text, whole and damaged."""

import warnings

import numpy as np
import pytest

from superconext.core.errors import VectorsError
from superconext.vectors.readers import read_vectors


def row(word, *numbers):
    return " ".join([word, *(f"{number:g}" for number in numbers)]) + "\n"


def body(count=50, dimension=3):
    return "".join(row(f"w{i}", *((i + j) / 8 for j in range(dimension))) for i in range(count))


@pytest.fixture
def read(tmp_path):
    def reader(text, **options):
        path = tmp_path / "vectors.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_vectors(path, **options)

    return reader


def test_glove_without_a_header(read):
    vectors = read(row("the", 0.5, -1, 2e-3) + row("قط", 1, 2, 3))
    assert vectors.words == ["the", "قط"]
    np.testing.assert_array_equal(
        vectors.matrix, np.array([[0.5, -1, 2e-3], [1, 2, 3]], np.float32)
    )
    assert vectors.name == "vectors.txt"
    assert len(vectors.sha256) == 64
    assert vectors.notes == []


@pytest.mark.parametrize("end", ["\n", " \n", "\r\n", " \r\n"])
@pytest.mark.parametrize("gap", [" ", "\t"])
def test_word2vec_and_fasttext_with_a_header(read, end, gap):
    text = ("2 3\n" + row("the", 1, 2, 3) + row("</s>", 4, 5, 6)).replace(" ", gap)
    vectors = read(text.replace("\n", end))
    assert vectors.words == ["the", "</s>"]
    assert vectors.matrix.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert vectors.notes == []


def test_words_that_are_numbers_or_hold_spaces_are_read_from_the_right(read):
    odd = ["7", "2 000", ". . .", "at name@domain.com", "\u00a0", "a\u2028b", "\u0085", "a b c d"]
    vectors = read(body(30) + "".join(row(word, 1, 2, 3) for word in odd))
    assert vectors.words[30:] == odd
    assert (vectors.matrix[30:] == [1, 2, 3]).all()


def test_a_header_row_among_words_of_two_numbers(read):
    vectors = read("2 2\n" + row("a", 1, 2) + row("b", 3, 4))
    assert vectors.words == ["a", "b"]


def test_a_byte_order_mark_is_not_part_of_the_first_word(read):
    assert read(b"\xef\xbb\xbf" + body(3).encode()).words[0] == "w0"


def test_a_last_line_without_a_line_feed_is_a_line(read):
    assert len(read(body(5).rstrip("\n"))) == 5


def test_malformed_rows_are_counted_and_the_first_is_named(read):
    bad = (
        row("short", 1, 2) + row("x", 1, float("nan"), 2) + "w 1 2 three\n" + row("y", 1, 1e300, 2)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vectors = read(body(20) + bad + row("last", 7, 8, 9))
    assert vectors.words[-1] == "last"
    assert len(vectors) == 21
    assert "4 malformed rows" in vectors.notes[0]
    assert "line 21" in vectors.notes[0]


def test_a_line_longer_than_any_row_is_malformed_and_not_held(read):
    vectors = read(body(20) + "long" + " 1" * 1_000_000 + "\n" + row("last", 7, 8, 9))
    assert vectors.words[-1] == "last"
    assert "line 21" in vectors.notes[0]


def test_two_rows_run_together_are_malformed(read):
    joined = row("a", *range(10)).strip() + row("b", *range(10))
    vectors = read(body(20, dimension=10) + joined)
    assert len(vectors) == 20
    assert "1 malformed" in vectors.notes[0]


def test_a_row_with_a_number_too_many_is_malformed_and_a_word_with_spaces_is_none(read):
    odd = row("w 0.25", 1.5, 2.5, 3.5) + row("at name@domain.com", 1, 2, 3) + row("1 3/4", 1, 2, 3)
    vectors = read(body(20) + odd + row(". . .", 4, 5, 6))
    assert vectors.words[20:] == ["at name@domain.com", "1 3/4", ". . ."]
    assert "1 malformed row " in vectors.notes[0] and "line 21" in vectors.notes[0]


def test_more_than_one_in_a_hundred_malformed_is_an_error(read):
    with pytest.raises(VectorsError, match=r"11 of 511 rows .* line 501"):
        read(body(500) + row("short", 1) * 11)
    assert len(read(body(500) + row("short", 1) * 10)) == 500
    with pytest.raises(VectorsError, match="malformed"):
        read(row("a", 1, 2, 3) + row("b", 1, 2, float("inf")) * 2)


def test_a_half_copied_file_is_said_plainly(read):
    text = body(50)
    vectors = read(text[: text.rindex("w49") + 5])
    assert len(vectors) == 49
    assert any("cut short" in note for note in vectors.notes)
    assert any("1 malformed row " in note and "line 50" in note for note in vectors.notes)


@pytest.mark.parametrize("promised", [49, 51, 60])
def test_a_header_that_promises_more_rows_or_fewer_is_noted(read, promised):
    vectors = read(f"{promised} 3\n" + body(50))
    (note,) = [note for note in vectors.notes if f"promises {promised} rows and 50" in note]
    assert note.endswith("correct the line" if promised < 50 else "the file may be cut off")
    assert read("50 3\n" + body(50)).notes == read("60 3\n" + body(50), limit=50).notes == []


def test_a_header_of_another_dimension_is_an_error(read):
    with pytest.raises(VectorsError, match="promises rows of 300"):
        read("50 300\n" + body(50))


def test_the_first_of_repeated_words_wins(read):
    vectors = read(row("a", 1, 2) + row("b", 3, 4) + row("a", 5, 6) + row("a", 7, 8))
    assert vectors.words == ["a", "b"]
    assert vectors.matrix[0].tolist() == [1, 2]
    assert "2 repeated words" in vectors.notes[0]
    assert "'a' at line 3" in vectors.notes[0]


def test_words_that_are_not_utf8_are_marked_and_counted(read):
    vectors = read(body(20).encode() + b"caf\xe9 1 2 3\n")
    assert vectors.words[-1] == "caf\ufffd"
    assert "1 word not in UTF-8" in vectors.notes[0]


def test_keep_matches_exactly_or_by_case(read):
    text = row("The", 1, 2) + row("PARIS", 3, 4) + row("cat", 5, 6) + row("paris", 7, 8)
    for keep in ({"the", "Paris"}, ["the", "Paris"], {"the": 0, "Paris": 1}):
        vectors = read(text, keep=keep)
        assert vectors.words == ["The", "PARIS", "paris"]
    whole = read(text)
    for one, two in zip(whole.lookup(["Paris"]), vectors.lookup(["Paris"]), strict=True):
        np.testing.assert_array_equal(one, two)


def test_keep_may_be_any_container(read):
    class Long:
        def __contains__(self, word):
            return len(word) == 3

    assert read(body(20), keep=Long()).words == [f"w{i}" for i in range(10, 20)]


def test_limit_alone_and_beside_keep(read):
    assert read(body(20), limit=3).words == ["w0", "w1", "w2"]
    assert read(body(20), limit=2, keep={"w9", "w0"}).words == ["w0", "w1", "w9"]
    assert read(body(20), limit=0).words == []
    assert read(body(20) + row("short", 1) * 9, limit=3).notes == [], "rows behind are not read"
    with pytest.raises(VectorsError, match="limit is -1"):
        read(body(20), limit=-1)


def test_none_of_the_wanted_words_is_noted(read):
    vectors = read(body(20), keep={"nowhere"})
    assert vectors.matrix.shape == (0, 3)
    assert "none of the wanted" in vectors.notes[0]


def test_more_rows_than_one_chunk(read):
    vectors = read(body(9000))
    assert len(vectors) == 9000
    np.testing.assert_allclose(vectors.matrix[:, 1], (np.arange(9000) + 1) / 8, rtol=1e-5)


@pytest.mark.parametrize(
    "text",
    ["", "\n\n\n", "hello world\nthis is prose\n", "the 100\nof 90\nand 80\n", "5 3\n", "a,1,2\n"],
)
def test_what_is_no_table_is_refused(read, text):
    with pytest.raises(VectorsError, match="expected"):
        read(text)
