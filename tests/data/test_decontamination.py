"""Which sentences of unlabelled text say what a labelled file says."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from superconext.core.errors import DataError
from superconext.data.duplicates import Decontamination, wording
from superconext.text.markup import cleaned, parts
from superconext.text.normalize import Normalizer
from superconext.text.tokenize import Tokenizer
from superconext.vectors.table import WordVectors
from superconext.vectors.text_corpus import Lines
from tests.cli.conftest import BAD, COMMON, GOOD, call_main, rows, write_table

TOKENIZER = Tokenizer(Normalizer("arabic"))


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("فيلم زوين", True),
        ("فيلم زوين'", True),
        ('"فيلم زوين" !!! 😀', True),
        ("@someone فيلم زوين https://a.example/b", True),
        ("فيلم زوين بزاف", False),
        ("زوين فيلم", False),
        ("فيلمزوين", False),
    ],
)
def test_words_alone_make_a_text(tmp_path, text, same):
    labelled = write_table(tmp_path / "test.tsv", [("pos", "فيلم زوين")])
    assert Decontamination.of_files([labelled], TOKENIZER).holds(TOKENIZER(text)) is same


def test_a_text_without_a_word_leaves_nothing_out(tmp_path):
    labelled = write_table(tmp_path / "test.tsv", [("pos", "!!! 😀"), ("neg", "@someone")])
    left_out = Decontamination.of_files([labelled], TOKENIZER)
    assert len(left_out) == 0 and not left_out.holds(TOKENIZER("???"))


MARKED = [
    "RT @amal: l film had zwin bzaf",
    "Tom &amp; Jerry kanou khayb",
    "good<br>film lyouma mzyan",
    "awal cell hna dyal\ttani cell hna dyal",
    "wa7ed zwin bzaf hna\njouj khayb walo hna",
]


def test_a_pool_has_no_text_that_it_cleans(tmp_path):
    file = tmp_path / "t.json"
    rows = [{"text": text, "label": "pos"} for text in (*MARKED, "hadi jomla 3adia")]
    file.write_text(json.dumps(rows), encoding="utf-8")
    collected = tmp_path / "collected.txt"
    collected.write_text("\n".join([*MARKED, "hadi jomla jdida"]) + "\n", encoding="utf-8")
    pool = tmp_path / "pool.txt"
    done = call_main("data", "pool", collected, "--leave-out", file, "--out", pool)
    assert done.code == 0 and pool.read_text(encoding="utf-8") == "hadi jomla jdida\n"


@pytest.mark.parametrize("text", MARKED)
def test_a_text_is_known_in_parts_and_without_markup_on_either_side(text):
    left_out = Decontamination([text], TOKENIZER)
    forms = [text, cleaned(text), *parts(text), *map(cleaned, parts(text)), f"RT {text}"]
    assert all(left_out.repeats(form, TOKENIZER(form)) for form in forms)
    assert left_out.removed == len(forms)
    assert not left_out.repeats("hadi jomla", TOKENIZER("hadi jomla"))
    clean = Decontamination([cleaned(text)], TOKENIZER)
    assert clean.repeats(text, TOKENIZER(text))


def test_a_marked_cell_or_line_beside_others_is_known():
    left_out = Decontamination(["<b>Great</b> food and wine"], TOKENIZER)
    for text in (
        "pos\t<i>Great</i> food and wine",
        "pos\tRT @z: Great food and wine",
        "A line before it\n<i>Great</i> food and wine",
    ):
        assert left_out.repeats(text, TOKENIZER(text)), text


@pytest.mark.parametrize("address", ["https://t.co/abc", "mailto:me@a.example", "@someone"])
def test_an_address_within_a_tag_leaves_nothing_of_the_tag(address):
    text = f'<a href="{address}">had lvideo zwin</a>'
    assert cleaned(text) == "had lvideo zwin"
    left_out = Decontamination(["had lvideo zwin"], TOKENIZER)
    assert left_out.repeats(text, TOKENIZER(text))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_how_lines_of_a_file_end_does_not_matter(tmp_path, end):
    path = tmp_path / "more.txt"
    path.write_bytes(f"film zwin\tpositive{end}hadi jomla{end}".encode())
    left_out = Decontamination(["film zwin"], TOKENIZER)
    found = [left_out.repeats(line, TOKENIZER(line)) for line in Lines([path])]
    assert found == [True, False]


def test_a_short_line_within_a_text_leaves_it_in_and_a_short_cell_does_not():
    left_out = Decontamination(["Thanks", "some text that is long"], TOKENIZER)
    mail = "Dear Ann,\nhere is the long report of May.\nThanks\nBob"
    assert not left_out.repeats(mail, TOKENIZER(mail))
    assert left_out.repeats("pos\tthanks", TOKENIZER("pos\tthanks"))


def test_a_short_line_of_a_text_is_what_many_people_say():
    left_out = Decontamination(["zwin bzaf\nhad lfilm 3jebni"], TOKENIZER)
    found = [left_out.repeats(line, TOKENIZER(line)) for line in ("zwin bzaf", "had lfilm 3jebni")]
    assert found == [False, True]


@given(st.lists(st.sampled_from(["زوين", "3ajib", "😀", "!", "<url>", "..", "a1"])))
def test_wording_keeps_words_in_their_order(tokens):
    assert wording(tokens).split() == [t for t in tokens if t in ("زوين", "3ajib", "a1")]


def test_the_digest_stands_for_the_texts(tmp_path):
    one = write_table(tmp_path / "one.tsv", [("pos", "فيلم زوين"), ("neg", "خايب")])
    other = write_table(tmp_path / "other.tsv", [("pos", "خايب!"), ("neg", "فيلم زوين")])
    third = write_table(tmp_path / "third.tsv", [("pos", "فيلم زوين")])
    digests = [Decontamination.of_files([path], TOKENIZER).digest for path in (one, other, third)]
    assert digests[0] == digests[1] != digests[2]
    assert Decontamination.of_files([], TOKENIZER).digest == ""


def test_a_file_that_is_not_there_is_told():
    with pytest.raises(DataError, match=r"nothing\.tsv"):
        Decontamination.of_files(["nothing.tsv"], TOKENIZER)


def test_the_commands_leave_them_out(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    words = [*GOOD, *BAD, *COMMON]
    lines = [" ".join(words[k % 20 : k % 20 + 5]) for k in range(120)]
    secret = "كلمة وحيدة هنا"
    text = tmp_path / "text.txt"
    text.write_text("\n".join([*lines, secret + " '", secret + " !"]) + "\n", encoding="utf-8")
    test = write_table(tmp_path / "test.tsv", [*rows(10, 0), ("pos", secret)])
    tiny = ("--dimension", 4, "--epochs", 1, "--min-count", 1)
    known = []
    for name, more in (("with", ()), ("without", ("--leave-out", test))):
        done = call_main("vectors", "train", text, "--out", tmp_path / name, *tiny, *more)
        assert done.code == 0
        known.append("وحيدة" in WordVectors.load(tmp_path / name))
    assert known == [True, False]
    assert "left out: 2 of 122 unlabelled lines" in done.err
    done = call_main(
        "pretrain", text, "--out", tmp_path / "encoder", "--vectors", tmp_path / "without",
        "--hidden-size", 4, "--leave-out", test, "--json",
    )  # fmt: skip
    assert done.code == 0 and json.loads(done.out)["sentences"] == 120 - 2


def test_the_text_column_named_is_that_of_the_tables_left_out_too(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    lines = [f"{GOOD[k % 5]} {COMMON[k % 7]} {BAD[k % 3]} {k}" for k in range(60)]
    text, test = tmp_path / "text.csv", tmp_path / "test.csv"
    text.write_text("\n".join(["text,body", *(f"t{k},{x}" for k, x in enumerate(lines))]), "utf-8")
    held = [f"t{k},{x},pos" for k, x in enumerate(lines[:20])]
    test.write_text("\n".join(["text,body,label", *held]), "utf-8")
    column = ("--text-column", "body", "--leave-out", test)
    done = call_main("vectors", "train", text, "--out", tmp_path / "v", "--dimension", 4, *column)
    assert done.code == 0 and "left out: 20 of 60 unlabelled lines" in done.err
    pooled = call_main("data", "pool", text, "--out", tmp_path / "pool.txt", "--no-near", *column)
    kept = (tmp_path / "pool.txt").read_text("utf-8").splitlines()
    assert pooled.code == 0 and not {*kept} & {*lines[:20]} and {*lines[20:]} <= {*kept}


def test_what_is_left_out_is_counted_and_the_notes_name_their_file(tmp_path):
    path = tmp_path / "test.tsv"
    path.write_text("pos\tفيلم زوين\nneg\tخايب d'accord\n", encoding="utf-8")
    left_out = Decontamination.of_files([path], TOKENIZER)
    found = [left_out.holds(TOKENIZER(text)) for text in ("فيلم زوين!", "فيلم", "خايب d'accord")]
    assert found == [True, False, True] and left_out.removed == 2
    assert left_out.notes and all(note.startswith(f"{path}: ") for note in left_out.notes)
    assert left_out.size == len("فيلم زوين".encode()) + len(
        wording(TOKENIZER("خايب d'accord")).encode()
    )


def test_words_with_a_mark_inside_are_words():
    assert wording(["d'accord", "'", "l-film", "--"]) == "d'accord l-film"
