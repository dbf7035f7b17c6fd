"""A figure of somebody else's: registered, it appears in the folder of every run."""

import json
import os
import subprocess
import sys
import warnings

import pytest

from superconext.core.errors import ConfigError, RunError
from superconext.core.progress import Progress
from superconext.report import figures
from superconext.report.figures import FIGURES, Figure, RunContext, draw_figures
from tests.cli.conftest import call_main, environment

pytest.importorskip("matplotlib")

OWN = '''
"""Rows of each class, a bar each."""
from collections import Counter

from superconext.report.figures import label_text, new_figure, save
from superconext.report.figures import Figure, RunContext


class ClassSizes(Figure):
    """Rows of each class."""

    context = RunContext

    def draw(self, context, path):
        counts = Counter(context.labels)
        figure = new_figure(4, 3)
        figure.add_subplot().bar([label_text(name) for name in counts], list(counts.values()))
        save(figure, path)
'''
ROWS = "".join(f"{label}\t{label} {word}\n" for label in ("neg", "pos") for word in "abcdefgh" * 2)
WORDS = ("--epochs", "1", "--hidden-size", "4", "--vector-dimension", "4", "--no-baselines")


@pytest.fixture
def registered(monkeypatch):
    """The registry, put back after the test."""
    monkeypatch.setattr(FIGURES, "_added", {})
    monkeypatch.setattr(figures, "available", lambda: True)
    return FIGURES


@pytest.fixture
def files(tmp_path):
    (tmp_path / "train.tsv").write_text(ROWS, encoding="utf-8")
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    return tmp_path


def pictures(run):
    return {path.name for path in (run / "figures").iterdir()}


def test_a_registered_figure_is_drawn_in_a_run_folder(registered, files):
    figures.register("class_sizes", f"{files / 'own.py'}:ClassSizes", "rows of each class")
    said = call_main("train", files / "train.tsv", "--out", files / "run", *WORDS)
    assert said.code == 0, said.err
    assert pictures(files / "run") == {"map.png", "confusion.png", "curves.png", "class_sizes.png"}
    assert (files / "run" / "figures" / "class_sizes.png").read_bytes()[:4] == b"\x89PNG"


def test_where_nothing_is_trained_there_are_no_curves(registered, files):
    frozen = [*WORDS, "--freeze"]
    said = call_main("train", files / "train.tsv", "--out", files / "run", *frozen)
    assert said.code == 0, said.err
    assert pictures(files / "run") == {"map.png", "confusion.png"}
    assert "curves" not in (files / "run" / "README.md").read_text(encoding="utf-8")


def test_an_environment_variable_adds_one_to_the_command_line(files):
    variables = environment() | {
        "SUPERCONEXT_FIGURES": f"class_sizes={files / 'own.py'}:ClassSizes",
        "OMP_NUM_THREADS": "1",
    }
    words = [sys.executable, "-m", "superconext", "train", "train.tsv", "--out", "run", *WORDS]
    subprocess.run(words, cwd=files, env={**os.environ, **variables}, check=True)
    assert "class_sizes.png" in pictures(files / "run")
    # The run folder holds the picture and no trace of the code.
    manifest = json.loads((files / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert "class_sizes" not in str({k: v for k, v in manifest.items() if k != "command"})


CONTEXT = RunContext([[0.0, 1.0]] * 4, ["a", "b"] * 2, ["a"] * 4, ["a", "b"], [{"loss": 0.5}])


class Warnings(Progress):
    def __init__(self):
        self.lines, self.notes = [], []

    def warn(self, line):
        self.lines.append(line)

    def note(self, line):
        self.notes.append(line)


def test_a_figure_that_fails_is_left_out_with_a_warning(registered, tmp_path):
    class Failing(Figure):
        context = RunContext

        def draw(self, context, path):
            raise ValueError("no such column")

    registered.register("failing", Failing)
    progress = Warnings()
    drawn = draw_figures({tmp_path: CONTEXT}, progress)
    assert [path.stem for path in drawn] == ["map", "confusion", "curves"]
    assert progress.lines == ["figure failing is left out (ValueError: no such column)"]


def test_a_warning_of_a_figure_is_heard(registered, tmp_path):
    class Doubtful(Figure):
        context = RunContext

        def draw(self, context, path):
            warnings.warn("too few rows", stacklevel=1)

    registered.register("warning", Doubtful)
    with pytest.warns(UserWarning, match="too few rows"):
        draw_figures({tmp_path: CONTEXT}, Warnings())


def test_without_the_extra_it_is_said_that_figures_are_left_out(monkeypatch, tmp_path):
    monkeypatch.setattr(figures, "available", lambda: False)
    progress = Warnings()
    assert draw_figures({tmp_path / "figures": CONTEXT}, progress) == []
    assert progress.notes == [figures.UNAVAILABLE] and not list(tmp_path.iterdir())


def test_a_file_that_cannot_be_written_is_an_error(registered, tmp_path):
    (tmp_path / "figures").write_text("")
    with pytest.raises((RunError, OSError)):
        draw_figures({tmp_path / "figures": CONTEXT}, Warnings())


def test_only_figures_of_the_context_are_drawn(registered, tmp_path):
    comparison = figures.ComparisonContext({"": {"a": [0.5], "b": [0.6, 0.7]}}, file_name="x")
    assert draw_figures({tmp_path / "c": comparison}, Warnings()) == [tmp_path / "c" / "x.png"]


def test_what_is_no_figure_is_refused(registered):
    registered.register("wrong", dict)
    with pytest.raises(ConfigError, match=r"extends superconext\.report\.figures\.Figure"):
        registered.get("wrong")
    with pytest.raises(ConfigError, match="built-in"):
        registered.register("map", dict)


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
def test_classes_without_a_font_make_one_note(registered, tmp_path, quiet):
    rows = ROWS.replace("neg\t", "\U000f1234\t").replace("pos\t", "\U000f1235\t")
    (tmp_path / "train.tsv").write_text(rows, encoding="utf-8")
    said = call_main("train", tmp_path / "train.tsv", "--out", tmp_path / "run", *WORDS, *quiet)
    assert said.code == 0 and "UserWarning" not in said.err
    note = "note: no installed font has the letters of \U000f1234 and 1 other label, so"
    assert said.err.count(note) == (not quiet)
