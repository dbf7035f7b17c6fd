"""Sets at Hugging Face, with a library of the same face that these tests write."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace

import pytest

from superconext.core.errors import DataError, MissingExtraError
from superconext.data.fetch import CATALOGUE, fetch, hub_parts


class Split(list):
    """A list of records with the `features` of a split."""

    def __init__(self, records, **features):
        super().__init__(records)
        self.features = features


TOPICS = SimpleNamespace(names=["Company", "Animal"])


@pytest.fixture
def library(monkeypatch):
    """`library.answer` is what `load_dataset` gives or raises; `library.asked` its arguments."""
    made = ModuleType("datasets")
    made.asked, made.bars = [], True

    def load_dataset(name, cache_dir):
        made.asked.append((name, cache_dir))
        if isinstance(made.answer, Exception):
            raise made.answer
        return made.answer

    made.load_dataset = load_dataset
    made.disable_progress_bars = lambda: setattr(made, "bars", False)
    monkeypatch.setitem(sys.modules, "datasets", made)
    return made


def test_rows_labels_and_columns(library, tmp_path):
    record = {"title": "Fox", "content": "An animal.", "label": 1}
    library.answer = {
        "train": Split([record, {**record, "label": 0}], label=TOPICS),
        "test": Split([record], label=TOPICS),
    }
    parts = hub_parts(CATALOGUE["dbpedia"], tmp_path)
    assert {part: list(rows) for part, rows in parts.items()} == {
        "train": [("Animal", "Fox An animal."), ("Company", "Fox An animal.")],
        "test": [("Animal", "Fox An animal.")],
    }
    assert library.asked == [("fancyzhx/dbpedia_14", str(tmp_path))] and not library.bars


def test_labels_without_names(library, tmp_path):
    split = Split([{"text": "fine", "label": 4}], label=SimpleNamespace(dtype="int64"))
    library.answer = {"train": split, "test": split}
    assert list(hub_parts(CATALOGUE["yelp_full"], tmp_path)["test"]) == [("4", "fine")]


def test_what_goes_wrong_there(library, tmp_path):
    library.answer = ConnectionError("Couldn't reach\nthe Hub")
    with pytest.raises(DataError, match=r"\(Couldn't reach the Hub\).*go online"):
        hub_parts(CATALOGUE["ag_news"], tmp_path)
    library.answer = {"train": Split([], label=TOPICS)}
    with pytest.raises(DataError, match="found the parts train, expected test too"):
        hub_parts(CATALOGUE["ag_news"], tmp_path)


def test_without_the_library(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtraError, match=r"superconext\[datasets\]"):
        hub_parts(CATALOGUE["ag_news"], tmp_path)


@pytest.mark.parametrize("given", ["source", "url_base"])
def test_files_of_ones_own_are_for_other_sets(tmp_path, given):
    with pytest.raises(DataError, match=r"ag_news: found --.*fetched by the library datasets"):
        fetch(CATALOGUE["ag_news"], tmp_path, **{given: str(tmp_path)})
