"""Parts by name, and sets without copies."""

from __future__ import annotations

import pytest

from superconext.core.errors import ConfigError
from superconext.data.dataset import Dataset
from superconext.data.inspect import deduplicated, named_parts


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
