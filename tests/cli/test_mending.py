"""Classes nobody meant and garbled texts: told with their lines, mended when asked."""

from __future__ import annotations

import csv
import json
import sys

import pytest

from superconext.data.dataset import folded
from tests.cli.conftest import blame, rows, write_table

GARBLED = ["rÃ©fÃ©rence Ã\xa0 lâ€™Ã©cole", "Ø§Ù„Ø³Ù„Ø§Ù… zwin", "ط§ظ„ط³ظ„ط§ظ… bzaf"]
MENDED = ["référence à l’école", "السلام zwin", "السلام bzaf"]


@pytest.fixture
def train(call, data, tmp_path):
    """Train on rows beside good ones; the classes of the run and what was said."""

    def run(table, *words):
        path = write_table(tmp_path / "train.tsv", [*rows(40, seed=3), *table])
        given = ("--dev", data.dev, "--out", tmp_path / "run", "--force", "--no-baselines")
        said = call("train", path, *given, *data.small, *words)
        if said.code:
            return None, said
        manifest = json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))
        return manifest["data"]["train"]["classes"], said

    return run


@pytest.mark.parametrize("word", ["NaN", "null", "None", "n/a", "<NA>"])
def test_words_for_a_missing_label_are_told_and_dropped(train, word):
    table = [(word, "kan had zwin"), (word, "والو كان")]
    classes, said = train(table)
    assert said.code == 0 and classes[word] == 2
    assert "warning: " in said.err and f"'{word}' (2 rows, lines 42, 43)" in said.err
    classes, said = train(table, "--drop-unlabelled")
    assert classes == {"neg": 20, "pos": 20} and "2 rows without a label left out" in said.err
    assert "warning" not in said.err


def test_a_class_that_is_called_none_is_kept_where_a_run_knows_it(call, data, tmp_path):
    """Rows of it are exported with the others, and neither pruning nor a student loses them."""
    table = [("NONE", f"kan had zwin {n}") for n in range(20)]
    file, run = write_table(tmp_path / "stance.tsv", rows(40, seed=3) + table), tmp_path / "run"
    given = ("--cv", 0, "--no-baselines", "--no-report", "--out", run)
    assert call("train", file, *given, *data.small).code == 0
    true = json.loads(call("evaluate", run, file, "--json").out)
    for words in ((), ("--drop-incomplete",), ("--drop-incomplete", "--fold-label-case")):
        told = json.loads(call("evaluate", run, file, "--json", *words).out)
        assert told["n"] == true["n"] == 60
    file.write_text(file.read_text("utf-8").replace("NONE", "none"), encoding="utf-8")
    said = call("evaluate", run, file, "--json", "--fold-label-case")
    assert json.loads(said.out)["n"] == 60 and "is how a missing one is written" not in said.err
    # Nor is such a row suggested to be labelled again.
    pool = tmp_path / "pool.csv"
    pool.write_text("label,text\nNONE,had jdid bzaf\n,walo hna\nnull,kif dima\n", encoding="utf-8")
    said = call("suggest", run, pool, "-n", 9, "--json")
    texts = {row["text"] for row in json.loads(said.out)}
    assert texts == {"walo hna", "kif dima"}, said.err
    words = ("--prune", "--test", file, "--json", "--out", tmp_path / "small")
    said = call("export", run, *words)
    assert "without a label" not in said.err
    assert json.loads(said.out)["pruned"]["accuracy_before"] == pytest.approx(true["accuracy"])


@pytest.mark.parametrize("label", ["", "  "])
def test_a_row_without_a_label_is_an_error_or_dropped(train, label):
    table = [(label, "kan had zwin"), ("pos", "والو كان"), (label, "had bnin")]
    line = blame(train(table)[1])
    found = "line 42: found an empty label (2 rows, lines 42, 44), expected a text and a label"
    assert found in line and "--drop-incomplete" in line
    assert train(table, "--drop-unlabelled")[0] == {"neg": 20, "pos": 21}


def test_labels_of_merged_cells_are_told_as_such(call, tmp_path):
    path, texts = tmp_path / "x.csv", [text for _, text in rows(40, seed=3)]
    for labels, merged in (
        (["pos", *[""] * 19, "neg", *[""] * 19], True),
        (["pos", "neg", *[""] * 38], False),  # labelled from the top so far
        (["", "pos", *[""] * 38], False),
        (["pos", "", *["neg"] * 38], False),
    ):
        lines = [f"{label},{text}" for label, text in zip(labels, texts, strict=True)]
        path.write_text("\n".join(["label,text", *lines]), encoding="utf-8")
        line = blame(call("train", path, "--out", tmp_path / "run"))
        assert "--drop-incomplete" in line
        for said in (line, call("data", "inspect", path).err):
            assert ("fill each label down first" in said) == merged


