"""Curves over a few rows of each class: drawn, fitted, tested, gone on with."""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import pytest

from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, DataError, RunError
from superconext.core.progress import Progress
from superconext.data.reading import read_labelled
from superconext.experiments import runner
from superconext.experiments.compare import CURVE, compare, fewshot, shot_draws
from superconext.experiments.fit_job import run_fit
from superconext.experiments.paired_tests import hierarchical_bootstrap
from superconext.experiments.record import read_results
from superconext.experiments.runner import verify
from superconext.experiments.subsampling import draw_rows, parse_draw
from superconext.experiments.systems import parse_systems
from superconext.fitting import fit as fit_module
from superconext.fitting.fit import fit_model
from superconext.fitting.preprocess import preprocess
from superconext.report import figures
from tests.experiments.conftest import Heard, changed

BASELINES = 4


@pytest.fixture
def wanted(request_of):
    def build(**changes):
        fresh = {"verb": "fewshot", "shots": (2, 4), "seeds": 3, "dev": None, **changes}
        shots = fresh.pop("shots")
        draws = shot_draws(shots) if fresh["verb"] == "fewshot" else ()
        return request_of(objectives="superloss", draws=draws, **fresh)

    return build


def test_lines_are_the_fits_on_the_drawn_rows(wanted, data, tmp_path):
    request = wanted()
    curve = fewshot(request, Progress())
    lines = read_results(tmp_path / "out" / "results.jsonl")
    assert len(lines) == 2 * 3 * (BASELINES + 1)
    train, test = (read_labelled(data / f"{name}.tsv") for name in ("train", "test"))
    drawn, held = draw_rows((train.texts, train.labels), parse_draw("shots4"), 1, dev=True)
    config = resolve({**request.given, "seed": 1})
    model = fit_model(train.select(drawn), config, train.select(held)).model
    line = lines["superloss", 1, "shots4-1"]
    assert line["predictions"] == [("neg", "pos").index(x) for x in model.predict(test.texts)]
    assert line["rows"] == {"train": 8, "dev": 8, "test": 24} and line["shots"] == 4
    assert line["overlap"] == pytest.approx(4 / 25)
    assert list(curve.tables) == ["2", "4"]
    assert all(check.same for check in verify(tmp_path / "out", 3, Progress()))


