"""The logarithmic opinion pool: its weights are the best there are, and mean what they should."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.config.parameters import resolve
from superconext.probe import ngrams
from superconext.probe.base import FEWEST_DEV_ROWS, log_softmax, softmax
from superconext.probe.ensemble import (
    PRIOR,
    DevRows,
    PoolWithNgrams,
    cross_weighted,
    fit_weights,
    pooled,
)
from superconext.probe.ngrams import fit_both


def opinions(count, classes, seed, strengths):
    """Labels, and of each model log probabilities that know them as well as its strength says."""
    draw = np.random.default_rng(seed)
    truth = draw.integers(0, classes, count)
    logs = []
    for strength in strengths:
        scores = draw.standard_normal((count, classes))
        scores[np.arange(count), truth] += strength
        logs.append(log_softmax(scores))
    return logs, truth


def loss(weights, logs, truth):
    """Summed log loss of the normalised product, and the prior, row by row."""
    total = PRIOR * sum((w - 1 / len(weights)) ** 2 for w in weights)
    for row, label in enumerate(truth):
        product = np.ones(logs[0].shape[1])
        for weight, one in zip(weights, logs, strict=True):
            product = product * np.exp(one[row]) ** weight
        total -= np.log(product[label] / product.sum())
    return total


@pytest.mark.parametrize("classes", [2, 4])
def test_no_other_weights_are_better(classes):
    logs, truth = opinions(50, classes, 0, (2.0, 1.0, 0.3))
    found = fit_weights(logs, truth)
    at_best = loss(found, logs, truth)
    draw = np.random.default_rng(1)
    for scale in (1.0, 0.1, 0.01):
        for _ in range(40):
            other = np.maximum(found + scale * draw.standard_normal(3), 0)
            assert loss(other, logs, truth) >= at_best - 1e-6


def test_a_model_that_is_too_sure_is_brought_back():
    logs, truth = opinions(2000, 3, 2, (1.5, 1.5))
    plain = fit_weights(logs, truth)
    sure = fit_weights([log_softmax(10 * logs[0]), logs[1]], truth)
    assert sure[0] == pytest.approx(plain[0] / 10, rel=0.05)
    assert sure[1] == pytest.approx(plain[1], rel=0.05)


def test_a_model_that_says_the_opposite_is_not_heard():
    logs, truth = opinions(500, 3, 3, (1.5, -1.5))
    assert fit_weights(logs, truth)[1] == 0


def loss_of(scores, truth):
    return -log_softmax(scores)[np.arange(len(truth)), truth].mean()


def test_out_of_fold_no_row_has_a_say_in_its_own_weights():
    logs, truth = opinions(60, 3, 5, (1.5, 0.5))
    scores = cross_weighted(logs, truth)
    for row in (0, 17, 59):
        other = truth.copy()
        other[row] = (truth[row] + 1) % 3
        changed = np.abs(cross_weighted(logs, other) - scores).max(axis=1) > 1e-9
        assert not changed[row] and 0.7 < changed.mean() < 0.9
    few = cross_weighted([one[:3] for one in logs], truth[:3])
    assert np.array_equal(few, pooled([one[:3] for one in logs], [0.5, 0.5]))


def test_models_of_noise_raise_dev_in_sample_and_not_out_of_fold():
    """The reason for `cross_weighted`: on 40 draws of 60 dev rows, five models of noise."""
    gains = {"in sample": [], "out of fold": []}
    for seed in range(40):
        logs, truth = opinions(60, 3, seed, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        for name, scored in (
            ("in sample", lambda logs, truth: pooled(logs, fit_weights(logs, truth))),
            ("out of fold", cross_weighted),
        ):
            alone, all_of_them = (loss_of(scored(some, truth), truth) for some in (logs[:1], logs))
            gains[name].append(alone - all_of_them)
    assert np.mean(gains["in sample"]) > 0.01
    assert np.mean(gains["out of fold"]) < 0


def test_few_rows_leave_the_weights_alike_and_unknown_labels_do_not_count():
    logs, truth = opinions(60, 3, 4, (2.0, 0.5))
    few = FEWEST_DEV_ROWS - 1
    assert fit_weights([one[:few] for one in logs], truth[:few]).tolist() == [0.5, 0.5]
    unknown = np.where(np.arange(60) < 60 - few, -1, truth)
    assert fit_weights(logs, unknown).tolist() == [0.5, 0.5]
    half = np.where(np.arange(60) < 30, truth, -1)
    assert np.allclose(fit_weights(logs, half), fit_weights([x[:30] for x in logs], truth[:30]))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.floats(-700, 700), min_size=3, max_size=3), min_size=1, max_size=30))
def test_scores_of_any_size_give_weights_and_logs(scores):
    scores = np.array(scores)
    logs = log_softmax(scores)
    assert np.allclose(np.exp(logs).sum(axis=1), 1)
    weights = fit_weights([logs, logs[:, ::-1]], np.arange(len(scores)) % 3)
    assert np.isfinite(weights).all() and (weights >= 0).all()
    assert np.isfinite(pooled([logs, logs[:, ::-1]], weights)).all()
    assert np.allclose(pooled([logs, logs[:, ::-1]], np.array([1.0, 0.0])), logs)


def test_characters_are_read_once_for_all_models(monkeypatch):
    texts = [f"zwin {word} bzaf" for word in ("film", "kas", "dar", "bab")] * 5
    texts += [f"khayb {word} walo" for word in ("film", "kas", "dar", "bab")] * 5
    tfidf, ratios, _ = fit_both(texts, np.repeat([0, 1], 20))
    new = ["zwin bzaf", "", "khayb dar", "😀 qqq"] * 300
    expected = [tfidf.decision(new), ratios.decision(new)]
    read = []
    plain = ngrams.character_ngrams
    monkeypatch.setattr(ngrams, "character_ngrams", lambda text: read.append(text) or plain(text))
    pool = PoolWithNgrams(tfidf, ratios, np.array([0.2, 0.5, 0.3]), np.zeros(2))
    probe = np.full((len(new), 2), 0.5)
    shares = pool.combined(new, probe)
    assert read == ngrams.spaced(new, tfidf.tokenizer)
    logs = [np.log(probe), *map(log_softmax, expected)]
    np.testing.assert_allclose(np.log(shares), log_softmax(pooled(logs, pool.weights)), atol=1e-9)


@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_a_pool_is_calibrated_after_its_shift(strength):
    labels = np.repeat([0, 1], [180, 20])
    draw = np.random.default_rng(0)

    def made(labels):
        words = np.where(draw.random(len(labels)) < 0.2, 1 - labels, labels)
        return [f"{('zwin', 'khayb')[word]} w{draw.integers(30)}" for word in words]

    texts, dev_labels = made(labels), np.repeat([0, 1], [200, 50])
    dev = DevRows(made(dev_labels), dev_labels, np.full((250, 2), 0.5))
    plain, scaled = (
        PoolWithNgrams.fit(
            texts, labels, dev, resolve({"logit_adjustment": strength, "calibrate": flag})
        )
        for flag in (False, True)
    )
    assert plain[0].temperature is None and "pool_temperature" not in plain[0].settings
    by = scaled[0].settings["pool_temperature"]
    assert np.array_equal(plain[0].weights, scaled[0].weights)
    # What the shift takes from the surer class is all that the weights have not seen to.
    assert by < 0.7 if strength else abs(by - 1) < 0.1
    new = made(np.repeat([0, 1], [40, 10]))
    probe = np.full((len(new), 2), 0.5)
    for one, other in (
        (plain[0].combined(new, probe), scaled[0].combined(new, probe)),
        (plain[1], scaled[1]),
    ):
        np.testing.assert_allclose(other, softmax(np.log(one) / by))

    def lost(shares):
        return -np.log(shares[np.arange(250), dev_labels]).mean()

    nearby = (softmax(np.log(plain[1]) / (by * factor)) for factor in (0.9, 1.1))
    assert all(lost(scaled[1]) < lost(one) for one in nearby)


def test_dev_rows_too_are_scored_without_the_class_shares():
    labels = np.repeat([0, 1], [30, 15])
    words = np.where(np.arange(45) % 4, labels, 1 - labels)
    texts = [f"{('zwin', 'khayb')[word]} {k}" for k, word in enumerate(words)]
    (logs,), truth = opinions(30, 2, 1, (1.0,))
    dev = [f"{('zwin', 'khayb')[label]} dev {k}" for k, label in enumerate(truth)]
    less = np.array([2 / 3, 1 / 3]) ** -1

    def adjusted(shares):
        return shares * less / (shares * less).sum(axis=1, keepdims=True)

    found = []
    for strength, probe in ((0.0, np.exp(logs)), (1.0, adjusted(np.exp(logs)))):
        config = resolve({"logit_adjustment": strength})
        _, shares = PoolWithNgrams.fit(texts, labels, DevRows(dev, truth, probe), config)
        found.append(shares)
    np.testing.assert_allclose(found[1], adjusted(found[0]), atol=1e-4)