@pytest.mark.parametrize(("separator", "quote"), [(",", '"'), (";", ""), ("\t", "")])
def test_rows_without_a_text_or_label_are_told_together_and_dropped(
    call, finished, data, tmp_path, separator, quote
):
    table = [*rows(40, seed=3), ("pos", ""), ("", "kan had zwin"), ("neg", "  "), ("", "")]
    lines = [f"{quote}{text}{quote}{separator}{label}" for label, text in table]
    path = tmp_path / ("x.tsv" if separator == "\t" else "x.csv")
    path.write_text("\n".join([f"text{separator}label", *lines]) + "\n", encoding="utf-8")
    both = (
        "found an empty text (3 rows, lines 42, 44, 45) and an empty label (2 rows, lines 43, 45)"
    )
    train = ("train", path, "--out", tmp_path / "run", "--no-baselines", *data.small)
    verbs = [
        train,
        ("evaluate", finished.folder, path),
        ("audit", path),
        ("data", "merge", path, path),
    ]
    verbs.append(("data", "inspect", path, "--deduplicate", tmp_path / "alone"))
    for words in verbs:
        line = blame(call(*words))
        assert f"{path.name}, line 42: {both}" in line and "--drop-incomplete" in line
        said = call(*words, "--drop-incomplete")
        assert said.code == 0, said.err
        assert "2 rows without a label left out" in said.err
        assert "2 rows without a text left out" in said.err
    said = call("data", "inspect", path, "--json")
    assert said.code == 0 and json.loads(said.out)["parts"][0]["rows"] == 40
    assert f"warning: {path}: {both}" in said.err and "train needs --drop-incomplete" in said.err
    advised = call("data", "inspect", path).err
    assert f"next: superconext train {path} --drop-incomplete --out RUN" in advised
    advised = call("data", "inspect", path, "--label-column", "label").err
    given = f"{path} --label-column label --drop-incomplete"
    assert f"next: superconext train {given} --out" in advised
    said = call("suggest", finished.folder, path, "-n", 3)
    assert said.code == 0 and "found an empty text (3 rows, lines 42, 44, 45), left out" in said.err


@pytest.mark.parametrize("copy", ["zwin hna", "\u200fZwin hna", "zwin \u200bhna"])
def test_training_tells_of_texts_with_several_labels(call, tmp_path, copy):
    texts = [(label, text) for label, text in rows(40, seed=3)]
    table = write_table(tmp_path / "x.tsv", [*texts, ("pos", "zwin hna"), ("neg", copy)])
    quick = ("--epochs", 1, "--hidden-size", 4, "--vector-dimension", 4, "--no-report")
    said = call("train", table, "--dev", table, "--out", tmp_path / "run", *quick)
    told = "x.tsv: 1 text has several labels, as on lines 42 and 43 (superconext data inspect"
    assert said.code == 0 and f"warning: {tmp_path}/{told}" in said.err


def test_inspection_goes_on_at_lines_that_cannot_be_read(call, tmp_path):
    content = 'text,label\na b,x\n"c"d,y\ne,f,g\nh i,y\n'
    (tmp_path / "x.csv").write_text(content, encoding="utf-8")
    said = call("data", "inspect", tmp_path / "x.csv", "--json")
    assert said.code == 0 and json.loads(said.out)["parts"][0]["classes"] == {"x": 1, "y": 1}
    assert "x.csv: line 3: found characters after a closing quote" in said.err
    assert "x.csv: line 4: found 3 columns" in said.err
    (tmp_path / "x.csv").write_text("text,label\na b,\n,x\n", encoding="utf-8")
    line = blame(call("data", "inspect", tmp_path / "x.csv"))
    assert "found no row with a text and a label" in line
    (tmp_path / "x.csv").write_text("text,label\na b,c,x\n", encoding="utf-8")
    line = blame(call("data", "inspect", tmp_path / "x.csv"))
    assert "line 2: found 3 columns separated by commas, expected 2" in line


def test_inspection_tells_what_train_would_refuse(call, tmp_path):
    scores = [f"{text},{n / 7}" for n, (_, text) in enumerate(rows(30, seed=4))]
    same = [f"{text},good" for _, text in rows(30, seed=4)]
    for lines, told in ((scores, "30 different labels in 30 rows"), (same, "one class only")):
        (tmp_path / "x.csv").write_text("\n".join(["text,score", *lines]), encoding="utf-8")
        said = call("data", "inspect", tmp_path / "x.csv", "--no-near")
        assert said.code == 0 and f"warning: {tmp_path / 'x.csv'}: found {told}" in said.err


@pytest.mark.parametrize("header", [("label", "text"), ("Label", "Text"), ("LABEL ", "TEXT")])
def test_the_header_once_more_is_an_error_or_dropped(train, call, finished, tmp_path, header):
    table = [header, ("pos", "والو كان")]
    line = blame(train(table)[1])
    assert "line 42: found the header again" in line and "--drop-incomplete" in line
    assert train(table, "--drop-unlabelled")[0] == {"neg": 20, "pos": 21}
    said = call("predict", finished.folder, write_table(tmp_path / "x.tsv", table))
    assert len(said.out.splitlines()) == 2
    assert "the name of the column occurs again among the texts (line 2)" in said.err
    lines = [f"{label}\t{text}\n" for label, text in [*rows(20, seed=3), ("neg", "2")]]
    (tmp_path / "y.tsv").write_text("".join(lines), encoding="utf-8")
    said = call("predict", finished.folder, tmp_path / "y.tsv", "--text-column", "2")
    assert said.code == 0 and "occurs again" not in said.err, "a number is no name"
    classes = train([("Label", "kan had zwin"), ("Label", "kan")])[0]
    assert classes["Label"] == 2, "beside a sentence it is a class"


