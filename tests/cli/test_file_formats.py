"""Files as people have them, read through the command line: what is understood, what refused."""

from __future__ import annotations

import io
import json
import zipfile
from itertools import pairwise

import pytest

from superconext.core.progress import Progress
from superconext.text.normalize import normalizer_of
from superconext.text.tokenize import Tokenizer
from superconext.vectors.text_corpus import Lines, Sentences
from tests.cli.conftest import blame, call_main

PAIRS = [("pos", "زوين بزاف"), ("neg", "c'est très nul, non; vraiment"), ("pos", "had lfilm zwin")]
TEXTS, LABELS = [text for _, text in PAIRS], [label for label, _ in PAIRS]


def rows_of(path, *words):
    """The rows of a file as `data split` writes them, sorted, and the notes."""
    out = path.with_name("split")
    none = ("--dev", 0, "--test", 0, "--normalize", "none", "--force", "--format", "jsonl")
    said = call_main("data", "split", path, "--out", out, *none, *words)
    assert said.code == 0, said.err
    lines = (out / "train.jsonl").read_text(encoding="utf-8").splitlines()
    return sorted((r["label"], r["text"]) for r in map(json.loads, lines)), said.err


def understood(path, *words, pairs=PAIRS):
    rows, notes = rows_of(path, *words)
    assert rows == sorted(pairs), notes
    return notes


def refused(path, *words):
    line = blame(call_main("data", "split", path, "--out", path.with_name("none"), *words))
    assert path.name in line and not path.with_name("none").exists()
    return line


def table(separator, header=("label", "text"), quote='"'):
    cells = [header, *PAIRS]
    quoted = [
        separator.join(f"{quote}{c}{quote}" if set(c) & set(",;") else c for c in row)
        for row in cells
    ]
    return "\n".join(quoted) + "\n"


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# Separators


@pytest.mark.parametrize("separator,name", [(";", "semicolon"), ("\t", "tab"), ("|", "bar")])
@pytest.mark.parametrize("header", [("label", "text"), ("sentiment", "tweet"), ("التصنيف", "النص")])
def test_csv_with_other_separators(tmp_path, separator, name, header):
    notes = understood(write(tmp_path / "x.csv", table(separator, header)))
    assert f"separated by {name}s" in notes
    assert header[0] == "label" or f"'{header[1]}' read as text, '{header[0]}' as label" in notes


def test_the_separator_is_the_one_on_which_rows_agree(tmp_path):
    commas = [("a", "un, deux; trois"), ("b", "non; si"), ("a", "oui")] * 3
    text = "\n".join(f'{label},"{text}"' for label, text in commas)
    assert "separated" not in understood(write(tmp_path / "x.csv", text), pairs=commas)
    bare = [("a", "un, deux, trois"), ("b", "non, si"), ("a", "oui")] * 3
    text = "\n".join(f"{text};{label}" for label, text in bare)
    assert "semicolons" in understood(write(tmp_path / "y.csv", text), pairs=bare)


def test_rows_that_agree_on_no_separator(tmp_path):
    assert "1 column" in refused(write(tmp_path / "x.csv", "text,label\nun; deux\na,b\n"))
    line = refused(write(tmp_path / "y.csv", "texte;classe\nun;a\ndeux;b;c\n"))
    assert "line 3" in line and "semicolons" in line and "quote the cell" in line


def test_tsv_as_pandas_quotes_it(tmp_path):
    pairs = [("pos", 'il a dit "oui"\nhier'), ("neg", "sans rien"), ("neg", "un\tdeux")]
    cells = [f'{label}\t"{text.replace(chr(34), chr(34) * 2)}"' for label, text in pairs]
    path = write(tmp_path / "x.tsv", "\n".join(["label\ttext", *cells]))
    assert "cells read as quoted" in understood(path, pairs=pairs)
    bare = [("pos", '"des guillemets"'), ("neg", '"un" mot "deux"'), ("neg", 'x ""y""')]
    path = write(tmp_path / "y.tsv", "label\ttext\n" + "\n".join("\t".join(p) for p in bare))
    assert "quoted" not in understood(path, pairs=bare)


