"""Figures of merit against counts by hand."""

import numpy as np
import pytest

from superconext.probe.metrics import classification_metrics, collapse_report, collapse_warning


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
