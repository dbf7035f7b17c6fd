"""The tests: against definitions, and against worlds where the answer is known."""

import itertools
import math
from dataclasses import astuple

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import f1_score

from superconext.experiments import paired_tests
from superconext.experiments.paired_tests import (
    RESAMPLES,
    accuracies_against_first,
    compare_lines,
    hierarchical_bootstrap,
    holm,
    mcnemar_exact,
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
    reach = stats.t.ppf(0.975, 9) * math.sqrt((1 / 10 + 1 / 8) * np.var(ours - theirs, ddof=1))
    assert corrected.high == pytest.approx(corrected.difference + reach)
    assert corrected.low == pytest.approx(corrected.difference - reach)


def test_no_difference_at_all():
    assert resampled_t_test([0.5, 0.6], [0.5, 0.6], 0.1).p == 1.0
    with pytest.raises(ValueError, match="at least two"):
        resampled_t_test([0.5], [0.4], 0.1)


def test_differences_that_are_all_alike_tell_no_variance():
    assert resampled_t_test([0.6, 0.7], [0.5, 0.6], 0.1) is None
    rounding = resampled_t_test([0.5, 0.6], [0.5 - 1e-16, 0.6 - 1e-16], 0.1)
    assert (rounding.difference, rounding.low, rounding.high, rounding.p) == (0, 0, 0, 1)


def test_bootstrap_difference_is_scikit_learns_weighted_f1():
    generator = np.random.default_rng(1)
    truth = generator.integers(0, 3, 200)
    ours = np.where(generator.random((4, 200)) < 0.7, truth, generator.integers(0, 3, (4, 200)))
    theirs = np.where(generator.random(200) < 0.4, truth, generator.integers(0, 3, 200))
    expected = np.mean([f1_score(truth, row, average="weighted") for row in ours])
    expected -= f1_score(truth, theirs, average="weighted")
    result = hierarchical_bootstrap(truth, ours, theirs, resamples=300)
    assert result.difference == pytest.approx(expected)
    assert result.p < 0.02 and 0 < result.low < expected < result.high
    turned = hierarchical_bootstrap(truth, theirs, ours, resamples=300)
    assert turned.difference == pytest.approx(-expected) and turned.p < 0.02


def weighted_f1(truth, predicted):
    """In plain loops."""
    total = 0.0
    for k in sorted(set(truth)):
        right = sum(t == p == k for t, p in zip(truth, predicted, strict=True))
        total += truth.count(k) * 2 * right / (truth.count(k) + predicted.count(k))
    return total / len(truth)


#: Draws of Student's t that stand for all of them.
STEPS = 60


def variance(values, of):
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / of


def seed_moves(scores, overlap):
    """How far other seeds would move the mean of scores, by row draw and seed; the first draw has
    the rows as they are. In plain loops."""
    observed, *drawn = scores
    count = len(observed)
    if count == 1:
        return [0.0]
    apart = [[score - sum(row) / count for score in row] for row in drawn]
    of_rows = sum(variance(seed, len(apart)) for seed in zip(*apart, strict=True)) / (count - 1)
    of_seeds = max(variance(observed, count - 1) - of_rows, 0.0)
    error = math.sqrt(of_seeds * (1 / count + overlap))
    return [error * stats.t.ppf((k + 0.5) / STEPS, count - 1) for k in range(STEPS)]


def all_resamples(truth, ours, theirs, paired, overlap):
    """Every way to draw rows, with the differences that many other seeds would make; plain
    loops."""
    every = [range(len(truth)), *itertools.product(range(len(truth)), repeat=len(truth))]
    first, second = (
        [[weighted_f1([truth[n] for n in r], [row[n] for n in r]) for row in of] for r in every]
        for of in (ours, theirs)
    )
    if paired:
        pairs = zip(first, second, strict=True)
        both = [[a - b for a, b in zip(*pair, strict=True)] for pair in pairs]
        moves = seed_moves(both, overlap)
        means = [sum(row) / len(row) for row in both[1:]]
    else:
        moves = [a - b for a in seed_moves(first, overlap) for b in seed_moves(second, overlap)]
        pairs = zip(first[1:], second[1:], strict=True)
        means = [sum(a) / len(a) - sum(b) / len(b) for a, b in pairs]
    return [min(max(mean + move, -1.0), 1.0) for mean in means for move in moves]


@pytest.mark.parametrize(
    ("ours", "theirs", "paired", "overlap"),
    [
        ([[0, 1, 0, 2], [1, 0, 1, 0], [0, 1, 0, 1]], [[1, 0, 0, 1]], False, 0.0),
        ([[0, 1, 0, 1], [0, 1, 1, 1], [2, 1, 0, 1]], [[1, 0, 0, 1]], False, 0.0),
        ([[0, 1, 0, 2], [1, 0, 1, 0]], [[0, 1, 0, 2], [0, 0, 1, 1]], False, 0.0),
        ([[0, 1, 0, 2], [0, 1, 0, 1], [1, 1, 0, 0]], [[1, 0, 1, 0]] * 3, True, 0.0),
        ([[0, 1, 0, 2], [0, 1, 0, 1], [1, 1, 0, 0]], [[1, 0, 1, 0]] * 3, True, 0.3),
        ([[0, 1, 0, 1]], [[0, 1, 2, 2]], True, 0.0),
    ],
)
def test_bootstrap_is_the_mean_over_all_draws_of_rows_and_other_seeds(
    ours, theirs, paired, overlap
):
    truth = [0, 1, 0, 2]
    exact = sorted(all_resamples(truth, ours, theirs, paired, overlap))
    found = hierarchical_bootstrap(
        truth, ours, theirs, paired=paired, overlap=overlap, resamples=40_000
    )
    turned = sum(value * found.difference <= 1e-12 for value in exact) / len(exact)
    columns = zip(*ours, *theirs, strict=True)
    least = 2.0 ** (1 - sum(len(set(column)) > 1 for column in columns))
    assert found.p == pytest.approx(min(1.0, max(2 * turned, least)), abs=0.02)
    # The limits have the right share of all draws beyond them (there are ties).
    for limit, share in ((found.low, 0.025), (found.high, 0.975)):
        below = sum(value < limit - 1e-6 for value in exact) / len(exact)
        most = sum(value <= limit + 1e-6 for value in exact) / len(exact)
        assert below - 0.005 <= share <= most + 0.005


def test_few_seeds_are_not_surer_than_a_t_test():
    """With rows enough to tell nothing new, what is left is the paired t-test."""
    rates = np.array([[0.70, 0.74, 0.69], [0.66, 0.67, 0.65]])
    truth = np.arange(20_000) % 2
    order = np.random.default_rng(0).permutation(20_000)
    ours, theirs = (
        np.array([np.where(order < rate * 20_000, truth, 1 - truth) for rate in of]) for of in rates
    )
    found = hierarchical_bootstrap(truth, ours, theirs, paired=True, resamples=4_000)
    expected = stats.ttest_rel(*rates)
    assert found.p == pytest.approx(expected.pvalue, rel=0.3)
    low, high = expected.confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.01)