def test_tsv_as_label_studio_quotes_it(tmp_path):
    """Every cell of text is quoted, the names of the columns too."""
    pairs = [("pos", "had lfilm zwin"), ("neg", "خايب بزاف")]
    rows = [f'1\t"{label}"\t""\t"{text}"' for label, text in pairs]
    content = "\n".join(['"annotator"\t"label"\t"lead_time"\t"text"', *rows])
    notes = understood(write(tmp_path / "x.tsv", content), pairs=pairs)
    assert "cells read as quoted" in notes


def test_tsv_with_one_quoted_cell_over_lines_names_csv(tmp_path):
    line = refused(write(tmp_path / "x.tsv", 'label\ttext\na\t"un" b\nb\tc\n"c\nd\te\n'))
    assert "line 4" in line and ".csv" in line


# Columns


def test_usual_names_are_used_and_several_refused(tmp_path):
    path = write(tmp_path / "x.csv", "id,tweet,comment,polarity\n1,a b,c,p\n2,c d,e,n\n")
    line = refused(path)
    assert "'tweet', 'comment' could be the text column" in line and "--text-column" in line
    notes = understood(path, "--text-column", "tweet", pairs=[("p", "a b"), ("n", "c d")])
    assert "'polarity' as label" in notes
    path = write(tmp_path / "x.jsonl", '{"review": "a b", "category": 1, "class": 2}\n')
    assert "'category', 'class' could be the label column" in refused(path)


def test_one_usual_name_of_each_kind_is_enough_among_several(tmp_path):
    lines = [f'{i},2022-01-0{i},"{text}",{label},ar' for i, (label, text) in enumerate(PAIRS)]
    path = write(tmp_path / "x.csv", "\n".join(["id,created_at,tweet,sentiment,user", *lines]))
    assert "'tweet' read as text, 'sentiment' as label" in understood(path)


def test_a_header_above_columns_asked_for_by_number(tmp_path):
    pairs = [("p" if i % 2 else "n", f"a rather long answer of number {i}") for i in range(40)]
    lines = [f'2024/03/{i},"{text}",{label}' for i, (label, text) in enumerate(pairs)]
    table = "\n".join(["Horodateur,ما رأيك في الخدمة؟,التقدير", *lines])
    asked = ("--text-column", "2", "--label-column", "3")
    path = write(tmp_path / "x.csv", table)
    notes = understood(path, *asked, pairs=pairs)
    assert "first row read as a header: column 'ما رأيك في الخدمة؟' read as text" in notes
    path = write(tmp_path / "y.csv", table.partition("\n")[2])
    assert "no header found" in understood(path, *asked, pairs=pairs)


def test_an_odd_header_above_few_rows_is_no_class(tmp_path):
    pairs = [("Retard" if i % 3 else "Facture", f"{'c' * i} reçu") for i in range(1, 10)]
    lines = [f"T-{i};{i}/3/24;{text};{label};web" for i, (label, text) in enumerate(pairs)]
    table = ["N° ticket;Date;Message du client;Catégorie (agent);canal", *lines]
    asked = ("--text-column", "3", "--label-column", "4")
    path = write(tmp_path / "x.csv", "\n".join(table))
    assert "first row read as a header" in understood(path, *asked, pairs=pairs)
    # Without a number or a date it may be a rare label: then one is told how to say which.
    path = write(tmp_path / "y.csv", "\n".join(line.split(";", 2)[2] for line in table))
    asked = ("--text-column", "1", "--label-column", "2")
    first = ("Catégorie (agent)", "Message du client")
    notes = understood(path, *asked, pairs=[first, *pairs])
    assert "warning" in notes and "'Catégorie (agent)'" in notes
    assert "--header" in notes and "--no-header" in notes
    assert "warning" not in understood(path, *asked, "--no-header", pairs=[first, *pairs])
    assert "warning" not in understood(path, *asked, "--header", pairs=pairs)
    path = write(tmp_path / "z.csv", "\n".join(lines))
    asked = ("--text-column", "3", "--label-column", "4")
    notes = understood(path, *asked, pairs=pairs)
    assert "no header found" in notes and "warning" not in notes


