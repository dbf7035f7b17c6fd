import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from superconext import SuperConTextClassifier, load
from superconext.core.errors import ConfigError
from superconext.data.token_store import build_store
from superconext.probe.logistic_regression import (
    FEWEST_ROWS,
    GRID,
    cross_fitting_parts,
    fit_cross_fitted,
)

QUICK = {
    "epochs": 3,
    "batch_size": 16,
    "hidden_size": 8,
    "vector_dimension": 8,
    "learning_rate": 0.01,
}
TEXTS = [f"{word} {filler} {n}" for n in range(12) for word, filler in
         (("mezyan", "bzaf"), ("zwin", "chi"), ("khayb", "bzaf"), ("3iyan", "chi"))]  # fmt: skip
LABELS = ["pos", "pos", "neg", "neg"] * 12


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(2, 5), st.integers(2, 4), st.integers(0, 9))
def test_parts_are_disjoint_cover_all_rows_and_share_out_each_class(data, members, classes, seed):
    count = [data.draw(st.integers(members * FEWEST_ROWS, members * 12)) for _ in range(classes)]
    labels = np.random.default_rng(seed).permutation(np.repeat(np.arange(classes), count))
    store = build_store([[2 + row] for row in range(len(labels))], 10)
    parts = cross_fitting_parts(store, labels, members, seed)
    assert parts is not None and len(parts) == members
    assert sorted(np.concatenate(parts)) == list(range(len(labels)))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for k in range(classes):
        held = [int((labels[part] == k).sum()) for part in parts]
        assert max(held) - min(held) <= 1


def test_copies_of_a_sentence_stand_in_one_part_whatever_their_labels():
    sentences = [[2, 3], [4, 5], [2, 3], [2, 3]] + [[6 + n] for n in range(56)]
    labels = np.array([0, 1, 1, 0] + [0, 1] * 28)
    parts = cross_fitting_parts(build_store(sentences, 10), labels, 3, 0)
    assert parts is not None
    assert sum(bool(set(part) & {0, 2, 3}) for part in parts) == 1


def test_parts_follow_from_the_seed():
    labels = np.array([0, 1] * 40)
    store = build_store([[2 + row] for row in range(80)], 10)
    first, again, other = (cross_fitting_parts(store, labels, 4, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("rows, there", [(3 * FEWEST_ROWS, True), (3 * FEWEST_ROWS - 1, False)])
def test_no_parts_where_a_class_has_too_few_rows(rows, there):
    labels = np.array([0] * 50 + [1] * rows)
    store = build_store([[2 + row] for row in range(len(labels))], 10)
    assert (cross_fitting_parts(store, labels, 3, 0) is not None) == there


@pytest.mark.parametrize("classes", [2, 3])
def test_the_probe_is_the_mean_of_one_regression_for_each_member(classes):
    """Against scikit-learn's own regression on each part, its scores averaged by hand."""
    generator = np.random.default_rng(0)
    labels = [generator.permutation(np.arange(40) % classes) for _ in range(3)]
    features = [generator.normal(size=(40, 5)) + truth[:, None] for truth in labels]
    new = [generator.normal(size=(7, 5)) for _ in range(3)]
    probe = fit_cross_fitted(features, labels, grid=(0.3,))
    scores = []
    for own, truth, other in zip(features, labels, new, strict=True):
        mean, scale = own.mean(axis=0), own.std(axis=0)
        model = LogisticRegression(C=0.3, max_iter=1000).fit((own - mean) / scale, truth)
        scores.append(model.decision_function((other - mean) / scale))
    found = probe.decision(np.hstack(new))
    expected = np.mean(scores, axis=0)
    assert np.allclose(found[:, 1] * 2 if classes == 2 else found, expected, atol=1e-3)


def test_c_is_chosen_on_dev_by_what_the_members_answer_together():
    generator = np.random.default_rng(1)
    truth = np.arange(60) % 2
    features = [generator.normal(size=(60, 4)) + truth[:, None] for _ in range(2)]
    dev = np.hstack([generator.normal(size=(60, 4)) + truth[:, None] for _ in range(2)])
    chosen = fit_cross_fitted(features, [truth, truth], dev, truth)
    losses = {}
    for c in GRID:
        shares = fit_cross_fitted(features, [truth, truth], grid=(c,)).probabilities(dev)
        losses[c] = -np.log(shares[np.arange(60), truth]).mean()
    assert chosen.c == min(losses, key=losses.get) not in (GRID[0], GRID[-1])


def test_a_saved_model_of_unseen_probes_answers_alike(tmp_path):
    model = SuperConTextClassifier(members=3, probe_rows="unseen", **QUICK).fit(TEXTS, LABELS)
    assert model.transform(TEXTS[:2]).shape == (2, 3 * 16)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert np.allclose(again.predict_proba(TEXTS), model.predict_proba(TEXTS), atol=1e-6)
    assert again.score(TEXTS, LABELS) > 0.9


def test_each_member_is_trained_without_its_part():
    """The encoder of a member answers otherwise when its part is put back, and only then."""
    seen = SuperConTextClassifier(members=2, **QUICK).fit(TEXTS, LABELS)
    unseen = SuperConTextClassifier(members=2, probe_rows="unseen", **QUICK).fit(TEXTS, LABELS)
    assert not np.allclose(seen.transform(TEXTS), unseen.transform(TEXTS))
    rows = [record["member"] for record in unseen.history_]
    assert rows == [1, 1, 1, 2, 2, 2]


def test_too_few_rows_fall_back_to_seen_ones(capsys):
    rows = [0, 1, 2, 3, 4, 6]
    texts, labels = [TEXTS[row] for row in rows], [LABELS[row] for row in rows]
    plain = SuperConTextClassifier(members=2, **QUICK).fit(texts, labels)
    model = SuperConTextClassifier(members=2, probe_rows="unseen", **QUICK).fit(texts, labels)
    assert np.array_equal(model.predict_proba(texts), plain.predict_proba(texts))


def test_one_member_cannot_leave_rows_out():
    with pytest.raises(ConfigError, match="members = 1; expected at least 2"):
        SuperConTextClassifier(probe_rows="unseen", **QUICK).fit(TEXTS, LABELS)
