"""Reading a file through the public door: columns, notes, checks, one-line errors."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import time

import numpy as np
import pytest

from superconext.core.errors import DataError, RowsError, SuperConTextError
from superconext.data import lines
from superconext.data.columns import Known
from superconext.data.dataset import Dataset, check_counts, check_training
from superconext.data.reading import read_labelled, read_texts


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        return path

    return _write


def corpus_of(labels):
    texts = [f"t{i}" for i in range(len(labels))]
    return Dataset(texts, list(labels), list(range(1, len(labels) + 1)), "x.tsv", "", [])


def refused(call, *parts):
    """The call raises one clear line that holds each of `parts`."""
    with pytest.raises(DataError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message and message.isprintable()
    for part in parts:
        assert part in message
    return message


# -- which column is which ------------------------------------------------------------------


def test_headerless_label_then_text(write):
    corpus = read_labelled(write("a.tsv", "pos\tthe food\nneg\tno food\npos\tgood one\n"))
    assert corpus.labels == ["pos", "neg", "pos"]
    assert corpus.texts == ["the food", "no food", "good one"]
    assert corpus.lines == [1, 2, 3]
    assert corpus.notes == ["no header found: column 1 read as label, column 2 as text"]


def test_headerless_text_then_label(write):
    rows = "".join(f"sentence number {i}\t{i % 3}\n" for i in range(30))
    corpus = read_labelled(write("a.tsv", rows))
    assert corpus.class_counts() == {"0": 10, "1": 10, "2": 10}
    assert corpus.notes == ["no header found: column 2 read as label, column 1 as text"]


@pytest.mark.parametrize("row", ["positive\tone single sentence\n", "n\ta b\np\tc d\n"])
def test_a_tiny_headerless_file_is_told_by_its_spaces(write, row):
    assert " " not in read_labelled(write("a.tsv", row)).labels[0]


def test_two_columns_of_sentences_are_refused(write):
    rows = "".join(f"source sentence {i}\ttarget sentence {i}\n" for i in range(40))
    refused(lambda: read_labelled(write("a.tsv", rows)), "--label-column", "40 distinct")


@pytest.mark.parametrize("name,sep", [("a.csv", ","), ("a.tsv", "\t")])
def test_header_in_any_order_and_case(write, name, sep):
    path = write(name, f"id{sep}Label{sep}text\n1{sep}x{sep}one two\n2{sep}y{sep}three\n")
    corpus = read_labelled(path)
    assert (corpus.texts, corpus.labels, corpus.lines) == (["one two", "three"], ["x", "y"], [2, 3])
    assert read_texts(path).texts == corpus.texts


@pytest.mark.parametrize("text,label", [("tweet", "mood"), (2, 3), ("2", "3"), ("tweet", "3")])
def test_columns_by_name_and_by_number(write, text, label):
    path = write("a.tsv", "id\ttweet\tmood\n7\ta b\tm\n8\tc d\tn\n")
    corpus = read_labelled(path, text_column=text, label_column=label)
    expected = (["a b", "c d"], ["m", "n"])
    assert (corpus.texts, corpus.labels) == expected
    assert read_texts(path, text_column=text).texts == expected[0]


def test_numbers_on_a_file_without_a_header_keep_the_first_row(write):
    corpus = read_labelled(write("a.tsv", "1\tm\ta b\n2\tn\tc d\n"), 3, 2)
    assert (corpus.texts, corpus.labels) == (["a b", "c d"], ["m", "n"])
    one = read_labelled(write("b.tsv", "m\ta b\nn\tc d\n"), label_column=1)
    assert one.texts == ["a b", "c d"]


def test_missing_column_lists_those_found_and_a_near_match(write):
    path = write("a.csv", "sentenca,label\na,b\n")
    other = write("b.csv", "sentence,phrase,label\na,b,c\n")
    refused(lambda: read_labelled(path, "sentence"), "'sentenca', 'label'", "did you mean")
    refused(lambda: read_labelled(other), "'sentence', 'phrase' could be the text", "--text-col")
    path = write("a.csv", "sentence,label\na,b\n")
    assert read_labelled(path).notes[0].startswith("first row read as a header: column 'sentence'")
    refused(lambda: read_labelled(path, "sentense"), "did you mean 'sentence'")
    refused(lambda: read_labelled(path, 3, 2), "no column number 3", "found 2")
    refused(lambda: read_labelled(path, 0, 2), "counted from 1")
    refused(lambda: read_labelled(path, 2, 2), "both text and label")


def test_more_columns_without_a_header_need_to_be_named(write):
    refused(lambda: read_labelled(write("a.tsv", "1\tpos\tgood\n")), "'1', 'pos', 'good'")
    refused(lambda: read_labelled(write("a.tsv", "1\tpos\tgood\n"), 3), "--label-column")
    refused(lambda: read_labelled(write("b.tsv", "text;label\na b;x\n")), "';'", "commas")
    assert read_labelled(write("c.csv", "text\tlabel\na b\tx\n")).texts == ["a b"]


# -- labels and texts -----------------------------------------------------------------------


def test_stray_spaces_around_labels_are_stripped_and_counted(write):
    corpus = read_labelled(write("a.tsv", "pos \ta b\npos\tc d\n\u00a0neg\te f\nneg\tg h\n"))
    assert corpus.class_counts() == {"neg": 2, "pos": 2}
    assert corpus.notes[-1] == "stray spaces stripped from 2 labels"


def test_empty_text_and_empty_label_name_the_line_and_the_count(write):
    rows = "text\tlabel\na b\tx\n \tx\n\t\nc\ty\n"
    both = "an empty text (2 rows, lines 3, 4) and an empty label (1 row, line 4)"
    refused(lambda: read_labelled(write("a.tsv", rows)), "line 3", both, "--drop-incomplete")
    texts = read_texts(write("a.tsv", rows))
    assert (texts.texts, texts.lines) == (["a b", "c"], [2, 5])
    assert texts.notes == ["found an empty text (2 rows, lines 3, 4), left out"]
    rows = "text\tlabel\na b\t \nc\ty\n"
    refused(lambda: read_labelled(write("b.tsv", rows)), "line 2", "empty label (1 row, line 2)")


def test_blank_lines_are_counted_and_lines_keep_their_numbers(write):
    for name, sep in (("a.tsv", "\t"), ("a.csv", ",")):
        corpus = read_labelled(write(name, f"\nx{sep}a b\n\n  \ny{sep}c d\nx{sep}e f\n\n\n"))
        assert corpus.lines == [2, 5, 6]
        assert "3 blank lines left out" in corpus.notes


def test_too_few_and_too_many_columns_name_the_line(write):
    rows = "pos\ta b\nneg\tc d\npos\nneg\te\n"
    message = refused(lambda: read_labelled(write("a.tsv", rows)), "line 3", "found 1 column ")
    assert "expected 2" in message
    refused(lambda: read_labelled(write("b.tsv", "p\ta b\np\tc\td\n")), "line 2", "found 3", "tab")
    refused(lambda: read_labelled(write("c.csv", "label,text\np,a, b\n")), "line 2", "quote")
    assert len(read_labelled(write("d.csv", "label,text\np,a,,\nq,b\n"))) == 2


def test_select_and_counts():
    corpus = corpus_of("bbac")
    picked = corpus.select(np.array([3, 0]))
    assert (picked.texts, picked.labels, picked.lines) == (["t3", "t0"], ["c", "b"], [4, 1])
    assert list(corpus.class_counts().items()) == [("a", 1), ("b", 2), ("c", 1)]
    assert len(corpus) == 4 and len(picked) == 2


def test_check_training():
    assert check_training(corpus_of("aabb")) == []
    refused(lambda: check_training(corpus_of("")), "no examples")
    refused(lambda: check_training(corpus_of("aaa")), "one class only", "'a'", "3 rows")
    (line,) = check_training(corpus_of("aab"))
    assert "1 class with a single row: 'b' (line 3);" in line
    (line,) = check_training(corpus_of("aabcdefghij"))
    assert "9 classes" in line and "and 4 more" in line


@pytest.mark.parametrize(
    ("label", "frequent", "meant"),
    [
        ("complant", "complaint", True),
        ("Complaints", "complaint", True),
        ("شكوىى", "شكوى", True),
        ("2023 complant", "2023 complaint", True),
        ("b", "a", False),
        ("2", "1", False),
        ("pas", "pos", False),
        ("no", "not", False),
        ("class 10", "class 11", False),
        ("complaint 2", "complaint", False),
        ("illegal", "legal", False),
        ("unrelated", "related", False),
        ("negative", "positive", False),
        ("Complaint", "complaint", False),  # told apart on purpose, or told already
    ],
)
def test_a_single_row_of_a_misspelt_class_is_told_of(label, frequent, meant):
    (line,) = check_training(corpus_of([frequent] * 5 + ["other"] * 2 + [label]))
    hint = f", did you mean {frequent!r}?" if meant else ""
    assert f"with a single row: {label!r} (line 8{hint});" in line
    (line,) = check_training(corpus_of([frequent] * 2 + [label]))
    assert "did you mean" not in line  # neither is frequent


# -- bytes ----------------------------------------------------------------------------------


def test_missing_directory_and_empty_files(write, tmp_path):
    refused(lambda: read_labelled(tmp_path / "none.tsv"), "none.tsv", "no such file")
    refused(lambda: read_labelled(tmp_path), "directory")
    refused(lambda: read_labelled("bad\0name"), "cannot be read")
    for content in (b"", b" \n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"):
        refused(lambda c=content: read_labelled(write("e.tsv", c)), "empty")
    refused(lambda: read_labelled(write("h.csv", "text,label\n")), "no rows")


def test_encodings(write):
    good = "pos\tعجبني بزاف\nneg\tça va pas\n"
    assert read_labelled(write("a.tsv", b"\xef\xbb\xbf" + good.encode())).labels == ["pos", "neg"]
    bad = b"pos\ta b\nneg\tc\xe9 d\n"
    refused(lambda: read_labelled(write("b.tsv", bad)), "line 2", "0xe9", "UTF-8")
    refused(lambda: read_labelled(write("b.tsv", b"\xef\xbb\xbf" + bad)), "line 2", "0xe9")
    for codec in ("utf-16", "utf-32"):
        corpus = read_labelled(write("c.tsv", good.encode(codec)))
        assert corpus.texts == ["عجبني بزاف", "ça va pas"] and f"read as {codec}" in corpus.notes
    cut = write("c.tsv", good.encode("utf-16")[:-1])
    refused(lambda: read_labelled(cut), "line 2", "utf-16", "--encoding")
    refused(lambda: read_labelled(write("d.tsv", good.encode("utf-16-le"))), "d.tsv, line 1")
    refused(lambda: read_labelled(write("e.tsv", "pos\ta\nneg\tb\0c\n")), "line 2", "NUL")
    refused(lambda: read_labelled(write("f.xlsx", b"PK\x03\x04 \x00")), "workbook")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv"])
def test_line_ends(write, end, name):
    sep = "\t" if name == "a.tsv" else ","
    rows = end.join(["label" + sep + "text", "p" + sep + "a b", "q" + sep + "c d", ""])
    corpus = read_labelled(write(name, rows))
    assert (corpus.texts, corpus.labels, corpus.lines) == (["a b", "c d"], ["p", "q"], [2, 3])


def test_cells_with_line_feeds_in_a_table_whose_lines_end_otherwise(write):
    """As spreadsheets for a Mac write it: carriage returns between rows, line feeds in cells."""
    rows = [("pos", "zwin\nbzaf"), ("neg", "khayb"), ("pos", '5" \n mzyan')]
    lines = [
        "label,text",
        *(f'{label},"{text.replace(chr(34), 2 * chr(34))}"' for label, text in rows),
    ]
    expected = read_labelled(write("lf.csv", "\n".join(lines)))
    corpus = read_labelled(write("cr.csv", "\r".join(lines) + "\r"))
    assert corpus.texts == expected.texts and corpus.labels == ["pos", "neg", "pos"]
    quoted = "\r".join(['"label","te\nxt"', *lines[1:]])
    assert (
        read_labelled(write("q.csv", quoted), label_column=1, text_column=2).labels
        == expected.labels
    )
    # Where line feeds end the lines, a carriage return is a character as before.
    odd = write("first.csv", "zwin\rbzaf,pos\nkhayb,neg\n")
    assert read_labelled(odd, 1, 2).texts == ["zwin\rbzaf", "khayb"]
    odd = write("odd.csv", "label,text\npos,zwin\rbzaf\nneg,khayb\n")
    assert len(read_labelled(odd)) == 2
    plain = write("odd.txt", "zwin\rbzaf\nkhayb\n")
    assert read_texts(plain).texts == ["zwin\rbzaf", "khayb"]


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_other_separators_do_not_split_lines(write, odd):
    text = f"one{odd}two"
    for name, content in [
        ("a.tsv", f"p\t{text}\nq\tc d\n"),
        ("a.csv", f"label,text\np,{text}\nq,c d\n"),
        ("q.csv", f'label,text\np,"{text}"\nq,c d\n'),
        ("a.ft", f"__label__p {text}\n__label__q c d\n"),
    ]:
        assert read_labelled(write(name, content), *_columns(name)).texts == [text, "c d"]
    assert read_texts(write("a.txt", f"{text}\nc d\n")).texts == [text, "c d"]


def _columns(name):
    return (2, 1) if name == "a.tsv" else (None, None)


def test_gzip(write):
    rows = b"p\ta b\nq\tc d\np\te f\n"
    packed = gzip.compress(rows)
    path = write("a.tsv.gz", packed)
    corpus = read_labelled(path)
    assert corpus.texts == ["a b", "c d", "e f"]
    assert corpus.sha256 == hashlib.sha256(packed).hexdigest()
    assert corpus.source == str(path)
    assert read_labelled(write("b.tsv", packed)).texts == corpus.texts  # suffix left off
    refused(lambda: read_labelled(write("c.tsv.gz", packed[:-9])), "broken gzip")
    for name, kind in (("d.tsv.gz", "gzip"), ("d.tsv.bz2", "bzip2")):
        told = f"no {kind}", "name it 'd.tsv' if it is not packed"
        refused(lambda name=name: read_labelled(write(name, rows)), *told)
    garbled = packed[:14] + bytes(255 - b for b in packed[14:20]) + packed[20:]
    refused(lambda: read_labelled(write("e.tsv.gz", garbled)), "broken gzip")


# -- texts for prediction -------------------------------------------------------------------


def test_plain_text_is_one_sentence_a_line(write):
    texts = read_texts(write("a.txt", 'عجبني\n\nma, "3jebni"\twalo\n  \n__label__ no\n'))
    assert texts.texts == ["عجبني", 'ma, "3jebni"\twalo', "__label__ no"]
    assert texts.lines == [1, 3, 5]
    assert "2 blank lines left out" in texts.notes
    assert any("1 of 3 lines hold a tab" in note for note in texts.notes)
    assert len(texts) == 3


def test_standard_input(monkeypatch):
    def feed(content):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))

    feed("pos\ta b\nneg\tc d\n")
    assert read_texts("-").texts == ["pos\ta b", "neg\tc d"]
    feed("pos\ta b\nneg\tc d\n")
    assert read_texts("-", text_column=2).texts == ["a b", "c d"]
    feed("pos\ta b\nneg\tc d\n")
    assert read_labelled("-").source == "standard input"
    feed("")
    refused(lambda: read_texts("-"), "standard input is empty")


def test_texts_come_from_the_same_files_as_train(write):
    for name, content in [
        ("a.tsv", "p\ta b\nq\tc d\np\te f\n"),
        ("a.csv", "text,label\na b,p\nc d,q\ne f,p\n"),
        ("b.csv", "text\na b\nc d\ne f\n"),
        ("c.tsv", "a b\nc d\ne f\n"),
        ("a.jsonl", '{"text": "a b"}\n{"text": "c d", "label": 1}\n{"text": "e f"}\n'),
        ("a.txt", "__label__p a b\n__label__q c d\n__label__q e f\n"),
        ("no_suffix", "a b\nc d\ne f\n"),
    ]:
        assert read_texts(write(name, content)).texts == ["a b", "c d", "e f"], name


# -- size -----------------------------------------------------------------------------------


def test_a_million_characters_on_a_line(write):
    long = "ab " * 400_000
    for name, content in [
        ("a.tsv", f"p\t{long}\nq\tc d\n"),
        ("a.csv", f"p,{long}\nq,c d\n"),
        ("q.csv", f'p,"{long}"\nq,c d\n'),
        ("a.jsonl", f'{{"label": "p", "text": "{long}"}}\n{{"label": "q", "text": "c d"}}\n'),
        ("a.ft", f"__label__p {long}x\n__label__q c d\n"),
    ]:
        start = time.process_time()
        corpus = read_labelled(write(name, content), *((2, 1) if name[-3:] in "tsvcsv" else ()))
        assert time.process_time() - start < 1
        assert len(corpus.texts[0]) >= len(long)


def test_reading_stays_linear_in_quotes(write):
    quoted = '"' + '""' * 500_000 + '"'
    cells = ",".join(['"a"'] * 200_000)
    start = time.process_time()
    assert read_labelled(write("a.csv", f"p,{quoted}\nq,c d\n"), 2, 1).texts[0] == '"' * 500_000
    refused(lambda: read_labelled(write("b.csv", f"label,text\n{cells}\n")), "200000 columns")
    assert time.process_time() - start < 2


def test_ten_megabytes_in_about_a_second(write):
    row = "عجبني هاد الفيلم بزاف والله"
    count = 10_000_000 // len((row + ",p\n").encode())
    path = write("a.csv", "text,label\n" + f'"{row}",p\n{row},q\n' * (count // 2))
    start = time.process_time()
    assert len(read_labelled(path)) == count // 2 * 2
    assert time.process_time() - start < 5  # about one on an idle core


def test_a_french_export_with_semicolons_needs_no_options(tmp_path):
    path = tmp_path / "avis.csv"
    lines = ["N°;Commentaire;Catégorie;Date", "1;film zwin, bzaf;positif;01/02/2024"]
    path.write_text("\n".join([*lines, "2;film khayb;négatif;01/02/2024"]), encoding="utf-8")
    rows = read_labelled(path)
    assert rows.texts == ["film zwin, bzaf", "film khayb"]
    assert rows.labels == ["positif", "négatif"]
    path.write_text("N°;Propos;Humeur\n1;film zwin;bon\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"'Humeur', expected .*: name them with --text-col"):
        read_labelled(path)


def test_a_header_of_unusual_names_above_an_empty_label_or_a_class_new_to_the_run(write):
    rows = [f"this is tweet number {n},{'good' if n % 2 else 'bad'}" for n in range(40)]
    empty = "message,klass\n" + "\n".join([*rows, "a tweet without a label,"]) + "\n"
    read = read_labelled(write("empty.csv", empty), drop_unlabelled=True)
    assert set(read.labels) == {"good", "bad"} and len(read) == 40
    new = "message,klass\n" + "\n".join([*rows, "one more tweet here,mixed"]) + "\n"
    known = Known(frozenset({"good", "bad"}))
    read = read_labelled(write("new.csv", new), known=known)
    assert set(read.labels) == {"good", "bad", "mixed"} and len(read) == 41
    plain = "\n".join(["a sentence of mine,mixed", *rows, "another one,odd"]) + "\n"
    read = read_labelled(write("plain.csv", plain), known=known)
    assert len(read) == 42 and read.labels[0] == "mixed"


def test_one_message_names_both_options_where_neither_column_is_known(write):
    rows = "id;commentaire;avis;date\n1;film zwin bzaf;positif;2024\n2;film khayb;negatif;2024\n"
    path = write("a.csv", rows)
    refused(lambda: read_labelled(path), "--text-column, and that of the labels with --label-col")
    with pytest.raises(DataError) as caught:
        read_labelled(path, label_column="avis")
    assert "--label-column" not in str(caught.value)


def test_columns_that_could_be_meant_as_well_are_told(write):
    def notes(head):
        rows = f"{head}\n" + "un bon film,0,pos\nun mauvais,1,neg\n"
        return [n for n in read_labelled(write("a.csv", rows)).notes if n.startswith("read: ")]

    told = "read: 'text' and 'label'; 'sentiment' is not (--text-column, --label-column)"
    assert notes("text,label,sentiment") == [told]
    assert notes("text,label,lang") == []


@pytest.mark.parametrize("mark", ["\u200b", "\ufeff", " \u200e\u200f "])
def test_a_text_of_invisible_marks_is_empty(write, mark):
    path = write("a.tsv", f"label\ttext\npos\tzwin\nneg\t{mark}\nneg\tkhayb\n")
    refused(lambda: read_labelled(path), "line 3: found an empty text")
    texts = read_texts(write("b.txt", f"zwin\n{mark}\nkhayb {mark}\n"))
    assert len(texts) == 2 and texts.lines == [1, 3]


def test_rows_that_are_left_out_are_counted_by_what_they_lack(write):
    rows = ["un a\tlabel", "\tp", "un b\t", "\t", "text\tlabel", "un c\tp"]
    found = read_labelled(
        write("a.tsv", "\n".join(["text\tlabel", *rows]) + "\n"), drop_unlabelled=True
    )
    assert (found.texts, found.labels) == (["un a", "un c"], ["label", "p"])
    assert "3 rows without a label left out" in found.notes
    assert "1 row without a text left out" in found.notes


def test_labels_are_folded_to_the_spelling_of_the_classes_that_are_known(write):
    path = write("a.tsv", "text\tlabel\nun a\tPOS\nun b\tneg\nun c\tOther\n")
    known = Known(frozenset({"Pos", "neg"}))
    assert read_labelled(path, known=known, fold_label_case=True).labels == ["Pos", "neg", "other"]


def test_labels_that_stand_for_a_missing_one(write):
    def notes(labels):
        rows = "".join(f"{label}\tfilm {n}\n" for n, label in enumerate(labels))
        return "".join(read_labelled(write("a.tsv", "label\ttext\n" + rows)).notes)

    assert "'-' (2 rows, lines 3, 5) is a class; if it stands" in notes(["pos", "-", "neg", "-"])
    for dots in (".", "..", "...", "\u2026"):
        assert f"'{dots}' (1 row, line 3) is a class; if it stands" in notes(["pos", dots, "neg"])
    assert "if it stands" not in notes(["pos", ".", ","])
    assert "'-'" not in notes(["+", "-", "+", "-"])
    assert "'99' (1 row, line 4) is a class; if it stands" in notes(["0", "1", "99"])
    assert "'-1' (1 row, line 5) is a class; if it stands" in notes(["0", "1", "2", "-1"])
    for scale in (["-1", "0", "1"], ["-2", "-1", "1", "2"], ["9", "8", "7"], ["98", "99", "1"]):
        assert "if it stands" not in notes(scale)
    for missing in ("?", "Unlabelled"):
        path = write("b.tsv", f"label\ttext\npos\tzwin\n{missing}\tx\nneg\tkhayb\n")
        assert "is how a missing one is written" in "".join(read_labelled(path).notes)
        assert read_labelled(path, drop_unlabelled=True).labels == ["pos", "neg"]


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (["pos|sav", "neg|sav", "pos|prix", "neg|prix"], True),
        (["pos, sav", "neg, sav", "pos, prix", "neg, prix", "pos, livraison"], False),
        (["sport|foot", "sport|tennis", "musique|rap", "musique|rai"], False),
        (["pos", "neg"], False),
        (["pos", "neg", "pos,neg"], True),
        (["0", "1", "1,0"], False),
        (["1,0", "1,5", "2,0", "2,5"], False),
    ],
)
def test_several_labels_in_a_cell_are_told(write, labels, told):
    rows = "".join(f"{label}\tfilm {n}\n" for n, label in enumerate(labels * 3))
    notes = "".join(read_labelled(write("a.tsv", "label\ttext\n" + rows)).notes)
    assert ("keep one label for a text" in notes) == told


def counted(**counts):
    return check_counts(counts, "a.tsv", lambda label: 7)


def test_classes_that_differ_in_accents_alone_are_told():
    (told,) = counted(négatif=20, negatif=15, positif=30)
    assert "'négatif' (20 rows) and 'negatif' (15 rows)" in told
    assert "'bon.' (3 rows)" in counted(**{"bon": 9, "bon.": 3, "mauvais": 9})[0]
    assert (
        counted(**{"+": 9, "-": 9}) == counted(été=20, hiver=20) == []
        and counted(حُب=20, حب=20, كره=9) == []
    )


def test_a_class_of_few_rows_that_misspells_another_is_told():
    (told,) = counted(positif=80, positife=2, neutre=40)
    assert told == "a.tsv: found 'positife' in 2 rows alone, did you mean 'positif'?"
    assert counted(positif=80, positife=20, neutre=40) == counted(rare=2, often=100) == []


def test_texts_in_place_of_labels_are_called_texts():
    texts = {f"un film numero {n}": 1 for n in range(30)}
    with pytest.raises(RowsError, match="they look like texts: --text-column and --label-column"):
        check_counts(texts, "a.tsv", lambda label: 7)
    with pytest.raises(RowsError, match="make ranges of numbers classes"):
        check_counts({str(n): 1 for n in range(30)}, "a.tsv", lambda label: 7)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("nul.tsv", b"neg\tc\0d\n" * 9),
        ("latin.csv", b"text,label\n" + b"c\xe9d,neg\n" * 9),
        ("named.tsv.gz", b"neg\tcd\n"),
        ("cut.parquet", b"PAR1 and no more"),
        ("good.tsv", b"label\ttext\nneg\tcd\npos\tef\n"),
        ("nul.txt", b"a\0b\n"),
    ],
)
def test_a_file_is_closed_while_the_error_about_it_is_kept(write, monkeypatch, name, content):
    """Notebooks keep the last error; on Windows nobody can write a file that is open elsewhere."""
    streams = []
    open_stream = lines._open

    def noted(path, name):
        streams.append(open_stream(path, name))
        return streams[-1]

    monkeypatch.setattr(lines, "_open", noted)
    path, kept = write(name, content), None
    try:
        (read_texts if name.endswith(".txt") else read_labelled)(path)
    except SuperConTextError as error:
        kept = error
    assert (kept is None) == (name == "good.tsv")
    assert streams and all(stream.closed for stream in streams)