def test_a_column_named_by_digits_comes_before_a_number(tmp_path):
    lines = [f"{label};{i};{text}" for i, (label, text) in enumerate([("p", "a b"), ("n", "c d")])]
    path = write(tmp_path / "x.csv", "\n".join(["2024;3;1", *lines]))
    asked = ("--text-column", "1", "--label-column", "2024")
    assert "no header" not in understood(path, *asked, pairs=[("p", "a b"), ("n", "c d")])
    # In a file without a header the same digits are a number: 1 is a label, which repeats.
    path = write(tmp_path / "y.csv", "a b;1\nc d;2\ne f;1\ng h;2\n")
    pairs = [("1", "a b"), ("2", "c d"), ("1", "e f"), ("2", "g h")]
    notes = understood(path, "--text-column", "1", "--label-column", "2", pairs=pairs)
    assert "no header found: column 1 read as text, column 2 as label" in notes


def test_a_first_line_that_names_the_separator(tmp_path):
    for separator, name in ((";", "semicolon"), ("\t", "tab"), (",", "comma")):
        path = write(tmp_path / "x.csv", f"sep={separator}\r\n" + table(separator))
        assert f"{name}s separate columns, as the first line says" in understood(path)
    path = write(tmp_path / "x.csv", "sep=;\ntext;label\na b;p\nc d\n")
    assert "line 4" in refused(path)


def test_a_label_that_json_has_as_null_is_none(tmp_path):
    path = write(
        tmp_path / "x.jsonl",
        '{"text": "a b", "label": "p"}\n{"text": "c", "label": null}\n'
        '{"text": "d", "label": NaN}\n{"text": "e f", "label": "n"}\n',
    )
    assert "line 2: found an empty label" in refused(path)
    pairs = [("p", "a b"), ("n", "e f")]
    assert "2 rows without a label left out" in understood(path, "--drop-unlabelled", pairs=pairs)


# Encodings


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-be-bom", "utf-32"])
def test_wide_encodings_with_a_mark(tmp_path, codec):
    mark = b"\xfe\xff" if codec == "utf-16-be-bom" else b""
    data = mark + table(";").encode(codec.removesuffix("-bom"))
    assert f"read as {codec[:6]}" in understood(write(tmp_path / "x.csv", data))
    assert "line" in refused(write(tmp_path / "y.csv", data[:-1]))


def test_a_nul_alone_on_a_line_of_utf_8_is_no_wide_encoding(tmp_path):
    text = table(";").replace("\n", "\n\0\n", 1)
    line = refused(write(tmp_path / "x.csv", text))
    assert "line 2: found a NUL byte, expected text: save the file as UTF-8" in line


@pytest.mark.parametrize("codec", ["utf-16", "utf-32"])
@pytest.mark.parametrize("end", ["le", "be"])
def test_wide_encodings_without_a_mark_are_named(tmp_path, codec, end):
    path = write(tmp_path / "x.csv", table(";").encode(f"{codec}-{end}"))
    for asked in ("utf-16", "utf-32"):
        line = refused(path, "--encoding", asked)
        assert f"found no byte order mark, expected text in {asked}: give" in line
        assert line.endswith(f"give --encoding {codec}-{end}")
    understood(path, "--encoding", f"{codec}-{end}")
    assert refused(write(path, "label,text\n"), "--encoding", codec).endswith("out --encoding")
    line = refused(write(path, table(";").encode("windows-1256")), "--encoding", codec)
    assert "give --encoding " in line and codec not in line.split("give --encoding ")[1]


