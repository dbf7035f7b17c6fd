"""`compare --cv`: every system on the same folds of one small file."""

from __future__ import annotations

import csv
import json
import shutil

import pytest

from superconext.config.parameters import resolve
from superconext.core.progress import Progress
from superconext.data.reading import read_labelled
from superconext.fitting import cross_validation
from superconext.fitting.cross_validation import (
    TFIDF,
    CrossValidation,
    cross_validate,
)
from superconext.probe.ensemble import ALONE
from tests.cli.conftest import call_main, write_table
from tests.fitting.test_cross_validation import dataset

TRAINED = (
    *("--vector-method", "random", "--vector-dimension", "8", "--epochs", "1"),
    *("--steps-per-epoch", "2", "--hidden-size", "4", "--batch-size", "12", "--no-subwords"),
)


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """Thirty rows of three classes, a copy of the first, and the only row of a fourth class."""
    data = dataset(30)
    table = list(zip(data.labels, data.texts, strict=True))
    path = tmp_path_factory.mktemp("few") / "few.tsv"
    return write_table(path, [*table, table[0], ("rare", "wahd bark")])


@pytest.fixture(scope="module")
def finished(few, tmp_path_factory):
    out = tmp_path_factory.mktemp("folds") / "out"
    said = call_main("compare", few, "--objectives", "cross_entropy,nbsvm", *TRAINED, "--out", out)
    assert said.code == 0, said.err
    return out, said


def read_lines(out):
    content = (out / "results.jsonl").read_text(encoding="utf-8")
    return {line["system"]: line for line in map(json.loads, content.splitlines())}


def test_few_rows_are_cross_validated_by_themselves(finished):
    out, said = finished
    assert "32 rows are cross-validated, 5 folds, --seeds 1: 5 fits of each system" in said.err
    names = ["majority", "tfidf_logreg", "tfidf_svm", "nbsvm", "cross_entropy"]
    with (out / "predictions.tsv").open(encoding="utf-8") as stream:
        table = list(csv.DictReader(stream, delimiter="\t"))
    assert list(table[0]) == ["line", "label", *names]
    assert [int(row["line"]) for row in table] == list(range(2, 34)), "every row of the file"
    *judged, rare = table
    assert all(row[name] in ("bad", "good", "so", "rare") for row in judged for name in names)
    assert rare["label"] == "rare" and not any(rare[name] for name in names)
    with (out / "table.csv").open(encoding="utf-8") as stream:
        scores = {row["system"]: row for row in csv.DictReader(stream)}
    for name, line in read_lines(out).items():
        hits = sum(row[name] == row["label"] for row in judged)
        assert line["test"] == {**line["test"], "n": 31, "accuracy": hits / 31}
        folds = [fold["test"]["accuracy"] for fold in line["folds"]]
        assert float(scores[name]["accuracy_mean"]) == pytest.approx(sum(folds) / 5)
        low, high = (float(scores[name][f"accuracy_{side}"]) for side in ("low", "high"))
        assert 0 <= low < hits / 31 <= high + 1e-9 <= 1 + 1e-9 and scores[name]["fits"] == "5"
    assert "95% of accuracy" in said.out and "of 30 texts" in said.out
    assert float(scores["nbsvm"]["p"]) <= 1 and scores["nbsvm"]["test"].startswith("corrected")


def test_folds_and_figures_are_those_of_train(finished, few):
    lines = read_lines(finished[0])
    rows = read_labelled(few)
    names = ("vector_method", "vector_dimension", "epochs", "steps_per_epoch", "hidden_size")
    values = ("random", 8, 1, 2, 4)
    given = {**dict(zip(names, values, strict=True)), "batch_size": 12, "subwords": False}
    cv = CrossValidation(rows, resolve({**given, "objective": "cross_entropy"}), 5, Progress())
    cv.add([TFIDF])
    ours = {"cross_entropy": cross_validate(cv).recipe}
    ours["tfidf_logreg"] = cv.held_out({TFIDF: TFIDF}, ALONE)
    held = [len(fold.held) for fold in cv.folds]
    for line in lines.values():
        assert [fold["rows"]["test"] for fold in line["folds"]] == held
    for name, found in ours.items():
        metrics = found.metrics(rows, cv.classes)
        for metric in ("accuracy", "f1_macro", "f1_weighted"):
            assert lines[name]["test"][metric] == metrics[metric]


def test_rare_classes_weigh_more_in_baselines_too_and_own_rules_have_no_row(few, call, tmp_path):
    words = ("compare", few, "--objectives", "cross_entropy,nbsvm", *TRAINED, "--out")
    told = "logit_adjustment gives rare classes more weight in the baselines too, but not in"
    said = call(*words, tmp_path / "one", "--logit-adjustment", "1")
    out = " ".join(said.out.split())
    assert said.code == 0 and f"{told} majority, tfidf_svm, nbsvm." in out
    assert "vectors that are trained on the rows have read the texts of the fold" in out
    said = call(*words, tmp_path / "two", "--reference", "cross_entropy (own rule)")
    assert said.code == 1 and "which has no row in a cross-validation" in said.err
    assert not (tmp_path / "two").exists()


