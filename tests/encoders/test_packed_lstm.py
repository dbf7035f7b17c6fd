"""The packed path against the padded one and against torch's own LSTM: values and gradients."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence

from superconext.data.token_store import OovWords, build_store
from superconext.encoders.base import encode_rows, encoded_blocks
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.layers import POOLING
from superconext.encoders.packed_lstm import Packing, packed_bilstm
from superconext.encoders.words import WordEmbedding
from tests.training.test_trainer import make_trainer

torch.set_num_threads(1)


def encoder(layers=1, pooling="last", class_tokens=0, dtype=torch.float64, **options):
    torch.manual_seed(0)
    words = WordEmbedding(torch.randn(30, 6))
    model = BiLSTMEncoder(
        words, 5, layers, dropout=0.0, pooling=pooling, class_tokens=class_tokens, **options
    )
    return model.to(dtype)


def store(count=23, longest=11, seed=0):
    generator = np.random.default_rng(seed)
    sizes = generator.integers(1, longest + 1, count)
    return build_store([generator.integers(2, 30, size) for size in sizes], 99)


def outcome(model, ragged, whole, rows):
    """What the encoder says by one of the two paths, and the gradients of a sum of it."""
    model.ragged = ragged
    model.zero_grad()
    output = encode_rows(model, store(), rows, whole=whole)
    torch.manual_seed(1)
    total = (output.sentence * torch.randn_like(output.sentence)).sum()
    found = [output.sentence]
    if output.class_states is not None:
        total = total + (output.class_states * torch.randn_like(output.class_states)).sum()
        found.append(output.class_states)
    if whole:
        states = output.token_states * output.mask.unsqueeze(2)
        total = total + (states * torch.randn_like(states)).sum()
        found += [states, output.mask]
    total.backward()
    return found, {name: p.grad.clone() for name, p in model.named_parameters() if p.numel()}


@pytest.mark.parametrize("pooling", list(POOLING))
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("class_tokens", [0, 3])
@pytest.mark.parametrize("whole", [False, True])
def test_equals_the_padded_path_with_every_gradient(pooling, layers, class_tokens, whole):
    model = encoder(layers, pooling, class_tokens).eval()
    rows = np.array([5, 0, 16, 5, 3, 22, 9, 1])
    for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        model.to(dtype)
        expected, wanted = outcome(model, False, whole, rows)
        found, gradients = outcome(model, True, whole, rows)
        for one, other in zip(found, expected, strict=True):
            assert one.shape == other.shape
            assert torch.allclose(one.to(dtype), other.to(dtype), rtol=0, atol=tolerance)
        for name, gradient in wanted.items():
            scale = max(1.0, float(gradient.abs().max()))
            assert float((gradients[name] - gradient).abs().max()) < tolerance * scale, name


@pytest.mark.parametrize("direction", [0, 1])
def test_equals_torchs_lstm_on_packed_sequences(direction):
    torch.manual_seed(2)
    packing = Packing(np.array([4, 7, 1, 7, 2]))
    layers = [nn.LSTM(3, 4).double() for _ in range(2)]
    x = torch.randn(len(packing), 3, dtype=torch.float64)
    given = x if direction == 0 else x[packing.reversed]
    expected = layers[direction](PackedSequence(given, torch.tensor(packing.steps)))[0].data
    own = packed_bilstm(x, packing, *layers, aligned=False)
    assert torch.allclose(own[:, 4 * direction :][:, :4], expected, atol=1e-12)
    aligned = packed_bilstm(x, packing, *layers, aligned=True)[:, 4 * direction :][:, :4]
    assert torch.equal(
        aligned if direction == 0 else aligned[packing.reversed], own[:, 4 * direction :][:, :4]
    )


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("lengths", [[3, 1, 2], [1], [2, 2, 2], [1, 1]])
def test_gradcheck(aligned, lengths):
    torch.manual_seed(0)
    packing = Packing(np.array(lengths))
    ahead, back = nn.LSTM(2, 3).double(), nn.LSTM(2, 3).double()
    x = torch.randn(len(packing), 2, dtype=torch.float64, requires_grad=True)
    weights = [*ahead.parameters(), *back.parameters()]

    def states(x, *_):
        return packed_bilstm(x, packing, ahead, back, aligned)

    assert torch.autograd.gradcheck(states, (x, *weights))
    assert torch.autograd.gradcheck(lambda *_: states(x.detach()), tuple(weights))


def test_saturated_gates_stay_finite():
    torch.manual_seed(0)
    packing, layer = Packing(np.array([30, 2])), nn.LSTM(2, 3)
    for weights in layer.parameters():
        weights.data *= 1e3
    x = 1e3 * torch.randn(len(packing), 2, requires_grad=True)
    states = packed_bilstm(x, packing, layer, layer, aligned=False)
    states.sum().backward()
    assert torch.isfinite(states).all() and states.abs().max() <= 1
    assert all(torch.isfinite(weights.grad).all() for weights in layer.parameters())


def test_bfloat16_rounds_products_and_nothing_else():
    model = encoder(2, "max", dtype=torch.float32).eval()
    rows = np.arange(23)
    expected, wanted = outcome(model, True, False, rows)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, gradients = outcome(model, True, False, rows)
    assert found[0].dtype == torch.float32
    assert 0 < float((found[0] - expected[0]).abs().max()) < 0.02
    for name, gradient in wanted.items():
        difference = float((gradients[name] - gradient).norm())
        assert difference < 0.05 * float(gradient.norm()), name


@pytest.mark.parametrize("size", [4, 9, 100])
def test_memory_that_nobody_wrote_is_not_read(size, monkeypatch):
    """Products of bfloat16 by AMX read beyond a row, and multiply that by zero."""
    plain = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *shape, **more: plain(*shape, **more).fill_(np.nan))
    packing, layer = Packing(np.arange(1, 60)), nn.LSTM(size, size)
    x = torch.randn(len(packing), size, requires_grad=True)
    for kind in (torch.bfloat16, torch.float32):
        with torch.autocast("cpu", dtype=kind, enabled=kind == torch.bfloat16):
            states = packed_bilstm(x, packing, layer, layer, aligned=True)
            gradients = torch.autograd.grad(states.sum(), [x, *layer.parameters()])
        assert all(torch.isfinite(one).all() for one in [states, *gradients])


def test_reads_newcomers_from_a_table_and_asks_for_no_gradient():
    model = encoder(dtype=torch.float32).eval()
    vectors = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    rows = build_store([[4, 30, 31], [31], [2, 2, 2, 2]], 9, OovWords(vectors, np.ones(2, bool)))
    results = []
    for ragged in (True, False):
        model.ragged = ragged
        blocks = list(encoded_blocks(model, rows, whole=True, block=2))
        assert not any(output.sentence.requires_grad for _, output in blocks)
        results.append(np.concatenate([output.sentence.numpy() for _, output in blocks]))
    assert np.allclose(*results, atol=1e-6)


@pytest.mark.parametrize("pooling", ["last", "max"])
def test_training_by_either_path_ends_with_the_same_weights(pooling):
    trained = []
    for ragged in (True, False):
        trainer = make_trainer(epochs=2, dropout=0.0, word_dropout=0.0, pooling=pooling)
        trainer.encoder.dropout.share = 0.0
        trainer.encoder.ragged = ragged
        trainer.fit()
        trained.append(trainer.weights())
    for name, value in trained[0].items():
        assert torch.allclose(value, trained[1][name], atol=1e-5), name


def test_a_graph_that_is_kept_gives_the_same_gradients_again():
    model = encoder(2).eval()
    total = encode_rows(model, store(), np.arange(23)).sentence.square().sum()
    inputs = [p for p in model.parameters() if p.numel()]
    first = torch.autograd.grad(total, inputs, retain_graph=True)
    second = torch.autograd.grad(total, inputs, retain_graph=True)
    last = torch.autograd.grad(total, inputs)
    for one, two, three in zip(first, second, last, strict=True):
        assert torch.equal(one, two) and torch.equal(one, three)
    assert any(float(one.abs().sum()) > 0 for one in first)