@pytest.mark.parametrize("codec", ["utf-7", "iso2022_jp", "hz", "utf-8-sig", "unicode_escape"])
def test_encodings_with_a_state_name_the_line_they_fail_at(tmp_path, codec):
    line = refused(
        write(tmp_path / "x.csv", b"label,text\np,+AGE-\nn,\\x\xe9 \xff\n"), "--encoding", codec
    )
    assert f"expected text in {codec}: give --encoding" in line and "x.csv, line " in line


def test_a_named_encoding_is_that_of_what_is_not_utf_8(tmp_path):
    data = table(",").encode("windows-1256")
    path = write(tmp_path / "x.csv", data)
    line = refused(path)
    assert "line 2" in line and "not UTF-8" in line and "--encoding" in line
    assert "windows-1256" in understood(path, "--encoding", "windows-1256")
    same = write(tmp_path / "y.csv", table(","))
    assert "windows" not in understood(same, "--encoding", "windows-1256")
    assert "line 2" in refused(path, "--encoding", "ascii")
    for name in ("klingon", "idna", "hex"):
        assert call_main("data", "split", path, "--out", "x", "--encoding", name).code == 2


def test_the_likely_encoding_is_offered(tmp_path):
    pytest.importorskip("charset_normalizer")
    text = "label,text\n" + "pos,الفيلم زوين بزاف والممثلين مزيانين\n" * 5
    line = refused(write(tmp_path / "x.csv", text.encode("windows-1256")))
    assert "--encoding windows-1256 if 'الفيلم زوين" in line
    text = "label,text\n" + "pos,c'était très réussi, j'ai adoré\n" * 5
    assert "windows-1252" in refused(write(tmp_path / "x.csv", text.encode("cp1252")))


def test_a_header_in_another_encoding_is_not_a_missing_column(tmp_path):
    table = "Message du réclamant;Catégorie\na b;p\nc d;n\ne été;p\n"
    path = write(tmp_path / "x.csv", table.encode("cp1252"))
    asked = ("--text-column", "Message du réclamant", "--label-column", "Catégorie")
    line = blame(call_main("data", "inspect", path, *asked))
    assert "line 1" in line and "not UTF-8" in line and "--encoding" in line
    assert call_main("data", "inspect", path, *asked, "--encoding", "cp1252").code == 0


# Spreadsheets


def workbook(path, *sheets):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for number, rows in enumerate(sheets):
        sheet = book.create_sheet(f"sheet{number}")
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_a_spreadsheet(tmp_path):
    sheet = [[], ["id", "sentence", "label"], [1, "a b", 1.0], [], [2, 12, True], [3, "c", "x"]]
    notes = understood(
        workbook(tmp_path / "x.xlsx", [], sheet, [["other"]]),
        pairs=[("1", "a b"), ("TRUE", "12"), ("x", "c")],
    )
    assert "sheet 'sheet1' read, not 'sheet0', 'sheet2'" in notes and "blank line" in notes
    path = workbook(tmp_path / "y.xlsx", [["text", "label"], ["a", "p"], ["b"]])
    assert "line 3" in (line := refused(path)) and "empty label" in line
    assert "is empty" in refused(workbook(tmp_path / "z.xlsx", []))


@pytest.mark.parametrize(
    "top,header",
    [
        ([["Survey of comments, Rabat"], [], ["exported 3 May"]], ["label", "text"]),
        ([["استبيان التعليقات"]], ["التصنيف", "النص"]),
        ([["Survey"]], ["Bewertung", "Äußerung"]),
    ],
)
def test_titles_above_the_header(tmp_path, top, header):
    words = ("--text-column", header[1], "--label-column", header[0])
    words *= header[0] == "Bewertung"
    notes = understood(workbook(tmp_path / "x.xlsx", [*top, header, *PAIRS]), *words)
    assert f"above the header left out: '{top[0][0]}'" in notes
    lines = [";".join([*row, "", ""][:2]) for row in [*top, header, *PAIRS]]
    quoted = "\n".join(lines).replace("nul, non; vraiment", "nul, non: vraiment")
    pairs = [(label, text.replace(";", ":")) for label, text in PAIRS]
    notes = understood(write(tmp_path / "x.csv", quoted), *words, pairs=pairs)
    assert "above the header left out" in notes


