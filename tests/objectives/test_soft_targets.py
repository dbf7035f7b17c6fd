"""Cross-entropy with shares of classes as targets, and labels drawn from these by epoch."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from superconext.core.random_streams import SOFT_LABELS, random_stream
from superconext.data.auxiliary import drawn_labels
from tests.objectives.batches import build, classifier, make_batch, random_vectors
from tests.training.small_trainers import make_trainer, without_chance

SHARES = [[0.5, 0.5, 0.0], [0.0, 0.25, 0.75], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]


def soft_batch(vectors, labels, shares):
    batch = make_batch(vectors, labels)
    batch.shares = torch.tensor(shares, dtype=vectors.dtype)
    return batch


def cross_entropy(scores, shares):
    """Minus the mean over rows of the sum over classes of share times log softmax, in loops."""
    total = 0.0
    for row, given in zip(scores.tolist(), shares, strict=True):
        norm = math.log(sum(math.exp(score) for score in row))
        total -= sum(share * (score - norm) for share, score in zip(given, row, strict=True))
    return total / len(shares)


def test_cross_entropy_and_its_scaled_term_are_their_loops():
    vectors = random_vectors(4)
    for name in ("cross_entropy", "ce_ce"):
        objective = build(name, temperature=0.3)
        weights, bias = classifier(objective)
        plain = cross_entropy(vectors.numpy() @ weights.T + bias, SHARES)
        unit = vectors.numpy() / np.linalg.norm(vectors.numpy(), axis=1, keepdims=True)
        expected = plain
        if name == "ce_ce":
            expected = 0.1 * plain + 0.9 * cross_entropy(unit @ weights.T / 0.3, SHARES)
        loss, scalars = objective(soft_batch(vectors, [0, 1, 0, 0], SHARES))
        assert loss.item() == pytest.approx(expected, rel=1e-6)
        best = (vectors.numpy() @ weights.T + bias).argmax(axis=1)
        right = best == np.argmax(SHARES, axis=1)
        assert scalars["batch_accuracy"] == pytest.approx(right.mean())


@pytest.mark.parametrize(
    "name", ["ce_ce", "ce_cl", "ce_scl", "cross_entropy", "dualcl", "leam", "lsan", "scf"]
)
def test_every_objective_with_cross_entropy_reads_the_shares(name):
    """One-hot shares give the loss of the labels, and the loss is linear in the shares."""
    trainer = without_chance(make_trainer(name))
    trainer.objective.eval()
    rows = np.arange(12)
    first = trainer._batch(rows)

    def loss(shares):
        first.shares = shares
        return trainer.objective(first)[0].item()

    one, other = torch.eye(3, dtype=torch.float64)[
        torch.stack([first.labels, (first.labels + 1) % 3])
    ]
    assert loss(one) == pytest.approx(loss(None), rel=1e-6)
    assert loss(other) != pytest.approx(loss(one), rel=1e-5)
    mixed = 0.25 * loss(one) + 0.75 * loss(other)
    assert loss(0.25 * one + 0.75 * other) == pytest.approx(mixed, rel=1e-6)


def test_labels_are_drawn_anew_in_each_epoch():
    """From the stream of the seed and the epoch alone; a pairwise loss is given the draw."""
    trainer = make_trainer("superloss", epochs=3, seed=7)
    shares = np.tile([0.5, 0.5, 0.0], (60, 1))
    shares[:20] = [0.0, 0.0, 1.0]
    trainer.shares = torch.tensor(shares, dtype=torch.float32)
    seen, forward = [], trainer.objective.forward

    def remember(batch):
        seen.append((batch.epoch, batch.ids.numpy(), batch.labels.numpy()))
        return forward(batch)

    trainer.objective.forward = remember
    trainer.fit()
    draws = [drawn_labels(shares, random_stream(7, SOFT_LABELS, epoch)) for epoch in range(3)]
    for epoch, ids, labels in seen:
        assert np.array_equal(labels, draws[epoch][ids])
    assert not np.array_equal(draws[0], draws[1])
    assert all((draw[:20] == 2).all() and set(draw[20:]) == {0, 1} for draw in draws)
