"""An objective of one's own: by file, `register`, environment variable and entry point.

The objective is the one of docs/objectives.md; no file of the package is touched.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from superconext import SuperConTextClassifier
from superconext.core.errors import ConfigError
from superconext.objectives.base import Objective
from superconext.objectives.catalogue import OBJECTIVES, objective_class, register
from superconext.runs.folder import load_model
from tests.cli.conftest import call_main, write_table

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "objectives.md").read_text(encoding="utf-8")
(FILE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


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


def test_the_file_is_short_and_trains_and_may_run_twice(place):
    assert len(FILE.splitlines()) < 100
    for _ in range(2):
        result = run(place, "proxies.py")
        assert result.returncode == 0, result.stderr
        assert result.stdout.strip() == "['good']"


PREDICT = ("-m", "superconext", "predict", "run", "new.txt", "--proba")


def train_and_predict(place, **environment):
    """The command line trains with `proxies` and answers two rows; what train printed."""
    words = ["zwin", "khayb", "lyoum", *map(str, range(12))]
    rows = [f"{w}\t{w} lyoum {i}" for i in range(12) for w in words[:2]]
    (place / "train.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    lines = [f"{w} {k % 2} {k % 3} {k % 5}" for k, w in enumerate(words)]
    (place / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (place / "new.txt").write_text("zwin lyoum\nkhayb lyoum\n", encoding="utf-8")
    command = "-m superconext train train.tsv --objective proxies --options margin=0.1 --out run"
    settings = "--vectors vectors.txt --no-subwords --tune-vectors --epochs 8 --hidden-size 8"
    more = "--batch-size 8 --learning-rate 0.03 --no-baselines --word-dropout 0 --keep last --cv 0"
    trained = run(place, *command.split(), *settings.split(), *more.split(), **environment)
    assert trained.returncode == 0, trained.stderr
    answer = run(place, "-m", "superconext", "predict", "run", "new.txt", **environment)
    assert [line.split("\t")[0] for line in answer.stdout.splitlines()] == ["zwin", "khayb"]
    return trained.stdout


@pytest.mark.long
def test_the_command_line_takes_it_from_the_environment_and_from_nowhere_else(place):
    known = {"SUPERCONEXT_OBJECTIVES": "proxies=proxies.py:Proxies"}
    assert "own rule" in train_and_predict(place, **known)
    assert "proxies.py" not in (place / "run" / "config.toml").read_text(encoding="utf-8")
    # Elsewhere, without the file, it predicts and is exported as before.
    answers = [run(place, *PREDICT, **known).stdout, run(place, *PREDICT).stdout]
    assert answers[0] == answers[1] != ""
    exported = run(place, "-m", "superconext", "export", "run", "--out", "lean")
    assert exported.returncode == 0, exported.stderr
    for code in ({}, known):  # what was saved without the code opens with it too
        assert run(place, *PREDICT[:3], "lean", *PREDICT[4:], **code).stdout == answers[0]
    scores = run(place, "-m", "superconext", "evaluate", "run", "train.tsv")
    assert scores.returncode == 0 and "own rule" not in scores.stdout
    assert load_model(place / "run").objectives == []


@pytest.mark.long
def test_the_command_line_finds_that_of_an_installed_package(place):
    about = place / "site" / "toy-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[superconext.objectives]\nproxies = toy_losses:Proxies\nsupcon = toy_losses:Proxies\n"
    )
    (place / "proxies.py").rename(place / "site" / "toy_losses.py")
    paths = os.pathsep.join([str(ROOT), str(place / "site")])
    assert "own rule" in train_and_predict(place, PYTHONPATH=paths)
    assert run(place, *PREDICT).returncode == 0  # without the package
    told = run(place, *PREDICT, PYTHONPATH=paths).stderr
    assert "superconext.objectives: 'supcon' is a built-in name; choose another" in told


def test_the_estimator_takes_a_registered_class(names, place, monkeypatch):
    monkeypatch.syspath_prepend(place)
    import proxies

    names.register("proxies", proxies.Proxies)
    assert "proxies" in list(OBJECTIVES) and names.summary("proxies").startswith("L = mean")
    texts = ["film zwin bzaf", "film khayb bzaf", "zwin had chi", "khayb had chi"] * 6
    settings = {"epochs": 40, "batch_size": 8, "learning_rate": 0.01, "vector_dimension": 8}
    model = SuperConTextClassifier(objective="proxies", **settings)
    model.fit(texts, ["good", "bad", "good", "bad"] * 6)
    assert list(model.predict(["film zwin", "film khayb"])) == ["good", "bad"]


@pytest.fixture
def names(monkeypatch):
    """The registry, which forgets afterwards what a test adds."""
    monkeypatch.setattr(OBJECTIVES, "_added", {})
    return OBJECTIVES


def test_registering_by_file_and_anew(names, place, monkeypatch):
    monkeypatch.chdir(place)
    register("mine", "proxies.py", "Proxies", "first")
    monkeypatch.chdir(ROOT)  # the file is found from elsewhere too
    first = objective_class("mine")
    assert issubclass(first, Objective) and objective_class("mine") is first
    register("mine", first.__module__, "Proxies", "second")
    assert objective_class("mine") is first and names.summary("mine") == "second"


def test_names_that_cannot_be(names):
    with pytest.raises(ConfigError, match="'superloss' is a built-in one's; choose another"):
        register("superloss", "mine.py", "Mine", "")
    with pytest.raises(ConfigError, match="'a,b' found; expected letters, digits"):
        register("a,b", "mine.py", "Mine", "")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"found no file .*mine\.py; expected name=path/to/file.py:Class, where a rel"),
        ("import nowhere_at_all", r"cannot be imported \(ModuleNotFoundError.*correct it"),
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


def test_what_the_environment_says_wrongly_is_told_and_left_out(names, capsys):
    OBJECTIVES._read_variable("good=mine.py:Mine, mine.py:Mine, x=mine.py, supcon=a.py:B")
    assert objective_class("supcon").__name__ == "SupCon"
    messages = capsys.readouterr().err.splitlines()
    assert len(messages) == 3 and all("SUPERCONEXT_OBJECTIVES" in text for text in messages)
    assert "found 'mine.py:Mine'; expected name=path/to/file.py:Class, where a rel" in messages[0]
    assert "good" in names and "x" not in names


@pytest.mark.parametrize("entry", ["mine=mine.py", "../mine.py:Mine", "mine=nowhere.py:Mine"])
def test_a_wrong_entry_stops_who_asks_for_it_and_nobody_else(names, tmp_path, entry, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(OBJECTIVES, "_faults", [])
    OBJECTIVES._read_variable(entry)
    table = write_table(tmp_path / "x.tsv", [("a", "film zwin"), ("b", "film khayb")] * 4)
    words = ("train", table, "--dev", table, "--vector-method", "random", "--epochs", 1)
    said = call_main(*words, "--objective", "mine", "--out", tmp_path / "mine")
    assert said.code and "found" in said.err and "note" not in said.err  # before it reads
    assert "name=path/to/file.py:Class" in said.err and "expected one of" not in said.err
    said = call_main(*words, "--objective", "cross_entropy", "--out", tmp_path / "run")
    assert said.code == 0 and ("left out of" in said.err) == ("nowhere" not in entry)
    assert call_main("predict", tmp_path / "run", stdin=b"zwin\n").code == 0


def test_a_run_whose_code_is_elsewhere_loads_where_its_place_is_named_wrongly(names, place):
    data = (["film zwin", "film khayb"] * 6, ["a", "b"] * 6)
    settings = {"epochs": 1, "vector_dimension": 8, "vector_method": "random"}
    for name in ("mine", "my-own.loss"):
        register(name, str(place / "proxies.py"), "Proxies", "")
        SuperConTextClassifier(objective=name, **settings).fit(*data).save(place / name)
        register(name, str(place / "gone" / "proxies.py"), "Proxies", "")
        assert load_model(place / name).predict(["film zwin"])[0] in "ab"


def test_an_unknown_name_is_told_where_to_add_ones_own():
    with pytest.raises(ConfigError) as caught:
        objective_class("nope")
    said = str(caught.value)
    assert "SUPERCONEXT_OBJECTIVES=nope=path/to/file.py:Class" in said
    assert "with OBJECTIVES.register of superconext.objectives.catalogue; " in said