@pytest.mark.parametrize("twin", ["POS", "pos ", "Pos", "ｐｏｓ"])
def test_labels_alike_but_for_case_and_spaces_are_told_and_folded(train, call, twin, tmp_path):
    classes, said = train([(twin, "kan had zwin")])
    if twin.strip() == "pos":  # spaces at the ends are stripped anyway
        assert classes == {"neg": 20, "pos": 21}
        return
    line = blame(said)
    assert (
        f"'{twin}' (1 row)" in line
        and said.err.count("Arabic spelling") == 1
        and "'pos' (20 rows)" in line
        and "--fold-label" in line
    )
    words = ("compare", tmp_path / "train.tsv", "--objectives", "ngrams", "--seeds", 1)
    said = call(*words, "--out", tmp_path / "compared")
    assert "--no-fold-label-case" in blame(said) and said.err.count("Arabic spelling") == 1
    classes, said = train([(twin, "kan had zwin")], "--no-fold-label-case")
    assert classes[twin] == 1
    assert f"'pos' (20 rows, lines 3, 5, 7 and 17 more), '{twin}' (1 row, line 42)" in said.err
    assert "--fold-label-case" in said.err
    classes, said = train([(twin, "kan had zwin")], "--fold-label-case")
    assert classes == {"neg": 20, "pos": 21} and "warning" not in said.err
    path = write_table(tmp_path / "x.tsv", [(twin, "kan zwin"), ("NEG", "khayb had")])
    said = call("evaluate", tmp_path / "run", path, "--json")
    assert said.code == 0 and "unknown_labels" not in json.loads(said.out)
    assert (
        f"2 labels put in one spelling ('{twin}' to 'pos', 'NEG' to 'neg'), as those of" in said.err
    )
    assert call("report", tmp_path / "run", path, "--fold-label-case").code == 0
    path = write_table(tmp_path / "y.tsv", [*rows(40, seed=3), (twin, "zwin")])
    said = call("audit", path, "--run", tmp_path / "run", "--json")
    assert said.code == 0 and json.loads(said.out)["misspelt_labels"] == {}


def test_what_is_advised_reads_the_file_as_it_was_inspected(call, tmp_path):
    path = tmp_path / "x.tsv"
    lines = [f"{label}\t{text}" for label, text in rows(40, seed=3)]
    path.write_text("\n".join([*lines, "POS\tzwin", "\tchi"]) + "\n", encoding="utf-8")
    given = ["--label-column", "1", "--text-column", "2"]
    given += ["--no-header", "--drop-incomplete", "--no-fold-label-case"]
    said = call("data", "inspect", path, *given)
    first = said.err.splitlines()[-1].partition(" --out RUN")[0]
    assert first.startswith(f"next: superconext train {path} --text-column 2 --label-column 1")
    for flag in ("--no-header", "--drop-incomplete", "--no-fold-label-case"):
        assert first.split().count(flag) == 1, first
    assert "--fold-label-case" not in first.split()


def test_an_audit_keeps_every_column_under_a_name_of_its_own(call, tmp_path):
    path, out = tmp_path / "x.csv", tmp_path / "doubtful.csv"
    table = [(f"l{n}", f"g{n}", label, text) for n, (label, text) in enumerate(rows(24, seed=3))]
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([("line", "given_line", "label", "text"), *table])
    assert call("audit", path, "--out", out).code == 0
    with out.open(encoding="utf-8-sig", newline="") as stream:
        found = {row["text"]: row for row in csv.DictReader(stream)}
    assert len(found) == len({text for *_, text in table})
    for line, given, _, text in table:
        row = found[text]
        assert row["given_line"] == given and row["given_given_line"] == line


def test_an_audit_by_a_run_that_was_trained_on_some_of_the_texts_warns(call, finished, tmp_path):
    table = rows(40, seed=3)
    fresh = [(label, f"{text} jdid {number}") for number, (label, text) in enumerate(table)]
    said = call("audit", write_table(tmp_path / "x.tsv", fresh), "--run", finished.folder)
    assert said.code == 0 and "was trained on" not in said.err
    known = [
        line.split("\t") for line in finished.data.train.read_text(encoding="utf-8").splitlines()
    ]
    path = write_table(tmp_path / "y.tsv", [*fresh, ("neg", known[1][1])])
    said = call("audit", path, "--run", finished.folder)
    assert f"was trained on 1 of {len(fresh) + 1} texts of {path}: its vectors agree" in said.err
    assert "left out" not in said.err and said.out != call("audit", path).out
    path = write_table(tmp_path / "z.tsv", [*fresh, *known[1:11]])
    said = call("audit", path, "--run", finished.folder)
    assert f"was trained on 10 of {len(fresh) + 10} texts of {path}: its vectors" in said.err
    assert "so it is ignored: train on other rows" in said.err
    assert said.out == call("audit", path).out, "it is left out"
    again = tmp_path / "again.csv"
    assert call("audit", path, "--out", again).code == 0
    head, first = call("audit", again).out.splitlines()[:2]
    assert head.split("\t") == ["label", "text", "line", "suggested", "suspicion", "why"]
    assert len(first.split("\t")) == 6, "what the first audit said is not repeated"


