"""bfloat16 where the processor only emulates it: said once, measured once."""

import json
import time
import warnings

import pytest

from superconext import SuperConTextClassifier
from superconext.core import arithmetic
from tests.cli.conftest import call_main, rows, write_table
from tests.estimator.test_contract import LABELS, TEXTS, TINY

QUICK = ("--epochs", 1, "--hidden-size", 4, "--vector-dimension", 4, "--no-report")


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Calls of the measurement, each of which says that bfloat16 takes 7.6 times as long."""
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    calls = []
    monkeypatch.setattr(arithmetic, "measure_bfloat16", lambda: calls.append(7.6) or 7.6)
    return calls


def test_train_warns_and_measures_once(measured, tmp_path):
    table = write_table(tmp_path / "train.tsv", rows(40, seed=3))

    def train(name, *more):
        given = ("--dev", table, "--preset", "fast", "--no-baselines", *QUICK, *more)
        return call_main("train", table, "--out", tmp_path / name, *given)

    said = [train(name, "--precision", "bfloat16") for name in ("one", "two")]
    for one in said:
        assert one.code == 0, one.err
        (line,) = [line for line in one.err.splitlines() if "bfloat16" in line]
        assert line.startswith("warning: ") and "7.6 times as long" in line
        assert line.endswith("use --precision float32")
    assert measured == [7.6]
    kept = json.loads((tmp_path / "cache" / arithmetic.FILE).read_text())
    assert [kept[key] for key in kept if key.startswith("bfloat16 ")] == [7.6]
    assert "bfloat16" not in train("three").err and measured == [7.6]
    (tmp_path / "cache" / arithmetic.FILE).write_text("[1")
    assert "7.6 times" in train("four", "--precision", "bfloat16", "--quiet").err


def test_an_estimator_and_a_comparison_warn(measured, tmp_path):
    model = SuperConTextClassifier(**{**TINY, "epochs": 1}, precision="bfloat16")
    with pytest.warns(UserWarning, match="7.6 times as long") as caught:
        model.fit(TEXTS, LABELS)
    assert len([w for w in caught if "bfloat16" in str(w.message)]) == 1
    table = write_table(tmp_path / "train.tsv", rows(40, seed=3))
    given = ("--objectives", "superloss,cross_entropy", "--seeds", 1, *QUICK[:-1])
    given = (*given, "--test", table, "--precision", "bfloat16", "--out", tmp_path / "out")
    said = call_main("compare", table, *given)
    assert said.err.count("7.6 times as long") == 1, said.err


def test_no_word_where_it_is_faster(measured, monkeypatch):
    monkeypatch.setattr(arithmetic, "measure_bfloat16", lambda: 0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SuperConTextClassifier(**{**TINY, "epochs": 1}, precision="bfloat16").fit(TEXTS, LABELS)


def test_the_measurement_is_short():
    started = time.perf_counter()
    assert arithmetic.measure_bfloat16() > 0
    assert time.perf_counter() - started < 5