def test_rows_below_a_title_are_as_wide_as_the_header(call, finished, tmp_path):
    sheet = [["Survey"], ["id", "text", "note"], *([n, f"kan {n} zwin"] for n in range(6))]
    said = call("predict", finished.folder, workbook(tmp_path / "x.xlsx", sheet))
    assert said.code == 0 and "1 row above the header left out: 'Survey'" in said.err
    assert [line.split("\t")[1] for line in said.out.splitlines()] == [r[1] for r in sheet[2:]]


def test_titles_that_may_be_rows(tmp_path):
    sheet = [["Project", "Darija"], ["Date", "2024"], ["label", "text"], *PAIRS]
    line = refused(workbook(tmp_path / "x.xlsx", sheet))
    assert "found the header 'label', 'text' in row 3" in line and "--no-header" in line
    rows_of(tmp_path / "x.xlsx", "--no-header")


def test_remarks_above_the_header_are_no_rows(tmp_path):
    for top in ("# export par Amina", "# export, par Amina", "# a, b, c\n#"):
        notes = understood(write(tmp_path / "x.csv", f"{top}\n" + table(",")))
        assert "above the header left out: '# " in notes
    line = refused(write(tmp_path / "x.csv", "#bzaf zwin,pos\n" + table(",")))
    assert "in row 2" in line, "a hashtag"


@pytest.mark.parametrize("name", ["x.tsv", "quoted.tsv", "x.csv", "spaced.txt"])
def test_tables_of_r_have_no_name_above_row_names(tmp_path, name):
    separator = {"tsv": "\t", "csv": ";", "txt": " "}[name[-3:]]
    quote = "" if name == "x.tsv" else '"'
    rows = [("label", "text"), *((f"{n}", *pair) for n, pair in enumerate(PAIRS, 1))]
    lines = [separator.join(f"{quote}{cell}{quote}" for cell in row) for row in rows]
    notes = understood(write(tmp_path / name, "\n".join(lines) + "\n"))
    assert "header one cell short, as R writes it" in notes
    lines[2] = lines[2].replace("2", "1", 1)  # no number of its own
    assert "found 3 columns" in refused(write(tmp_path / name, "\n".join(lines) + "\n"))


@pytest.mark.parametrize(
    "header,row",
    [
        ("id,label,text", "{n},pos,zwin had lfilm n{n}, walakin twil"),
        ("n°,text,label", "{n},zwin had lfilm n{n},pos,4,5"),
        ("id,score,label,text", "{n},3,{n},pos,zwin had lfilm n{n}"),
        ("id,text,label,score", "{n},zwin had lfilm n{n},pos,{n},5"),
    ],
)
def test_a_comma_in_every_sentence_makes_no_row_names(tmp_path, header, row):
    lines = "\n".join([header, *(row.format(n=n) for n in range(1, 30))])
    line = refused(write(tmp_path / "x.csv", lines), "--text-column", "text")
    assert "line 2: found " in line and "quote the cell" in line


def test_tables_of_r_with_ids(tmp_path):
    rows = [f'"{n}","{label}",17{n},"{text}"' for n, (label, text) in enumerate(PAIRS, 1)]
    lines = ['"label","id","text"', *rows]
    notes = understood(write(tmp_path / "x.csv", "\n".join(lines)))
    assert "header one cell short, as R writes it" in notes


def test_a_spreadsheet_that_is_none(tmp_path):
    assert "workbook" in refused(write(tmp_path / "x.xlsx", b"label,text\na,b\n"))
    assert "workbook" in refused(write(tmp_path / "y.xlsx", b"PK\x03\x04broken"))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("train.csv", "label,text\na,b\n")
    assert "unpack" in refused(write(tmp_path / "z.csv", packed.getvalue()))