@pytest.mark.parametrize("paired", [False, True])
def test_systems_that_predict_alike_do_not_differ(paired):
    truth = np.arange(90) % 3
    theirs = np.where(np.arange(90) % 10 < 7, truth, (truth + 1) % 3)
    ours, rival = np.array([theirs] * 7), np.array([theirs] * (7 if paired else 1))
    same = hierarchical_bootstrap(truth, ours, rival, paired=paired, resamples=200)
    assert (same.difference, same.low, same.high, same.p) == (0, 0, 0, 1)
    assert not np.signbit(same.low)


def test_seeds_that_vary_widen_the_interval():
    generator = np.random.default_rng(5)
    truth = generator.integers(0, 2, 400)

    def predicted(*rates):
        return np.array([np.where(generator.random(400) < r, truth, 1 - truth) for r in rates])

    steady = hierarchical_bootstrap(truth, predicted(*[0.7] * 5), predicted(0.7), resamples=500)
    varied = hierarchical_bootstrap(
        truth, predicted(0.5, 0.6, 0.7, 0.8, 0.9), predicted(0.7), resamples=500
    )
    assert varied.high - varied.low > 1.5 * (steady.high - steady.low)


def test_bootstrap_is_rarely_sure_about_noise():
    generator = np.random.default_rng(2)
    sure = 0
    for seed in range(60):
        truth = generator.integers(0, 2, 120)
        # Seeds of one system have rates of their own: nothing but noise again.
        rates = 0.3 + generator.normal(0, 0.03, (2, 4))
        flips = generator.random((2, 4, 120)) < rates[..., None]
        ours, theirs = np.where(flips, 1 - truth, truth)
        sure += hierarchical_bootstrap(truth, ours, theirs, resamples=200, seed=seed).p < 0.05
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
        assert result == pytest.approx(min(1.0, 2 * tail))


