"""The inspection of a small set whose every figure is known."""

from __future__ import annotations

import random

import pytest

from superconext.core.errors import ConfigError
from superconext.data.dataset import Dataset
from superconext.data.inspect import (
    deduplicated,
    inspect_parts,
    named_parts,
    told_other_shares,
)
from tests.cli.conftest import call_main

LONG = "had lfilm zwin bzaf ou l9issa dyalo momti3a men lbdaya 7etta lnihaya"


def corpus(name, *rows):
    labels, texts = [label for label, _ in rows], [text for _, text in rows]
    return Dataset(texts, labels, list(range(2, len(rows) + 2)), f"{name}.tsv", "00", [])


PARTS = {
    "train": corpus(
        "train",
        ("pos", "Bravooooo khoya"),
        ("pos", "bravooo khoya"),
        ("neg", "khayb bzaf"),
        ("pos", "khayb bzaf"),
        ("neg", LONG),
    ),
    "test": corpus(
        "test",
        ("pos", "bravooo khoya"),
        ("neg", "BRAVOOO khoya"),
        ("neg", "شكرا لكم"),
        ("pos", LONG + " hh"),
    ),
}


def test_every_figure():
    report = inspect_parts(PARTS, "latin")
    assert report["profile"] == "latin"
    train, test = report["parts"]
    assert train["rows"] == 5 and train["classes"] == {"neg": 2, "pos": 3}
    assert train["file"] == "train.tsv" and train["sha256"] == "00"
    lengths = [15, 13, 10, 10, len(LONG)]
    assert train["characters"]["min"] == 10 and train["characters"]["max"] == len(LONG)
    assert train["characters"]["mean"] == pytest.approx(sum(lengths) / 5, abs=0.01)
    assert train["characters"]["p50"] == 13 and train["characters"]["p90"] == len(LONG)
    assert train["words"]["p50"] == 2 and train["words"]["max"] == 12
    assert test["scripts"] == {"Latin": 3, "Arabic": 1}
    assert report["duplicates"] == {
        "within": [
            {"name": "train", "rows": 2, "identical": 1, "same_label": 1},
            {"name": "test", "rows": 1, "identical": 0, "same_label": 0},
        ],
        "across": [{"of": "test", "in": "train", "rows": 2, "identical": 1, "same_label": 1}],
    }
    conflicts = report["conflicts"]
    assert conflicts["texts"] == 2 and conflicts["rows"] == 6
    assert conflicts["examples"] == [
        {
            "text": "Bravooooo khoya",
            "labels": {"pos": 3, "neg": 1},
            "where": ["train:2", "train:3", "test:2", "test:3"],
        },
        {
            "text": "khayb bzaf",
            "labels": {"neg": 1, "pos": 1},
            "where": ["train:4", "train:5"],
        },
    ]
    near = report["near_duplicates"]
    assert (near["groups"], near["texts"], near["conflicts"]) == (1, 2, 1)
    assert near["across"] == [{"of": "test", "in": "train", "rows": 1}]
    assert near["examples"][0]["texts"] == [LONG, LONG + " hh"]
    assert near["examples"][0]["where"] == ["train:6", "test:5"]
    assert 0.8 <= near["examples"][0]["similarity"] < 1


def test_to_the_letter_without_near_duplicates_and_examples():
    report = inspect_parts(PARTS, "none", None, examples=0)
    assert report["near_duplicates"] is None
    assert [part["rows"] for part in report["duplicates"]["within"]] == [1, 0]
    assert report["conflicts"] == {"texts": 1, "rows": 2, "examples": []}
    near = inspect_parts(PARTS, "none", 0.8, examples=0)["near_duplicates"]
    assert near["groups"] and near["examples"] == []


def test_what_follows_is_to_mend_a_file_that_train_refuses(tmp_path):
    file = tmp_path / "d.csv"
    rows = ["text,label", *["zwin bzaf,pos", "khayb bzaf,neg"] * 3]
    file.write_text("\n".join([*rows, '"mzyan,pos', "ghali,neg"]) + "\n", encoding="utf-8")
    said = call_main("data", "inspect", file)
    assert said.code == 0 and "a quote that is never closed" in said.err
    assert "next: mend what is said above" in said.err + said.out
    file.write_text("\n".join([*rows, "mzyan,"]) + "\n", encoding="utf-8")
    said = call_main("data", "inspect", file)
    assert "d.csv --drop-incomplete --out RUN" in said.err + said.out


def test_what_cannot_be_done():
    with pytest.raises(ConfigError):
        inspect_parts(PARTS, "greek")
    with pytest.raises(ConfigError):
        inspect_parts(PARTS, "latin", 0.2)


def test_across_counts_rows_as_a_plain_loop_does():
    draw = random.Random(0)
    parts = {
        name: corpus(name, *((draw.choice("xy"), draw.choice("abcdef") * 2) for _ in range(12)))
        for name in ("train", "dev", "test")
    }
    for pair in inspect_parts(parts, "none", None)["duplicates"]["across"]:
        later, earlier = parts[pair["of"]], parts[pair["in"]]
        assert pair["rows"] == pair["identical"] == sum(t in earlier.texts for t in later.texts)
        known = list(zip(earlier.texts, earlier.labels, strict=True))
        assert pair["same_label"] == sum(
            p in known for p in zip(later.texts, later.labels, strict=True)
        )
    assert len(inspect_parts(parts, "none", None)["duplicates"]["across"]) == 3


