"""One format at a time, against the standard library where it reads the same thing."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import DataError, MissingExtraError
from superconext.core.progress import WARNING
from superconext.data import json_formats
from superconext.data import lines as file_lines
from superconext.data.columns import Known
from superconext.data.file_format import RowFile, Wanted
from superconext.data.formats import Csv, Tsv, table_lines
from superconext.data.json_formats import JsonLines
from superconext.data.lines import open_bytes
from superconext.data.reading import read_beside, read_labelled, read_texts


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


def records(kind, text, name):
    """(cells of all records, their lines) of a table in memory."""
    file = RowFile(open_bytes(name, "", text.encode()), Wanted())
    blocks = list(kind(file).records())
    return [r for _, cells in blocks for r in cells], [n for lines, _ in blocks for n in lines]


def refusal(path, **columns):
    with pytest.raises(DataError) as caught:
        read_labelled(path, **columns)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- CSV ------------------------------------------------------------------------------------

cell = st.text(alphabet='ab ,"\n\tب', max_size=6)


@given(st.lists(st.lists(cell, min_size=2, max_size=4), min_size=1, max_size=6), st.booleans())
@settings(deadline=None)
def test_csv_reads_what_the_standard_writer_writes(written, quote_all):
    out = io.StringIO()
    quoting = csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL
    csv.writer(out, quoting=quoting, lineterminator="\n").writerows(written)
    cells, lines = records(Csv, out.getvalue(), "x.csv")
    assert cells == written
    line, expected = 1, []
    for record in written:
        expected.append(line)
        line += 1 + sum(value.count("\n") for value in record)
    assert lines == expected


backslashed = st.text(alphabet='ab ,"\\\n', max_size=6)


@given(st.lists(st.lists(backslashed, min_size=2, max_size=4), min_size=1, max_size=6))
@settings(deadline=None)
def test_backslashes_are_characters_where_quotes_are_doubled(written):
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(written)
    file = RowFile(open_bytes("x.csv", "", out.getvalue().encode()), Wanted())
    file.first_line()
    assert [cells for _, block in Csv(file).records() for cells in block] == written


@given(
    st.lists(st.lists(backslashed, min_size=2, max_size=4), max_size=6),
    st.sampled_from([Csv, Tsv]),
    st.booleans(),
)
@settings(deadline=None)
def test_escaped_quotes_are_read_as_the_standard_reader_reads_them(written, kind, late):
    told = ['he said "no" to us', "x"]
    written = [*written, told] if late else [told, *written]
    out = io.StringIO()
    style = {"doublequote": False, "escapechar": "\\", "quoting": csv.QUOTE_ALL}
    tab = "," if kind is Csv else "\t"
    csv.writer(out, delimiter=tab, lineterminator="\n", **style).writerows(written)
    file = RowFile(open_bytes("x.csv", "", out.getvalue().encode()), Wanted())
    file.first_line()
    table = kind(file)
    if table.quoted:
        assert [cells for _, block in table.records() for cells in block] == written
    else:
        assert kind is Tsv and len({len(row) for row in written}) > 1  # nothing tells of quotes


def test_escaped_quotes_of_r_and_spark(tmp_path):
    of_r = 'text\tlabel\n1\t"he said \\"no\\", twice"\t"pos"\n2\t"C:\\temp"\t"neg"\n'
    rows = read_labelled(write(tmp_path, "r.tsv", of_r.replace("text\tlabel", '"text"\t"label"')))
    assert rows.texts == ['he said "no", twice', "C:\\temp"] and rows.labels == ["pos", "neg"]
    assert any("quotes inside cells read as escaped" in note for note in rows.notes)
    of_spark = 'text,label\nzwin,pos\n"a, ""b""",neg\n"\\"c\\", d",pos\n"e\\",neg\n"f ""g""",pos\n'
    rows = read_labelled(write(tmp_path, "spark.csv", of_spark))
    assert rows.texts == ["zwin", 'a, "b"', '"c", d', "e\\", 'f "g"']


def test_a_quote_that_no_style_explains_is_refused_at_its_line(tmp_path):
    told = refusal(write(tmp_path, "x.csv", 'text,label\n"a \\"b\\" c" d,x\n'))
    assert "line 2: found characters after a closing quote" in told


@given(st.text(alphabet='ab,"\n', max_size=30))
@settings(deadline=None)
def test_csv_reads_or_refuses_any_text_as_the_strict_standard_reader(text):
    try:
        expected = [r for r in csv.reader(io.StringIO(text, newline=""), strict=True) if r]
    except csv.Error:
        with pytest.raises(DataError):
            records(Csv, text, "x.csv")
    else:
        assert records(Csv, text, "x.csv")[0] == expected


def test_csv_quoting_and_lines(tmp_path):
    content = 'text,label\n"a, b\nsecond ""line""",p\n5" screen,q\n"",\n'
    message = refusal(write(tmp_path, "a.csv", content))
    assert "line 5" in message and "empty text" in message
    corpus = read_labelled(write(tmp_path, "b.csv", content.replace('"",\n', "c,p\n")))
    assert corpus.texts == ['a, b\nsecond "line"', '5" screen', "c"]
    assert corpus.lines == [2, 4, 5]


def test_csv_quote_never_closed_names_the_line_where_it_opened(tmp_path):
    message = refusal(write(tmp_path, "a.csv", 'text,label\n"a\nb",p\nc,q\n"d,p\ne,q\nf,p\n'))
    assert "line 5" in message and "never closed" in message
    message = refusal(write(tmp_path, "b.csv", 'text,label\n"a\nb",p\n"c" d,q\n'))
    assert "line 4" in message and "closing quote" in message
    message = refusal(write(tmp_path, "c.csv", 'text,label\n"a,p\nb,q\n"c d",q\n'))
    assert "line 2: found a quote that closes on line 4 only, before more text" in message
    rows = [f"{row};sentence {row};{'pq'[row % 2]}" for row in range(30)]
    rows[12] = '12;"sentence 12;p'
    message = refusal(write(tmp_path, "c.csv", "\n".join(["id;phrase;avis", *rows])))
    assert "line 14" in message and "never closed" in message


@pytest.mark.parametrize("mark", [",", ";"])
def test_rows_that_stray_quotes_make_one_are_told(tmp_path, mark):
    rows = [[f"sentence {row}", "pq"[row % 2], str(row)] for row in range(30)]
    rows[12][0], rows[20][0] = '"sentence 12', 'sentence 20"'
    rows = [[*row, row[1]] for row in rows]
    lines = [mark.join(row) for row in [["text", "label", "id", "again"], *rows]]
    corpus = read_labelled(write(tmp_path, "a.csv", "\n".join(lines)))
    assert len(corpus) == 30 - 8 and sum("one row" in note for note in corpus.notes) == 1
    assert not any("begins with a label" in note for note in corpus.notes)
    (note,) = (note for note in corpus.notes if "are one row" in note)
    assert note.startswith(f"{WARNING}lines 14 to 22 are one row, as a quote opens")
    prose = (
        f'"first line{mark} of three\nthe second one\nthe third one\nthe last"{mark}p{mark}1{mark}p'
    )
    corpus = read_labelled(write(tmp_path, "b.csv", "\n".join([*lines[:10], prose])))
    assert not any("one row" in note for note in corpus.notes)


# -- TSV ------------------------------------------------------------------------------------


@given(
    st.lists(
        st.lists(st.text(alphabet='ab ",بˑ\x0b\u2028', min_size=1, max_size=5), min_size=2),
        min_size=1,
    )
)
@settings(deadline=None)
def test_tsv_has_no_quoting(written):
    text = "\n".join("\t".join(record) for record in written) + "\n"
    cells, lines = records(Tsv, text, "x.tsv")
    assert cells == written
    assert lines == list(range(1, len(written) + 1))


def test_tsv_quotes_are_characters(tmp_path):
    rows = 'p\t"a b\nq\t"c" d\np\te"f ""g\n'
    assert read_labelled(write(tmp_path, "a.tsv", rows)).texts == ['"a b', '"c" d', 'e"f ""g']


# -- JSON lines -----------------------------------------------------------------------------


COLUMNS = {"text": ["zwin", "mzyan", ""], "label": [1, 0, None]}
NUMBERED = {"0": {"text": "zwin", "label": 1}, "1": {"text": "mzyan", "label": 0}}


@pytest.mark.parametrize(
    "document",
    [
        COLUMNS,
        {k: dict(zip("012", v, strict=True)) for k, v in COLUMNS.items()},
        NUMBERED | {"2": {"text": "", "label": None}},
    ],
)
def test_all_rows_in_one_object_are_read_by_columns_or_numbers(tmp_path, document):
    path = write(tmp_path, "x.json", json.dumps(document))
    rows = read_labelled(path, drop_unlabelled=True)
    assert (rows.texts, rows.labels) == (["zwin", "mzyan"], ["1", "0"])
    told = refusal(path)
    assert "an empty text (1 row" in told


