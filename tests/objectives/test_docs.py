"""docs/objectives.md has every objective and attribute; the site's page has every option."""

import inspect
import re
import runpy
from dataclasses import fields
from pathlib import Path

import pytest

from superconext.objectives.base import Objective
from superconext.objectives.catalogue import OBJECTIVES, objective_class

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "objectives.md").read_text(encoding="utf-8")
SITE = runpy.run_path(str(ROOT / "scripts" / "reference_pages.py"))
ROWS = {
    cells[0].strip("` "): cells[1:]
    for cells in (
        line.strip("|").split("|")
        for line in PAGE.partition("## Add your own")[0].splitlines()
        if line.startswith("| `")
    )
}


def test_every_objective_has_a_row():
    assert set(ROWS) == set(OBJECTIVES.built_in)


@pytest.mark.parametrize("name", sorted(OBJECTIVES.built_in))
def test_a_row_names_its_source_and_the_site_has_its_options(name):
    kind = objective_class(name)
    source = ROWS[name][1]
    assert source.strip() == "–" or re.search(r"\(20\d\d\)", source)
    section = SITE["objectives"]().split(f"## {name}\n")[1].split("\n## ")[0]
    assert f"Batches: {kind.batches}" in section and f".{kind.__name__}\n" in section
    own = kind.class_scores is not Objective.class_scores
    assert ("rule of its own" in section) == own
    for field in fields(kind.options_type):
        assert f"| `{field.name}` | {SITE['shown'](field.default)} |" in section


def test_the_site_tells_every_attribute():
    source = inspect.getsource(Objective)
    declared = [name for name in vars(Objective) if name in Objective.__annotations__]
    assert len(declared) >= 8
    for name in declared:
        assert re.search(rf"^ +#: .*\n(?: +#: .*\n)* +{name}: ", source, re.MULTILINE), name
    assert "Objective" in SITE["PUBLIC"]["superconext.objectives.base"]
    for name in re.findall(r"`((?:needs|scores|reads|uses)_\w+)`", PAGE):
        assert name in declared, name
