"""docs/objectives.md: the table says what the classes say."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from superconext.objectives.base import Objective
from superconext.objectives.catalogue import BUILT_IN, objective_class

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "objectives.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("` "): cells[1:]
    for cells in (
        line.strip("|").split("|") for line in PAGE.splitlines() if line.startswith("| `")
    )
    if len(cells) == 6
}


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
