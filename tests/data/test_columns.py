"""Which columns have texts and labels, where no name or an unusual one says so."""

import pytest

from superconext.core.errors import DataError
from superconext.data.columns import Known, find_columns, number_of, own_name, voter_columns
from superconext.data.reading import read_labelled, read_texts


def sentences(count=60):
    words = ["had", "lfilm", "zwin", "bzaf", "khayb", "walakin", "lmatch", "tram"]
    return [
        " ".join(words[(k * step) % 8] for step in range(1, 7)) + f" n{k}" for k in range(count)
    ]


@pytest.mark.parametrize("name", ["Class label", "نوع الرأي"])
@pytest.mark.parametrize("labels", [("pos", "neg"), ("1", "2")])
def test_a_header_of_several_words_is_one_above_labels_that_repeat(tmp_path, name, labels):
    path = tmp_path / "x.csv"
    lines = [f"{text},{labels[k % 2]}" for k, text in enumerate(sentences())]
    path.write_text("\n".join([f"Darija tweet,{name}", *lines]) + "\n", encoding="utf-8")
    read = read_labelled(path)
    assert len(read) == 60 and set(read.labels) == {*labels}
    assert any("first row read as a header" in note for note in read.notes)


def test_a_first_sentence_with_a_label_of_its_own_is_a_row_and_told(tmp_path):
    path = tmp_path / "x.csv"
    lines = [f"{text},{('pos', 'neg')[k % 2]}" for k, text in enumerate(sentences())]
    first = "chefna had lmatch lbare7 m3a drari f dar w 3jebna bzaf,postive"
    path.write_text("\n".join([first, *lines]) + "\n", encoding="utf-8")
    read = read_labelled(path)
    assert len(read) == 61
    assert any("'postive', is that of no other row: give --header" in note for note in read.notes)


@pytest.mark.parametrize("head", ["id,date,tweet,place", "id,date,comment,video", "no,text,city"])
def test_one_usual_name_among_others_is_that_of_the_texts(tmp_path, head):
    path = tmp_path / "x.csv"
    blanks = ["2024-01-02"] * (head.count(",") - 2)
    lines = [",".join([str(k), *blanks, text, "Fes"]) for k, text in enumerate(sentences())]
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    assert read_texts(path).texts == sentences()


@pytest.mark.parametrize("exclusive", [True, False])
def test_columns_of_0_and_1_are_classes_and_no_annotators(tmp_path, exclusive):
    path = tmp_path / "x.csv"
    marks = ["1,0,0", "0,1,0", "0,0,1"] if exclusive else ["1,1,0", "0,1,0", "0,0,0"]
    lines = [f"{text},{marks[k % 3]}" for k, text in enumerate(sentences())]
    path.write_text("\n".join(["text,hate,insult,vulgar", *lines]) + "\n", encoding="utf-8")
    if exclusive:
        with pytest.raises(DataError, match="one 1 in each row: they are classes, not annotators"):
            read_labelled(path, label_column="hate,insult,vulgar")
        return
    notes = read_labelled(path, label_column="hate,insult,vulgar").notes
    assert any("have 0 and 1 alone: if they are classes" in note for note in notes)
    named = ["text,annotator_1,annotator_2,annotator_3", *lines]
    path.write_text("\n".join(named) + "\n", encoding="utf-8")
    assert not any("0 and 1 alone" in note for note in read_labelled(path).notes)


CLASSES = Known(frozenset({"pos", "neg"}))
FILMS = [f"had lfilm {word} bzaf" for word in ("zwin", "khayb", "mzyan", "twil")] * 10


@pytest.mark.parametrize("times", [1, 2])
def test_every_label_below_a_header_of_unusual_names_repeats(times):
    labels = ["pos", "neg"] * 19 + ["mixed", "mixed" if times == 2 else "pos"]
    rows = [["ktaba", "ra2y"], *map(list, zip(FILMS, labels, strict=True))]
    assert find_columns(rows, None, None, "x.csv").header == (times == 2)


def test_half_of_the_labels_alone_is_no_sign_of_a_header():
    labels = ["pos"] * 20 + [f"own{chr(97 + k)}" for k in range(20)]
    rows = [["ktaba", "ra2y"], *map(list, zip(FILMS, labels, strict=True))]
    found = find_columns(rows, "1", "2", "x.csv")
    assert not found.header and not any("of no other row" in note for note in found.notes)


def test_classes_of_a_run_tell_the_labels_where_most_cells_are_some():
    rows = [["pos", "a"], ["neg", "a"], ["zwin bzaf", "b"], ["khayb had", "b"]]
    assert find_columns(rows, None, None, "x.csv", known=CLASSES).label == 1
    assert find_columns([*rows, ["pos", "b"]], None, None, "x.csv", known=CLASSES).label == 0


def test_labels_that_stand_twice_each_are_told_from_words():
    rows = [["zwin", "pos"], ["khayb", "neg"], ["bahi", "pos"], ["mzyan", "neg"]]
    found = find_columns(rows, None, None, "x.csv")
    assert (found.text, found.label, found.header) == (0, 1, False)


def test_cells_with_classes_of_a_run_are_no_parts_of_one_sentence():
    rows = [["had lfilm zwin", "pos"], ["khayb bzaf", "neg"], ["walo", "pos"]]
    joined = [
        find_columns(rows, None, None, "x.csv", labelled=False, known=known, inside="comma").joined
        for known in (Known(), CLASSES)
    ]
    assert joined == [True, False]


@pytest.mark.parametrize(("below", "header"), [(["5", "7"], False), (["zwin", "khayb"], True)])
def test_digits_are_a_name_above_words_alone(below, header):
    rows = [["1", "2"], *([cell, "x"] for cell in below)]
    assert find_columns(rows, "1", None, "x.csv", labelled=False).header == header


def test_which_names_are_numbers():
    names = ["2", "12", "\u0662", "\xb2", "-1", "1.0", "0123456789", ""]
    assert [number_of(name) for name in names] == [2, 12, *[None] * 6]


def test_a_name_in_another_unicode_form_is_known_where_it_is_the_only_one():
    whole, apart, mixed = "\u1ebf", "e\u0302\u0301", "\xea\u0301"
    assert own_name(["x", apart], whole) == apart and own_name([apart, whole], whole) == whole
    assert own_name([apart, mixed], whole) == whole, "either could be meant"


def test_one_column_of_an_annotator_alone_is_none_of_several():
    names = ["text", "annotator_1", "annotator_2"]
    assert voter_columns(names, None, "x.csv", True) == (1, 2)
    assert voter_columns(names[:2], None, "x.csv", True) == ()
