"""Every protocol that is shipped can be planned, and its report has the paper's figures."""

import csv
import json
import re

import pytest

from superconext.core.errors import ConfigError
from superconext.experiments.plan import Request
from superconext.experiments.protocol import (
    chosen_studies,
    expand,
    explained,
    figure_of,
    key_in,
    load_protocol,
    protocol_names,
    run_study,
)
from superconext.experiments.runner import verify
from superconext.experiments.subsampling import parse_draw
from superconext.experiments.systems import OWN_RULE, DataSet, check_reference, fit_config
from tests.experiments.conftest import Heard, changed

NAMES = [
    "css-lm",
    "dualcl",
    "gunel-fewshot",
    "lacon",
    "mteb-afrisenti",
    "noise",
    "supercontext",
    "transfer",
]
TWO = (DataSet("one", "one.tsv", test="t.tsv", dev="d.tsv"), DataSet("two", "two.tsv"))


def test_the_protocols_are_those_of_the_papers():
    assert protocol_names() == NAMES
    with pytest.raises(ConfigError, match="did you mean 'supercontext'"):
        load_protocol("supercontxt")
    with pytest.raises(ConfigError, match="expected one of protocol lacon: shots, imbalance"):
        chosen_studies(load_protocol("lacon"), ["few"])


@pytest.mark.parametrize("name", NAMES)
def test_a_protocol_is_whole(name):
    protocol = load_protocol(name)
    told = explained(protocol)
    assert protocol.departs and all(line in told for line in (*protocol.departs, protocol.answers))
    for study in protocol.studies:
        request = expand(protocol, study, Request(TWO, (), 1, "out", reference=""), seeds=None)
        plan = request.plan()
        assert len({(fit.dataset, *fit.key) for fit in plan}) == len(plan)
        check_reference(request.reference, request.systems)
        for system in request.systems:
            fit_config(request.given, system, 0)
        known = {fit.system.name for fit in plan}
        for table in study.tables:
            assert {row.removesuffix(OWN_RULE) for row in table.rows} <= known
            assert table.draw is None or table.draw in study.draws
            for of in table.paper.values():
                for key, values in of.items():
                    assert len(values) == len(table.rows)
                    assert key in {*protocol.same.values(), *(k for k, _ in protocol.near.values())}
                    assert all(value != value or 0 < value < 100 for value in values)
            assert {row for _, row in table.misprints} <= set(table.rows)


def test_what_the_papers_ask_for():
    def study(name, at=0):
        return load_protocol(name).studies[at]

    assert study("gunel-fewshot").draws == ("rows20", "rows100", "rows1000")
    assert study("gunel-fewshot").seeds == 10 and study("gunel-fewshot").tables[0].top == 3
    assert study("dualcl").draws == ("share10", "") and study("dualcl").seeds == 10
    shots = [parse_draw(name).amount for name in study("dualcl", 1).draws]
    assert (shots[0], shots[-1]) == (5, 100)
    assert "shots20" in study("lacon").draws and not study("lacon").own_dev
    assert study("lacon", 1).draws == ("rho1", "rho3", "rho5", "rho10", "rho20")
    assert study("css-lm").draws == ("shots16",) and study("css-lm").seeds == 5
    table = study("supercontext").tables[2]
    assert figure_of(table, "paper", "msac", "superloss") == 80.10
    assert figure_of(table, "paper", "msac", "cross_entropy") is None
    assert figure_of(table, "paper", "arq", "superloss") is None


def test_data_sets_are_known_by_name_and_those_that_are_only_alike_are_told():
    protocol = load_protocol("supercontext")
    assert key_in(protocol, DataSet("", "x/msac/all.tsv")) == ("msac", "")
    assert key_in(protocol, DataSet("IMDB", "x.tsv")) == ("imdb", "")
    key, different = key_in(protocol, DataSet("sst2_sentence", "x.tsv"))
    assert key == "sst2" and "phrases" in different
    assert key_in(protocol, DataSet("afrisenti_arq", "x.tsv")) is None


def test_transfer_needs_two_and_drawn_dev_rows_leave_the_given_file():
    protocol = load_protocol("transfer")
    wanted = Request(TWO, (), 1, "out", reference="")
    request = expand(protocol, protocol.studies[0], wanted, seeds=2)
    assert [data.dev for data in request.datasets] == [None, None]
    names = {fit.system.name for fit in request.plan() if fit.dataset == "one"}
    assert "superloss from two" in names and "superloss from one" not in names
    with pytest.raises(ConfigError, match="expected two or more TRAIN files"):
        expand(protocol, protocol.studies[0], Request(TWO[:1], (), 1, "out"), seeds=None)


