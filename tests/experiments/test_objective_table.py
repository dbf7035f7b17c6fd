"""scripts/objective_table.py: what dev rows choose, and the table of what was chosen."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from superconext.config.files import read_toml
from superconext.objectives.catalogue import OBJECTIVES

SCRIPT = Path(__file__).parents[2] / "scripts" / "objective_table.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("objective_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def line(system, dataset, on_dev, on_test, seed=0):
    scores = {"dev": {"f1_weighted": on_dev}, "test": {"f1_weighted": on_test}}
    return {"system": system, "dataset": dataset, "seed": seed, **scores}


def test_the_mean_over_the_dev_rows_of_the_sets_chooses(script, capsys):
    systems = [
        {"name": "a", "objective": "supcon"},
        {"name": "a 2", "objective": "supcon", "temperature": 0.3},
        {"name": "b", "objective": "triplet"},
        {"name": "b 2", "objective": "triplet", "options": "form=all"},
    ]
    found = {"a": (0.6, 0.7), "a 2": (0.8, 0.6), "b": (0.5, 0.5), "b 2": (0.5, 0.5)}
    results = [
        line(name, dataset, on_dev, 1 - on_dev)
        for name, both in found.items()
        for dataset, on_dev in zip(("x", "y"), both, strict=True)
    ]
    results.append(line("a", "x", 1.0, 1.0, seed=1))  # another seed has no say
    assert script.chosen(systems, results, ["x", "y"]) == [
        {"name": "supcon", "objective": "supcon", "temperature": 0.3},
        {"name": "triplet", "objective": "triplet"},
    ]
    assert capsys.readouterr().out == "70.0  a 2\n50.0  b\n"
    with pytest.raises(SystemExit, match="no fit of a on each of x, z"):
        script.chosen(systems, results, ["x", "z"])


def test_every_objective_is_in_the_grid():
    grid = read_toml(SCRIPT.with_name("objective_grid.toml"), "systems")["system"]
    assert {system["objective"] for system in grid} == set(OBJECTIVES.built_in)
    assert len({system["name"] for system in grid}) == len(grid)


@pytest.mark.slow
def test_end_to_end_and_again(tmp_path):
    sample = Path(__file__).parents[2] / "data" / "sample"
    parts = "".join(f'{part} = "{sample / part}.tsv"\n' for part in ("train", "dev", "test"))
    sets = tmp_path / "sets.toml"
    sets.write_text("".join(f'[[dataset]]\nname = "{name}"\n{parts}' for name in "xy"))
    grid = tmp_path / "grid.toml"
    fast = 'objective = "supcon"\nepochs = 1\nhidden_size = 8\nvector_method = "random"\n'
    grid.write_text(
        f'[[system]]\nname = "one"\n{fast}\n[[system]]\nname = "two"\n{fast}dropout = 0.5\n'
    )
    command = [sys.executable, SCRIPT, sets, "--tune", "x", "--grid", grid, "--seeds", "2"]
    for _ in range(2):
        done = subprocess.run(
            [*map(str, command), "--out", str(tmp_path / "out")], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert "| system | x | y | seconds |" in done.stdout
        assert "| supcon | " in done.stdout
    lines = (tmp_path / "out" / "table" / "results.jsonl").read_text().splitlines()
    ours = [one for one in map(json.loads, lines) if one["objective"] == "supcon"]
    assert sorted((one["dataset"], one["seed"]) for one in ours) == [
        (name, seed) for name in "xy" for seed in (0, 1)
    ]
    assert sorted(path.name for path in tmp_path.glob("*.toml")) == ["grid.toml", "sets.toml"]
