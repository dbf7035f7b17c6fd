"""The two-way language model against its definition, in plain loops."""

import math

import numpy as np
import pytest
import torch

from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.words import WordEmbedding
from superconext.objectives.base import Batch
from superconext.training.pretraining.language_model import (
    FLATTENED,
    EqualBatches,
    Settings,
    TwoWayLanguageModel,
    read_corpus,
)

SENTENCES = [[2, 5, 3, 9], [4, 2], [7, 3, 3, 6, 2, 8, 1], [5]]
WORDS, READ, SIZE, HALF = 6, 11, 5, 4  # words 2 to 7 are predicted, 8 to 10 only read


def model(sample, seed=0):
    torch.manual_seed(seed)
    encoder = BiLSTMEncoder(WordEmbedding(torch.randn(READ, SIZE), tune=False), HALF, dropout=0.0)
    counts = np.array([9.0, 7, 4, 3, 2, 1])
    built = TwoWayLanguageModel(encoder, torch.randn(WORDS, SIZE), counts, sample=sample)
    built.encoder = encoder  # to be moved and looked at; no part of the model otherwise
    return built.double(), counts


def flat(sentences):
    return np.concatenate(sentences).astype(np.int32), np.array([len(s) for s in sentences])


class Fixed:
    """A random generator that gives these numbers."""

    def __init__(self, numbers):
        self.numbers = np.array(numbers)

    def random(self, count):
        assert count == len(self.numbers)
        return self.numbers


def states_of(built, sentence):
    """States of nn.LSTM itself: forward after each word, backward after each word from the end."""
    vectors = built.encoder.embedding.words[torch.tensor(sentence)][None]
    ahead = built.encoder.forwards[0](vectors)[0][0]
    back = built.encoder.backwards[0](vectors.flip(1))[0][0]
    return ahead, back


def oracle(built, counts, drawn):
    """Cross-entropy of each next word against itself and the words drawn, one by one."""
    shares = (counts / counts.sum()) ** FLATTENED
    shares = shares / shares.sum()
    expected = 1 - (1 - shares) ** built.sample
    losses = []
    for sentence in SENTENCES:
        for direction, words in enumerate((sentence, sentence[::-1])):
            states = states_of(built, sentence)[direction]
            for t in range(len(words) - 1):
                target = words[t + 1] - 2
                if not 0 <= target < WORDS:
                    continue
                mapped = built.maps[direction].weight @ states[t]

                def score(w, mapped=mapped):
                    value = float((mapped @ built.words.words[w] + built.bias.words[w, 0]).detach())
                    return value - math.log(expected[w])

                others = sum(math.exp(score(w)) for w in drawn if w != target)
                losses.append(-score(target) + math.log(math.exp(score(target)) + others))
    return sum(losses) / len(losses), len(losses)


def test_the_loss_is_its_definition():
    built, counts = model(sample=4)
    weights = counts**FLATTENED / (counts**FLATTENED).sum()
    middle = np.cumsum(weights) - weights / 2
    drawn = [0, 2, 2, 5]
    loss = built.losses(*flat(SENTENCES), Fixed([middle[w] for w in drawn])).mean()
    expected, predictions = oracle(built, counts, set(drawn))
    assert predictions == 16  # of 20 next words, both ways; 4 are words that are only read
    assert float(loss.detach()) == pytest.approx(expected, abs=1e-10)


def test_with_every_word_drawn_it_is_the_full_cross_entropy():
    built, _ = model(sample=4)
    built.sample = 10**9  # every word is then expected once, and nothing is taken off
    spots = np.linspace(0, 1, 400, endpoint=False)
    built._draw = lambda rng: (np.arange(WORDS), np.ones(WORDS))
    built._expected = lambda words: np.ones(len(words))
    states, targets = built._predictions(*flat(SENTENCES))
    scores = states @ built.words.words.t() + built.bias.words[:, 0]
    full = torch.nn.functional.cross_entropy(scores, torch.from_numpy(targets))
    loss = built.losses(*flat(SENTENCES), Fixed(spots)).mean()
    assert float(loss.detach()) == pytest.approx(float(full.detach()), abs=1e-10)
    learned = [p for p in built.parameters() if p.requires_grad and p.numel()]
    for ours, theirs in zip(*(torch.autograd.grad(x, learned) for x in (loss, full)), strict=True):
        assert ours.abs().sum() > 0 and torch.allclose(ours, theirs, atol=1e-12)


def test_a_prediction_has_not_read_its_word():
    built, _ = model(sample=4)
    before, targets = built._predictions(*flat([[2, 3, 4, 5]]))
    changed, _ = built._predictions(*flat([[2, 3, 4, 6]]))
    # The forward predictions of words 2, 3 and 4 read [2], [2 3], [2 3 4]: none the last word.
    assert targets.tolist() == [1, 2, 3, 2, 1, 0]
    assert torch.equal(before[:3], changed[:3])
    assert not torch.isclose(before[3:], changed[3:]).all(dim=1).any()


def test_the_sample_favours_frequent_words_as_expected():
    built, counts = model(sample=3)
    rng = np.random.default_rng(0)
    hits = np.zeros(WORDS)
    for _ in range(4000):
        drawn, expected = built._draw(rng)
        assert len(set(drawn.tolist())) == len(drawn)
        hits[drawn] += 1
    assert hits / 4000 == pytest.approx(built._expected(np.arange(WORDS)), abs=0.03)
    assert expected == pytest.approx(built._expected(drawn))
    assert (np.diff(hits) < 0).all(), "counts fall, and so do the shares drawn"
    assert counts[0] / counts[-1] > hits[0] / hits[-1], "flattened"


