"""Numbers that are none, too large or all the same, through the command line."""

from __future__ import annotations

import json
import re

import pytest
import torch

from superconext.objectives.superloss import SuperLoss
from superconext.training.trainer import Trainer
from tests.cli.conftest import call_main, rows, write_table

SMALL = (
    *("--epochs", 3, "--hidden-size", 4, "--vector-dimension", 8),
    *("--batch-size", 8, "--vector-method", "random", "--no-baselines"),
)


@pytest.fixture(scope="module")
def train_file(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("numbers") / "train.tsv", rows(48, seed=7))


def train(path, out, *words):
    return call_main("train", path, "--out", out, *SMALL, *words)


def error_of(said, code=1):
    assert said.code == code and said.out == "", said.err
    last = said.err.splitlines()[-1]
    assert last.lower().startswith("error: ") and "Traceback" not in said.err
    return last


@pytest.mark.parametrize("name", ["temperature", "learning-rate"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "-1", "-0.0"])
def test_rates_and_temperatures_are_positive_numbers(train_file, tmp_path, name, value):
    said = train(train_file, tmp_path / "run", f"--{name}={value}")
    assert said.code in (1, 2) and name.replace("-", "_") in said.err.replace("-", "_")
    assert "expected" in said.err and "Traceback" not in said.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("value", ["nan", "inf", "-0.1", "2.5", "x", ""])
def test_margins_lie_in_their_limits(train_file, tmp_path, value):
    words = ("--objective", "triplet", "--options", f"margin={value}")
    line = error_of(train(train_file, tmp_path / "run", *words), 2)
    assert "margin" in line and "expected" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("objective", "options"),
    [
        ("ce_cl", "temperature_cl=0"), ("ce_cl", "temperature_cl=nan"), ("ce_cl", "weight=-1"),
        ("ce_scl", "weight=1"), ("ce_scl", "weight=inf"), ("triplet", "margin"),
        ("superloss", "nonsense=1"),
    ],
)  # fmt: skip
def test_options_of_an_objective_are_checked(train_file, tmp_path, objective, options):
    words = ("--objective", objective, "--options", options)
    assert "option" in error_of(train(train_file, tmp_path / "run", *words), 2)
    assert not list(tmp_path.iterdir())


class Fails:
    """Gives a loss that is not finite from the nth step on."""

    def __init__(self, monkeypatch, step, what):
        self.calls, forward = 0, SuperLoss.forward

        def failing(objective, batch):
            loss, scalars = forward(objective, batch)
            self.calls += 1
            if self.calls < step:
                return loss, scalars
            if what == "gradient":  # the loss is a number and its slope is none
                return loss + torch.sqrt(batch.projected.sum() * 0.0), scalars
            return loss * float(what), scalars

        monkeypatch.setattr(SuperLoss, "forward", failing)


@pytest.mark.parametrize("what", ["nan", "inf", "gradient"])
def test_a_loss_that_is_not_finite_stops_at_once(train_file, tmp_path, monkeypatch, what):
    fails = Fails(monkeypatch, 12, what)
    out = tmp_path / "run"
    line = error_of(train(train_file, out, "--steps-per-epoch", 5))
    assert fails.calls == 12
    assert re.search(r"(the loss|a gradient) is not finite in epoch 3, batch 2", line), line
    assert "learning_rate (now 0.00" in line and "temperature (now 0.1)" in line


def test_an_earlier_run_stays_as_it_was(train_file, tmp_path, monkeypatch):
    out = tmp_path / "run"
    assert train(train_file, out).code == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        Fails(patch, 7, "nan")
        error_of(train(train_file, out, "--force", "--steps-per-epoch", 5))
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert call_main("predict", out, train_file).code == 0


def test_weights_stay_finite_where_a_step_is_refused(train_file, tmp_path, monkeypatch):
    held = []
    step = Trainer._step

    def watched(trainer, *words):
        try:
            return step(trainer, *words)
        except Exception:
            held.extend(trainer.weights().values())
            raise

    monkeypatch.setattr(Trainer, "_step", watched)
    Fails(monkeypatch, 3, "gradient")
    error_of(train(train_file, tmp_path / "run"))
    assert held and all(torch.isfinite(weight).all() for weight in held)


def test_a_learning_rate_that_is_too_high_ends_in_one_line_or_a_run(train_file, tmp_path):
    said = train(train_file, tmp_path / "run", "--learning-rate", "1e30", "--temperature", "1e-30")
    assert "Traceback" not in said.err
    if said.code:
        assert "not finite" in error_of(said)
    else:
        assert call_main("predict", tmp_path / "run", train_file).code == 0


def test_texts_that_are_all_the_same(tmp_path):
    same = write_table(tmp_path / "same.tsv", [("pos", "zwin"), ("neg", "zwin")] * 12)
    said = train(same, tmp_path / "run", "--dev", same)
    assert said.code == 0, said.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert 0.0 <= metrics["dev"]["accuracy"] <= 1.0
    said = call_main("predict", tmp_path / "run", same, "--proba")
    assert said.code == 0 and "nan" not in said.out


def test_dev_and_test_sets_of_one_class(train_file, tmp_path):
    one = write_table(
        tmp_path / "one.tsv", [(label, t) for label, t in rows(60, 9) if label == "pos"]
    )
    said = train(train_file, tmp_path / "run", "--dev", one, "--test", one, "--calibrate")
    assert said.code == 0, said.err
    metrics = (tmp_path / "run" / "metrics.json").read_text(encoding="utf-8")
    assert "NaN" not in metrics and json.loads(metrics)["test"]["accuracy"] >= 0.0
    said = call_main("evaluate", tmp_path / "run", one, "--json")
    assert said.code == 0 and "NaN" not in said.out


@pytest.mark.parametrize("content", ["", "label\ttext\n", "\n\n"])
@pytest.mark.parametrize("flag", ["--dev", "--test"])
def test_empty_sets_are_refused_before_training(train_file, tmp_path, content, flag):
    (tmp_path / "empty.tsv").write_text(content, encoding="utf-8")
    line = error_of(train(train_file, tmp_path / "run", flag, tmp_path / "empty.tsv"))
    assert "empty.tsv" in line and "expected" in line
    assert [path.name for path in tmp_path.iterdir()] == ["empty.tsv"]


def test_an_empty_file_is_refused_by_evaluate_and_predict(train_file, tmp_path):
    assert train(train_file, tmp_path / "run").code == 0
    (tmp_path / "empty.tsv").write_text("", encoding="utf-8")
    for verb in ("evaluate", "predict"):
        assert "empty.tsv" in error_of(call_main(verb, tmp_path / "run", tmp_path / "empty.tsv"))