def hostile(path, sheet, shared=""):
    """A workbook whose one sheet has this XML."""
    good = workbook(path.with_name("good.xlsx"), [["text", "label"], ["a", "b"]])
    with zipfile.ZipFile(good) as source, zipfile.ZipFile(path, "w", 8) as out:
        for member in source.namelist():
            content = source.read(member)
            if member.endswith("sheet1.xml"):
                content = sheet
            if member.endswith("sharedStrings.xml") and shared:
                content = shared
            out.writestr(member, content)
    return path


SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'


@pytest.mark.parametrize(
    "sheet,said",
    [
        (SHEET + "<row>" * 30, "not a readable workbook"),
        (SHEET + '<row r="9999999"><c r="A9999999"><v>1</v></c></row></sheetData>', "rows"),
        (SHEET + " " * (200 << 20), "unpacks to"),
        (
            '<!DOCTYPE w [<!ENTITY a "aaaaaaaaaa">'
            + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise("abcdefghi"))
            + "]>" + SHEET + '<row><c t="str"><v>&i;</v></c></row></sheetData></worksheet>',
            "not a readable workbook",
        ),
    ],
)  # fmt: skip
def test_a_hostile_spreadsheet(tmp_path, sheet, said):
    assert said in refused(hostile(tmp_path / "x.xlsx", sheet))


# Parquet and Hugging Face datasets


