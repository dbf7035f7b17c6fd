"""The examples in the docstrings of the public names run and print what they show."""

import doctest
import importlib
import runpy
from pathlib import Path

import pytest

from superconext.objectives.catalogue import OBJECTIVES

SITE = runpy.run_path(str(Path(__file__).resolve().parents[1] / "scripts" / "reference_pages.py"))
#: Public names whose example is that of `load`, or would need an extra.
WITHOUT = {"LoadedClassifier", "TensorBoard", "OnnxModel"}
NAMES = [(module, name) for module, names in SITE["PUBLIC"].items() for name in names]
NAMES = [pair for pair in NAMES if pair[1] not in WITHOUT]


@pytest.mark.parametrize(
    ("module", "name"), [*NAMES, ("superconext.objectives.superloss", "SuperLoss")]
)
def test_the_example_is_true(module, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(OBJECTIVES, "_added", dict(OBJECTIVES._added))
    home = importlib.import_module(module)
    finder = doctest.DocTestFinder(recurse=False)
    (found,) = finder.find(getattr(home, name), name, module=home, globs=dict(vars(home)))
    assert found.examples, f"{name} has no example"
    assert not any(doctest.SKIP in example.options for example in found.examples)
    said: list[str] = []
    assert doctest.DocTestRunner().run(found, out=said.append).failed == 0, "".join(said)
