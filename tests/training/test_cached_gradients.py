"""Gradients of a batch that is encoded in parts are those of the batch encoded at once."""

import numpy as np
import pytest
import torch

from superconext.encoders import base
from superconext.training import cached_gradients
from tests.training.small_trainers import make_trainer, without_chance

torch.set_num_threads(1)

TEXT_OBJECTIVES = ["superloss", "supcon", "cross_entropy", "ce_scl", "ce_cl", "dualcl", "leam"]


def gradients(trainer):
    """Loss, gradients by name, and the next random number, after one batch."""
    trainer.modules.train()
    torch.manual_seed(3)
    loss, _ = trainer.objective(trainer._batch(next(iter(trainer.batches.epoch(0)))))
    loss.backward()
    found = {n: p.grad for n, p in trainer.modules.named_parameters() if p.grad is not None}
    return loss.detach(), found, torch.rand(())


def assert_same(one, other, tolerance):
    assert float(one[0]) == pytest.approx(float(other[0]), rel=tolerance)
    assert one[1].keys() == other[1].keys() and len(one[1]) > 8
    for name, gradient in one[1].items():
        error = float((gradient - other[1][name]).abs().max())
        assert error <= tolerance * float(gradient.abs().max()), name
    assert one[2] == other[2]


@pytest.fixture
def few_tokens(monkeypatch):
    """An encoder that reads 40 tokens at once, so that the plain step has parts too."""
    monkeypatch.setattr(base.token_groups, "__defaults__", (40,))


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("pooling", ["max", "mean", "last"])
@pytest.mark.parametrize("objective", [name for name in TEXT_OBJECTIVES if name != "leam"])
def test_gradients_are_those_of_the_plain_step_with_dropout_on(
    objective, pooling, dtype, tolerance, few_tokens, monkeypatch
):
    if objective == "superloss":
        monkeypatch.setattr("superconext.objectives.superloss.CHUNKED_FROM", 10)
    plain = gradients(make_trainer(objective, dtype, pooling=pooling, layers=2))
    monkeypatch.setattr(cached_gradients, "MOST_KEPT", 0)
    calls = []
    cached = cached_gradients._cached
    monkeypatch.setattr(cached_gradients, "_cached", lambda *a: calls.append(1) or cached(*a))
    assert_same(
        plain, gradients(make_trainer(objective, dtype, pooling=pooling, layers=2)), tolerance
    )
    assert len(calls) > 3


@pytest.mark.parametrize("objective", TEXT_OBJECTIVES)
def test_any_mini_batch_size_gives_the_same_without_dropout(objective):
    found = []
    for size in (1, 7, 48, 1000, None):
        found.append(gradients(without_chance(make_trainer(objective, mini_batch_size=size))))
    for other in found[1:]:
        assert_same((*found[0][:2], 0), (*other[:2], 0), 1e-9)


def test_padded_encoders_are_cached_too():
    found = []
    for size in (7, 48):
        trainer = without_chance(make_trainer("superloss", mini_batch_size=size))
        trainer.encoder.ragged = False
        found.append(gradients(trainer))
    assert_same(*found, 1e-9)


def test_a_frozen_encoder_and_evaluation_need_no_second_pass(monkeypatch):
    monkeypatch.setattr(cached_gradients, "_cached", None)
    trainer = make_trainer("cross_entropy", mini_batch_size=5)
    trainer.encoder.requires_grad_(False)
    gradients_of_head = trainer.objective(trainer._batch(np.arange(20)))[0]
    gradients_of_head.backward()
    with torch.no_grad():
        trainer._batch(np.arange(20))


def test_large_batches_alone_are_cached():
    lengths = np.full(1000, 20)
    assert len(cached_gradients._parts(lengths, 256 * 40, None)) == 1
    parts = cached_gradients._parts(np.full(8192, 21), 256 * 40, None)
    assert len(parts) == len(base.token_groups(np.full(8192, 21))) > 5
    assert sorted(np.concatenate(parts)) == list(range(8192))


def test_training_with_cached_gradients_repeats_the_plain_training(few_tokens, monkeypatch):
    weights = []
    for most in (1 << 30, 0):
        monkeypatch.setattr(cached_gradients, "MOST_KEPT", most)
        trainer = make_trainer("superloss", epochs=2)
        torch.manual_seed(5)
        trainer.fit()
        weights.append(trainer.weights())
    for name, value in weights[0].items():
        assert torch.allclose(value, weights[1][name], atol=1e-9), name


def test_one_part_and_an_encoder_that_is_only_read_need_no_second_pass(monkeypatch):
    monkeypatch.setattr(cached_gradients, "_cached", None)
    trainer = make_trainer("cross_entropy")
    trainer.objective(trainer._batch(np.arange(20)))[0].backward()
    assert all(p.grad is not None for p in trainer.encoder.forwards.parameters())
    trainer = make_trainer("cross_entropy", mini_batch_size=5)
    with torch.no_grad():
        trainer._batch(np.arange(20))


def test_an_encoder_that_keeps_much_of_a_token_gets_fewer_at_once():
    lengths = np.arange(1000) % 20 + 1
    parts = cached_gradients._parts(lengths, cached_gradients.MOST_KEPT // 100, None)
    assert sorted(np.concatenate(parts)) == list(range(1000))
    assert max(lengths[part].sum() for part in parts) < 100 + 20 and len(parts) < 150


def test_an_encoder_that_is_frozen_in_part_is_cached_too(monkeypatch):
    """Else its states would take as much memory as if nothing were cached."""
    calls = []
    cached = cached_gradients._cached
    monkeypatch.setattr(cached_gradients, "_cached", lambda *a: calls.append(1) or cached(*a))
    trainer = make_trainer("cross_entropy", mini_batch_size=5)
    next(trainer.encoder.parameters()).requires_grad_(False)
    trainer._batch(np.arange(20))
    assert len(calls) == 4
