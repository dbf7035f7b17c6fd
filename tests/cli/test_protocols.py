"""`compare --protocol`, `--at-most` and `sweep --optuna` as a user meets them."""

from __future__ import annotations

import json

import pytest

from tests.cli.test_compare import words


def test_the_list_explains_each_and_needs_nothing(call):
    said = call("compare", "--protocol", "list")
    assert said.code == 0 and not said.err
    names = ["supercontext", "gunel-fewshot", "dualcl", "lacon", "css-lm", "transfer", "noise"]
    names.append("mteb-afrisenti")
    for name in names:
        assert f"{name}: " in said.out
    assert said.out.count("answers: ") == len(names)
    assert "departs: " in said.out and "misprint" in said.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--protocol", "supercontxt"], "did you mean 'supercontext'"),
        (["--protocol", "lacon", "--study", "few"], "expected one of protocol lacon"),
        (["--study", "shots"], "--study belongs to --protocol"),
        (["--protocol", "lacon", "--objectives", "lacon"], "a protocol names its systems"),
        (["--protocol", "transfer"], "found one; expected two"),
    ],
)
def test_wrong_usage(call, data, tmp_path, more, message):
    said = call("compare", data.train, "--test", data.test, "--out", tmp_path / "o", *more)
    assert said.code == 2 and message in " ".join(said.err.split()) and not said.out
    assert not (tmp_path / "o").exists()


def test_at_most_is_stated(call, data, tmp_path):
    out = tmp_path / "out"
    said = call(*words(data, out, "--at-most", 12, "--json"))
    assert said.code == 0, said.err
    notes = json.loads(said.out)["notes"]
    assert any("SUBSAMPLE: 12 of 40 rows of train" in note for note in notes)
    line = json.loads((out / "results.jsonl").read_text("utf-8").splitlines()[0])
    assert line["rows"] == {"train": 12, "dev": 12, "test": 12}
    assert call("compare", "--verify", out, 2).code == 0


def test_optuna_without_values_or_extra(call, data, tmp_path, monkeypatch):

    common = ("sweep", data.train, "--test", data.test, "--out", tmp_path / "o", "--seeds", 1)
    said = call(*common, "--optuna", 2, "--parameter", "layers", "--values", "2:1")
    assert said.code == 2 and "LOW below HIGH" in said.err
    from superconext.experiments import sweep

    monkeypatch.setattr(sweep.importlib.util, "find_spec", lambda name: None)
    said = call(*common, "--optuna", 2, "--parameter", "layers", "--values", "1,2")
    assert said.code == 2 and "superconext[optuna]" in said.err
