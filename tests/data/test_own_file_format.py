"""File formats of users: registered from outside the package, trained on and predicted from."""

from __future__ import annotations

import json

import pytest

from superconext.core.errors import ConfigError, DataError
from superconext.data.file_format import FILE_FORMATS, LineFormat
from superconext.data.formats import TableFormat
from superconext.data.reading import RowStream, read_labelled, read_texts
from tests.cli.conftest import call_main


class PipeSeparated(TableFormat):
    """Columns separated by `|`."""

    suffixes = (".psv",)
    separator, separator_name = "|", "pipe"


class Arrows(LineFormat):
    """One row a line: the text, an arrow, the label."""

    @classmethod
    def recognises(cls, first_line, file):
        return " => " in first_line

    def row(self, line, number):
        text, arrow, label = line.rpartition(" => ")
        if not arrow:
            raise DataError(f"{self.file.name}, line {number}: no arrow found, expected one")
        return text, label


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(FILE_FORMATS, "_added", {})
    FILE_FORMATS.register("psv", PipeSeparated)
    FILE_FORMATS.register("arrows", Arrows)


def rows(count=20):
    words = {"pos": "zwin bzaf mzyan", "neg": "khayb bzaf 3yan"}
    return [(label, f"{words[label]} {i}") for i in range(count) for label in words]


def test_training_and_prediction_through_the_command_line(tmp_path):
    path = tmp_path / "train.psv"
    path.write_text("id|label|text\n" + "".join(f"7|{a}|{b}\n" for a, b in rows()))
    small = ["--epochs", "2", "--hidden-size", "4", "--vector-dimension", "4", "--no-baselines"]
    trained = call_main("train", path, "--out", tmp_path / "run", "--quiet", *small)
    assert trained.code == 0, trained.err
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert set(manifest["data"]["train"]["classes"]) == {"pos", "neg"}
    predicted = call_main("predict", tmp_path / "run", path)
    assert predicted.code == 0 and predicted.out.count("\n") == 40
    inspected = call_main("data", "inspect", path, "--json", "--quiet")
    assert json.loads(inspected.out)["parts"][0]["rows"] == 40


def test_messages_columns_and_blank_lines_are_those_of_every_table(tmp_path):
    path = tmp_path / "some.psv"
    path.write_text("label|text\n\npos|zwin\nneg|khayb|more\n")
    with pytest.raises(DataError, match="line 4: found 3 columns separated by pipes, expected 2"):
        read_labelled(path)
    stream = RowStream(path, labelled=False, on_error="skip")
    assert [text for block in stream for text in block.texts] == ["zwin"]
    assert stream.skipped == 1 and stream.notes == ["1 blank line left out"]


def test_a_format_known_by_its_first_line(tmp_path):
    path = tmp_path / "some.rows"
    path.write_text("".join(f"{text} => {label}\n" for label, text in rows(2)))
    assert read_labelled(path).labels == ["pos", "neg"] * 2
    assert read_texts(path).texts[0] == "zwin bzaf mzyan 0"
    path.write_text("a => pos\nb\n")
    with pytest.raises(DataError, match="line 2: no arrow"):
        read_labelled(path)


def test_built_in_formats_keep_their_names_and_suffixes(tmp_path):
    with pytest.raises(ConfigError, match="built-in"):
        FILE_FORMATS.register("tsv", PipeSeparated)
    path = tmp_path / "some.tsv"
    path.write_text("label\ttext\npos\ta => b\n")
    assert read_labelled(path).texts == ["a => b"]