def test_columns_of_which_one_has_more_cells_are_refused(tmp_path):
    """The cells that the others lack would be left out."""
    cells = dict(zip("012", "abc", strict=True))
    document = {"text": {"0": "zwin", "1": "khayb"}, "label": cells}
    for columns in (document, dict([*document.items()][::-1])):
        path = write(tmp_path, "x.json", json.dumps(columns))
        assert "is a JSON object, expected a string" in refusal(path)


def test_columns_whose_rows_have_the_name_of_a_column_are_columns(tmp_path):
    document = {"text": {"post": "zwin", "comment": "khayb"}, "label": {"post": 1, "comment": 0}}
    read = read_labelled(write(tmp_path, "x.json", json.dumps(document)))
    assert (read.texts, read.labels) == (["zwin", "khayb"], ["1", "0"])


def test_numbered_rows_may_have_other_names(tmp_path):
    rows = {str(n): {"kelma": f"kan {n}", "naw3": "ab"[n]} for n in range(2)}
    read = read_labelled(write(tmp_path, "x.json", json.dumps(rows)), "kelma", "naw3")
    assert (read.texts, read.labels) == (["kan 0", "kan 1"], ["a", "b"])


@given(st.lists(st.tuples(st.text(min_size=1), st.sampled_from(["x", "y"])), min_size=1))
@settings(deadline=None)
def test_jsonl_round_trip(pairs):
    pairs = [(text, label) for text, label in pairs if "\0" not in text] or [("a", "x")]
    for ascii_only in (True, False):
        lines = [json.dumps({"text": t, "label": y}, ensure_ascii=ascii_only) for t, y in pairs]
        data = "\n".join(lines).encode("utf-8", "surrogatepass")
        blocks = list(JsonLines(RowFile(open_bytes("x.jsonl", "", data), Wanted())).blocks())
        read = [pair for rows in blocks for pair in zip(rows.texts, rows.labels, strict=True)]
        assert read == pairs


def test_jsonl_keys_numbers_and_lines(tmp_path):
    content = '{"id": 1, "text": "a b", "label": 1}\n\n{"label": 1.0, "text": 12, "id": 2}\n'
    path = write(tmp_path, "a.jsonl", content)
    corpus = read_labelled(path)
    assert (corpus.texts, corpus.labels, corpus.lines) == (["a b", "12"], ["1", "1.0"], [1, 3])
    blank, alike = corpus.notes
    assert blank == "1 blank line left out" and "' (1 row, line 3)" in alike
    assert read_labelled(path, "text", "id").labels == ["1", "2"]
    assert read_labelled(path, "2", "3").labels == corpus.labels
    assert read_texts(write(tmp_path, "noname", content)).texts == corpus.texts
    assert "did you mean 'label'" in refusal(path, label_column="labels")


@pytest.mark.parametrize(
    "line,part",
    [
        ('{"text": "a", "label": ', "found an object that does not end on its line"),
        ('{"text": "a", "label" "p"}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ('["a", "b"]', "found a JSON array"),
        ('"a"', "found a JSON string"),
        ('{"text": "a"}', "found an empty label (1 row, line 2)"),
        ('{"text": "a", "lable": "p"}', "no key 'label', found 'text', 'lable'"),
        ('{"text": "a", "label": ["p", "q"]}', "'label' has several values ('p', 'q')"),
        ('{"text": {"a": 1}, "label": "p"}', "'text' is a JSON object"),
        ('{"text": null, "label": "p"}', "found an empty text (1 row, line 2)"),
        ('{"text": NaN, "label": "p"}', "leave them out with --drop-incomplete"),
        ('{"text": true, "label": "p"}', "'text' is a JSON boolean"),
        ('{"text": "a", "label": {"p": 1}}', "'label' is a JSON object"),
        ('{"text": "a\\ud83d", "label": "p"}', "surrogate"),
        ('{"text": "a\\u0000", "label": "p"}', "NUL"),
        ('{"text": "a", "label": "p", "text": "b"}', "found the key 'text' twice"),
    ],
)
def test_bad_jsonl_names_the_line(tmp_path, line, part):
    good = '{"text": "\\ud83d\\ude00 b", "label": "p"}\n'
    message = refusal(write(tmp_path, "a.jsonl", good + line + "\n"))
    assert "line 2" in message and part in message


def test_jsonl_labels_may_be_booleans(tmp_path):
    lines = '{"text": "a", "spam": true}\n{"text": "b", "spam": false}\n'
    found = read_labelled(write(tmp_path, "a.jsonl", lines), label_column="spam")
    assert found.labels == ["true", "false"]


def test_a_label_in_a_list_may_be_repeated(tmp_path):
    lines = '{"text": "a", "label": ["p", "p"]}\n{"text": "b", "label": ["q"]}\n'
    assert read_labelled(write(tmp_path, "a.jsonl", lines)).labels == ["p", "q"]


def test_an_array_of_several_blocks_is_read_whole_and_its_items_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(json_formats, "RUN_LINES", 2)
    records = [{"text": f"row {n}", "label": "pq"[n % 2]} for n in range(7)]
    path = write(tmp_path, "a.json", json.dumps(records))
    assert read_labelled(path).texts == [record["text"] for record in records]
    records[5]["label"] = ["p", "q"]
    message = refusal(write(tmp_path, "a.json", json.dumps(records)))
    assert "line 1, item 6: 'label' has several values" in message


@pytest.mark.parametrize("end", ["", ",", "\n"])
def test_an_array_that_ends_behind_an_object_is_never_closed(tmp_path, end):
    records = [{"text": f"row {n}", "label": "pq"[n % 2]} for n in range(3)]
    path = write(tmp_path, "a.json", json.dumps(records)[:-1] + end)
    assert "line 1: found an array or object that is never closed" in refusal(path)


def test_an_object_of_an_array_that_goes_on_for_ever_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(json_formats, "LONGEST", 60)
    record = {"text": "a b", "label": "p", "more": ["x" * 9] * 9}
    path = write(tmp_path, "a.json", json.dumps([record], indent=1))
    assert "line 2: found an object longer than" in refusal(path)


def test_a_row_without_its_annotator_is_refused(tmp_path):
    first = '{"text": "a", "annotator": "x", "label": "p"}\n'
    path = write(tmp_path, "a.jsonl", first + '{"text": "a", "label": "q"}\n')
    assert "line 2: no key 'annotator', found 'text', 'label'" in refusal(path)


def test_an_annotator_whom_the_first_record_lacks_votes_too(tmp_path):
    first = {"text": "a", "annotator_1": "p", "annotator_2": "p"}
    more = {"text": "b", "annotator_1": "p", "annotator_2": "n", "annotator_3": "n"}
    assert read_labelled(json_lines(tmp_path, [first, more])).labels == ["p", "n"]


def test_jsonl_keys_may_differ_in_case_from_those_of_the_first_record(tmp_path):
    first = '{"text": "a", "Label": "p"}\n'
    path = write(
        tmp_path, "a.jsonl", first + '{"Text ": "b", "label": "q"}\n{"text": "c", "Label": 1}\n'
    )
    assert (read_labelled(path).texts, read_labelled(path).labels) == (
        ["a", "b", "c"],
        ["p", "q", "1"],
    )
    message = refusal(
        write(tmp_path, "a.jsonl", first + '{"text": "b", "label": "q", "LABEL": "r"}\n')
    )
    assert "line 2: no key 'Label', found 'text', 'label', 'LABEL'" in message


# -- fastText -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.txt", "a.train", "a", "a.tsv"])
def test_fasttext_lines(tmp_path, name):
    content = "__label__pos عجبني بزاف\n\n__label__neg\tma 3jebnich \n"
    corpus = read_labelled(write(tmp_path, name, content))
    assert corpus.texts == ["عجبني بزاف", "ma 3jebnich"]
    assert (corpus.labels, corpus.lines) == (["pos", "neg"], [1, 3])
    assert any("fastText" in note for note in corpus.notes)


@pytest.mark.parametrize(
    "line,part",
    [
        ("__label__a __label__b text", "single-label only"),
        ("__label__a text __label__b", "single-label only"),
        ("no label here", "begins with 'no'"),
        ("__label__ text", "'__label__'"),
        ("__label__a", "empty text"),
    ],
)
def test_bad_fasttext_names_the_line(tmp_path, line, part):
    message = refusal(write(tmp_path, "a.txt", f"__label__a text\n{line}\n"))
    assert "line 2" in message and part in message


# -- anything else --------------------------------------------------------------------------


def test_labelled_txt_with_tabs_is_tsv_and_without_is_refused(tmp_path):
    assert len(read_labelled(write(tmp_path, "a.txt", "p\ta b\nq\tc d\n"))) == 2
    assert "not recognised" in refusal(write(tmp_path, "b.txt", "a sentence, no label\n"))
    assert len(read_labelled(write(tmp_path, "c.data", "label,text\np,a b\n"))) == 1


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "a.parquet"
    path.write_bytes(b"PAR1 not really")
    with pytest.raises(MissingExtraError, match=r"superconext\[parquet\]"):
        read_labelled(path)


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
def test_parquet(tmp_path):
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    path = tmp_path / "a.parquet"
    columns = {"id": [1, 2], "text": ["a b", "ج د"], "label": [0, 1]}
    parquet.write_table(arrow.table(columns), path)
    corpus = read_labelled(path)
    assert (corpus.texts, corpus.labels, corpus.lines) == (["a b", "ج د"], ["0", "1"], [1, 2])
    assert read_labelled(path, 2, "id").labels == ["1", "2"]
    assert read_texts(path).texts == corpus.texts
    assert "no column 'sentence'" in refusal(path, text_column="sentence")

    parquet.write_table(arrow.table({"text": ["a", None], "label": ["x", "y"]}), path)
    assert "found an empty text (1 row, line 2)" in refusal(path)
    missing = {"text": ["a b", None, "c d", "e f"], "label": ["x", "y", None, "y"]}
    parquet.write_table(arrow.table(missing), path)
    assert read_labelled(path, drop_unlabelled=True).labels == ["x", "y"]
    parquet.write_table(arrow.table({"text": ["a b", "c d"], "label": [True, False]}), path)
    assert read_labelled(path).labels == ["True", "False"]
    parquet.write_table(arrow.table({"text": ["a"], "label": [["x"]]}), path)
    assert "row 1" in refusal(path)
    path.write_bytes(path.read_bytes()[:-20])
    assert "Parquet" in refusal(path)


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
@pytest.mark.parametrize("name", ["a.parquet", "a.feather", "view.feather"])
def test_columns_that_unpack_to_far_more_are_refused(tmp_path, name):
    import pyarrow as arrow
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    def write(texts):
        table = arrow.table({"text": texts, "label": ["x"] * len(texts)})
        if name != "a.parquet":
            kind = arrow.string_view() if name == "view.feather" else arrow.string()
            table = table.set_column(0, "text", table["text"].cast(kind))
            feather.write_feather(table, tmp_path / name, compression="zstd")
        else:
            parquet.write_table(table, tmp_path / name)
        return tmp_path / name

    assert "unpack to more than 67108864" in refusal(write(["zwin " * 400_000] * 40))
    assert "'text' has a text longer than 16 MiB" in refusal(write(["a", "z" * (1 << 24) + "z"]))
    assert len(read_labelled(write(["zwin bzaf", "khayb"] * 9)).texts) == 18


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
@pytest.mark.parametrize("name", ["a.arrow", "a.feather", "a.data"])
def test_arrow_files_and_streams(tmp_path, name):
    import pyarrow as arrow
    from pyarrow import feather

    table = arrow.table({"text": ["a b", "c d", "e"], "label": ["x", "y", None]})
    path = tmp_path / name
    with arrow.ipc.new_file(path, table.schema) as file:
        for batch in table.to_batches(max_chunksize=2):
            file.write_batch(batch)
    assert read_labelled(path, drop_unlabelled=True).labels == ["x", "y"]
    assert read_texts(path).texts == ["a b", "c d", "e"]
    feather.write_feather(table, path)
    assert read_texts(path).texts == ["a b", "c d", "e"]
    path.write_bytes(path.read_bytes()[:-20])
    assert "not readable as an Arrow file" in refusal(path)
    stream = tmp_path / "b.arrow"
    with arrow.ipc.new_stream(stream, table.schema) as file:
        file.write_table(table)
    assert read_texts(stream).texts == ["a b", "c d", "e"]


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([f"{n};un produit {n};2024" for n in range(6)], True),
        ([f"{n}|un produit {n}" for n in range(6)], True),
        (["un; deux", "trois", "quatre; cinq", "six", "sept; huit", "neuf"], False),
        ([f"{n};un produit" for n in range(4)], False),
    ],
)
def test_plain_text_whose_lines_look_like_rows_is_told(tmp_path, lines, told):
    notes = read_texts(write(tmp_path, "a.txt", "\n".join(lines) + "\n")).notes
    assert any("name the file .csv" in note for note in notes) == told