def test_names_and_their_order():
    assert list(named_parts(["x/dev.tsv", "x/test.csv", "x/train.tsv.gz"])) == [
        *("train", "dev", "test")
    ]
    assert named_parts(["mac.tsv"], test="held.tsv") == {"train": "mac.tsv", "test": "held.tsv"}
    assert named_parts(["test.tsv", "b.tsv"], "c.tsv") == {
        "test": "test.tsv",
        "b": "b.tsv",
        "dev": "c.tsv",
    }
    assert named_parts(["a/x.tsv", "b/x.tsv", "c/x.tsv"]) == {
        "x": "a/x.tsv",
        "x-2": "b/x.tsv",
        "x-3": "c/x.tsv",
    }
    assert named_parts(["-"]) == {"stdin": "-"}
    assert named_parts([".hidden.tsv"]) == {"hidden": ".hidden.tsv"}


def test_a_file_given_twice():
    with pytest.raises(ConfigError, match=r"a.tsv is given twice"):
        named_parts(["a.tsv", "./a.tsv"])


def test_sets_without_copies():
    train = Dataset(["Zwin", "zwin", "bzaf", "khayb"], list("xyzx"), [1, 2, 3, 4], "t.tsv", "1", [])
    dev = Dataset(["khayb"], ["y"], [1], "d.tsv", "2", [])
    test = Dataset(["KHAYB", "bnin"], ["x", "x"], [1, 2], "e.tsv", "3", [])
    rows, record = deduplicated({"train": train, "dev": dev, "test": test}, "latin")
    assert rows == {
        "train": [("x", "Zwin"), ("z", "bzaf")],
        "test": [("x", "KHAYB"), ("x", "bnin")],
    }
    assert record["normalize"] == "latin"
    assert record["deduplicated"]["dev"] == {"file": "d.tsv", "sha256": "2", "rows": 1}


def test_classes_are_counted_within_each_script():
    texts = ["زوين", "خايب", "zwin", "خايب بزاف", "شكراا bravo"]
    part = Dataset(texts, ["good", "bad", "good", "bad", "good"], [1, 2, 3, 4, 5], "t", "1", [])
    found = inspect_parts({"train": part}, threshold=None)["parts"][0]["classes_by_script"]
    assert found == {
        "Arabic": {"bad": 2, "good": 1},
        "Latin": {"good": 1},
        "mixed or other": {"good": 1},
    }
    assert next(iter(found)) == "Arabic"


def shares(name, times=1, **counts):
    """Rows of two scripts: `latin_bad=30` are thirty of class bad in Latin letters."""
    words = {"latin": "zwin", "arabic": "زوين"}
    rows = [key.split("_") for key, count in counts.items() for _ in range(count * times)]
    return corpus(name, *((label, words[script]) for script, label in rows))


def test_the_class_whose_share_differs_most_between_train_and_test_is_told():
    train = shares("train", latin_bad=50, latin_good=100, arabic_bad=100, arabic_good=50)
    assert told_other_shares(train, train) == ""
    other = shares("test", latin_bad=100, latin_good=50, arabic_bad=50, arabic_good=100)
    assert (
        told_other_shares(train, other) == "67% of the Latin rows in test are 'bad', in train 33%"
    )
    most = shares("test", latin_bad=75, latin_good=75, arabic_bad=15, arabic_good=135)
    assert told_other_shares(train, most) == (
        "10% of the Arabic rows in test are 'bad', in train 67%"
    )
    all_bad = shares("test", latin_bad=150)
    assert told_other_shares(train, all_bad).startswith("100% of the Latin rows in test are 'bad'")
    one, two = shares("train", latin_bad=100, latin_good=100), shares("test", latin_bad=150)
    assert told_other_shares(one, two) == "100% of the rows in test are 'bad', in train 50%"


def test_shares_of_few_rows_by_chance_and_of_unknown_labels_are_not_told():
    train = shares("train", latin_bad=150, latin_good=50)
    assert told_other_shares(train, shares("test", latin_bad=49, latin_good=50)) == ""
    assert told_other_shares(train, shares("test", latin_bad=50, latin_good=50)) == ""  # 4.3 errors
    assert told_other_shares(train, shares("test", latin_bad=100, latin_good=100)) != ""
    near = shares("test", latin_bad=610, latin_good=390)
    assert told_other_shares(shares("train", times=5, latin_bad=150, latin_good=50), near) == ""
    new = corpus("test", *[("worse", "zwin")] * 150, *[("bad", "zwin")] * 50)
    assert told_other_shares(train, new) == "25% of the rows in test are 'bad', in train 75%"


def test_of_many_rows_evenly_spaced_ones_are_compared():
    counts = {"latin_bad": 8_000, "latin_good": 4_000, "arabic_bad": 4_000, "arabic_good": 8_000}
    other = {"latin_bad": 4_000, "latin_good": 8_000, "arabic_bad": 8_000, "arabic_good": 4_000}
    told = told_other_shares(shares("train", **counts), shares("test", **other))
    assert told == "33% of the Latin rows in test are 'bad', in train 67%"
