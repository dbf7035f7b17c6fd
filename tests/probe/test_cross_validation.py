"""Choice of C by held-out loss: its folds, its ties, and what it says of the rows left out."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_union

from superconext.baselines.linear import TfidfLogisticRegression
from superconext.data.duplicates import keys_of
from superconext.probe.base import FEWEST_DEV_ROWS
from superconext.probe.logistic_regression import (
    LARGE_DEV,
    MANY_ROWS,
    choose_c,
    fit_frozen_probe,
    folds,
)
from superconext.probe.ngrams import (
    NgramCounts,
    RatioFeatures,
    TfidfFeatures,
    equal_columns,
    fit_ngrams,
)
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


def test_copies_of_a_text_are_held_out_by_one_fold():
    plain = [f"@user{k} Film number {k} zwin" for k in range(40)]
    texts = plain + [f"@other{k} film number {k} ZWIN" for k in range(0, 40, 2)]
    labels = np.array([k % 2 for k in range(40)] + [1] * 10 + [0] * 10)
    keys = np.array(keys_of(texts))
    parts = folds(labels, texts)
    assert len(parts) == 5
    for fitted, held in parts:
        assert sorted([*fitted, *held]) == list(range(60))
        assert not set(keys[fitted]) & set(keys[held])
    apart = [set(keys[fitted]) & set(keys[held]) for fitted, held in folds(labels)]
    assert any(apart)
    for kept, usual in zip(folds(labels[:40], plain), folds(labels[:40]), strict=True):
        assert all(map(np.array_equal, kept, usual))
    # All rows of class 1 are copies of one text: no fold could hold them out and be fitted.
    labels = np.array([0] * 10 + [1] * 4)
    texts = plain[:10] + [f"@user{k} the same" for k in range(4)]
    assert len(folds(labels, texts)) == len(folds(labels)) == 4


def test_every_linear_model_chooses_c_with_copies_together():
    """Noise labels, each text three times: whoever sees a copy thinks that memory helps."""
    draw = np.random.default_rng(0)
    words = [" ".join(f"w{k}" for k in draw.integers(0, 60, 5)) for _ in range(80)]
    texts = [f"@name{k} {text}" for k in range(3) for text in words]
    labels = [str(k) for k in np.tile(draw.integers(0, 2, 80), 3)]
    fitted = TfidfLogisticRegression().fit((texts, labels), None)
    assert fitted.model.c <= 1
    features = np.tile(draw.normal(size=(80, 40)), (3, 1))
    truth = np.array(labels, dtype=np.int64)
    apart = fit_frozen_probe(features, truth).c
    assert fit_frozen_probe(features, truth, texts=texts).c < apart


def constant(losses):
    """Predictions that are their own loss."""
    return lambda c: np.full(1, losses[c])


def first(predicted, labels):
    return float(predicted[0])


def test_the_smallest_of_equal_c_wins_and_dev_is_asked_where_it_is_large_or_nothing_else_can_be():
    labels = np.arange(20) % 2
    grid = (0.1, 1.0, 10.0)
    losses = {0.1: 2.0, 1.0: 1.0, 10.0: 1.0}
    on_dev = {0.1: 0.0, 1.0: 1.0, 10.0: 1.0}

    def chosen(labels, dev_labels, within=True):
        of_fold = (lambda fitted, held: lambda c: np.full(len(held), losses[c])) if within else None
        choice = choose_c(grid, 7.0, labels, dev_labels, of_fold, lambda: constant(on_dev), first)
        assert choice.on_dev == (choice.c == 0.1)
        return choice.c

    large = np.zeros(LARGE_DEV, dtype=np.int64)
    unknown = np.append(large[1:], -1)
    assert [chosen(labels, dev) for dev in (None, large[1:], unknown)] == [1.0] * 3
    assert chosen(labels, large) == 0.1
    one = np.array([0, 0, 1])
    few = large[: FEWEST_DEV_ROWS - 1]
    assert [chosen(one, dev) for dev in (None, few, np.append(few, -1))] == [7.0] * 3
    assert chosen(one, large[:FEWEST_DEV_ROWS]) == chosen(one, large) == 0.1
    assert chosen(labels, large[:FEWEST_DEV_ROWS], within=False) == 0.1
    assert chosen(labels, few, within=False) == 7.0


def test_each_row_is_predicted_by_the_fold_that_left_it_out():
    labels = np.arange(23) % 2

    def of_fold(fitted, held):
        assert not set(fitted) & set(held)
        return lambda c: np.column_stack([held, np.full(len(held), len(fitted)), held * c])

    def loss(predicted, truth):
        assert np.array_equal(truth, labels[predicted[:, 0].astype(int)])
        return abs(predicted[1, 2] - 3 * predicted[1, 0])

    c, held_out, on_dev = choose_c((1.0, 3.0, 9.0), 1.0, labels, None, of_fold, lambda: None, loss)
    assert c == 3.0 and not on_dev and np.array_equal(held_out[:, 0], np.arange(23))
    assert np.array_equal(held_out[:, 2], 3 * np.arange(23)) and held_out[:, 1].max() < 23


def test_with_many_rows_c_beyond_two_rises_in_every_fold_is_not_tried():
    grid = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
    curve = dict(zip(grid, (3.0, 1.0, 2.0, 2.5, 9.0, 0.0), strict=True))

    def chosen(count, **options):
        asked = []

        def of_fold(_, held):
            return lambda c: asked.append(c) or np.full(len(held), curve[c])

        labels = np.arange(count) % 2
        found = choose_c(grid, 1.0, labels, None, of_fold, lambda: None, first, **options)
        return found.c, max(asked)

    assert chosen(MANY_ROWS) == (0.3, 3.0)
    assert chosen(MANY_ROWS - 1) == chosen(MANY_ROWS, whole_grid=True) == (30.0, 30.0)


def tfidf():
    return make_union(
        TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\S+", sublinear_tf=True),
        TfidfVectorizer(ngram_range=(2, 5), analyzer="char_wb", sublinear_tf=True),
    )


@pytest.mark.parametrize("classes", [2, 4])
def test_the_rows_of_a_fold_are_tfidf_fitted_on_its_own_texts(classes):
    texts, labels = rows(60, classes, 0)
    counts = NgramCounts(texts)
    for fitted, held in folds(labels, texts):
        own, others = ([texts[k] for k in part] for part in (fitted, held))
        vectoriser = tfidf()
        expected = vectoriser.fit_transform(own), vectoriser.transform(others)
        sides = counts.fold(fitted, held)
        features = TfidfFeatures(sides[0], labels[fitted])
        for side, theirs in zip(sides, expected, strict=True):
            (ours,) = features.rows(side)
            assert ours.shape == theirs.shape
            assert np.abs(hstack([ours - theirs]).toarray()).max() < 1e-12


def test_equal_columns_and_only_they_become_one():
    draw = np.random.default_rng(0)
    counts = draw.integers(0, 3, (6, 400)) * (draw.random((6, 400)) < 0.5)
    merge = equal_columns(csr_matrix(counts.astype(float))).toarray()
    distinct = {tuple(column) for column in counts.T}
    assert merge.shape == (400, len(distinct)) and len(distinct) < 400
    assert np.array_equal(merge @ merge.T > 0, (counts[:, :, None] == counts[:, None]).all(axis=0))
    assert np.allclose((merge**2).sum(axis=0), 1)
    assert np.allclose(np.linalg.norm(counts @ merge, axis=1), np.linalg.norm(counts, axis=1))


@pytest.mark.parametrize("kind", [TfidfFeatures, RatioFeatures])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_regression_on_merged_columns_is_that_on_all(kind, classes, exact):
    """Against scikit-learn on the whole matrix."""
    texts, labels = rows(60, classes, 3)
    counts = NgramCounts(texts)
    features = kind(counts.counts, labels)
    model = features.fitted(counts, 10.0)
    assert features.merge.shape[1] < 0.5 * features.merge.shape[0]
    for k, (x, target) in enumerate(
        zip(features.rows(counts.counts), features.targets, strict=True)
    ):
        whole = LogisticRegression(C=10.0).fit(x, target)
        ours = model.coef if kind is TfidfFeatures else model.coef[[k]]
        np.testing.assert_allclose(ours, whole.coef_, atol=2e-5)


@pytest.mark.parametrize("kind", [TfidfFeatures, RatioFeatures])
def test_ngram_models_say_what_their_folds_predict(kind, exact):
    texts, labels = rows(80, 3, 5)
    model, held_out = fit_ngrams(kind, NgramCounts(texts), labels, held_out=True)
    fitted, held = folds(labels, texts)[1]
    counts = NgramCounts([texts[k] for k in fitted])
    alone = kind(counts.counts, labels[fitted]).fitted(counts, model.c)
    expected = alone.probabilities([texts[k] for k in held])
    np.testing.assert_allclose(held_out[held], expected, atol=1e-5)
    assert fit_ngrams(kind, NgramCounts(texts), labels)[0].c == model.c
    large = [*texts] * 13, np.tile(labels, 13)
    assert fit_ngrams(kind, NgramCounts(texts), labels, *large, True)[1].shape == held_out.shape