def test_parquet_with_class_names(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    feature = {"names": ["neg", "pos"], "_type": "ClassLabel"}
    about = {b"huggingface": json.dumps({"info": {"features": {"label": feature}}}).encode()}
    columns = {"sentence": TEXTS, "label": [int(label == "pos") for label in LABELS]}
    whole = arrow.table(columns).replace_schema_metadata(about)
    parquet.write_table(whole, tmp_path / "x.parquet")
    assert "'sentence' read as text" in understood(tmp_path / "x.parquet")
    assert "Parquet" in refused(write(tmp_path / "y.parquet", b"PAR1 broken PAR1"))

    for place, name in ((0, "data-0.arrow"), (2, "data-1.arrow")):
        folder = tmp_path / "saved" / "train"
        folder.mkdir(parents=True, exist_ok=True)
        part = whole.slice(place, 2)
        with arrow.ipc.new_stream(str(folder / name), part.schema) as out:
            out.write_table(part)
    files = [{"filename": "data-0.arrow"}, {"filename": "data-1.arrow"}]
    write(folder / "state.json", json.dumps({"_data_files": files}))
    understood(folder)
    tokenizer = Tokenizer(normalizer_of("none", TEXTS))
    sentences = Sentences(Lines([folder]), tokenizer, None, Progress())
    assert list(sentences) == [tokenizer(text) for text in TEXTS[:4]]
    identity = sentences.identity()
    write(folder / "more.txt", "not a part of it")
    assert sentences.identity() == identity
    write(tmp_path / "saved" / "dataset_dict.json", '{"splits": ["train"]}')
    assert "saved/train" in refused(tmp_path / "saved").replace("\\", "/")
    write(folder / "state.json", json.dumps({"_data_files": [{"filename": "../../x.parquet"}]}))
    assert "state.json" in blame(call_main("data", "inspect", folder))
    write(folder / "state.json", json.dumps({"_data_files": files}))
    write(folder / "data-1.arrow", b"broken")
    assert "not readable as an Arrow file" in blame(call_main("data", "inspect", folder))


# Annotation tools


def choice(label, **others):
    result = {"from_name": "sentiment", "type": "choices", "value": {"choices": [label]}}
    return {"result": [result], **others}


def vote(label):
    return {"value": label, "status": "submitted"}


EXPORTS = {
    "Label Studio": [
        {"data": {"text": text}, "annotations": [choice("x", was_cancelled=True), choice(label)]}
        for label, text in PAIRS
    ],
    "Argilla": [
        {
            "fields": {"text": text},
            "responses": {"feeling": [vote(label), {"value": "x", "status": "draft"}]},
        }
        for label, text in PAIRS
    ],
    "Argilla 1": [
        {
            "fields": {"text": text},
            "responses": [{"values": {"feeling": {"value": label}}, "status": "submitted"}],
        }
        for label, text in PAIRS
    ],
    "Argilla 0": [
        {"inputs": {"text": text}, "annotation": label, "annotation_agent": "me"}
        for label, text in PAIRS
    ],
    "doccano": [{"id": 1, "data": text, "label": [label]} for label, text in PAIRS],
    "doccano 1": [{"text": text, "annotations": [{"label": label}]} for label, text in PAIRS],
    "": [{"text": text, "label": [label]} for label, text in PAIRS],
}  # fmt: skip


@pytest.mark.parametrize("tool", EXPORTS)
def test_exports_of_annotation_tools(tmp_path, tool):
    records = EXPORTS[tool]
    lines = "\n".join(map(json.dumps, records))
    for name, content in [
        ("x.jsonl", lines),
        ("x.json", json.dumps(records)),
        ("y.json", json.dumps(records, indent=2, ensure_ascii=False)),
    ]:
        notes = understood(write(tmp_path / name, content))
        assert not tool or f"export of {tool.split(' ')[0]}" in notes or "Studio" in notes


def test_exports_that_are_wrong(tmp_path):
    two = {"id": 2, "data": {"text": "b"}, "annotations": [choice("x")]}
    two["annotations"][0]["result"][0]["value"]["choices"].append("y")
    first = EXPORTS["Label Studio"][0]
    assert "2 labels ('x', 'y')" in refused(write(tmp_path / "a.json", json.dumps([first, two])))
    none = [{"id": 1, "data": {"text": "b"}, "annotations": []}, first]
    assert "empty label" in refused(write(tmp_path / "b.json", json.dumps(none)))
    whole = json.dumps(EXPORTS["Label Studio"])
    assert "never closed" in refused(write(tmp_path / "c.json", whole[:-2]))
    assert "bracket too many" in refused(write(tmp_path / "d.json", whole + "]"))
    assert "line 2: found '1, 2' beside the objects of an array" in refused(
        write(tmp_path / "e.json", "[\n1, 2]")
    )
    assert "nested too deep" in refused(
        write(tmp_path / "f.json", '[{"a":' + "[" * 99_999 + "]" * 99_999 + "}]")
    )


ROWS = [{"text": f"zwin had {n}", "label": "pos"} for n in range(9)]
ONE_A_ROW = 'all rows in one object, expected {"text": "...", "label": "..."} for each'


@pytest.mark.parametrize(
    ("document", "indent", "found"),
    [
        ({"train": ROWS, "test": ROWS}, None, "found objects in another array than 'train'"),
        ({"train": ROWS, "test": ROWS}, 2, "found objects in another array than 'train'"),
        ({row["text"]: row["label"] for row in ROWS}, None, ONE_A_ROW),
        ({"columns": ["text"], "data": [[row["text"]] for row in ROWS]}, None, ONE_A_ROW),
        ({"pos": [row["text"] for row in ROWS]}, None, ONE_A_ROW),
        (ROWS[0], 2, "line 1: found an object that does not end on its line"),
        ([row["text"] for row in ROWS], None, "found a JSON array"),
        ({"the tweet": "zwin", "the class": "pos"}, None, "give one of these with --text-column"),
    ],
)
def test_json_of_another_shape_is_told_what_to_make_of_it(
    call, finished, tmp_path, document, indent, found
):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(document, indent=indent), encoding="utf-8")
    for words in (("train", path, "--out", tmp_path / "run"), ("predict", finished.folder, path)):
        line = blame(call(*words))
        assert found in line and (indent or line.count("x.json") == 1)


def test_an_item_of_a_json_list_is_named_by_its_place(call, tmp_path):
    rows = [{"text": f"zwin {at}", "label": ["pos"]} for at in range(8)]
    rows[5]["label"] = ["pos", "neg"]
    file = tmp_path / "doccano.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    line = blame(call("train", file, "--out", tmp_path / "run"))
    assert f"{file}, line 1, item 6: 'label' has several values" in line
    assert "pandas" not in line
