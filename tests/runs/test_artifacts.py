"""One prediction rule: what `train` writes, `evaluate` and `predict` say of the same rows."""

import csv
import json

import pytest

from tests.cli.conftest import call_main
from tests.companion_runs import command_line_run


@pytest.fixture(scope="module", params=["encoder", "encoder+tfidf", "encoder+ngrams"])
def run(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return (request.param, *command_line_run(folder, request.param, 8, (120, 160)))


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_evaluate_gives_the_figures_of_metrics_json(run, split):
    features, folder, test, _ = run
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    said = json.loads(call_main("evaluate", folder, test.with_name(f"{split}.tsv"), "--json").out)
    alone = said.pop("encoder_alone", None)
    assert said.pop("overlap").keys() == {"train", "dev", "without"}
    name = "expected_calibration_error"
    if (features, split) == ("encoder+ngrams", "dev"):
        # The pool's weights are fitted on dev, so its dev figures are out of fold in the run and
        # those of the final weights where the file is evaluated.
        assert said[name] != metrics["dev"][name] and said["n"] == metrics["dev"]["n"]
        assert alone["accuracy"] == metrics["encoder_alone"]["dev"]["accuracy"]
        return
    # Not encoded in the same blocks, so alike but for rounding.
    assert said.pop(name) == pytest.approx(metrics[split].pop(name), abs=1e-5)
    assert said == metrics[split]
    if features == "encoder":
        assert alone is None and not {"combined", "encoder_alone"} & set(metrics)
        return
    assert metrics["combined"][split]["accuracy"] == said["accuracy"]
    assert alone["accuracy"] == metrics["encoder_alone"][split]["accuracy"]
    assert alone["n"] == said["n"] > 0


def test_predict_and_predictions_tsv_are_what_the_figures_are_of(run):
    _, folder, test, _ = run
    metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    with (folder / "predictions.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    right = [row["label"] == row["predicted"] for row in rows]
    assert sum(right) / len(right) == pytest.approx(metrics["test"]["accuracy"])
    told = call_main("predict", folder, test, "--json", "--text-column", "text")
    predicted = [row["label"] for row in json.loads(told.out)]
    assert predicted == [row["predicted"] for row in rows]
