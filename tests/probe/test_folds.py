"""Models on folds: no row is scored by a C or by weights that its own label has chosen."""

import numpy as np
import pytest

from superconext.probe.base import softmax
from superconext.probe.ensemble import (
    ALONE,
    LEAST_SHARE,
    MEAN,
    POOL,
    Fold,
    OnFolds,
    cross_weighted,
    fit_weights,
    out_of_folds,
    row_losses,
)

ROWS, CLASSES = 60, 3


def models_and_folds(labels, repeats=1, count=3):
    """Two models whose predictions no label has a part in, and folds."""
    draw = np.random.default_rng(0)
    signs = draw.standard_normal((2, ROWS, CLASSES))
    every, folds = np.arange(ROWS), []
    models = {"encoder": OnFolds((0.1, 1.0, 10.0)), "tfidf": OnFolds((0.1, 1.0))}
    for repeat in range(repeats):
        for held in np.array_split(draw.permutation(ROWS), count):
            folds.append(Fold(repeat, np.setdiff1d(every, held), held))
            for model, sign in zip(models.values(), signs, strict=True):
                model.add(lambda c, s=sign[held]: softmax(c * s), labels[held], ROWS)
    return models, folds


@pytest.mark.parametrize("calibrated", [(), ("encoder",), (POOL,)])
@pytest.mark.parametrize("how", [MEAN, POOL])
@pytest.mark.parametrize("repeats", [1, 2])
def test_the_labels_of_a_fold_have_no_part_in_what_is_predicted_of_it(how, repeats, calibrated):
    labels = np.random.default_rng(1).integers(0, CLASSES, ROWS)
    models, folds = models_and_folds(labels, repeats)
    shares, settings = out_of_folds(models, how, folds, labels, calibrated)
    other = labels.copy()
    other[folds[0].held] = (other[folds[0].held] + 1) % CLASSES
    models, folds = models_and_folds(other, repeats)
    changed, resettled = out_of_folds(models, how, folds, other, calibrated)
    np.testing.assert_array_equal(shares[0], changed[0])
    if how == POOL:
        assert not np.array_equal(shares[1], changed[1]), "the others were weighed by them"
        assert settings.weights != resettled.weights


def test_a_model_of_noise_gets_little_weight_and_an_exact_one_much():
    labels = np.arange(ROWS) % CLASSES
    draw = np.random.default_rng(2)
    right = np.eye(CLASSES)[labels] * 4
    models, folds = models_and_folds(labels)
    exact = OnFolds((1.0,))
    for fold in folds:
        noisy = right[fold.held] + draw.standard_normal((len(fold.held), CLASSES))
        exact.add(lambda c, s=noisy: softmax(s), labels[fold.held], ROWS)
    models["tfidf"] = exact
    shares, settings = out_of_folds(models, POOL, folds, labels)
    assert settings.weights["tfidf"] > 0.5
    alone, _ = out_of_folds({"encoder": models["encoder"]}, ALONE, folds, labels)
    better, worse = (row_losses(one, folds, labels).mean() for one in (shares, alone))
    assert better < 0.5 < worse


def best_temperature(scores, labels):
    """By a grid."""
    grid, rows = np.geomspace(0.05, 20, 2_000), np.arange(len(labels))
    return min(grid, key=lambda t: -np.log(softmax(scores / t)[rows, labels]).sum())


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_the_temperature_has_the_lowest_log_loss_of_the_rows_held_out(strength):
    labels = np.random.default_rng(1).integers(0, CLASSES, ROWS)
    scores = np.random.default_rng(0).standard_normal((ROWS, CLASSES)) + 2 * np.eye(CLASSES)[labels]
    shift = strength * np.log(np.bincount(labels) / ROWS)
    _, folds = models_and_folds(labels, repeats=2)
    model = OnFolds((1.0,))
    for fold in folds:
        model.add(lambda c, s=4 * scores[fold.held]: softmax(s), labels[fold.held], ROWS)
    shares, settings = out_of_folds({"encoder": model}, ALONE, folds, labels, ["encoder"], shift)
    best = best_temperature(4 * scores - shift, labels)
    assert best > 1.2 and settings.temperatures["encoder"] == pytest.approx(best, rel=4e-3)
    # What is reported of a fold is scaled by what fits the other folds of its repeat.
    others, held = folds[0].fitted, folds[0].held
    best = best_temperature(4 * scores[others] - shift, labels[others])
    expected = softmax((4 * scores[held] - shift) / best)
    np.testing.assert_allclose(shares[0], expected, atol=2e-3)


