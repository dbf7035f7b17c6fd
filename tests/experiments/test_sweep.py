"""A grid is chosen from on dev, and only the chosen point is shown on test."""

import csv
import re

import numpy as np
import pytest

from superconext.core.errors import ConfigError, RunError, TrainingError
from superconext.core.progress import Progress
from superconext.experiments import fit_job
from superconext.experiments.plan import cut
from superconext.experiments.record import read_results
from superconext.experiments.row_sources import read_rows
from superconext.experiments.runner import verify
from superconext.experiments.sweep import FIGURE, make_grid, sweep
from superconext.experiments.tables import make_table
from superconext.report import figures
from tests.experiments.conftest import Heard


@pytest.fixture
def wanted(request_of):
    def build(parameters=("temperature",), values=("0.05,0.5",), **changes):
        grid = make_grid("superloss", parameters, values)
        return request_of(verb="sweep", systems=grid, **{"seeds": 2, **changes})

    return build


def test_a_grid_has_every_combination_in_order():
    grid = make_grid("supcon", ["temperature", "pooling"], ["0.1, 1", "max,mean"])
    assert [dict(system.parameters) for system in grid] == [
        {"temperature": 0.1, "pooling": "max"},
        {"temperature": 0.1, "pooling": "mean"},
        {"temperature": 1.0, "pooling": "max"},
        {"temperature": 1.0, "pooling": "mean"},
    ]
    assert grid[0].name == "supcon:temperature=0.1+pooling=max"
    assert dict(make_grid("supcon", ["tune_vectors"], ["yes,no"])[1].parameters) == {
        "tune_vectors": False
    }


@pytest.mark.parametrize(
    ("parameters", "values", "message"),
    [
        (["temperature"], [], "one --values after each"),
        ([], [], "one --values after each"),
        (["temprature"], ["1"], "did you mean 'temperature'"),
        (["temperature"], ["1,warm"], "expected a number"),
        (["temperature"], ["0"], "above 0"),
        (["temperature"], [","], "one or more, each once"),
        (["temperature"], ["0.1,.10"], "one or more, each once"),
        (["temperature"] * 2, ["1", "2"], "given twice"),
        (["seed"], ["1,2"], "the experiment decides"),
        (["objective"], ["supcon"], "the experiment decides"),
    ],
)
def test_grids_that_cannot_be(parameters, values, message):
    with pytest.raises(ConfigError, match=message):
        make_grid("superloss", parameters, values)


def test_the_best_on_dev_is_chosen_and_alone_shown_on_test(wanted, tmp_path):
    request = wanted(("temperature", "pooling"), ("0.05,5", "max,mean"))
    heard = Heard()
    swept = sweep(request, heard)
    lines = read_results(tmp_path / "out" / "results.jsonl")
    names = [system.name for system in request.systems]
    dev = {n: np.mean([lines[n, s, "given"]["dev"]["f1_weighted"] for s in (0, 1)]) for n in names}
    best = max(names, key=dev.get)
    assert swept.chosen.system.name == best
    assert [row.name for row in swept.table.rows] == ["majority", "tfidf_logreg", "tfidf_svm", best]
    shown = [
        x
        for key, x in lines.items()
        if key[0] in (*("majority", "tfidf_logreg"), "tfidf_svm", best)
    ]
    expected = make_table(
        sorted(shown, key=lambda x: names.index(x["system"]) + 3 if x["system"] in names else 0),
        "tfidf_logreg",
    )
    assert swept.table.rows[-1].p == pytest.approx(expected.rows[-1].p)
    for point in swept.points:
        assert point.dev.means["f1_weighted"] == pytest.approx(dev[point.system.name])
    with (tmp_path / "out" / "dev.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["chosen"] for row in rows].count("True") == 1 and not any(
        "test" in k for k in rows[0]
    )
    told = [line for line in heard.lines if re.match(r"\[\d+/\d+\]", line)]
    assert len(told) == 3 + 8 and all("dev weighted F1" in line for line in told)
    assert not any(re.search(r"(?<!dev )(accuracy|weighted F1) ", line) for line in told)
    assert best in (tmp_path / "out" / "table.md").read_text("utf-8").replace("\\", "")
    assert all(check.same for check in verify(tmp_path / "out", 2, Progress()))


def test_test_rows_do_not_sway_the_choice(wanted, data, tmp_path):
    first = sweep(wanted(seeds=1), Progress())
    turned = tmp_path / "turned.tsv"
    swap = {"neg": "pos", "pos": "neg", "label": "label"}
    rows = [line.split("\t") for line in (data / "test.tsv").read_text("utf-8").splitlines()]
    turned.write_text("\n".join(f"{swap[label]}\t{text}" for label, text in rows) + "\n", "utf-8")
    again = sweep(wanted(seeds=1, test=str(turned), out=str(tmp_path / "two")), Progress())
    assert again.chosen.system == first.chosen.system
    assert [p.dev.values for p in again.points] == [p.dev.values for p in first.points]


def test_no_seed_chooses_on_test_rows_of_another(wanted, data, tmp_path):
    """Else the test score of the best of many values is too high, as its dev score is."""
    whole = tmp_path / "whole.tsv"
    parts = [(data / f"{name}.tsv").read_text("utf-8").split("\n", 1) for name in ("train", "test")]
    whole.write_text(
        "\n".join([parts[0][0], *(rows.strip("\n") for _, rows in parts), ""]), "utf-8"
    )
    request = wanted(seeds=4, train=str(whole), dev=None, test=None)
    (dataset,) = request.datasets
    source = read_rows(dataset, request.scheme(dataset), Progress())
    splits = [cut(source.rows, fit) for fit in request.plan() if fit.is_baseline]
    assert len(splits) > 4 and all(split["test"] == splits[0]["test"] for split in splits)
    held = {*splits[0]["test"][0]}
    chosen_on = [{*split["dev"][0]} for split in splits]
    assert len(held) > 4 and not any(held & dev for dev in chosen_on)
    assert len({frozenset(dev) for dev in chosen_on}) == 4
    swept = sweep(wanted(seeds=2, train=str(whole), dev=None, test=None), Progress())
    assert any("a tenth of the rows, the same for all seeds" in note for note in swept.table.notes)
    assert all(check.same for check in verify(tmp_path / "out", 2, Progress()))


def test_equals_are_decided_by_order(wanted):
    # One epoch of no learning: all values of a parameter that is not used are equal.
    swept = sweep(wanted(("options.mining_max_similarity",), ("0.9,0.8",), seeds=1), Progress())
    assert swept.points[0].dev.values == swept.points[1].dev.values
    assert swept.chosen is swept.points[0]


def test_a_point_with_a_failed_fit_is_not_chosen(wanted, monkeypatch, tmp_path):
    real = fit_job.run_fit

    def failing(fit, *rest):
        if dict(fit.system.parameters).get("temperature") == 0.05 and fit.seed == 1:
            raise TrainingError("loss is nan")
        return real(fit, *rest)

    monkeypatch.setattr(fit_job, "run_fit", failing)
    with pytest.raises(RunError, match="1 of 7 fits failed"):
        sweep(wanted(), Heard())
    with (tmp_path / "out" / "dev.csv").open(encoding="utf-8") as stream:
        assert [row["temperature"] for row in csv.DictReader(stream)] == ["0.5"]


def test_the_figure_is_drawn_where_it_can_be(wanted, tmp_path, monkeypatch):
    monkeypatch.undo()
    if not figures.available():
        pytest.skip("figures need the extra plots")
    sweep(wanted(seeds=1), Progress())
    picture = tmp_path / "out" / "figures" / f"{FIGURE}.png"
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