def test_mcnemar_is_that_of_scipy_for_few_and_for_thousands_of_rows():
    binomtest = pytest.importorskip("scipy.stats").binomtest
    for count in (1, 2, 7, 50, 1001, 1080, 9000):
        for gained in {0, 1, count // 3, count // 2, (count + 1) // 2, count // 2 - count // 50}:
            truth = np.zeros(count, dtype=int)
            ours = (np.arange(count) >= gained).astype(int)
            expected = binomtest(gained, count).pvalue
            result = mcnemar_exact(truth, ours, 1 - ours)
            assert result == pytest.approx(expected, rel=1e-9), (gained, count)
            assert mcnemar_exact(truth, 1 - ours, ours) == result


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


def test_fits_of_one_seed_count_once():
    """Three equal fits of each seed say what one of them says, and no more."""
    truth = np.random.default_rng(0).integers(0, 2, 60)
    draw = np.random.default_rng(1)
    ours, theirs = (
        np.where(draw.random((5, 60)) < share, truth, 1 - truth) for share in (0.8, 0.7)
    )
    once = hierarchical_bootstrap(truth, ours, theirs, paired=True, resamples=500)
    copies = [np.repeat(one, 3, axis=0) for one in (ours, theirs)]
    together = hierarchical_bootstrap(truth, *copies, paired=True, fits=3, resamples=500)
    assert astuple(together) == pytest.approx(astuple(once), abs=1e-9)
    apart = hierarchical_bootstrap(truth, *copies, paired=True, resamples=500)
    assert apart.high - apart.low < 0.95 * (once.high - once.low)


@pytest.mark.parametrize("count", [1, 3, 5, 8])
def test_few_rows_that_differ_are_told_no_surer_than_their_signs(count):
    truth = np.arange(120) % 2
    ours, theirs = truth.copy(), truth.copy()
    theirs[:count] = 1 - theirs[:count]
    found = hierarchical_bootstrap(truth, ours, theirs, resamples=2000)
    assert found.p >= mcnemar_exact(truth, ours, theirs) == 2.0 ** (1 - count)


def lines_of(share, split, **more):
    """A line of each of four seeds, which predicts such a share of the same 60 rows rightly."""
    truth, draw = np.arange(60) % 2, np.random.default_rng(int(100 * share))
    found = []
    for seed in range(4):
        predicted = np.where(draw.random(60) < share, truth, 1 - truth)
        scores = {"f1_weighted": f1_score(truth, predicted, average="weighted")}
        line = {"seed": seed, "split": split.format(seed), "test": scores, "truth": truth.tolist()}
        found.append({**line, "predictions": predicted.tolist(), **more})
    return found


@pytest.mark.parametrize("seeds", [1, 2, 3, 4])
@pytest.mark.parametrize(("design", "overlap"), [("given", 0.0), ("shots", 0.25)])
def test_lines_are_paired_by_seed_whatever_their_order_and_draws_overlap(design, overlap, seeds):
    """From four seeds on: fewer say too little of how much their difference varies."""
    shots = {"shots": 8, "overlap": 0.2} if design == "shots" else {}
    split = "shots8-{}" if design == "shots" else "given"
    ours, theirs = (lines_of(share, split, **shots)[:seeds] for share in (0.9, 0.7))
    found = compare_lines(design, ours, theirs[::-1])
    if design == "shots" and seeds == 1:
        assert found.result is None
        return
    truth = np.array(ours[0]["truth"])
    first, second = (np.array([line["predictions"] for line in of]) for of in (ours, theirs))
    expected = hierarchical_bootstrap(
        truth, first, second, paired=seeds not in (2, 3), overlap=overlap, resamples=RESAMPLES
    )
    assert astuple(found.result) == astuple(expected)


def test_two_seeds_find_little_where_there_is_nothing_to_find(monkeypatch):
    """Two systems of equal accuracy whose seeds differ by five points; paired, 13% differ."""
    monkeypatch.setattr(paired_tests, "RESAMPLES", 500)
    draw, found, worlds = np.random.default_rng(0), 0, 120
    truth = np.arange(400) % 2
    for _ in range(worlds):
        ours, theirs = (
            [
                {"seed": s, "split": "given", "truth": truth.tolist(), "test": {"f1_weighted": 0.0},
                 "predictions": np.where(draw.random(400) < right, truth, 1 - truth).tolist()}
                for s, right in enumerate(0.7 + 0.05 * draw.standard_normal(2))
            ]
            for _ in range(2)
        )  # fmt: skip
        found += compare_lines("given", ours, theirs).result.p < 0.05
    assert found <= 0.06 * worlds


def test_accuracies_are_compared_with_the_first_one():
    right = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 1, 1], [0, 1, 1, 0, 0, 0]], dtype=bool)
    second, third = accuracies_against_first(right)
    assert second["difference"] == pytest.approx(2 / 6)
    assert (second["only_right"], second["only_first_right"]) == (3, 1)
    assert third["difference"] == pytest.approx(-1 / 6)
    assert (third["only_right"], third["only_first_right"]) == (0, 1)
