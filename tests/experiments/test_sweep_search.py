"""A search proposes, chooses on dev, goes on where it was stopped, and needs its extra."""

import importlib.util

import pytest

from superconext.core.errors import ConfigError, MissingExtraError
from superconext.experiments import fit_job, sweep
from superconext.experiments.record import read_results
from superconext.experiments.runner import verify
from superconext.experiments.sweep import Axis, parse_axes
from superconext.objectives.catalogue import objective_class
from tests.experiments.conftest import Heard, changed


def test_axes():
    names = ["temperature", "layers", "pooling", "hidden_size"]
    assert parse_axes(names, ["0.05:0.5:log", "1,2", "max,mean", "8:64"]) == (
        Axis("temperature", (), 0.05, 0.5, False, True),
        Axis("layers", (1, 2)),
        Axis("pooling", ("max", "mean")),
        Axis("hidden_size", (), 8.0, 64.0, True, False),
    )


def test_the_range_of_an_option_is_of_the_options_type():
    kinds = [objective_class("css_lm").options_type]
    names = ["options.weight", "options.retrieved", "options.other"]
    axes = parse_axes(names, ["0:2", "4:8", "0:1"], kinds)
    assert [axis.whole for axis in axes] == [False, True, True]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("temperature", "0.5:0.05", "LOW below HIGH"),
        ("temperature", "0.1:0.5:lin", "LOW:HIGH:log"),
        ("temperature", "0.1:warm", "expected a number"),
        ("pooling", "max:mean", "that is a number"),
        ("dropout", "0:0.5:log", "above 0 on a log scale"),
        ("seed", "1,2", "the experiment decides"),
        ("temprature", "0:1", "did you mean 'temperature'"),
        ("layers", "1,1", "each once"),
    ],
)
def test_axes_that_cannot_be(name, text, message):
    with pytest.raises(ConfigError, match=message):
        parse_axes([name], [text])


def test_without_the_extra_it_says_which(monkeypatch, request_of, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    request = request_of(verb="sweep", systems=())
    with pytest.raises(MissingExtraError, match=r"superconext\[optuna\]"):
        sweep.search(request, "superloss", parse_axes(["layers"], ["1,2"]), 2, Heard())
    assert not (tmp_path / "out").exists()


def test_the_best_trial_on_dev_gets_the_other_seeds_and_a_restart_adds_nothing(
    request_of, tmp_path, monkeypatch
):
    pytest.importorskip("optuna")
    axes = parse_axes(["temperature", "pooling"], ["0.05:2:log", "max,mean"])
    given = {"epochs": 1, "hidden_size": 4, "batch_size": 20}
    request = request_of(verb="sweep", systems=(), seeds=2)
    request = changed(request, given={"vectors": request.given["vectors"], **given})
    run = []
    real = fit_job.run_fit
    monkeypatch.setattr(fit_job, "run_fit", lambda fit, *rest: run.append(fit) or real(fit, *rest))
    swept = sweep.search(request, "superloss", axes, 4, Heard())
    path = tmp_path / "out" / "results.jsonl"
    lines = read_results(path)
    trials = {key[0]: line for key, line in lines.items() if line["objective"] == "superloss"}
    assert len(trials) == len(swept.points) == 4
    first = {n: lines[n, 0, "given"]["dev"]["f1_weighted"] for n in trials}
    assert first[swept.chosen.system.name] == max(first.values())
    seeds = {name: sum(key[0] == name for key in lines) for name in trials}
    assert seeds == {name: 1 + (name == swept.chosen.system.name) for name in trials}
    rows = [row.name for row in swept.table.rows]
    assert rows == ["majority", "tfidf_logreg", "tfidf_svm", swept.chosen.system.name]
    shown = "".join(p.read_text("utf-8") for p in (tmp_path / "out").glob("*.md"))
    assert "TPE sampler with seed 0" in shown
    count, whole = len(run), path.read_bytes()
    assert count == 3 + 4 + 1
    again = sweep.search(request, "superloss", axes, 4, Heard())
    assert len(run) == count and path.read_bytes() == whole
    assert again.chosen.system == swept.chosen.system
    # Stopped after two trials: those stand, the same ones follow.
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:5]))
    sweep.search(request, "superloss", axes, 4, Heard())
    assert set(read_results(path)) == set(lines) and len(run) == count + 3
    assert all(check.same for check in verify(tmp_path / "out", 2, Heard()))