def test_an_encoder_that_collapsed_on_a_fold_is_told(few, call, tmp_path, monkeypatch):
    monkeypatch.setattr(cross_validation, "collapse_report", lambda _: {"collapsed": True})
    words = ("compare", few, "--objectives", "cross_entropy", "--cv", "2", "--seeds", "1", *TRAINED)
    for given, told in (([], 1), (["--freeze"], 0)):
        said = call(*words, *given, "--out", tmp_path / f"{told}")
        assert said.code == 0 and said.err.count("the encoder collapsed") == told, said.err


def test_it_is_resumed_verified_and_extended_by_deals(finished, few, call):
    out, _ = finished
    words = ("compare", few, "--objectives", "cross_entropy,nbsvm", *TRAINED, "--out", out)
    said = call(*words)
    assert said.code == 0 and "5 of 5 fits are in" in said.err
    said = call("compare", "--verify", out, "3")
    assert said.code == 0 and said.out.count("match") == 3, said.out
    said = call(*words, "--seeds", "2", "--json")
    assert said.code == 0, said.err
    assert [row["fits"] for row in json.loads(said.out)["rows"]] == [10] * 5


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("folds", lambda folds: folds[1]["test"].update(f1_macro=0.123)),
        ("folds", lambda folds: folds.pop()),
        ("by_script", lambda scripts: scripts.update(latin={"n": 1, "accuracy": 0.5})),
    ],
)
def test_verify_compares_all_but_the_seconds(finished, call, tmp_path, name, change):
    (tmp_path / "comparison.json").write_bytes((finished[0] / "comparison.json").read_bytes())
    line = read_lines(finished[0])["majority"]
    change(line[name])
    line["seconds"] += 9
    (tmp_path / "results.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    said = call("compare", "--verify", tmp_path, "1")
    assert said.code == 1 and f"differing: {name})" in said.out


def test_repeats_where_it_is_asked_for_and_what_cannot_be(few, call, tmp_path):
    words = ("compare", few, "--objectives", "nbsvm", "--out", tmp_path / "out")
    said = call(*words, "--cv", "4", "--json")
    assert said.code == 0 and "4 folds, --seeds 5: 20 fits of each system" in said.err
    assert [row["fits"] for row in json.loads(said.out)["rows"]] == [20] * 5
    said = call(*words, "--cv", "3", "--test", few)
    assert said.code != 0 and "cv = 3 with a dev or test file" in said.err
    alone = write_table(tmp_path / "alone.tsv", [("a", "kan"), ("b", "walo"), ("c", "bzaf")])
    said = call(*("compare", alone, *words[2:]))
    assert said.code == 1 and "too few to hold any out" in said.err
    said = call(*words, "--cv", "0")
    assert said.code == 2 and "--seeds" in said.err
    words = ("compare", few, "--objectives", "superloss", *TRAINED, "--out", tmp_path / "two")
    said = call(*words, "--cv", "3", "--keep", "best")
    assert said.code != 0 and "cv = 3 with keep = 'best'" in said.err
    said = call(*words, "--cv", "0", "--seeds", "1")
    assert said.code == 0 and "random stratified split" in said.out


def test_cv_is_the_comparisons_and_not_that_of_each_fit(few, finished, tmp_path):
    """So folds that are asked for go on where folds by default were."""
    out, _ = finished
    again = tmp_path / "out"
    shutil.copytree(out, again)
    words = ("compare", few, "--objectives", "cross_entropy,nbsvm", *TRAINED, "--out", again)
    said = call_main(*words, "--cv", 5, "--seeds", 1)
    assert said.code == 0 and f"fits are in {again / 'results.jsonl'} already" in said.err, said.err
    assert read_lines(again) == read_lines(out)


def test_a_file_that_is_not_cross_validated_needs_seeds(few, tmp_path):
    data = dataset(30)
    table = list(zip(data.labels, data.texts, strict=True))
    test = write_table(tmp_path / "test.tsv", table[:6])
    toml = tmp_path / "sets.toml"
    sets = [f'name = "few"\ntrain = "{few}"', f'name = "other"\ntrain = "{few}"\ntest = "{test}"']
    toml.write_text("".join(f"[[dataset]]\n{one}\n" for one in sets), encoding="utf-8")
    said = call_main(
        "compare", "--datasets", toml, "--objectives", "nbsvm", "--out", tmp_path / "out"
    )
    assert said.code in (1, 2) and "found no --seeds" in said.err, said.err
    assert "is not cross-validated" in said.err
