"""Figures of merit against counts by hand."""

import numpy as np
import pytest

from superconext.baselines.baseline import baseline_report
from superconext.probe.base import dev_score
from superconext.probe.metrics import (
    classification_metrics,
    collapse_report,
    collapse_warning,
    expected_calibration_error,
    probability_metrics,
)


def test_counts_by_hand():
    truth = ["a", "a", "a", "b", "b", "c"]
    predicted = ["a", "a", "b", "b", "a", "b"]
    scores = classification_metrics(truth, predicted, ["a", "b", "c"])
    f1 = {"a": 2 * 2 / (2 * 2 + 1 + 1), "b": 2 * 1 / (2 * 1 + 2 + 1), "c": 0.0}
    assert scores["n"] == 6 and scores["accuracy"] == pytest.approx(3 / 6)
    assert scores["f1_macro"] == pytest.approx(sum(f1.values()) / 3)
    assert scores["f1_weighted"] == pytest.approx((3 * f1["a"] + 2 * f1["b"]) / 6)
    assert scores["per_class"]["a"] == pytest.approx(
        {"precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3, "support": 3}
    )


def test_a_label_the_model_never_saw_counts_as_wrong():
    scores = classification_metrics(["a", "z"], ["a", "a"], ["a", "b"])
    assert scores["accuracy"] == 0.5 and scores["per_class"]["z"]["recall"] == 0.0


def test_no_rows():
    assert classification_metrics([], [], ["a"]) == {"n": 0}


def test_collapse_is_told_from_spread():
    generator = np.random.default_rng(0)
    spread = generator.standard_normal((200, 10))
    report = collapse_report(spread)
    assert not report["collapsed"] and 9 < report["effective_rank"] <= 10
    assert abs(report["mean_cosine"]) < 0.05 and collapse_warning(report) is None
    line = np.outer(generator.standard_normal(50), np.ones(10))
    assert collapse_report(line)["effective_rank"] == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_one_point_is_a_collapse_and_is_explained(noise):
    rows = np.ones((50, 8)) + noise * np.random.default_rng(0).standard_normal((50, 8))
    report = collapse_report(rows.astype(np.float32))
    assert report["collapsed"] and report["mean_cosine"] > 0.99
    warning = collapse_warning(report)
    assert (
        warning.startswith("the encoder maps nearly every sentence")
        and "lower learning_rate" in warning
    )


def test_zero_vectors_do_not_divide_by_zero():
    report = collapse_report(np.zeros((5, 3), dtype=np.float32))
    assert report["collapsed"] and np.isfinite(report["mean_cosine"])


def test_every_score_is_given_for_each_script_too():
    texts = ["زوين بزاف"] * 60 + ["zwin bzaf"] * 50 + ["123"] * 10
    labels = ["a"] * 40 + ["b"] * 20 + ["a"] * 10 + ["b"] * 40 + ["a"] * 10
    split = texts, labels
    scores = baseline_report(split, None, {"test": split}, ["majority"])["majority"]["test"]
    assert list(scores["by_script"]) == ["Arabic", "Latin"]
    for name, rows in (("Arabic", slice(60)), ("Latin", slice(60, 110))):
        of = classification_metrics(labels[rows], ["a"] * len(labels[rows]), ["a", "b"])
        del of["per_class"]
        assert scores["by_script"][name] == of
    one = texts[:60], labels[:60]
    assert "by_script" not in baseline_report(split, None, {"test": one})["majority"]["test"]


def test_bins_of_confidence_are_closed_on_the_right():
    # 0.75 is the upper end of the third of four bins, and so in one bin with the 0.6 of the others.
    confidences, truth = [0.75, 0.6, 0.6, 0.6], ["b", "a", "a", "a"]
    probabilities = np.array([[c, 1 - c] for c in confidences])
    # (|-0.75 + 0.4 + 0.4 + 0.4|) / 4; with 0.75 in the last bin it would be (0.75 + 1.2) / 4.
    error = expected_calibration_error(probabilities, truth, ["a", "b"], bins=4)
    assert error == pytest.approx(0.45 / 4)


def test_the_effective_rank_is_that_of_what_differs_between_sentences():
    draw = np.random.default_rng(0)
    # Vectors vary in two directions, and all lie far from zero in a third.
    spread = np.hstack([draw.normal(0, 1, (500, 2)), np.zeros((500, 1))])
    found = collapse_report((spread + np.array([0, 0, 30])).astype(np.float32))
    assert found["effective_rank"] == pytest.approx(2, abs=0.05)
    assert collapse_report(spread)["effective_rank"] == pytest.approx(2, abs=0.05)


def test_a_row_that_is_surely_wrong_costs_its_whole_log_loss():
    probabilities = np.array([[0.9, 0.1], [1 - 1e-6, 1e-6], [0.5, 0.5], [0.0, 1.0]])
    accuracy, likelihood = dev_score(probabilities, np.array([0, 1, -1, 0]))
    assert accuracy == pytest.approx(1 / 3)
    assert likelihood == pytest.approx(np.log([0.9, 1e-6, 1e-12]).mean())


def test_a_class_that_nobody_names_is_in_no_mean():
    scores = classification_metrics(["a", "b"], ["a", "b"], ["a", "b", "c"])
    assert scores["f1_macro"] == scores["f1_weighted"] == 1 and scores["per_class"]["c"]["f1"] == 0


@pytest.mark.parametrize(("cosine", "collapsed"), [(0.94, False), (0.96, True)])
def test_collapse_begins_at_a_mean_cosine_of_95_hundredths(cosine, collapsed):
    rows = np.array([[1, 0], [cosine, np.sqrt(1 - cosine**2)]])
    report = collapse_report(rows)
    assert report["mean_cosine"] == pytest.approx(cosine)
    assert report["collapsed"] is collapsed


def test_one_sentence_is_one_point():
    report = collapse_report(np.ones((1, 4), np.float32))
    assert report["mean_cosine"] == report["effective_rank"] == 1 and report["collapsed"]


def test_no_rows_have_no_calibration_error():
    assert expected_calibration_error(np.empty((0, 2)), [], ["a", "b"]) == 0
    assert probability_metrics([], np.empty((0, 2)), ["a", "b"]) == {"n": 0}