def test_gradients_reach_everything_but_the_vectors_that_are_read():
    built, _ = model(sample=4)
    built.losses(*flat(SENTENCES), np.random.default_rng(0)).mean().backward()
    moved = {name for name, p in built.named_parameters() if p.grad is not None and p.numel()}
    assert moved == {name for name, p in built.named_parameters() if p.requires_grad and p.numel()}
    assert "encoder.embedding.words" not in moved
    assert {"words.words", "bias.words", "maps.0.weight", "maps.1.weight"} <= moved


def test_frequent_words_are_predicted_less_often_and_that_does_not_depend_on_the_rest_of_a_batch():
    torch.manual_seed(0)
    encoder = BiLSTMEncoder(WordEmbedding(torch.randn(202, 3), tune=False), HALF, dropout=0.0)
    counts = np.array([5000.0] + [25] * 199)
    built = TwoWayLanguageModel(encoder, torch.randn(200, 3), counts)
    rng = np.random.default_rng(0)
    shares = counts / counts.sum()
    sentences = [rng.choice(200, 20, p=shares) + 2 for _ in range(600)]
    _, every = built._predictions(*flat(sentences))
    assert len(every) == 600 * 19 * 2
    _, kept = built._predictions(*flat(sentences), chance=7)
    seen, left = (np.bincount(one, minlength=200) for one in (every, kept))
    assert (left[1:] == seen[1:]).all(), "of the mean share or less"
    chance = math.sqrt(0.005 / 0.5013)
    assert abs(left[0] / seen[0] - chance) < 4 * math.sqrt(chance / seen[0])
    halves = [built._predictions(*flat(sentences[i::2]), chance=7)[1] for i in (0, 1)]
    assert (np.sort(np.concatenate(halves)) == np.sort(kept)).all()
    others = built._predictions(*flat(sentences), chance=8)[1]
    assert len(others) != len(kept) or (others != kept).any()
    assert float(built.bias.words[0, 0].exp().detach()) == pytest.approx(
        shares[0]
        * math.sqrt(0.005 / shares[0])
        / (shares[0] * math.sqrt(0.005 / shares[0]) + shares[1:].sum()),
        rel=1e-4,
    )


def test_each_direction_has_chances_of_its_own():
    torch.manual_seed(0)
    encoder = BiLSTMEncoder(WordEmbedding(torch.randn(202, 3), tune=False), HALF, dropout=0.0)
    built = TwoWayLanguageModel(encoder, torch.randn(200, 3), np.array([5000.0] + [25] * 199))
    sentences = [[2] * 9] * 5  # one word, so that both directions have the same targets
    kept = [len(built._predictions(*flat(sentences), chance=chance)[1]) for chance in range(20)]
    assert any(count % 2 for count in kept)


def test_each_step_is_compared_with_other_words():
    built, _ = model(sample=3)
    tokens, lengths = flat(SENTENCES)
    nothing = torch.zeros(0)

    def loss(step):
        batch = Batch(
            nothing, nothing, nothing, nothing, 0, 1, step=step, tokens=tokens, lengths=lengths
        )
        return float(built(batch)[0].detach())

    losses = [loss(step) for step in range(4)]
    assert losses == [loss(step) for step in range(4)] and len(set(losses)) > 1


def test_sentences_of_one_word_are_left_out_and_those_held_out_are_not_learned_from():
    sentences = [["zwin", "bzaf"], ["bzaf"], ["khayb", "bzaf", "zwin"]] * 50 + [
        ["rare", "zwin"]
    ] * 3
    corpus = read_corpus(sentences, seed=0)
    assert len(corpus.store) == 103 and len(corpus.held_out) == 2
    assert sorted([*corpus.trained, *corpus.held_out]) == list(range(103))
    assert corpus.tokens == corpus.store.lengths_of(corpus.trained).sum()
    assert sorted(corpus.counts) == [3, 50, 100, 103], "a word seen three times is predicted"


def test_the_batch_follows_from_the_number_of_sentences():
    few, many = Settings().of_text(49_999), Settings().of_text(50_000)
    assert (few.batch_size, few.learning_rate) == (128, 0.002)
    assert (many.batch_size, many.learning_rate) == (256, 0.003)
    own = Settings(batch_size=30, learning_rate=0.1).of_text(10**6)
    assert (own.batch_size, own.learning_rate) == (30, 0.1)


@pytest.mark.parametrize("part", [0.001, 0.25, 0.3, 1.0])
def test_an_epoch_of_a_part_draws_other_sentences_each_time(part):
    rows = np.arange(100, 1100)
    batches = EqualBatches(rows, 32, seed=3, part=part)
    assert batches.steps == max(1, round(part * 31))
    whole = list(EqualBatches(rows, 32, seed=3).epoch(0))
    epochs = [list(batches.epoch(number)) for number in range(20)]
    for epoch in epochs:
        assert len(epoch) == batches.steps and all(32 <= len(batch) <= 33 for batch in epoch)
        read = np.concatenate(epoch)
        assert len(set(read)) == len(read) and set(read) <= set(rows)
    assert all(np.array_equal(*pair) for pair in zip(epochs[0], whole, strict=False))
    some = {row for epoch in epochs for batch in epoch for row in batch}
    assert len(some) > len(np.concatenate(epochs[0])) or part == 1
