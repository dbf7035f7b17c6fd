"""The compiled half of a training step against the plain one."""

import numpy as np
import pytest
import torch

from superconext.core.compiler import library_of
from superconext.encoders.base import encode_rows
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.compiled_gates import SOURCE, Kernel, active, compiled, kernel
from superconext.encoders.packed_inference import pool_max
from superconext.encoders.packed_lstm import Packing, packed_bilstm
from superconext.encoders.words import WordEmbedding
from tests.encoders.test_packed_lstm import store
from tests.training.test_trainer import make_trainer

torch.set_num_threads(1)
needs_compiler = pytest.mark.skipif(
    not isinstance(kernel(), Kernel), reason=f"no kernel: {kernel()}"
)


def outcome(wanted, layers, tune, kind=torch.float32, hidden=5):
    """Sentence vectors and the gradients of their squares, dropout and word dropout at work."""
    torch.manual_seed(0)
    words = WordEmbedding(torch.randn(30, 6), tune)
    model = BiLSTMEncoder(words, hidden, layers, dropout=0.3, word_dropout=0.1, pooling="max")
    rows = np.array([5, 0, 16, 5, 3, 22, 9, 1])
    with compiled(wanted), torch.autocast("cpu", kind, enabled=kind != torch.float32):
        torch.manual_seed(1)
        sentence = encode_rows(model, store(), rows).sentence
    sentence.square().sum().backward()  # outside: the way back is that of the way there
    found = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"sentence": sentence.detach(), **found}


@needs_compiler
@pytest.mark.parametrize("hidden", [1, 5, 16, 37])
@pytest.mark.parametrize("tune", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_equals_the_plain_step_with_every_gradient(layers, tune, hidden):
    expected, found = (outcome(wanted, layers, tune, hidden=hidden) for wanted in (False, True))
    assert expected.keys() == found.keys() and ("embedding.words" in found) == tune
    for name, value in expected.items():
        scale = max(1.0, float(value.abs().max()))
        assert float((found[name] - value).abs().max()) < 1e-5 * scale, name


@needs_compiler
def test_equals_the_plain_step_in_bfloat16():
    exact = outcome(False, 2, False, hidden=16)
    expected, found = (outcome(w, 2, False, torch.bfloat16, hidden=16) for w in (False, True))
    for name, value in expected.items():
        rounding = float((value - exact[name]).norm())
        assert float((found[name] - value).norm()) < rounding, name
        assert float((found[name] - exact[name]).norm()) < 1.5 * rounding, name


@needs_compiler
def test_training_ends_with_the_same_weights():
    ends = []
    for wanted in (False, True):
        trainer = make_trainer(epochs=2, compile=wanted)
        trainer.fit()
        ends.append(trainer.weights())
        assert active(torch.zeros(1)) is None
    for name, value in ends[0].items():
        assert torch.allclose(value, ends[1][name], atol=1e-4), name
    assert any(not torch.equal(value, ends[1][name]) for name, value in ends[0].items())


@needs_compiler
def test_states_that_share_the_largest_value_share_its_gradient():
    packing, share = Packing(np.array([3, 1, 2])), 0.25
    states = torch.tensor([1.0, 1, 2, 1, -1, 1]).repeat(40, 1).t().contiguous()
    states.requires_grad_()
    found = []
    for wanted in (False, True):
        with compiled(wanted):
            torch.manual_seed(3)
            pooled = pool_max(states, packing, share)
        found.append([pooled, *torch.autograd.grad(pooled.square().sum(), [states])])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
    assert len(found[0][1].unique()) > 3, "some states share a gradient, some have it alone"


@needs_compiler
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_saturated_gates_stay_finite_and_nan_stays_nan(kind):
    packing, layer = Packing(np.array([30, 2])), torch.nn.LSTM(2, 3)
    for weights in layer.parameters():
        weights.data *= 1e3
    x = 1e3 * torch.randn(len(packing), 2, requires_grad=True)
    with compiled(True), torch.autocast("cpu", kind, enabled=kind != torch.float32):
        states = packed_bilstm(x, packing, layer, layer, aligned=False)
        largest = pool_max(states, packing, 0.2)
        largest.sum().backward()
        assert torch.isfinite(states).all() and states.abs().max() <= 1
        assert all(torch.isfinite(weights.grad).all() for weights in layer.parameters())
        broken = packed_bilstm(x * torch.nan, packing, layer, layer, aligned=False)
        assert broken.isnan().all() and pool_max(broken, packing, 0.2).isnan().all()


@needs_compiler
def test_other_types_are_left_to_torch():
    with compiled(True):
        assert active(torch.zeros(1, dtype=torch.float64)) is None
        assert isinstance(active(torch.zeros(1)), Kernel)
    with compiled(False):
        assert active(torch.zeros(1)) is None


@needs_compiler
def test_a_damaged_library_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path))
    library = library_of(SOURCE)
    assert library_of(SOURCE) == library
    for content in (library.read_bytes()[:9000], b""):
        library.unlink()  # the file that is loaded stays whole
        library.write_bytes(content)
        assert isinstance(Kernel(library_of(SOURCE)), Kernel)
        library = library_of(SOURCE)
        assert len(library.read_bytes()) > 9000
