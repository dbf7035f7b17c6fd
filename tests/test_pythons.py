"""The versions of Python that are promised: one floor everywhere, and pins that resolve on each."""

from __future__ import annotations

import configparser
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def pins():
    path = HOME / "scripts" / "resolve_pins.py"
    spec = importlib.util.spec_from_file_location("resolve_pins", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_setup_readme_makefile_and_linters_name_one_floor(pins):
    setup = configparser.ConfigParser()
    setup.read(HOME / "setup.cfg", encoding="utf-8")
    floor, *_ = promised = pins.promised()
    assert promised == sorted(promised, key=lambda name: int(name[2:]))
    assert setup["options"]["python_requires"] == f">={floor}"
    assert setup["mypy"]["python_version"] == floor
    project = tomllib.loads((HOME / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["tool"]["ruff"]["target-version"] == f"py{floor.replace('.', '')}"
    for name in ("README.md", "Makefile"):
        text = (HOME / name).read_text(encoding="utf-8")
        assert re.findall(r"Python (3\.\d+)(?:\+| or newer)", text) == [floor], name


def test_everything_that_is_installed_for_a_run_is_pinned(pins):
    pinned = (HOME / "constraints.txt").read_text(encoding="utf-8")
    for requirement in pins.requirements("train", "serve", "plots", "test"):
        name = re.match(r"[\w-]+", requirement)[0]
        assert re.search(rf"^{name}==", pinned, re.MULTILINE), name


@pytest.mark.slow
def test_the_pins_resolve_on_every_promised_python(pins, capsys, monkeypatch):
    """Asks the package index, which takes minutes."""
    monkeypatch.setattr("sys.argv", ["resolve_pins.py", *pins.promised()])
    assert pins.main() == 0, capsys.readouterr().out
