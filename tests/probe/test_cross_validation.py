"""Choice of C by held-out loss: its folds, its ties, and the TF-IDF rows of a fold."""

import numpy as np
import pytest
from scipy.sparse import hstack

from superconext.probe.cross_validation import LARGE_DEV, MANY_ROWS, best_c, folds
from superconext.probe.logistic_regression import GRID, fit_probe
from superconext.probe.tfidf import FoldRows, tfidf
from tests.probe.test_tfidf import rows


@pytest.mark.parametrize(
    ("counts", "number"), [([9, 9], 5), ([9, 4], 4), ([2, 9], 2), ([9, 1], 0), ([9], 0)]
)
def test_there_are_five_folds_or_as_many_as_the_rarest_class_has_rows(counts, number):
    labels = np.repeat(np.arange(len(counts)), counts)
    found = folds(labels)
    assert len(found) == number
    for (fitted, held), again in zip(found, folds(labels), strict=True):
        assert np.array_equal(held, again[1])
        assert sorted([*fitted, *held]) == list(range(len(labels)))
        assert set(labels[fitted]) == set(labels)


def test_the_smallest_of_equal_c_wins_and_dev_is_asked_where_it_is_large():
    labels = np.arange(20) % 2
    grid = (0.1, 1.0, 10.0)
    losses = {0.1: 2.0, 1.0: 1.0, 10.0: 1.0}
    on_dev = {0.1: 0.0, 1.0: 1.0, 10.0: 1.0}

    def chosen(labels, dev_labels):
        of_fold, of_dev = (lambda *_: losses.__getitem__), (lambda: on_dev.__getitem__)
        return best_c(grid, labels, dev_labels, of_fold, of_dev)

    large = np.zeros(LARGE_DEV, dtype=np.int64)
    unknown = np.append(large[1:], -1)
    assert [chosen(labels, dev) for dev in (None, large[1:], unknown)] == [1.0] * 3
    assert chosen(labels, large) == 0.1
    assert chosen(np.array([0, 0, 1]), None) is None
    assert chosen(np.array([0, 0, 1]), large) == 0.1


def test_with_many_rows_c_beyond_two_rises_in_every_fold_is_not_tried():
    grid = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
    curve = dict(zip(grid, (3.0, 1.0, 2.0, 2.5, 9.0, 0.0), strict=True))

    def chosen(count, **options):
        asked = []

        def of_fold(*_):
            return lambda c: asked.append(c) or curve[c]

        found = best_c(grid, np.arange(count) % 2, None, of_fold, lambda: None, **options)
        return found, max(asked)

    assert chosen(MANY_ROWS) == (0.3, 3.0)
    assert chosen(MANY_ROWS - 1) == chosen(MANY_ROWS, whole_grid=True) == (30.0, 30.0)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_rows_of_a_fold_are_tfidf_fitted_on_its_own_texts(classes):
    texts, labels = rows(60, classes, 0)
    of_fold = FoldRows(texts)
    for fitted, held in folds(labels):
        own, others = ([texts[k] for k in part] for part in (fitted, held))
        features = tfidf()
        expected = features.fit_transform(own), features.transform(others)
        for ours, theirs in zip(of_fold(fitted, held), expected, strict=True):
            assert ours.shape == theirs.shape
            assert np.abs(hstack([ours - theirs]).toarray()).max() < 1e-12


def test_the_probe_of_a_run_still_chooses_by_dev_accuracy():
    draw = np.random.default_rng(0)
    labels = np.arange(80) % 2
    features = draw.normal(size=(80, 6)).astype(np.float32)
    features[:, 0] += labels
    dev, truth = features[:30] + 0.2, labels[:30]
    default = fit_probe(features, labels, dev, truth)
    assert default.c == fit_probe(features, labels, dev, truth, choice="dev_accuracy").c
    by_loss = fit_probe(features, labels, dev, truth, choice="log_loss")
    assert by_loss.c != default.c
    assert fit_probe(features, labels, choice="log_loss").c == by_loss.c
    one = np.array([2, *labels[1:]])
    assert fit_probe(features, one, choice="log_loss").c == GRID[len(GRID) // 2]