def test_folding_takes_the_spelling_of_the_run(call, finished, tmp_path, data):
    table = [(label.title(), text) for label, text in rows(40, seed=3)]
    words = ("--dev", write_table(tmp_path / "dev.tsv", table), "--out", tmp_path / "run")
    path = write_table(tmp_path / "train.tsv", table)
    assert call("train", path, *words, "--no-baselines", *data.small).code == 0
    line = blame(call("evaluate", tmp_path / "run", data.test))
    assert "found no label that" in line and "add --fold-label-case" in line
    said = call("evaluate", tmp_path / "run", data.test, "--fold-label-case", "--json")
    assert said.code == 0 and set(json.loads(said.out)["per_class"]) == {"Neg", "Pos"}
    assert folded("  Très\u00a0 BIEN ") == folded("très bien") == "très bien"


@pytest.mark.parametrize(
    ("one", "other", "folds"),
    [
        ("منفی", "منفي", True),
        ("نیک", "نيك", True),
        ("class ۱", "class 1", True),
        ("class १", "class 1", True),
        ("MAVİ", "mavi", True),
        ("KIRMIZI", "kırmızı", False),
    ],
)
def test_labels_of_other_keyboards_are_told(call, tmp_path, one, other, folds):
    assert (folded(one) == folded(other)) == folds
    table = [((one, other)[n % 2] if n % 4 < 2 else "pos", f"kan {n} had") for n in range(20)]
    said = call("data", "inspect", write_table(tmp_path / "x.tsv", table))
    assert said.code == 0
    told = [line for line in said.err.splitlines() if f"'{one}'" in line]
    assert any("alone" in line or "spelling" in line for line in told)


@pytest.mark.parametrize("header", ["text,label,text", "label,text,label", "TEXT,Text,label"])
def test_a_column_name_that_stands_twice_is_an_error(call, finished, tmp_path, header):
    path = tmp_path / "x.csv"
    cells = ["zwin had" if name.lower() == "text" else "pos" for name in header.split(",")]
    path.write_text("\n".join([header, *[",".join(cells)] * 4]), encoding="utf-8")
    name = "text" if header.lower().count("text") > 1 else "label"
    for verb in ("evaluate", "predict")[: 1 + (name == "text")]:
        line = blame(call(verb, finished.folder, path))
        assert f"'{name}' occurs 2 times" in line and f"--{name}-column" in line
    wanted = str(header.lower().split(",").index(name) + 1)
    said = call("evaluate", finished.folder, path, f"--{name}-column", wanted)
    assert said.code == 0, said.err


@pytest.mark.parametrize("features", ["encoder", "encoder+ngrams"])
def test_a_class_with_one_row_is_trained_on(train, call, tmp_path, features):
    classes, said = train([("zen", "kan had wasat")], "--probe-features", features)
    assert said.code == 0, said.err
    assert classes == {"neg": 20, "pos": 20, "zen": 1}
    assert "class with a single row: 'zen' (line 42)" in said.err and "cannot be held" in said.err
    found = json.loads(call("predict", tmp_path / "run", tmp_path / "train.tsv", "--json").out)
    assert len(found) == 41


def test_a_class_with_one_row_that_is_a_misspelling_is_told_of(train):
    extra = [("complaint", f"kan {text}") for _, text in rows(8, seed=5)]
    classes, said = train([*extra, ("complant", "kan had wasat")])
    assert classes["complant"] == 1 and classes["complaint"] == 8
    assert "'complant' (line 50, did you mean 'complaint'?); it is trained on" in said.err


def test_a_column_of_numbers_is_no_text(train, call, data, tmp_path):
    for marks in (",", "."):
        table = [(label, f"{n}{marks}5") for n, (label, _) in enumerate(rows(60, seed=3))]
        line = blame(train(table)[1])
        assert "no letter in 60 of 100 texts, such as '0" in line and "--text-column" in line
        assert "the columns are 'label', 'text'" in line
    table = [(label, "🤩🤩 " + "😡" * n) for n, (label, _) in enumerate(rows(60, seed=3))]
    assert train(table)[1].code == 0
    numbers = write_table(tmp_path / "x.tsv", [(k, str(n)) for n, (k, _) in enumerate(rows(40, 3))])
    assert "no letter in 40 of 40" in blame(call("train", numbers, "--out", tmp_path / "a"))
    words = ("compare", numbers, "--objectives", "ngrams", "--out", tmp_path / "b")
    assert "no letter in 40 of 40" in blame(call(*words))
    strange = write_table(tmp_path / "y.tsv", [("neg", "это мир"), ("pos", "шоссе")])
    assert f"warning: {strange}: 2 of 2 texts are unlike" in train([], "--test", strange)[1].err


def test_numbers_in_place_of_sentences_are_told_to_who_uses_a_run(call, finished, tmp_path):
    told = "warning: {}: found no letter in 10 of {} texts, such as '2010' and '2011'"
    some = [(label, f"{2010 + n}") for n, (label, _) in enumerate(rows(10, seed=3))]
    path = write_table(tmp_path / "x.tsv", [("neg", "kan had"), *some])
    for verb in ("predict", "evaluate"):
        said = call(verb, finished.folder, path)
        assert said.code == 0 and said.err.count(told.format(path, 11)) == 1
        assert "--text-column; the columns are 'label', 'text'" in said.err
    said = call("data", "inspect", path, "--no-near")
    assert said.err.count("found no letter in") == 1
    (path := tmp_path / "x.txt").write_text("\n".join(text for _, text in some), encoding="utf-8")
    assert told.format(path, 10) in call("suggest", finished.folder, path, "-n", 2).err
    for lines in (["2010"] * 4, ["2010"] * 8 + ["kan"] * 2, ["\U0001f602"] * 9, ["?? ?? ??"] * 9):
        path.write_text("\n".join(lines), encoding="utf-8")
        said = call("predict", finished.folder, path)
        assert said.code == 0 and "found no letter" not in said.err