def json_lines(tmp_path, records):
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    return write(tmp_path, "rows.jsonl", "\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "given",
    [
        lambda label: {"label": label},
        lambda label: {"options": [{"id": "pos"}, {"id": "neg"}], "accept": [label]},
    ],
)
def test_prodigy_answers_that_were_not_accepted_are_no_labels(tmp_path, given):
    rows = [("pos", "accept"), ("pos", "reject"), ("neg", "accept"), ("neg", "ignore")]
    records = [{"text": f"row {n}", **given(a), "answer": b} for n, (a, b) in enumerate(rows)]
    path = json_lines(tmp_path, records)
    assert "found an empty label (2 rows, lines 2, 4)" in refusal(path)
    read = read_labelled(path, drop_unlabelled=True)
    assert (read.texts, read.labels) == (["row 0", "row 2"], ["pos", "neg"])
    assert "read as an export of Prodigy" in read.notes


def test_the_choice_of_prodigy_counts_before_a_label_that_the_task_came_with(tmp_path):
    own = {"label": "neg", "options": [{"id": "pos"}, {"id": "neg"}], "answer": "accept"}
    records = [{"text": f"row {n}", **own, "accept": [some]} for n, some in enumerate(["pos", "x"])]
    assert read_labelled(json_lines(tmp_path, records)).labels == ["pos", "x"]


def test_old_exports_of_label_studio_hold_completions(tmp_path):
    records = [
        {
            "data": {"text": f"row {n}"},
            "completions": [{"result": [{"from_name": "a", "value": {"choices": [label]}}]}],
        }
        for n, label in enumerate("pqp")
    ]
    read = read_labelled(json_lines(tmp_path, records))
    assert (read.texts, read.labels) == (["row 0", "row 1", "row 2"], ["p", "q", "p"])
    assert "read as an export of Label Studio" in read.notes


def test_a_row_of_old_argilla_that_nobody_annotated_has_no_label(tmp_path):
    records = [
        {"inputs": {"text": f"row {n}"}, "annotation": label, "annotation_agent": "me"}
        for n, label in enumerate(["p", None, "q"])
    ]
    path = json_lines(tmp_path, records)
    assert "found an empty label (1 row, line 2)" in refusal(path)
    read = read_labelled(path, drop_unlabelled=True)
    assert (read.texts, read.labels) == (["row 0", "row 2"], ["p", "q"])


@pytest.mark.parametrize(
    ("given_by", "names"),
    [
        ([{"id": 7, "email": "a@x.org"}, {"id": 8, "email": "b@x.org"}], ["a@x.org", "b@x.org"]),
        ([{"id": 7}, {"id": 8}], ["7", "8"]),
        ([7, 8], ["7", "8"]),
        ([None, None], ["1", "2"]),
    ],
)
def test_annotators_of_label_studio_have_their_names(tmp_path, given_by, names):
    answer = {"from_name": "a", "value": {"choices": ["p"]}}
    answers = [{"completed_by": who, "result": [answer]} for who in given_by]
    path = json_lines(tmp_path, [{"data": {"text": "a b"}, "annotations": answers}] * 2)
    blocks = RowFile(open_bytes("x.jsonl", "", path.read_bytes()), Wanted(votes=True))
    (block,) = JsonLines(blocks).blocks()
    assert [who for who, _ in block.votes[0]] == names


def task(text, *labels, where=None, **data):
    """A task of Label Studio: a choice for each label, each in an annotation of its own."""
    made = [
        {"result": [{"from_name": "label", "value": {"choices": [label], **(where or {})}}]}
        for label in labels
    ]
    return {"data": {"text": text, **data}, "annotations": made}


@pytest.mark.parametrize("order", [1, -1])
def test_a_task_that_nobody_answered_keeps_no_former_label(tmp_path, order):
    """An imported table may have had a column named as the question."""
    skipped = {**task("b", "neg", label="neg"), "annotations": [{"was_cancelled": True}]}
    tasks = [task("a", "pos", label="neg"), skipped, task("c", label="neg"), task("d", "neg")]
    read = read_labelled(json_lines(tmp_path, tasks[::order]), drop_unlabelled=True)
    assert [*zip(read.texts, read.labels, strict=True)][::order] == [("a", "pos"), ("d", "neg")]


