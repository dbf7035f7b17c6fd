"""Class tokens around a text: where they stand, what their states are, what they leave alone."""

import numpy as np
import pytest
import torch
from torch import nn

from superconext.data.token_store import OovWords, build_store
from superconext.encoders.base import encode_rows, encoded_blocks, sentence_vectors
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.layers import POOLING
from superconext.encoders.words import WordEmbedding

torch.set_num_threads(1)

CLASSES = 3


def encoder(layers=1, pooling="max", dropout=0.0, **options):
    torch.manual_seed(0)
    return BiLSTMEncoder(
        WordEmbedding(torch.randn(30, 6)), hidden_size=5, layers=layers, dropout=dropout,
        pooling=pooling, class_tokens=CLASSES, **options,
    )  # fmt: skip


def store(count=11, longest=7):
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, longest + 1, count)
    return build_store([generator.integers(2, 30, size) for size in sizes], 99)


def by_hand(model, words, order):
    """(states of the words, of the class tokens, sentence) of one text, `order` from outside."""
    lstm = nn.LSTM(6, 5, num_layers=len(model.forwards), bidirectional=True, batch_first=True)
    for layer, (ahead, back) in enumerate(zip(model.forwards, model.backwards, strict=True)):
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(lstm, f"{name}_l{layer}").data = getattr(ahead, f"{name}_l0").data
            getattr(lstm, f"{name}_l{layer}_reverse").data = getattr(back, f"{name}_l0").data
    tokens = [model.class_rows[k] for k in order]
    sequence = torch.stack([*tokens, *(model.embedding.words[w] for w in words), *tokens[::-1]])
    states = lstm(sequence[None])[0][0]
    count = len(order)
    classes = [None] * count
    for slot, k in enumerate(order):
        classes[k] = torch.cat([states[-1 - slot, :5], states[slot, 5:]])
    own = states[count : count + len(words)]
    return own, torch.stack(classes), model.pool(own[None], torch.ones(1, len(words)).bool())[0]


@pytest.mark.parametrize("pooling", list(POOLING))
@pytest.mark.parametrize("layers", [1, 3])
def test_a_text_stands_between_its_class_tokens(layers, pooling):
    model, texts = encoder(layers, pooling).eval(), store()
    output = encode_rows(model, texts, np.arange(len(texts)), whole=True)
    assert output.class_states.shape == (len(texts), CLASSES, 10)
    assert output.token_states.shape[:2] == output.mask.shape
    for row in range(len(texts)):
        words = texts.tokens[texts.offsets[row] : texts.offsets[row + 1]]
        own, classes, sentence = by_hand(model, words, range(CLASSES))
        assert torch.allclose(output.token_states[row][output.mask[row]], own, atol=1e-6)
        assert torch.allclose(output.class_states[row], classes, atol=1e-6)
        assert torch.allclose(output.sentence[row], sentence, atol=1e-6)


def test_training_draws_an_order_for_each_text_and_gives_states_by_class():
    model, texts = encoder().train(), build_store([[4, 5, 6, 7]] * 200, 9)
    found = encode_rows(model, texts, np.arange(200)).class_states
    from itertools import permutations

    seen = set()
    expected = {order: by_hand(model, [4, 5, 6, 7], order)[1] for order in permutations(range(3))}
    for states in found:
        near = [o for o, s in expected.items() if torch.allclose(states, s, atol=1e-6)]
        assert len(near) == 1
        seen.add(near[0])
    assert len(seen) == 6
    first, second = (encode_rows(model.eval(), texts, np.arange(3)) for _ in range(2))
    assert torch.equal(first.class_states, second.class_states)
    assert torch.allclose(first.class_states[0], expected[0, 1, 2], atol=1e-6)


def test_states_depend_on_the_text_in_both_halves():
    model = encoder().eval()
    texts = build_store([[4, 5, 6], [4, 9, 6]], 9)
    states = encode_rows(model, texts, np.arange(2)).class_states
    difference = (states[0] - states[1]).abs()
    assert bool((difference > 1e-4).any(dim=1).all()) and bool((difference > 1e-4).any(dim=0).all())


@pytest.mark.parametrize("groups", [1, 3, 50])
def test_a_text_is_blind_to_its_company(groups):
    model, texts = encoder(2).eval(), store(17)
    rows = np.array([5, 0, 16, 5, 3, 9])
    together = encode_rows(model, texts, rows, groups=groups)
    for place, row in enumerate(rows):
        alone = encode_rows(model, texts, np.array([row]))
        assert torch.allclose(together.class_states[place], alone.class_states[0], atol=1e-6)
        assert torch.allclose(together.sentence[place], alone.sentence[0], atol=1e-6)


def test_blocks_of_a_store_cover_it_and_leave_the_mode():
    model, texts = encoder(dropout=0.5).train(), store(17)
    vectors = np.full((17, 10), np.nan)
    for rows, output in encoded_blocks(model, texts, whole=True, block=5):
        assert len(rows) <= 5 and output.mask.shape[0] == len(rows) and not model.training
        vectors[rows] = output.sentence.numpy()
    assert model.training
    assert np.allclose(vectors, sentence_vectors(model, texts), atol=1e-6)


def test_rows_are_trained_and_read_beside_newcomers():
    model = encoder()
    vectors = np.ones((1, 6), dtype=np.float32)
    texts = build_store([[4, 30]], 9, OovWords(vectors, np.array([True])))
    output = next(iter(encoded_blocks(model, texts)))[1]
    assert output.class_states.shape == (1, CLASSES, 10)
    states = encode_rows(model, store(), np.arange(11)).class_states
    (gradient,) = torch.autograd.grad(states.sum(), model.class_rows)
    assert bool((gradient.abs() > 0).all())


def test_without_class_tokens_nothing_is_saved_or_drawn_for_them():
    plain = BiLSTMEncoder(WordEmbedding(torch.randn(30, 6)), hidden_size=5)
    output = encode_rows(plain, store(), np.arange(4))
    assert output.class_states is None and plain.class_tokens == 0
    assert "class_rows" not in plain.state_dict()
