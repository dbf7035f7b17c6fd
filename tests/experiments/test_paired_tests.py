"""The tests: against definitions, and against worlds where the answer is known."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from superconext.experiments.paired_tests import (
    holm,
    mcnemar_exact,
    paired_bootstrap,
    resampled_t_test,
)


def test_corrected_t_is_the_plain_one_without_overlap():
    generator = np.random.default_rng(0)
    ours, theirs = generator.normal(0.5, 0.1, 10), generator.normal(0.45, 0.1, 10)
    plain = stats.ttest_rel(ours, theirs)
    result = resampled_t_test(ours, theirs, 0.0)
    assert result.p == pytest.approx(plain.pvalue)
    assert result.difference == pytest.approx(np.mean(ours) - np.mean(theirs))
    corrected = resampled_t_test(ours, theirs, 1 / 8)
    t = plain.statistic / math.sqrt(10 * (1 / 10 + 1 / 8))
    assert corrected.p == pytest.approx(2 * stats.t.sf(abs(t), 9))
    assert corrected.p > result.p


def test_no_difference_at_all():
    assert resampled_t_test([0.5, 0.6], [0.5, 0.6], 0.1).p == 1.0
    with pytest.raises(ValueError, match="at least two"):
        resampled_t_test([0.5], [0.4], 0.1)


def test_bootstrap_difference_is_scikit_learns_weighted_f1():
    generator = np.random.default_rng(1)
    truth = generator.integers(0, 3, 200)
    ours = np.where(generator.random((4, 200)) < 0.7, truth, generator.integers(0, 3, (4, 200)))
    theirs = np.where(generator.random(200) < 0.4, truth, generator.integers(0, 3, 200))
    expected = np.mean([f1_score(truth, row, average="weighted") for row in ours])
    expected -= f1_score(truth, theirs, average="weighted")
    result = paired_bootstrap(truth, ours, theirs, resamples=300)
    assert result.difference == pytest.approx(expected)
    assert result.p < 0.02
    turned = paired_bootstrap(truth, theirs, ours, resamples=300)
    assert turned.difference == pytest.approx(-expected) and turned.p < 0.02


def test_bootstrap_is_rarely_sure_about_noise():
    generator = np.random.default_rng(2)
    sure = 0
    for seed in range(40):
        truth = generator.integers(0, 2, 120)
        flips = generator.random((2, 120)) < 0.3
        ours, theirs = np.where(flips, 1 - truth, truth)
        sure += paired_bootstrap(truth, ours, theirs, resamples=200, seed=seed).p < 0.05
    assert sure <= 7


def test_mcnemar_is_the_two_sided_binomial():
    truth = np.zeros(40, dtype=int)
    for gained, lost in ((0, 0), (3, 0), (9, 2), (5, 5), (0, 12)):
        ours, theirs = np.zeros(40, dtype=int), np.zeros(40, dtype=int)
        theirs[:gained] = 1
        ours[gained : gained + lost] = 1
        theirs[30:], ours[30:] = 1, 1  # both wrong tells nothing
        count = gained + lost
        tail = sum(math.comb(count, k) for k in range(min(gained, lost) + 1)) / 2**count
        result = mcnemar_exact(truth, ours, theirs)
        assert result.p == pytest.approx(min(1.0, 2 * tail))
        assert result.difference == pytest.approx((gained - lost) / 40)


def test_holm_is_sequential_rejection():
    generator = np.random.default_rng(3)
    for count in (1, 2, 5, 9):
        values = (generator.random(count) ** 4).tolist()
        adjusted = holm(values)
        for level in (0.01, 0.05, 0.2):
            # By definition: go up from the smallest until one is too large for its share.
            rejected = set()
            for rank, index in enumerate(sorted(range(count), key=values.__getitem__)):
                if values[index] > level / (count - rank):
                    break
                rejected.add(index)
            assert rejected == {k for k in range(count) if adjusted[k] <= level}
    assert holm([]) == [] and holm([0.6, 0.5]) == [1.0, 1.0]
