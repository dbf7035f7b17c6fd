"""`--prior-groups script` from the command line: the same correction wherever a model answers."""

import json

import pytest

from superconext.experiments.record import read_results
from tests.probe.test_group_priors import biased

SMALL = ("--epochs", 1, "--hidden-size", 4, "--vector-dimension", 4, "--batch-size", 24)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("biased")
    for seed, (name, share) in enumerate((("train", 0.9), ("dev", 0.9), ("test", 0.5))):
        texts, labels = biased(200 if name == "train" else 120, seed, share)
        lines = [
            f"{label}\t{text} {n}"
            for n, (label, text) in enumerate(zip(labels, texts, strict=True))
        ]
        (folder / f"{name}.tsv").write_text("\n".join(["label\ttext", *lines]) + "\n", "utf-8")
    return folder


def test_run_baselines_and_what_reads_the_run_are_corrected_alike(call, files, tmp_path):
    given = (files / "train.tsv", "--dev", files / "dev.tsv", "--test", files / "test.tsv")
    run = tmp_path / "run"
    said = call("train", *given, *SMALL, "--prior-groups", "script", "--out", run)
    assert said.code == 0, said.err
    assert "weighted F1 by script (rows)" in said.out and "Latin (60)" in said.out
    few = files / "few.tsv"
    lines = (files / "test.tsv").read_text("utf-8").splitlines()
    few.write_text("\n".join([*lines, "pos\tбуква слово", "neg\t42"]) + "\n", "utf-8")
    assert "by script (rows); 2 rows left out, of" in call("evaluate", run, few).out
    metrics = json.loads((run / "metrics.json").read_text())
    corrected = {name for name, of in metrics["baselines"].items() if "prior_groups" in of}
    assert corrected == {"tfidf_logreg_adjusted", "vectors_logreg_adjusted"}
    assert {"tfidf_logreg", "vectors_logreg"} < set(metrics["baselines"])
    evaluated = call("evaluate", run, files / "test.tsv", "--json")
    found = json.loads(evaluated.out)
    for key in ("accuracy", "f1_weighted", "by_script"):
        assert found[key] == metrics["test"][key]
    predicted = call("predict", run, files / "test.tsv", "--json")
    assert predicted.code == 0
    labels = [row["label"] for row in json.loads(predicted.out)]
    stored = (run / "predictions.tsv").read_text("utf-8").splitlines()[1:]
    assert labels == [line.split("\t")[2] for line in stored]


def test_a_comparison_has_both_in_one_table(call, files, tmp_path):
    given = (files / "train.tsv", "--dev", files / "dev.tsv", "--test", files / "test.tsv")
    systems = "superloss,superloss:prior_groups=script"
    words = ("--objectives", systems, "--seeds", 1, "--out", tmp_path / "out", *SMALL)
    said = call("compare", *given, *words)
    assert said.code == 0, said.err
    lines = {key[0]: line for key, line in read_results(tmp_path / "out" / "results.jsonl").items()}
    plain, corrected = (lines[name]["predictions"] for name in systems.split(","))
    assert plain != corrected
    assert {"Arabic", "Latin"} == set(lines["superloss"]["by_script"])
    assert (tmp_path / "out" / "by_script.md").is_file()
    note = "Corrected by the class shares of each script: superloss:prior_groups=script. Others"
    assert note in said.out