def test_a_score_needs_two_texts_of_two_classes(call, data, tmp_path):
    path = write_table(tmp_path / "x.tsv", [("neg", "khayb"), ("pos", "zwin"), ("pos", "bnin")])
    line = blame(call("train", path, "--out", tmp_path / "run", *data.small))
    assert "found 1 class with two different texts or more in 3 rows" in line and "--dev" in line


# Garbled texts


def test_garbled_texts_are_told_and_mended(train, call, finished, tmp_path):
    table = [("pos", text) for text in GARBLED]
    classes, said = train(table)
    assert classes == {"neg": 20, "pos": 23}
    assert "3 of 43 texts are garbled by a wrong encoding (lines 42, 43, 44)" in said.err
    inspected = call("data", "inspect", tmp_path / "train.tsv")
    assert "3 of 43 texts are garbled" in inspected.err and "--fix-text" in inspected.err
    found = json.loads(call("data", "inspect", tmp_path / "train.tsv", "--json").out)
    assert found["parts"][0]["garbled"] == 3
    path = write_table(tmp_path / "x.tsv", table)
    assert "3 of 3 texts are garbled" in call("predict", finished.folder, path).err


def test_another_alphabet_read_in_a_wrong_encoding_is_told(call, finished, tmp_path):
    path = tmp_path / "x.tsv"
    lines = [f"{'pos' if i % 2 else 'neg'}\tالفيلم زوين بزاف {i}\n" for i in range(20)]
    path.write_bytes("".join(["label\ttext\n", *lines]).encode("windows-1256"))
    for encoding in ("latin-1", "windows-1252"):
        said = call("predict", finished.folder, path, "--encoding", encoding)
        assert "20 of 20 texts look like another alphabet read in a wrong encoding" in said.err
        assert "(lines 2, 3, 4 and 17 more)" in said.err and "windows-1256" in said.err
        found = json.loads(call("data", "inspect", path, "--encoding", encoding, "--json").out)
        assert found["parts"][0]["garbled"] == 20
    said = call("predict", finished.folder, path, "--encoding", "windows-1256")
    assert "another alphabet" not in said.err and "الفيلم زوين" in said.out
    # What shows how a guess reads has letters of that alphabet, though a mark comes first.
    path.write_bytes("a … b, https://x.y;neg\nالفيلم زوين بزاف;pos\n".encode("windows-1256") * 9)
    said = call("predict", finished.folder, path)
    assert said.code == 1 and "if 'الفيلم" in said.err, said.err
    lines = [f"الفيلم زوين {i};pos\nbad film {i};neg\n" for i in range(9)]
    (path := tmp_path / "y.csv").write_bytes(
        "".join(["text;label\n", *lines]).encode("windows-1256")
    )
    advised = call("data", "inspect", path).err.splitlines()[-1]
    assert advised.startswith(f"next: superconext data inspect {path} --encoding windows-1256 ")
    path.write_text("à é ô ÀÉ été déçu ñoño Straße\n" * 9, encoding="utf-8")
    assert "another alphabet" not in call("predict", finished.folder, path).err


LOST = ["?????? ???? ????", "?? ??? 2020!", "le caf\ufffd est bon"]
ESCAPED = ["&#1582;&#x62f; film", "le caf&eacute; est bon", "\\u062e\\u062f film"]


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (LOST, "have question or replacement marks in place of letters or emoji"),
        (ESCAPED, "spell letters as escapes, such as &eacute;"),
    ],
)
def test_texts_whose_letters_are_lost_are_told(train, call, finished, tmp_path, texts, told):
    table = [("pos", text) for text in texts]
    told = f"3 of 43 texts {told}"
    assert f"warning: {tmp_path / 'train.tsv'}: {told}" in train(table)[1].err
    path = tmp_path / "train.tsv"
    for words in (("evaluate", finished.folder, path), ("predict", finished.folder, path)):
        said = call(*words)
        assert (
            told in said.err and "(lines 42, 43, 44)" in said.err and "again as UTF-8" in said.err
        )
    said = call("data", "inspect", path, "--json")
    assert told in said.err and json.loads(said.out)["parts"][0]["garbled"] == 3


SOUND = [
    "????",
    "???? what ????",
    "quoi ?? ??",
    "A &amp; B &lt;3",
    "l&#8217;ami",
    r"C:\users",
    "? ?",
]


def test_question_marks_and_escaped_signs_that_people_write_are_sound(call, finished, tmp_path):
    (tmp_path / "x.txt").write_text("\n".join(SOUND), encoding="utf-8")
    said = call("predict", finished.folder, tmp_path / "x.txt")
    assert "in place of letters" not in said.err and "escapes" not in said.err


