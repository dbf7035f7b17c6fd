"""Prediction's own way through the BiLSTM gives what training's gives."""

import numpy as np
import pytest
import torch

from superconext.encoders.base import encode_at_once, encode_rows
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.layers import POOLING
from superconext.encoders.words import WordEmbedding
from tests.encoders.test_packed_lstm import encoder, store

torch.set_num_threads(1)


@pytest.mark.parametrize("pooling", list(POOLING))
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("whole", [False, True])
def test_equals_the_path_with_gradient(pooling, layers, whole):
    model, rows = encoder(layers, pooling).eval(), np.arange(23)[::-1].copy()
    expected = encode_at_once(model, store(), rows, whole=whole)
    assert expected.sentence.requires_grad
    with torch.no_grad():
        found = encode_at_once(model, store(), rows, whole=whole)
    assert not found.sentence.requires_grad
    torch.testing.assert_close(found.sentence, expected.sentence, rtol=0, atol=1e-12)
    if whole:
        assert torch.equal(found.mask, expected.mask)
        states = [output.token_states * output.mask.unsqueeze(2) for output in (found, expected)]
        torch.testing.assert_close(*states, rtol=0, atol=1e-12)


@pytest.mark.parametrize("pooling", list(POOLING))
@pytest.mark.parametrize("rows", [1, 5, 8])
@torch.no_grad()
def test_a_few_sentences_at_a_time_change_nothing(monkeypatch, pooling, rows):
    model, all_rows = encoder(2, pooling).eval(), np.arange(23)
    expected = encode_at_once(model, store(), all_rows)
    monkeypatch.setattr("superconext.encoders.packed_inference._ROWS", rows)
    found = encode_at_once(model, store(), all_rows)
    torch.testing.assert_close(found.sentence, expected.sentence, rtol=0, atol=1e-12)


@torch.no_grad()
def test_in_single_precision_as_the_padded_path_and_whatever_stands_beside():
    torch.manual_seed(0)
    words = WordEmbedding(torch.randn(30, 100))
    model = BiLSTMEncoder(words, 128, 1, pooling="max").eval()
    rows = np.arange(23)
    found = encode_rows(model, store(), rows).sentence
    model.ragged = False
    torch.testing.assert_close(found, encode_rows(model, store(), rows).sentence, rtol=0, atol=1e-5)
    model.ragged = True
    alone = torch.cat([encode_rows(model, store(), rows[[i]]).sentence for i in rows])
    torch.testing.assert_close(found, alone, rtol=0, atol=1e-5)


@torch.no_grad()
def test_low_precision_around_it_does_not_round_predictions():
    model, rows = encoder(dtype=torch.float32).eval(), np.arange(23)
    expected = encode_rows(model, store(), rows).sentence
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(encode_rows(model, store(), rows).sentence, expected)


@torch.no_grad()
def test_training_mode_still_drops():
    model = encoder()
    model.dropout.share = 0.5
    model.train()
    one, other = (encode_rows(model, store(), np.arange(23)).sentence for _ in range(2))
    assert not torch.equal(one, other)
