"""Character n-grams weighted by log-count ratios: the equation, and that the weights fit it."""

from collections import Counter

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer

from superconext.probe.ngrams import RATIO_GRID, NgramCounts, RatioFeatures, fit_both, fit_ngrams
from tests.probe.test_tfidf import WORDS, rows


def fit_log_count_ratios(texts, labels, *dev):
    return fit_ngrams(RatioFeatures, NgramCounts(texts), labels, *dev)[0]


ANALYSE = CountVectorizer(analyzer="char_wb", ngram_range=(2, 5)).build_analyzer()


def ratio_of(texts, inside):
    """Wang and Manning (2012), equation 1 with alpha = 1, counting texts: n-gram by n-gram."""
    own, other = Counter(), Counter()
    for text, yes in zip(texts, inside, strict=True):
        (own if yes else other).update(set(ANALYSE(text)))
    names = sorted(own | other)
    p, q = (sum(1 + count[n] for n in names) for count in (own, other))
    return {n: np.log((1 + own[n]) / p) - np.log((1 + other[n]) / q) for n in names}


def row_of(text, ratio):
    """Presence times ratio, of unit length."""
    values = {n: ratio[n] for n in set(ANALYSE(text)) if n in ratio}
    length = np.sqrt(sum(v * v for v in values.values()))
    return {n: v / length for n, v in values.items()} if length else {}


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_are_those_of_the_equation(classes):
    texts, labels = rows(60, classes, 0)
    model = fit_log_count_ratios(texts, labels)
    assert model.c in RATIO_GRID
    new = [*rows(30, classes, 1)[0], "", " \t", "zzz qqq", "ZWIN zwin zwin"]
    found = model.decision(new)
    machines = [1] if classes == 2 else range(classes)
    expected = []
    for machine, k in enumerate(machines):
        ratio = ratio_of(texts, labels == k)
        assert model.characters == sorted(ratio)
        assert np.allclose(model.ratio[machine], [ratio[n] for n in model.characters], atol=1e-5)
        weights = dict(zip(model.characters, model.coef[machine].tolist(), strict=True))
        expected.append(
            [
                model.intercept[machine] + sum(weights[n] * v for n, v in row_of(t, ratio).items())
                for t in new
            ]
        )
        # The weights are where 1/2 |w|^2 + C * (sum of log losses) has no slope.
        slope, slope_at_0 = {n: w for n, w in weights.items()}, 0.0
        for text, label in zip(texts, labels, strict=True):
            row = row_of(text, ratio)
            score = model.intercept[machine] + sum(weights[n] * v for n, v in row.items())
            wrong = model.c * (1 / (1 + np.exp(-score)) - (label == k))
            slope_at_0 += wrong
            for n, v in row.items():
                slope[n] += wrong * v
        assert np.abs([*slope.values(), slope_at_0]).max() < 0.05
    if classes == 2:
        assert np.allclose(found, [[-s / 2, s / 2] for s in expected[0]], atol=1e-5)
    else:
        assert np.allclose(found, np.transpose(expected), atol=1e-5)
    assert model.decision([]).shape == (0, classes)


def test_a_class_of_one_row_leaves_the_choice_to_dev():
    (texts, labels), (held, truth) = rows(80, 3, 0), rows(40, 3, 1)
    one = [*texts, "a word"], np.append(labels, 3)
    assert fit_log_count_ratios(*one).c == RatioFeatures.default
    model = fit_log_count_ratios(*one, held, truth)
    losses = {}
    counts = NgramCounts(one[0])
    for c in RATIO_GRID:
        shares = RatioFeatures(counts.counts, one[1]).fitted(counts, c).probabilities(held)
        losses[c] = -np.log(shares[np.arange(40), truth]).mean()
    assert model.c == min(losses, key=losses.get)
    more = fit_log_count_ratios(*one, [*held, *["zwin"] * 30], np.append(truth, [-1] * 30))
    assert more.c == model.c and np.array_equal(more.coef, model.coef)


def test_it_reads_the_n_grams_that_tfidf_reads():
    texts, labels = rows(40, 2, 3)
    tfidf, ratios, _ = fit_both(texts, labels)
    assert ratios.characters == tfidf.characters


def test_what_one_class_alone_says_is_heard():
    texts = [f"{WORDS[0]} {k}" for k in range(20)] + [f"{WORDS[1]} {k}" for k in range(20)]
    model = fit_log_count_ratios(texts, np.repeat([0, 1], 20))
    assert model.decision([WORDS[0], WORDS[1]]).argmax(axis=1).tolist() == [0, 1]
