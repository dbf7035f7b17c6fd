"""The second part of pre-training: emoji as classes of sentences."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from superconext.core.errors import RunError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.encoders.base import sentence_vectors
from superconext.encoders.pretrained import emoji_scores_of, resolve_sized
from superconext.fitting.fit import fit_model
from superconext.probe import logistic_regression
from superconext.probe.logistic_regression import of_unit_length
from superconext.training.callbacks import Callback
from superconext.training.pretraining import emoji, make
from superconext.training.pretraining.emoji import emoji_rows, emoji_scores, emoji_training
from superconext.training.pretraining.language_model import Settings, pretraining, read_corpus
from tests.cli.conftest import BAD, COMMON, GOOD, call_main
from tests.training.pretraining.test_pretrain import SMALL, cached, same, weights

__all__ = ["cached"]


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """A second part of a few sentences."""
    monkeypatch.setattr(emoji, "FEWEST_SENTENCES", 100)
    monkeypatch.setattr(emoji, "FEWEST_OF_ONE", 20)
    monkeypatch.setattr(emoji, "BATCH_SIZE", 32)


def told(count=300, seed=0):
    """Two in three sentences hold good or bad words and an emoji that says which."""
    draw = random.Random(seed)
    lines = []
    for k in range(count):
        words, face = [(GOOD, "😂"), (BAD, "😭"), (COMMON, "")][k % 3]
        line = [*draw.choices(COMMON, k=4), *draw.choices(words, k=2)]
        draw.shuffle(line)
        lines.append([*line, *[face] * bool(face)])
    return lines


def test_sentences_lose_their_emoji_and_are_numbered_by_them():
    lines = [
        *[["bon", "match", "😂", "😂"]] * 60,
        *[["😭", "nul", "😭", "match"]] * 40,
        *[["pas", "de", "visage"]] * 30,
        *[["seul", "😂"]] * 30,  # one word: nothing to learn from
        *[["rare", "visage", "🥀"]] * 5,
        *[["bien", "joué", "👍🏽"]] * 15,
        *[["bien", "joué", "👍🏻"]] * 15,  # another tone of the same emoji
    ]
    corpus = read_corpus(lines, seed=0)
    rows = emoji_rows(corpus, seed=0)
    assert list(rows.names) == ["😂", "😭", "👍"]
    words = corpus.vocabulary.words
    seen = {}
    for k, label in enumerate(rows.labels):
        tokens = rows.store.take(np.array([k]))[0]
        seen.setdefault(rows.names[label], set()).add(" ".join(words[t] for t in tokens))
    assert seen == {"😂": {"bon match"}, "😭": {"nul match"}, "👍": {"bien joué"}}
    held = sum(1 for k in corpus.held_out for _ in range(1))
    assert len(rows.labels) >= 130 - held


def test_one_of_several_emoji_is_drawn():
    corpus = read_corpus([["a", "b", "😂", "😭"]] * 200 + [["c", "d", "e"]] * 50, seed=0)
    counts = np.bincount(emoji_rows(corpus, seed=0).labels)
    assert len(counts) == 2 and counts.min() > 60
    assert not np.array_equal(emoji_rows(corpus, 0).labels, emoji_rows(corpus, 1).labels)
    assert np.array_equal(emoji_rows(corpus, 0).labels, emoji_rows(corpus, 0).labels)


@pytest.mark.parametrize("face", ["", "😂"])
def test_too_few_emoji_are_left_alone(face):
    corpus = read_corpus([["a", "b", *[face] * bool(face)]] * 200, seed=0)
    assert emoji_rows(corpus, seed=0) is None


def learner(states, callbacks=(), epochs=6, part=1.0):
    corpus = read_corpus(told(), seed=0)
    table = np.random.default_rng(0).standard_normal((len(corpus.vocabulary), 8))
    settings = Settings(hidden_size=8, batch_size=50, epochs=1, dropout=0, emoji_epochs=epochs)
    settings = replace(settings, part=part)
    model = pretraining(corpus, table.astype(np.float32), settings, states)
    model.fit()
    rows = emoji_rows(corpus, 0)
    made = emoji_training(model.encoder, rows, settings, states, Progress(), callbacks)
    return made, rows


def apart(made, rows):
    """Mean cosine within classes less that between them."""
    z = sentence_vectors(made.encoder, rows.store)
    z = z / np.linalg.norm(z, axis=1, keepdims=True)
    alike = rows.labels[:, None] == rows.labels[None, :]
    cosine = z @ z.T
    return cosine[alike].mean() - cosine[~alike].mean()


def test_sentences_of_one_emoji_come_together(tmp_path, monkeypatch):
    monkeypatch.setattr(emoji, "LEARNING_RATE", 0.02)
    made, rows = learner(tmp_path, epochs=15)
    before = apart(made, rows)
    vectors = made.encoder.embedding.words.detach().clone()
    made.fit()
    assert apart(made, rows) > before + 0.3
    assert made.history[-1]["loss"] < made.history[0]["loss"]
    assert torch.equal(vectors, made.encoder.embedding.words)


def test_a_stopped_training_goes_on_to_the_same_end(tmp_path, monkeypatch):
    monkeypatch.setattr(emoji, "SAVED_EVERY", 4)
    whole, _ = learner(tmp_path / "whole")
    whole.fit()

    class StopError(Exception):
        pass

    class Stop(Callback):
        def on_step_end(self, trainer, step, loss):
            if trainer.steps_done == 9:
                raise StopError

    broken, _ = learner(tmp_path / "broken", [Stop()])
    with pytest.raises(StopError):
        broken.fit()
    again, _ = learner(tmp_path / "broken")
    assert again.steps_done == 8
    again.fit()
    assert same(weights(whole), weights(again))


def test_the_command_says_what_it_learned_from(cached):
    path = cached / "text.txt"
    path.write_text("".join(" ".join(line) + "\n" for line in told(450)), encoding="utf-8")
    made = {}
    for name, options in (("with", ()), ("without", ("--emoji-epochs", 0))):
        call = ("pretrain", path, "--out", cached / name, *SMALL, *options, "--json")
        code, out, _ = call_main(*call)
        assert code == 0
        facts, made[name] = json.loads(out), load_file(cached / name / "encoder.safetensors")
        assert (facts["emoji"] is not None) == (name == "with")
        if facts["emoji"]:
            assert set(facts["emoji"]["names"]) == {"😂", "😭"}
            assert 250 < facts["emoji"]["sentences"] <= 300 and len(facts["emoji_history"]) == 8
    key = "forwards.weight_hh_l0"
    assert not torch.equal(made["with"][key], made["without"][key])


def test_a_pass_over_a_part_of_the_text_has_that_part_of_the_emoji_too(tmp_path):
    whole, _ = learner(tmp_path / "whole")
    half, _ = learner(tmp_path / "half", part=0.5)
    assert half.batches.steps == round(whole.batches.steps / 2) >= 1


def test_text_without_emoji_enough_is_told_once(cached, monkeypatch):
    monkeypatch.setattr(emoji, "FEWEST_SENTENCES", 1_000)
    path = cached / "text.txt"
    path.write_text("".join(" ".join(line) + "\n" for line in told(300)), encoding="utf-8")
    quick = [option for option in SMALL if option != "--quiet"]
    code, _, error = call_main("pretrain", path, "--out", cached / "pre", *quick)
    assert code == 0 and error.count("emoji:") == 1


def test_its_scores_tell_the_emoji_apart_and_stand_beside_frozen_vectors(cached, monkeypatch):
    path, out = cached / "text.txt", cached / "pre"
    lines = [*told(450), *[["salam", "khoya", "bikhir", "🤔"]] * 60]
    path.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")
    learned = []
    monkeypatch.setattr(
        make, "emoji_scores", lambda *given: learned.append(emoji_scores(*given)) or learned[-1]
    )
    assert call_main("pretrain", path, "--out", out, *SMALL)[0] == 0
    config = resolve_sized({"init": str(out), "pooling": "mean", "freeze": True})
    scores = emoji_scores_of(config)
    assert scores.shape == (3, 2 * config.hidden_size)
    assert len(learned) == 1 and np.array_equal(scores, learned[0])
    texts = ["zwin zwin film", "khayb khayb film"]
    for other in ({"pooling": "max"}, {"layers": 2}, {"members": 2}):
        assert emoji_scores_of(replace(config, **other)) is None
    assert emoji_scores_of(replace(config, init=None)) is None

    asked = []
    fit = logistic_regression._with_c
    monkeypatch.setattr(
        logistic_regression, "_with_c", lambda *given: asked.append(given[-1]) or fit(*given)
    )
    train = Dataset(texts * 4, ["pos", "neg"] * 4)
    fit_model(train, config)
    assert len(asked) == 1 and np.array_equal(asked[0], scores)

    further, own = cached / "further", cached / "own.txt"
    plain = "".join(" ".join(filter(str.isalpha, line)) + "\n" for line in told(300))
    own.write_text(plain, encoding="utf-8")
    code, _, error = call_main("pretrain", own, "--init", out, "--out", further, "--quiet")
    assert code == 0, error
    assert len(learned) == 1, "that text has no emoji"
    kept = emoji_scores_of(replace(config, init=str(further)))
    assert np.array_equal(kept, scores)

    (out / "emoji.safetensors").write_bytes(b"other")
    with pytest.raises(RunError, match=r"emoji\.safetensors: cannot be used"):
        fit_model(train, config)


def test_scores_vary_half_as_much_as_the_vectors(tmp_path):
    learned, rows = learner(tmp_path)
    learned.fit()
    vectors = of_unit_length(sentence_vectors(learned.encoder, rows.store))
    scores = vectors @ emoji_scores(learned.encoder, rows, 0).T.astype(float)
    assert 4 * scores.var(axis=0).sum() == pytest.approx(vectors.var(axis=0).sum(), rel=1e-3)
    right = (scores[:, 0] > np.median(scores)) == (rows.labels == rows.labels.max())
    assert right.mean() > 0.9 or right.mean() < 0.1