def test_without_ftfy_mending_says_what_is_missing(call, finished, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ftfy", None)
    path = write_table(tmp_path / "x.tsv", [("pos", text) for text in GARBLED])
    assert "superconext[ftfy]" in blame(call("predict", finished.folder, path, "--fix-text"), 2)
    path = write_table(tmp_path / "y.tsv", [("pos", text) for text in MENDED])
    assert call("predict", finished.folder, path, "--fix-text").code == 0


def test_mended_texts_are_those_that_were_meant(call, finished, train, tmp_path):
    pytest.importorskip("ftfy")
    path = write_table(tmp_path / "x.tsv", [("pos", text) for text in [*GARBLED, *MENDED]])
    said = call("predict", finished.folder, path, "--fix-text", "--json")
    assert [row["text"] for row in json.loads(said.out)] == [*MENDED, *MENDED]
    assert "3 of 6 texts are garbled" in said.err and "and fixed" in said.err
    clean = tmp_path / "clean"
    said = call("data", "inspect", path, "--fix-text", "--deduplicate", clean)
    assert (clean / "x.tsv").read_text("utf-8").count("référence") == 1
    assert train([("pos", text) for text in GARBLED], "--fix-text")[0] == {"neg": 20, "pos": 23}


PLAIN = ["«MAÇÃ»", "“IRMÔ", "CAFÉ»", "Âge d'or", "5×½", "طظطظ ظط", "حظ، حظ؟ بسط؛", "Ø§ Ð»"]


@pytest.mark.parametrize("text", PLAIN)
def test_what_people_write_is_not_garbled(call, finished, tmp_path, text):
    (tmp_path / "x.txt").write_text(text, encoding="utf-8")
    assert "garbled" not in call("predict", finished.folder, tmp_path / "x.txt").err


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("compare", ["--objectives", "superloss"]),
        ("fewshot", ["--objectives", "superloss", "--shots", "4"]),
        ("sweep", ["--parameter", "dropout", "--values", "0.1"]),
    ],
)
def test_experiments_mend_as_train_does_and_remember_it(call, data, tmp_path, verb, words):
    table = [("NaN", "kan had zwin"), ("POS", "والو كان هاد"), *rows(60, seed=3)]
    path = tmp_path / "train.tsv"
    lines = "".join(f"{label}\t{text}\n" for label, text in table)
    path.write_bytes(f"classe\tphrase\n{lines}".encode("windows-1256"))
    words = [verb, path, *words, *data.small, "--seeds", 1, "--out", tmp_path / "x"]
    words += ["--test", data.test, "--epochs", 1, "--encoding", "windows-1256"]
    test = data.test.read_text("utf-8").encode("windows-1256")
    (tmp_path / "test.tsv").write_bytes(test)
    words[words.index(data.test)] = tmp_path / "test.tsv"
    given = ["--drop-unlabelled", "--fold-label-case", "--header"]
    columns = ["--label-column", "1", "--text-column", "2"]
    said = call(*words, *columns, *given)
    assert said.code == 0, said.err
    record = json.loads((tmp_path / "x" / "comparison.json").read_text("utf-8"))["datasets"][""]
    assert record["labels"] == ["neg", "pos"] and record["files"]["train"]["rows"] == 61
    kept = {name: record["source"][name] for name in ("encoding", "drop_unlabelled", "header")}
    assert kept == {"encoding": "windows-1256", "drop_unlabelled": True, "header": True}
    line = blame(call(*words, *columns, "--header", "--fold-label-case"))
    assert "other rows" in line or "class 'nan' has 1 distinct texts" in line


def test_data_sets_of_a_file_are_mended_by_what_it_says(call, data, tmp_path):
    table = [("NaN", "kan had zwin"), *rows(60, seed=3)]
    path = write_table(tmp_path / "train.tsv", table)
    text = f'[[dataset]]\nname = "one"\ntrain = "{path.name}"\ndrop_unlabelled = true\n'
    (tmp_path / "sets.toml").write_text(text, encoding="utf-8")
    words = ["compare", "--datasets", tmp_path / "sets.toml", "--seeds", 1, "--objectives"]
    said = call(*words, "ngrams", "--out", tmp_path / "x")
    assert said.code == 0, said.err
    record = json.loads((tmp_path / "x" / "comparison.json").read_text("utf-8"))
    assert record["datasets"]["one"]["labels"] == ["neg", "pos"]
    (tmp_path / "sets.toml").write_text(text.replace("true", '"yes"'), encoding="utf-8")
    line = blame(call(*words, "ngrams", "--out", tmp_path / "y"))
    assert "drop_unlabelled = 'yes'; expected true or false" in line


@pytest.mark.parametrize("name", ["label", "score"])
def test_labels_that_do_not_repeat_are_none(call, tmp_path, name):
    lines = [f"{text}\t{n / 10}" for n, (_, text) in enumerate(rows(20, seed=1))]
    path = tmp_path / "scores.tsv"
    path.write_text("\n".join([f"text\t{name}", *lines]), encoding="utf-8")
    line = blame(call("train", path, "--out", tmp_path / "run"))
    assert "20 different labels in 20 rows" in line and "--label-column" in line
    path.write_text("\n".join(["text\tid", *lines]), encoding="utf-8")
    assert "no column 'label'" in blame(call("train", path, "--out", tmp_path / "run"))


