"""scripts/dialect_results.py: what its options make of a fit, and that it goes on where it was."""

import importlib.util
import json
from pathlib import Path

import pytest

from superconext.core.errors import ConfigError
from tests.cli.conftest import rows

SCRIPT = Path(__file__).parents[2] / "scripts" / "dialect_results.py"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPT.parent)
    spec = importlib.util.spec_from_file_location("dialect_results", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data" / "small"
    folder.mkdir(parents=True)
    for part, count in (("train", 60), ("dev", 20), ("test", 20)):
        lines = ["\t".join(row) for row in rows(count, len(part))]
        (folder / f"{part}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder.parent


def call(script, monkeypatch, *words):
    monkeypatch.setattr("sys.argv", ["dialect_results", *map(str, words)])
    script.main()


def test_a_parameter_that_is_set_reaches_every_fit_of_ours(script, data, tmp_path, monkeypatch):
    seen = []
    fit_model = script.fit_model

    def watched(train, config, dev, **others):
        seen.append((config.temperature, config.epochs, config.seed))
        return fit_model(train, config, dev, **others)

    monkeypatch.setattr(script, "fit_model", watched)
    words = (data, "--sets", "small", "--systems", "TF-IDF + LR,SuperLoss", "--out", tmp_path / "o")
    call(script, monkeypatch, *words, "--set", "temperature=2", "--set", "epochs=1")
    assert seen == [(2.0, 1, seed) for seed in range(5)]
    lines = [json.loads(x) for x in (tmp_path / "o" / "results.jsonl").read_text().splitlines()]
    assert len(lines) == 20 and all(line["test"]["n"] == 20 for line in lines)
    call(script, monkeypatch, *words, "--set", "temperature=2", "--set", "epochs=1")
    assert len(seen) == 5  # nothing was fitted again


def test_a_parameter_that_is_none_is_refused(script, data, tmp_path, monkeypatch):
    words = (data, "--sets", "small", "--systems", "SuperLoss", "--out", tmp_path / "o")
    with pytest.raises(ConfigError, match="temperatur"):
        call(script, monkeypatch, *words, "--set", "temperatur=2")


def test_tfidf_is_given_the_related_rows_that_say_no_held_text(script, tmp_path):
    path = tmp_path / "more.tsv"
    path.write_text("label\ttext\npos\tzwin\nmixed\tla\nneg\tkhayb\npos\tfilm\n", encoding="utf-8")
    texts, labels = script.pooled((["bnin"], ["pos"]), str(path), ["film"])
    assert (texts, labels) == (["bnin", "zwin"], ["pos", "pos"])
    texts, labels = script.pooled((["bnin", "7amd"], ["pos", "neg"]), str(path), ["film"])
    assert (texts, labels) == (["bnin", "7amd", "zwin", "khayb"], ["pos", "neg", "pos", "neg"])


@pytest.mark.filterwarnings("error")
def test_a_single_fit_has_no_deviation(script):
    scores = {"n": 2, "accuracy": 0.5, "f1_macro": 0.5, "f1_weighted": 0.5}
    line = {"set": "small", "system": "TF-IDF + LR", "seed": 0, "seconds": 1.0, "test": scores}
    assert "| 50.0 | 50.0 | 50.0 |" in script.table([line], "TF-IDF + LR")


@pytest.mark.parametrize("system", ["SuperLos", "TF-IDF + LR of both", "n-grams of both"])
def test_a_system_that_cannot_be_is_refused(script, data, tmp_path, monkeypatch, capsys, system):
    with pytest.raises(SystemExit) as stop:
        words = ("--sets", "small", "--systems", system, "--out", tmp_path / "o")
        call(script, monkeypatch, data, *words)
    assert stop.value.code == 2 and "expected some of majority" in capsys.readouterr().err