def answered(text, **labels):
    """A task with an answer to each of these questions."""
    result = [{"from_name": q, "value": {"choices": [label]}} for q, label in labels.items()]
    return {"data": {"text": text, "sentiment": "neg"}, "annotations": [{"result": result}]}


def test_the_answer_is_the_label_and_not_a_field_of_the_task(tmp_path):
    tasks = [answered("a", choice="pos"), answered("b", choice="neg")]
    read = read_labelled(json_lines(tmp_path, tasks))
    assert read.labels == ["pos", "neg"]
    told = refusal(json_lines(tmp_path, [answered("a", choice="pos", q="x")]))
    assert "answers to several questions ('choice', 'q')" in told and "--label-column" in told


def test_which_question_is_the_label_does_not_follow_from_the_first_task(tmp_path):
    rows = [("a", {"about": "no"}), ("b", {"about": "yes", "mood": "pos"}), ("c", {"about": "no"})]
    tasks = [answered(text, **labels) for text, labels in rows]
    assert "several questions ('about', 'mood')" in refusal(json_lines(tmp_path, tasks))
    for order in (tasks, tasks[::-1], tasks[1:] + tasks[:1]):
        read = read_labelled(json_lines(tmp_path, order), label_column="mood", drop_unlabelled=True)
        assert (read.texts, read.labels) == (["b"], ["pos"])
    with pytest.raises(DataError, match="no column 'mod', found 'text', 'sentiment', 'about'"):
        read_labelled(json_lines(tmp_path, tasks), label_column="mod", drop_unlabelled=True)
    # One that is called label is it.
    named = [answered("a", about="no"), answered("b", about="yes", label="pos")]
    assert read_labelled(json_lines(tmp_path, named[::-1]), drop_unlabelled=True).labels == ["pos"]


def test_a_nested_choice_is_one_label(tmp_path):
    rows = [task("a", ["city", "Fes"]), task("b", ["city", "Rabat"]), task("c", "other")]
    assert read_labelled(json_lines(tmp_path, rows)).labels == ["city/Fes", "city/Rabat", "other"]


@pytest.mark.parametrize(
    "records",
    [
        [task("one two", "pos", where={"start": 0, "end": 3, "text": "one"})],
        [task("a", "pos"), task("one two", "pos", where={"startOffset": 0})],
        [{"text": "a b", "annotations": [{"label": 1, "user": 1, "start_offset": 0}]}],
    ],
)
def test_a_label_of_a_part_of_the_text_is_not_taken_for_its_own(tmp_path, records):
    told = refusal(json_lines(tmp_path, records))
    assert "label of a part of the text" in told and f"line {len(records)}" in told


def test_two_labels_by_one_person_are_two_labels(tmp_path):
    own = [{"label": 1, "user": 1}, {"label": 2, "user": 1}]
    told = refusal(json_lines(tmp_path, [{"text": "a b", "annotations": own}]))
    assert "an annotation of 2 labels ('1', '2')" in told
    both = task("a b", "pos", "neg")
    both["annotations"] = [{"result": [of["result"][0] for of in both["annotations"]]}]
    assert "an annotation of 2 labels ('pos', 'neg')" in refusal(json_lines(tmp_path, [both]))
    own[1]["user"] = 2
    read = read_labelled(
        json_lines(tmp_path, [{"text": "a b", "annotations": own}] * 2), votes=True
    )
    assert read.annotated is not None and read.annotated.several


def test_what_argilla_discarded_has_no_label(tmp_path):
    of = [("a", "pos", "Validated"), ("b", "neg", "Discarded"), ("c", "neg", "Default")]
    rows = [{"inputs": {"text": t}, "annotation": a, "status": status} for t, a, status in of]
    read = read_labelled(json_lines(tmp_path, rows), drop_unlabelled=True)
    assert (read.texts, read.labels) == (["a", "c"], ["pos", "neg"])


def test_items_of_an_array_on_one_line_are_told_apart(tmp_path):
    rows = [{"text": f"row {n}", "label": "xy"[n % 2], "source": f"S{n}"} for n in range(5)]
    for name, indent in (("one", None), ("more", 1)):
        path = write(tmp_path, f"{name}.json", json.dumps(rows, indent=indent))
        read = read_labelled(path)
        assert len({*read.lines}) == 5
        _, sources, cells = read_beside(read)
        assert sources == [f"S{n}" for n in range(5)]
        assert [cells[line]["source"] for line in read.lines] == sources
    told = refusal(
        write(tmp_path, "bad.json", json.dumps([*rows, {"text": ["a", "b"], "label": "x"}]))
    )
    assert "line 1, item 6" in told


def test_what_stands_beside_the_text_of_a_task_is_kept_too(tmp_path):
    task = {"id": 5, "note": "x", "data": {"text": "a b", "note": None, "city": "Fes"}}
    file = RowFile(
        open_bytes("x.json", "", json.dumps([{**task, "annotations": []}]).encode()),
        Wanted(labelled=False, beside=True),
    )
    (block,) = JsonLines(file).blocks()
    assert block.beside == [{"id": "5", "text": "a b", "note": "", "city": "Fes"}]
    assert sorted(file.names) == ["city", "id", "note", "text"]


def test_a_label_key_that_a_record_leaves_out_is_no_label(tmp_path):
    path = json_lines(tmp_path, [{"text": "a b", "label": "x"}, {"text": "c d"}])
    assert read_labelled(path, drop_unlabelled=True).labels == ["x"]


@pytest.mark.parametrize(
    "record",
    [
        {"text": "a b", "hashtags": ["x"], "stars": 3},
        {
            "data": {"text": "a b"},
            "annotations": [
                {"result": [{"from_name": name, "value": {"choices": ["x"]}} for name in "ab"]}
            ],
        },
    ],
)
def test_a_row_with_lists_is_not_taken_for_all_rows(tmp_path, record):
    told = refusal(json_lines(tmp_path, [record] * 3))
    assert "all rows" not in told and "--label-column" in told


@given(
    st.lists(st.text(alphabet='ab "', min_size=1, max_size=6), min_size=2, max_size=9, unique=True),
    st.booleans(),
)
@settings(deadline=None)
def test_stray_quotes_between_tabs_make_no_rows_one(texts, first):
    texts = [t.strip() for t in texts if t.strip() and '""' not in t]
    cells = [(text, "xy"[at % 2]) for at, text in enumerate(texts)]
    name = ("text", "label") if first else ("label", "text")
    out = "\t".join(name) + "\n" + "".join("\t".join(c if first else c[::-1]) + "\n" for c in cells)
    if not texts:
        return
    with TemporaryDirectory() as folder:
        read = read_labelled(write(Path(folder), "rows.tsv", out))
    assert (read.texts, read.labels) == (texts, [label for _, label in cells])


def test_lists_of_objects_in_json_lines_are_no_rows(tmp_path):
    rows = [
        {"comments": [{"text": "c", "label": "z"}], "text": f"kan {n}", "label": "ab"[n % 2]}
        for n in range(3)
    ]
    assert read_labelled(json_lines(tmp_path, rows)).texts == ["kan 0", "kan 1", "kan 2"]
    one = json_lines(tmp_path, [{"comments": [{"text": "c"}], "kelma": "kan"}])
    assert read_texts(one, "kelma").texts == ["kan"]
    pretty = write(tmp_path, "x.json", json.dumps(rows[0], indent=1))
    assert "an object that does not end on its line" in refusal(pretty)
    later = {"comments": rows[0]["comments"] * 9000, "text": "kan"}
    assert "'\"text\"' beside the array 'comments'" in refusal(
        write(tmp_path, "later.json", json.dumps(later, indent=1))
    )


@pytest.mark.parametrize("key", ["comments", "options"])
def test_lists_of_objects_beside_an_unknown_text_are_no_rows(tmp_path, key):
    row = {key: [{"text": "c", "label": "z"}], "kelma": "kan"}
    for count in (3,) if key == "comments" else (3, 1):
        assert f"all rows inside '{key}'" in refusal(json_lines(tmp_path, [row] * count))


def test_rows_are_in_the_array_of_the_object_itself(tmp_path):
    document = {"rows": WITHIN, "about": {"rows": [{"text": "no", "label": "z"}]}}
    assert read_labelled(write(tmp_path, "x.json", json.dumps(document))).labels == [*"abab"]


