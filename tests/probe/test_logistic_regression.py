"""The probe: scikit-learn's logistic regression kept as plain arrays."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from superconext import SuperConTextClassifier
from superconext.probe.base import FEWEST_DEV_ROWS, softmax
from superconext.probe.logistic_regression import DEFAULT_C, GRID, adjusted, fit_probe


def data(classes, n=90, d=6, seed=0):
    generator = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    features = generator.standard_normal((n, d)) + 1.5 * np.eye(classes, d)[labels]
    return (features * [1, 10, 0.1, 1, 1, 1] + 3).astype(np.float32), labels


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_predicts_what_scikit_learn_predicts(classes):
    features, labels = data(classes)
    probe = fit_probe(features, labels, grid=(0.5,))
    scaler = StandardScaler().fit(features)
    model = LogisticRegression(C=0.5, max_iter=1000).fit(scaler.transform(features), labels)
    expected = model.predict_proba(scaler.transform(features))
    assert np.allclose(probe.probabilities(features), expected, atol=2e-4)
    assert np.array_equal(probe.decision(features).argmax(axis=1), expected.argmax(axis=1))


def losses_of(features, labels, dev, dev_labels):
    """Log loss on dev of each C, row by row."""
    losses = {}
    for c in GRID:
        shares = fit_probe(features, labels, grid=(c,)).probabilities(dev)
        losses[c] = -np.mean([np.log(row[k]) for row, k in zip(shares, dev_labels, strict=True)])
    return losses


@pytest.mark.parametrize("classes", [2, 3])
def test_c_has_the_lowest_log_loss_on_dev_and_dev_only(classes):
    features, labels = data(classes, 40)
    noisy = np.where(np.arange(40) < 8, (labels + 1) % classes, labels)
    dev, dev_labels = data(classes, 100, seed=1)
    dev_labels[:20] = (dev_labels[:20] + 1) % classes
    losses = losses_of(features, noisy, dev, dev_labels)
    best = min(losses, key=losses.get)
    assert GRID[0] < best < GRID[-1]
    assert fit_probe(features, noisy, dev, dev_labels).c == best
    more = np.append(dev_labels, [-1] * 30)
    assert fit_probe(features, noisy, np.vstack([dev, features[:30]]), more).c == best


def test_features_that_saw_no_label_choose_c_within_train():
    """Against scikit-learn's grid search; dev rows, of which there are few, have no say."""
    features, labels = data(3, 150)
    features += np.random.default_rng(5).normal(size=features.shape) * [1, 10, 0.1, 1, 1, 1] * 2
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    split = StratifiedKFold(5, shuffle=True, random_state=0)
    grid = {"logisticregression__C": GRID}
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=split).fit(features, labels)
    best = search.best_params_["logisticregression__C"]
    assert GRID[0] < best < GRID[-1]
    dev, dev_labels = data(3, 60, seed=1)
    assert fit_probe(features, labels, dev, dev_labels, learned=False).c == best
    assert fit_probe(features, labels, learned=False).c == best
    losses = losses_of(features, labels, dev, dev_labels)
    assert fit_probe(features, labels, dev, dev_labels).c == min(losses, key=losses.get) != best
    one = np.array([3, *labels[1:]])
    assert fit_probe(features, one, learned=False).c == DEFAULT_C


def test_without_enough_dev_rows_c_is_the_default():
    features, labels = data(2)
    assert fit_probe(features, labels).c == DEFAULT_C == 0.3
    for few in (0, 1, FEWEST_DEV_ROWS - 1):
        chosen = fit_probe(features, labels, features[:few], labels[:few]).c
        assert chosen == DEFAULT_C


