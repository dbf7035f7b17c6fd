"""Tables on data: aligned in any script, and honest about what is not known."""

from __future__ import annotations

import re

from superconext.data.dataset import Dataset
from superconext.data.fetch import CATALOGUE
from superconext.data.inspect import inspect_parts
from superconext.report.datasets import (
    catalogue_table,
    inspection,
    leaks,
    part_table,
    set_facts,
    set_table,
)
from superconext.report.table import display_width


def corpus(*rows):
    labels, texts = [label for label, _ in rows], [text for _, text in rows]
    return Dataset(texts, labels, list(range(1, len(rows) + 1)), "x.tsv", "", [])


PARTS = {
    "train": corpus(("إيجابي", "زوين بزاف"), ("سلبي", "خايب"), ("سلبي", "زوين بزاف")),
    "test": corpus(("سلبي", "زوين بزاف"), ("محايد", "والو\x1b[31m\u202e")),
}


def blocks(text):
    return [block.splitlines() for block in text.split("\n\n")]


def test_columns_stand_under_their_headings():
    for block in blocks(inspection(inspect_parts(PARTS, "arabic")))[:4]:
        rule = block[1]
        assert set(rule) == {"-", " "}
        ends = [found.end() for found in re.finditer("-+", rule)]
        for line in block[2:]:
            if not line.startswith("duplicates:"):
                assert display_width(line) <= ends[-1]
    classes = blocks(inspection(inspect_parts(PARTS, "arabic")))[0]
    assert [cell for cell in classes[-1].split() if cell != "all"] == ["3", "-", "2", "-"]
    shares = dict(re.findall(r"(\w+)\u200e +\d+ +([\d.]+)", "\n".join(classes)))
    assert shares == {"إيجابي": "33.3", "سلبي": "66.7", "محايد": "0.0"}


def test_what_was_found_is_said():
    report = inspect_parts(PARTS, "arabic")
    text = inspection(report)
    assert re.search(r"within train +1 +33.3 +1 +0", text)
    assert re.search(r"test in train +1 +50.0 +1 +1", text)
    assert "texts that have another label in another row: 1, in 3 rows" in text
    assert "سلبي 2, إيجابي 1  (train:1, train:3, test:1)" in text
    assert leaks(report) == ["1 of 2 rows of test (50.0%) are in train too"]
    assert "near-duplicates (similarity 0.8 or more): 0 texts in 0 groups" in text
    assert "near-duplicates" not in inspection(inspect_parts(PARTS, "arabic", None))


def test_texts_cannot_steer_the_terminal():
    text = "bzaf had lfilm zwin ou momti3a\x1b[31m\u202e"
    parts = {"all": corpus(("a", text), ("b", text), ("a", text + " hh"))}
    shown = inspection(inspect_parts(parts, "none"))
    assert "lfilm" in shown and "\x1b" not in shown and "\u202e" not in shown


def test_the_catalogue():
    lines = catalogue_table(list(CATALOGUE.values())).splitlines()
    assert len(lines) == len(CATALOGUE) + 2
    assert {line.split()[0] for line in lines[2:]} == set(CATALOGUE)
    by_name = {line.split()[0]: line for line in lines[2:]}
    assert "unknown" in by_name["msac"] and "1998 in all" in by_name["msac"]
    assert "MD5" in by_name["imdb"] and "25000 / - / 25000" in by_name["imdb"]
    assert "by hand" in by_name["amazon_full"] and "Hugging Face" in by_name["dbpedia"]


def test_all_about_a_set():
    text = set_table(CATALOGUE["sst2_phrases"])
    assert "bytes 7439277, MD5 9f81648d4199384278b86e315dac217c" in text
    assert "rows      train 67349, test 872" in text
    assert "MD5 unknown" in set_table(CATALOGUE["msac"])
    assert set_facts(CATALOGUE["dbpedia"])["hugging_face"] == "fancyzhx/dbpedia_14"


def test_the_parts_written():
    files = {"train.tsv": {"classes": {"a": 3, "b": 1}}, "dev.tsv": {"classes": {"a": 1}}}
    lines = part_table(files).splitlines()
    assert lines[0].split() == ["class", "train", "train", "%", "dev", "dev", "%"]
    assert lines[3].split() == ["b", "1", "25.0", "0", "0.0"]


def test_class_shares_within_each_script():
    two = corpus(("a", "زوين"), ("b", "خايب"), ("b", "خايب"), ("b", "واو"), ("a", "zwin"))
    text = inspection(inspect_parts({"train": two, "test": corpus(("a", "ok"))}, "none", None))
    (block,) = [lines for lines in blocks(text) if lines[0].split()[:2] == ["script", "of"]]
    assert block[0].split() == ["script", "of", "rows", "a", "%", "b", "%"]
    assert [line.split() for line in block[2:]] == [
        ["Arabic", "train", "4", "25.0", "75.0"],
        ["Latin", "train", "1", "100.0", "0.0"],
        ["Latin", "test", "1", "100.0", "0.0"],
    ]
    assert "script  of" not in inspection(inspect_parts({"train": corpus(("a", "ok"))}, "none"))
