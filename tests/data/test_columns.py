"""Which columns have texts and labels, where no name or an unusual one says so."""

import pytest

from superconext.core.errors import DataError
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