def test_draws_are_paired_and_all_tests_corrected_together(wanted, tmp_path):
    curve = fewshot(wanted(seeds=4), Progress())
    lines = read_results(tmp_path / "out" / "results.jsonl")
    raw, found = {}, {}
    for shots in (2, 4):
        names = ("majority", "tfidf_svm", "vectors_logreg", "superloss", "tfidf_logreg")
        fits = {name: [lines[name, s, f"shots{shots}-{s}"] for s in range(4)] for name in names}
        scores = {name: [x["test"]["f1_weighted"] for x in of] for name, of in fits.items()}
        predictions = {name: np.array([x["predictions"] for x in of]) for name, of in fits.items()}
        truth = np.array(fits["majority"][0]["truth"])
        share = (shots / 25) / (1 - shots / 25)
        for row in curve.tables[str(shots)].rows:
            assert row.values == scores[row.name]
            if row.name == "tfidf_logreg":
                continue
            found[shots, row.name] = row
            both = predictions[row.name], predictions["tfidf_logreg"]
            expected = hierarchical_bootstrap(truth, *both, paired=True, overlap=share)
            assert (row.low, row.high) == (expected.low, expected.high)
            assert row.p == expected.p
            raw[shots, row.name] = expected.p
    highest = 0.0
    for rank, key in enumerate(sorted(raw, key=raw.get)):
        highest = max(highest, min(1, (len(raw) - rank) * raw[key]))
        assert found[key].p_holm == pytest.approx(highest)
    with (tmp_path / "out" / "table.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["shots"] for row in rows] == ["2"] * 5 + ["4"] * 5
    overview = (tmp_path / "out" / "overview.md").read_text("utf-8")
    assert overview.startswith("| system | 2 | 4 |") and "also drawn" in overview


def test_given_dev_rows_are_all_used_and_none_drawn(wanted, data, tmp_path):
    request = wanted(dev=str(data / "dev.tsv"), shots=(20,), seeds=1)
    fewshot(request, Progress())
    lines = read_results(tmp_path / "out" / "results.jsonl").values()
    assert {tuple(line["rows"].values()) for line in lines} == {(40, 16, 24)}


def test_more_sizes_and_seeds_go_on_where_it_stood(wanted, tmp_path):
    fewshot(wanted(shots=(2,), seeds=1), Progress())
    heard = Heard()
    fewshot(wanted(shots=(2, 3), seeds=2), heard)
    assert any("5 of 20 fits are in" in line for line in heard.lines)
    with pytest.raises(RunError, match="superconext fewshot, this is superconext compare"):
        compare(wanted(verb="compare"), Progress())


def test_few_steps_are_said(wanted):
    heard = Heard()
    fewshot(wanted(shots=(2,), seeds=1), heard)
    assert heard.lines[0].startswith(
        "note: 2 rows a class fill one batch, about 16 steps of training for superloss;"
    )
    heard = Heard()
    request = wanted(shots=(2,), seeds=1, out=wanted().out + "2")
    fewshot(changed(request, given={**request.given, "steps_per_epoch": 2}), heard)
    assert "fill one batch" not in "".join(heard.lines)


def test_few_steps_of_a_transformer_are_those_that_it_makes(request_of, tmp_path):
    pytest.importorskip("transformers")
    from tests.encoders.transformers import make_model

    heard = Heard()
    request = request_of(
        verb="fewshot",
        draws=shot_draws((2,)),
        seeds=1,
        dev=None,
        objectives="supcon,supcon:epochs=2,supcon:freeze=yes",
    )
    given = {"encoder": "transformer", "model": make_model(tmp_path / "bert")}
    fewshot(changed(request, given=given), heard)
    said = [line.split(";")[0] for line in heard.lines if "fill one batch" in line]
    about = "note: 2 rows a class fill one batch, about {} steps of training for {}"
    assert said == [about.format(24, "supcon"), about.format(2, "supcon:epochs=2")]


def test_all_rows_drawn_leave_nothing_to_test(wanted, data):
    request = wanted(dev=str(data / "dev.tsv"), shots=(25,), seeds=2)
    curve = fewshot(request, Progress())
    assert all(row.p is None for row in curve.tables["25"].rows)
    assert any("every draw takes all rows" in note for note in curve.table.notes)


@pytest.mark.parametrize("shots", [(), (1,), (4, 4), (0, 2)])
def test_shots_that_cannot_be_drawn(wanted, tmp_path, shots):
    with pytest.raises(ConfigError, match="at least 2, each once"):
        fewshot(wanted(shots=shots), Progress())
    assert not (tmp_path / "out").exists()


def test_too_few_rows_or_no_test_file_leave_no_folder(wanted, tmp_path):
    with pytest.raises(DataError, match=r"25 distinct texts .*expected 26 for 13 shots"):
        fewshot(wanted(shots=(2, 13)), Progress())
    with pytest.raises(ConfigError, match="add --test"):
        fewshot(wanted(test=None), Progress())
    assert not (tmp_path / "out").exists()


def test_the_curve_is_drawn_where_it_can_be(wanted, tmp_path, monkeypatch):
    monkeypatch.undo()
    if not figures.available():
        pytest.skip("figures need the extra plots")
    fewshot(wanted(shots=(2,), seeds=1), Progress())
    picture = tmp_path / "out" / "figures" / f"{CURVE}.png"
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_texts_of_rows_that_are_not_drawn_are_learned_from_without_their_labels(
    wanted, data, tmp_path
):
    given = {"vectors": None, "vector_dimension": 8, "epochs": 2, "hidden_size": 8}
    plain = dataclasses.replace(wanted(shots=(2,), seeds=1), given=given)
    fewshot(plain, Progress())
    out = tmp_path / "rest"
    rest = changed(plain, rest_unlabelled=True, out=str(out))
    curve = fewshot(rest, Progress())
    for grid in (curve.overview, curve.table):
        assert any("--rest-unlabelled" in note for note in grid.notes)
    train, test = (read_labelled(data / f"{name}.tsv") for name in ("train", "test"))
    drawn, held = draw_rows((train.texts, train.labels), parse_draw("shots2"), 0, dev=True)
    others = [train.texts[row] for row in {*range(len(train))} - {*drawn, *held}]
    rows = dataclasses.replace(train.select(drawn), unlabelled=others)
    model = fit_model(rows, resolve({**given, "seed": 0}), train.select(held)).model
    assert "walakin" in model.indexer.vocabulary
    line = read_results(out / "results.jsonl")["superloss", 0, "shots2-0"]
    assert line["predictions"] == [("neg", "pos").index(x) for x in model.predict(test.texts)]
    alone = read_results(tmp_path / "out" / "results.jsonl")["superloss", 0, "shots2-0"]
    assert line["dev"] != alone["dev"] or line["predictions"] != alone["predictions"]
    assert all(check.same for check in verify(out, 2, Progress()))
    with pytest.raises(RunError, match="rest_unlabelled = True, now False"):
        fewshot(changed(plain, out=str(out)), Progress())


@pytest.mark.parametrize("name", ["related", "soft_labels"])
def test_labels_of_rows_that_are_not_drawn_are_not_learned(wanted, data, tmp_path, name):
    """Not out of a file beside the drawn rows either: else k rows of a class were more."""
    train = read_labelled(data / "train.tsv")
    file = tmp_path / "whole.tsv"
    if name == "related":
        file.write_bytes((data / "train.tsv").read_bytes())
    else:
        rows = [
            f"{text}\t{int(label == 'neg')}\t{int(label == 'pos')}"
            for text, label in zip(train.texts, train.labels, strict=True)
        ]
        file.write_text("\n".join(["text\tneg\tpos", *rows]) + "\n", "utf-8")
    plain = wanted(shots=(2,), seeds=1)
    request = dataclasses.replace(plain, given={**plain.given, name: str(file)})
    source = (read_labelled(data / "train.tsv"), read_labelled(data / "test.tsv"))
    rows = {role: (of.texts, of.labels) for role, of in zip(("train", "test"), source, strict=True)}
    fit = next(fit for fit in request.plan() if fit.reads_parameters and not fit.is_baseline)
    seen = []

    def recorded(train, *rest, **more):
        prepared = preprocess(train, *rest, **more)
        seen.append((len(train.texts), prepared.facts[name]["rows"]))
        return prepared

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "preprocess", recorded)
        run_fit(fit, rows, request.given, ["neg", "pos"])
    assert seen and all(learned <= drawn for drawn, learned in seen)
    own = {**request.given, "vectors": None}
    rest = changed(dataclasses.replace(request, given=own), rest_unlabelled=True)
    with pytest.raises(ConfigError, match=f"rest_unlabelled with {name}"):
        fewshot(rest, Progress())


