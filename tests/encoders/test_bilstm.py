"""The BiLSTM: equal to a packed nn.LSTM, and blind to padding and company."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from superconext.data.token_store import OovWords, build_store
from superconext.encoders.base import encode_rows, length_groups, sentence_vectors
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.layers import POOLING
from superconext.encoders.words import WordEmbedding
from superconext.text.tokenize import UNK_ID

torch.set_num_threads(1)


def encoder(layers=1, pooling="last", dropout=0.0, tune=True, **options):
    torch.manual_seed(0)
    words = WordEmbedding(torch.randn(30, 6), tune)
    return BiLSTMEncoder(
        words, hidden_size=5, layers=layers, dropout=dropout, pooling=pooling, **options
    )


def sentences(count=17, longest=9, seed=0):
    generator = np.random.default_rng(seed)
    return [
        generator.integers(2, 30, size=generator.integers(1, longest + 1)) for _ in range(count)
    ]


def packed_states(model, ids, lengths):
    """Token states of a textbook packed bidirectional nn.LSTM with the same weights."""
    layers = len(model.forwards)
    lstm = nn.LSTM(6, 5, num_layers=layers, bidirectional=True, batch_first=True)
    for layer in range(layers):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            ahead = getattr(model.forwards[layer], f"{name}_l0")
            back = getattr(model.backwards[layer], f"{name}_l0")
            getattr(lstm, f"{name}_l{layer}").data = ahead.data
            getattr(lstm, f"{name}_l{layer}_reverse").data = back.data
    packed = nn.utils.rnn.pack_padded_sequence(
        model.embedding.words[ids], lengths, batch_first=True, enforce_sorted=False
    )
    return nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)[0]


@pytest.mark.parametrize("layers", [1, 3])
def test_equals_a_packed_bidirectional_lstm(layers):
    model = encoder(layers).eval()
    ids, lengths = map(torch.from_numpy, build_store(sentences(), 99).pad(np.arange(17)))
    output = model(ids, lengths)
    expected = packed_states(model, ids, lengths)
    columns = torch.arange(ids.shape[1])
    assert torch.equal(output.mask, columns[None] < lengths[:, None])
    difference = (output.token_states - expected).abs()[output.mask]
    assert float(difference.max()) < 1e-6


@pytest.mark.parametrize("pooling", list(POOLING))
def test_pooling_is_what_its_name_says(pooling):
    model = encoder(pooling=pooling).eval()
    rows = sentences()
    ids, lengths = map(torch.from_numpy, build_store(rows, 99).pad(np.arange(17)))
    states = packed_states(model, ids, lengths)
    sentence = model(ids, lengths).sentence
    for i, row in enumerate(rows):
        own = states[i, : len(row)]
        expected = {
            "last": torch.cat([own[-1, :5], own[0, 5:]]),
            "mean": sum(own) / len(own),
            "max": torch.stack([max(own[:, k]) for k in range(10)]),
        }[pooling]
        assert torch.allclose(sentence[i], expected, atol=1e-6)


@pytest.mark.parametrize("pooling", list(POOLING))
@pytest.mark.parametrize("layers", [1, 2])
def test_a_padded_batch_is_one_sentence_at_a_time(pooling, layers):
    model = encoder(layers, pooling)
    store = build_store(sentences(40, 30), 99)
    together = sentence_vectors(model, store)
    for row in range(len(store)):
        alone = encode_rows(model.eval(), store, np.array([row])).sentence
        assert np.allclose(together[row], alone.detach().numpy()[0], atol=1e-6)


@pytest.mark.parametrize("groups", [1, 3, 50])
def test_groups_change_no_vector_and_keep_the_order(groups):
    model, store = encoder().eval(), build_store(sentences(), 99)
    rows = np.array([5, 0, 16, 5, 3, 9])
    whole = encode_rows(model, store, rows, whole=True)
    grouped = encode_rows(model, store, rows, groups=groups)
    assert torch.allclose(whole.sentence, grouped.sentence, atol=1e-6)
    assert whole.token_states.shape[:2] == whole.mask.shape


def test_length_groups_hold_every_position_once():
    lengths = np.array([3, 1, 2, 9, 9, 4, 1])
    parts = length_groups(lengths, 3)
    assert sorted(np.concatenate(parts)) == list(range(7))
    assert all(lengths[a].max() <= lengths[b].min() for a, b in pairwise(parts))


def test_newcomers_are_served_by_their_own_vectors():
    model = encoder().eval()
    vectors = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    store = build_store([[4, 30, 31]], 9, OovWords(vectors, np.array([True, False])))
    words = model.embedding.words.data
    longer = WordEmbedding(torch.cat([words, torch.from_numpy(vectors[:1]), words[[UNK_ID]]]))
    expected = sentence_vectors(model, store)
    model.embedding = longer
    same = sentence_vectors(model, build_store([[4, 30, 31]], 9))
    assert np.allclose(same, expected, atol=1e-6)


def test_dropout_acts_in_training_even_with_one_layer_and_never_in_vectors():
    model, store = encoder(dropout=0.5), build_store(sentences(), 99)
    model.train()
    first, second = (encode_rows(model, store, np.arange(17)).sentence for _ in range(2))
    assert not torch.allclose(first, second)
    assert np.array_equal(sentence_vectors(model, store), sentence_vectors(model, store))
    assert model.training


def test_word_dropout_hides_words_behind_the_unknown_one():
    model, store = encoder(word_dropout=0.95), build_store([[4] * 200], 200)
    model.train()
    ids, lengths = map(torch.from_numpy, store.pad(np.array([0])))
    seen = model._vectors(ids, None)[0]
    hidden = (seen == model.embedding.words[UNK_ID]).all(dim=1).float().mean()
    assert 0.85 < float(hidden) < 1.0 and model(ids, lengths).sentence.shape == (1, 10)


def test_frozen_vectors_get_no_gradient():
    model, store = encoder(tune=False), build_store(sentences(), 99)
    encode_rows(model, store, np.arange(17)).sentence.sum().backward()
    assert model.embedding.words.grad is None and model.forwards[0].weight_ih_l0.grad is not None