@pytest.mark.parametrize("rows", [FEWEST_DEV_ROWS - 1, 60])
def test_features_are_standardised_by_the_training_rows_alone(rows):
    """Dev rows that lie elsewhere, and wider, choose C and move nothing else."""
    features, labels = data(2, 80)
    dev, dev_labels = data(2, rows, seed=1)
    probe = fit_probe(features, labels, 5 * dev + 100, dev_labels)
    assert np.allclose(probe.mean, features.mean(axis=0), rtol=1e-5)
    assert np.allclose(probe.scale, features.std(axis=0), rtol=1e-5)
    alone = fit_probe(features, labels, grid=(probe.c,))
    assert np.array_equal(probe.coef, alone.coef)
    assert np.array_equal(probe.decision(features), alone.decision(features))


def test_constant_dimensions_do_not_blow_up():
    features, labels = data(2)
    features[:, 2] = 0.1
    probe = fit_probe(features, labels, grid=(1.0,))
    assert np.isfinite(probe.coef).all()
    shifted = features.copy()
    shifted[:, 2] += 1e-6
    assert np.allclose(probe.probabilities(features), probe.probabilities(shifted), atol=1e-4)


def test_softmax_of_large_scores_is_finite():
    rows = softmax(np.array([[1e4, 0.0], [-1e4, 0.0]]))
    assert np.allclose(rows, [[1, 0], [0, 1]])


@pytest.mark.parametrize("classes", [2, 3])
def test_adjusting_takes_the_log_shares_off_the_scores(classes):
    """Against probabilities divided by powers of the shares, row by row."""
    generator = np.random.default_rng(0)
    labels = np.repeat(np.arange(classes), [60, 25, 15][:classes])
    features = generator.normal(size=(len(labels), 4)) + labels[:, None]
    probe = fit_probe(features, labels, grid=(1.0,))
    before, shares = probe.probabilities(features), np.bincount(labels) / len(labels)
    for strength in (0.0, 0.5, 1.0):
        expected = before / shares**strength
        expected /= expected.sum(axis=1, keepdims=True)
        found = adjusted(probe, labels, strength).probabilities(features)
        assert np.allclose(found, expected)


def test_a_full_adjustment_makes_up_for_unequal_classes():
    """Normal classes of one variance: the best border lies half way, whatever their sizes."""
    generator = np.random.default_rng(1)
    labels = np.repeat([0, 1], [9000, 1000])
    features = generator.normal(size=(10000, 1)) + 2.0 * labels[:, None]
    probe = adjusted(fit_probe(features, labels, grid=(100.0,)), labels, 1.0)
    border = np.array([[0.9], [1.1]])
    assert probe.probabilities(border).argmax(axis=1).tolist() == [0, 1]


def test_an_estimator_takes_the_rarity_of_classes_off_its_scores():
    """Through the public door: its log-odds move by the log-odds of the training rows' shares."""
    texts = [f"zwin bzaf {n}" for n in "abcdefgh"] + [f"khayb chi {n}" for n in "abcdefghijklmnop"]
    labels = ["pos"] * 8 + ["neg"] * 16
    quick = {"epochs": 2, "batch_size": 8, "hidden_size": 4, "vector_dimension": 4}
    plain, shifted = (
        SuperConTextClassifier(**quick, logit_adjustment=strength).fit(texts, labels)
        for strength in (0.0, 0.5)
    )
    moved = shifted.decision_function(texts) - plain.decision_function(texts)
    # Classes neg and pos; a tenth of the rows, by class, is held back.
    assert moved.std() < 1e-6
    assert moved.mean() == pytest.approx(0.5 * np.log(2), abs=0.15)


def test_without_dev_rows_a_rare_class_is_found_too():
    """Of 60 rows 12 are of the rare class: with a C of 0.01 the probe finds few of them."""
    draw = np.random.default_rng(0)
    labels = np.repeat([0, 0, 0, 0, 1], 12)
    features = draw.normal(size=(60, 8)) + 0.7 * labels[:, None]
    probe = fit_probe(features.astype(np.float32), labels)
    found = probe.probabilities(features.astype(np.float32)).argmax(axis=1)
    assert (found[labels == 1] == 1).mean() >= 0.5