def test_rows_under_names_of_their_own(tmp_path):
    document = {f"-N{n}x": row for n, row in enumerate(WITHIN)}
    assert read_labelled(write(tmp_path, "x.json", json.dumps(document))).labels == [*"abab"]
    document["-N2x"] = {"text": "zwin"}
    assert "all rows in one object" in refusal(write(tmp_path, "y.json", json.dumps(document)))


@pytest.mark.parametrize(
    "rows",
    [
        [['"C:\\" is a path', "pos"], ["foo", "neg"], ['zzz "', "neg"]],
        [["kan", "a"], ['"foo \\"no\\" bar', "b"], ["had", "a"]],
        [['"he ""said', "pos"], ["foo", "neg"], ['zzz"', "neg"]],
    ],
)
def test_backslashes_before_stray_quotes_between_tabs_tell_nothing(tmp_path, rows):
    lines = ["\t".join(row) for row in [["text", "label"], *rows]]
    path = write(tmp_path, "x.tsv", "\n".join(lines))
    assert read_labelled(path).texts == [text for text, _ in rows]


def test_rows_that_escaped_quotes_may_have_made_one_are_told(tmp_path):
    path = write(tmp_path, "x.csv", 'text,label\n"open \\"x,pos\nfoo 5",neg\nkan,pos\n')
    assert any("lines 2 to 3 are one row" in note for note in read_labelled(path).notes)


@pytest.mark.parametrize("head", ["text,label", "label,text", "id,text,label"])
def test_two_rows_that_stray_quotes_make_one_are_told(tmp_path, head):
    rows = [{"id": str(n), "text": f"kan, {n} had", "label": "ab"[n % 2]} for n in range(6)]
    rows[2]["text"], rows[3]["text"] = '"kan had', 'had kan"'
    quoted = [row | {"text": f'"{row["text"]}"'} if "," in row["text"] else row for row in rows]
    lines = [",".join(row[name] for name in head.split(",")) for row in quoted]
    read = read_labelled(write(tmp_path, "x.csv", "\n".join([head, *lines])))
    told = [note for note in read.notes if "ends or begins with a label" in note]
    assert len(read.texts) == 5 and len(told) == 1 and "1 row with" in told[0] and "4" in told[0]
    good = [["text", "label"], ["one,\ntwo, three", "a"], ["c\nd", "b"]]
    kept = read_labelled(write(tmp_path, "y.csv", "".join(table_lines(good, ","))))
    assert not any("begins with a label" in note for note in kept.notes)


def test_a_record_of_prodigy_without_an_annotator(tmp_path):
    rows = [
        {"text": f"kan {n}", "label": "ab"[n % 2], "answer": "accept", "_annotator_id": "x"}
        for n in range(4)
    ]
    del rows[2]["_annotator_id"]
    assert read_labelled(json_lines(tmp_path, rows)).labels == ["a", "b", "a", "b"]


def test_a_folder_for_each_class(tmp_path):
    for label, texts in {"neg": ["khayb", "naïf\nbzaf "], "pos": ["زوين", "mzyan"]}.items():
        (tmp_path / "set" / label).mkdir(parents=True)
        for at, text in enumerate(texts):
            encoding = "utf-16" if "ï" in text else "utf-8"
            (tmp_path / "set" / label / f"{at}.txt").write_text(text, encoding=encoding)
    (tmp_path / "set" / "README.md").write_text("about")
    (tmp_path / "set" / "pos" / "list.csv").write_text("a,b")
    rows = read_labelled(tmp_path / "set")
    assert rows.texts == ["khayb", "naïf\nbzaf", "زوين", "mzyan"]
    assert rows.labels == ["neg", "neg", "pos", "pos"]
    assert read_labelled(tmp_path / "set").sha256 == rows.sha256
    before = rows.sha256
    (tmp_path / "set" / "pos" / "1.txt").write_bytes(b"caf\xe9")
    assert "1.txt, line 1: byte 0xe9 is not UTF-8" in refusal(tmp_path / "set")
    (tmp_path / "set" / "pos" / "1.txt").write_text("other")
    assert read_labelled(tmp_path / "set").sha256 != before
    assert "a folder for each class" in refusal(tmp_path / "set" / "pos")


def test_nothing_stands_behind_an_object_of_all_rows(tmp_path):
    long = {"text": ["kan had " * 99_000, "zwin"], "label": ["a", "b"]}
    path = json_lines(tmp_path, [long, {"text": "bzaf " * 99_000, "label": "a"}])
    assert "line 2: found more behind an object that holds all rows" in refusal(path)


WITHIN = [{"text": f"kan {n} had", "label": "ab"[n % 2]} for n in range(4)]


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    "document",
    [
        {"data": WITHIN},
        {"version": {"of": [{"n": 1}]}, "count": 4, "rows": WITHIN, "tags": ["a", "b"]},
    ],
)
def test_an_array_of_rows_inside_an_object_is_read(tmp_path, document, indent):
    rows = read_labelled(write(tmp_path, "x.json", json.dumps(document, indent=indent)))
    assert rows.texts == [row["text"] for row in WITHIN] and rows.labels == [*"abab"]
    assert any("rows read from the array" in note for note in rows.notes)


@pytest.mark.parametrize(
    "task",
    [
        {"text": "kan had", "label": "a", "tokens": [{"n": 1}, {"n": 2}]},
        {"id": 1, "annotations": [{"result": []}], "data": {"text": "kan had"}},
        {"meta": [{"n": 1}], "text": "kan had", "label": "a"},
    ],
)
def test_an_array_of_a_row_does_not_hold_the_rows(tmp_path, task):
    assert read_texts(write(tmp_path, "x.jsonl", json.dumps(task) + "\n")).texts == ["kan had"]


def test_the_archive_of_twitter(tmp_path):
    tweets = [{"tweet": {"id": n, "full_text": f"kan {n} had"}} for n in range(3)]
    script = "window.YTD.tweets.part0 = " + json.dumps(tweets, indent=2)
    assert read_texts(write(tmp_path, "tweets.js", script)).texts == [
        f"kan {n} had" for n in range(3)
    ]


def test_a_chat_as_messenger_exports_it(tmp_path):
    said = ["c'est déjà vu", "نحبها بزاف", "ok 😂"]
    bytes_as_characters = [text.encode().decode("latin-1") for text in said]
    messages = [
        {"sender_name": "a", "timestamp_ms": 1, "content": text} for text in bytes_as_characters
    ]
    messages[0]["type"] = "Generic"
    messages += [{"sender_name": "a", "photos": []}, {"sender_name": "b", "content": "naïf à"}]
    chat = {"participants": [{"name": "a"}, {"name": "b"}], "messages": messages}
    path = write(tmp_path, "message_1.json", json.dumps(chat, indent=2))
    assert read_texts(path).texts == [*said, "naïf à"]


ODD = st.text(alphabet='ab},{"\\[]:é ', max_size=8)


@given(st.lists(st.dictionaries(ODD, ODD, min_size=1, max_size=2), min_size=1), st.integers(1, 9))
@settings(deadline=None)
def test_an_array_on_one_long_line_is_cut_between_objects_alone(rows, size):
    data = json.dumps(rows, ensure_ascii=False).encode()
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(file_lines, "CHUNK", 7)
        cut = b"".join(file_lines._objects_on_lines(pieces))
    assert cut.replace(b"},\n", b"},") == data and json.loads(cut) == rows
    assert len(data) < 7 or cut.count(b"\n") >= len(rows) - 1


def test_an_array_longer_than_any_line_is_read(tmp_path, monkeypatch):
    rows = [{"text": f"kan {n} had }}, {{ é", "label": "ab"[n % 2]} for n in range(2000)]
    path = write(tmp_path, "x.json", json.dumps(rows))
    monkeypatch.setattr(file_lines, "LONGEST", 1 << 14)
    monkeypatch.setattr(file_lines, "CHUNK", 1 << 12)
    assert read_labelled(path).texts == [row["text"] for row in rows]
    said = refusal(write(tmp_path, "y.json", json.dumps({"rows": rows})))
    assert "longer than" in said and "expected an array of objects" in said


def test_flat_answers_of_argilla_count_where_they_were_submitted(tmp_path):
    rows = [
        {
            "text": f"kan {n} had",
            "sent.responses": ["a", "b", "a"][: n + 1],
            "sent.responses.users": ["x", "y", "z"][: n + 1],
            "sent.responses.status": ["submitted", "discarded", "draft"][: n + 1],
            "sent.suggestion": "b",
            "sent.suggestion.score": 0.5,
        }
        for n in range(3)
    ]
    rows.append({"text": "had"} | {f"sent.responses{k}": None for k in ("", ".users", ".status")})
    path = json_lines(tmp_path, rows)
    read = read_labelled(path, drop_unlabelled=True)
    assert read.texts == ["kan 0 had", "kan 1 had", "kan 2 had"] and {*read.labels} == {"a"}
    assert any("Argilla" in note for note in read.notes)