TINY = {"epochs": 1, "hidden_size": 4, "batch_size": 20}
STUDY = """
title = "Tiny"
paper = "a paper"
answers = "what?"
encoder = "another"
departs = ["all of it"]
misprints = ["page 1"]
[same]
toy = ["out_toy"]
[near.toy]
toy = "other rows"
[[study]]
name = "one"
answers = "this"
seeds = 3
reference = "tfidf_logreg"
draws = ["rows12", "labels30"]
[[study.system]]
objective = "cross_entropy"
[[study.system]]
name = "moved"
objective = "supcon"
transferred = {moved}
[[study.table]]
title = "T1"
draw = "rows12"
top = 1
rows = ["cross_entropy (own rule)", "cross_entropy"]
[[study.table.misprint]]
dataset = "toy"
row = "cross_entropy"
says = "not so"
[study.table.paper.BERT]
toy = [50.5, 60.25]
[[study.table]]
title = "T2"
metric = "f1_minor"
rows = ["cross_entropy"]
"""


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    from superconext.experiments import protocol as protocols

    def load(moved):
        folder = tmp_path / "package" / "protocols"
        folder.mkdir(parents=True)
        text = STUDY.replace("{moved}", "true" if moved else "false")
        (folder / "tiny.toml").write_text(text, encoding="utf-8")
        with monkeypatch.context() as patch:
            patch.setattr(protocols.resources, "files", lambda _: tmp_path / "package")
            return load_protocol("tiny")

    return load


def test_a_protocol_may_be_a_file_of_ones_own(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(STUDY.replace("{moved}", "false"), encoding="utf-8")
    assert load_protocol(str(file)).name == "mine"
    wrong = STUDY.replace("{moved}", "false").replace("f1_minor", "f1_makro")
    file.write_text(wrong, encoding="utf-8")
    with pytest.raises(ConfigError, match="metric = 'f1_makro', none of accuracy, f1_macro"):
        load_protocol(str(file))
    file.write_text("title = 'T'\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine\.toml: found no 'same'; expected a protocol"):
        load_protocol(str(file))
    with pytest.raises(FileNotFoundError, match=r"missing\.toml"):
        load_protocol(str(tmp_path / "missing.toml"))


def test_a_study_runs_and_shows_both_figures_and_comes_out_again(tiny, request_of, tmp_path):
    protocol = tiny(False)
    wanted = request_of(reference="", name="toy")
    wanted = changed(wanted, given={**wanted.given, **TINY})
    request = expand(protocol, protocol.studies[0], wanted, seeds=2)
    report = run_study(protocol, protocol.studies[0], request, Heard())
    grid = report.grids["T1"]
    assert grid.headings == ["system", "toy", "toy, top 1", "toy, BERT"]
    assert [row[3] for row in grid.rows] == ["50.5‡", "60.25†‡"]
    assert any("not so" in note for note in grid.notes)
    assert any("toy is not toy as printed: other rows" in note for note in grid.notes)
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").open()]
    own = [line for line in lines if line["system"] == "cross_entropy" and line["draw"] == "rows12"]
    assert len(own) == 2 and all(line["rows"]["train"] == 12 for line in own)
    native = [100 * line["native"]["test"]["accuracy"] for line in own]
    assert grid.rows[0][1].startswith(f"{sum(native) / 2:.1f} ±")
    best = max(own, key=lambda line: line["native"]["dev"]["accuracy"])
    assert grid.rows[0][2] == f"{100 * best['native']['test']['accuracy']:.1f}"
    with (tmp_path / "out" / "protocol.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0]["paper (BERT)"] == "0.505" and rows[0]["fits"] == "2"
    assert report.grids["T2"].headings == ["system", "toy rows12", "toy labels30"]
    text = (tmp_path / "out" / "protocol.md").read_text(encoding="utf-8")
    assert "page 1" in text and "all of it" in text and re.search("T1", text)
    assert f"Run here with 2 seeds in place of {protocol.studies[0].seeds}." in text
    assert "Set here: " in text and "epochs = 1" in text
    checks = verify(tmp_path / "out", 4, Heard())
    assert len(checks) == 4 and all(check.same for check in checks)


def test_a_frozen_encoder_is_probed_on_another_data_set(tiny, request_of, data, tmp_path):
    protocol = tiny(True)
    wanted = request_of(reference="", name="toy")
    (first,) = wanted.datasets
    rows = (data / "train.tsv").read_text("utf-8").splitlines()
    leaked = (data / "test.tsv").read_text("utf-8").splitlines()[1:6]
    rows += [f"{label}\t{text.upper()}" for label, text in (line.split("\t") for line in leaked)]
    (tmp_path / "other.tsv").write_text("\n".join(rows) + "\n", "utf-8")
    second = DataSet(
        "other", str(tmp_path / "other.tsv"), dev=first.dev, test=str(data / "dev.tsv")
    )
    wanted = changed(wanted, given={**wanted.given, **TINY}, datasets=(first, second))
    request = expand(protocol, protocol.studies[0], wanted, seeds=1)
    heard = Heard()
    run_study(protocol, protocol.studies[0], request, heard)
    lines = [json.loads(line) for line in (tmp_path / "out" / "results.jsonl").open()]
    moved = {(line["dataset"], line["source"]) for line in lines if "source" in line}
    assert moved == {("toy", "other"), ("other", "toy")}
    (line,) = (x for x in lines if x.get("source") == "other" and x["draw"] == "rows12")
    assert line["system"] == "moved from other" and line["rows"]["train"] == 12
    # Of toy's texts that stand in the other's train five of test, in capitals, and all of train
    # that are not drawn: their labels would be more than twelve.
    assert line["source_left_out"] == 5 + 50 - 12
    given = {**wanted.given, "probe_features": "encoder+ngrams"}
    request = expand(protocol, protocol.studies[0], changed(wanted, given=given), seeds=1)
    with pytest.raises(ConfigError, match="encoder of another data set"):
        run_study(protocol, protocol.studies[0], request, Heard())
