"""LSAN: class vectors and loss against loops, odd batches, padding, class names."""

import dataclasses

import numpy as np
import pytest
import torch

from superconext.core.errors import ConfigError, TrainingError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.leam import LSANOptions
from tests.objectives.batches import COMPOSITIONS, build, make_batch, random_vectors
from tests.objectives.label_batches import LENGTHS, arrays, token_batch
from tests.objectives.label_oracles import log_softmax_at, lsan_scores
from tests.objectives.oracles import mean

readouts = pytest.mark.parametrize("readout", ("class", "mean"))


def lsan(readout, attention=5, **settings):
    return build("lsan", f"readout={readout},attention={attention}", **settings)


def output_of(batch):
    return EncoderOutput(batch.token_states, batch.mask, batch.sentence)


@readouts
@pytest.mark.parametrize("labels", [[0, 1, 2, 0, 1, 1], [2] * 6, [0, 1, 2, 3, 4, 5]])
def test_equals_the_definition(readout, labels):
    objective = lsan(readout, classes=6, d=8)
    with torch.no_grad():
        objective.labels.mul_(10)
    batch = token_batch(labels, LENGTHS)
    loss, scalars = objective(batch)
    scores = lsan_scores(batch.token_states.numpy(), LENGTHS, arrays(objective), readout)
    expected = mean([log_softmax_at(list(row), y) for row, y in zip(scores, labels, strict=True)])
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-9)
    right = np.argmax(scores, axis=1) == np.array(labels)
    assert scalars["batch_accuracy"] == pytest.approx(right.mean())
    assert 0 < scalars["label_attention"] < 1
    native = objective.class_scores(output_of(batch)).detach().numpy()
    assert native == pytest.approx(scores, rel=1e-9)


@readouts
def test_padding_changes_nothing(readout):
    objective = lsan(readout, d=8)
    labels = [0, 1, 2, 0, 1, 2]
    tight = token_batch(labels, LENGTHS)
    loose = token_batch(labels, LENGTHS, width=17, filler=float("nan"))
    first, second = (float(objective(batch)[0].detach()) for batch in (tight, loose))
    assert first == pytest.approx(second, rel=1e-12)
    whole = objective.class_scores(output_of(loose))
    for i, length in enumerate(LENGTHS):
        alone = EncoderOutput(
            loose.token_states[i : i + 1, :length],
            loose.mask[i : i + 1, :length],
            loose.sentence[i : i + 1],
        )
        assert torch.allclose(objective.class_scores(alone)[0], whole[i], rtol=1e-12)


def test_no_gradient_reaches_padding():
    batch = token_batch([0, 1, 2, 0, 1, 2], LENGTHS)
    states = batch.token_states.requires_grad_()
    lsan("class", d=8)(batch)[0].backward()
    assert torch.equal(states.grad.abs().sum(dim=2) > 0, batch.mask)


def test_every_weight_is_trained_the_labels_too():
    for readout in ("class", "mean"):
        objective = lsan(readout, d=8)
        objective(token_batch([0, 1, 2, 0, 1, 2], LENGTHS))[0].backward()
        for name, parameter in objective.named_parameters():
            assert bool((parameter.grad != 0).any()), name


@readouts
def test_gradcheck(readout):
    objective = lsan(readout, attention=3, d=4)
    batch = token_batch([0, 1, 2], [2, 1, 3], d=4)
    states = batch.token_states.requires_grad_()

    def loss(x, *_):
        return objective(dataclasses.replace(batch, token_states=x))[0]

    assert torch.autograd.gradcheck(loss, (states, *objective.parameters()))


@readouts
@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
@pytest.mark.parametrize("temperature", [0.01, 1.0])
def test_odd_batches_have_a_finite_gradient(readout, labels, temperature):
    objective = lsan(readout, classes=50, d=8, temperature=temperature).float()
    batch = token_batch(labels, [1 + i % 4 for i in range(len(labels))])
    for start in (batch.token_states, torch.ones_like(batch.token_states)):
        for dtype in (torch.float32, torch.bfloat16):
            states = start.detach().to(dtype).requires_grad_()
            loss, scalars = objective(dataclasses.replace(batch, token_states=states))
            loss.backward()
            assert bool(torch.isfinite(loss)) and bool(torch.isfinite(states.grad).all())
            assert all(bool(torch.isfinite(p.grad).all()) for p in objective.parameters())
            assert all(isinstance(value, float) for value in scalars.values())


def test_fusion_weights_survive_two_vanishing_sigmoids():
    """sigmoid(-400) is 0 in float32: the quotient of two would be 0 / 0."""
    objective = lsan("class", d=8).float()
    with torch.no_grad():
        objective.of_label.bias.fill_(-400.0)
        objective.of_self.bias.fill_(-400.0)
    batch = token_batch([0, 1, 2, 0, 1, 2], LENGTHS)
    states = batch.token_states.float().requires_grad_()
    loss, scalars = objective(dataclasses.replace(batch, token_states=states))
    loss.backward()
    assert 0 < scalars["label_attention"] < 1
    assert bool(torch.isfinite(states.grad).all())


@readouts
def test_order_of_rows_does_not_matter(readout):
    objective, batch = lsan(readout, d=8), token_batch([0, 0, 1, 2, 2, 1], LENGTHS)
    order = torch.tensor([4, 2, 0, 5, 1, 3])
    turned = dataclasses.replace(
        batch,
        labels=batch.labels[order],
        token_states=batch.token_states[order],
        mask=batch.mask[order],
    )
    values = [float(objective(b)[0].detach()) for b in (batch, turned)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@readouts
def test_renaming_the_classes_renames_the_scores(readout):
    objective, rename = lsan(readout, d=8), torch.tensor([2, 0, 1])
    batch = token_batch([0, 0, 1, 2, 2, 1], LENGTHS)
    before = float(objective(batch)[0].detach()), objective.class_scores(output_of(batch)).detach()
    with torch.no_grad():
        by_class = [objective.labels, objective.self_attention.weight]
        if readout == "mean":
            by_class += [objective.readout.weight, objective.readout.bias]
        for weight in by_class:
            weight[rename] = weight.clone()
    renamed = dataclasses.replace(batch, labels=rename[batch.labels])
    after = float(objective(renamed)[0].detach()), objective.class_scores(output_of(batch)).detach()
    assert after[0] == pytest.approx(before[0], rel=1e-12)
    assert torch.allclose(after[1][:, rename], before[1], rtol=1e-12)


def test_nothing_random_in_prediction():
    objective, batch = build("lsan", d=8), token_batch([0, 1, 2, 0, 1, 2], LENGTHS)
    first, second = (objective.class_scores(output_of(batch)) for _ in range(2))
    assert torch.equal(first, second)


def test_options_and_declarations():
    objective = build("lsan", d=8)
    assert objective.options == LSANOptions(200, "class")
    assert (objective.batches, objective.uses_projection) == ("shuffled", False)
    assert objective.needs_token_states


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("attention=0", "attention = 0: expected a value of at least 1"),
        ("readout=sum", "readout = 'sum': expected one of class, mean"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        build("lsan", options, d=8)


def test_an_odd_state_has_no_halves():
    with pytest.raises(ConfigError, match="7 dimensions found; expected an even number"):
        build("lsan", d=7)


def test_a_batch_without_token_states_is_refused():
    with pytest.raises(TrainingError, match="lsan: found a batch without token states"):
        build("lsan", d=8)(make_batch(random_vectors(2, 8), [0, 1]))