def test_annotators_of_prodigy_vote(tmp_path):
    rows = [
        {"text": f"kan {n} had", "label": label, "answer": "accept", "_annotator_id": who}
        for n in range(3)
        for who, label in (("x", "a"), ("y", "a"), ("z", "ab"[n % 2]))
    ]
    rows[4]["answer"] = "ignore"
    read = read_labelled(json_lines(tmp_path, rows), votes=True)
    assert len(read.texts) == 2 and len(read.ties) == 1  # a, -, b ties
    assert read.annotated.several


def test_a_header_again_behind_a_byte_order_mark_is_told(tmp_path):
    part = "\ufefftext,label\n" + "good day,pos\nbad day,neg\n" * 3
    told = refusal(write(tmp_path, "joined.csv", part * 2))
    assert "line 8" in told and "header" in told


def test_cells_under_no_name_are_told(tmp_path):
    rows = "neg,the room was bad, really\npos,good,\n"
    read = read_labelled(write(tmp_path, "over.csv", "label,text,\n" + rows * 2))
    told = [note for note in read.notes if "cells under no name" in note]
    assert len(told) == 1 and "2 rows" in told[0] and "(lines 2, 4)" in told[0]
    read = read_labelled(write(tmp_path, "over.csv", "label,text,\n" + "pos,good,\nneg,bad,\n"))
    assert not any("no name" in note for note in read.notes)


@pytest.mark.parametrize("header", ['"texto"\t"etiqueta"\n', "text\tlabel\n", ""])
def test_quotes_around_all_cells_between_tabs_are_no_part_of_them(tmp_path, header):
    rows = "".join(f'"kan {n} had"\t"{label}"\n' for n in range(4) for label in ("pos", "neg"))
    named = header.startswith("text")
    read = read_labelled(write(tmp_path, "rows.tsv", header + rows), *([] if named else [1, 2]))
    assert ({"pos", "neg"} <= {*read.labels} and '"pos"' not in read.labels) or named
    assert any("the quotes around" in note for note in read.notes) == ('"pos"' in read.labels)


def test_quotes_around_all_labels_are_told(tmp_path):
    read = read_labelled(write(tmp_path, "a.csv", 'text,label\nkan had, "pos"\nma kan, "neg"\n'))
    assert any("the quotes around" in note for note in read.notes)


# -- chats ----------------------------------------------------------------------------------


def test_addresses_and_names_in_a_telegram_message_are_left_out(tmp_path):
    hidden = ("link", "email", "phone", "mention", "mention_name", "bank_card")
    parts = [{"type": kind, "text": f"{kind}1"} for kind in hidden]
    parts += [{"type": kind, "text": f"{kind}2"} for kind in ("bold", "text_link")]
    export = {"name": "chat", "messages": [{"type": "message", "text": ["a", *parts, "b"]}]}
    path = write(tmp_path, "result.json", json.dumps(export))
    assert read_texts(path).texts == ["a bold2text_link2b"]


def test_what_else_a_telegram_export_holds_are_no_messages(tmp_path):
    contacts = {"list": [{"type": "message", "text": "a name"}]}
    export = {"contacts": contacts, "messages": [{"type": "message", "text": "zwin"}]}
    path = write(tmp_path, "result.json", json.dumps(export))
    assert read_texts(path).texts == ["zwin"]


def test_a_telegram_account_with_many_contacts_before_its_chats_is_known(tmp_path):
    contacts = {"list": [{"first_name": f"name {k}", "phone": "1"} for k in range(60)]}
    chats = {"list": [{"name": "a", "messages": [{"type": "message", "text": "zwin"}]}]}
    account = {"about": "x", "contacts": contacts, "chats": chats}
    path = write(tmp_path, "result.json", json.dumps(account, indent=1))
    assert read_texts(path).texts == ["zwin"]


@pytest.mark.parametrize(
    "begin",
    [
        "2020-12-31 23 h 59 - Ali: ",
        "2020-12-31, 23 h 59 - Ali: ",
        "[2020-12-31 23 h 59 min 10 s] Ali: ",
        "2020/12/31 下午11:59 - Ali: ",
    ],
)
def test_clocks_of_whatsapp_in_other_languages(tmp_path, begin):
    path = write(tmp_path, "chat.txt", f"{begin}zwin bzaf\n{begin}khayb\n")
    assert read_texts(path).texts == ["zwin bzaf", "khayb"]


