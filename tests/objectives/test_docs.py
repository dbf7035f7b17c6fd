"""docs/objectives.md: the table says what the classes say, the file of one's own runs."""

import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from superconext.core.errors import ConfigError, RunError
from superconext.objectives import catalogue
from superconext.objectives.base import Objective
from superconext.objectives.catalogue import BUILT_IN, objective_class, register
from superconext.runs.folder import load_model

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "objectives.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("` "): cells[1:]
    for cells in (
        line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| `")
    )
    if len(cells) == 6
}
(FILE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_every_objective_has_a_row():
    assert set(ROWS) == BUILT_IN


@pytest.mark.parametrize("name", sorted(BUILT_IN))
def test_a_row_says_what_the_class_says(name):
    kind = objective_class(name)
    _, source, batches, rule, options = ROWS[name]
    assert batches.strip() == kind.batches
    assert (rule.strip() == "–") == (kind.class_scores is Objective.class_scores)
    assert source.strip() == "–" or re.search(r"\(20\d\d\)", source)
    told = set(re.findall(r"`(\w+=[^`]+)`", options))
    assert told == {f"{field.name}={shown(field.default)}" for field in fields(kind.options_type)}


def shown(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_every_attribute_is_told_with_its_default():
    table = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", PAGE, re.MULTILINE))
    declared = [name for name in vars(Objective) if name in Objective.__annotations__]
    assert len(declared) >= 8
    for name in declared:
        default = getattr(Objective, name)
        told = {"options_type": "none"}.get(name, f"`{default!r}`".replace("'", '"'))
        assert table[name].strip() == told


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "proxies.py").write_text(FILE, encoding="utf-8")
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("SUPERCONEXT_OBJECTIVES", raising=False)
    return tmp_path


def run(place, *words, **environment):
    return subprocess.run(
        [sys.executable, *words],
        cwd=place,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def test_the_file_is_short_and_trains(place):
    assert len(FILE.splitlines()) < 100
    result = run(place, "proxies.py")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "['good']"


def test_the_command_line_takes_it_from_the_environment_and_from_nowhere_else(place):
    words = ["zwin", "khayb", "lyoum", *map(str, range(12))]
    rows = [f"{w}\t{w} lyoum {i}" for i in range(12) for w in words[:2]]
    (place / "train.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    lines = [f"{w} {k % 2} {k % 3} {k % 5}" for k, w in enumerate(words)]
    (place / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (place / "new.txt").write_text("zwin lyoum\nkhayb lyoum\n", encoding="utf-8")
    known = {"SUPERCONEXT_OBJECTIVES": "proxies=proxies.py:Proxies"}
    command = "-m superconext train train.tsv --objective proxies --options margin=0.1 --out run"
    settings = "--vectors vectors.txt --no-subwords --tune-vectors --epochs 8 --hidden-size 8"
    more = "--batch-size 8 --learning-rate 0.03 --no-baselines --word-dropout 0 --keep last"
    trained = run(place, *command.split(), *settings.split(), *more.split(), **known)
    assert trained.returncode == 0, trained.stderr
    assert "own rule" in trained.stdout
    assert "proxies.py" not in (place / "run" / "config.toml").read_text(encoding="utf-8")
    answer = run(place, "-m", "superconext", "predict", "run", "new.txt", **known)
    assert [line.split("\t")[0] for line in answer.stdout.splitlines()] == ["zwin", "khayb"]
    with pytest.raises(RunError, match=r"'proxies'.* SUPERCONEXT_OBJECTIVES=proxies=path/to/"):
        load_model(place / "run")


@pytest.fixture
def names():
    before = dict(catalogue.CATALOGUE)
    yield catalogue.CATALOGUE
    catalogue.CATALOGUE.clear()
    catalogue.CATALOGUE.update(before)


def test_registering_by_file_and_anew(names, place, monkeypatch):
    monkeypatch.chdir(place)
    register("mine", "proxies.py", "Proxies", "first")
    monkeypatch.chdir(ROOT)  # the file is found from elsewhere too
    first = objective_class("mine")
    assert issubclass(first, Objective) and objective_class("mine") is first
    register("mine", first.__module__, "Proxies", "second")
    assert objective_class("mine") is first and names["mine"].summary == "second"


def test_names_that_cannot_be(names):
    with pytest.raises(ConfigError, match="'superloss' is a built-in one's; choose another"):
        register("superloss", "mine.py", "Mine", "")
    with pytest.raises(ConfigError, match="'a,b' found; expected letters, digits"):
        register("a,b", "mine.py", "Mine", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"mine\.py cannot be imported \(FileNotFoundError"),
        ("import nowhere_at_all", r"cannot be imported \(ModuleNotFoundError.*put it right"),
        ("def (", r"cannot be imported \(SyntaxError"),
        ("Other = 1", "has no class Mine that extends"),
        ("class Mine: pass", "has no class Mine that extends"),
    ],
)
def test_a_file_that_is_no_objective_is_told(names, tmp_path, content, message):
    path = tmp_path / "mine.py"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    register("mine", str(path), "Mine", "")
    with pytest.raises(ConfigError, match=message):
        objective_class("mine")


def test_what_the_environment_says_wrongly_is_told_and_left_out(names):
    with pytest.warns(UserWarning) as told:
        catalogue._register_named("good=mine.py:Mine, mine.py:Mine, x=mine.py, supcon=a.py:B")
    messages = [str(warning.message) for warning in told]
    assert len(messages) == 3 and all("SUPERCONEXT_OBJECTIVES" in text for text in messages)
    assert "found 'mine.py:Mine', expected name=path/to/file.py:Class" in messages[0]
    assert "good" in names and names["supcon"].cls == "SupCon" and "x" not in names
