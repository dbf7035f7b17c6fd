"""LEAM: attention and loss against loops, odd batches, padding, class names."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from superconext.core.errors import ConfigError, TrainingError
from superconext.encoders.base import EncoderOutput
from superconext.objectives.leam import LabelAttention, Options, masked_softmax
from tests.objectives.batches import COMPOSITIONS, build, make_batch, random_vectors
from tests.objectives.label_batches import LENGTHS, arrays, rename_classes, token_batch
from tests.objectives.label_oracles import attended, attention_weights, log_softmax_at
from tests.objectives.oracles import mean

VARIANTS = ["kernel=shared", "kernel=full", "width=1", "width=3,kernel=shared", "width=55"]
CONTENT = "dropout=0,hidden=6"


def output_of(batch):
    return EncoderOutput(batch.token_states, batch.mask, batch.sentence)


def classify(rows, weights):
    """The classifier f of the definition, one row at a time."""
    result = []
    for row in rows:
        hidden = [
            max(float(w @ row) + b, 0.0)
            for w, b in zip(
                weights["classifier.1.weight"], weights["classifier.1.bias"], strict=True
            )
        ]
        result.append(
            [
                float(w @ hidden) + b
                for w, b in zip(
                    weights["classifier.4.weight"], weights["classifier.4.bias"], strict=True
                )
            ]
        )
    return result


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("labels", [[0, 1, 2, 0, 1, 1], [2] * 6, [0, 1, 2, 3, 4, 5]])
def test_equals_the_definition(options, labels):
    objective = build("leam", f"{CONTENT},regulariser=0.3,{options}", classes=6, d=8)
    batch = token_batch(labels, LENGTHS)
    loss, scalars = objective(batch)
    weights = arrays(objective)
    vectors = attended(
        batch.token_states.numpy(),
        LENGTHS,
        weights["labels"],
        weights["attention.weight"],
        weights["attention.bias"],
    )
    scores = classify(vectors, weights)
    first = mean([log_softmax_at(row, y) for row, y in zip(scores, labels, strict=True)])
    second = mean(
        [log_softmax_at(row, c) for c, row in enumerate(classify(weights["labels"], weights))]
    )
    assert float(loss.detach()) == pytest.approx(first + 0.3 * second, rel=1e-9)
    assert scalars["cross_entropy"] == pytest.approx(first)
    assert scalars["label_cross_entropy"] == pytest.approx(second)
    right = np.argmax(scores, axis=1) == np.array(labels)
    assert scalars["batch_accuracy"] == pytest.approx(right.mean())
    native = objective.class_scores(output_of(batch)).detach().numpy()
    assert native == pytest.approx(np.array(scores), rel=1e-9)


@pytest.mark.parametrize("kernel", ["shared", "full"])
def test_attention_weights(kernel):
    torch.manual_seed(1)
    attention = LabelAttention(3, 3, kernel).double()
    with torch.no_grad():
        attention.weight.mul_(4)
        attention.bias.copy_(torch.tensor([0.5, -0.5, 0.0]))
    labels, batch = random_vectors(3, 8, seed=9), token_batch([0] * 6, LENGTHS)
    beta = attention.weights(batch.token_states, batch.mask, labels).detach().numpy()
    for row, states, length in zip(beta, batch.token_states.numpy(), LENGTHS, strict=True):
        expected = attention_weights(
            states[:length],
            labels.numpy(),
            attention.weight.detach().numpy(),
            attention.bias.detach().numpy(),
        )
        assert row[:length] == pytest.approx(np.array(expected), rel=1e-9)
        assert (row[length:] == 0).all() and row.sum() == pytest.approx(1.0)
    assert np.ptp(beta[5]) > 0.01  # not uniform


def test_masked_softmax_of_large_scores():
    scores = torch.tensor([[1e4, 1e4, 3e4], [-1e4, -2e4, 0.0]])
    mask = torch.tensor([[True, True, False], [True, True, False]])
    assert torch.equal(masked_softmax(scores, mask), torch.tensor([[0.5, 0.5, 0], [1.0, 0, 0]]))


@pytest.mark.parametrize("options", VARIANTS)
def test_padding_changes_nothing(options):
    objective = build("leam", f"{CONTENT},{options}", d=8)
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
    objective = build("leam", CONTENT, d=8)
    batch = token_batch([0, 1, 2, 0, 1, 2], LENGTHS)
    states = batch.token_states.requires_grad_()
    objective(batch)[0].backward()
    reached = states.grad.abs().sum(dim=2) > 0
    assert torch.equal(reached, batch.mask)


@pytest.mark.parametrize("kernel", ["shared", "full"])
def test_gradcheck(kernel):
    objective = build("leam", f"dropout=0,hidden=3,width=3,kernel={kernel}", d=4)
    batch = token_batch([0, 1, 2], [2, 1, 3], d=4)
    states = batch.token_states.requires_grad_()

    def loss(x, *_):
        return objective(dataclasses.replace(batch, token_states=x))[0]

    assert torch.autograd.gradcheck(loss, (states, *objective.parameters()))


@pytest.mark.parametrize("labels", COMPOSITIONS.values(), ids=COMPOSITIONS.keys())
@pytest.mark.parametrize("temperature", [0.01, 1.0])
@pytest.mark.parametrize("lengths", ["mixed", "one token"])
def test_odd_batches_have_a_finite_gradient(labels, temperature, lengths):
    objective = build("leam", classes=50, d=8, temperature=temperature).float()
    batch = token_batch(labels, [1 + (lengths == "mixed") * (i % 4) for i in range(len(labels))])
    for start in (batch.token_states, torch.ones_like(batch.token_states)):
        for dtype in (torch.float32, torch.bfloat16):
            states = start.detach().to(dtype).requires_grad_()
            loss, scalars = objective(dataclasses.replace(batch, token_states=states))
            loss.backward()
            assert bool(torch.isfinite(loss)) and bool(torch.isfinite(states.grad).all())
            assert all(bool(torch.isfinite(p.grad).all()) for p in objective.parameters())
            assert all(isinstance(value, float) for value in scalars.values())


def test_order_of_rows_does_not_matter():
    objective, batch = build("leam", CONTENT, d=8), token_batch([0, 0, 1, 2, 2, 1], LENGTHS)
    order = torch.tensor([4, 2, 0, 5, 1, 3])
    turned = dataclasses.replace(
        batch,
        labels=batch.labels[order],
        token_states=batch.token_states[order],
        mask=batch.mask[order],
    )
    values = [float(objective(b)[0].detach()) for b in (batch, turned)]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


@pytest.mark.parametrize("kernel", ["shared", "full"])
def test_renaming_the_classes_renames_the_scores(kernel):
    objective = build("leam", f"{CONTENT},kernel={kernel}", d=8)
    rename = torch.tensor([2, 0, 1])
    batch = token_batch([0, 0, 1, 2, 2, 1], LENGTHS)
    before = float(objective(batch)[0].detach()), objective.class_scores(output_of(batch)).detach()
    rename_classes(objective, rename)
    with torch.no_grad():
        last = objective.classifier[4]
        last.weight[rename], last.bias[rename] = last.weight.clone(), last.bias.clone()
    renamed = dataclasses.replace(batch, labels=rename[batch.labels])
    after = float(objective(renamed)[0].detach()), objective.class_scores(output_of(batch)).detach()
    assert after[0] == pytest.approx(before[0], rel=1e-12)
    assert torch.allclose(after[1][:, rename], before[1], rtol=1e-12)


def test_labels_are_trained_by_both_terms():
    for regulariser in (0.0, 1.0):
        objective = build("leam", f"{CONTENT},regulariser={regulariser}", d=8)
        objective(token_batch([0, 1, 2, 0, 1, 2], LENGTHS))[0].backward()
        assert bool((objective.labels.grad.abs().sum(dim=1) > 0).any())


def test_without_attention_or_classifier_the_loss_is_the_log_of_the_classes():
    objective = build("leam", CONTENT, d=8)
    with torch.no_grad():
        for parameter in objective.parameters():
            parameter.zero_()
    batch = token_batch([0, 1, 2, 0, 1, 2], LENGTHS)
    assert float(objective(batch)[0].detach()) == pytest.approx(2 * math.log(3))
    beta = objective.attention.weights(batch.token_states, batch.mask, objective.labels)
    assert beta[2, :5].tolist() == pytest.approx([0.2] * 5)


def test_options_and_declarations():
    objective = build("leam", d=8)
    assert objective.options == Options(300, 0.5, 1.0, width=5, kernel="full")
    assert (objective.batches, objective.uses_projection) == ("shuffled", False)
    assert objective.needs_token_states
    assert [m.p for m in objective.classifier if isinstance(m, torch.nn.Dropout)] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("width=0", "width = 0: expected .* an odd number"),
        ("width=4", "width = 4; expected an odd number of at least 1"),
        ("kernel=none", "kernel = 'none': expected one of full, shared"),
        ("hidden=0", "hidden = 0: expected a value of at least 1"),
        ("dropout=1", "dropout = 1.0: expected a value of at least 0 and below 1"),
        ("regulariser=-0.1", "regulariser = -0.1: expected a value of at least 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        build("leam", options)


def test_a_batch_without_token_states_is_refused():
    with pytest.raises(TrainingError, match="leam: found a batch without token states"):
        build("leam", d=8)(make_batch(random_vectors(2, 8), [0, 1]))