def test_the_rest_is_a_pool_for_an_objective_that_needs_one(wanted):
    one = parse_systems("css_lm")
    given = {"epochs": 1, "hidden_size": 8, "vector_method": "random", "vector_dimension": 8}
    given["options"] = "retrieved=2,queries=2"
    request = dataclasses.replace(wanted(shots=(4, 8), seeds=1), systems=one, given=given)
    with pytest.raises(ConfigError, match="unlabelled is not set"):
        fewshot(request, Progress())
    curve = fewshot(changed(request, rest_unlabelled=True), Progress())
    assert "css_lm" in [row.name for row in curve.tables["4"].rows]
    lines = read_results(Path(request.out) / "results.jsonl").values()
    most, fewest = (line["pool"] for line in lines if line["objective"] == "css_lm")
    assert most > fewest
    told = "Sentences in the unlabelled pool: css_lm {}."
    assert told.format(most) in curve.tables["4"].notes
    assert told.format(fewest) in curve.tables["8"].notes
    assert told.format(f"{fewest} to {most}") in curve.table.notes
    assert told.format(most) not in curve.table.notes


@pytest.mark.parametrize("given", [{}, {"vectors": None, "vector_method": "random"}], ids=str)
def test_the_rest_is_refused_where_nothing_learns_from_it(wanted, tmp_path, given):
    request = changed(wanted(shots=(2,), seeds=1), rest_unlabelled=True)
    request = dataclasses.replace(request, given={**request.given, **given})
    with pytest.raises(ConfigError, match="no system that learns from text"):
        fewshot(request, Progress())
    assert not (tmp_path / "out").exists()
    other = dataclasses.replace(request, systems=parse_systems("nbsvm"), given={"epochs": 1})
    assert "vectors_logreg" in [row.name for row in fewshot(other, Progress()).tables["2"].rows]


def test_recipes_of_all_sizes_are_counted_below_the_table(wanted, monkeypatch):
    def run(fit, *rest):
        own = {"recipes": [fit.split[:6]]} if fit.system.name == "superloss" else {}
        return real(fit, *rest) | own

    real = runner.run_or_report
    monkeypatch.setattr(runner, "run_or_report", run)
    notes = fewshot(wanted(), Progress()).table.notes
    (note,) = [note for note in notes if note.startswith("superloss: the recipe")]
    assert "shots2 (3), shots4 (3)." in note


def test_rows_learned_from_beside_the_drawn_ones_are_told(wanted, data, tmp_path):
    beside = tmp_path / "sister.tsv"
    beside.write_text("label\ttext\n" + "pos\tzwin bzaf hada\nneg\tkhayb walo\n" * 3, "utf-8")
    plain = wanted(shots=(2,), seeds=1)
    request = dataclasses.replace(plain, given={**plain.given, "related": str(beside)})
    curve = fewshot(request, Progress())
    names = ", ".join(system.name for system in request.systems)
    told = f"{names} learned from the related rows of sister.tsv too, and no other system did."
    assert told in curve.tables["2"].notes and told in curve.overview.notes