@pytest.mark.parametrize(
    ("label", "told"),
    [
        ("neg; sarcasm", "and not 'neg' and 'sarcasm': keep one label for a text"),
        ("neg|neg", "and not 'neg': write it once"),
        ("['neg', 'other']", "and not 'neg' and 'other': keep one label"),
        ("neg pos", "and not 'neg' and 'pos': keep one label"),
        ("neg,neg", "and not 'neg': write it once"),
        ("neg#pos", "and not 'neg' and 'pos': keep one label"),
        ('{""choices"":[""pos"",""neg""]}', "and not 'pos' and 'neg': keep one label"),
        ("very neg", ""),
        ("C#", ""),
        ("n/a/pos/b", "and not 'n' and 'a' and 'pos' and 'b'"),
        ("1/1", ""),
        ("yes/no", ""),
    ],
)
def test_a_cell_of_several_labels_is_told_though_one_of_them_is_a_class(
    call, tmp_path, label, told
):
    path = tmp_path / "x.csv"
    lines = [f'"{text}","{label}"' for label, text in [*rows(20, seed=1), (label, "kan walo")]]
    path.write_text("\n".join(["text,label", *lines]) + "\n", encoding="utf-8")
    said = call("data", "inspect", path, "--no-near")
    if told:
        assert f"(1 row, line 22) is a class of its own, {told}" in said.err
    else:
        assert "of its own" not in said.err