@pytest.mark.parametrize("odd", ['["b", "y"]', "3", "null", '"text"', "x"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_is_no_object_in_an_array_is_refused(tmp_path, odd, place):
    items = ['{"text": "a, [b] 3", "label": "p"}', '{"text": "b", "label": "q"}']
    items.insert(place, odd)
    for between in (", ", ",\n"):
        path = write(tmp_path, "a.json", f"[{between.join(items)}]")
        if place:  # else it is not taken for an array of objects
            assert "beside the objects of an array" in refusal(path)
        else:
            assert refusal(path)
    for wrong in ('[{"text": "a", "label": "p"}] 3', '[{"text": "a", "label": "p"} 3]'):
        assert "'3' beside the objects" in refusal(write(tmp_path, "a.json", wrong))


def test_answers_that_are_no_text(tmp_path):
    """null is no answer, true is spelt as elsewhere in JSON."""
    argilla = [
        {"fields": {"text": f"row {n}"}, "responses": {"a": [{"value": one, "user_id": "u"}]}}
        for n, one in enumerate([True, False, None, "p"])
    ]
    doccano = [
        {"text": f"row {n}", "annotations": [{"label": one, "user": 1}]}
        for n, one in enumerate([True, False, None, "p"])
    ]
    for records in (argilla, doccano):
        read = read_labelled(json_lines(tmp_path, records), drop_unlabelled=True)
        assert (read.texts, read.labels) == (["row 0", "row 1", "row 3"], ["true", "false", "p"])


def test_another_question_may_have_several_labels(tmp_path):
    both = [
        {
            "fields": {"text": f"row {n}"},
            "responses": {"feeling": [{"value": one}], "topics": [{"value": ["a", "b"]}]},
        }
        for n, one in enumerate("pqp")
    ]
    path = json_lines(tmp_path, both)
    assert read_labelled(path, label_column="feeling").labels == ["p", "q", "p"]
    with pytest.raises(DataError, match=r"line 1: found an annotation of 2 labels \('a', 'b'\)"):
        read_labelled(path, label_column="topics")


def test_a_lone_carriage_return_in_a_cell_does_not_end_its_line():
    rows = [["text", "n"], ["mlih\rnadi", 1], ["zwin", 2]]
    lines = list(table_lines(rows, ","))
    assert all(line.endswith("\n") and not line.endswith("\r\n") for line in lines)
    assert list(csv.reader(io.StringIO("".join(lines), newline=""))) == [
        [str(cell) for cell in row] for row in rows
    ]


def test_a_choice_that_is_made_twice_is_one_label(tmp_path):
    rows = [task("a", "pos"), task("b", "neg")]
    rows[0]["annotations"][0]["result"] *= 2
    assert read_labelled(json_lines(tmp_path, rows)).labels == ["pos", "neg"]


@pytest.mark.parametrize(
    "others",
    [{"annotation_agent": "me"}, {"inputs": None}, {"inputs": {"text": "kan"}, "text": "x"}],
)
def test_the_text_of_old_argilla_is_among_its_inputs_or_beside_them(tmp_path, others):
    rows = [{"text": "kan", **others, "annotation": label} for label in "ab"]
    read = read_labelled(json_lines(tmp_path, rows))
    assert (read.texts, read.labels) == (["kan", "kan"], ["a", "b"])
    assert "read as an export of Argilla" in read.notes


def test_a_table_with_a_column_of_answers_is_no_export_of_prodigy(tmp_path):
    rows = [
        {"sentence": f"kan {n}", "label": "ab"[n % 2], "answer": ("accept", "reject")[n % 2]}
        for n in range(4)
    ]
    assert read_labelled(json_lines(tmp_path, rows)).labels == ["a", "b", "a", "b"]


def test_old_doccano_has_an_empty_list_where_nobody_labelled(tmp_path):
    rows = [{"id": n, "data": f"kan {n}", "label": ["a"] * (n != 1)} for n in range(3)]
    read = read_labelled(json_lines(tmp_path, rows), drop_unlabelled=True)
    assert (read.texts, read.labels) == (["kan 0", "kan 2"], ["a", "a"])


def test_a_column_called_data_is_no_text_beside_one_called_text(tmp_path):
    rows = [{"text": f"kan {n}", "data": "web", "label": ["ab"[n % 2]]} for n in range(2)]
    assert read_labelled(json_lines(tmp_path, rows)).texts == ["kan 0", "kan 1"]


def test_a_field_of_argilla_may_begin_with_the_name_of_a_question(tmp_path):
    rows = [
        {
            "sentence": f"kan {n}",
            "sent.responses": ["ab"[n % 2]],
            "sent.responses.users": ["x"],
            "sent.responses.status": ["submitted"],
        }
        for n in range(2)
    ]
    read = read_labelled(json_lines(tmp_path, rows))
    assert (read.texts, read.labels) == (["kan 0", "kan 1"], ["a", "b"])


def test_a_question_of_argilla_that_nobody_answered_may_be_null(tmp_path):
    given = [[{"value": "a"}], None, [{"value": "b"}]]
    rows = [{"fields": {"text": f"kan {n}"}, "responses": {"q": g}} for n, g in enumerate(given)]
    read = read_labelled(json_lines(tmp_path, rows), drop_unlabelled=True)
    assert (read.texts, read.labels) == (["kan 0", "kan 2"], ["a", "b"])


def test_answers_that_argilla_1_discarded_are_no_labels(tmp_path):
    of = [("a", "submitted"), ("b", "discarded"), ("b", "submitted"), ("a", "draft")]
    rows = [
        {
            "fields": {"text": f"kan {n}"},
            "responses": [{"values": {"q": {"value": label}}, "status": status}],
        }
        for n, (label, status) in enumerate(of)
    ]
    read = read_labelled(json_lines(tmp_path, rows), drop_unlabelled=True)
    assert (read.texts, read.labels) == (["kan 0", "kan 2"], ["a", "b"])


@pytest.mark.parametrize("count", [2, 3])
def test_a_column_by_number_behind_a_list_of_objects(tmp_path, count):
    rows = [{"replies": [{"n": 1}], "kelma": f"kan {n}"} for n in range(count)]
    read = read_texts(json_lines(tmp_path, rows), 2)
    assert read.texts == [row["kelma"] for row in rows]


def test_one_record_of_old_argilla_with_predictions_is_one_row(tmp_path):
    record = {
        "inputs": {"text": "kan had"},
        "prediction": [{"label": "b", "score": 0.9}],
        "annotation": "a",
    }
    read = read_labelled(json_lines(tmp_path, [record]))
    assert (read.texts, read.labels) == (["kan had"], ["a"])


def test_rows_beside_their_columns_as_pandas_splits_them_are_refused(tmp_path):
    split = {"columns": ["text", "label"], "index": [0, 1], "data": [["kan", "a"], ["had", "b"]]}
    told = refusal(write(tmp_path, "x.json", json.dumps(split)))
    assert "all rows in one object" in told and "orient='records'" in told


def test_a_long_array_of_objects_on_several_lines_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(json_formats, "LONGEST", 60)
    rows = [{"text": f"row {n}", "label": "pq"[n % 2]} for n in range(9)]
    path = write(tmp_path, "a.json", json.dumps(rows, indent=1))
    assert read_labelled(path).texts == [row["text"] for row in rows]


def test_an_answer_to_another_question_is_not_passed_over(tmp_path):
    tasks = [answered("a", about="no"), answered("b", mood="pos"), answered("c", about="yes")]
    told = refusal(json_lines(tmp_path, tasks), drop_unlabelled=True)
    assert "line 2: found answers to several questions ('about', 'mood')" in told


def test_an_answer_below_rows_of_another_kind_is_not_passed_over(tmp_path):
    rows = [{"text": "a", "label": "neg"}, answered("b", mood="pos")]
    told = refusal(json_lines(tmp_path, rows), drop_unlabelled=True)
    assert "line 2: found answers to several questions ('mood')" in told


def test_the_question_that_a_run_was_trained_on_needs_no_naming(tmp_path):
    tasks = [answered(text, about="no", mood=mood) for text, mood in (("a", "pos"), ("b", "neg"))]
    path = json_lines(tmp_path, tasks)
    assert read_labelled(path, known=Known(text="text", label="mood")).labels == ["pos", "neg"]
    assert "several questions" in refusal(path, known=Known(text="text", label="label"))


def test_an_empty_list_in_place_of_a_label_is_none(tmp_path):
    rows = [{"text": f"kan {n}", "label": ["ab"[n % 2]] * (n != 1)} for n in range(4)]
    path = json_lines(tmp_path, rows)
    assert "found an empty label (1 row, line 2)" in refusal(path)
    assert read_labelled(path, drop_unlabelled=True).labels == ["a", "a", "b"]


def test_a_record_of_an_empty_list_alone_is_refused(tmp_path):
    told = refusal(json_lines(tmp_path, [{"id": 1, "tags": []}]))
    assert "no column" in told


def test_an_array_without_objects_is_refused(tmp_path):
    for content in ("[\n]\n", "[\n\n]"):
        assert "an array without objects" in refusal(write(tmp_path, "x.json", content))


def test_an_array_of_the_same_name_deeper_inside_holds_no_rows(tmp_path):
    document = {"rows": WITHIN, "meta": {"rows": [{"n": 1}]}}
    for indent in (None, 1):
        path = write(tmp_path, "x.json", json.dumps(document, indent=indent))
        assert read_labelled(path).texts == [row["text"] for row in WITHIN]


def test_a_cell_of_several_lines_alone_in_its_row_is_not_told(tmp_path):
    path = write(tmp_path, "a.csv", 'text\n"one\ntwo\nthree\nfour\nfive"\nsix\n')
    assert not any("one row" in note for note in read_texts(path, "text").notes)


@pytest.mark.parametrize(("rows", "prose", "told"), [(2, 0, False), (3, 0, True), (9, 2, False)])
def test_rows_in_one_record_are_told_where_most_of_its_lines_are_rows(tmp_path, rows, prose, told):
    lines = [*["kan,1"] * (rows - 1), *["no more"] * prose, 'had",2']
    good = [f"kan {n},{n % 2}" for n in range(9)]
    path = write(tmp_path, "a.csv", "\n".join(["text,label", *good, '"first', *lines]) + "\n")
    assert any("are one row" in note for note in read_labelled(path).notes) is told


def test_empty_cells_behind_the_last_column_do_no_harm(tmp_path):
    rows = "text,label\nkan,a\nhad,b,,\nbzaf,a,\n"
    assert read_labelled(write(tmp_path, "a.csv", rows)).labels == ["a", "b", "a"]
    told = refusal(write(tmp_path, "b.csv", "text,label\nkan,a\nhad,b,,x\n"))
    assert "line 3: found 4 columns separated by commas, expected 2: remove the extra comma" in told
    assert "quotes keep line ends" not in told
    told = refusal(write(tmp_path, "b.csv", "text,label,id\nkan,a,1\nhad,b,2,x\n"))
    assert "found 4 columns separated by commas, expected 3" in told
    told = refusal(write(tmp_path, "c.csv", 'id,text,label\n1,kan,a\n2,"""had"" b"\n'))
    assert "line 3: found 2 columns separated by commas, expected 3: complete the row" in told
    assert "quotes keep line ends" not in told


def test_the_separator_is_the_one_between_texts_and_few_labels(tmp_path):
    rows = "".join(f"kan {n}, had {n};{'ab'[n % 2]}\n" for n in range(6))
    read = read_labelled(write(tmp_path, "a.csv", rows))
    assert (read.texts[0], read.labels) == ("kan 0, had 0", [*"ababab"])


def test_the_separator_is_the_one_that_more_rows_agree_on(tmp_path):
    """Between commas, which all rows but one have, the first column is of one cell alone."""
    rows = "".join(f"kan{',' * (n != 7)} had {n};{'ab'[n % 2]}\n" for n in range(20))
    read = read_labelled(write(tmp_path, "a.csv", rows))
    assert (read.texts[0], read.labels) == ("kan, had 0", [*"ab"] * 10)


def test_one_row_in_ten_may_have_other_cells_than_the_separator_tells(tmp_path):
    rows = [f"kan {n};{'ab'[n % 2]}\n" for n in range(9)] + ["kan; had;b\n"]
    told = refusal(write(tmp_path, "a.csv", "".join(rows)))
    assert "line 10: found 3 columns separated by semicolons, expected 2" in told
    assert "semicolons" not in refusal(write(tmp_path, "a.csv", "".join(rows[1:])))


def test_a_header_tells_the_separator_whatever_is_wrong_below_it(tmp_path):
    told = refusal(write(tmp_path, "a.csv", 'text;label\nkan;a\n"had" bzaf;b\n'))
    assert "line 3" in told and "expected a semicolon or the end of the line" in told


def test_one_row_of_bars_or_semicolons_is_a_sentence(tmp_path):
    for line in ("kan had; bzaf", "kan had | bzaf"):
        assert read_texts(write(tmp_path, "a.csv", line + "\n")).texts == [line]


@pytest.mark.parametrize("mark", ";|")
def test_two_rows_of_bars_or_semicolons_are_a_table(tmp_path, mark):
    path = write(tmp_path, "a.csv", f"kan{mark}a\nhad{mark}b\n")
    assert read_labelled(path, 1, 2).labels == ["a", "b"]


def test_files_of_a_folder_of_classes_end_in_either_case_and_others_are_told(tmp_path):
    for name in ("neg/1.txt", "pos/1.txt", "pos/2.TXT", "pos/3", "neu/1.TXT", "README.md"):
        (tmp_path / "set" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "set" / name).write_text(name)
    rows = read_labelled(tmp_path / "set")
    assert rows.labels == ["neg", "neu", "pos", "pos"]
    (note,) = rows.notes
    assert "passed over 'README.md' and 1 more" in note


@pytest.mark.parametrize("rows", [4, 12, 18, 30])
@pytest.mark.parametrize("names", ["review,verdict", "stars,comment", "message,avis_client"])
def test_a_usual_text_name_beside_a_word_is_a_header_above_few_rows(tmp_path, names, rows):
    text_first = names.split(",")[0] in ("review", "message")
    pairs = [(f"had lfilm {k} zwin", "pos" if k % 2 else "neg") for k in range(rows)]
    lines = [",".join(pair if text_first else pair[::-1]) for pair in pairs]
    read = read_labelled(write(tmp_path, "a.csv", "\n".join([names, *lines])))
    assert len(read) == rows and {*read.labels} == {"pos", "neg"}
    assert "first row read as a header" in read.notes[0]


def test_a_label_that_is_a_usual_name_stands_above_no_texts(tmp_path):
    rows = ["comment,hello", "question,how are you", "question,who are you"]
    rows += ["question,how are you", "statement,hm"]
    read = read_labelled(write(tmp_path, "a.csv", "\n".join(rows)))
    assert read.labels == ["comment", "question", "question", "question", "statement"]


def test_records_with_contacts_are_no_chat(tmp_path):
    one = {"contacts": {"a": 1}, "text": "good", "label": "pos"}
    path = write(tmp_path, "a.json", f"{json.dumps(one)}\n{json.dumps({**one, 'label': 'neg'})}\n")
    assert read_labelled(path).labels == ["pos", "neg"]


def test_a_text_that_is_a_usual_name_is_a_row_where_its_label_is_one(tmp_path):
    path = write(tmp_path, "a.csv", "message,pos\nhad zwin,pos\nhad khayb,neg\nmzyan,pos\n")
    assert read_labelled(path).labels == ["pos", "pos", "neg", "pos"]


def test_a_header_below_many_blank_lines_is_left_out(tmp_path):
    path = write(tmp_path, "a.txt", "\n" * 5_000 + "text\nhad zwin\n")
    for every in (False, True):
        read = read_texts(path, header=True, every_row=every)
        assert "text" not in read.texts and read.texts[-1] == "had zwin"


def test_a_folder_of_one_class_or_of_hidden_ones_is_no_table(tmp_path):
    for label in ("a", ".b"):
        (tmp_path / "set" / label).mkdir(parents=True)
        (tmp_path / "set" / label / "0.txt").write_text("kan")
    assert "a folder for each class" in refusal(tmp_path / "set")
    (tmp_path / "set" / "c").mkdir()
    assert "a folder for each class" in refusal(tmp_path / "set")
    (tmp_path / "set" / "c" / "0.txt").write_text("had")
    assert read_labelled(tmp_path / "set").labels == ["a", "c"]


def test_a_folder_for_each_class_in_another_encoding(tmp_path):
    for label, text in (("a", "déjà"), ("b", "naïf")):
        (tmp_path / "set" / label).mkdir(parents=True)
        (tmp_path / "set" / label / "0.txt").write_bytes(text.encode("cp1252"))
    assert read_labelled(tmp_path / "set", encoding="cp1252").texts == ["déjà", "naïf"]


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
def test_what_class_names_stand_for(tmp_path):
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    about = {"info": {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}}}
    metadata = {b"huggingface": json.dumps(about).encode()}

    def labels(values, metadata=metadata):
        columns = {"text": [f"kan {n}" for n in range(len(values))], "label": values}
        table = arrow.table(columns).replace_schema_metadata(metadata)
        parquet.write_table(table, tmp_path / "x.parquet")
        return read_labelled(tmp_path / "x.parquet", drop_unlabelled=True).labels

    assert labels([0, 1, -1, 2]) == ["no", "yes", "2"]
    assert labels([-1, 0, 1], {}) == ["-1", "0", "1"]
    assert labels([True, False]) == ["True", "False"]
    assert labels([0.5, float("nan"), None]) == ["0.5"]


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs pyarrow")
def test_a_column_of_few_texts_and_empty_cells(tmp_path):
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    columns = {"text": ["kan", None, "had"] * 3, "label": ["a", None, "b"] * 3}
    parquet.write_table(arrow.table(columns), tmp_path / "x.parquet")
    read = read_labelled(tmp_path / "x.parquet", drop_unlabelled=True)
    assert (read.texts, read.labels) == (["kan", "had"] * 3, ["a", "b"] * 3)


def test_what_is_no_text_in_a_telegram_message(tmp_path):
    messages = [
        {"type": "service", "action": "join", "text": "joined"},
        {"type": "message", "text": None},
        {"type": "message", "text": "kan\0had"},
        {"text": "bzaf"},
    ]
    path = write(tmp_path, "result.json", json.dumps({"messages": messages}))
    assert read_texts(path).texts == ["kan had", "bzaf"]


def test_a_list_of_a_task_holds_no_rows(tmp_path):
    record = {"entities": [{"start": 0, "end": 3}], "kelma": "kan had"}
    assert read_texts(json_lines(tmp_path, [record]), 2).texts == ["kan had"]
    pretty = json.dumps({"id": 1, "annotations": [{"text": "x", "label": "a"}]}, indent=1)
    assert "does not end on its line" in refusal(write(tmp_path, "x.json", pretty))


def test_two_backslashes_before_a_closing_quote_are_two(tmp_path):
    path = write(tmp_path, "a.csv", 'text,label\n"C:\\\\",a\n"kan, had",b\n')
    assert read_labelled(path).texts == ["C:\\\\", "kan, had"]


def test_quotes_around_the_texts_alone_between_tabs_are_part_of_them(tmp_path):
    rows = "".join(f'"kan {n} had"\t{n % 2}\n' for n in range(4))
    read = read_labelled(write(tmp_path, "a.tsv", rows), 1, 2)
    assert read.texts == [f'"kan {n} had"' for n in range(4)]


def test_doubled_stray_quotes_between_tabs_make_no_rows_one(tmp_path):
    rows = 'text\tlabel\n"a ""b\tp\nkan\tq\nc"\tp\n'
    assert read_labelled(write(tmp_path, "a.tsv", rows)).texts == ['"a ""b', "kan", 'c"']


def test_a_line_too_long_in_several_pieces_is_one_bad_line(tmp_path, monkeypatch):
    monkeypatch.setattr(file_lines, "LONGEST", 20)
    monkeypatch.setattr(file_lines, "CHUNK", 8)
    for end in ("\nzwin\n", "\nzwin", ""):
        path = write(tmp_path, "x.txt", "kan\n" + "had " * 5 + "h" + end)
        with pytest.raises(DataError, match="line 2: longer than"):
            read_texts(path)
    assert read_texts(write(tmp_path, "y.txt", "kan\n" + "hadi" * 5 + "\n")).texts[1] == "hadi" * 5


@pytest.mark.parametrize("odd", [5, True, {"a": "b"}, [{"type": "bold", "text": None}]])
def test_a_text_of_a_chat_that_is_none(tmp_path, odd):
    export = {"messages": [{"text": odd}, {"text": "kan had"}]}
    assert read_texts(write(tmp_path, "result.json", json.dumps(export))).texts == ["kan had"]


@pytest.mark.parametrize("odd", [True, None, "b"])
def test_responses_of_argilla_that_are_no_list_are_no_answers(tmp_path, odd):
    rows = [{"fields": {"text": f"kan {n}"}, "responses": {"q": odd}} for n in range(3)]
    rows[1]["responses"]["q"] = [{"value": "a"}]
    read = read_labelled(json_lines(tmp_path, rows), drop_unlabelled=True)
    assert (read.texts, read.labels) == (["kan 1"], ["a"])
