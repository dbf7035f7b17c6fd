"""Models on folds: no row is scored by a C or by weights that its own label has chosen."""

import numpy as np
import pytest

from superconext.probe.base import softmax
from superconext.probe.ensemble import ALONE, MEAN, POOL, Fold, OnFolds, out_of_folds, row_losses

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


@pytest.mark.parametrize("how", [MEAN, POOL])
@pytest.mark.parametrize("repeats", [1, 2])
def test_the_labels_of_a_fold_have_no_part_in_what_is_predicted_of_it(how, repeats):
    labels = np.random.default_rng(1).integers(0, CLASSES, ROWS)
    models, folds = models_and_folds(labels, repeats)
    shares, settings = out_of_folds(models, how, folds, labels)
    other = labels.copy()
    other[folds[0].held] = (other[folds[0].held] + 1) % CLASSES
    models, folds = models_and_folds(other, repeats)
    changed, resettled = out_of_folds(models, how, folds, other)
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


def test_rows_that_no_fold_held_out_have_no_loss():
    labels = np.arange(ROWS) % CLASSES
    models, folds = models_and_folds(labels)
    shares, _ = out_of_folds(models, MEAN, folds[:2], labels)
    losses = row_losses(shares, folds[:2], labels)
    assert np.isnan(losses[folds[2].held]).all() and np.isfinite(losses[folds[0].held]).all()
