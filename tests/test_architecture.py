"""docs/architecture.md and CONTRIBUTING.md name what is there."""

import configparser
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
RECIPES = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`([a-z_]+(?:\.[a-z_]+)+):([A-Za-z_.]+)`", PAGE)


def test_the_life_of_a_row_has_fifteen_steps_that_name_functions():
    steps = re.findall(r"^\d+\. (.*)$", PAGE, re.MULTILINE)
    assert len(steps) == 15 and all("`" in step for step in steps)
    assert len(NAMED) > 20


@pytest.mark.parametrize(("module", "name"), NAMED, ids=[":".join(pair) for pair in NAMED])
def test_what_the_page_names_is_there(module, name):
    found = importlib.import_module(f"superconext.{module}")
    for part in name.split("."):
        found = getattr(found, part)
    assert found is not None


def test_the_page_draws_every_folder_of_the_package_and_the_contract_has_it():
    folders = {path.parent.name for path in (ROOT / "superconext").glob("*/__init__.py")}
    block = PAGE.split("```")[1]
    assert {name.rstrip("/") for name in re.findall(r"\b[a-z]+/", block)} >= folders
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    layers = config["importlinter:contract:stair"]["layers"]
    assert set(re.findall(r"[a-z]+", layers)) == folders


def test_nothing_is_loose_on_the_top_level_of_the_package():
    files = {path.name for path in (ROOT / "superconext").iterdir() if path.is_file()}
    assert files == {"__init__.py", "__main__.py", "_version.py", "py.typed"}


def test_every_kind_has_a_recipe_whose_test_and_names_are_there():
    rows = re.findall(r"^\| [a-z ]+ \| (.*?) \| `(.*?)` \| `(.*?)` \|$", RECIPES, re.MULTILINE)
    assert len(rows) == 6 + 1
    for base, registry, test in rows:
        assert (ROOT / test).is_file(), test
        for place in (*re.findall(r"`(.*?)`", base), registry):
            module, _, name = place.rpartition(".")
            assert hasattr(importlib.import_module(f"superconext.{module}"), name), place
    kinds = re.findall(r"^### An? (.*)$", RECIPES, re.MULTILINE)
    assert len(kinds) == 7 + 1  # a callback is given as an object, and has no registry


def test_recipes_are_programs():
    blocks = re.findall(r"```python\n(.*?)```", RECIPES, re.DOTALL)
    assert len(blocks) == 6 + 1
    for block in blocks:
        names: dict[str, object] = {}
        exec(compile(block, "recipe", "exec"), names)
        assert any(callable(value) for value in names.values())