def test_labels_that_look_alike_or_are_several(call, tmp_path):
    table = rows(20, seed=1)
    marked = [(label + "\u200f" * (n % 3 == 0), text) for n, (label, text) in enumerate(table)]
    path = write_table(tmp_path / "x.tsv", [*marked, ("neg; pos", "kan walo"), ("1.0", "kan")])
    said = call("data", "inspect", path, "--no-near", "--json")
    classes = json.loads(said.out)["parts"][0]["classes"]
    assert classes == {"1.0": 1, "neg": 10, "neg; pos": 1, "pos": 10}
    assert "stray spaces stripped from 7 labels" in said.err
    assert "'neg; pos' (1 row, line 22) is a class of its own, and not 'neg' and 'pos'" in said.err
    write_table(path, [*table, ("1.0", "kan"), ("1", "kan walo")])
    said = call("data", "inspect", path, "--no-near")
    assert "alone: '1.0' (1 row, line 22), '1' (1 row, line 23)" in said.err
    spelt = {"neg": ["سلبي", "سـلبى"], "pos": ["إيجابي", "ايجابي", "إِيجابي"]}
    arabic = [
        (spelt[label][n // 2 % len(spelt[label])], text) for n, (label, text) in enumerate(table)
    ]
    write_table(path, arabic)
    assert "Arabic spelling alone: 'إيجابي' (4 rows" in call("data", "inspect", path).err
    said = call("data", "inspect", path, "--no-near", "--fold-label-case", "--json")
    assert json.loads(said.out)["parts"][0]["classes"] == {"ايجابي": 10, "سلبي": 10}


@pytest.mark.parametrize("mark", ["\u200b", "\xad", "\u200f", "\u2060", "\ufeff"])
def test_marks_inside_labels_that_nobody_sees_make_no_class(call, finished, tmp_path, mark):
    table = [(label, text) for label, text in rows(20, seed=1)]
    marked = [
        (f"n{mark}eg" if n % 4 == 0 else label, text) for n, (label, text) in enumerate(table)
    ]
    path = write_table(tmp_path / "x.tsv", marked)
    said = call("data", "inspect", path, "--no-near", "--json")
    assert json.loads(said.out)["parts"][0]["classes"] == {"neg": 10, "pos": 10}
    assert "invisible marks removed from inside 5 labels" in said.err
    said = call("evaluate", finished.folder, path)
    assert said.code == 0 and "does not know" not in said.err


def test_classes_that_differ_in_joiners_are_told(call, tmp_path):
    table = [
        (f"n{chr(0x200C) * (n % 4 == 0)}eg" if n % 2 == 0 else label, text)
        for n, (label, text) in enumerate(rows(20, seed=1))
    ]
    said = call("data", "inspect", write_table(tmp_path / "x.tsv", table), "--no-near")
    assert "alone: 'neg' (5 rows) and 'n\\u200ceg' (5 rows): write them alike" in said.err


def test_a_garbled_label_is_told_as_a_garbled_text_is(call, data, tmp_path):
    table = [("nÃ©gatif" if label == "neg" else label, text) for label, text in rows(40, seed=3)]
    path = write_table(tmp_path / "x.tsv", table)
    told = "label 'nÃ©gatif' (20 rows, lines 2, 4, 6 and 17 more) is garbled by a wrong encoding"
    train = ("train", path, "--out", tmp_path / "run", "--no-baselines", *data.small)
    for words in (train, ("data", "inspect", path), ("audit", path)):
        assert f"warning: {path}: the {told}: save the file again" in call(*words).err
    escaped = [(label.replace("nÃ©", "n&eacute;"), text) for label, text in table]
    said = call("data", "inspect", write_table(path, [*escaped, ("nég\ufffdtif", "kan")]))
    assert "garbled by a wrong encoding" in said.err and said.err.count("(1 row, line 42)") == 1
    lost = [("?????" if label == "nÃ©gatif" else label, text) for label, text in table]
    told = "label '?????' (20 rows, lines 2, 4, 6 and 17 more) is garbled by a wrong encoding"
    assert told in call("data", "inspect", write_table(path, lost)).err
    sound = [(label.replace("nÃ©", "né"), text) for label, text in table]
    assert "garbled by" not in call("data", "inspect", write_table(path, sound)).err


TWINS = [("positif", "“positif”"), ("positif", "p\u043esitif"), ("EA", "\u0395A"), ("3", "3,0")]
TWINS += [("01", "1"), ("1,5", "1.5"), ("-1", "\u22121")]


@pytest.mark.parametrize("twins", TWINS)
def test_classes_that_look_alike_or_are_one_number_are_told(call, tmp_path, twins):
    table = [
        (twins[n % 4 == 1] if n % 2 else "neg", text)
        for n, (_, text) in enumerate(rows(40, seed=3))
    ]
    said = call("data", "inspect", write_table(tmp_path / "x.tsv", table), "--no-near")
    assert f"alone: '{twins[0]}' (10 rows) and '{twins[1]}' (10 rows): write them alike" in said.err


@pytest.mark.parametrize("twins", [("1", "1,000"), ("1.1", "1.10"), ("C", "C++"), ("1", "-1")])
def test_classes_that_are_others_are_not_alike(call, tmp_path, twins):
    table = [(twins[n % 2], text) for n, (_, text) in enumerate(rows(20, seed=3))]
    said = call("data", "inspect", write_table(tmp_path / "x.tsv", table), "--no-near")
    assert said.code == 0 and "write them alike" not in said.err


def test_ratings_are_not_several_labels_of_a_text(call, tmp_path):
    texts = [text for _, text in rows(40, seed=3)]
    table = [(f"{n % 5 + 1}/5", text) for n, text in enumerate(texts)]
    path = write_table(tmp_path / "x.tsv", table)
    assert "warning" not in call("data", "inspect", path, "--no-near").err
    write_table(path, [*table, ("1", "kan had"), ("5", "kan bzaf"), ("5", "kan ghali")])
    said = call("data", "inspect", path, "--no-near")
    told = "rating '1/5' (8 rows, lines 2, 7, 12 and 5 more) is another class than '1': write them"
    assert told in said.err and "a class of its own" not in said.err
    write_table(path, [("1/2", "kan"), ("1/3", "kan had"), ("1", "a"), ("2", "b"), ("3", "c")])
    assert "'1/2' (1 row, line 2) is a class of its own" in call("data", "inspect", path).err


def test_train_says_once_what_lists_all_problems_of_the_file_at_once(call, tmp_path):
    hint = "(superconext data inspect FILE, with the same options, lists all problems"
    path, run = tmp_path / "x.csv", tmp_path / "run"
    lines = [f"{n},{text},{label}" for n, (label, text) in enumerate(rows(40, seed=3))]
    lines += ["40,kan zwin bzaf,POS", "41,walakin ghali,POS", "42,bnin bzaf,", "43,one,two,three"]
    path.write_text("\n".join(["id,Post content,Mood", *lines]) + "\n", encoding="utf-8")
    columns = ("--text-column", "Post content", "--label-column", "Mood")
    line = blame(call("train", path, "--out", run))
    assert "--text-column and --label-column" in line and line.count(hint) == 1
    said = call("data", "inspect", path, *columns)
    for problem in ("line 45: found 4 columns", "(1 row, line 44); train needs", "in case"):
        assert said.code == 0 and problem in said.err
    path.write_text(path.read_text("utf-8").replace("43,one,two,three\n", ""), encoding="utf-8")
    line = blame(call("train", path, "--out", run, *columns))
    assert "found an empty label" in line and line.count(hint) == 1
    line = blame(call("train", path, "--out", run, *columns, "--drop-incomplete"))
    assert "--fold-label-case" in line and line.count(hint) == 1
    # Nothing that is wrong with the file as a whole, or in another command.
    assert "inspect" not in blame(call("train", tmp_path / "none.csv", "--out", run))
    assert "inspect" not in blame(call("audit", path)) + blame(call("data", "inspect", path))


@pytest.mark.parametrize(
    "row,what",
    [
        ('{{"text": "zwina bzaf {0}", "id": {0}}}', "JSON objects"),
        ("{0};2024-05-0{0};zwina bzaf {0}", "rows of a table of 3 columns with ';'"),
        ("{0}\tzwina bzaf {0}", "rows of a table of 2 columns with a tab"),
        ("zwin{0}" + " 0.5 -1e-3 {0}.25 0" * 3, "word vectors"),
    ],
)
def test_a_table_named_plain_text_is_told_in_predict(call, finished, tmp_path, row, what):
    path = tmp_path / "new.txt"
    path.write_text("\n".join(row.format(n) for n in range(1, 8)) + "\n", encoding="utf-8")
    done = call("predict", finished.folder, path)
    assert done.code == 0 and f"warning: {path}: the lines look like {what}" in done.err


def test_texts_without_spaces_are_told(call, finished, tmp_path):
    table = [(label, text.replace(" ", "") * 5) for label, text in rows(20, seed=3)]
    path = write_table(tmp_path / "x.tsv", table)
    for words in (("data", "inspect", path), ("evaluate", finished.folder, path)):
        said = call(*words)
        assert "20 of 20 texts are one word of 25 letters or more (lines 2, 3, 4" in said.err
    thai = [(label, "ฉันชอบหนังเรื่องนี้มากจริงๆเลย") for label, _ in rows(20, seed=3)]
    said = call("data", "inspect", write_table(tmp_path / "thai.tsv", thai))
    assert said.code == 0 and "one word" not in said.err
