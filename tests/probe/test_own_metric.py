"""A metric of a contributor's own: in metrics.json, `evaluate` and the tables of comparisons."""

import csv
import json

import numpy as np
import pytest
from sklearn.metrics import balanced_accuracy_score

from superconext.core.errors import ConfigError, RunError
from superconext.core.progress import Progress
from superconext.experiments.compare import compare
from superconext.experiments.record import read_results
from superconext.experiments.runner import verify
from superconext.experiments.tables import to_grid
from superconext.probe import METRICS
from superconext.probe.metrics import classification_metrics, script_metrics
from tests.cli.conftest import call_main
from tests.experiments.conftest import changed


def balanced_accuracy(truth, predicted, classes):
    """Mean recall of the classes."""
    return balanced_accuracy_score(truth, predicted)


def log_loss(truth, predicted, classes, probabilities):
    """Minus the mean logarithm of the right class's probability."""
    columns = [classes.index(label) for label in truth]
    right = probabilities[np.arange(len(truth)), columns]
    return -np.log(np.maximum(right, 1e-12)).mean()


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(METRICS, "_added", dict(METRICS._added))
    METRICS.register("balanced_accuracy", balanced_accuracy)
    METRICS.register("log_loss", log_loss)


def test_it_stands_beside_the_built_in_ones():
    scores = classification_metrics(["a", "a", "b"], ["a", "b", "b"], ["a", "b"])
    assert scores["balanced_accuracy"] == 0.75 and "log_loss" not in scores
    shares = np.array([[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]])
    scores = classification_metrics(["a", "a", "b"], ["a", "b", "b"], ["a", "b"], shares)
    assert scores["log_loss"] == pytest.approx(np.log([2, 4, 2]).mean())


def test_a_run_and_its_evaluation_have_it(data, tmp_path):
    quick = ["--epochs", 1, "--hidden-size", 4, "--vectors", data / "vectors.txt"]
    words = ["train", data / "train.tsv", "--dev", data / "dev.tsv", "--test", data / "test.tsv"]
    trained = call_main(*words, *quick, "--out", tmp_path / "run")
    assert trained.code == 0
    heading = "accuracy macro F1 weighted F1 balanced_accuracy log_loss"
    for printed in (trained.out, call_main("evaluate", tmp_path / "run", data / "test.tsv").out):
        assert heading in " ".join(printed.splitlines()[1].split())
        (row,) = (line for line in printed.splitlines() if "trained encoder" in line)
        assert "-" not in row.split()[-4:-1]
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text("utf-8"))
    said = json.loads(call_main("evaluate", tmp_path / "run", data / "test.tsv", "--json").out)
    for name in ("balanced_accuracy", "log_loss"):
        assert metrics["test"][name] == pytest.approx(said[name], abs=1e-6)
        assert metrics["baselines"]["tfidf_logreg"]["test"][name] > 0


def test_a_comparison_has_a_column_of_it_and_lacks_it_where_it_cannot_be(
    request_of,
    tmp_path,
    monkeypatch,
):
    request = request_of(objectives="superloss", seeds=2)
    result = compare(request, Progress())
    lines = read_results(tmp_path / "out" / "results.jsonl")
    values = [lines["superloss", seed, "given"]["test"]["log_loss"] for seed in (0, 1)]
    (row,) = (row for row in result.table.rows if row.name == "superloss")
    assert row.means["log_loss"] == pytest.approx(np.mean(values))
    assert "balanced_accuracy" in to_grid(result.table).text().splitlines()[0]
    with (tmp_path / "out" / "table.csv").open(encoding="utf-8") as stream:
        cells = {row["system"]: row for row in csv.DictReader(stream)}
    assert cells["tfidf_svm"]["log_loss_mean"] == ""  # an SVM has no probabilities
    assert float(cells["tfidf_logreg"]["log_loss_mean"]) > 0
    METRICS.register("rows", lambda truth, predicted, classes: len(truth))
    assert all(check.same for check in verify(tmp_path / "out", 2, Progress()))
    # A folder made with a metric can be gone on with where it is not known, but not verified.
    monkeypatch.setattr(METRICS, "_added", {})
    with pytest.raises(RunError, match=r"the metric '\w+', which is not registered"):
        verify(tmp_path / "out", 9, Progress())
    more = compare(changed(request, seeds=3), Progress())
    (row,) = (row for row in more.table.rows if row.name == "superloss")
    assert row.fits == 3 and "log_loss" not in row.means


def test_what_it_does_to_its_arguments_is_nobody_elses():
    def greedy(truth, predicted, classes, probabilities):
        truth.sort(), predicted.clear(), classes.reverse()
        probabilities[:] = 1
        return np.array([0.5])

    METRICS.register("greedy", greedy)
    truth, predicted, classes = ["b", "a"], ["b", "b"], ["a", "b"]
    shares = np.array([[0.4, 0.6], [0.3, 0.7]])
    scores = classification_metrics(truth, predicted, classes, shares)
    assert scores["greedy"] == 0.5 and scores["accuracy"] == scores["balanced_accuracy"] == 0.5
    assert (truth, predicted, classes) == (["b", "a"], ["b", "b"], ["a", "b"])
    assert shares.max() == 0.7


def test_parameters_with_a_default_are_its_own():
    METRICS.register("weighed", lambda truth, predicted, classes, beta=2.0: beta)
    METRICS.register("named", lambda truth, predicted, classes, *, beta=3.0: beta)
    METRICS.register("sure", lambda truth, predicted, classes, beta=4.0, probabilities=None: beta)
    shares = np.array([[0.9, 0.1], [0.2, 0.8]])
    scores = classification_metrics(["a", "b"], ["a", "b"], ["a", "b"], shares)
    assert scores.pop("sure") == 4.0
    scores = classification_metrics(["a", "b"], ["a", "b"], ["a", "b"])
    assert scores["weighed"] == 2.0 and scores["named"] == 3.0 and "sure" not in scores


def test_it_is_given_the_probabilities_of_the_rows_of_a_script():
    METRICS.register("sure", lambda truth, said, classes, shares: float(shares[:, 0].mean()))
    texts, labels = ["film zwin"] * 60 + ["فيلم زوين"] * 60, ["a"] * 60 + ["b"] * 60
    shares = np.repeat([[0.9, 0.1], [0.2, 0.8]], 60, axis=0)
    found = script_metrics(texts, labels, labels, ["a", "b"], shares)
    assert found["Latin"]["sure"] == pytest.approx(0.9)
    assert found["Arabic"]["sure"] == pytest.approx(0.2)


def test_a_name_that_results_have_is_refused():
    METRICS.register("n", lambda truth, predicted, classes: 1.0)
    with pytest.raises(ConfigError, match="the name 'n'; expected another"):
        classification_metrics(["a"], ["a"], ["a", "b"])


@pytest.mark.parametrize(("value", "found"), [(np.nan, "NaN"), (-np.inf, "infinity")])
def test_one_that_is_not_finite_is_refused_before_the_training(data, tmp_path, value, found):
    def hopeless(truth, predicted, classes):
        return value

    METRICS.register("hopeless", hopeless)
    words = ("train", data / "train.tsv", "--dev", data / "dev.tsv", "--preset", "fast")
    said = call_main(*words, "--out", tmp_path / "run")
    assert said.code == 1 and not (tmp_path / "run").exists()
    assert said.err.splitlines()[-1].startswith("error: metric 'hopeless'")
    assert f"found {found}, returned by hopeless; expected a finite number" in said.err