def test_the_temperature_of_a_pool_is_that_of_its_shifted_scores():
    """Its weights fit the scores before the shift, which then makes it less sure."""
    labels = np.random.default_rng(1).choice(CLASSES, ROWS, p=[0.7, 0.2, 0.1])
    right = 3 * np.eye(CLASSES)[labels]
    shift = np.log(np.bincount(labels) / ROWS)
    models, folds = models_and_folds(labels)
    noise = 1.5 * np.random.default_rng(2).standard_normal((2, ROWS, CLASSES))
    scores = [right + one + shift for one in noise]
    for name, one in zip(models, scores, strict=True):
        models[name] = OnFolds((1.0,))
        for fold in folds:
            models[name].add(lambda c, s=one[fold.held]: softmax(s), labels[fold.held], ROWS)
    plain, before = out_of_folds(models, POOL, folds, labels, (), shift)
    shares, settings = out_of_folds(models, POOL, folds, labels, (POOL,), shift)
    assert before.temperatures == {} and settings.weights == before.weights

    logs = [np.log(softmax(one)) for one in scores]

    def pool(rows, fitted):
        weights = fit_weights([one[fitted] for one in logs], labels[fitted])
        return sum(w * one[rows] for w, one in zip(weights, logs, strict=True)) - shift

    every = np.arange(ROWS)
    best = best_temperature(pool(every, every), labels)
    assert best < 0.9 and settings.temperatures == {POOL: pytest.approx(best, rel=4e-3)}
    others, held = folds[0].fitted, folds[0].held
    best = best_temperature(pool(others, others), labels[others])
    np.testing.assert_allclose(shares[0], softmax(pool(held, others) / best), atol=2e-3)
    np.testing.assert_allclose(plain[0], softmax(pool(held, others)))


def test_a_mean_is_one_of_models_that_were_adjusted_each():
    """As the fitted ensemble has it, whose models are adjusted before their mean is taken."""
    labels = np.random.default_rng(1).choice(CLASSES, ROWS, p=[0.6, *[0.4 / (CLASSES - 1)] * 2])
    models, folds = models_and_folds(labels)
    shift = np.log(np.bincount(labels) / ROWS)
    shares, _ = out_of_folds(models, MEAN, folds, labels, (), shift)
    alone = [
        out_of_folds({name: model}, ALONE, folds, labels, (), shift)[0]
        for name, model in models.items()
    ]
    for fold, one in enumerate(shares):
        np.testing.assert_allclose(one, np.mean([of[fold] for of in alone], axis=0))


def test_a_mean_has_the_temperature_that_fits_it_beside_those_of_its_models():
    """The mean of models that are each as sure as they are right is less sure than that."""
    labels = np.random.default_rng(1).choice(CLASSES, ROWS, p=[0.6, 0.2, 0.2])
    shift = 0.5 * np.log(np.bincount(labels) / ROWS)
    noise = 2 * np.random.default_rng(2).standard_normal((2, ROWS, CLASSES))
    scores = [3 * np.eye(CLASSES)[labels] + one for one in noise]
    models, folds = models_and_folds(labels)
    for name, one in zip(models, scores, strict=True):
        models[name] = OnFolds((1.0,))
        for fold in folds:
            models[name].add(lambda c, s=one[fold.held]: softmax(s), labels[fold.held], ROWS)
    shares, settings = out_of_folds(models, MEAN, folds, labels, [*models], shift)

    def mean(rows, fitted, temperatures=(1, 1)):
        own = [best_temperature(one[fitted] - shift, labels[fitted]) for one in scores]
        parts = zip(scores, own, temperatures, strict=True)
        return np.mean([softmax((one[rows] - shift) / t / by) for one, t, by in parts], axis=0)

    def best(rows):
        def loss(by):
            right = mean(rows, rows, (by, by))[np.arange(len(rows)), labels[rows]]
            return -np.log(right).sum()

        return min(np.geomspace(0.05, 3, 1_000), key=loss)

    every, others, held = np.arange(ROWS), folds[0].fitted, folds[0].held
    by = best(every)
    assert by < 0.9
    for name, one in zip(models, scores, strict=True):
        own = best_temperature(one - shift, labels)
        assert settings.temperatures[name] == pytest.approx(own * by, rel=1e-2)
    by = best(others)
    np.testing.assert_allclose(shares[0], mean(held, others, (by, by)), atol=5e-3)


@pytest.mark.parametrize("how", [MEAN, POOL])
def test_only_what_is_calibrated_has_a_temperature(how):
    labels = np.random.default_rng(1).integers(0, CLASSES, ROWS)
    models, folds = models_and_folds(labels)
    plain, settings = out_of_folds(models, how, folds, labels)
    assert settings.temperatures == {}
    scaled, settings = out_of_folds(models, how, folds, labels, ["encoder"])
    assert set(settings.temperatures) == {"encoder"} and settings.temperatures["encoder"] > 1
    assert not np.allclose(plain[0], scaled[0])


def test_rows_that_no_fold_held_out_have_no_loss():
    labels = np.arange(ROWS) % CLASSES
    models, folds = models_and_folds(labels)
    shares, _ = out_of_folds(models, MEAN, folds[:2], labels)
    losses = row_losses(shares, folds[:2], labels)
    assert np.isnan(losses[folds[2].held]).all() and np.isfinite(losses[folds[0].held]).all()


def test_a_fold_without_others_is_not_scaled_by_its_own_rows():
    labels = np.random.default_rng(1).integers(0, CLASSES, ROWS)
    models, folds = models_and_folds(labels)
    for how, names in ((MEAN, ["encoder", "tfidf"]), (POOL, ["encoder"]), (POOL, [POOL])):
        plain, _ = out_of_folds(models, how, folds[:1], labels)
        scaled, settings = out_of_folds(models, how, folds[:1], labels, names)
        np.testing.assert_array_equal(plain[0], scaled[0])
        assert {*settings.temperatures} == {*names}


def test_a_fold_without_others_is_weighed_row_by_row_on_its_other_rows():
    labels = np.random.default_rng(1).integers(0, CLASSES, ROWS)
    models, folds = models_and_folds(labels, count=2)
    (shares,), _ = out_of_folds(models, POOL, folds[:1], labels)
    logs = [np.log(model.shares(0, model.best([0]))) for model in models.values()]
    expected = softmax(cross_weighted(logs, labels[folds[0].held]))
    np.testing.assert_allclose(shares, expected)


def test_of_cs_that_differ_by_rounding_alone_the_smallest_is_best():
    model = OnFolds((0.1, 1.0))
    model.add(lambda c: np.array([[0.5 + 1e-15 * c, 0.5 - 1e-15 * c]]), np.array([0]), 1)
    losses = [-np.log(model.shares(0, place)[0, 0]) for place in (0, 1)]
    assert losses[1] < losses[0] and model.best([0]) == 0


def test_a_fold_counts_for_as_many_rows_as_it_holds_out():
    """Of C one is better on a fold of two rows, the other on one of twenty, by less."""
    model = OnFolds((0.1, 1.0))
    right, wrong = [[2.0, 0.0]], [[0.0, 2.0]]
    small = np.array(right * 2)
    large = np.array(right * 10 + wrong * 10)  # little confidence is best
    for scores in (small, large):
        labels = np.zeros(len(scores), dtype=int)
        model.add(lambda c, s=scores: softmax(c * s), labels, 22)
    assert (model.best([0]), model.best([1])) == (1, 0)
    assert model.best([0, 1]) == 0


def test_the_loss_of_a_row_is_its_mean_over_the_repeats_and_bounded():
    labels = np.array([0, 1, 0, 1])
    every = np.arange(4)
    folds, shares = [], []
    for repeat, held in enumerate(([0, 1], [0, 1, 2])):
        folds.append(Fold(repeat, np.setdiff1d(every, held), np.array(held)))
    shares.append(np.array([[0.9, 0.1], [0.4, 0.6]]))
    shares.append(np.array([[0.3, 0.7], [0.5, 0.5], [0.0, 1.0]]))
    losses = row_losses(shares, folds, labels)
    expected = [-np.log([0.9, 0.3]).mean(), -np.log([0.6, 0.5]).mean(), -np.log(LEAST_SHARE)]
    assert losses[:3] == pytest.approx(expected) and np.isnan(losses[3])


def test_the_settings_are_those_that_all_folds_choose_together():
    labels = np.random.default_rng(1).integers(0, CLASSES, ROWS)
    models, folds = models_and_folds(labels, repeats=2)
    _, settings = out_of_folds(models, POOL, folds, labels)
    held = np.concatenate([fold.held for fold in folds])
    logs = []
    for name, model in models.items():
        place = model.grid.index(settings.c[name])
        assert place == model.best(range(6))
        logs.append(np.log(np.concatenate([model.shares(fold, place) for fold in range(6)])))
    assert [*settings.weights.values()] == pytest.approx(fit_weights(logs, labels[held]).tolist())
